package state

import "sync/atomic"

// figures are what a store takes, for any goroutine.
type figures struct{ bytes, cold atomic.Int64 }

// Figures returns the bytes that the store takes in memory, and how many entries are on disk
// only, as of its last Relax. It may be called from any goroutine.
func (s *Store) Figures() (bytes, cold int64) { return s.figures.bytes.Load(), s.figures.cold.Load() }

// SetLimit changes the limit, in bytes; 0: there is none.
func (b *Budget) SetLimit(limit int64) { b.limit.Store(limit) }

// Held returns the bytes of the runs that no completed checkpoint holds yet, in memory.
func (c *Chain) Held() (n int64) {
	for _, r := range c.runs {
		for _, p := range r.pieces {
			n += p.held()
		}
	}
	return n
}
