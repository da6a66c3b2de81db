package state

import (
	"bytes"
	"cmp"
	"iter"
	"math/bits"
	"slices"
)

// Rank places an entry in an order that all tables share, whatever their size: the low
// half of its hash with the bits turned round. In an index of 2^k places the home of
// an entry is the low k bits of its hash, so that homes taken in the order of their
// turned bits give the entries by rank.
func Rank(hash uint64) uint32 { return bits.Reverse32(uint32(hash)) }

// sparse is the number of places per entry beyond which an index is read through
// rather than home by home.
const sparse = 16

// Ranked returns the slots of the entries whose rank is at least from, by (rank, key).
// It costs about what it yields, so that a large table can be read in small parts: an
// entry that stays is found once by reads that each go on where the one before ended,
// however the table changes between them. Nothing may be changed while one reads.
func (t *Table) Ranked(from uint32) iter.Seq[int] {
	return func(yield func(int) bool) {
		x := &t.index
		if x.n == 0 {
			return
		}
		var found []ranked
		if len(x.entries)/sparse > x.n {
			for _, e := range x.entries {
				if e != 0 {
					found = appendRanked(found, e, from)
				}
			}
			t.yieldRanked(found, yield)
			return
		}
		shift := 32 - bits.Len(uint(len(x.entries)-1))
		for turned := uint64(from) >> shift; turned < uint64(len(x.entries)); turned++ {
			home := int(bits.Reverse32(uint32(turned << shift)))
			found = found[:0]
			for i := home; x.entries[i] != 0; i = x.next(i) { // an entry lies before the first gap
				if e := x.entries[i]; x.home(uint32(e>>32)) == home {
					found = appendRanked(found, e, from)
				}
			}
			if !t.yieldRanked(found, yield) {
				return
			}
		}
	}
}

// A ranked entry is one of those to be put in order.
type ranked struct {
	rank uint32
	slot int32
}

// appendRanked appends an entry of the index if its rank is at least from.
func appendRanked(list []ranked, e uint64, from uint32) []ranked {
	if rank := Rank(e >> 32); rank >= from {
		return append(list, ranked{rank, int32(uint32(e) - 1)})
	}
	return list
}

// yieldRanked puts entries in order and yields their slots.
func (t *Table) yieldRanked(list []ranked, yield func(int) bool) bool {
	if len(list) > 1 {
		slices.SortFunc(list, func(a, b ranked) int {
			if c := cmp.Compare(a.rank, b.rank); c != 0 {
				return c
			}
			return bytes.Compare(t.Key(int(a.slot)), t.Key(int(b.slot)))
		})
	}
	for _, r := range list {
		if !yield(int(r.slot)) {
			return false
		}
	}
	return true
}
