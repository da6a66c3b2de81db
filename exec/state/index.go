package state

import "math/bits"

// An index finds slots by hash. An entry is the low half of the hash, its tag, then the
// slot + 1; 0 is empty. Entries lie in segments of up to mostSegment places, open
// addressing with linear probing, at most loadPlaces/loadOf full. A segment holds the tags that share
// their low bits; one that is full becomes two (extendible hashing: R. Fagin and others,
// ACM Transactions on Database Systems 4(3), 1979), so that growing never takes longer
// than rewriting one segment. Since an entry keeps the half of the hash that places it,
// nothing else is looked at meanwhile.
type index struct {
	dir   []*segment // by the low depth bits of a tag; segments of fewer bits stand there several times
	depth int
	n     int
	size  int // bytes
}

// A segment holds the entries whose tags have the same low bits.
type segment struct {
	entries []uint64
	depth   int // how many low bits of the tag they share
	n       int
}

const (
	leastSegment = 16
	mostSegment  = 1 << 14
	mostDepth    = 16 // segments of that depth grow on, whatever their size
	loadPlaces   = 4
	loadOf       = 5
)

// segmentOf returns the segment of a tag; the index has one.
func (x *index) segmentOf(tag uint32) *segment { return x.dir[int(tag)&(len(x.dir)-1)] }

// home is where the probe for a tag begins.
func (g *segment) home(tag uint32) int { return int(tag>>g.depth) & (len(g.entries) - 1) }

// next is the place after i.
func (g *segment) next(i int) int { return (i + 1) & (len(g.entries) - 1) }

// add enters a slot that is not there.
func (x *index) add(hash uint64, slot int) {
	if x.dir == nil {
		x.dir = []*segment{{entries: make([]uint64, leastSegment)}}
		x.size = 8 + segmentSize + 8*leastSegment
	}
	tag := uint32(hash)
	g := x.segmentOf(tag)
	for (g.n+1)*loadOf > len(g.entries)*loadPlaces {
		if len(g.entries) < mostSegment || g.depth == mostDepth {
			x.size += 8 * len(g.entries)
			g.grow()
		} else {
			x.split(tag)
			g = x.segmentOf(tag)
		}
	}
	x.n++
	g.n++
	g.place(hash<<32 | uint64(slot+1))
}

// reserve makes an empty index such that about n slots fit in before it grows.
func (x *index) reserve(n int) {
	if x.n > 0 || n < leastSegment {
		return
	}
	depth, size := 0, leastSegment
	for depth < mostDepth && n>>depth > mostSegment/4*3 {
		depth++
	}
	for size/4*3 < n>>depth {
		size *= 2
	}
	*x = index{dir: make([]*segment, 1<<depth), depth: depth, size: (8 + segmentSize + 8*size) << depth}
	for i := range x.dir {
		x.dir[i] = &segment{entries: make([]uint64, size), depth: depth}
	}
}

// addAll enters the slots from one on, none of which is there.
func (x *index) addAll(hashes []uint64, slot int) {
	for i, hash := range hashes {
		if x.dir != nil {
			if g := x.segmentOf(uint32(hash)); (g.n+1)*loadOf <= len(g.entries)*loadPlaces {
				x.n++
				g.n++
				g.place(hash<<32 | uint64(slot+i+1))
				continue
			}
		}
		x.add(hash, slot+i)
	}
}

// place puts an entry into the first empty place from its home on.
func (g *segment) place(e uint64) {
	i := g.home(uint32(e >> 32))
	for g.entries[i] != 0 {
		i = g.next(i)
	}
	g.entries[i] = e
}

// grow doubles the segment.
func (g *segment) grow() { g.resize(2 * len(g.entries)) }

// resize gives the segment so many places, enough for its entries.
func (g *segment) resize(places int) {
	old := g.entries
	g.entries = make([]uint64, places)
	for _, e := range old {
		if e != 0 {
			g.place(e)
		}
	}
}

// split makes two segments of that of a tag.
func (x *index) split(tag uint32) {
	g := x.segmentOf(tag)
	if g.depth == x.depth {
		x.size += 8 * len(x.dir)
		x.dir = append(x.dir, x.dir...)
		x.depth++
	}
	x.size += segmentSize + 8*len(g.entries)
	var halves [2]*segment
	for i := range halves {
		halves[i] = &segment{entries: make([]uint64, len(g.entries)), depth: g.depth + 1}
	}
	for _, e := range g.entries {
		if e != 0 {
			h := halves[e>>32>>g.depth&1]
			h.place(e)
			h.n++
		}
	}
	for i := int(tag) & (1<<g.depth - 1); i < len(x.dir); i += 1 << g.depth {
		x.dir[i] = halves[i>>g.depth&1]
	}
}

// remove takes a slot out and moves up the entries that probed past it.
func (x *index) remove(hash uint64, slot int) {
	gone := hash<<32 | uint64(slot+1)
	g := x.segmentOf(uint32(hash))
	i := g.home(uint32(hash))
	for g.entries[i] != gone {
		i = g.next(i)
	}
	x.n--
	g.n--
	for j := g.next(i); g.entries[j] != 0; j = g.next(j) {
		home, mask := g.home(uint32(g.entries[j]>>32)), len(g.entries)-1
		if (j-home)&mask >= (j-i)&mask { // its home is not behind the gap
			g.entries[i] = g.entries[j]
			i = j
		}
	}
	g.entries[i] = 0
}

const segmentSize = 48 // of the struct

// turned returns the segment at a place of the directory whose bits are turned round:
// so segments come in the order of the ranks in them. first is false where the segment
// came before.
func (x *index) turned(i int) (g *segment, first bool) {
	g = x.dir[turn(i, x.depth)]
	return g, i&(1<<(x.depth-g.depth)-1) == 0
}

// turn turns the lowest n bits of i round.
func turn(i, n int) int { return int(bits.Reverse32(uint32(i)) >> (32 - n) & (1<<n - 1)) }
