package op

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// A sketch counts distinct values in a fixed space: while there are few, by keeping 32 bits
// of each one's hash, then by HyperLogLog of 2^14 registers, with a standard error of 0.8 %.
// Its bytes are state and travel between workers; they are frozen:
//
//	form  1 byte    none at all: no values
//	1     sparse    4 bytes per place, big-endian, ascending: place<<6 | rank; then zeros up
//	                to a power of two. The place is the first 26 bits of a hash, the rank
//	                that of the bits behind it
//	2     dense     1 byte per register, the first 14 bits of a hash: the rank of the bits
//	                behind these
//
// A rank is 1 more than the number of zeros that the bits begin with; of several hashes the
// largest counts. The form follows from the number of places, and all of it from the set of
// values alone: so do the estimate and the bytes, whatever the order, the parallelism and
// the restores.
type sketch []byte

const (
	registerBits = 14
	registers    = 1 << registerBits
	placeBits    = 26
	formSparse   = 1
	formDense    = 2
	sparseEntry  = 4
	sparseLeast  = 4    // entries that there is room for
	sparseMost   = 1024 // places; one more, and the sketch is dense
)

// rankBehind is the rank of the bits of a hash behind the first ones.
func rankBehind(hash uint64, first int) byte {
	return byte(bits.LeadingZeros64(hash<<first|1<<(first-1)) + 1)
}

// entryOf is the sparse entry of a hash.
func entryOf(hash uint64) uint32 {
	return uint32(hash>>(64-placeBits))<<6 | uint32(rankBehind(hash, placeBits))
}

// registerOf is what a sparse entry says to a register.
func registerOf(entry uint32) (register int, rank byte) {
	place := entry >> 6
	const below = placeBits - registerBits
	register = int(place >> below)
	if rest := place << (32 - below); rest != 0 {
		return register, byte(bits.LeadingZeros32(rest) + 1)
	}
	return register, below + byte(entry&63)
}

// check refuses bytes that are no sketch.
func (s sketch) check() error {
	room := (len(s) - 1) / sparseEntry
	switch {
	case len(s) == 0, s[0] == formDense && len(s) == 1+registers,
		s[0] == formSparse && len(s)%sparseEntry == 1 && room >= sparseLeast && room <= sparseMost && room&(room-1) == 0:
		return nil
	}
	return fmt.Errorf("%d bytes that begin with %d are no sketch of this version", len(s), s[0])
}

// find looks for the entry of the same place: where it is, or where it belongs.
func (s sketch) find(entry uint32) (at int, ok bool) {
	at = s.search(func(e uint32) bool { return e>>6 < entry>>6 })
	if at == len(s) {
		return at, false
	}
	e := s.entry(at)
	return at, e != 0 && e>>6 == entry>>6
}

// end is where the entries of a sparse sketch end.
func (s sketch) end() int { return s.search(func(uint32) bool { return true }) }

// search finds where the entries end that before is true for.
func (s sketch) search(before func(e uint32) bool) int {
	low, high := 0, (len(s)-1)/sparseEntry
	for low < high {
		mid := (low + high) / 2
		if e := s.entry(1 + sparseEntry*mid); e != 0 && before(e) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return 1 + sparseEntry*low
}

// entry reads the sparse entry at an offset.
func (s sketch) entry(at int) uint32 { return binary.BigEndian.Uint32(s[at:]) }

// holds reports whether an entry would change nothing.
func (s sketch) holds(entry uint32) bool {
	if len(s) == 0 {
		return false
	}
	if s[0] == formDense {
		register, rank := registerOf(entry)
		return s[1+register] >= rank
	}
	at, ok := s.find(entry)
	return ok && s.entry(at) >= entry
}

// put takes an entry in, in the sketch's own memory or, as append does, in more.
func (s sketch) put(entry uint32) sketch {
	if len(s) == 0 {
		s = append(s, formSparse)
	}
	if s[0] == formDense {
		register, rank := registerOf(entry)
		s[1+register] = max(s[1+register], rank)
		return s
	}
	at, ok := s.find(entry)
	if ok {
		binary.BigEndian.PutUint32(s[at:], max(entry, s.entry(at)))
		return s
	}
	end := s.end()
	if end == 1+sparseEntry*sparseMost {
		return s.dense().put(entry)
	}
	if end == len(s) {
		more := max(sparseEntry*sparseLeast, end-1)
		s = slices.Grow(s, more)[:end+more]
		clear(s[end:])
	}
	copy(s[at+sparseEntry:], s[at:end])
	binary.BigEndian.PutUint32(s[at:], entry)
	return s
}

// patch gives, in the memory of dst, the bytes that an entry which the sketch does not hold
// changes from an offset on; none: it makes the sketch longer.
func (s sketch) patch(dst []byte, entry uint32) (at int, bytes []byte) {
	if len(s) == 0 {
		return 0, nil
	}
	if s[0] == formDense {
		register, rank := registerOf(entry)
		return 1 + register, append(dst, rank)
	}
	at, ok := s.find(entry)
	end := s.end()
	switch dst = binary.BigEndian.AppendUint32(dst, entry); {
	case ok:
		return at, dst
	case end == len(s):
		return 0, nil
	}
	return at, append(dst, s[at:end]...)
}

// dense turns a sketch into a dense one.
func (s sketch) dense() sketch {
	if len(s) > 0 && s[0] == formDense {
		return s
	}
	old := slices.Clone(s)
	s = slices.Grow(s[:0], 1+registers)[:1+registers]
	clear(s)
	s[0] = formDense
	for at := 1; at < len(old) && old.entry(at) != 0; at += sparseEntry {
		s = s.put(old.entry(at))
	}
	return s
}

// merge takes another sketch in; changed: it said something new.
func (s sketch) merge(o sketch) (merged sketch, changed bool) {
	if len(o) > 0 && o[0] == formDense {
		changed = len(s) == 0 || s[0] != formDense
		s = s.dense()
		for i, rank := range o[1:] {
			if s[1+i] < rank {
				s[1+i], changed = rank, true
			}
		}
		return s, changed
	}
	for at := 1; at < len(o) && o.entry(at) != 0; at += sparseEntry {
		if entry := o.entry(at); !s.holds(entry) {
			s, changed = s.put(entry), true
		}
	}
	return s, changed
}

// estimate gives about the number of distinct values: the number of places, or by Ertl's
// estimator of the registers, which needs neither tables nor a change of method.
func (s sketch) estimate() int64 {
	if len(s) == 0 {
		return 0
	}
	if s[0] == formSparse {
		return int64(s.end() / sparseEntry)
	}
	const most = 64 - registerBits + 1
	var counts [most + 1]float64 // registers by their content
	for _, rank := range s[1:] {
		counts[min(rank, most)]++
	}
	z := registers * tau(1-counts[most]/registers)
	for k := most - 1; k >= 1; k-- {
		z = 0.5 * (z + counts[k])
	}
	z += float64(registers * sigma(counts[0]/registers))
	return int64(math.Round(registers * registers / (2 * math.Ln2 * z)))
}

// sigma and tau are the estimator's series; products are rounded by themselves, so that
// every machine gives the same number.
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for before := -1.0; z != before; y += y {
		before = z
		x = float64(x * x)
		z += float64(x * y)
	}
	return z
}

func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for before := -1.0; z != before; {
		before = z
		x = math.Sqrt(x)
		y *= 0.5
		z -= float64(float64((1-x)*(1-x)) * y)
	}
	return z / 3
}
