package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// cold is what a table has on disk.
type cold struct {
	disk   *database
	look   lookup
	prefix []byte            // of its keys
	n      int               // entries that are on disk only
	filter filter            // knows at least these
	sieve  *sieve            // what takes its place; nil: nothing does
	graves map[string]uint64 // keys that were deleted of which disk has a version, and their hashes
	key    []byte            // scratch
}

// isCold reports whether there are entries on disk only.
func (t *Table) isCold() bool { return t.cold != nil && t.cold.n > 0 }

// mayBeCold reports whether a key of a hash that is not in memory may be on disk.
func (t *Table) mayBeCold(hash uint64) bool { return t.isCold() && t.cold.filter.knows(hash) }

// bury remembers that what disk has of a key is no more.
func (c *cold) bury(hash uint64, key []byte) { c.graves[string(key)] = hash }

// at is the disk's key of an entry: the table's prefix, its rank, big-endian, and its key.
// The value is the high half of its hash (4 bytes), its words (8 each), and its blob.
func (c *cold) at(dst []byte, hash uint64, key []byte) []byte {
	dst = append(dst, c.prefix...)
	dst = binary.BigEndian.AppendUint32(dst, Rank(hash))
	return append(dst, key...)
}

// fromRank is the least key from a rank on.
func (c *cold) fromRank(rank uint32) []byte {
	return binary.BigEndian.AppendUint32(slices.Clone(c.prefix), rank)
}

// hashOf returns the hash of an entry on disk.
func (c *cold) hashOf(key, value []byte) uint64 {
	rank := binary.BigEndian.Uint32(key[len(c.prefix):])
	return uint64(binary.LittleEndian.Uint32(value))<<32 | uint64(bits.Reverse32(rank))
}

// recall brings an entry that may be on disk into memory; ok is false where it is not there. It
// counts as changed, so that what is brought is what the next run shows. What cannot be read
// is a panic: the task fails, and begins again from its checkpoint.
func (t *Table) recall(hash uint64, key []byte) (slot int, ok bool) {
	c := t.cold
	if _, gone := c.graves[string(key)]; gone {
		return 0, false
	}
	c.key = c.at(c.key[:0], hash, key)
	ok, err := c.look.get(c.key, func(value []byte) { slot = t.revive(hash, key, value) })
	if err != nil {
		panic(err)
	}
	if ok {
		c.n--
	}
	return slot, ok
}

// revive puts an entry as disk has it into memory.
func (t *Table) revive(hash uint64, key, value []byte) int {
	var slot int
	if t.layout.Key == IntKey {
		if x, null := t.number(key); null {
			slot = t.insertNull()
		} else {
			slot = t.insertInt(hash, x)
		}
	} else {
		slot = t.insertKey(hash, key)
	}
	c, i := t.chunks[slot>>chunkBits], slot&chunkMask
	c.born.remove(i)
	c.disk.add(i)
	words := c.at(t.rec, i)[t.rec.words:]
	value = value[hashHigh:]
	for w := range words {
		words[w] = binary.LittleEndian.Uint64(value[8*w:])
	}
	if t.layout.Blob {
		t.SetBlob(slot, value[8*len(words):])
	}
	return slot
}

const hashHigh = 4 // bytes of a value before its words

// value is what disk gets of an entry.
func (t *Table) value(dst []byte, c *chunk, i int) []byte {
	r := c.at(t.rec, i)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(c.hash(t.rec, i)>>32))
	for _, w := range r[t.rec.words:] {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	if t.layout.Blob {
		dst = append(dst, c.text(r[t.rec.blob])...)
	}
	return dst
}

// spillable gives the entries of a chunk that may be spilled: those that no run has
// still to show. While the store is restored, all.
func (t *Table) spillable(c *chunk) (set slotSet) {
	if t.store.isRead(c.generation, 0) {
		return set
	}
	set = c.live
	if c.generation == t.store.generation && c.generation > 0 {
		for w := range set {
			set[w] &^= c.dirty[w]
		}
	}
	return set
}

// spill puts about n entries on disk, those that were written to longest ago, and returns
// how many.
func (t *Table) spill(n int) (int, error) {
	if len(t.chunks) == 0 {
		return 0, nil
	}
	var slots []int
	taken := map[int]slotSet{}
	for range 2 * len(t.chunks) { // twice round: in the first, all may have been used
		if len(slots) >= n {
			break
		}
		if t.hand++; t.hand >= len(t.chunks) {
			t.hand = 0
		}
		c := t.chunks[t.hand]
		set := t.spillable(c)
		if set == (slotSet{}) {
			continue
		}
		before := taken[t.hand]
		for w := range set {
			set[w] &^= c.used[w] | before[w]
			before[w] |= set[w]
		}
		c.used, taken[t.hand] = slotSet{}, before
		set.each(func(i int) bool {
			slots = append(slots, t.hand<<chunkBits|i)
			return true
		})
	}
	return len(slots), t.evict(slots)
}

