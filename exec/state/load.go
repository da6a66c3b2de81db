package state

import (
	"fmt"
	"math"
	"sort"

	"weir"
	"weir/checkpoint"
)

// warmAhead is how many entries are looked up at a time.
const warmAhead = 256

// A loader lays the blocks of a restore into a store.
type loader struct {
	store  *Store
	tables map[string]*loading
	whole  int64 // bytes of the pieces that are no deltas
	key    []byte
}

// A loading is a table that is restored. An entry of a hash above top is not there: so
// whole runs, which ascend, are appended and not looked for.
type loading struct {
	*Table
	any bool
	top uint64 // of all that was laid
}

func newLoader(s *Store, handles []checkpoint.Handle) *loader {
	l := &loader{store: s, tables: map[string]*loading{}}
	for _, h := range handles {
		if !h.Delta {
			l.whole += h.Size
		}
	}
	return l
}

// block lays one block of a piece over what is there.
func (l *loader) block(f *fetch, b *block) error {
	t := l.tables[b.table]
	if t == nil {
		t = &loading{Table: l.store.find(b.table)}
		if t.Table == nil {
			t.Table = l.store.Table(b.table, b.layout)
		}
		l.tables[b.table] = t
	}
	if t.layout != b.layout {
		return fmt.Errorf("%w: table %q has layout %v there and %v here", weir.ErrInvalid, b.table, b.layout, t.layout)
	}
	take := f.handle.KeyGroups
	if b.old {
		return l.entries(t, b, take, 0, b.len(), false)
	}
	from, to := taken(b.hashes, take, l.store.maxParallelism)
	if from == to {
		return nil
	}
	fresh := !t.any || b.hashes[from] > t.top
	if !t.any && !f.handle.Delta {
		t.index.reserve(l.expected(f, b))
	}
	t.any, t.top = true, max(t.top, b.hashes[to-1])
	if b.layout.Key != IntKey {
		return l.entries(t, b, take, from, to, fresh)
	}
	if fresh && len(b.gone) == 0 && b.null == 0 {
		t.addInts(b.columns, from, to)
	} else {
		l.numbers(t.Table, b.columns, from, to)
	}
	if t.layout.Blob {
		l.numberBlobs(t.Table, b.columns, from, to)
	}
	return nil
}

// expected is about how many entries the table will have, by the first block of it; rather
// too few.
func (l *loader) expected(f *fetch, b *block) int {
	perByte := float64(b.len()) / float64(b.bytes+blockHeader)
	size := float64(l.whole)
	if f.handle.Trimmed {
		size *= float64(f.bytes) / float64(max(f.handle.Size, 1))
	}
	return int(min(perByte*size*0.95, 1<<30, float64(l.store.fits())/entrySize))
}

// taken are the entries whose key groups are wanted, since hashes ascend.
func taken(hashes []uint64, take weir.KeyGroupRange, groups int) (from, to int) {
	n := len(hashes)
	if weir.KeyGroupOf(hashes[0], groups) >= take.Start && weir.KeyGroupOf(hashes[n-1], groups) < take.End {
		return 0, n
	}
	from = sort.Search(n, func(i int) bool { return weir.KeyGroupOf(hashes[i], groups) >= take.Start })
	to = sort.Search(n, func(i int) bool { return weir.KeyGroupOf(hashes[i], groups) >= take.End })
	return from, max(from, to)
}

// numbers lays a block of a table of numbers over it.
func (l *loader) numbers(t *Table, r *columns, from, to int) {
	for i := from; i < to; i++ {
		if (i-from)%warmAhead == 0 {
			t.warm(r.hashes[i:min(i+warmAhead, to)])
		}
		var slot int
		isNull := r.null == i+1
		if r.isGone(i) {
			l.key = appendIntKey(l.key[:0], int64(r.ints[i]), isNull)
			if slot, ok := t.Find(r.hashes[i], l.key); ok {
				t.Delete(slot)
			}
			continue
		}
		if isNull {
			slot, _ = t.upsertNull()
		} else {
			slot, _ = t.upsertInt(r.hashes[i], int64(r.ints[i]))
		}
		t.setWords(slot, &cursor{columns: r, i: i})
	}
}

// numberBlobs sets the blobs of a block of numbers.
func (l *loader) numberBlobs(t *Table, r *columns, from, to int) {
	for at := (cursor{columns: r}); at.i < to; at.next() {
		if at.i < from || r.isGone(at.i) {
			continue
		}
		l.key = appendIntKey(l.key[:0], int64(at.ints[at.i]), at.null == at.i+1)
		if slot, ok := t.Find(at.hashes[at.i], l.key); ok {
			t.SetBlob(slot, at.blobBytes())
		}
	}
}

// setWords sets the words of an entry.
func (t *Table) setWords(slot int, at *cursor) {
	w := t.own(slot).at(t.rec, slot&chunkMask)[t.rec.words:]
	for i := range w {
		w[i] = at.words[i][at.i]
	}
}

// entries lays a block of a table of encoded keys over it; fresh: none of them is there. In a
// block of the first version each has to be new, and they do not ascend.
func (l *loader) entries(t *loading, b *block, take weir.KeyGroupRange, from, to int, fresh bool) error {
	for at := (cursor{columns: b.columns}); at.i < to; at.next() {
		if at.i%warmAhead == 0 && !fresh {
			t.warm(b.hashes[at.i:min(at.i+warmAhead, to)])
		}
		hash := at.hashes[at.i]
		if at.i < from || b.old && !take.Contains(weir.KeyGroupOf(hash, l.store.maxParallelism)) {
			continue
		}
		if at.isGone(at.i) {
			if slot, ok := t.Find(hash, at.keyBytes()); ok {
				t.Delete(slot)
			}
			continue
		}
		var slot int
		if fresh {
			slot = t.insertKey(hash, at.keyBytes())
		} else {
			var isNew bool
			if slot, isNew = t.Upsert(hash, at.keyBytes()); b.old && !isNew {
				return damaged("a key of key group %d is there twice", weir.KeyGroupOf(hash, l.store.maxParallelism))
			}
			t.any, t.top = true, max(t.top, hash)
		}
		t.setWords(slot, &at)
		if t.layout.Blob {
			t.SetBlob(slot, at.blobBytes())
		}
	}
	return nil
}

// addInts adds entries of a block of numbers of which none is there, nor NULL or gone.
func (t *Table) addInts(r *columns, from, to int) {
	for from < to {
		slot := t.used
		at := slot & chunkMask
		n := min(chunkSlots-at, to-from)
		if slot > math.MaxInt32-n {
			panic("state: a table of more than 2^31 entries")
		}
		if at == 0 {
			t.addChunk()
		}
		c := t.own(slot)
		before := c.size()
		c.reserve(t.rec, slot+n-1)
		t.size += c.size() - before
		t.used += n
		c.live.addRange(at, at+n)
		c.born.addRange(at, at+n)
		c.dirty.addRange(at, at+n)
		stride := t.rec.stride
		records := c.records[at*stride:]
		for i, x := range r.ints[from : from+n] {
			records[i*stride] = x
		}
		for w, words := range r.words {
			for i, x := range words[from : from+n] {
				records[i*stride+t.rec.words+w] = x
			}
		}
		t.index.addAll(r.hashes[from:from+n], slot)
		from += n
	}
}
