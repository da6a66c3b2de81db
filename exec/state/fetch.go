package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// Bounds of what a restore reads ahead.
const (
	fetchAhead   = 32 << 20 // bytes of pieces that are read and not yet laid
	fetchAtOnce  = 8        // pieces
	blocksAhead  = 2        // decoded, of each piece
	sharedBlocks = 16       // kept, to be used again
	trimFrom     = 4 * directoryFrom
	tailSize     = 16 << 10 // read for the directory of a piece
)

// A fetch is a piece on its way: its blocks come decoded, in order, while pieces before it
// are still laid.
type fetch struct {
	handle checkpoint.Handle
	blockC chan *block   // closed at the end
	freeC  chan *columns // of those that were laid

	bytes   int64 // that are read; valid once a block has come
	version byte  // valid once blockC is closed, as is err
	err     error
}

// A block is a decoded block of entries.
type block struct {
	*columns
	table string
	bytes int // as stored
	old   bool
}

// fetchAll calls lay with each block of the pieces, in their order, on the caller's goroutine,
// and done behind the last one of each. Pieces are read and decoded ahead. The first error, of lay
// or of a piece, which it names, ends all.
func fetchAll(ctx context.Context, blobs blob.Store, handles []checkpoint.Handle, maxParallelism int, lay func(*fetch, *block) error, done func(*fetch)) error {
	ctx, cancel := context.WithCancel(ctx)
	var g errgroup.Group
	defer g.Wait() //nolint:errcheck // each fetch has its own error
	defer cancel()
	fetches, freeC := make([]*fetch, len(handles)), make(chan *columns, sharedBlocks)
	for i, h := range handles {
		fetches[i] = &fetch{handle: h, blockC: make(chan *block, blocksAhead), freeC: freeC}
	}
	g.Go(func() error {
		memory, places := semaphore.NewWeighted(fetchAhead), semaphore.NewWeighted(fetchAtOnce)
		for i, f := range fetches {
			weight := max(min(f.handle.Size, fetchAhead), 0)
			if err := errors.Join(places.Acquire(ctx, 1), memory.Acquire(ctx, weight)); err != nil {
				for _, f := range fetches[i:] {
					f.err = ctx.Err()
					close(f.blockC)
				}
				return nil
			}
			g.Go(func() error {
				defer places.Release(1)
				defer memory.Release(weight)
				f.run(ctx, blobs, maxParallelism)
				return nil
			})
		}
		return nil
	})
	for _, f := range fetches {
		for b := range f.blockC {
			if err := lay(f, b); err != nil {
				return fmt.Errorf("restore state from %s: %w", nameOf(f.handle), err)
			}
			select {
			case freeC <- b.columns:
			default:
			}
		}
		if f.err != nil {
			return fmt.Errorf("restore state from %s: %w", nameOf(f.handle), f.err)
		}
		done(f)
	}
	return nil
}

// run reads and decodes the piece.
func (f *fetch) run(ctx context.Context, blobs blob.Store, maxParallelism int) {
	defer close(f.blockC)
	if f.handle.Object != "" && f.handle.Trimmed && f.handle.Size >= trimFrom {
		var ok bool
		if ok, f.err = f.trimmed(ctx, blobs, maxParallelism); ok || f.err != nil {
			return
		}
	}
	f.err = f.whole(ctx, blobs, maxParallelism)
}

// whole reads all of the piece.
func (f *fetch) whole(ctx context.Context, blobs blob.Store, maxParallelism int) error {
	data := f.handle.Inline
	if f.handle.Object != "" {
		var err error
		if data, err = get(ctx, blobs, f.handle.Object, 0, -1, f.handle.Size); err != nil {
			return err
		}
	}
	switch n := int64(len(data)); {
	case n < f.handle.Size:
		return damaged("it is %d bytes too short", f.handle.Size-n)
	case n > f.handle.Size:
		return damaged("it is longer than %d bytes", f.handle.Size)
	}
	s := &source{handle: f.handle, maxParallelism: maxParallelism, data: data, left: f.handle.Size}
	if err := s.begins(); err != nil {
		return err
	}
	if sum := xxh3.Hash(data); sum != f.handle.Checksum {
		return damaged("checksum %016x, its manifest says %016x", sum, f.handle.Checksum)
	}
	f.version, f.bytes = s.version, f.handle.Size
	return f.decode(ctx, s)
}

