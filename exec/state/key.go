package state

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"weir/exec/batch"
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
type packed struct{ a, b uint64 }

const (
	inlineKey = 15
	longKey   = 0xff
	freeSlot  = 0xfe
)

// view returns the 16 bytes of a packed key at p.
func view(p *uint64) *[16]byte { return (*[16]byte)(unsafe.Pointer(p)) }

// pack packs a key of up to 15 bytes.
func pack(key []byte) (p packed) {
	b := view(&p.a)
	copy(b[:inlineKey], key)
	b[inlineKey] = byte(len(key))
	return p
}

// littleEndian: the first byte of a packed key is the lowest of its first word.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// packInt packs what batch.EncodeKey gives for one Ints value.
func packInt(x int64) packed {
	payload := batch.EncodeIntKey(x)
	if littleEndian {
		payload = bits.ReverseBytes64(payload)
		return packed{uint64(batch.Ints) | payload<<8, payload>>56 | batch.IntKeySize<<(8*inlineKey-64)}
	}
	return pack(binary.BigEndian.AppendUint64([]byte{byte(batch.Ints)}, payload))
}

// inlineString is the length up to which an encoded string fits into a record.
const inlineString = inlineKey - 2

// packString packs what batch.EncodeKey gives for the string text[from:to], of at most
// inlineString bytes.
func packString(text []byte, from, to int) packed {
	n := to - from
	if littleEndian && from+16 <= len(text) {
		low, high := binary.LittleEndian.Uint64(text[from:]), binary.LittleEndian.Uint64(text[from+8:])
		low &= 1<<(8*min(n, 8)) - 1
		high &= 1<<(8*max(n-8, 0)) - 1
		return packed{uint64(batch.Strings) | uint64(n)<<8 | low<<16, low>>48 | high<<16 | uint64(n+2)<<(8*inlineKey-64)}
	}
	var p packed
	b := view(&p.a)
	b[0], b[1] = byte(batch.Strings), byte(n)
	copy(b[2:inlineKey], text[from:to])
	b[inlineKey] = byte(n + 2)
	return p
}
