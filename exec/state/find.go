package state

import (
	"bytes"
	"fmt"

	"weir/exec/batch"
)

// Find returns the slot of a key; ok is false when it is not there. hash is that of
// batch.HashRows, key that of batch.EncodeKey.
func (t *Table) Find(hash uint64, key []byte) (slot int, ok bool) {
	if slot, ok = t.lookup(hash, key); !ok && t.mayBeCold(hash) {
		return t.recall(hash, key)
	}
	return slot, ok
}

// lookup is Find in memory.
func (t *Table) lookup(hash uint64, key []byte) (slot int, ok bool) {
	switch {
	case t.layout.Key == IntKey:
		x, null := t.number(key)
		if null {
			return t.null - 1, t.null > 0
		}
		return t.findInt(hash, x)
	case t.layout.Key == WideKey && len(key) <= wideKey:
		return t.findWide(hash, packWide(key))
	case t.layout.Key == AnyKey && len(key) <= inlineKey:
		return t.find(hash, pack(key))
	}
	return t.findLong(hash, key)
}

// Upsert returns the slot of a key; fresh is true when it was not there, and now is,
// with words of 0 and an empty blob.
func (t *Table) Upsert(hash uint64, key []byte) (slot int, fresh bool) {
	if t.layout.Key == IntKey {
		x, null := t.number(key)
		if null {
			return t.upsertNull()
		}
		return t.upsertInt(hash, x)
	}
	if slot, ok := t.Find(hash, key); ok {
		return slot, false
	}
	return t.insertKey(hash, key), true
}

// number reads a key of a table of numbers.
func (t *Table) number(key []byte) (x int64, null bool) {
	x, null, ok := intKey(key)
	if !ok {
		panic(fmt.Sprintf("state: a key of %d bytes in table %s of numbers", len(key), t.name))
	}
	return x, null
}

// insertKey inserts an entry of an encoded key that is not there.
func (t *Table) insertKey(hash uint64, key []byte) int {
	slot, c, r := t.insert(hash)
	r[0] = hash
	switch {
	case t.layout.Key == AnyKey && len(key) <= inlineKey:
		p := pack(key)
		r[1], r[2] = p.a, p.b
	case t.layout.Key == WideKey && len(key) <= wideKey:
		p := packWide(key)
		r[1], r[2], r[3] = p.a, p.b, p.c
	default:
		before := c.size()
		r[1] = c.add(key)
		t.size += c.size() - before
		view(&r[packedWords(t.layout.Key)], 8)[7] = longKey
	}
	return slot
}

// find, findWide, findInt and findLong are one probe, written out for each kind of key: it
// runs for every row, without a call for the comparison.
func (t *Table) find(hash uint64, key packed) (slot int, ok bool) {
	if t.index.n == 0 {
		return 0, false
	}
	g := t.index.segmentOf(uint32(hash))
	for i := g.home(uint32(hash)); ; i = g.next(i) {
		e := g.entries[i]
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

func (t *Table) findWide(hash uint64, key packed) (slot int, ok bool) {
	if t.index.n == 0 {
		return 0, false
	}
	g := t.index.segmentOf(uint32(hash))
	for i := g.home(uint32(hash)); ; i = g.next(i) {
		e := g.entries[i]
		if e == 0 {
			return 0, false
		}
		if uint32(e>>32) != uint32(hash) {
			continue
		}
		slot := int(uint32(e)) - 1
		r := t.chunks[slot>>chunkBits].records[(slot&chunkMask)*t.rec.stride:]
		if r[1] == key.a && r[2] == key.b && r[3] == key.c {
			return slot, true
		}
	}
}

func (t *Table) findInt(hash uint64, x int64) (slot int, ok bool) {
	if t.index.n == 0 {
		return 0, false
	}
	g := t.index.segmentOf(uint32(hash))
	for i := g.home(uint32(hash)); ; i = g.next(i) {
		e := g.entries[i]
		if e == 0 {
			return 0, false
		}
		if uint32(e>>32) != uint32(hash) {
			continue
		}
		slot := int(uint32(e)) - 1
		if t.chunks[slot>>chunkBits].records[(slot&chunkMask)*t.rec.stride] == uint64(x) && slot != t.null-1 {
			return slot, true
		}
	}
}

func (t *Table) findLong(hash uint64, key []byte) (slot int, ok bool) {
	if t.index.n == 0 {
		return 0, false
	}
	g := t.index.segmentOf(uint32(hash))
	for i := g.home(uint32(hash)); ; i = g.next(i) {
		e := g.entries[i]
		if e == 0 {
			return 0, false
		}
		if uint32(e>>32) != uint32(hash) {
			continue
		}
		slot := int(uint32(e)) - 1
		c := t.chunks[slot>>chunkBits]
		r := c.at(t.rec, slot&chunkMask)
		if r[0] == hash && keyLength(r, t.rec) == longKey && bytes.Equal(c.text(r[1]), key) {
			return slot, true
		}
	}
}

func (t *Table) upsert(hash uint64, key packed) (slot int, fresh bool) {
	if slot, ok := t.find(hash, key); ok {
		return slot, false
	}
	if t.mayBeCold(hash) {
		if slot, ok := t.recall(hash, unpacked(key)); ok {
			return slot, false
		}
	}
	slot, _, r := t.insert(hash)
	r[0], r[1], r[2] = hash, key.a, key.b
	return slot, true
}

func (t *Table) upsertInt(hash uint64, x int64) (slot int, fresh bool) {
	if slot, ok := t.findInt(hash, x); ok {
		return slot, false
	}
	if t.mayBeCold(hash) {
		if slot, ok := t.recall(hash, appendIntKey(nil, x, false)); ok {
			return slot, false
		}
	}
	return t.insertInt(hash, x), true
}

func (t *Table) insertInt(hash uint64, x int64) int {
	slot, _, r := t.insert(hash)
	r[0] = uint64(x)
	return slot
}

func (t *Table) upsertNull() (slot int, fresh bool) {
	if t.null > 0 {
		return t.null - 1, false
	}
	if hash := batch.HashNull(); t.mayBeCold(hash) {
		if slot, ok := t.recall(hash, appendIntKey(nil, 0, true)); ok {
			return slot, false
		}
	}
	return t.insertNull(), true
}

func (t *Table) insertNull() int {
	slot, c, _ := t.insert(batch.HashNull())
	t.null, c.null = slot+1, slot&chunkMask+1
	return slot
}
