package state

import (
	"bytes"
	"fmt"
	"iter"
	"math"

	"weir"
)

// A Table maps encoded keys to words and a blob. Slices that its methods return alias
// the table: they are valid until the next Upsert, SetBlob, Delete or cut.
type Table struct {
	store  *Store
	name   string
	layout Layout
	rec    recordLayout
	chunks []*chunk
	index  index
	used   int   // slots ever used
	free   []int // slots to be used again
	warmed byte  // what warm reads, so that it is read
}

func newTable(s *Store, name string, l Layout) *Table {
	return &Table{store: s, name: name, layout: l, rec: recordLayoutOf(l)}
}

// Len returns the number of entries.
func (t *Table) Len() int { return t.index.n }

// Find returns the slot of a key; ok is false when it is not there. hash is that of
// batch.HashRows, key that of batch.EncodeKey.
func (t *Table) Find(hash uint64, key []byte) (slot int, ok bool) {
	if len(key) > inlineKey {
		return t.findLong(hash, key)
	}
	return t.find(hash, pack(key))
}

// Upsert returns the slot of a key; fresh is true when it was not there, and now is,
// with words of 0 and an empty blob.
func (t *Table) Upsert(hash uint64, key []byte) (slot int, fresh bool) {
	if len(key) <= inlineKey {
		return t.upsert(hash, pack(key))
	}
	if slot, ok := t.findLong(hash, key); ok {
		return slot, false
	}
	slot, c, r := t.insert(hash)
	r[1] = c.add(key)
	view(&r[1])[inlineKey] = longKey
	return slot, true
}

func (t *Table) find(hash uint64, key packed) (slot int, ok bool) {
	x := &t.index
	if x.n == 0 {
		return 0, false
	}
	for i := x.home(uint32(hash)); ; i = x.next(i) {
		e := x.entries[i]
		if e == 0 {
			return 0, false
		}
		if uint32(e>>32) != uint32(hash) {
			continue
		}
		slot := int(uint32(e)) - 1
		r := t.chunks[slot>>chunkBits].records[(slot&chunkMask)*t.rec.stride:]
		if r[1] == key.a && r[2] == key.b {
			return slot, true
		}
	}
}

func (t *Table) findLong(hash uint64, key []byte) (slot int, ok bool) {
	x := &t.index
	if x.n == 0 {
		return 0, false
	}
	for i := x.home(uint32(hash)); ; i = x.next(i) {
		e := x.entries[i]
		if e == 0 {
			return 0, false
		}
		if uint32(e>>32) != uint32(hash) {
			continue
		}
		slot := int(uint32(e)) - 1
		c := t.chunks[slot>>chunkBits]
		if r := c.at(t.rec, slot&chunkMask); r[0] == hash && bytes.Equal(c.key(r), key) {
			return slot, true
		}
	}
}

func (t *Table) upsert(hash uint64, key packed) (slot int, fresh bool) {
	if slot, ok := t.find(hash, key); ok {
		return slot, false
	}
	slot, _, r := t.insert(hash)
	r[1], r[2] = key.a, key.b
	return slot, true
}

// insert takes a slot for an entry that is not there, and clears its record but for
// the hash. The caller sets the key.
func (t *Table) insert(hash uint64) (int, *chunk, record) {
	if g := weir.KeyGroupOf(hash, t.store.maxParallelism); !t.store.keyGroups.Contains(g) {
		panic(fmt.Sprintf("state: key group %d in a store of %v (S3)", g, t.store.keyGroups))
	}
	slot := t.used
	if n := len(t.free); n > 0 {
		slot, t.free = t.free[n-1], t.free[:n-1]
	} else {
		if slot == math.MaxInt32 {
			panic("state: a table of more than 2^31 entries")
		}
		t.grow(slot)
	}
	c := t.own(slot)
	r := c.at(t.rec, slot&chunkMask)
	clear(r)
	r[0] = hash
	t.index.add(hash, slot)
	return slot, c, r
}

