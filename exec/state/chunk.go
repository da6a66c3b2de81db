package state

import (
	"fmt"
	"slices"
)

// Slots lie in chunks of chunkSlots.
const (
	chunkBits  = 9
	chunkSlots = 1 << chunkBits
	chunkMask  = chunkSlots - 1
)

// A record holds one entry: its hash, its key packed in two words, where its blob
// lies (if the layout has one), and the user's words.
type record []uint64

// A recordLayout says where in a record things lie.
type recordLayout struct {
	stride int  // words of a record
	words  int  // index of the user's first word
	blob   bool // r[3] refers to the blob
}

func recordLayoutOf(l Layout) recordLayout {
	r := recordLayout{words: 3, blob: l.Blob}
	if l.Blob {
		r.words++
	}
	r.stride = r.words + l.Words
	return r
}

// A chunk holds chunkSlots records, fewer in the last chunk, and the bytes that they
// refer to as offset<<32 | length.
type chunk struct {
	generation uint64 // of the store when it was last made writable
	records    []uint64
	bytes      []byte
	dead       int // bytes that no record refers to any more
	frozen     int // a cut may read the bytes up to here: they are not written to
}

// clone copies a chunk for writing while cuts go on reading the old one. Its bytes are
// not copied: what was there is frozen, each side sees its own length, and only the newest
// copy is written to.
func (c *chunk) clone(generation uint64) *chunk {
	return &chunk{generation: generation, records: slices.Clone(c.records), bytes: c.bytes, dead: c.dead, frozen: len(c.bytes)}
}

// at returns the record of a slot, its index within the chunk.
func (c *chunk) at(l recordLayout, i int) record {
	return c.records[i*l.stride : (i+1)*l.stride : (i+1)*l.stride]
}

// free reports whether the slot holds no entry.
func (r record) free() bool { return view(&r[1])[inlineKey] == freeSlot }

// key returns the record's key; it aliases the chunk.
func (c *chunk) key(r record) []byte {
	b := view(&r[1])
	if n := b[inlineKey]; n <= inlineKey {
		return b[:n:n]
	}
	return c.text(r[1])
}

// text returns the bytes at a reference.
func (c *chunk) text(ref uint64) []byte {
	from, n := ref>>32, ref&(1<<32-1)
	return c.bytes[from : from+n : from+n]
}

// add appends bytes and returns the reference to them.
func (c *chunk) add(v []byte) uint64 {
	if len(v) == 0 {
		return 0
	}
	from := len(c.bytes)
	if from+len(v) >= 1<<32 {
		panic(fmt.Sprintf("state: a chunk of more than 4 GiB: %d + %d bytes", from, len(v)))
	}
	c.bytes = append(c.bytes, v...)
	return uint64(from)<<32 | uint64(len(v))
}

// writable reports whether the bytes at a reference may be written to.
func (c *chunk) writable(ref uint64) bool { return int(ref>>32) >= c.frozen }

// drop counts the bytes at a reference as dead.
func (c *chunk) drop(ref uint64) { c.dead += int(ref & (1<<32 - 1)) }

// deadBytes is the garbage that a chunk keeps before it is worth rewriting.
const deadBytes = 4 << 10

// tidy rewrites the bytes when more than half of them are dead.
func (c *chunk) tidy(l recordLayout) {
	if c.dead < deadBytes || c.dead*2 < len(c.bytes) {
		return
	}
	old := chunk{bytes: c.bytes}
	c.bytes, c.dead, c.frozen = make([]byte, 0, len(old.bytes)-c.dead+deadBytes), 0, 0
	for i := range len(c.records) / l.stride {
		r := c.at(l, i)
		if r.free() {
			continue
		}
		if view(&r[1])[inlineKey] == longKey {
			r[1] = c.add(old.text(r[1]))
		}
		if l.blob {
			r[3] = c.add(old.text(r[3]))
		}
	}
}

// eachSlot calls f with every entry, by slot, until f returns false.
func eachSlot(chunks []*chunk, l recordLayout, f func(slot int, r record) bool) {
	for i, c := range chunks {
		for j := range len(c.records) / l.stride {
			if r := c.at(l, j); !r.free() && !f(i<<chunkBits|j, r) {
				return
			}
		}
	}
}

func keyAt(chunks []*chunk, l recordLayout, slot int) []byte {
	c := chunks[slot>>chunkBits]
	return c.key(c.at(l, slot&chunkMask))
}
