package state

import (
	"fmt"
	"math/bits"

	"weir/exec/batch"
)

// Slots lie in chunks of chunkSlots.
const (
	chunkBits  = 9
	chunkSlots = 1 << chunkBits
	chunkMask  = chunkSlots - 1
)

// A record holds one entry: its hash and its key packed in two or three words, or the
// number alone that its key is; where its blob lies (if the layout has one); and the
// user's words.
type record []uint64

// A recordLayout says where in a record things lie.
type recordLayout struct {
	ints   bool // the key is one number: r[0], and there is no hash
	stride int  // words of a record
	blob   int  // index of the reference to the blob; 0: there is none
	words  int  // index of the user's first word
}

func recordLayoutOf(l Layout) recordLayout {
	r := recordLayout{ints: l.Key == IntKey, words: 1}
	if !r.ints {
		r.words += packedWords(l.Key)
	}
	if l.Blob {
		r.blob = r.words
		r.words++
	}
	r.stride = r.words + l.Words
	return r
}

// A slotSet is a set of a chunk's slots.
type slotSet [chunkSlots / 64]uint64

func (s *slotSet) add(i int)      { s[i>>6&7] |= 1 << (i & 63) }
func (s *slotSet) remove(i int)   { s[i>>6&7] &^= 1 << (i & 63) }
func (s *slotSet) has(i int) bool { return s[i>>6&7]>>(i&63)&1 != 0 }

// addRange adds the slots from from on, up to and without to.
func (s *slotSet) addRange(from, to int) {
	for from < to {
		n := min(64-from&63, to-from)
		s[from>>6&7] |= (1<<n - 1) << (from & 63)
		from += n
	}
}

// each calls f with every slot in order, until f returns false.
func (s *slotSet) each(f func(i int) bool) bool {
	for w, set := range s {
		for ; set != 0; set &= set - 1 {
			if !f(w<<6 | bits.TrailingZeros64(set)) {
				return false
			}
		}
	}
	return true
}

// A chunk holds chunkSlots records, fewer in the last chunk, and the bytes that they
// refer to as offset<<32 | length.
type chunk struct {
	records    []uint64 // these three are what a write looks at: side by side
	generation uint64   // of the store when it was last claimed; 0: never since it was restored
	dirty      slotSet  // of those with an entry, the ones written to in generation
	null       int      // with ints: the slot whose key is NULL, + 1
	live       slotSet  // those with an entry
	born       slotSet  // of those that are dirty, the ones that were not there before
	used       slotSet  // written to in earlier generations, since spill looked at the chunk
	disk       slotSet  // of those with an entry, those of which an older version is on disk
	bytes      []byte
	dead       int // bytes that no record refers to any more
	frozen     int // a cut may read the bytes up to here: they are not written to
}

// clone copies a chunk for writing while a cut goes on reading the old one. Its bytes are
// not copied: what was there is frozen, each side sees its own length, and only the newest
// copy is written to.
func (c *chunk) clone() *chunk {
	copied := *c
	copied.records = append(make([]uint64, 0, cap(c.records)), c.records...)
	copied.frozen = len(c.bytes)
	return &copied
}

// at returns the record of a slot, its index within the chunk.
func (c *chunk) at(l recordLayout, i int) record {
	return c.records[i*l.stride : (i+1)*l.stride : (i+1)*l.stride]
}

// hash returns the hash of the entry in a slot.
func (c *chunk) hash(l recordLayout, i int) uint64 {
	switch {
	case !l.ints:
		return c.records[i*l.stride]
	case c.null == i+1:
		return batch.HashNull()
	default:
		return batch.HashInt(int64(c.records[i*l.stride]))
	}
}

// key returns the encoded key of the entry in a slot; it aliases the chunk, or scratch
// where the record holds a number.
func (c *chunk) key(l recordLayout, i int, scratch []byte) []byte {
	r := c.at(l, i)
	if l.ints {
		return appendIntKey(scratch[:0], int64(r[0]), c.null == i+1)
	}
	if n := keyLength(r, l); n != longKey {
		return view(&r[1], n)
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
	c.live.each(func(i int) bool {
		r := c.at(l, i)
		if !l.ints && keyLength(r, l) == longKey {
			r[1] = c.add(old.text(r[1]))
		}
		if l.blob > 0 {
			r[l.blob] = c.add(old.text(r[l.blob]))
		}
		return true
	})
}

// reserve makes room for the record of the next slot of the table. The first chunk grows,
// since many tables are small; the others are made whole.
func (c *chunk) reserve(l recordLayout, slot int) {
	need := (slot&chunkMask + 1) * l.stride
	if need > cap(c.records) {
		size := chunkSlots * l.stride
		if slot < chunkSlots {
			size = min(max(2*need, 8*l.stride), size)
		}
		c.records = append(make([]uint64, 0, size), c.records...)
	}
	c.records = c.records[:need]
}

// size is the memory that the chunk takes.
func (c *chunk) size() int { return chunkSize + 8*cap(c.records) + cap(c.bytes) }

const chunkSize = 416 // of the struct

// eachSlot calls f with every entry, by slot, until f returns false.
func eachSlot(chunks []*chunk, f func(slot int) bool) {
	for i, c := range chunks {
		if !c.live.each(func(j int) bool { return f(i<<chunkBits | j) }) {
			return
		}
	}
}
