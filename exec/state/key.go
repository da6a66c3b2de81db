package state

import (
	"encoding/binary"
	"unsafe"

	"weir/exec/batch"
)

// maxKeyGroups is the most key groups that a job may have.
const maxKeyGroups = 1 << 16

// A Key says what the keys of a table are.
type Key uint8

// The kinds of keys.
const (
	AnyKey  Key = iota // any; up to 15 bytes of encoding lie in the record
	WideKey            // any; up to 23 bytes do
	IntKey             // one Ints value, or NULL: a number lies in the record
)

// KeyOf chooses the kind for keys of some columns.
func KeyOf(columns []batch.Physical) Key {
	switch {
	case len(columns) == 1 && columns[0] == batch.Ints:
		return IntKey
	case len(columns) == 2 && columns[0] != batch.Strings && columns[1] != batch.Strings:
		return WideKey
	}
	return AnyKey
}

// packedWords is the number of words that hold a key in a record: the bytes in memory
// order, and in the last byte the length. A longer key has the mark longKey there, and
// in its first word its place in the chunk's bytes.
func packedWords(k Key) int {
	if k == WideKey {
		return 3
	}
	return 2
}

const (
	inlineKey = 15 // most bytes of a key in two words
	wideKey   = 23 // and in three
	longKey   = 0xff
)

// A packed key is one of up to 23 bytes as it lies in a record; in two words, c is 0.
type packed struct{ a, b, c uint64 }

// view returns the first n bytes at p.
func view(p *uint64, n int) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(p)), n) }

// keyLength is the length of a packed key, or longKey.
func keyLength(r record, l recordLayout) int {
	last := l.words - 1
	if l.blob > 0 {
		last--
	}
	if littleEndian {
		return int(r[last] >> 56)
	}
	return int(view(&r[last], 8)[7])
}

// pack packs a key of up to 15 bytes.
func pack(key []byte) (p packed) {
	b := view(&p.a, 16)
	copy(b[:inlineKey], key)
	b[inlineKey] = byte(len(key))
	return p
}

// unpacked gives the bytes of a key packed in two words.
func unpacked(p packed) []byte {
	b := append([]byte(nil), view(&p.a, 16)...)
	return b[:b[inlineKey]]
}

// packWide packs a key of up to 23 bytes.
func packWide(key []byte) (p packed) {
	b := view(&p.a, 24)
	copy(b[:wideKey], key)
	b[wideKey] = byte(len(key))
	return p
}

// littleEndian: the first byte of a packed key is the lowest of its first word.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

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
		return packed{a: uint64(batch.Strings) | uint64(n)<<8 | low<<16, b: low>>48 | high<<16 | uint64(n+2)<<(8*inlineKey-64)}
	}
	var p packed
	b := view(&p.a, 16)
	b[0], b[1] = byte(batch.Strings), byte(n)
	copy(b[2:inlineKey], text[from:to])
	b[inlineKey] = byte(n + 2)
	return p
}

// appendIntKey appends what batch.EncodeKey gives for one Ints value, or for NULL.
func appendIntKey(dst []byte, x int64, null bool) []byte {
	if null {
		return append(dst, batch.KeyNull)
	}
	return binary.BigEndian.AppendUint64(append(dst, byte(batch.Ints)), batch.EncodeIntKey(x))
}

// intKey reads an encoded key of one Ints value or NULL; ok is false for anything else.
func intKey(key []byte) (x int64, null, ok bool) {
	switch {
	case len(key) == 1 && key[0] == batch.KeyNull:
		return 0, true, true
	case len(key) == batch.IntKeySize && key[0] == byte(batch.Ints):
		return batch.DecodeIntKey(binary.BigEndian.Uint64(key[1:])), false, true
	}
	return 0, false, false
}
