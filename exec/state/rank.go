package state

import (
	"bytes"
	"cmp"
	"iter"
	"math/bits"
	"slices"
)

// Rank places an entry in an order that all tables share, whatever their size: the low
// half of its hash with the bits turned round. A segment of the index holds the entries of
// one range of ranks, and the places in it have theirs, so that both taken in the order of
// their turned bits give the entries by rank.
func Rank(hash uint64) uint32 { return bits.Reverse32(uint32(hash)) }

// sparse is the number of places per entry beyond which a segment is read through
// rather than home by home.
const sparse = 16

// rankedSlots returns the slots of the entries in memory whose rank is at least from, by
// (rank, key).
func (t *Table) rankedSlots(from uint32) iter.Seq[int] {
	return func(yield func(int) bool) {
		x := &t.index
		begin := int(uint64(from) >> (32 - x.depth))
		for i := begin; i < len(x.dir); i++ {
			g, first := x.turned(i)
			if i == begin {
				if !t.rankedIn(g, from, yield) {
					return
				}
			} else if first && !t.rankedIn(g, 0, yield) {
				return
			}
		}
	}
}

// rankedIn yields the entries of a segment whose rank is at least from.
func (t *Table) rankedIn(g *segment, from uint32, yield func(int) bool) bool {
	var found []ranked
	if len(g.entries)/sparse > g.n {
		for _, e := range g.entries {
			if e != 0 {
				found = appendRanked(found, e, from)
			}
		}
		return t.yieldRanked(found, yield)
	}
	width := bits.Len(uint(len(g.entries) - 1))
	for turned := int(from << g.depth >> (32 - width)); turned < len(g.entries); turned++ {
		home := turn(turned, width)
		found = found[:0]
		for i := home; g.entries[i] != 0; i = g.next(i) { // an entry lies before the first gap
			if e := g.entries[i]; g.home(uint32(e>>32)) == home {
				found = appendRanked(found, e, from)
			}
		}
		if !t.yieldRanked(found, yield) {
			return false
		}
	}
	return true
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
			t.other = append(t.other[:0], t.Key(int(a.slot))...)
			return bytes.Compare(t.other, t.Key(int(b.slot)))
		})
	}
	for _, r := range list {
		if !yield(int(r.slot)) {
			return false
		}
	}
	return true
}
