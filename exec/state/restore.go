package state

import (
	"context"
	"encoding/binary"
	"errors"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// Restore fills an empty store from the handles of one snapshot, whoever wrote them: each
// is laid over those before it, trimmed to its key groups and the store's (S5). Tables come
// to be as they were written; the operator's Table finds them. It returns the handles that
// the next run may be laid over; none, if pieces were of an older version: then all
// entries count as changed, as after RestoreAnew. What does not fit in the store's share of
// the budget is spilled on the way. After an error the store is useless.
func (s *Store) Restore(ctx context.Context, blobs blob.Store, handles []checkpoint.Handle) (base []checkpoint.Handle, err error) {
	generation := s.generation
	s.generation = 0
	if base, err = s.restore(ctx, blobs, handles, generation); err != nil {
		return nil, err
	}
	if s.old {
		if s.generation == 0 { // there is no entry
			s.generation = generation
		}
		return nil, nil
	}
	s.generation = generation
	for _, t := range s.tables {
		t.clean()
	}
	return base, nil
}

// RestoreAnew is Restore such that every entry counts as changed: the next snapshot shows the
// whole store, and is laid over nothing. What had to be spilled on the way is in Runs.
func (s *Store) RestoreAnew(ctx context.Context, blobs blob.Store, handles []checkpoint.Handle) error {
	_, err := s.restore(ctx, blobs, handles, s.generation)
	return err
}

// Runs are what had to be cut of a store while it was restored, to be spilled: runs that lie
// below that of the next cut, oldest first.
func (s *Store) Runs() [][]Piece { return s.runs }

func (s *Store) restore(ctx context.Context, blobs blob.Store, handles []checkpoint.Handle, generation uint64) (base []checkpoint.Handle, err error) {
	if s.Len() > 0 {
		panic("state: restore into a store with entries")
	}
	for _, h := range handles {
		if h, ok := h.Trim(s.keyGroups); ok {
			base = append(base, h)
		}
	}
	l := newLoader(s, base)
	return base, fetchAll(ctx, blobs, base, s.maxParallelism, func(f *fetch, b *block) error {
		if b.old && !s.old {
			s.old = true
			if err := s.begin(generation); err != nil {
				return err
			}
		}
		if err := l.block(f, b); err != nil {
			return err
		}
		return s.relaxLoad()
	}, func(f *fetch) { s.old = s.old || f.version < formatVersion })
}

// begin has what is restored count as changed from here on, and what was so far.
func (s *Store) begin(generation uint64) error {
	for _, t := range s.tables {
		if t.cold != nil {
			return damaged("pieces of several versions, and not enough memory to load them")
		}
	}
	s.generation = generation
	s.touch()
	return nil
}

// relaxLoad is Relax between two blocks of a restore. What an older version wrote stays in memory, as
// it did then: its tables have not their kind of keys yet.
func (s *Store) relaxLoad() error {
	if s.old {
		return nil
	}
	err := s.Relax()
	if !errors.Is(err, ErrDirty) || s.generation == 0 {
		return err
	}
	cut := s.Cut()
	cut.entries = -1 // it is never whole: its deletions are those of what runs before it have
	run, err := cut.Write(s.shelf)
	if err != nil {
		return err
	}
	s.runs = append(s.runs, run)
	return s.Relax()
}

// clean makes all that was restored unchanged.
func (t *Table) clean() {
	for _, c := range t.chunks {
		c.generation, c.dirty, c.born = 0, slotSet{}, slotSet{}
	}
	t.dirty, t.gone = nil, goneKeys{}
}

// touch makes every entry count as changed. None is on disk, and no cut is open.
func (s *Store) touch() {
	for _, t := range s.tables {
		t.dirty, t.gone = t.dirty[:0:0], goneKeys{}
		for _, c := range t.chunks {
			c.generation, c.dirty, c.born = s.generation, c.live, c.live
			t.dirty = append(t.dirty, c)
		}
	}
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
	c.keys, c.blobs = nil, nil // those of a newer block lie in its piece
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