// shrink spills the entries of the last chunks, as far as they may be, and drops the chunks: n
// of them, and on until they had so many bytes, or spillSlots are spilled. It returns how many it
// spilled.
func (t *Table) shrink(n int, bytes int64) (int, error) {
	var slots []int
	from := len(t.chunks)
	for ; from > 0 && len(slots) < spillSlots && (bytes > 0 || len(t.chunks)-from < n); from-- {
		c := t.chunks[from-1]
		if t.spillable(c) != c.live || c.generation == t.store.generation && c.generation > 0 {
			break
		}
		bytes -= int64(c.size())
		c.live.each(func(i int) bool {
			slots = append(slots, (from-1)<<chunkBits|i)
			return true
		})
	}
	if from == len(t.chunks) {
		return 0, nil
	}
	if err := t.evict(slots); err != nil {
		return 0, err
	}
	for _, c := range t.chunks[from:] {
		t.size -= c.size()
	}
	if t.store.generation == 0 {
		t.dirty = nil // restored: it counts for nothing
	}
	clear(t.chunks[from:])
	t.chunks = t.chunks[:from]
	t.used = min(t.used, from<<chunkBits)
	t.free = slices.DeleteFunc(t.free, func(slot int) bool { return slot >= t.used })
	if cap(t.free) > 4*len(t.free)+spareSlots {
		t.free = slices.Clone(t.free)
	}
	t.index.trim()
	return max(len(slots), 1), nil
}

// trim makes segments smaller that are nearly empty.
func (x *index) trim() {
	for i := range x.dir {
		g, first := x.turned(i)
		if !first {
			continue
		}
		for len(g.entries) > leastSegment && 4*g.n < len(g.entries) {
			x.size -= 8 * (len(g.entries) / 2)
			g.resize(len(g.entries) / 2)
		}
	}
}

// evict puts entries on disk, with what is buried, and then takes them out of memory.
func (t *Table) evict(slots []int) error {
	if len(slots) == 0 && (t.cold == nil || len(t.cold.graves) == 0) {
		return nil
	}
	if t.cold == nil {
		prefix, err := t.store.tablePrefix(t)
		if err != nil {
			return err
		}
		t.cold = &cold{disk: t.store.db, look: lookup{of: t.store.db}, prefix: prefix, graves: map[string]uint64{}}
	}
	if err := errors.Join(t.cold.look.end(), t.cold.disk.put(t.spilling(slots))); err != nil {
		return err
	}
	t.cold.graves = map[string]uint64{} // a map that was cleared keeps its memory
	t.learn(slots)
	for _, slot := range slots {
		t.remove(slot, t.chunks[slot>>chunkBits])
	}
	t.cold.n += len(slots)
	if t.layout.Blob || !t.rec.ints {
		t.tidy(slots)
	}
	return nil
}

// tidy gives back the bytes of entries that have gone.
func (t *Table) tidy(slots []int) {
	last := -1
	for _, slot := range slots {
		if at := slot >> chunkBits; at != last {
			last = at
			c := t.chunks[at]
			before := c.size()
			c.tidy(t.rec)
			t.size += c.size() - before
		}
	}
}

// spilling lists what disk gets, in its order: entries, and what is buried.
func (t *Table) spilling(slots []int) []spilled {
	cold := t.cold
	list, arena := make([]spilled, 0, len(slots)+len(cold.graves)), make([]byte, 0, 40*len(slots))
	order := make([]uint64, 0, cap(list)) // rank, then place in list
	add := func(hash uint64, key []byte, value func([]byte) []byte) {
		order = append(order, uint64(Rank(hash))<<32|uint64(len(list)))
		from := len(arena)
		arena = cold.at(arena, hash, key)
		to := len(arena)
		s := spilled{gone: value == nil}
		if value != nil {
			arena = value(arena)
		}
		s.key, s.value = arena[from:to:to], arena[to:len(arena):len(arena)]
		list = append(list, s)
	}
	for _, slot := range slots {
		c, i := t.chunks[slot>>chunkBits], slot&chunkMask
		key := c.key(t.rec, i, t.text)
		if len(cold.graves) > 0 {
			delete(cold.graves, string(key))
		}
		add(c.hash(t.rec, i), key, func(dst []byte) []byte { return t.value(dst, c, i) })
	}
	for key, hash := range cold.graves {
		add(hash, []byte(key), nil)
	}
	slices.Sort(order)
	sorted := make([]spilled, len(list))
	for i, o := range order {
		sorted[i] = list[uint32(o)]
		for j := i; j > 0 && order[j-1]>>32 == o>>32 && bytes.Compare(sorted[j-1].key, sorted[j].key) > 0; j-- {
			sorted[j-1], sorted[j] = sorted[j], sorted[j-1] // of one rank
		}
	}
	return sorted
}

// tablePrefix is the prefix of a table's keys on disk.
func (s *Store) tablePrefix(t *Table) (prefix []byte, err error) {
	if s.db == nil {
		if s.db, s.space, err = s.disk.open(); err != nil {
			return nil, err
		}
	}
	i := slices.Index(s.tables, t)
	if i < 0 || i > math.MaxUint16 {
		panic(fmt.Sprintf("state: table %s is none of its store's", t.name))
	}
	return binary.BigEndian.AppendUint16(slices.Clone(s.space), uint16(i)), nil
}
