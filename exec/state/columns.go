package state

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"weir/exec/batch"
)

// columns are entries of one table, column by column, ascending by (hash, key). One that
// is gone, a deletion, has words of 0 and an empty blob. They are what a block of entries
// holds:
//
//	count (4), flags (1: 1 some are gone, 2 one key is NULL)
//	which are gone, a bit each, if some are; which key is NULL, its index (4), if one is
//	keys: numbers, packed; or hashes, packed, lengths, packed, and bytes
//	words, a packed column each
//	blobs, if the table has them: lengths, packed, and bytes
//
// A number's hash follows from it (batch.HashInt).
type columns struct {
	layout  Layout
	hashes  []uint64
	ints    []uint64
	null    int      // index of the key that is NULL, + 1
	gone    []uint64 // a bit each; nil: none is
	sizes   []uint64 // of the keys
	keys    []byte
	words   [][]uint64
	lengths []uint64 // of the blobs
	blobs   []byte
}

const (
	someGone = 1 << iota
	someNull
	knownFlags = someGone | someNull
)

func newColumns(l Layout) *columns {
	return &columns{layout: l, words: make([][]uint64, l.Words)}
}

func (c *columns) len() int { return len(c.hashes) }

func (c *columns) reset() {
	c.hashes, c.ints, c.null, c.gone = c.hashes[:0], c.ints[:0], 0, c.gone[:0]
	c.sizes, c.keys, c.lengths, c.blobs = c.sizes[:0], c.keys[:0], c.lengths[:0], c.blobs[:0]
	for i := range c.words {
		c.words[i] = c.words[i][:0]
	}
}

// weight is about what the entries take in a block.
func (c *columns) weight() int {
	return len(c.hashes)*(8+4*len(c.words)) + len(c.keys) + len(c.blobs)
}

// full reports whether the entries are as many as a block takes.
func (c *columns) full() bool { return len(c.hashes) >= maxBlockEntries || c.weight() >= blockSize }

// addRecord appends the entry in a slot.
func (c *columns) addRecord(hash uint64, from *chunk, rec recordLayout, i int) {
	r := from.at(rec, i)
	if rec.ints {
		c.ints = append(c.ints, r[0])
		if from.null == i+1 {
			c.null = len(c.ints)
		}
	} else {
		n := len(c.keys)
		c.keys = append(c.keys, from.key(rec, i, nil)...)
		c.sizes = append(c.sizes, uint64(len(c.keys)-n))
	}
	for w := range c.words {
		c.words[w] = append(c.words[w], r[rec.words+w])
	}
	if rec.blob > 0 {
		blob := from.text(r[rec.blob])
		c.lengths, c.blobs = append(c.lengths, uint64(len(blob))), append(c.blobs, blob...)
	}
	c.added(hash, false)
}

// reserve makes room for n entries of a plain table.
func (c *columns) reserve(n int) {
	c.hashes, c.ints, c.words[0] = slices.Grow(c.hashes, n), slices.Grow(c.ints, n), slices.Grow(c.words[0], n)
}

// addCounts appends entries of a plain table.
func (c *columns) addCounts(list []row) {
	c.reserve(len(list))
	from, to := len(c.hashes), len(c.hashes)+len(list)
	c.hashes, c.ints, c.words[0] = c.hashes[:to], c.ints[:to], c.words[0][:to]
	hashes, ints, words := c.hashes[from:], c.ints[from:], c.words[0][from:]
	for i := range list {
		hashes[i], ints[i], words[i] = list[i][0], uint64(batch.IntOf(list[i][0])), list[i][1]
	}
}

// addGone appends a deletion.
func (c *columns) addGone(hash uint64, key []byte) {
	if c.layout.Key == IntKey {
		x, null, _ := intKey(key)
		c.ints = append(c.ints, uint64(x))
		if null {
			c.null = len(c.ints)
		}
	} else {
		c.keys, c.sizes = append(c.keys, key...), append(c.sizes, uint64(len(key)))
	}
	for w := range c.words {
		c.words[w] = append(c.words[w], 0)
	}
	if c.layout.Blob {
		c.lengths = append(c.lengths, 0)
	}
	c.added(hash, true)
}

