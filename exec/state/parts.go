package state

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
	"sync"

	"weir"
)

// A row is a hash, and what comes with it: where in a cutTable its entry lies, chunk<<chunkBits |
// slot, or that it is a deletion; or the word of a count, whose number follows from the hash
// (batch.IntOf).
type row [2]uint64

// parts sort rows by hash: each part takes those of a range of hashes as they come, and is put in
// order when it is read.
type parts struct {
	from  uint64 // the least hash
	shift int
	few   bool // rows: no slab is worth it
	lists []bucket
	slabs *sync.Pool // of *slab
	taken []*slab
	left  []row   // of the last one
	found []row   // scratch of sorted
	ends  []int32 // likewise
}

// A slab is memory for blocks. Those of one run are used again by the next: memory that is new to
// the process takes the kernel longer than what is done with it.
type slab [partMost]row

const slabsKept = 64 // of a run: 4 MiB

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
	partFew    = 512 // are taken at a time where there are few
	partBlocks = 8   // of a part, until it has many rows
	partCrowd  = 48  // that share a place are too many to be sorted by insertion
)

// newParts makes parts for n rows at most, with hashes of key groups.
func newParts(g weir.KeyGroupRange, maxParallelism, n int, slabs *sync.Pool) *parts {
	m := uint64(maxParallelism)
	from, to := (uint64(g.Start)<<32+m-1)/m, (uint64(g.End)<<32+m-1)/m // KeyGroupOf the other way round
	p := &parts{slabs: slabs, few: n <= partMost, from: from << 32, shift: 32 + max(bits.Len64(to-from-1)-min(bits.Len(uint(n/partRows)), partBits), 0)}
	p.lists = make([]bucket, (to-from-1)<<32>>p.shift+1)
	full := make([][]row, len(p.lists)*partBlocks)
	for i := range p.lists {
		p.lists[i].full, full = full[:0:partBlocks], full[partBlocks:]
	}
	return p
}

func (p *parts) add(r row) {
	l := &p.lists[(r[0]-p.from)>>p.shift]
	if len(l.last) == cap(l.last) {
		p.grow(l)
	}
	l.last = append(l.last, r)
}

// grow takes memory for half as many rows as the part has.
func (p *parts) grow(l *bucket) {
	if len(l.last) > 0 {
		l.full = append(l.full, l.last)
		l.n += len(l.last)
	}
	n := min(max(l.n/2, partLeast), partMost)
	switch {
	case len(p.left) >= n:
	case p.few:
		p.left = make([]row, max(n, partFew))
	default:
		s, ok := p.slabs.Get().(*slab)
		if !ok {
			s = new(slab)
		}
		p.taken, p.left = append(p.taken, s), s[:]
	}
	l.last, p.left = p.left[:0:n], p.left[n:]
}

// len is how many rows there are.
func (p *parts) len() (n int) {
	for i := range p.lists {
		n += p.lists[i].len()
	}
	return n
}

// free ends the use of the parts. What a large run has taken is not kept.
func (p *parts) free() {
	for _, s := range p.taken[:min(len(p.taken), slabsKept)] {
		p.slabs.Put(s)
	}
	*p = parts{}
}

// each yields the rows by hash, those of a part at once; they are valid until the next part.
func (p *parts) each() iter.Seq[[]row] {
	return func(yield func([]row) bool) {
		for i := range p.lists {
			if l := &p.lists[i]; len(l.last) > 0 {
				if !yield(p.sorted(p.from+uint64(i)<<p.shift, l)) {
					return
				}
			}
		}
	}
}

// sorted puts the rows of a part, which begins with a hash, in order: into places by further
// bits, one to two for each row, and what shares one of these by comparison. Hashes spread.
func (p *parts) sorted(from uint64, l *bucket) []row {
	n := l.len()
	shift := max(p.shift-bits.Len(uint(n)), 0)
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
