package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

const (
	mergeBuffer = 1 << 16 // what of each piece is read at a time
	mergeLeast  = 16      // of a piece's size, to be put aside until its turn
)

// A Merge makes one run of several.
type Merge struct {
	MaxParallelism int
	// Handles name the pieces, in their order: where two have an entry of the same key,
	// the later one counts. Each is trimmed to its key groups.
	Handles []checkpoint.Handle
	// Whole: nothing lies below the handles, so that deletions need not be kept.
	Whole bool
}

// Run reads the pieces side by side and hands on those of the run that they make together.
// It holds about half a megabyte for each piece that it is in the midst of, which are as many as
// there are runs: a large piece that begins behind the others is looked at, and opened again
// when its turn has come. And it holds one piece of what it makes. Everything
// that is read is checked; a missing object is weir.ErrNotFound, a damaged one
// weir.ErrInvalid, by name.
func (m Merge) Run(ctx context.Context, blobs blob.Store, emit func(Piece) error) error {
	return m.run(ctx, blobs, pieceSize, emit)
}

func (m Merge) run(ctx context.Context, blobs blob.Store, size int, emit func(Piece) error) (err error) {
	in := &merging{maxParallelism: m.MaxParallelism}
	if over, ok := blobs.(overlay); ok {
		in.disk = over.shelf.disk
	}
	defer func() { err = errors.Join(err, in.shut()) }()
	first := m.MaxParallelism
	for _, h := range m.Handles {
		first = min(first, h.KeyGroups.Start)
	}
	for age, h := range m.Handles {
		s := &mergeSource{handle: h, age: age, maxParallelism: m.MaxParallelism, open: func() (*source, error) {
			return openSource(ctx, blobs, h, m.MaxParallelism, mergeBuffer)
		}}
		in.all = append(in.all, s)
		err := s.load()
		if err == nil && h.KeyGroups.Start > first && h.Object != "" && h.Size >= int64(size/mergeLeast) {
			err = s.put()
		}
		if err != nil {
			return in.failed(h, err)
		}
	}
	w := newRunWriter(m.MaxParallelism, size, emit)
	for {
		name, l, ok, err := in.turn()
		if err != nil {
			return err
		}
		if !ok {
			return w.end()
		}
		if err := in.table(ctx, w, w.begin(name, l), m.Whole); err != nil {
			return err
		}
	}
}

// merging is the pieces of a merge. Those that are at the table in hand are a heap by
// (hash, key, the latest first).
type merging struct {
	maxParallelism int
	disk           *Disk // on which files of runs are; nil: none are merged
	all            []*mergeSource
	heap           []*mergeSource
}

// failed names the piece that cannot be read: an object, or a file of the disk, whose error it
// then is.
func (m *merging) failed(h checkpoint.Handle, err error) error {
	if name, ok := strings.CutPrefix(h.Object, shelved); ok && m.disk != nil {
		return fmt.Errorf("merge state: %w", m.disk.failedRun(name, err))
	}
	return fmt.Errorf("merge state: %s: %w", nameOf(h), err)
}

// turn chooses the next table.
func (m *merging) turn() (name string, l Layout, ok bool, err error) {
	m.heap = m.heap[:0]
	for _, s := range m.all {
		if s.done || ok && compareNames(s.table, name) > 0 {
			continue
		}
		if !ok || s.table != name {
			name, l, ok = s.table, s.layout, true
			m.heap = m.heap[:0]
		}
		if s.layout != l {
			return "", l, false, fmt.Errorf("merge state: %s: %w: table %q has layout %v there and %v in an older piece", nameOf(s.handle), weir.ErrInvalid, name, s.layout, l)
		}
		m.heap = append(m.heap, s)
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
	return name, l, ok, nil
}

// table merges one table.
func (m *merging) table(ctx context.Context, w *runWriter, to *columns, whole bool) error {
	name := m.heap[0].table
	var last lastKey
	for len(m.heap) > 0 {
		top := m.heap[0]
		if top.rows == nil {
			if err := top.resume(); err != nil {
				return m.failed(top.handle, err)
			}
			m.sink(0)
			continue
		}
		n := m.alone(top, &last, to)
		switch {
		case n > 0:
			to.addRange(&top.at, n, whole)
			last.any = false // nothing else has a key of these
		case !last.is(&top.at):
			last.set(&top.at)
			if !whole || !top.at.isGone(top.at.i) {
				to.addFrom(&top.at)
			}
			top.at.next()
		default: // an older entry of the key
			top.at.next()
		}
		if to.full() {
			if err := errors.Join(ctx.Err(), w.flush()); err != nil {
				return err
			}
		}
		if err := m.proceed(top, name); err != nil {
			return err
		}
	}
	return w.flush()
}

// alone is how many entries of the first piece come before those of all others, as far as
// they lie in one block and another one takes them.
func (m *merging) alone(top *mergeSource, last *lastKey, to *columns) int {
	from, end := top.at.i, min(top.to, top.at.i+maxBlockEntries-to.len())
	hashes := top.rows.hashes
	if last.any && last.hash == hashes[from] {
		return 0
	}
	for _, s := range m.heap[1:min(3, len(m.heap))] {
		limit := s.hash()
		if hashes[from] >= limit {
			return 0
		}
		step := 1 // doubled, then halved: runs are short where pieces are of one size
		for from+step < end && hashes[from+step] < limit {
			step *= 2
		}
		low := from + step/2
		end = low + sort.Search(min(end, from+step)-low, func(i int) bool { return hashes[low+i] >= limit })
	}
	return end - from
}

// proceed gets the first piece's next block where it is at the end of one, and finds its
// new place.
func (m *merging) proceed(top *mergeSource, name string) error {
	if top.at.i == top.to {
		if err := top.load(); err != nil {
			return m.failed(top.handle, err)
		}
	}
	if top.done || top.table != name {
		n := len(m.heap) - 1
		m.heap[0] = m.heap[n]
		m.heap = m.heap[:n]
	}
	m.sink(0)
	return nil
}

// sink moves a piece down to its place in the heap.
func (m *merging) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.heap); child++ {
			if m.heap[child].before(m.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

// A lastKey is the key that was merged last.
type lastKey struct {
	any  bool
	hash uint64
	null bool
	key  []byte
}

func (l *lastKey) is(c *cursor) bool {
	if !l.any || l.hash != c.hashes[c.i] {
		return false
	}
	if c.layout.Key == IntKey {
		return l.null == (c.null == c.i+1)
	}
	return bytes.Equal(l.key, c.keyBytes())
}

func (l *lastKey) set(c *cursor) {
	l.any, l.hash, l.null = true, c.hashes[c.i], c.null == c.i+1
	if c.layout.Key != IntKey {
		l.key = append(l.key[:0], c.keyBytes()...)
	}
}
