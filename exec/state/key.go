package state

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unsafe"

	"weir"
)

// A state key, in snapshots, is the key group, 2 bytes big-endian, then the encoded
// key: whatever is sorted by it lies by key group.
const (
	groupSize    = 2
	maxKeyGroups = 1 << 16
)

// appendStateKey appends the state key of an encoded key.
func appendStateKey(dst []byte, group int, key []byte) []byte {
	return append(binary.BigEndian.AppendUint16(dst, uint16(group)), key...)
}

// A packed key is the 16 bytes of a record that hold a key of up to 15 bytes: the
// bytes in memory order, then the length. A longer key has the mark longKey there, and
// its place in the chunk's bytes; a free slot has freeSlot.
type packed [2]uint64

const (
	inlineKey = 15
	longKey   = 0xff
	freeSlot  = 0xfe
)

// view returns the 16 bytes of a packed key at p.
func view(p *uint64) *[16]byte { return (*[16]byte)(unsafe.Pointer(p)) }

// pack packs a key of up to 15 bytes.
func pack(key []byte) (p packed) {
	b := view(&p[0])
	copy(b[:inlineKey], key)
	b[inlineKey] = byte(len(key))
	return p
}

// order sorts slots by (key group, key): first into the buckets of their groups.
func order(chunks []*chunk, l recordLayout, groups weir.KeyGroupRange, maxParallelism int) []int32 {
	starts := make([]int, groups.End-groups.Start+1)
	live := 0
	eachSlot(chunks, l, func(_ int, r record) bool {
		starts[weir.KeyGroupOf(r[0], maxParallelism)-groups.Start+1]++
		live++
		return true
	})
	for i := range starts[1:] {
		starts[i+1] += starts[i]
	}
	next, slots := slices.Clone(starts), make([]int32, live)
	eachSlot(chunks, l, func(slot int, r record) bool {
		g := weir.KeyGroupOf(r[0], maxParallelism) - groups.Start
		slots[next[g]] = int32(slot)
		next[g]++
		return true
	})
	for g := range starts[1:] {
		slices.SortFunc(slots[starts[g]:starts[g+1]], func(a, b int32) int {
			return bytes.Compare(keyAt(chunks, l, int(a)), keyAt(chunks, l, int(b)))
		})
	}
	return slots
}
