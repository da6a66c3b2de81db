package state

import "errors"

// How much is spilled at a time.
const (
	spareSlots  = 4 << 10 // kept free over the budget, for entries to come
	spillSlots  = 64 << 10
	shrinkSlots = 128 // chunks
)

// ErrDirty says that what could be spilled has still to be shown by a cut: take one.
var ErrDirty = errors.New("all of the state has changed since the last cut")

// Relax keeps the store within its share of the budget: entries that were written to
// longest ago go to disk. It belongs between two batches, on the loop. What a batch
// allocates is beyond the share until then.
func (s *Store) Relax() error {
	if s.budget == nil {
		return nil
	}
	size := s.account()
	share := s.budget.share(size)
	if size <= share || s.disk == nil {
		return nil
	}
	for size > share+share/8 {
		n, err := s.shrink()
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		size = s.account()
	}
	var errs []error
	for _, t := range s.tables {
		if t.pinned || len(t.free) >= spareSlots || t.index.n < spareSlots {
			continue
		}
		n, err := t.spill(min(spillSlots, t.index.n/4))
		if err == nil && n == 0 {
			err = ErrDirty
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// shrink drops chunks of the largest table that may be spilled.
func (s *Store) shrink() (int, error) {
	var largest *Table
	for _, t := range s.tables {
		if !t.pinned && (largest == nil || t.bytes() > largest.bytes()) {
			largest = t
		}
	}
	if largest == nil {
		return 0, nil
	}
	return largest.shrink(shrinkSlots)
}

// account tells the budget what the store takes.
func (s *Store) account() int64 {
	var size, cold int64
	for _, t := range s.tables {
		size += t.bytes()
		if t.cold != nil {
			cold += int64(t.cold.n)
		}
	}
	s.budget.used.Add(size - s.size)
	s.size = size
	s.figures.bytes.Store(size)
	s.figures.cold.Store(cold)
	return size
}

// Close gives back what the store takes of the budget and of the disk. It is not used
// any more.
func (s *Store) Close() error {
	if s.budget != nil {
		s.budget.used.Add(-s.size)
		s.size = 0
	}
	if s.space == nil {
		return nil
	}
	return s.disk.drop(s.space)
}
