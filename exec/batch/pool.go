package batch

import (
	"slices"
	"sync"
)

// A Pool recycles batches of one schema. A task owns it, and takes batches from it;
// whoever is the last to own such a batch, in any goroutine, gives it back.
type Pool struct {
	kinds    []Physical
	capacity int
	free     sync.Pool
}

// NewPool returns a pool of batches with these columns and room for capacity rows.
func NewPool(kinds []Physical, capacity int) *Pool {
	return &Pool{kinds: slices.Clone(kinds), capacity: capacity}
}

// Get returns an empty batch.
func (p *Pool) Get() *Batch {
	if b, ok := p.free.Get().(*Batch); ok {
		return b
	}
	b := New(p.kinds, p.capacity)
	b.pool = p
	return b
}

// Put takes a batch back, whether it came from this pool or was decoded into. One
// whose columns were exchanged for others of another layout is dropped.
func (p *Pool) Put(b *Batch) {
	if len(b.Columns) != len(p.kinds) {
		return
	}
	for i := range b.Columns {
		if b.Columns[i].Physical != p.kinds[i] {
			return
		}
	}
	b.Reset()
	b.pool = p
	p.free.Put(b)
}
