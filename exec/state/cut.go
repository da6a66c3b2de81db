package state

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// A Cut is the content of a store at one moment (S1). Another goroutine than the
// store's may write it. Release ends it; it must be called, once or more.
type Cut struct {
	store          *Store // only its counter of open cuts is touched
	maxParallelism int
	keyGroups      weir.KeyGroupRange
	tables         []cutTable
	released       atomic.Bool
}

// A cutTable is one table's content. Nobody writes to its chunks while the cut is open.
type cutTable struct {
	name   string
	layout Layout
	rec    recordLayout
	chunks []*chunk
	order  groupOrder // set by Write
}

// Cut takes a cut. It belongs between two batches, on the loop.
func (s *Store) Cut() *Cut {
	c := &Cut{store: s, maxParallelism: s.maxParallelism, keyGroups: s.keyGroups}
	for _, t := range s.tables {
		if t.Len() > 0 {
			c.tables = append(c.tables, cutTable{name: t.name, layout: t.layout, rec: t.rec, chunks: slices.Clone(t.chunks)})
		}
	}
	s.generation++
	s.open.Add(1)
	return c
}

// Release ends the cut: its memory may be written to again. It may be called from any
// goroutine, but not while Write runs.
func (c *Cut) Release() {
	if !c.released.Swap(true) {
		c.tables = nil
		c.store.open.Add(-1)
	}
}

// Limits of a snapshot's pieces, in bytes.
const (
	InlineLimit = 8 << 10  // up to this size a whole snapshot travels inside the handle
	objectSize  = 64 << 20 // aimed at by an object; a key group is never divided
)

// Write stores the cut as objects named prefix0, prefix1, … (prefix is
// checkpoint.StateKey without its last number) and returns their handles in the order
// of their key groups, which together are the store's. A small cut is one inline
// handle; an empty one has none. It runs off the loop, while the store is written to.
func (c *Cut) Write(ctx context.Context, blobs blob.Store, prefix string) ([]checkpoint.Handle, error) {
	return c.write(ctx, blobs, prefix, objectSize)
}

func (c *Cut) write(ctx context.Context, blobs blob.Store, prefix string, objectSize int) ([]checkpoint.Handle, error) {
	for i := range c.tables {
		t := &c.tables[i]
		t.order = order(t.chunks, t.rec, c.keyGroups, c.maxParallelism)
	}
	var handles []checkpoint.Handle
	for n, p := range c.pieces(objectSize) {
		e := newEncoder(ctx, c, p)
		if p.size <= InlineLimit && p.groups == c.keyGroups {
			data, err := io.ReadAll(e)
			if err != nil {
				return nil, fmt.Errorf("encode state: %w", err)
			}
			if len(data) <= InlineLimit {
				return []checkpoint.Handle{e.handle("", data)}, nil
			}
			e = newEncoder(ctx, c, p)
		}
		key := fmt.Sprintf("%s%d", prefix, n)
		if err := blobs.Put(ctx, key, e); err != nil {
			return nil, fmt.Errorf("store %s: %w", key, err)
		}
		if !e.done() {
			return nil, fmt.Errorf("store %s: the object store took %d bytes and not all", key, e.written)
		}
		handles = append(handles, e.handle(key, nil))
	}
	return handles, nil
}

// A piece is a range of key groups that goes into one object.
type piece struct {
	groups weir.KeyGroupRange
	size   int // of its entries, without what is around them
}

// pieces divides the key groups into objects. No entries: no pieces.
func (c *Cut) pieces(objectSize int) []piece {
	if len(c.tables) == 0 {
		return nil
	}
	var list []piece
	p := piece{groups: weir.KeyGroupRange{Start: c.keyGroups.Start}}
	for g := range c.keyGroups.End - c.keyGroups.Start {
		for i := range c.tables {
			p.size += c.tables[i].order.bytes[g]
		}
		p.groups.End = c.keyGroups.Start + g + 1
		if p.size >= objectSize || p.groups.End == c.keyGroups.End {
			list = append(list, p)
			p = piece{groups: weir.KeyGroupRange{Start: p.groups.End}}
		}
	}
	return list
}

// handle describes what the encoder has written.
func (e *encoder) handle(object string, inline []byte) checkpoint.Handle {
	return checkpoint.Handle{
		Object: object, Inline: bytes.Clone(inline), Size: e.written, Checksum: e.sum.Sum64(), KeyGroups: e.piece.groups,
	}
}
