package state

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/batch"
)

const (
	testGroups = 16
	modelKeys  = 9000 // of each table
	collisions = 50   // of the first keys, every fifth has the hash of the others
)

// hashOf is a hash for keys that no batch made: xxh3 by way of a batch of strings.
func hashOf(key string) uint64 {
	b := batch.New([]batch.Physical{batch.Strings}, 1)
	b.Columns[0].AppendString(key)
	b.EndRow(batch.Insert)
	h := make([]uint64, 1)
	batch.HashRows(b, []int{0}, h)
	return h[0]
}

// likeNull is the one number whose hash is that of NULL.
func likeNull() int64 {
	const hashNull = 0xa0761d6478bd642f // as package batch has it
	x := int64(-0x5f89e29b87429bd1)
	if uint64(x) != hashNull || batch.HashInt(x) != batch.HashNull() {
		panic("the number whose hash is that of NULL is another one")
	}
	return x
}

// A modelValue is an entry of the model: a plain map is the model of a table.
type modelValue struct {
	hash  uint64
	words [2]uint64
	blob  string
}

type model map[string]modelValue

func copied(of []model) (list []model) {
	for _, m := range of {
		list = append(list, maps.Clone(m))
	}
	return list
}

// A modelKey is a key as tables take it.
type modelKey struct {
	hash uint64
	key  string
}

// A modelTable is a table of the test.
type modelTable struct {
	name   string
	layout Layout
	pinned bool
	keys   []modelKey                       // by number
	rows   func(numbers []int) *batch.Batch // with these keys; nil: no row has them
}

// textRows have texts as keys: short ones, which lie in records, long ones, NULL.
func textRows(numbers []int) *batch.Batch {
	b := batch.New([]batch.Physical{batch.Strings}, len(numbers))
	for _, n := range numbers {
		text := fmt.Sprint(n)
		if n%3 == 0 {
			text += strings.Repeat("-long", n%40)
		}
		if n == 2 {
			b.Columns[0].AppendNull()
		} else {
			b.Columns[0].AppendString(text)
		}
		b.EndRow(batch.Insert)
	}
	return b
}

// numberRows have numbers as keys: NULL, the one that has its hash, others.
func numberRows(numbers []int) *batch.Batch {
	b := batch.New([]batch.Physical{batch.Ints}, len(numbers))
	for _, n := range numbers {
		switch n {
		case 0:
			b.Columns[0].AppendNull()
		case 1:
			b.Columns[0].AppendInt(likeNull())
		default:
			b.Columns[0].AppendInt(int64(n-20) * 1_000_003)
		}
		b.EndRow(batch.Insert)
	}
	return b
}

// pairRows have two numbers as keys.
func pairRows(numbers []int) *batch.Batch {
	b := batch.New([]batch.Physical{batch.Ints, batch.Ints}, len(numbers))
	for _, n := range numbers {
		b.Columns[0].AppendInt(int64(n % 7))
		b.Columns[1].AppendInt(int64(n))
		b.EndRow(batch.Insert)
	}
	return b
}

// keysOf encodes the keys of rows.
func keysOf(rows func([]int) *batch.Batch) []modelKey {
	numbers := make([]int, modelKeys)
	for n := range numbers {
		numbers[n] = n
	}
	b := rows(numbers)
	var columns []int
	for i := range b.Columns {
		columns = append(columns, i)
	}
	hashes := make([]uint64, modelKeys)
	batch.HashRows(b, columns, hashes)
	keys := make([]modelKey, modelKeys)
	for n := range keys {
		keys[n] = modelKey{hashes[n], string(batch.EncodeKey(nil, b, columns, n))}
	}
	return keys
}

// modelTables are the tables of the test: each kind of keys, with blobs and without, one
// without words, one of counts, one that is pinned.
var modelTables = sync.OnceValue(func() []modelTable {
	texts, numbers, pairs := keysOf(textRows), keysOf(numberRows), keysOf(pairRows)
	for n := 0; n < collisions; n += 5 {
		texts[n].hash = 3<<60 | 77
	}
	for n := 0; n < modelKeys; n += 7 {
		pairs[n].key += "and longer than a record"
	}
	counts := slices.Clone(numbers)
	counts[0] = modelKey{batch.HashInt(5), string(appendIntKey(nil, 5, false))} // no NULL
	return []modelTable{
		{"texts", Layout{Words: 2, Blob: true}, false, texts, textRows},
		{"numbers", Layout{Key: IntKey, Words: 2}, false, numbers, numberRows},
		{"numbers with blobs", Layout{Key: IntKey, Words: 2, Blob: true}, false, numbers, numberRows},
		{"pairs", Layout{Key: WideKey, Words: 2}, false, pairs, nil},
		{"set", Layout{Key: IntKey}, false, numbers, nil},
		{"counts", Layout{Key: IntKey, Words: 1}, false, counts, nil},
		{"pinned", Layout{Words: 2, Blob: true}, true, texts, textRows},
	}
})

