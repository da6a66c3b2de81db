package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
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

// A modelTable is a table of the test, and how its keys are made.
type modelTable struct {
	name   string
	layout Layout
	key    func(n int) (hash uint64, key string)
}

func textKey(n int) (uint64, string) {
	key := fmt.Sprint(n)
	if n%3 == 0 { // short keys lie in records, long ones do not
		key += strings.Repeat("-long", n)
	}
	hash := hashOf(key)
	if n%5 == 0 { // keys of one group that share the home in the index
		hash = 3<<60 | 77
	}
	return hash, key
}

func numberKey(n int) (uint64, string) {
	switch n {
	case 0:
		return batch.HashNull(), string(appendIntKey(nil, 0, true))
	case 1:
		return likeNull()
	}
	x := int64(n-20) * 1_000_003
	return batch.HashInt(x), string(appendIntKey(nil, x, false))
}

// likeNull is the one number whose hash is that of NULL.
func likeNull() (uint64, string) {
	const hashNull = 0xa0761d6478bd642f // as package batch has it
	x := int64(-0x5f89e29b87429bd1)
	if uint64(x) != hashNull || batch.HashInt(x) != batch.HashNull() {
		panic("the number whose hash is that of NULL is another one")
	}
	return batch.HashInt(x), string(appendIntKey(nil, x, false))
}

func wideKeyOf(n int) (uint64, string) {
	key := string(binary.BigEndian.AppendUint64([]byte("0123456789"), uint64(n)))
	if n%7 == 0 {
		key += "and longer than a record"
	}
	return hashOf(key), key
}

var modelTables = []modelTable{
	{"texts", Layout{Words: 2, Blob: true}, textKey},
	{"numbers", Layout{Key: IntKey, Words: 2}, numberKey},
	{"numbers with blobs", Layout{Key: IntKey, Words: 2, Blob: true}, numberKey},
	{"wide", Layout{Key: WideKey, Words: 2}, wideKeyOf},
}

// A modelStore is a store and what it must hold, table by table.
type modelStore struct {
	store *Store
	want  []model
}

func (m modelStore) copied() []model {
	var list []model
	for _, w := range m.want {
		list = append(list, maps.Clone(w))
	}
	return list
}

// step changes a table and its model in the same way.
func (m modelStore) step(t *rapid.T) {
	k := rapid.IntRange(0, len(modelTables)-1).Draw(t, "table")
	of, want := modelTables[k], m.want[k]
	table := m.store.Table(of.name, of.layout)
	hash, key := of.key(rapid.IntRange(0, 40).Draw(t, "key"))
	if !m.store.KeyGroups().Contains(weir.KeyGroupOf(hash, testGroups)) {
		return
	}
	if rapid.IntRange(0, 3).Draw(t, "operation") == 0 {
		slot, ok := table.Find(hash, []byte(key))
		if _, there := want[key]; ok != there {
			t.Fatalf("%s: find %q: %v", of.name, key, ok)
		}
		if ok {
			table.Delete(slot)
			delete(want, key)
		}
		return
	}
	slot, fresh := table.Upsert(hash, []byte(key))
	v, old := want[key]
	if fresh == old {
		t.Fatalf("%s: upsert %q: fresh %v", of.name, key, fresh)
	}
	w := table.Words(slot)
	if [2]uint64(w) != v.words {
		t.Fatalf("%s: %q has words %v, want %v", of.name, key, w, v.words)
	}
	w[0]++
	w[1] -= 10
	v.words = [2]uint64(w)
	if of.layout.Blob && rapid.Bool().Draw(t, "set blob") {
		v.blob = rapid.StringN(0, 900, 900).Draw(t, "blob")
		table.SetBlob(slot, []byte(v.blob))
	} else if len(v.blob) > 0 && rapid.Bool().Draw(t, "patch blob") {
		at := rapid.IntRange(0, len(v.blob)-1).Draw(t, "at")
		table.PatchBlob(slot, at, []byte("!"))
		v.blob = v.blob[:at] + "!" + v.blob[at+1:]
	}
	want[key] = v
}

// check compares a store with what it must hold of its key groups.
func check(t *rapid.T, s *Store, want []model) {
	for k, of := range modelTables {
		table, m := s.Table(of.name, of.layout), model{}
		for n := range 41 {
			hash, key := of.key(n)
			if v, ok := want[k][key]; ok && s.KeyGroups().Contains(weir.KeyGroupOf(hash, testGroups)) {
				m[key] = v
			}
		}
		if table.Len() != len(m) {
			t.Fatalf("%s: %d entries, want %d", of.name, table.Len(), len(m))
		}
		seen := map[string]bool{}
		for e := range table.Entries() {
			key := string(e.Key)
			v, ok := m[key]
			if !ok || [2]uint64(e.Words) != v.words || of.layout.Blob && string(e.Blob) != v.blob || seen[key] {
				t.Fatalf("%s: %q has %v, want %v (%v)", of.name, key, e.Words, v, ok)
			}
			seen[key] = true
		}
		if len(seen) != len(m) {
			t.Fatalf("%s: ranged over %d entries, want %d", of.name, len(seen), len(m))
		}
		var last []byte
		for e := range table.Ranked(0) {
			if place := appendPlace(nil, e); bytes.Compare(place, last) <= 0 || !seen[string(e.Key)] {
				t.Fatalf("%s: %q comes behind %q", of.name, place, last)
			} else {
				last = place
			}
			delete(seen, string(e.Key))
		}
		if len(seen) > 0 {
			t.Fatalf("%s: not in order of ranks: %v", of.name, seen)
		}
	}
}

