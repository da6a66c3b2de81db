package eval

import (
	"encoding/binary"
	"slices"

	"weir/exec/batch"
)

// A stringSet is a set of strings. Short ones are compared as one word of up to 8
// bytes and their length; all others are looked up in a map.
type stringSet struct {
	words [wordSize + 1][]uint64 // by length
	set   map[string]struct{}    // longer than a word
}

const wordSize = 8

func newStringSet(list *batch.Vector) stringSet {
	s := stringSet{set: map[string]struct{}{}}
	for i := range list.Len() {
		text := list.Str(i)
		if len(text) > wordSize {
			s.set[string(text)] = struct{}{}
			continue
		}
		var padded [wordSize]byte
		copy(padded[:], text)
		word := binary.LittleEndian.Uint64(padded[:])
		if !slices.Contains(s.words[len(text)], word) {
			s.words[len(text)] = append(s.words[len(text)], word)
		}
	}
	return s
}

// wordAt loads the string text[from:to], of at most 8 bytes, as a word.
func wordAt(text []byte, from, to int) uint64 {
	if from+wordSize <= len(text) {
		return binary.LittleEndian.Uint64(text[from:]) & (1<<(8*(to-from)) - 1)
	}
	var padded [wordSize]byte
	copy(padded[:], text[from:to])
	return binary.LittleEndian.Uint64(padded[:])
}

func (s *stringSet) has(text []byte, from, to int) bool {
	size := to - from
	if size > wordSize {
		_, ok := s.set[string(text[from:to])]
		return ok
	}
	words := s.words[size]
	if len(words) == 0 {
		return false
	}
	word := wordAt(text, from, to)
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}

func (s *stringSet) search(v *batch.Vector, size int, rows []int32, absent bool, out []int32) []int32 {
	k, n := len(out), count(size, rows)
	out = slices.Grow(out, n)[:k+n]
	if size == 0 {
		return out
	}
	offsets := v.Offsets[:size+1]
	if rows == nil {
		from := offsets[0]
		for i, to := range offsets[1:] {
			out[k] = int32(i)
			k += one(s.has(v.Bytes, int(from), int(to)) != absent)
			from = to
		}
		return out[:k]
	}
	for _, row := range rows {
		out[k] = row
		k += one(s.has(v.Bytes, int(offsets[row]), int(offsets[row+1])) != absent)
	}
	return out[:k]
}