// added ends an entry.
func (c *columns) added(hash uint64, gone bool) {
	i := len(c.hashes)
	c.hashes = append(c.hashes, hash)
	if gone {
		for len(c.gone) <= i>>6 {
			c.gone = append(c.gone, 0)
		}
		c.gone[i>>6] |= 1 << (i & 63)
	}
}

func (c *columns) isGone(i int) bool { return i>>6 < len(c.gone) && c.gone[i>>6]>>(i&63)&1 != 0 }

// A cursor is a place in columns, which are read from the first entry on.
type cursor struct {
	*columns
	i    int
	key  int // where the entry's key begins
	blob int
}

func (c *cursor) keyBytes() []byte {
	if c.layout.Key == IntKey {
		return appendIntKey(nil, int64(c.ints[c.i]), c.null == c.i+1)
	}
	return c.keys[c.key : c.key+int(c.sizes[c.i])]
}

func (c *cursor) blobBytes() []byte { return c.blobs[c.blob : c.blob+int(c.lengths[c.i])] }

// next goes to the entry behind.
func (c *cursor) next() {
	if c.layout.Key != IntKey {
		c.key += int(c.sizes[c.i])
	}
	if c.layout.Blob {
		c.blob += int(c.lengths[c.i])
	}
	c.i++
}

// compare orders entries by (hash, key).
func (c *cursor) compare(d *cursor) int {
	if x := cmp.Compare(c.hashes[c.i], d.hashes[d.i]); x != 0 {
		return x
	}
	if c.layout.Key == IntKey { // NULL comes behind the one number that may have its hash
		return cmp.Compare(truth(c.null == c.i+1), truth(d.null == d.i+1))
	}
	return bytes.Compare(c.keyBytes(), d.keyBytes())
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// addFrom appends the entry at a cursor.
func (c *columns) addFrom(d *cursor) {
	i := d.i
	if c.layout.Key == IntKey {
		c.ints = append(c.ints, d.ints[i])
		if d.null == i+1 {
			c.null = len(c.ints)
		}
	} else {
		c.keys, c.sizes = append(c.keys, d.keyBytes()...), append(c.sizes, d.sizes[i])
	}
	for w := range c.words {
		c.words[w] = append(c.words[w], d.words[w][i])
	}
	if c.layout.Blob {
		c.lengths, c.blobs = append(c.lengths, d.lengths[i]), append(c.blobs, d.blobBytes()...)
	}
	c.added(d.hashes[i], d.isGone(i))
}

// addRange appends n entries from a cursor on, which goes behind them; whole: without those
// that are gone.
func (c *columns) addRange(d *cursor, n int, whole bool) {
	from, to := d.i, d.i+n
	if len(d.gone) > 0 || d.null > from && d.null <= to {
		for ; d.i < to; d.next() {
			if !whole || !d.isGone(d.i) {
				c.addFrom(d)
			}
		}
		return
	}
	c.hashes = append(c.hashes, d.hashes[from:to]...)
	for w := range c.words {
		c.words[w] = append(c.words[w], d.words[w][from:to]...)
	}
	if c.layout.Key == IntKey {
		c.ints = append(c.ints, d.ints[from:to]...)
	} else {
		size := sum(d.sizes[from:to])
		c.keys, c.sizes = append(c.keys, d.keys[d.key:d.key+size]...), append(c.sizes, d.sizes[from:to]...)
		d.key += size
	}
	if c.layout.Blob {
		size := sum(d.lengths[from:to])
		c.blobs, c.lengths = append(c.blobs, d.blobs[d.blob:d.blob+size]...), append(c.lengths, d.lengths[from:to]...)
		d.blob += size
	}
	d.i = to
}

func sum(lengths []uint64) (n int) {
	for _, l := range lengths {
		n += int(l)
	}
	return n
}

// append appends the payload of a block that holds the entries.
func (c *columns) append(dst []byte) []byte {
	n := c.len()
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	flags := byte(0)
	if len(c.gone) > 0 {
		flags |= someGone
	}
	if c.null > 0 {
		flags |= someNull
	}
	dst = append(dst, flags)
	if flags&someGone != 0 {
		for w := range (n + 63) / 64 {
			var set uint64
			if w < len(c.gone) {
				set = c.gone[w]
			}
			dst = binary.LittleEndian.AppendUint64(dst, set)
		}
	}
	if flags&someNull != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(c.null-1))
	}
	if c.layout.Key == IntKey {
		dst = appendPacked(dst, c.ints)
	} else {
		dst = appendPacked(dst, c.hashes)
		dst = append(appendPacked(dst, c.sizes), c.keys...)
	}
	for _, words := range c.words {
		dst = appendPacked(dst, words)
	}
	if c.layout.Blob {
		dst = append(appendPacked(dst, c.lengths), c.blobs...)
	}
	return dst
}

