package state

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"weir"
)

// A groupOrder holds the slots of a table by (key group, key). Group g, counted from
// the range's start, has slots[starts[g]:starts[g+1]], whose entries take bytes[g].
type groupOrder struct {
	slots  []int32
	starts []int
	bytes  []int
}

// A sortKey orders the entries of a group: the first 15 bytes of the key, then its
// length (255 for keys longer than that).
type sortKey struct {
	a, b uint64
	slot int32
}

// order sorts slots by (key group, key): first into the buckets of their groups, by
// two passes over the chunks as they lie, then each bucket.
func order(chunks []*chunk, l recordLayout, groups weir.KeyGroupRange, maxParallelism int) groupOrder {
	n := groups.End - groups.Start
	o := groupOrder{starts: make([]int, n+1), bytes: make([]int, n)}
	eachSlot(chunks, l, func(slot int, r record) bool {
		g := weir.KeyGroupOf(r[0], maxParallelism) - groups.Start
		o.starts[g+1]++
		o.bytes[g] += entrySize(chunks[slot>>chunkBits], l, r)
		return true
	})
	for i := range n {
		o.starts[i+1] += o.starts[i]
	}
	keys, next := make([]sortKey, o.starts[n]), slices.Clone(o.starts)
	eachSlot(chunks, l, func(slot int, r record) bool {
		g := weir.KeyGroupOf(r[0], maxParallelism) - groups.Start
		keys[next[g]] = sortKeyOf(chunks[slot>>chunkBits], r, slot)
		next[g]++
		return true
	})
	compare := func(x, y sortKey) int {
		if c := cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)); c != 0 {
			return c
		}
		return bytes.Compare(keyAt(chunks, l, int(x.slot)), keyAt(chunks, l, int(y.slot)))
	}
	o.slots = make([]int32, len(keys))
	for g := range n {
		slices.SortFunc(keys[o.starts[g]:o.starts[g+1]], compare)
	}
	for i, k := range keys {
		o.slots[i] = k.slot
	}
	return o
}

func sortKeyOf(c *chunk, r record, slot int) sortKey {
	b := *view(&r[1])
	if b[inlineKey] == longKey {
		copy(b[:inlineKey], c.text(r[1]))
	}
	return sortKey{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:]), int32(slot)}
}

// entrySize is the number of bytes that an entry takes in a block.
func entrySize(c *chunk, l recordLayout, r record) int {
	size := entryFixed + groupSize + len(c.key(r)) + 8*(l.stride-l.words)
	if l.blob {
		size += 4 + len(c.text(r[3]))
	}
	return size
}
