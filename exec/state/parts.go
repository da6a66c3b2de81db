package state

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"

	"weir"
)

// A row is a hash, and what comes with it: where in a cutTable its entry lies, chunk<<chunkBits |
// slot, or that it is a deletion; or the word of a count, whose number follows from the hash
// (batch.IntOf).
type row [2]uint64

// parts sort rows by hash: each part takes those of a range of hashes as they come, and is put in
// order when it is read, and then dropped.
type parts struct {
	from  uint64 // the least hash
	shift int
	lists []bucket
	found []row   // scratch of sorted
	ends  []int32 // likewise
}

// A bucket is the rows of a part, in blocks that are full, and the one that is being filled.
type bucket struct {
	last []row
	full [][]row
	n    int // of the full ones
}

func (l *bucket) len() int { return l.n + len(l.last) }

const (
	partBits   = 8   // of a hash, within the key groups, tell its part; at most
	partRows   = 128 // of one, where there are fewer parts
	partLeast  = 32
	partMost   = 4 << 10
	partGrowth = 4  // a block is a quarter of what its part has
	partCrowd  = 48 // that share a place are too many to be sorted by insertion
)

// newParts makes parts for n rows at most, with hashes of key groups.
func newParts(g weir.KeyGroupRange, maxParallelism, n int) *parts {
	m := uint64(maxParallelism)
	from, to := (uint64(g.Start)<<32+m-1)/m, (uint64(g.End)<<32+m-1)/m // KeyGroupOf the other way round
	p := &parts{from: from << 32, shift: 32 + max(bits.Len64(to-from-1)-min(bits.Len(uint(n/partRows)), partBits), 0)}
	p.lists = make([]bucket, (to-from-1)<<32>>p.shift+1)
	return p
}

func (p *parts) add(r row) {
	l := &p.lists[(r[0]-p.from)>>p.shift]
	if len(l.last) == cap(l.last) {
		l.grow()
	}
	l.last = append(l.last, r)
}

func (l *bucket) grow() {
	if len(l.last) > 0 {
		l.full = append(l.full, l.last)
		l.n += len(l.last)
	}
	l.last = make([]row, 0, min(max(l.n/partGrowth, partLeast), partMost))
}

// each yields the rows by hash, those of a part at once; they are valid until the next part.
func (p *parts) each() iter.Seq[[]row] {
	return func(yield func([]row) bool) {
		for i := range p.lists {
			if l := &p.lists[i]; len(l.last) > 0 {
				rows := p.sorted(p.from+uint64(i)<<p.shift, l)
				*l = bucket{}
				if !yield(rows) {
					return
				}
			}
		}
	}
}

// sorted puts the rows of a part, which begins with a hash, in order: into about as many places
// by further bits, and what shares one of these by comparison. Hashes spread.
func (p *parts) sorted(from uint64, l *bucket) []row {
	n := l.len()
	shift := max(p.shift-max(bits.Len(uint(n))-1, 0), 0)
	places := 1 << (p.shift - shift)
	if cap(p.ends) < places {
		p.ends = make([]int32, places)
	}
	ends := p.ends[:places]
	clear(ends)
	l.full = append(l.full, l.last)
	for _, b := range l.full {
		for i := range b {
			ends[(b[i][0]-from)>>shift]++
		}
	}
	at, most := int32(0), int32(0)
	for i, n := range ends {
		ends[i] = at
		at, most = at+n, max(most, n)
	}
	if cap(p.found) < n {
		p.found = make([]row, n+n/4)
	}
	found := p.found[:n]
	for _, b := range l.full {
		for i := range b {
			to := &ends[(b[i][0]-from)>>shift]
			found[*to] = b[i]
			*to++
		}
	}
	if most > partCrowd {
		slices.SortFunc(found, func(a, b row) int { return cmp.Compare(a[0], b[0]) })
		return found
	}
	for i := 1; i < n; i++ { // those that share a place lie side by side
		r := found[i]
		j := i
		for ; j > 0 && found[j-1][0] > r[0]; j-- {
			found[j] = found[j-1]
		}
		found[j] = r
	}
	return found
}
