package state

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"

	"weir"
)

// A row begins with a hash, by which it is sorted.
type row interface{ place | pair }

// A place is a hash, and where in a cutTable its entry lies: chunk<<chunkBits | slot, or that it
// is a deletion.
type place [2]uint64

// A pair is a whole entry: the hash of a number, the number, and its only word.
type pair [3]uint64

// parts sort rows by hash: each part takes those of a range of hashes as they come, and is put in
// order when it is read, and then dropped.
type parts[R row] struct {
	from  uint64 // the least hash
	shift int
	lists []bucket[R]
	found []R     // scratch of sorted
	ends  []int32 // likewise
}

// A bucket is the rows of a part, in blocks, all but the last one full.
type bucket[R row] struct {
	blocks [][]R
	n      int
}

const (
	partBits   = 8   // of a hash, within the key groups, tell its part; at most
	partRows   = 128 // of one, where there are fewer parts
	partLeast  = 32
	partMost   = 4 << 10
	partGrowth = 4 // a block is a quarter of what its part has
)

// newParts makes parts for n rows at most, with hashes of key groups.
func newParts[R row](g weir.KeyGroupRange, maxParallelism, n int) *parts[R] {
	m := uint64(maxParallelism)
	from, to := (uint64(g.Start)<<32+m-1)/m, (uint64(g.End)<<32+m-1)/m // KeyGroupOf the other way round
	p := &parts[R]{from: from << 32, shift: 32 + max(bits.Len64(to-from-1)-min(bits.Len(uint(n/partRows)), partBits), 0)}
	p.lists = make([]bucket[R], (to-from-1)<<32>>p.shift+1)
	return p
}

func (p *parts[R]) add(r R) {
	l := &p.lists[(r[0]-p.from)>>p.shift]
	last := len(l.blocks) - 1
	if last < 0 || len(l.blocks[last]) == cap(l.blocks[last]) {
		l.blocks = append(l.blocks, make([]R, 0, min(max(l.n/partGrowth, partLeast), partMost)))
		last++
	}
	l.blocks[last] = append(l.blocks[last], r)
	l.n++
}

// each yields the rows by hash, those of a part at once; they are valid until the next part.
func (p *parts[R]) each() iter.Seq[[]R] {
	return func(yield func([]R) bool) {
		for i := range p.lists {
			if l := &p.lists[i]; l.n > 0 {
				rows := p.sorted(p.from+uint64(i)<<p.shift, l)
				l.blocks = nil
				if !yield(rows) {
					return
				}
			}
		}
	}
}

// sorted puts the rows of a part, which begins with a hash, in order: into buckets by further
// bits, and each of these by comparison, since hashes spread.
func (p *parts[R]) sorted(from uint64, l *bucket[R]) []R {
	shift := max(p.shift-max(bits.Len(uint(l.n))-2, 0), 0)
	buckets := 1 << (p.shift - shift)
	if cap(p.ends) < buckets {
		p.ends = make([]int32, buckets)
	}
	ends := p.ends[:buckets]
	clear(ends)
	for _, b := range l.blocks {
		for i := range b {
			ends[(b[i][0]-from)>>shift]++
		}
	}
	at := int32(0)
	for i, n := range ends {
		ends[i] = at
		at += n
	}
	if cap(p.found) < l.n {
		p.found = make([]R, l.n+l.n/4)
	}
	found := p.found[:l.n]
	for _, b := range l.blocks {
		for i := range b {
			to := &ends[(b[i][0]-from)>>shift]
			found[*to] = b[i]
			*to++
		}
	}
	begin := int32(0)
	for _, end := range ends {
		sortBucket(found[begin:end])
		begin = end
	}
	return found
}

func sortBucket[R row](list []R) {
	if len(list) > 48 {
		slices.SortFunc(list, func(a, b R) int { return cmp.Compare(a[0], b[0]) })
		return
	}
	for i := 1; i < len(list); i++ {
		r := list[i]
		j := i
		for ; j > 0 && list[j-1][0] > r[0]; j-- {
			list[j] = list[j-1]
		}
		list[j] = r
	}
}
