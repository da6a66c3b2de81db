package state

import "sync/atomic"

// A Budget is the memory that the stores of a worker may take together. A store that has
// little takes what it needs; over the limit each may keep the same part of what it has. The
// zero value has no limit. It may be used from any goroutine.
type Budget struct {
	limit atomic.Int64 // bytes; 0: none
	used  atomic.Int64
}

// NewBudget returns a budget of so many bytes; 0: without a limit.
func NewBudget(limit int64) *Budget {
	b := &Budget{}
	b.limit.Store(limit)
	return b
}

// Limit returns the limit in bytes; 0: there is none.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// Used returns what all stores take, in bytes.
func (b *Budget) Used() int64 { return b.used.Load() }

// share is what a store of a size may keep.
func (b *Budget) share(size int64) int64 {
	limit, used := b.limit.Load(), b.used.Load()
	if limit == 0 || used <= limit {
		return size + max(limit-used, 0)
	}
	return int64(float64(size) * float64(limit) / float64(used))
}
