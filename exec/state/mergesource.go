package state

import (
	"cmp"
	"errors"
	"fmt"
	"sort"

	"weir"
	"weir/checkpoint"
)

// A mergeSource is a piece on its way through a merge: a place in its block at hand, or, where it
// is put aside, its first place.
type mergeSource struct {
	handle         checkpoint.Handle
	age            int // a later piece has a higher one
	maxParallelism int
	open           func() (*source, error)

	from   *source // nil: it is put aside, or done
	table  string  // of the block at hand
	layout Layout
	rows   *columns // nil: put aside
	at     cursor
	to     int    // where what is taken of the block ends
	first  uint64 // the hash at hand, while it is put aside
	order  order
	done   bool // there is no block
}

// load gets the next block that holds something of the key groups.
func (s *mergeSource) load() (err error) {
	if s.from == nil {
		if s.from, err = s.open(); err != nil {
			return err
		}
		if s.from.version != formatVersion {
			return fmt.Errorf("%w: it is of version %d", weir.ErrInvalid, s.from.version)
		}
		s.order = order{}
	}
	for {
		payload, err := s.from.next()
		if err == nil && payload == nil {
			s.done = true
			return s.shut()
		}
		if err == nil {
			err = s.decode(payload)
		}
		if err != nil {
			return err
		}
		if s.at.i < s.to {
			return nil
		}
	}
}

func (s *mergeSource) decode(payload []byte) error {
	name, layout := s.from.name, s.from.layout
	if s.rows == nil || s.rows.layout != layout {
		s.rows = newColumns(layout)
	}
	if err := s.rows.read(payload); err != nil {
		return err
	}
	if err := s.order.check(name, s.rows); err != nil {
		return err
	}
	hashes := s.rows.hashes
	s.table, s.layout, s.at = name, layout, cursor{columns: s.rows}
	take, groups := s.handle.KeyGroups, s.maxParallelism
	from := sort.Search(len(hashes), func(i int) bool { return weir.KeyGroupOf(hashes[i], groups) >= take.Start })
	s.to = sort.Search(len(hashes), func(i int) bool { return weir.KeyGroupOf(hashes[i], groups) >= take.End })
	for s.at.i < from {
		s.at.next()
	}
	return nil
}

// put puts the piece aside, of which nothing but its first place was looked at.
func (s *mergeSource) put() error {
	if s.done {
		return nil
	}
	s.first = s.hash()
	return s.shut()
}

// resume opens the piece that was put aside.
func (s *mergeSource) resume() error {
	table, layout := s.table, s.layout
	if err := s.load(); err != nil {
		return err
	}
	if s.done || s.table != table || s.layout != layout || s.hash() != s.first {
		return damaged("it is another piece than it was")
	}
	return nil
}

// shut gives back what the piece takes.
func (s *mergeSource) shut() (err error) {
	if s.from != nil {
		err = s.from.shut()
	}
	s.from, s.rows, s.at = nil, nil, cursor{}
	return err
}

// hash is that of the entry at hand.
func (s *mergeSource) hash() uint64 {
	if s.rows == nil {
		return s.first
	}
	return s.rows.hashes[s.at.i]
}

// before orders pieces by the entry at hand, the latest first; where one of them is put aside, that
// one, so that it is opened before its entry counts.
func (s *mergeSource) before(other *mergeSource) bool {
	a, b := s.hash(), other.hash()
	switch {
	case a != b:
		return a < b
	case s.rows == nil || other.rows == nil:
		return s.rows == nil && other.rows != nil
	default:
		return cmp.Or(s.at.compare(&other.at), other.age-s.age) < 0
	}
}

func (m *merging) shut() error {
	var errs []error
	for _, s := range m.all {
		errs = append(errs, s.shut())
	}
	return errors.Join(errs...)
}
