package state

import (
	"fmt"
	"math"
	"slices"

	"weir"
	"weir/exec/batch"
)

// A Table maps encoded keys to words and a blob. Slices that its methods return alias
// the table: they are valid until the next Upsert, SetBlob, Delete or cut, that of Key
// until the next call of Key.
type Table struct {
	store  *Store
	name   string
	layout Layout
	rec    recordLayout
	chunks []*chunk
	index  index
	size   int      // bytes of chunks
	used   int      // slots ever used
	free   []int    // slots to be used again
	null   int      // with IntKey: the slot whose key is NULL, + 1
	dirty  []*chunk // those of this generation
	gone   goneKeys // of this generation
	warmed byte     // what warm reads, so that it is read
	cold   *cold    // what is on disk; nil: nothing ever was
	pinned bool     // nothing of it is spilled
	hand   int      // the chunk that spill looks at next
	text   []byte   // scratch of Key
	other  []byte   // scratch: another key
}

func newTable(s *Store, name string, l Layout) *Table {
	return &Table{store: s, name: name, layout: l, rec: recordLayoutOf(l)}
}

// bytes is the memory that the table takes.
func (t *Table) bytes() int64 {
	n := int64(t.size+t.index.size+8*cap(t.free)) + t.gone.size()
	if t.cold != nil {
		n += int64(len(t.cold.graves))*graveSize + t.filterSize()
	}
	return n
}

// Pin keeps the table in memory, whatever the budget says: its slots are used beyond a batch.
// What was spilled while it was restored comes back.
func (t *Table) Pin() {
	t.pinned = true
	if !t.isCold() {
		return
	}
	for e := range t.coldFrom(0) {
		t.Find(e.Hash, slices.Clone(e.Key))
	}
	t.cold.filter, t.cold.sieve = filter{}, nil
}

// Len returns the number of entries.
func (t *Table) Len() int {
	if t.cold != nil {
		return t.index.n + t.cold.n
	}
	return t.index.n
}

// insert takes a slot for an entry that is not there, and clears its record. The caller
// sets hash and key.
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
	c, i := t.own(slot), slot&chunkMask
	c.live.add(i)
	c.born.add(i)
	r := c.at(t.rec, i)
	clear(r)
	t.index.add(hash, slot)
	return slot, c, r
}

// grow adds the slot's record.
func (t *Table) grow(slot int) {
	t.used++
	if slot&chunkMask == 0 {
		t.addChunk()
	}
	c := t.own(slot)
	before := c.size()
	c.reserve(t.rec, slot)
	t.size += c.size() - before
}

func (t *Table) addChunk() {
	c := &chunk{generation: t.store.generation}
	t.chunks = append(t.chunks, c)
	t.dirty = append(t.dirty, c)
	t.size += c.size()
}

// own returns the slot's chunk for writing: one that no open cut reads (S1). The slot is
// dirty from now on.
func (t *Table) own(slot int) *chunk {
	c := t.chunks[slot>>chunkBits]
	if c.generation != t.store.generation {
		c = t.claim(slot >> chunkBits)
	}
	c.dirty.add(slot & chunkMask)
	return c
}

// claim takes a chunk into this generation.
func (t *Table) claim(i int) *chunk {
	c := t.chunks[i]
	if t.store.isRead(c.generation, c.size()) {
		c = c.clone()
		t.chunks[i] = c
	} else if t.store.open.Load() == 0 {
		c.frozen = 0 // nor does a cut read bytes that an older copy shares
	}
	for w := range c.used {
		c.used[w] |= c.dirty[w]
	}
	c.generation, c.dirty, c.born = t.store.generation, slotSet{}, slotSet{}
	t.dirty = append(t.dirty, c)
	return c
}

// Words returns the words of an entry, to be read and written.
func (t *Table) Words(slot int) []uint64 {
	return t.own(slot).at(t.rec, slot&chunkMask)[t.rec.words:]
}

// ReadWords returns the words of an entry, to be read only: the entry does not become
// dirty.
func (t *Table) ReadWords(slot int) []uint64 {
	return t.chunks[slot>>chunkBits].at(t.rec, slot&chunkMask)[t.rec.words:]
}

