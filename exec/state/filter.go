package state

import (
	"math"
	"math/bits"
)

// A filter knows which keys may be on disk, by their hashes: one that it does not know is
// not there. It is split block Bloom filters (F. Putze and others, Cache-, Hash- and
// Space-Efficient Bloom Filters, 2007, with the blocks of Parquet), one for each time that
// it grew: a key is in one of them. Of a thousand keys that are not there it knows about four
// for each of these, and more where it was not allowed to grow, or was halved.
type filter struct {
	layers []layer // the newest last
	n      int     // keys
	room   int     // keys until the newest layer is full; below 0: it is too full
}

// A layer is blocks. A hash has one of these, and a bit in each word of it.
type layer [][8]uint32

const (
	filterBlock = 20 // keys of a block that is full: 13 bits for each
	filterBytes = 32 // of a block
	filterLeast = 64 // blocks of a layer, which are a multiple of it: it may be halved six times
)

// filterSalts spread the high half of a hash over the words of a block: odd numbers.
var filterSalts = [8]uint32{0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f, 0x165667b1, 0xd3a2646d, 0xfd7046c5, 0xb55a4f09}

// block returns the block of a hash, by its low half: the high one begins alike in all keys
// of a task.
func (l layer) block(hash uint64) *[8]uint32 {
	i, _ := bits.Mul64(hash<<32, uint64(len(l)))
	return &l[i]
}

func (l layer) knows(hash uint64) bool {
	b, high := l.block(hash), uint32(hash>>32)
	for i, salt := range filterSalts {
		if b[i]>>(high*salt>>27)&1 == 0 {
			return false
		}
	}
	return true
}

// knows reports whether a key may be on disk.
func (f *filter) knows(hash uint64) bool {
	for i := len(f.layers) - 1; i >= 0; i-- {
		if f.layers[i].knows(hash) {
			return true
		}
	}
	return false
}

// add adds a key; the filter has a layer.
func (f *filter) add(hash uint64) {
	if f.knows(hash) {
		return
	}
	f.n++
	f.room--
	b, high := f.layers[len(f.layers)-1].block(hash), uint32(hash>>32)
	for i, salt := range filterSalts {
		b[i] |= 1 << (high * salt >> 27)
	}
}

// grow makes room for n keys more: with a layer as large as all others together, for so many
// keys at least. It takes so many bytes at most, and none rather than few.
func (f *filter) grow(n, least int, most int64) {
	if f.room >= n && len(f.layers) > 0 {
		return
	}
	blocks := int(f.size() / filterBytes)
	want := max(blocks, max(n, least)/filterBlock)
	if most := int(max(most, 0) / filterBytes); most < want {
		if blocks > 0 && most < blocks/4 {
			return
		}
		want = most - filterLeast + 1
	}
	want = max(want+filterLeast-1, filterLeast) &^ (filterLeast - 1)
	f.layers = append(f.layers, make(layer, want))
	f.room = want * filterBlock
}

// keys is how many the filter is made for.
func (f *filter) keys() int { return int(f.size()) / filterBytes * filterBlock }

// halve makes the filter about half as large: two blocks of a layer become one with the bits of
// both, where a hash is looked for that had either. A single block knows everything.
func (f *filter) halve() {
	before := f.layers[len(f.layers)-1]
	for i, l := range f.layers {
		f.layers[i] = l.halved()
	}
	f.room -= (len(before) - len(f.layers[len(f.layers)-1])) * filterBlock
}

func (l layer) halved() layer {
	const all = math.MaxUint32
	if len(l)%2 != 0 {
		return layer{{all, all, all, all, all, all, all, all}}
	}
	half := make(layer, len(l)/2)
	for i := range half {
		for w := range half[i] {
			half[i][w] = l[2*i][w] | l[2*i+1][w]
		}
	}
	return half
}

// size is the memory that the filter takes.
func (f *filter) size() (n int64) {
	for _, l := range f.layers {
		n += filterBytes * int64(len(l))
	}
	return n
}

// filterLayers are the most of a filter that is not made anew.
const filterLayers = 6

// learn has the filter know entries that go to disk.
func (t *Table) learn(slots []int) {
	c := t.cold
	if c.n == 0 {
		c.filter, c.sieve = filter{}, nil
	}
	c.filter.grow(len(slots), t.index.n/2, t.store.filterRoom())
	if c.sieve != nil {
		c.sieve.grow(len(slots), 0, t.sieveRoom())
	}
	for _, slot := range slots {
		hash := t.chunks[slot>>chunkBits].hash(t.rec, slot&chunkMask)
		c.filter.add(hash)
		if c.sieve != nil {
			c.sieve.add(hash)
		}
	}
}

// filterRoom is how many bytes more the filters of the store may take.
func (s *Store) filterRoom() int64 {
	if s.budget == nil {
		return 1 << 60
	}
	room := s.budget.share(s.size) / filterPart
	for _, t := range s.tables {
		room -= t.filterSize()
	}
	return room
}

// sieveRoom is it for a sieve, which may have some that its filter has.
func (t *Table) sieveRoom() int64 { return t.store.filterRoom() + t.cold.filter.size()/2 }

// filterSize is the memory that the table's filter takes, and what takes its place.
func (t *Table) filterSize() (n int64) {
	if t.cold == nil {
		return 0
	}
	if t.cold.sieve != nil {
		n = t.cold.sieve.size()
	}
	return n + t.cold.filter.size()
}

// halveFilters halves the filters of a store whose share has become much smaller.
func (s *Store) halveFilters(share int64) (halved bool) {
	size := int64(0)
	for _, t := range s.tables {
		if t.cold != nil {
			size += t.cold.filter.size()
		}
	}
	if size <= share/filterPart*3/2 {
		return false
	}
	for _, t := range s.tables {
		if t.cold != nil && len(t.cold.filter.layers) > 0 {
			t.cold.filter.halve()
			t.cold.sieve = nil // it is as large
		}
	}
	return true
}

// A sieve is a filter made anew, of the keys that disk still has, in the order of their ranks.
type sieve struct {
	filter
	from uint32 // the rank up to which it knows all
}

// siftKeys are put into a sieve at a time.
const siftKeys = 1 << 10

// worn reports whether many keys of the filter are no longer on disk, it has grown many times, or
// is too full and there is room for a better one.
func (t *Table) worn() bool {
	c := t.cold
	return c.filter.n > 2*t.Len()+filterLeast*filterBlock || len(c.filter.layers) > filterLayers ||
		c.n > 2*c.filter.keys() && t.store.filterRoom() > c.filter.size()
}

// sift goes on with making the filter anew.
func (t *Table) sift() error {
	c := t.cold
	if c.sieve == nil {
		if c.n == 0 || !t.worn() {
			return nil
		}
		c.sieve = &sieve{}
		c.sieve.grow(c.n, c.n+c.n/2, t.sieveRoom())
	}
	from, left, all := c.sieve.from, siftKeys, true
	err := c.disk.each(c.fromRank(from), after(c.prefix), func(key, value []byte) bool {
		hash := c.hashOf(key, value)
		c.sieve.add(hash)
		left--
		c.sieve.from = Rank(hash)
		all = left > 0 || c.sieve.from == from // of one rank, all are taken
		return all
	})
	if err == nil && all {
		c.filter, c.sieve = c.sieve.filter, nil
	}
	return err
}
