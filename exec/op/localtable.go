package op

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"

	"weir/exec/batch"
)

// Bounds of a local table: it stays within the second-level cache.
const (
	maxGroups   = 16 << 10
	maxKeyBytes = 1 << 20
)

// A localTable numbers the keys of a stream, from 0: open addressing over key columns
// that are kept as vectors, so that a flush emits them as they lie. Its hash is its
// own, never seen outside.
type localTable struct {
	keys  []int          // key columns of the input
	cols  []batch.Vector // of the groups
	tags  []uint64       // per group: hash, or what a string has (tag)
	n     int
	index []uint32 // group+1; 0: free. Twice maxGroups long
	null  uint32   // group+1 of NULL, where there is one key column
	seed  maphash.Seed

	hashes []uint64 // scratch
}

func newLocalTable(keys []int, kinds []batch.Physical) *localTable {
	t := &localTable{keys: keys, cols: make([]batch.Vector, len(keys)), index: make([]uint32, 2*maxGroups), seed: maphash.MakeSeed()}
	for i := range t.cols {
		t.cols[i].Physical = kinds[i]
	}
	return t
}

func (t *localTable) reset() {
	for i := range t.cols {
		t.cols[i].Reset()
	}
	t.tags, t.n, t.null = t.tags[:0], 0, 0
	clear(t.index)
}

func (t *localTable) full() bool {
	if t.n >= maxGroups {
		return true
	}
	for i := range t.cols {
		if len(t.cols[i].Bytes) >= maxKeyBytes {
			return true
		}
	}
	return false
}

// groups finds or makes the groups of b's selected rows from the from-th on, until the
// table is full, and appends them to into.
func (t *localTable) groups(b *batch.Batch, from int, into []uint32) []uint32 {
	switch {
	case len(t.keys) == 0:
		t.n = 1
		for range b.Rows() - from {
			into = append(into, 0)
		}
		return into
	case len(t.keys) == 1 && t.cols[0].Physical == batch.Ints:
		return t.intGroups(b, from, into)
	case len(t.keys) == 1 && t.cols[0].Physical == batch.Strings:
		return t.stringGroups(b, from, into)
	}
	return t.anyGroups(b, from, into)
}

// slot is where a hash begins to look in the index.
func slot(h uint64) int { return int(h * 0x9e3779b97f4a7c15 >> (64 - 15)) }

const slotMask = 2*maxGroups - 1

// slots is the index as an array, which needs no look at its bounds.
func (t *localTable) slots() *[2 * maxGroups]uint32 {
	return (*[2 * maxGroups]uint32)(t.index)
}

func (t *localTable) intGroups(b *batch.Batch, from int, into []uint32) []uint32 {
	v, own, index := &b.Columns[t.keys[0]], &t.cols[0], t.slots()
	for i := from; i < b.Rows(); i++ {
		row := b.Row(i)
		if v.Null(row) {
			if t.null == 0 && t.full() {
				return into
			}
			into = append(into, t.nullGroup())
			continue
		}
		x := v.Ints[row]
		at := slot(uint64(x))
		g := index[at]
		for g != 0 && own.Ints[g-1] != x {
			at = (at + 1) & slotMask
			g = index[at]
		}
		if g == 0 {
			if t.full() {
				return into
			}
			own.AppendInt(x)
			g = t.put(at, 0)
		}
		into = append(into, g-1)
	}
	return into
}

func (t *localTable) stringGroups(b *batch.Batch, from int, into []uint32) []uint32 {
	v, own, index := &b.Columns[t.keys[0]], &t.cols[0], t.slots()
	for i := from; i < b.Rows(); i++ {
		row := b.Row(i)
		if v.Null(row) {
			if t.null == 0 && t.full() {
				return into
			}
			into = append(into, t.nullGroup())
			continue
		}
		lo, hi := int(v.Offsets[row]), int(v.Offsets[row+1])
		var tag uint64
		if n := hi - lo; n < wholeTag && lo+8 <= len(v.Bytes) {
			tag = binary.LittleEndian.Uint64(v.Bytes[lo:lo+8])&(1<<(8*n)-1) | uint64(n)<<56
		} else {
			tag = t.tag(v.Bytes[lo:hi])
		}
		at := slot(tag)
		g := index[at]
		for g != 0 && (t.tags[g-1] != tag || tag >= hashedTag && !bytes.Equal(own.Str(int(g-1)), v.Bytes[lo:hi])) {
			at = (at + 1) & slotMask
			g = index[at]
		}
		if g == 0 {
			if t.full() {
				return into
			}
			own.AppendBytes(v.Bytes[lo:hi])
			g = t.put(at, tag)
		}
		into = append(into, g-1)
	}
	return into
}

// A string shorter than wholeTag is its tag: its bytes, and its length in the highest one,
// where the tags of longer ones, from hashedTag on, have 0xff.
const (
	wholeTag  = 8
	hashedTag = 0xff << 56
)

// tag gives the tag of a string.
func (t *localTable) tag(s []byte) uint64 {
	if len(s) >= wholeTag {
		return maphash.Bytes(t.seed, s) | hashedTag
	}
	tag := uint64(len(s)) << 56
	for i, c := range s {
		tag |= uint64(c) << (8 * i)
	}
	return tag
}

func (t *localTable) anyGroups(b *batch.Batch, from int, into []uint32) []uint32 {
	if n := b.Rows(); cap(t.hashes) < n {
		t.hashes = make([]uint64, n)
	}
	t.hashes = t.hashes[:b.Rows()]
	batch.HashRows(b, t.keys, t.hashes)
	for i := from; i < b.Rows(); i++ {
		row, h := b.Row(i), t.hashes[i]
		at := slot(h)
		g := t.index[at]
		for g != 0 && !(t.tags[g-1] == h && t.sameKey(b, row, int(g-1))) {
			at = (at + 1) & slotMask
			g = t.index[at]
		}
		if g == 0 {
			if t.full() {
				return into
			}
			for c, k := range t.keys {
				t.cols[c].AppendFrom(&b.Columns[k], row)
			}
			g = t.put(at, h)
		}
		into = append(into, g-1)
	}
	return into
}

// sameKey compares the key of a row with that of group g, as GROUP BY does (O5).
func (t *localTable) sameKey(b *batch.Batch, row, g int) bool {
	for c, k := range t.keys {
		if !equalKeys(&b.Columns[k], row, &t.cols[c], g) {
			return false
		}
	}
	return true
}

func equalKeys(a *batch.Vector, i int, b *batch.Vector, j int) bool {
	if a.Null(i) || b.Null(j) {
		return a.Null(i) && b.Null(j)
	}
	switch a.Physical {
	case batch.Bools:
		return a.Bools[i] == b.Bools[j]
	case batch.Ints:
		return a.Ints[i] == b.Ints[j]
	case batch.Floats:
		return batch.FloatOrder(a.Floats[i]) == batch.FloatOrder(b.Floats[j])
	case batch.Decimals:
		return a.Decimals[i] == b.Decimals[j]
	}
	return bytes.Equal(a.Str(i), b.Str(j))
}

func (t *localTable) put(at int, tag uint64) uint32 {
	t.tags = append(t.tags, tag)
	t.n++
	t.index[at] = uint32(t.n)
	return uint32(t.n)
}

func (t *localTable) nullGroup() uint32 {
	if t.null == 0 {
		t.cols[0].AppendNull()
		t.tags = append(t.tags, 0)
		t.n++
		t.null = uint32(t.n)
	}
	return t.null - 1
}
