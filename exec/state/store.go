package state

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"weir"
)

// Options say which part of the key space a store holds.
type Options struct {
	MaxParallelism int                // 0: weir.DefaultMaxParallelism
	KeyGroups      weir.KeyGroupRange // empty: all groups
	// Disk takes what does not fit into the share of Budget; nil: nothing is spilled.
	Disk   *Disk
	Budget *Budget
}

// A Layout is what a table keeps for each key.
type Layout struct {
	Key   Key
	Words int  // number of 64-bit words
	Blob  bool // a byte string too
}

// A Store is the keyed state of one operator's subtask. The task's loop owns it.
type Store struct {
	maxParallelism int
	keyGroups      weir.KeyGroupRange
	tables         []*Table  // in the order of their declaration
	generation     uint64    // grows with each cut; 0 while the store is restored
	disk           *Disk     // nil: nothing is spilled
	db             *database // where it spills to; nil: nothing was
	space          []byte    // the prefix of its keys on disk
	budget         *Budget   // nil: none
	size           int64     // as the budget knows it
	figures        figures
	shrinks        bool // until it is within its share
	shelf          *Shelf
	runs           [][]Piece    // of a restore
	old            bool         // restored from an older version, which knew one kind of keys
	open           atomic.Int64 // cuts not yet released
	slabs          sync.Pool    // of *slab, to make runs
	mu             struct {
		sync.Mutex
		cuts []openCut
	}
}

// An openCut is what a store knows of a cut that was not released.
type openCut struct {
	generation uint64
	aside      int64 // bytes that are kept for it alone
}

// New returns an empty store.
func New(o Options) *Store {
	if o.MaxParallelism == 0 {
		o.MaxParallelism = weir.DefaultMaxParallelism
	}
	if o.MaxParallelism < 0 || o.MaxParallelism > maxKeyGroups {
		panic(fmt.Sprintf("state: %d key groups, at most %d", o.MaxParallelism, maxKeyGroups))
	}
	if o.KeyGroups.Empty() {
		o.KeyGroups = weir.KeyGroupRange{End: o.MaxParallelism}
	}
	s := &Store{maxParallelism: o.MaxParallelism, keyGroups: o.KeyGroups, generation: 1, disk: o.Disk, budget: o.Budget}
	s.shelf = &Shelf{disk: o.Disk, budget: o.Budget}
	s.shelf.mu.files = map[string]bool{}
	return s
}

// Table returns the table of that name, which it creates unless it exists, declared
// before or restored. Another layout than it has breaks an invariant: operator ids and
// table names change when layouts do.
func (s *Store) Table(name string, l Layout) *Table {
	if t := s.find(name); t != nil {
		if t.layout.Words == l.Words && t.layout.Blob == l.Blob && t.layout.Key != l.Key && s.old {
			t.rekey(l)
		}
		if t.layout != l {
			panic(fmt.Sprintf("state: table %q is declared with layout %+v and has %+v", name, l, t.layout))
		}
		return t
	}
	t := newTable(s, name, l)
	s.tables = append(s.tables, t)
	return t
}

func (s *Store) find(name string) *Table {
	i := slices.IndexFunc(s.tables, func(t *Table) bool { return t.name == name })
	if i < 0 {
		return nil
	}
	return s.tables[i]
}

// isRead reports whether an open cut shows chunks of a generation. It is to keep so many bytes
// more of them for itself.
func (s *Store) isRead(generation uint64, aside int) bool {
	if s.open.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.mu.cuts {
		if c := &s.mu.cuts[i]; c.generation == generation {
			c.aside += int64(aside)
			return true
		}
	}
	return false
}

// aside is what is kept for open cuts alone.
func (s *Store) aside() (n int64) {
	if s.open.Load() == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.mu.cuts {
		n += c.aside
	}
	return n
}

// KeyGroups returns the key groups whose entries the store holds.
func (s *Store) KeyGroups() weir.KeyGroupRange { return s.keyGroups }

// Len returns the number of entries in all tables.
func (s *Store) Len() int {
	n := 0
	for _, t := range s.tables {
		n += t.Len()
	}
	return n
}
