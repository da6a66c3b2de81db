package state

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
	"sync"

	"weir"
	"weir/exec/batch"
)

const goneAt = 1 << 63

// write writes what changed in a table of key groups, by (hash, key), as blocks: counts of numbers
// are taken along as they are, so that each is looked at once; others, and what has deletions
// or NULL, by their places. whole: without deletions.
func (t *cutTable) write(w *runWriter, g weir.KeyGroupRange, whole bool, slabs *sync.Pool) error {
	to := w.begin(t.name, t.layout)
	most := len(t.chunks)*chunkSlots + len(t.gone.hashes)
	p := newParts(g, w.maxParallelism, most, slabs)
	defer p.free()
	if t.plain() {
		t.counts(p)
		return writeCounts(p, w, to)
	}
	t.places(p)
	if !whole {
		for i, hash := range t.gone.hashes {
			p.add(row{hash, goneAt | uint64(i)})
		}
	}
	return t.writePlaces(p, w, to)
}

// plain reports whether all that changed are numbers with a word each.
func (t *cutTable) plain() bool {
	return t.rec.ints && t.rec.stride == 2 && t.rec.blob == 0 && len(t.gone.hashes) == 0 && !t.null
}

// The processor waits for many places of memory at once where they are read by short loops that
// do nothing else. So entries are looked at some at a time, and chunks ahead.
const (
	gatherEntries = 2 * chunkSlots // looked at at a time
	warmPlaces    = 64
	warmChunks    = 16
)

// counts adds the entries that changed, of a plain table, to parts.
func (t *cutTable) counts(p *parts) {
	var found [gatherEntries]*row // a number and its word
	n := 0
	add := func() {
		var rows [gatherEntries]row
		for i, r := range found[:n] {
			rows[i] = *r
		}
		for _, r := range rows[:n] {
			p.add(row{batch.HashInt(int64(r[0])), r[1]})
		}
		n = 0
	}
	for at, c := range t.chunks {
		t.lookAhead(at)
		for w := range c.dirty {
			set := c.dirty[w]
			if set != 0 && n > gatherEntries-64 {
				add()
			}
			for ; set != 0; set &= set - 1 {
				found[n%gatherEntries] = (*row)(c.records[2*(w<<6|bits.TrailingZeros64(set)):])
				n++
			}
		}
	}
	add()
}

// places adds where the entries lie that changed.
func (t *cutTable) places(p *parts) {
	var found [gatherEntries]uint64
	n := 0
	add := func() {
		t.warm(found[:n])
		for _, at := range found[:n] {
			p.add(row{t.chunks[at>>chunkBits].hash(t.rec, int(at&chunkMask)), at})
		}
		n = 0
	}
	for at, c := range t.chunks {
		t.lookAhead(at)
		if n > gatherEntries-chunkSlots {
			add()
		}
		c.dirty.each(func(i int) bool {
			found[n] = uint64(at<<chunkBits | i)
			n++
			return true
		})
	}
	add()
}

// lookAhead reads of a chunk behind the one at hand what is going to be looked at.
func (t *cutTable) lookAhead(at int) {
	if at += warmChunks; at < len(t.chunks) {
		c := t.chunks[at]
		t.warmed += byte(c.null) + byte(c.dirty[len(c.dirty)-1])
	}
}

// warm reads a word of the record at each place.
func (t *cutTable) warm(list []uint64) {
	var sum uint64
	for _, at := range list {
		sum += t.chunks[at>>chunkBits].records[int(at&chunkMask)*t.rec.stride]
	}
	t.warmed = byte(sum)
}

func (t *cutTable) writePlaces(p *parts, w *runWriter, to *columns) error {
	w.expect = p.len()
	for list := range p.each() {
		t.settle(list)
		for len(list) > 0 {
			list = t.fill(to, list)
			if to.full() {
				if err := w.flush(); err != nil {
					return err
				}
			}
		}
	}
	return w.flush()
}

// writeCounts writes the rows of a plain table.
func writeCounts(p *parts, w *runWriter, to *columns) error {
	w.expect = p.len()
	to.reserve(min(w.expect, maxBlockEntries))
	for list := range p.each() {
		for len(list) > 0 {
			n := min(len(list), maxBlockEntries-to.len())
			to.addCounts(list[:n])
			list = list[n:]
			if to.full() {
				if err := w.flush(); err != nil {
					return err
				}
			}
		}
	}
	return w.flush()
}

// settle orders the places of one hash by key, and where an entry was deleted and came
// again, the deletion before the entry.
func (t *cutTable) settle(list []row) {
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && list[to][0] == list[from][0] {
			to++
		}
		if to-from > 1 {
			slices.SortFunc(list[from:to], func(a, b row) int {
				return cmp.Or(bytes.Compare(t.key(a), t.key(b)), cmp.Compare(b[1]&goneAt, a[1]&goneAt), cmp.Compare(a[1], b[1]))
			})
		}
		from = to
	}
}

// key returns the key of a place.
func (t *cutTable) key(p row) []byte {
	if p[1]&goneAt != 0 {
		return t.gone.key(int(p[1] &^ goneAt))
	}
	return t.chunks[p[1]>>chunkBits].key(t.rec, int(p[1]&chunkMask), nil)
}

// fill appends the entries at places to columns, at most to a block's size, and returns
// the rest.
func (t *cutTable) fill(to *columns, list []row) (rest []row) {
	for i, p := range list {
		if to.full() {
			return list[i:]
		}
		if i%warmPlaces == 0 {
			t.warmAgain(list[i:min(i+warmPlaces, len(list))])
		}
		if p[1]&goneAt == 0 {
			to.addRecord(p[0], t.chunks[p[1]>>chunkBits], t.rec, int(p[1]&chunkMask))
			continue
		}
		if again := i+1 < len(list) && list[i+1][0] == p[0] && bytes.Equal(t.key(list[i+1]), t.key(p)); !again {
			to.addGone(p[0], t.key(p))
		}
	}
	return nil
}

// warmAgain is warm for places in another order.
func (t *cutTable) warmAgain(list []row) {
	var sum uint64
	for _, p := range list {
		if p[1]&goneAt == 0 {
			sum += t.chunks[p[1]>>chunkBits].records[int(p[1]&chunkMask)*t.rec.stride]
		}
	}
	t.warmed = byte(sum)
}
