package state

import (
	"errors"
	"math"
)

// How much is spilled at a time.
const (
	spareSlots   = 4 << 10 // kept free near the limit, for entries to come
	spillSlots   = 64 << 10
	spillPart    = 8 // of those in memory, at most
	shrinkChunks = spillSlots >> chunkBits
	graveSize    = 80 // bytes of one, about
	filterPart   = 2  // of a store's share: filters grow to half of it at most
)

// ErrDirty says that what could be spilled has still to be shown by a cut: take one, and
// have a run made of it.
var ErrDirty = errors.New("all of the state has changed since the last cut")

// Relax keeps the store within its share of the budget: near the limit, entries that were
// written to longest ago go to disk and leave their slots to others; over it, whole chunks
// do. It belongs between two batches, on the loop. What a batch allocates is beyond the
// share until then. It costs next to nothing below the limit, or without one.
func (s *Store) Relax() error {
	if s.budget == nil {
		return nil
	}
	size := s.account()
	if s.disk == nil || !s.budget.near() {
		s.shrinks = false
		return nil
	}
	return s.relax(size, s.budget.share(size))
}

func (s *Store) relax(size, share int64) error {
	if s.halveFilters(share) {
		size = s.account()
	}
	s.shrinks = size > share && (s.shrinks || size > share+share/8)
	spilled, stuck := 0, false
	for _, t := range s.tables {
		if t.pinned {
			continue
		}
		n := 0
		var err error
		if s.shrinks {
			if n, err = s.shrink(t, share); err != nil {
				return err
			}
			stuck = stuck || n == 0 && t.index.n > 0
		}
		if n == 0 && len(t.free) < spareSlots && t.index.n >= spareSlots {
			if n, err = t.spill(min(spillSlots, max(t.index.n/spillPart, spareSlots))); err != nil {
				return err
			}
			stuck = stuck || n == 0
		}
		if n == 0 && t.cold != nil && len(t.cold.graves) > spillSlots {
			if err := t.evict(nil); err != nil {
				return err
			}
		}
		if t.cold != nil {
			if err := t.sift(); err != nil {
				return err
			}
		}
		spilled += n
	}
	s.account()
	if stuck && spilled == 0 && s.waits() {
		return ErrDirty
	}
	return nil
}

const entrySize = 32 // bytes of a small one, about, with its place in the index

// fits is how many bytes the store may grow by.
func (s *Store) fits() int64 {
	if s.budget == nil || s.disk == nil || s.budget.Limit() == 0 {
		return math.MaxInt64
	}
	size := s.account()
	return max(s.budget.share(size)-size, 0)
}

// shrink drops chunks of a table until the store is within its share: while all may be
// spilled, since the last ones are written to again in the next batch.
func (s *Store) shrink(t *Table, share int64) (all int, err error) {
	for {
		over := s.account() - share
		if over <= 0 {
			return all, nil
		}
		n, err := t.shrink(shrinkChunks, over)
		if n == 0 || err != nil {
			return all, err
		}
		all += n
	}
}

// Over reports whether the store is beyond its share by more than what is to be expected
// between two calls of Relax.
func (s *Store) Over() bool {
	if s.disk == nil || s.budget == nil || !s.budget.near() {
		return false
	}
	size := s.account()
	share := s.budget.share(size)
	return size > share+share/4
}

// waits reports whether a cut, or the end of one, makes entries spillable that are not.
func (s *Store) waits() bool {
	if s.open.Load() > 0 {
		return true
	}
	for _, t := range s.tables {
		if !t.pinned && len(t.dirty) > 0 {
			return true
		}
	}
	return false
}

// account tells the budget what the store takes.
func (s *Store) account() int64 {
	size, cold := s.aside(), int64(0)
	for _, t := range s.tables {
		size += t.bytes()
		if t.cold != nil {
			cold += int64(t.cold.n)
		}
	}
	if size != s.size {
		s.budget.used.Add(size - s.size)
		s.size = size
		s.figures.bytes.Store(size)
	}
	s.figures.cold.Store(cold)
	return size
}

// rest lets the disk give up the files that reads keep.
func (s *Store) rest() (err error) {
	for _, t := range s.tables {
		if t.cold != nil {
			err = errors.Join(err, t.cold.look.end())
		}
	}
	return err
}

// Close gives back what the store takes of the budget and of the disk. It is not used
// any more, nor is its shelf.
func (s *Store) Close() error {
	if s.budget != nil {
		s.budget.used.Add(-s.size)
		s.size = 0
	}
	err := s.shelf.close()
	if s.db == nil {
		return err
	}
	return errors.Join(err, s.rest(), s.db.drop(s.space))
}