// read reads such a payload; the error says what does not hold together. What it gives
// aliases p.
func (c *columns) read(p []byte) error {
	c.reset()
	r := columnReader{rest: p}
	n, flags := int(r.uint32()), r.byte()
	if r.bad || n > maxBlockEntries || flags&^knownFlags != 0 {
		return damaged("a block of %d entries", n)
	}
	if flags&someGone != 0 {
		for range (n + 63) / 64 {
			c.gone = append(c.gone, r.uint64())
		}
	}
	if flags&someNull != 0 {
		c.null = int(r.uint32()) + 1
	}
	if c.layout.Key == IntKey {
		c.ints = r.packed(c.ints, n)
		c.hashInts()
	} else {
		c.hashes = r.packed(c.hashes, n)
		c.sizes, c.keys = r.texts(c.sizes, n)
	}
	for w := range c.words {
		c.words[w] = r.packed(c.words[w], n)
	}
	if c.layout.Blob {
		c.lengths, c.blobs = r.texts(c.lengths, n)
	}
	if r.bad || len(r.rest) != 0 || c.null > n || c.layout.Key != IntKey && c.null > 0 {
		return damaged("a block of %d entries does not hold together", n)
	}
	return nil
}

// hashInts computes the hashes of numbers.
func (c *columns) hashInts() {
	if cap(c.hashes) < len(c.ints) {
		c.hashes = make([]uint64, len(c.ints), cap(c.ints))
	}
	c.hashes = c.hashes[:len(c.ints)]
	for i, x := range c.ints {
		c.hashes[i] = batch.HashInt(int64(x))
	}
	if c.null > 0 && c.null <= len(c.ints) {
		c.hashes[c.null-1] = batch.HashNull()
	}
}

// A columnReader takes a block apart. Once something is missing, bad is set and all else is empty.
type columnReader struct {
	rest []byte
	bad  bool
}

func (r *columnReader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.rest) {
		r.bad = true
		return make([]byte, min(max(n, 0), 8))
	}
	head := r.rest[:n]
	r.rest = r.rest[n:]
	return head
}

func (r *columnReader) byte() byte     { return r.take(1)[0] }
func (r *columnReader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *columnReader) uint64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func (r *columnReader) packed(dst []uint64, n int) []uint64 {
	if r.bad {
		return dst[:0]
	}
	values, rest, ok := unpack(dst, r.rest, n)
	if !ok {
		r.bad = true
		return dst[:0]
	}
	r.rest = rest
	return values
}

// texts reads n byte strings: their lengths and all bytes.
func (r *columnReader) texts(dst []uint64, n int) (lengths []uint64, all []byte) {
	lengths = r.packed(dst, n)
	sum := uint64(0)
	for _, l := range lengths {
		if l > uint64(len(r.rest)) {
			r.bad = true
			return lengths[:0], nil
		}
		sum += l
	}
	if sum > uint64(len(r.rest)) {
		r.bad = true
		return lengths[:0], nil
	}
	all = r.take(int(sum))
	return lengths, all[:len(all):len(all)]
}
