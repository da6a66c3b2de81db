package state

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Disk is where the stores of a worker spill what does not fit in memory: a Pebble
// database that all of them share, and scratch: nothing in it is ever restored from. So it
// has no log and nothing is synced, and what a crash leaves of it does not matter. The
// database is opened when something is spilled for the first time: who spills nothing has a
// name for a folder, and no more. One that has failed is left to those who have something
// in it, which fail; who comes later opens another one. A Disk may be used from any goroutine.
type Disk struct {
	dir   string
	fs    vfs.FS
	log   *slog.Logger
	cache int64

	opens struct {
		sync.Mutex           // held while the database is opened, or closed
		db         *database // nil: nothing has been spilled
		closed     bool
	}
	mu struct {
		sync.Mutex
		stores uint32 // so far
		files  int    // likewise
	}
}

// DiskOptions tune a Disk; the zero value works.
type DiskOptions struct {
	Cache int64  // size of the block cache in bytes; 0: 8 MiB
	FS    vfs.FS // nil: the operating system's
	// Memory: the folder is one in memory; for tests.
	Memory bool
	Log    *slog.Logger
}

// The disk's own limits.
const (
	diskCache    = 8 << 20
	diskMemTable = 64 << 10 // nothing is ever put there
	diskFiles    = 500      // open at a time
	diskBase     = 256 << 20
	diskBlock    = 8 << 10
	bloomBits    = 10      // per key, of a filter
	diskFile     = 4 << 20 // of a table: a file's filter is one block of the cache
)

// NewDisk returns a disk in a folder, which is its own: what an earlier process left there
// is deleted.
func NewDisk(dir string, o DiskOptions) (*Disk, error) {
	switch {
	case o.Memory:
		o.FS = vfs.NewMem()
	case o.FS == nil:
		o.FS = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Disk{dir: dir, fs: unsynced{o.FS}, log: o.Log, cache: cmp.Or(o.Cache, diskCache)}
	return d, d.failed("clear", d.fs.RemoveAll(dir))
}

// options are those of a database.
func (d *Disk) options(db *database) *pebble.Options {
	o := &pebble.Options{
		FS: d.fs, FormatMajorVersion: pebble.FormatTableFormatV6, DisableWAL: true,
		MemTableSize: diskMemTable, MaxOpenFiles: diskFiles, Logger: &diskLogger{db, d.log},
		L0CompactionThreshold: 16, L0StopWritesThreshold: 1000, LBaseMaxBytes: diskBase,
		CompactionConcurrencyRange: func() (int, int) { return 1, 1 },
		EventListener:              &pebble.EventListener{DataCorruption: func(i pebble.DataCorruptionInfo) { db.fail(i.Details) }},
	}
	for i := range o.Levels {
		o.TargetFileSizes[i] = diskFile
		if o.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBits); i == len(o.Levels)-1 {
			o.Levels[i].FilterPolicy = pebble.NoFilterPolicy
		}
		o.Levels[i].IndexBlockSize = diskFile // one for a file
		o.Levels[i].BlockSize = diskBlock
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	}
	o.EnsureDefaults()
	return o
}

var errClosed = errors.New("it is closed")

// open returns the database, which it opens unless it is open, and a prefix in it for the keys
// of a store.
func (d *Disk) open() (db *database, prefix []byte, err error) {
	d.opens.Lock()
	defer d.opens.Unlock()
	if d.opens.closed {
		return nil, nil, d.failed("open", errClosed)
	}
	if d.opens.db == nil || d.opens.db.broken() != nil {
		if d.opens.db, err = d.openAnew(); err != nil {
			return nil, nil, d.failed("open", err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.stores++
	return d.opens.db, spacePrefix(d.mu.stores), nil
}

func (d *Disk) openAnew() (*database, error) {
	db := &database{disk: d, dir: d.fs.PathJoin(d.dir, d.newFile("db")), brokenC: make(chan struct{})}
	db.opts = d.options(db)
	db.opts.Cache = pebble.NewCache(d.cache)
	defer db.opts.Cache.Unref() // the database holds it
	err := db.do(func() (err error) {
		if err = d.fs.MkdirAll(d.dir, 0o700); err == nil {
			db.db, err = pebble.Open(db.dir, db.opts)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, d.fs.RemoveAll(db.dir))
	}
	return db, nil
}

// Close closes the disk and deletes its folder. A store that uses it still has an error from then on.
func (d *Disk) Close() error {
	d.opens.Lock()
	defer d.opens.Unlock()
	d.opens.closed = true
	var err error
	if db := d.opens.db; db != nil && db.broken() == nil {
		err = db.do(db.close)
		db.fail(errClosed) // for who comes too late
	}
	d.opens.db = nil
	return d.failed("close", errors.Join(err, d.fs.RemoveAll(d.dir)))
}

// Size returns the bytes of what is spilled, in the folder, and of its cache, in memory.
func (d *Disk) Size() (spilled, cached int64) {
	d.opens.Lock()
	defer d.opens.Unlock()
	db, metricsC := d.opens.db, make(chan *pebble.Metrics, 1)
	if db == nil || db.do(func() error { metricsC <- db.db.Metrics(); return nil }) != nil {
		return 0, 0
	}
	m := <-metricsC
	return int64(m.DiskSpaceUsage()), m.BlockCache.Size
}

// newFile is a name in the folder that no other has.
func (d *Disk) newFile(kind string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.files++
	return fmt.Sprintf("%s-%d", kind, d.mu.files)
}

// A DiskError says what a disk could not do. It is also what a Table panics with that finds
// an entry on disk which cannot be read: the task ends, and begins again from its checkpoint.
type DiskError struct {
	Dir string
	err error
}

// Error names the folder.
func (e *DiskError) Error() string {
	return fmt.Sprintf("the folder %s for state that does not fit in memory: %v", e.Dir, e.err)
}

// Unwrap returns the cause.
func (e *DiskError) Unwrap() error { return e.err }

func (d *Disk) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return &DiskError{d.dir, fmt.Errorf("%s: %w", what, err)}
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// unsynced is a file system in which nothing is synced: a crash loses what nobody reads.
type unsynced struct{ vfs.FS }

type unsyncedFile struct{ vfs.File }

// Sync implements vfs.File.
func (unsyncedFile) Sync() error { return nil }

// SyncData implements vfs.File.
func (unsyncedFile) SyncData() error { return nil }

// SyncTo implements vfs.File.
func (unsyncedFile) SyncTo(int64) (fullSync bool, err error) { return false, nil }

func unsyncedOf(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

// Create implements vfs.FS.
func (u unsynced) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return unsyncedOf(u.FS.Create(name, c))
}

// OpenReadWrite implements vfs.FS.
func (u unsynced) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return unsyncedOf(u.FS.OpenReadWrite(name, c, o...))
}

// OpenDir implements vfs.FS.
func (u unsynced) OpenDir(name string) (vfs.File, error) { return unsyncedOf(u.FS.OpenDir(name)) }

// ReuseForWrite implements vfs.FS.
func (u unsynced) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return unsyncedOf(u.FS.ReuseForWrite(old, name, c))
}
