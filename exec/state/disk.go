package state

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Disk is where the stores of a worker spill what does not fit in memory: a Pebble
// database that all of them share, and scratch: nothing in it is ever restored from. So it
// has no log, and what a crash leaves of it does not matter. It is opened when something is
// spilled for the first time: who spills nothing has a name for a folder, and no more. It
// may be used from any goroutine.
type Disk struct {
	dir   string
	fs    vfs.FS
	opts  *pebble.Options
	cache int64
	db    atomic.Pointer[pebble.DB] // nil: nothing has been spilled
	opens struct {
		sync.Mutex // held while the database is opened, or closed
		closed     bool
	}

	brokenC chan struct{} // closed once it has failed for good
	mu      struct {
		sync.Mutex
		broken error
		stores uint32 // so far
		files  int    // spilled so far
	}
}

// DiskOptions tune a Disk; the zero value works.
type DiskOptions struct {
	Cache int64  // bytes of the block cache; 0: 8 MiB
	FS    vfs.FS // nil: the operating system's
	Log   *slog.Logger
}

// The disk's own limits.
const (
	diskCache    = 8 << 20
	diskMemTable = 64 << 10 // nothing is ever put there
	diskFiles    = 200      // open at a time
	bloomBits    = 10       // per key, of a filter
)

// NewDisk returns a disk in a folder, which is its own: what an earlier process left there
// is deleted.
func NewDisk(dir string, o DiskOptions) (*Disk, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Disk{dir: dir, fs: o.FS, cache: cmp.Or(o.Cache, diskCache), brokenC: make(chan struct{})}
	if err := d.fs.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("clear the folder for spilled state: %w", err)
	}
	d.opts = &pebble.Options{
		FS: d.fs, FormatMajorVersion: pebble.FormatTableFormatV6, DisableWAL: true,
		MemTableSize: diskMemTable, MaxOpenFiles: diskFiles, Logger: &diskLogger{d, o.Log},
		L0CompactionThreshold: 4, L0StopWritesThreshold: 1000,
		CompactionConcurrencyRange: func() (int, int) { return 1, 1 },
	}
	for i := range d.opts.Levels {
		d.opts.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBits)
	}
	d.opts.EnsureDefaults()
	return d, nil
}

// Dir is the folder.
func (d *Disk) Dir() string { return d.dir }

// database returns the database, which it opens unless it is open.
func (d *Disk) database() (*pebble.DB, error) {
	d.opens.Lock()
	defer d.opens.Unlock()
	if db := d.db.Load(); db != nil {
		return db, nil
	}
	if d.opens.closed {
		return nil, fmt.Errorf("the folder %s for spilled state is closed", d.dir)
	}
	d.opts.Cache = pebble.NewCache(d.cache)
	defer d.opts.Cache.Unref() // the database holds it
	if err := d.fs.MkdirAll(d.dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the folder for spilled state: %w", err)
	}
	db, err := pebble.Open(d.dir, d.opts)
	if err != nil {
		return nil, fmt.Errorf("open the folder %s for spilled state: %w", d.dir, err)
	}
	d.db.Store(db)
	return db, nil
}

// Close closes the disk and deletes its folder. No store uses it any more.
func (d *Disk) Close() error {
	err := d.do(func() error {
		d.opens.Lock()
		defer d.opens.Unlock()
		d.opens.closed = true
		if db := d.db.Swap(nil); db != nil {
			return db.Close()
		}
		return nil
	})
	return errors.Join(err, d.fs.RemoveAll(d.dir))
}

// do does what may be the end of the database, on another goroutine: that one waits for
// ever where it is.
func (d *Disk) do(f func() error) error {
	doneC := make(chan error, 1)
	go func() { doneC <- f() }()
	select {
	case err := <-doneC:
		return err
	case <-d.brokenC:
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.mu.broken
	}
}

// A diskLogger hears of what Pebble takes for its end.
type diskLogger struct {
	disk *Disk
	log  *slog.Logger
}

// Infof implements pebble.Logger.
func (*diskLogger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l *diskLogger) Errorf(format string, args ...any) {
	l.log.Warn("spilled state", "err", fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger: the goroutine goes no further, the process does.
func (l *diskLogger) Fatalf(format string, args ...any) {
	l.disk.mu.Lock()
	if l.disk.mu.broken == nil {
		l.disk.mu.broken = fmt.Errorf("the folder for spilled state has failed: %s", fmt.Sprintf(format, args...))
		close(l.disk.brokenC)
	}
	l.disk.mu.Unlock()
	select {}
}

// space returns a prefix of its own for the keys of a store.
func (d *Disk) space() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.stores++
	return binary.BigEndian.AppendUint32(nil, d.mu.stores)
}

// get reads the value of a key; ok is false where there is none. use must copy it.
func (d *Disk) get(key []byte, use func(value []byte)) (ok bool, err error) {
	select {
	case <-d.brokenC:
		return false, d.mu.broken
	default:
	}
	value, closer, err := d.db.Load().Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read spilled state: %w", err)
	}
	use(value)
	return true, closer.Close()
}

// each calls f with every key from from to to and its value, in order, until f returns false.
func (d *Disk) each(from, to []byte, f func(key, value []byte) bool) error {
	i, err := d.db.Load().NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return fmt.Errorf("read spilled state: %w", err)
	}
	for ok := i.First(); ok && f(i.Key(), i.Value()); ok = i.Next() {
		continue
	}
	if err := errors.Join(i.Error(), i.Close()); err != nil {
		return fmt.Errorf("read spilled state: %w", err)
	}
	return nil
}

// A spilled key is put on disk, or deleted there.
type spilled struct {
	key, value []byte
	gone       bool
}

// put puts keys, ascending, on disk at once.
func (d *Disk) put(list []spilled) error {
	err := d.do(func() error { return d.ingest(list) })
	if err != nil {
		return fmt.Errorf("spill state: %w", err)
	}
	return nil
}

func (d *Disk) ingest(list []spilled) (err error) {
	db, err := d.database()
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.mu.files++
	path := d.fs.PathJoin(d.dir, fmt.Sprintf("spill-%d", d.mu.files))
	d.mu.Unlock()
	file, err := d.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(d.fs.Remove(path)))
		}
	}()
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(file), d.opts.MakeWriterOptions(0, db.TableFormat()))
	for _, s := range list {
		if s.gone {
			err = w.Delete(s.key)
		} else {
			err = w.Set(s.key, s.value)
		}
		if err != nil {
			return errors.Join(err, w.Close())
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return db.Ingest(context.Background(), []string{path})
}

// drop deletes all keys of a prefix.
func (d *Disk) drop(prefix []byte) error {
	db := d.db.Load()
	if db == nil {
		return nil // nothing was spilled
	}
	return d.do(func() error {
		return db.Excise(context.Background(), pebble.KeyRange{Start: prefix, End: after(prefix)})
	})
}

// after is the first key behind all that have a prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