// Key returns the encoded key of an entry, to be read only.
func (t *Table) Key(slot int) []byte {
	if t.rec.ints && t.text == nil {
		t.text = make([]byte, 0, batch.IntKeySize)
	}
	return t.chunks[slot>>chunkBits].key(t.rec, slot&chunkMask, t.text)
}

// Hash returns the hash with which the entry was inserted.
func (t *Table) Hash(slot int) uint64 {
	return t.chunks[slot>>chunkBits].hash(t.rec, slot&chunkMask)
}

// Blob returns the blob of an entry, to be read only.
func (t *Table) Blob(slot int) []byte {
	c := t.chunks[slot>>chunkBits]
	return c.text(c.at(t.rec, slot&chunkMask)[t.rec.blob])
}

// SetBlob copies v into the entry. The table's layout has Blob.
func (t *Table) SetBlob(slot int, v []byte) {
	if !t.layout.Blob {
		panic("state: table " + t.name + " has no blobs")
	}
	c := t.own(slot)
	ref := &c.at(t.rec, slot&chunkMask)[t.rec.blob]
	if old := c.text(*ref); c.writable(*ref) && len(v) <= len(old) && len(v) > 0 {
		c.dead += len(old) - len(v)
		copy(old, v)
		*ref = *ref>>32<<32 | uint64(len(v))
		return
	}
	before := c.size()
	c.drop(*ref)
	*ref = 0
	c.tidy(t.rec)
	*ref = c.add(v)
	t.size += c.size() - before
}

// PatchBlob overwrites the bytes from at on of an entry's blob, which stays as long as it is.
func (t *Table) PatchBlob(slot, at int, v []byte) {
	c := t.own(slot)
	ref := &c.at(t.rec, slot&chunkMask)[t.rec.blob]
	if !c.writable(*ref) {
		before := c.size()
		c.drop(*ref)
		*ref = c.add(c.text(*ref))
		c.tidy(t.rec)
		t.size += c.size() - before
	}
	copy(c.text(*ref)[at:], v)
}

// Delete removes an entry; its slot may be given to another one.
func (t *Table) Delete(slot int) {
	c, i := t.own(slot), slot&chunkMask
	hash := c.hash(t.rec, i)
	if c.disk.has(i) {
		t.cold.bury(hash, c.key(t.rec, i, t.text))
	}
	if c.born.has(i) {
		c.born.remove(i)
	} else if t.store.generation > 0 { // restored, it counts for nothing
		t.gone.add(hash, c.key(t.rec, i, t.text))
	}
	t.remove(slot, c)
	before := c.size()
	c.tidy(t.rec)
	t.size += c.size() - before
}

// remove takes the entry out of memory. Its chunk may be written to.
func (t *Table) remove(slot int, c *chunk) {
	i := slot & chunkMask
	t.index.remove(c.hash(t.rec, i), slot)
	r := c.at(t.rec, i)
	switch {
	case t.rec.ints && c.null == i+1:
		t.null, c.null = 0, 0
	case !t.rec.ints && keyLength(r, t.rec) == longKey:
		c.drop(r[1])
	}
	if t.layout.Blob {
		c.drop(r[t.rec.blob])
	}
	clear(r)
	c.live.remove(i)
	c.dirty.remove(i)
	c.used.remove(i)
	c.disk.remove(i)
	t.free = append(t.free, slot)
}

// Range calls f with the slot of every entry, in no promised order, until f returns
// false. f may delete the entry it is given, and no other.
func (t *Table) Range(f func(slot int) bool) { eachSlot(t.chunks, f) }

// goneKeys are the keys of entries that were there before this generation and were
// deleted in it.
type goneKeys struct {
	hashes []uint64
	ends   []int // of each key in text
	text   []byte
}

func (g *goneKeys) add(hash uint64, key []byte) {
	g.text = append(g.text, key...)
	g.hashes, g.ends = append(g.hashes, hash), append(g.ends, len(g.text))
}

// size is the memory that they take.
func (g *goneKeys) size() int64 { return int64(8*cap(g.hashes) + 8*cap(g.ends) + cap(g.text)) }

func (g *goneKeys) key(i int) []byte {
	from := 0
	if i > 0 {
		from = g.ends[i-1]
	}
	return g.text[from:g.ends[i]]
}
