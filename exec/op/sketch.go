package op

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// A sketch counts distinct values in a fixed space: HyperLogLog of 2^14 registers, with a
// standard error of 0.8 %. A register holds the largest rank among the hashes that fall
// to it. Its bytes are state and travel between workers; they are frozen:
//
//	form  1 byte    none at all: no values
//	1     sparse    3 bytes per register that is not 0, big-endian, ascending: register<<6 | rank
//	2     dense     1 byte per register
//
// The form follows from the registers, and they from the set of values alone: so do the
// estimate and the bytes, whatever the order, the parallelism and the restores.
type sketch []byte

const (
	sketchBits  = 14
	registers   = 1 << sketchBits
	formSparse  = 1
	formDense   = 2
	sparseEntry = 3
	sparseMost  = 2048 // entries; one more, and the sketch is dense
)

// registerOf gives the register that a hash falls to, and its rank: 1 more than the zeros
// that the rest of it begins with.
func registerOf(hash uint64) (register int, rank byte) {
	rest := hash<<sketchBits | 1<<(sketchBits-1)
	return int(hash >> (64 - sketchBits)), byte(bits.LeadingZeros64(rest) + 1)
}

// check refuses bytes that are no sketch.
func (s sketch) check() error {
	switch {
	case len(s) == 0, s[0] == formDense && len(s) == 1+registers, s[0] == formSparse && len(s)%sparseEntry == 1 && len(s) <= 1+sparseEntry*sparseMost:
		return nil
	}
	return fmt.Errorf("%d bytes that begin with %d are no sketch of this version", len(s), s[0])
}

// find gives the place of a register's entry, or where it belongs.
func (s sketch) find(register int) (at int, ok bool) {
	low, high := 0, (len(s)-1)/sparseEntry
	for low < high {
		mid := (low + high) / 2
		if r, _ := s.entry(1 + sparseEntry*mid); r < register {
			low = mid + 1
		} else {
			high = mid
		}
	}
	at = 1 + sparseEntry*low
	if at >= len(s) {
		return at, false
	}
	r, _ := s.entry(at)
	return at, r == register
}

// entry reads the sparse entry at a place.
func (s sketch) entry(at int) (register int, rank byte) {
	x := int(s[at])<<16 | int(s[at+1])<<8 | int(s[at+2])
	return x >> 6, byte(x & 63)
}

func (s sketch) setEntry(at, register int, rank byte) {
	x := register<<6 | int(rank)
	s[at], s[at+1], s[at+2] = byte(x>>16), byte(x>>8), byte(x)
}

// rank is the content of a register.
func (s sketch) rank(register int) byte {
	if len(s) == 0 {
		return 0
	}
	if s[0] == formDense {
		return s[1+register]
	}
	at, ok := s.find(register)
	if !ok {
		return 0
	}
	_, rank := s.entry(at)
	return rank
}

// put raises a register to a rank, in the sketch's own memory or, as append does, in more.
func (s sketch) put(register int, rank byte) sketch {
	if len(s) == 0 {
		s = append(s, formSparse)
	}
	if s[0] == formDense {
		s[1+register] = max(s[1+register], rank)
		return s
	}
	at, ok := s.find(register)
	if ok {
		if _, old := s.entry(at); old < rank {
			s.setEntry(at, register, rank)
		}
		return s
	}
	if len(s) >= 1+sparseEntry*sparseMost {
		return s.dense().put(register, rank)
	}
	s = append(s, 0, 0, 0)
	copy(s[at+sparseEntry:], s[at:])
	s.setEntry(at, register, rank)
	return s
}

// dense turns a sparse sketch into a dense one.
func (s sketch) dense() sketch {
	old := slices.Clone(s)
	s = slices.Grow(s[:0], 1+registers)[:1+registers]
	clear(s)
	s[0] = formDense
	for at := 1; at < len(old); at += sparseEntry {
		register, rank := old.entry(at)
		s[1+register] = rank
	}
	return s
}

// merge raises the registers of s to those of another sketch; changed: some rose.
func (s sketch) merge(o sketch) (merged sketch, changed bool) {
	if len(o) > 0 && o[0] == formDense {
		for register, rank := range o[1:] {
			if rank > 0 && s.rank(register) < rank {
				s, changed = s.put(register, rank), true
			}
		}
		return s, changed
	}
	for at := 1; at < len(o); at += sparseEntry {
		if register, rank := o.entry(at); s.rank(register) < rank {
			s, changed = s.put(register, rank), true
		}
	}
	return s, changed
}

// estimate gives about the number of distinct values: Ertl's estimator, which needs
// neither tables nor a change of method from small to large numbers.
func (s sketch) estimate() int64 {
	if len(s) == 0 {
		return 0
	}
	const most = 64 - sketchBits + 1
	var counts [most + 1]float64 // registers by their content
	if s[0] == formDense {
		for _, rank := range s[1:] {
			counts[min(rank, most)]++
		}
	} else {
		for at := 1; at < len(s); at += sparseEntry {
			_, rank := s.entry(at)
			counts[min(rank, most)]++
			counts[0]--
		}
		counts[0] += registers
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