// grow adds the slot's record.
func (t *Table) grow(slot int) {
	t.used++
	if slot&chunkMask == 0 {
		t.chunks = append(t.chunks, &chunk{generation: t.store.generation})
	}
	c := t.own(slot)
	if need := (slot&chunkMask + 1) * t.rec.stride; need > cap(c.records) {
		size := min(max(need*2, 8*t.rec.stride), chunkSlots*t.rec.stride)
		grown := make([]uint64, need, size)
		copy(grown, c.records)
		c.records = grown
	} else {
		c.records = c.records[:need]
	}
}

// own returns the slot's chunk for writing: while cuts are open, a copy of what the
// newest may read (S1).
func (t *Table) own(slot int) *chunk {
	c := t.chunks[slot>>chunkBits]
	if c.generation != t.store.generation {
		c = t.claim(slot >> chunkBits)
	}
	return c
}

func (t *Table) claim(i int) *chunk {
	c := t.chunks[i]
	if t.store.open.Load() == 0 { // nobody reads it: every cut was released before
		c.generation, c.frozen = t.store.generation, 0
		return c
	}
	c = c.clone(t.store.generation)
	t.chunks[i] = c
	return c
}

// Words returns the words of an entry, to be read and written.
func (t *Table) Words(slot int) []uint64 {
	return t.own(slot).at(t.rec, slot&chunkMask)[t.rec.words:]
}

// ReadWords returns the words of an entry, to be read only: it never copies a chunk.
func (t *Table) ReadWords(slot int) []uint64 {
	return t.chunks[slot>>chunkBits].at(t.rec, slot&chunkMask)[t.rec.words:]
}

// Key returns the encoded key of an entry, to be read only.
func (t *Table) Key(slot int) []byte { return keyAt(t.chunks, t.rec, slot) }

// Hash returns the hash with which the entry was inserted.
func (t *Table) Hash(slot int) uint64 {
	return t.chunks[slot>>chunkBits].at(t.rec, slot&chunkMask)[0]
}

// Blob returns the blob of an entry, to be read only.
func (t *Table) Blob(slot int) []byte {
	c := t.chunks[slot>>chunkBits]
	return c.text(c.at(t.rec, slot&chunkMask)[3])
}

// SetBlob copies v into the entry. The table's layout has Blob.
func (t *Table) SetBlob(slot int, v []byte) {
	if !t.layout.Blob {
		panic("state: table " + t.name + " has no blobs")
	}
	c := t.own(slot)
	r := c.at(t.rec, slot&chunkMask)
	if old := c.text(r[3]); c.writable(r[3]) && len(v) <= len(old) && len(v) > 0 {
		c.dead += len(old) - len(v)
		copy(old, v)
		r[3] = r[3]>>32<<32 | uint64(len(v))
		return
	}
	c.drop(r[3])
	r[3] = 0
	c.tidy(t.rec)
	r[3] = c.add(v)
}

// PatchBlob overwrites the bytes from at on of an entry's blob, which stays as long as it is.
func (t *Table) PatchBlob(slot, at int, v []byte) {
	c := t.own(slot)
	r := c.at(t.rec, slot&chunkMask)
	if !c.writable(r[3]) {
		c.drop(r[3])
		r[3] = c.add(c.text(r[3]))
		c.tidy(t.rec)
	}
	copy(c.text(r[3])[at:], v)
}

// Delete removes an entry; its slot may be given to another one.
func (t *Table) Delete(slot int) {
	c := t.own(slot)
	r := c.at(t.rec, slot&chunkMask)
	t.index.remove(r[0], slot)
	if view(&r[1])[inlineKey] == longKey {
		c.drop(r[1])
	}
	if t.layout.Blob {
		c.drop(r[3])
	}
	clear(r)
	view(&r[1])[inlineKey] = freeSlot
	t.free = append(t.free, slot)
	c.tidy(t.rec)
}

// Range calls f with the slot of every entry, in no promised order, until f returns
// false. f may delete the entry it is given, and no other.
func (t *Table) Range(f func(slot int) bool) {
	eachSlot(t.chunks, t.rec, func(slot int, _ record) bool { return f(slot) })
}

// Sorted returns the slots of all entries by (key group, key). It sorts them all first;
// nothing may be deleted meanwhile.
func (t *Table) Sorted() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, slot := range order(t.chunks, t.rec, t.store.keyGroups, t.store.maxParallelism).slots {
			if !yield(int(slot)) {
				return
			}
		}
	}
}
