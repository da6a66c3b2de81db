package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"weir/checkpoint/blob"
)

// A Shelf is where the runs of a store lie until storage has them: in memory, and where all
// shelves have more than their part of the budget, in files beside what is spilled, which are
// as much scratch as that. It may be used from any goroutine.
type Shelf struct {
	disk   *Disk // nil: all of it is in memory
	budget *Budget
	mu     struct {
		sync.Mutex
		held  int64           // bytes in memory, as the budget knows them
		files map[string]bool // that are there; true: a chain has named it
	}
}

// Shelf returns the store's shelf.
func (s *Store) Shelf() *Shelf { return s.shelf }

// shelved begins the name of a file where that of an object is expected. No key of an object
// has a colon.
const shelved = "spilled:"

// Put puts a piece of a run there: what it returns is p, or a piece whose data is in a file.
// Another goroutine may tidy meanwhile; the file stays until a chain has named it.
func (f *Shelf) Put(p Piece) (Piece, error) {
	if f.disk == nil || f.budget == nil || p.file != "" || f.holds(p.held()) {
		return p, nil
	}
	name, err := f.disk.write(p.Data)
	if err != nil {
		return Piece{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.files[name] = false
	p.file, p.size, p.Data = name, len(p.Data), nil
	return p, nil
}

// holds takes n bytes into memory, if there is room.
func (f *Shelf) holds(n int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.budget.holds(n) {
		return false
	}
	f.mu.held += n
	return true
}

// Tidy tells what a chain has on the shelf, and what is being read of what it had: bytes in
// memory and names of files. What is named no more goes.
func (f *Shelf) Tidy(held int64, named []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.budget != nil {
		f.budget.runs.Add(held - f.mu.held)
	}
	f.mu.held = held
	stays := map[string]bool{}
	for _, name := range named {
		name = strings.TrimPrefix(name, shelved)
		stays[name], f.mu.files[name] = true, true
	}
	var errs []error
	for name, known := range f.mu.files {
		if known && !stays[name] {
			delete(f.mu.files, name)
			errs = append(errs, f.disk.remove(name))
		}
	}
	return errors.Join(errs...)
}

// Drop deletes the files of pieces that no chain has named, and never will.
func (f *Shelf) Drop(pieces []Piece) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, p := range pieces {
		if p.file != "" {
			delete(f.mu.files, p.file)
			errs = append(errs, f.disk.remove(p.file))
		} else if f.disk != nil && f.budget != nil {
			n := min(p.held(), f.mu.held)
			f.mu.held -= n
			f.budget.runs.Add(-n)
		}
	}
	return errors.Join(errs...)
}

// close deletes all files.
func (f *Shelf) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.budget != nil {
		f.budget.runs.Add(-f.mu.held)
	}
	f.mu.held = 0
	var errs []error
	for name := range f.mu.files {
		errs = append(errs, f.disk.remove(name))
	}
	clear(f.mu.files)
	return errors.Join(errs...)
}

// Open reads the data of a piece. What the disk has damaged is an error, at its end at the latest.
func (f *Shelf) Open(p Piece) (io.ReadCloser, error) {
	if p.file == "" {
		return io.NopCloser(bytes.NewReader(p.Data)), nil
	}
	r, err := f.disk.read(p.file, 0, -1)
	if err != nil {
		return nil, err
	}
	return &wholeRun{ReadCloser: r, disk: f.disk, piece: p, left: p.size, sum: xxh3.New()}, nil
}

// A wholeRun is a file that is read whole, and checked.
type wholeRun struct {
	io.ReadCloser
	disk  *Disk
	piece Piece
	left  int
	sum   *xxh3.Hasher
}

// Read implements io.Reader.
func (r *wholeRun) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	_, _ = r.sum.Write(p[:n]) // a hash never fails
	r.left -= n
	if r.left < 0 || err == io.EOF && r.left > 0 || r.left == 0 && r.sum.Sum64() != r.piece.Checksum {
		return n, r.disk.failedRun(r.piece.file, damaged("it is not as it was written"))
	}
	return n, err
}

// failedRun says of a file that write has made that it cannot be read.
func (d *Disk) failedRun(name string, err error) error {
	var disk *DiskError
	if errors.As(err, &disk) {
		return err
	}
	return d.failed("read", fmt.Errorf("%s: %w", name, err))
}

// Over is object storage in which the files of the shelf can be read too, by the names in the
// handles of a Snapshot.
func (f *Shelf) Over(blobs blob.Store) blob.Store { return overlay{blobs, f} }

type overlay struct {
	blob.Store
	shelf *Shelf
}

// Get implements blob.Store.
func (o overlay) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if name, ok := strings.CutPrefix(key, shelved); ok {
		return o.shelf.disk.read(name, offset, length)
	}
	return o.Store.Get(ctx, key, offset, length)
}

// writeBuffer is what of a run is written at a time.
const writeBuffer = 64 << 10

// write writes a file beside the database.
func (d *Disk) write(data []byte) (name string, err error) {
	name = d.newFile("run")
	if err := d.fs.MkdirAll(d.dir, 0o700); err != nil {
		return "", d.failed("write", err)
	}
	file, err := d.fs.Create(d.fs.PathJoin(d.dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return "", d.failed("write", err)
	}
	buffer := make([]byte, 0, min(len(data), writeBuffer))
	for part := range slices.Chunk(data, writeBuffer) {
		if _, err = file.Write(append(buffer[:0], part...)); err != nil { // which may change what it is given
			break
		}
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(d.failed("write", err), d.remove(name))
	}
	return name, nil
}

// read reads a file that write has made, from offset to its end or so many bytes.
func (d *Disk) read(name string, offset, length int64) (io.ReadCloser, error) {
	file, err := d.fs.Open(d.fs.PathJoin(d.dir, name))
	if err != nil {
		return nil, d.failed("read", err)
	}
	if length < 0 {
		length = 1 << 62
	}
	return &runFile{io.NewSectionReader(file, offset, length), file, d}, nil
}

// A runFile is a file that is read; its errors name the folder.
type runFile struct {
	from *io.SectionReader
	io.Closer
	disk *Disk
}

// Read implements io.Reader.
func (f *runFile) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = f.disk.failed("read", err)
	}
	return n, err
}

func (d *Disk) remove(name string) error {
	return d.failed("delete", ignoreMissing(d.fs.Remove(d.fs.PathJoin(d.dir, name))))
}