// spill moves entries to disk as far as they may be.
func (m modelStore) spill(t *rapid.T) {
	of := rapid.SampledFrom(modelTables).Draw(t, "spilled table")
	table := m.store.Table(of.name, of.layout)
	var err error
	if rapid.Bool().Draw(t, "shrink") {
		_, err = table.shrink(rapid.IntRange(1, 2).Draw(t, "chunks"))
	} else {
		_, err = table.spill(rapid.IntRange(1, 50).Draw(t, "entries"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A heldCut is an open cut, and what the store held.
type heldCut struct {
	cut  *Cut
	want []model
}

// A snapshotter makes handles of cuts, as a task does with its own.
type snapshotter struct {
	blobs  blob.Store
	pieces int
	chain  []checkpoint.Handle // of the newest cut that was written
}

// store stores a piece, or keeps it inline.
func (s *snapshotter) store(p Piece, delta bool) (checkpoint.Handle, error) {
	s.pieces++
	if s.pieces%2 == 0 {
		return p.Handle("", delta), nil
	}
	name := fmt.Sprintf("piece-%d", s.pieces)
	err := s.blobs.Put(context.Background(), name, strings.NewReader(string(p.Data)))
	return p.Handle(name, delta), err
}

// write lays a cut over the chain.
func (s *snapshotter) write(t *rapid.T, c *Cut) {
	for _, p := range c.run(rapid.IntRange(1, 4000).Draw(t, "piece size")) {
		h, err := s.store(p, len(s.chain) > 0)
		if err != nil {
			t.Fatal(err)
		}
		s.chain = append(s.chain, h)
	}
}

// merge makes one run of some of the chain.
func (s *snapshotter) merge(t *rapid.T) {
	if len(s.chain) < 2 {
		return
	}
	from := rapid.IntRange(0, len(s.chain)-2).Draw(t, "merge from")
	to := rapid.IntRange(from+1, len(s.chain)).Draw(t, "merge to")
	m := Merge{MaxParallelism: testGroups, Handles: s.chain[from:to], Whole: from == 0}
	var merged []checkpoint.Handle
	err := m.run(context.Background(), s.blobs, rapid.IntRange(1, 4000).Draw(t, "merged size"), func(p Piece) error {
		h, err := s.store(p, from > 0)
		merged = append(merged, h)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.chain = slices.Concat(s.chain[:from], merged, s.chain[to:])
}

func restored(t *rapid.T, blobs blob.Store, handles []checkpoint.Handle, groups weir.KeyGroupRange) *Store {
	s := New(Options{MaxParallelism: testGroups, KeyGroups: groups})
	if _, err := s.Restore(context.Background(), blobs, handles); err != nil {
		t.Fatal(err)
	}
	return s
}

func memoryDisk(t testing.TB) *Disk {
	d, err := NewDisk("spill", DiskOptions{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Whatever is done to a store, cut after cut, what is restored from the runs is what it held.
func TestModel(t *testing.T) {
	t.Parallel()
	disk := memoryDisk(t)
	rapid.Check(t, func(t *rapid.T) {
		m := modelStore{store: New(Options{MaxParallelism: testGroups, Disk: disk})}
		for range modelTables {
			m.want = append(m.want, model{})
		}
		snap := &snapshotter{blobs: blob.NewMemory()}
		var held []heldCut // oldest first
		write := func(n int) {
			for _, h := range held[:n] {
				snap.write(t, h.cut)
				h.cut.Release() // no harm
				for parallelism := 1; parallelism <= 3; parallelism++ {
					for subtask := range parallelism {
						check(t, restored(t, snap.blobs, snap.chain, weir.KeyGroupsOf(subtask, parallelism, testGroups)), h.want)
					}
				}
			}
			held = held[n:]
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 14).Draw(t, "action") {
			case 0:
				held = append(held, heldCut{m.store.Cut(), m.copied()})
			case 1:
				write(min(len(held), 1))
			case 2:
				snap.merge(t)
			case 3: // a failure: what was written last is all there is
				write(len(held))
				held = append(held, heldCut{m.store.Cut(), m.copied()})
				write(1)
				if rapid.Bool().Draw(t, "rescaled") {
					snap.rescale(t)
				}
				if err := m.store.Close(); err != nil {
					t.Fatal(err)
				}
				m.store = restored(t, snap.blobs, snap.chain, m.store.KeyGroups())
				m.store.disk = disk
				if rapid.Bool().Draw(t, "written anew") {
					m.store.Touch()
					snap.chain = nil
				}
			case 4, 5:
				m.spill(t)
			default:
				m.step(t)
			}
		}
		check(t, m.store, m.want)
		held = append(held, heldCut{m.store.Cut(), m.copied()})
		write(len(held))
		if s := m.store; s.open.Load() != 0 || len(s.mu.generations) != 0 {
			t.Fatalf("%d cuts open: %v", s.open.Load(), s.mu.generations)
		}
	})
}

// rescale makes the chain that of several subtasks, each of which has added a run.
func (s *snapshotter) rescale(t *rapid.T) {
	n := rapid.IntRange(2, 3).Draw(t, "subtasks")
	var all []checkpoint.Handle
	for subtask := range n {
		store := New(Options{MaxParallelism: testGroups, KeyGroups: weir.KeyGroupsOf(subtask, n, testGroups)})
		base, err := store.Restore(context.Background(), s.blobs, s.chain)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "rewritten") {
			store.Touch()
			base = nil
		}
		part := &snapshotter{blobs: s.blobs, pieces: s.pieces, chain: base}
		part.write(t, store.Cut())
		s.pieces = part.pieces
		all = append(all, part.chain...)
	}
	s.chain = all
}