// trimmed reads what the handle's key groups need of the piece; ok is false where that is
// most of it, or cannot be told: read it as a whole.
func (f *fetch) trimmed(ctx context.Context, blobs blob.Store, maxParallelism int) (ok bool, err error) {
	d, err := f.directory(ctx, blobs)
	if err != nil || d == nil {
		return false, err
	}
	spans := d.spans(f.handle.KeyGroups, maxParallelism)
	for _, p := range spans {
		f.bytes += p.to - p.from
	}
	if f.bytes > f.handle.Size*3/4 {
		f.bytes = 0
		return false, nil
	}
	f.version = formatVersion
	for _, p := range spans {
		data, err := get(ctx, blobs, f.handle.Object, p.from, p.to-p.from, p.to-p.from)
		if err != nil {
			return false, err
		}
		if int64(len(data)) != p.to-p.from {
			return false, damaged("it is too short")
		}
		s := &source{handle: f.handle, maxParallelism: maxParallelism, version: formatVersion, data: data, left: int64(len(data)), part: true}
		if err := s.header(p.table); err != nil {
			return false, err
		}
		if err := f.decode(ctx, s); err != nil {
			return false, err
		}
	}
	return true, nil
}

// directory reads the directory of the piece; nil: there is none that could be gone by.
func (f *fetch) directory(ctx context.Context, blobs blob.Store) (*directory, error) {
	size := f.handle.Size
	tail, err := get(ctx, blobs, f.handle.Object, size-tailSize, tailSize, tailSize)
	if err != nil || len(tail) != tailSize {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(tail[tailSize-4:]))
	if n > size/2 {
		return nil, nil
	}
	if n > tailSize {
		if tail, err = get(ctx, blobs, f.handle.Object, size-n, n, n); err != nil || int64(len(tail)) != n {
			return nil, err
		}
	}
	if d, ok := readDirectory(tail[int64(len(tail))-n:], size); ok {
		return d, nil
	}
	return nil, nil
}

// decode hands on the blocks of a source.
func (f *fetch) decode(ctx context.Context, s *source) error {
	var o order
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		payload, err := s.next()
		if err != nil || payload == nil {
			return err
		}
		b := &block{columns: f.columns(s.layout), table: s.name, bytes: len(payload), old: s.version == 1}
		if b.old {
			err = b.readV1(payload, s.maxParallelism)
		} else if err = b.read(payload); err == nil {
			err = o.check(s.name, b.columns)
		}
		if err != nil {
			return err
		}
		select {
		case f.blockC <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// columns are such that were laid, or new ones.
func (f *fetch) columns(l Layout) *columns {
	select {
	case c := <-f.freeC:
		if c.layout == l {
			return c
		}
	default:
	}
	return newColumns(l)
}

// An order checks that entries ascend.
type order struct {
	table string
	last  lastKey // of what was checked
}

// check takes the next block of a table in. Keys of one hash are compared where there are some.
func (o *order) check(table string, r *columns) error {
	n := r.len()
	if n == 0 {
		return damaged("a block of no entries")
	}
	at := cursor{columns: r}
	if o.last.any && o.table == table && (r.hashes[0] < o.last.hash || o.last.is(&at)) {
		return damaged("table %q does not ascend", table)
	}
	for i := 1; i < n; i++ {
		if r.hashes[i] > r.hashes[i-1] {
			continue
		}
		for at.i < i-1 {
			at.next()
		}
		before := at
		if at.next(); before.compare(&at) >= 0 {
			return damaged("table %q does not ascend", table)
		}
	}
	end := cursor{columns: r, i: n - 1}
	if r.layout.Key != IntKey {
		end.key = len(r.keys) - int(r.sizes[n-1])
	}
	o.last.set(&end)
	o.table = table
	return nil
}

// get reads a part of an object, which is to be of so many bytes; it may give more or fewer.
func get(ctx context.Context, blobs blob.Store, key string, offset, length, want int64) ([]byte, error) {
	if offset < 0 || want < 0 {
		return nil, fmt.Errorf("%w: a piece of %d bytes", weir.ErrInvalid, want)
	}
	r, err := blobs.Get(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	to := bytes.NewBuffer(make([]byte, 0, min(want, fetchAhead)+bytes.MinRead))
	_, err = to.ReadFrom(io.LimitReader(r, want+1))
	return to.Bytes(), errors.Join(err, r.Close())
}
