package state

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// restoreBuffer is what of a piece is read at a time.
const restoreBuffer = 1 << 18

// Restore fills an empty store from the handles of one snapshot, whoever wrote them: each
// is laid over those before it, trimmed to its key groups and the store's (S5). Tables come
// to be as they were written; the operator's Table finds them. It returns the handles that
// the next run may be laid over; none, if pieces were of an older version: then all
// entries count as changed. After an error the store is useless.
func (s *Store) Restore(ctx context.Context, blobs blob.Store, handles []checkpoint.Handle) (base []checkpoint.Handle, err error) {
	if s.Len() > 0 {
		panic("state: restore into a store with entries")
	}
	generation := s.generation
	s.generation = 0
	for _, h := range handles {
		h.KeyGroups = h.KeyGroups.Intersect(s.keyGroups)
		if h.KeyGroups.Empty() {
			continue
		}
		version, err := s.load(ctx, blobs, h)
		if err != nil {
			return nil, fmt.Errorf("restore state from %s: %w", nameOf(h), err)
		}
		s.old = s.old || version < formatVersion
		base = append(base, h)
	}
	s.generation = generation
	for _, t := range s.tables {
		t.clean()
	}
	if s.old {
		s.Touch()
		base = nil
	}
	return base, nil
}

// clean makes all that was restored unchanged.
func (t *Table) clean() {
	for _, c := range t.chunks {
		c.generation, c.dirty, c.born = 0, slotSet{}, slotSet{}
	}
	t.dirty, t.gone = nil, goneKeys{}
}

// Touch makes every entry count as changed: the next cut shows the whole store, and is
// laid over nothing.
func (s *Store) Touch() {
	for _, t := range s.tables {
		t.dirty, t.gone = t.dirty[:0:0], goneKeys{}
		for i, c := range t.chunks {
			if s.isRead(c.generation) {
				c = c.clone()
				t.chunks[i] = c
			}
			c.generation, c.dirty, c.born = s.generation, c.live, c.live
			t.dirty = append(t.dirty, c)
		}
	}
}

// load lays one piece over what is there.
func (s *Store) load(ctx context.Context, blobs blob.Store, h checkpoint.Handle) (version byte, err error) {
	from, err := openSource(ctx, blobs, h, s.maxParallelism, restoreBuffer)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.shut()) }()
	l := loader{store: s, take: h.KeyGroups}
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		payload, err := from.next()
		if err != nil || payload == nil {
			return from.version, err
		}
		if err := l.block(from, payload); err != nil {
			return 0, err
		}
	}
}

// A loader puts the blocks of one piece into a store.
type loader struct {
	store *Store
	take  weir.KeyGroupRange
	table *Table
	rows  *columns
	last  uint64 // hash of the last entry of the table so far
	first bool   // no entry of the table so far
	key   []byte // scratch
}

func (l *loader) block(from *source, payload []byte) error {
	if l.table == nil || l.table.name != from.name {
		if l.table = l.store.find(from.name); l.table == nil {
			l.table = l.store.Table(from.name, from.layout)
		}
		l.rows, l.first = newColumns(from.layout), true
	}
	if l.table.layout != from.layout {
		return fmt.Errorf("%w: table %q has layout %v there and %v here", weir.ErrInvalid, from.name, from.layout, l.table.layout)
	}
	if from.version == 1 {
		if err := l.rows.readV1(payload, l.store.maxParallelism); err != nil {
			return err
		}
	} else if err := l.rows.read(payload); err != nil {
		return err
	} else if err := l.ascends(); err != nil {
		return err
	}
	if from.version == 1 || l.table.layout.Key != IntKey {
		return l.entries(from.version == 1)
	}
	l.numbers()
	return nil
}

// ascends checks that hashes do; keys of one hash are checked where there are some.
func (l *loader) ascends() error {
	r := l.rows
	n := r.len()
	if n == 0 {
		return damaged("a block of no entries")
	}
	if !l.first && r.hashes[0] < l.last {
		return damaged("table %q does not ascend", l.table.name)
	}
	at := cursor{columns: r}
	for i := 1; i < n; i++ {
		if r.hashes[i] > r.hashes[i-1] {
			continue
		}
		for at.i < i-1 {
			at.next()
		}
		before := at
		if at.next(); before.compare(&at) >= 0 {
			return damaged("table %q does not ascend", l.table.name)
		}
	}
	l.last, l.first = r.hashes[n-1], false
	return nil
}

// taken are the entries of the block whose key groups are wanted, since they ascend.
func (l *loader) taken() (from, to int) {
	hashes, groups := l.rows.hashes, l.store.maxParallelism
	from = sort.Search(len(hashes), func(i int) bool { return weir.KeyGroupOf(hashes[i], groups) >= l.take.Start })
	to = sort.Search(len(hashes), func(i int) bool { return weir.KeyGroupOf(hashes[i], groups) >= l.take.End })
	return from, to
}

