package op

import "math/bits"

// A slotSet is the slots that a batch touched: open addressing, at most half full, small
// enough for the nearest cache. Marks of older batches count as empty.
type slotSet struct {
	epoch uint32
	shift int
	marks []slotMark
}

type slotMark struct {
	slot  int32
	epoch uint32
}

// begin empties the set, which then has room for n slots.
func (s *slotSet) begin(n int) {
	if len(s.marks) < 2*n {
		width := bits.Len(uint(2*n - 1))
		s.marks, s.shift = make([]slotMark, 1<<width), 32-width
	}
	if s.epoch++; s.epoch == 0 { // after 2^32 batches marks would be taken for new ones
		clear(s.marks)
		s.epoch = 1
	}
}

// add adds a slot; false: it is in the set.
func (s *slotSet) add(slot int) bool {
	const spread = 0x9e3779b1
	for i := uint32(slot) * spread >> s.shift; ; i = (i + 1) & uint32(len(s.marks)-1) {
		switch m := &s.marks[i]; {
		case m.epoch != s.epoch:
			*m = slotMark{int32(slot), s.epoch}
			return true
		case m.slot == int32(slot):
			return false
		}
	}
}
