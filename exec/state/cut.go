package state

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"weir"
)

// A Cut is what one generation changed in a store, as it was when the generation ended
// (S1). Another goroutine than the store's may read it. Release ends it; it must be called,
// once or more.
type Cut struct {
	store          *Store // only its list of open cuts and its slabs are touched
	generation     uint64
	maxParallelism int
	keyGroups      weir.KeyGroupRange
	tables         []cutTable
	entries        int // of the whole store
	whole          bool
	released       atomic.Bool
}

// A cutTable is what changed in one table. Nobody writes to its chunks while the cut is open.
type cutTable struct {
	name   string
	layout Layout
	rec    recordLayout
	chunks []*chunk
	gone   goneKeys
	null   bool // that key is among what changed
	warmed byte // what warm reads, so that it is read
}

// Cut ends the generation and takes a cut of it. It belongs between two batches, on the loop.
func (s *Store) Cut() *Cut {
	c := &Cut{store: s, generation: s.generation, maxParallelism: s.maxParallelism, keyGroups: s.keyGroups, entries: s.Len()}
	aside := int64(0)
	for _, t := range s.tables {
		if len(t.dirty) > 0 || len(t.gone.hashes) > 0 {
			c.tables = append(c.tables, cutTable{name: t.name, layout: t.layout, rec: t.rec, chunks: t.dirty, gone: t.gone, null: t.nullChanged()})
			aside += t.gone.size()
			t.dirty, t.gone = nil, goneKeys{}
		}
	}
	if s.db != nil {
		_ = s.rest() // who could not read was told
	}
	s.generation++
	if len(c.tables) == 0 {
		c.released.Store(true)
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.cuts = append(s.mu.cuts, openCut{c.generation, aside})
	s.open.Add(1)
	return c
}

// nullChanged reports whether the number NULL is among what the generation changed.
func (t *Table) nullChanged() bool {
	if t.null == 0 {
		return false
	}
	c := t.chunks[(t.null-1)>>chunkBits]
	return c.generation == t.store.generation && c.dirty.has((t.null-1)&chunkMask)
}

// isWhole reports whether every entry of the store has changed. It looks at chunks until too many of
// their slots have not.
func (c *Cut) isWhole() bool {
	more := -c.entries // slots than entries
	for i := range c.tables {
		more += len(c.tables[i].chunks) * chunkSlots
	}
	for i := range c.tables {
		for _, chunk := range c.tables[i].chunks {
			if more < 0 {
				return false
			}
			more -= chunkSlots
			for w := range chunk.dirty {
				more += bits.OnesCount64(chunk.dirty[w])
			}
		}
	}
	return more == 0 && c.entries > 0
}

// Whole reports, once the cut is a run, whether that has every entry of the store.
func (c *Cut) Whole() bool { return c.whole }

// Release ends the cut: its memory may be written to again. It may be called from any
// goroutine, but not while the cut is read.
func (c *Cut) Release() {
	if c.released.Swap(true) {
		return
	}
	c.tables = nil
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.store.mu.cuts = slices.DeleteFunc(c.store.mu.cuts, func(o openCut) bool { return o.generation == c.generation })
	c.store.open.Add(-1)
}
