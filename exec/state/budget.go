package state

import "sync/atomic"

// A Budget is the memory that the stores of a worker may take together. A store that has
// little takes what it needs; over the limit each may keep the same part of what it has. The
// zero value has no limit. It may be used from any goroutine.
type Budget struct {
	limit atomic.Int64 // bytes; 0: none
	used  atomic.Int64
	runs  atomic.Int64 // what of used are runs that storage does not have yet
}

// NewBudget returns a budget of so many bytes; 0: without a limit.
func NewBudget(limit int64) *Budget {
	b := &Budget{}
	b.limit.Store(limit)
	return b
}

// Limit returns the limit in bytes; 0: there is none.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// Used returns what all stores take, in bytes, with their runs that storage does not have yet.
func (b *Budget) Used() int64 { return b.used.Load() + b.runs.Load() }

// runsPart is the part of the budget, one over it, that is kept for runs which storage does
// not have yet.
const runsPart = 8

// holds takes n bytes of runs into memory, if they have so much left of their part.
func (b *Budget) holds(n int64) bool {
	limit := b.limit.Load()
	if all := b.runs.Add(n); limit > 0 && all > limit/runsPart {
		b.runs.Add(-n)
		return false
	}
	return true
}

// near reports whether all stores together are about to have all of it.
func (b *Budget) near() bool {
	limit := b.limit.Load()
	most := limit - limit/runsPart
	return limit > 0 && b.used.Load() > most-most/16
}

// Over reports whether all stores together have more than they may: each that looks (Relax) gives
// some back.
func (b *Budget) Over() bool {
	limit := b.limit.Load()
	return limit > 0 && b.used.Load() > limit-limit/runsPart
}

// share is what a store of a size may keep.
func (b *Budget) share(size int64) int64 {
	limit, used := b.limit.Load(), b.used.Load()
	limit -= limit / runsPart
	if limit == 0 || used <= limit {
		return size + max(limit-used, 0)
	}
	return int64(float64(size) * float64(limit) / float64(used))
}
