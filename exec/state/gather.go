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
	t.changed(func(at []uint64) {
		t.warm(at)
		for _, at := range at {
			p.add(row{t.chunks[at>>chunkBits].hash(t.rec, int(at&chunkMask)), at})
		}
	})
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
	gatherEntries = 512
	warmPlaces    = 64
	warmChunks    = 16
)

// counts adds the entries that changed, of a plain table, to parts.
func (t *cutTable) counts(p *parts) {
	var rows [gatherEntries]row
	t.changed(func(at []uint64) {
		rows := rows[:len(at)]
		for i, at := range at {
			r := t.chunks[at>>chunkBits].records[at&chunkMask*2:]
			rows[i] = row{r[0], r[1]}
		}
		for _, r := range rows {
			p.add(row{batch.HashInt(int64(r[0])), r[1]})
		}
	})
}

// changed calls f with the places of the entries that changed, some at a time.
func (t *cutTable) changed(f func(at []uint64)) {
	var list [gatherEntries]uint64
	n := 0
	var sum uint64
	for k, c := range t.chunks {
		if k+warmChunks < len(t.chunks) {
			ahead := t.chunks[k+warmChunks]
			sum += uint64(ahead.null) + ahead.dirty[7]
		}
		for w := range c.dirty {
			set := c.dirty[w]
			if n+64 > len(list) && set != 0 {
				f(list[:n])
				n = 0
			}
			for ; set != 0; set &= set - 1 {
				list[n&(gatherEntries-1)] = uint64(k)<<chunkBits | uint64(w<<6|bits.TrailingZeros64(set))
				n++
			}
		}
	}
	f(list[:n])
	t.warmed = byte(sum)
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