// numbers lays a block of a table of numbers over it.
func (l *loader) numbers() {
	t, r := l.table, l.rows
	from, to := l.taken()
	for i := from; i < to; i++ {
		var slot int
		isNull := r.null == i+1
		if r.isGone(i) {
			ok := t.null > 0
			if slot = t.null - 1; !isNull {
				slot, ok = t.findInt(r.hashes[i], int64(r.ints[i]))
			}
			if ok {
				t.Delete(slot)
			}
			continue
		}
		if isNull {
			slot, _ = t.upsertNull()
		} else {
			slot, _ = t.upsertInt(r.hashes[i], int64(r.ints[i]))
		}
		l.values(&cursor{columns: r, i: i}, slot)
	}
	if t.layout.Blob {
		l.numberBlobs(from, to)
	}
}

// numberBlobs sets the blobs of a block of numbers.
func (l *loader) numberBlobs(from, to int) {
	for at := (cursor{columns: l.rows}); at.i < to; at.next() {
		if at.i < from || l.rows.isGone(at.i) {
			continue
		}
		l.key = appendIntKey(l.key[:0], int64(at.ints[at.i]), at.null == at.i+1)
		if slot, ok := l.table.Find(at.hashes[at.i], l.key); ok {
			l.table.SetBlob(slot, at.blobBytes())
		}
	}
}

// values sets the words of an entry.
func (l *loader) values(at *cursor, slot int) {
	c := l.table.chunks[slot>>chunkBits]
	w := c.at(l.table.rec, slot&chunkMask)[l.table.rec.words:]
	for i := range w {
		w[i] = at.words[i][at.i]
	}
}

// entries lays a block of a table of encoded keys over it; fresh: each is new.
func (l *loader) entries(fresh bool) error {
	t := l.table
	for at := (cursor{columns: l.rows}); at.i < l.rows.len(); at.next() {
		hash := at.hashes[at.i]
		if !l.take.Contains(weir.KeyGroupOf(hash, l.store.maxParallelism)) {
			continue
		}
		if at.isGone(at.i) {
			if slot, ok := t.Find(hash, at.keyBytes()); ok {
				t.Delete(slot)
			}
			continue
		}
		slot, isNew := t.Upsert(hash, at.keyBytes())
		if fresh && !isNew {
			return damaged("a key of key group %d is there twice", weir.KeyGroupOf(hash, l.store.maxParallelism))
		}
		l.values(&at, slot)
		if t.layout.Blob {
			t.SetBlob(slot, at.blobBytes())
		}
	}
	return nil
}

// rekey gives the table another kind of keys.
func (t *Table) rekey(l Layout) {
	old := *t
	*t = *newTable(t.store, t.name, l)
	old.Range(func(slot int) bool {
		to, _ := t.Upsert(old.Hash(slot), old.Key(slot))
		copy(t.Words(to), old.ReadWords(slot))
		if l.Blob {
			t.SetBlob(to, old.Blob(slot))
		}
		return true
	})
}

// headerV1 reads the header of a table of version 1: key groups in all (4), words (4),
// blob (1), entries (8), name.
func (s *source) headerV1(p []byte) error {
	const fixed = 4 + 4 + 1 + 8
	if len(p) < fixed {
		return damaged("a table block of %d bytes", len(p))
	}
	return s.begin(string(p[fixed:]), binary.LittleEndian.Uint32(p), byte(AnyKey), binary.LittleEndian.Uint32(p[4:]), p[8])
}

// readV1 reads a block of entries of version 1: count (4), hashes (8 each), lengths of the
// state keys (4 each), state keys (key group, 2 bytes big-endian, and key), words (entry by
// entry), and with blobs their lengths (4 each) and bytes.
func (c *columns) readV1(p []byte, maxParallelism int) error {
	const groupSize = 2
	c.reset()
	r := columnReader{rest: p}
	n := int(r.uint32())
	if n > len(p)/(8+4) {
		return damaged("a block of %d entries does not hold together", n)
	}
	hashes, sizes := r.take(8*n), r.take(4*n)
	if r.bad {
		return damaged("a block of %d entries does not hold together", n)
	}
	for i := range n {
		hash, size := binary.LittleEndian.Uint64(hashes[8*i:]), int(binary.LittleEndian.Uint32(sizes[4*i:]))
		key := r.take(size)
		if r.bad || size < groupSize || int(binary.BigEndian.Uint16(key)) != weir.KeyGroupOf(hash, maxParallelism) {
			return damaged("a key that is not of key group %d", weir.KeyGroupOf(hash, maxParallelism))
		}
		c.hashes = append(c.hashes, hash)
		c.keys, c.sizes = append(c.keys, key[groupSize:]...), append(c.sizes, uint64(size-groupSize))
	}
	for range n {
		for w := range c.words {
			c.words[w] = append(c.words[w], r.uint64())
		}
	}
	if c.layout.Blob {
		for lengths := r.take(4 * n); len(lengths) >= 4 && !r.bad; lengths = lengths[4:] {
			c.lengths = append(c.lengths, uint64(binary.LittleEndian.Uint32(lengths)))
		}
		for _, length := range c.lengths {
			c.blobs = append(c.blobs, r.take(int(length))...)
		}
	}
	if r.bad || len(r.rest) != 0 {
		return damaged("a block of %d entries does not hold together", n)
	}
	return nil
}