// in is the table in a store.
func (of *modelTable) in(s *Store) *Table {
	t := s.Table(of.name, of.layout)
	if of.pinned {
		t.Pin()
	}
	return t
}

// same compares an entry with what it must be.
func (of *modelTable) same(e Entry, v modelValue) bool {
	return e.Hash == v.hash && slices.Equal(e.Words, v.words[:len(e.Words)]) && string(e.Blob) == v.blob
}

// check compares a store with what it must hold of its key groups: by all reads that there are,
// which change nothing; those by rank from some rank on.
func check(t *rapid.T, s *Store, want []model, from uint32) {
	for k := range modelTables() {
		of := &modelTables()[k]
		table, n, ranked := of.in(s), 0, 0
		for _, v := range want[k] {
			if s.KeyGroups().Contains(weir.KeyGroupOf(v.hash, testGroups)) {
				n++
				if Rank(v.hash) >= from {
					ranked++
				}
			}
		}
		if table.Len() != n {
			t.Fatalf("%s: %d entries, want %d", of.name, table.Len(), n)
		}
		wrong := ""
		is := func(e Entry) bool {
			v, ok := want[k][string(e.Key)]
			if !ok || !of.same(e, v) {
				wrong = fmt.Sprintf("%q has %v %q, want %v (%v)", e.Key, e.Words, e.Blob, v, ok)
			}
			return wrong == ""
		}
		seen := map[string]bool{}
		for e := range table.Entries() {
			if seen[string(e.Key)] = true; !is(e) {
				break
			}
		}
		if len(seen) != n && wrong == "" {
			wrong = fmt.Sprintf("ranged over %d entries, want %d", len(seen), n)
		}
		var last, place []byte
		for e := range table.Ranked(from) {
			if !is(e) {
				break
			}
			if place = appendPlace(place[:0], e); bytes.Compare(place, last) <= 0 || Rank(e.Hash) < from {
				wrong = fmt.Sprintf("by rank from %x, %q comes behind %q", from, place, last)
				break
			}
			last = append(last[:0], place...)
			ranked--
		}
		if ranked != 0 && wrong == "" {
			wrong = fmt.Sprintf("by rank from %x there are %d entries too few", from, ranked)
		}
		if wrong != "" {
			t.Fatalf("%s: %s", of.name, wrong)
		}
	}
}

func restored(t *rapid.T, blobs blob.Store, handles []checkpoint.Handle, groups weir.KeyGroupRange) *Store {
	s := New(Options{MaxParallelism: testGroups, KeyGroups: groups})
	if _, err := s.Restore(context.Background(), blobs, handles); err != nil {
		t.Fatal(err)
	}
	return s
}

// wanted is what a long run of the model must have seen.
var wanted = []string{
	"abort", "all of it dirty", "barrier", "blob back from disk", "chunk dropped", "closed, same disk", "compaction", "compaction failed", "compaction of all",
	"compaction of what has gone", "complete", "copy aside", "crash, fresh disk", "cut within a generation", "delete", "delete a range", "delete where", "disk failed",
	"entry spilled", "filter anew", "filter halved", "fold", "given up", "grave", "grave written over", "internal cut", "inline tail merged", "long key back from disk", "NULL back from disk", "out of order",
	"parallelism 1", "parallelism 2", "parallelism 3", "parallelism 4", "recall", "relax", "restored from a savepoint", "run in a file", "run of a restore", "runs merged", "runs out of order", "savepoint", "several pieces",
	"spilled with a cut open", "started from version 1", "store failed", "superseded", "upsert of rows", "whole runs", "written anew",
}

// Whatever is done to the state of a job, task by task, what is read of it, and what is
// restored of its checkpoints, is what a plain map holds.
func TestModelOfState(t *testing.T) {
	t.Parallel()
	w, steps := &world{seen: map[string]int{}}, 10_000
	if os.Getenv("WEIR_LONG") != "" {
		steps = 1_000_000
	}
	defer w.shut(t)
	for w.seen["step"] < steps && !t.Failed() {
		rapid.Check(t, func(t *rapid.T) {
			j := newJob(t, w)
			for range j.below(660) + 1 {
				j.step()
			}
			j.end()
		})
	}
	for _, what := range slices.Sorted(maps.Keys(w.seen)) {
		t.Logf("%-28s %9d", what, w.seen[what])
	}
	for _, what := range wanted {
		if w.seen[what] == 0 && steps > 100_000 {
			t.Errorf("never: %s", what)
		}
	}
}
