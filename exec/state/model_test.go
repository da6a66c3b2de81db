package state

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/batch"
)

const testGroups = 16

// A modelValue is an entry of the model: a plain map is the model of a table.
type modelValue struct {
	words [2]uint64
	blob  string
}

type model map[string]modelValue

// hashOf is a hash for keys that no batch made: xxh3 by way of a batch of strings.
func hashOf(key string) uint64 {
	b := batch.New([]batch.Physical{batch.Strings}, 1)
	b.Columns[0].AppendString(key)
	b.EndRow(batch.Insert)
	h := make([]uint64, 1)
	batch.HashRows(b, []int{0}, h)
	return h[0]
}

func drawTestKey(t *rapid.T) string {
	n := rapid.IntRange(0, 40).Draw(t, "key")
	key := fmt.Sprint(n)
	if n%3 == 0 { // short keys lie in records, long ones do not
		key += strings.Repeat("-long", n)
	}
	return key
}

// step changes a table and its model in the same way.
func step(t *rapid.T, table *Table, m model) {
	key := drawTestKey(t)
	switch rapid.IntRange(0, 3).Draw(t, "operation") {
	case 0:
		slot, ok := table.Find(hashOf(key), []byte(key))
		if _, want := m[key]; ok != want {
			t.Fatalf("find %q: %v", key, ok)
		}
		if ok {
			table.Delete(slot)
			delete(m, key)
		}
	default:
		slot, fresh := table.Upsert(hashOf(key), []byte(key))
		v, old := m[key]
		if fresh == old {
			t.Fatalf("upsert %q: fresh %v", key, fresh)
		}
		w := table.Words(slot)
		if [2]uint64(w) != v.words {
			t.Fatalf("%q has words %v, want %v", key, w, v.words)
		}
		w[0]++
		w[1] += 10
		v.words = [2]uint64(w)
		if rapid.Bool().Draw(t, "set blob") {
			v.blob = rapid.StringN(0, 900, 900).Draw(t, "blob")
			table.SetBlob(slot, []byte(v.blob))
		} else if len(v.blob) > 0 && rapid.Bool().Draw(t, "patch blob") {
			at := rapid.IntRange(0, len(v.blob)-1).Draw(t, "at")
			table.PatchBlob(slot, at, []byte("!"))
			v.blob = v.blob[:at] + "!" + v.blob[at+1:]
		}
		m[key] = v
	}
}

func checkTable(t *rapid.T, table *Table, m model) {
	if table.Len() != len(m) {
		t.Fatalf("%d entries, want %d", table.Len(), len(m))
	}
	seen := 0
	table.Range(func(slot int) bool {
		seen++
		key := string(table.Key(slot))
		v, ok := m[key]
		if !ok || [2]uint64(table.ReadWords(slot)) != v.words || string(table.Blob(slot)) != v.blob || table.Hash(slot) != hashOf(key) {
			t.Fatalf("%q has %v and %q, want %v (%v)", key, table.ReadWords(slot), table.Blob(slot), v, ok)
		}
		if found, ok := table.Find(hashOf(key), []byte(key)); !ok || found != slot {
			t.Fatalf("%q found at %d, %v", key, found, ok)
		}
		return true
	})
	if seen != len(m) {
		t.Fatalf("ranged over %d entries, want %d", seen, len(m))
	}
}

// checkSorted checks that Sorted gives each entry once, by state key.
func checkSorted(t *rapid.T, table *Table) {
	var keys []string
	for slot := range table.Sorted() {
		g := weir.KeyGroupOf(table.Hash(slot), testGroups)
		keys = append(keys, string(appendStateKey(nil, g, table.Key(slot))))
	}
	if len(keys) != table.Len() || !slices.IsSorted(keys) {
		t.Fatalf("sorted %d of %d: %q", len(keys), table.Len(), keys)
	}
}

var testLayout = Layout{Words: 2, Blob: true}

// A heldCut is an open cut and what it must hold.
type heldCut struct {
	cut  *Cut
	want model
}

func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		blobs := blob.NewMemory()
		s := New(Options{MaxParallelism: testGroups})
		table, m := s.Table("t", testLayout), model{}
		var held []heldCut
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "action") {
			case 0:
				held = append(held, heldCut{s.Cut(), maps.Clone(m)})
			case 1:
				if len(held) > 0 {
					k := rapid.IntRange(0, len(held)-1).Draw(t, "which")
					checkCut(t, blobs, held[k], fmt.Sprintf("step%d/", i))
					held = slices.Delete(held, k, k+1)
				}
			default:
				step(t, table, m)
			}
		}
		checkTable(t, table, m)
		checkSorted(t, table)
		for k, h := range held {
			checkCut(t, blobs, h, fmt.Sprintf("end%d/", k))
		}
		if s.open.Load() != 0 {
			t.Fatalf("%d cuts open", s.open.Load())
		}
	})
}

// checkCut writes a cut and restores it into one, two and three ranges, and those
// again, as a rescale would.
func checkCut(t *rapid.T, blobs blob.Store, h heldCut, prefix string) {
	handles := write(t, h.cut, blobs, prefix)
	h.cut.Release()
	h.cut.Release() // no harm
	for parallelism := 1; parallelism <= 3; parallelism++ {
		var again []checkpoint.Handle
		whole := model{}
		for subtask := range parallelism {
			s := restored(t, blobs, handles, weir.KeyGroupsOf(subtask, parallelism, testGroups))
			part := partOf(h.want, s.KeyGroups())
			checkTable(t, s.Table("t", testLayout), part)
			maps.Copy(whole, part)
			cut := s.Cut()
			again = append(again, write(t, cut, blobs, fmt.Sprintf("%s%d-%d/", prefix, parallelism, subtask))...)
			cut.Release()
		}
		if len(whole) != len(h.want) {
			t.Fatalf("%d ranges hold %d entries, want %d", parallelism, len(whole), len(h.want))
		}
		middle := weir.KeyGroupRange{Start: 3, End: 11} // overlaps several old ranges
		s := restored(t, blobs, again, middle)
		checkTable(t, s.Table("t", testLayout), partOf(h.want, middle))
	}
}

func partOf(m model, groups weir.KeyGroupRange) model {
	part := model{}
	for k, v := range m {
		if groups.Contains(weir.KeyGroupOf(hashOf(k), testGroups)) {
			part[k] = v
		}
	}
	return part
}

func write(t *rapid.T, c *Cut, blobs blob.Store, prefix string) []checkpoint.Handle {
	handles, err := c.Write(context.Background(), blobs, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return handles
}

func restored(t *rapid.T, blobs blob.Store, handles []checkpoint.Handle, groups weir.KeyGroupRange) *Store {
	s := New(Options{MaxParallelism: testGroups, KeyGroups: groups})
	if err := s.Restore(context.Background(), blobs, handles); err != nil {
		t.Fatal(err)
	}
	return s
}
