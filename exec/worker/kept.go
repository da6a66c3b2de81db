package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

const (
	keptChunk = 64 << 10    // of a copy, with a checksum of its own
	keptLook  = time.Minute // between two looks at which jobs run
	keptLooks = 10          // that find no attempt of a job here, until its copies are dropped
	keptMost  = 10_000      // files, of which a life looks at those that it finds
	keptTold  = 1000        // subtasks, of which a heartbeat tells that there are copies

	keptMaking = ".part" // the name of a file that is being written ends so
)

// A kept is object storage as tasks see it, and copies of the state that they put there,
// in files of this worker's own: an attempt that follows another worker's death, or this one's,
// restores from them (W9). Storage alone counts: a copy that cannot be written is none, and what
// cannot be read of one comes from storage.
type kept struct {
	blob.Store
	dir    string
	most   int64 // bytes of all files; 0: none are made
	log    *slog.Logger
	create func(path string) (io.WriteCloser, error)
	dropC  chan struct{} // room for one: files are to be removed
	lock   *os.File      // of the folder; nil: it is another process's. Guarded by run

	mu struct { // never held while a disk is waited for
		sync.Mutex
		opened  bool        // the folder is ours
		copies  []*keptCopy // the oldest first
		bytes   int64       // of these, and of those being written
		made    int
		looks   map[weir.JobID]int // that found no attempt of it
		names   map[weir.JobID]*keptNames
		dropped []string // files to be removed
		failing bool     // the last copy failed, which was told
		yields  int      // looks to come until copies are made again
	}
}

// A keptCopy is a file with the bytes of an object. Once it is among kept's copies it
// does not change.
type keptCopy struct {
	of      *kept
	key     string
	job     weir.JobID
	id      weir.CheckpointID // 0: it belongs to the attempt
	attempt weir.AttemptID
	subtask int
	path    string
	size    int64    // of the object
	room    int64    // of the file
	sums    []uint64 // of each chunk

	named bool // a task's state has consisted of it

	file io.WriteCloser // while it is written
	buf  []byte         // the chunk that is being filled
	err  error          // why it is none
}

// keptNames are the objects that the state of a job's tasks consists of.
type keptNames struct {
	attempt weir.AttemptID
	tasks   map[weir.TaskID][]string
}

func newKept(store blob.Store, dir string, most int64, log *slog.Logger) *kept {
	k := &kept{Store: store, dir: dir, most: most, log: log, create: createFile, dropC: make(chan struct{}, 1)}
	k.mu.looks, k.mu.names = map[weir.JobID]int{}, map[weir.JobID]*keptNames{}
	return k
}

func createFile(path string) (io.WriteCloser, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err // and no file, which is not a nil *os.File
	}
	return f, nil
}

// Conditional is the store's own.
func (k *kept) Conditional() bool { return blob.Conditional(k.Store) }

// Put implements blob.Store. Of a task's state it makes a copy.
func (k *kept) Put(ctx context.Context, key string, r io.Reader) error {
	c := k.begin(key)
	if c == nil {
		return k.Store.Put(ctx, key, r)
	}
	stored := false
	defer func() { k.end(c, stored) }() // also where r panics
	err := k.Store.Put(ctx, key, io.TeeReader(r, c))
	stored = err == nil
	return err
}

// Delete implements blob.Store.
func (k *kept) Delete(ctx context.Context, key string) error {
	k.drop(func(c *keptCopy) bool { return c.key == key })
	return k.Store.Delete(ctx, key)
}

// Get implements blob.Store. An object is read from its copy, if there is one.
func (k *kept) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	c := k.find(key)
	if c == nil || offset < 0 {
		return k.Store.Get(ctx, key, offset, length)
	}
	r := &keptReader{ctx: ctx, c: c, at: min(offset, c.size), end: c.size}
	if length >= 0 {
		r.end = r.at + min(length, c.size-r.at)
	}
	if r.file, r.failed = os.Open(c.path); r.failed == nil {
		return r, nil
	}
	if err := r.turn(); err != nil {
		return nil, err
	}
	return r, nil
}

// begin opens the copy of an object; nil: there is to be none.
func (k *kept) begin(key string) *keptCopy {
	c := k.copyOf(key)
	if c == nil || k.most <= 0 {
		return nil
	}
	k.drop(func(c *keptCopy) bool { return c.key == key })
	k.mu.Lock()
	may := k.mu.opened && k.mu.yields == 0
	k.mu.made++
	c.path, c.buf = filepath.Join(k.dir, strconv.Itoa(k.mu.made)+keptMaking), make([]byte, 0, keptChunk)
	k.mu.Unlock()
	if !may {
		return nil
	}
	if c.file, c.err = k.create(c.path); c.err != nil {
		k.end(c, true)
		return nil
	}
	return c
}

// copyOf is a copy of which there is nothing yet; nil: no object of that key is copied.
func (k *kept) copyOf(key string) *keptCopy {
	job, id, ok := checkpoint.StateOf(key)
	attempt, subtask, written := checkpoint.WrittenBy(key)
	if !ok || !written {
		return nil
	}
	return &keptCopy{of: k, key: key, job: job, id: id, attempt: attempt, subtask: subtask}
}

// Write implements io.Writer. It never fails: a copy that does only ends.
func (c *keptCopy) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && c.err == nil; {
		n := copy(c.buf[len(c.buf):cap(c.buf)], rest)
		c.buf, rest = c.buf[:len(c.buf)+n], rest[n:]
		if len(c.buf) == cap(c.buf) {
			c.flush()
		}
	}
	return len(p), nil
}

// flush writes what is in the buffer, a chunk or the last one.
func (c *keptCopy) flush() {
	c.size += int64(len(c.buf))
	c.sums = append(c.sums, xxh3.Hash(c.buf))
	c.write(c.buf)
	c.buf = c.buf[:0]
}

func (c *keptCopy) write(p []byte) {
	c.room += int64(len(p))
	if c.err = c.of.reserve(int64(len(p))); c.err == nil {
		_, c.err = c.file.Write(p)
	}
}

// finish writes the rest of the file and gives it its name.
func (c *keptCopy) finish() {
	if len(c.buf) > 0 {
		c.flush()
	}
	if c.err == nil {
		c.write(c.footer())
	}
	if c.err = errors.Join(c.err, c.file.Close()); c.err != nil {
		return
	}
	path := strings.TrimSuffix(c.path, keptMaking)
	if c.err = os.Rename(c.path, path); c.err == nil {
		c.path = path
	}
}

// errNoRoom ends a copy.
var errNoRoom = errors.New("copies under way take more room than --keep gives to all")

// reserve makes room for n bytes at the expense of the oldest copies. They are taken also
// where it fails.
func (k *kept) reserve(n int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.bytes += n
	for k.mu.bytes > k.most && len(k.mu.copies) > 0 {
		oldest := k.mu.copies[0]
		k.dropLocked(func(c *keptCopy) bool { return c == oldest })
	}
	if k.mu.bytes > k.most {
		return errNoRoom
	}
	return nil
}

// end keeps a copy, if its object was stored and it is whole.
func (k *kept) end(c *keptCopy, stored bool) {
	if c.file != nil {
		if stored && c.err == nil {
			c.finish()
		} else {
			c.err = errors.Join(c.err, c.file.Close())
		}
		c.file, c.buf = nil, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if stored && c.err == nil {
		k.mu.copies, k.mu.failing = append(k.mu.copies, c), false
		return
	}
	k.remove(c)
	if c.err != nil && !k.mu.failing {
		k.mu.failing = true
		k.log.Warn("no copy of the state is kept, storage has it", "job", c.job, "cp", c.id, "err", c.err)
	}
}

func (k *kept) find(key string) *keptCopy {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := slices.IndexFunc(k.mu.copies, func(c *keptCopy) bool { return c.key == key }); i >= 0 {
		return k.mu.copies[i]
	}
	return nil
}

// drop gives up the copies of which it is said, and reports whether there were any.
func (k *kept) drop(gone func(*keptCopy) bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dropLocked(gone)
}

func (k *kept) dropLocked(gone func(*keptCopy) bool) bool {
	before := len(k.mu.copies)
	k.mu.copies = slices.DeleteFunc(k.mu.copies, func(c *keptCopy) bool {
		if !gone(c) {
			return false
		}
		k.remove(c)
		return true
	})
	return len(k.mu.copies) < before
}

// remove has a file removed; k.mu is held.
func (k *kept) remove(c *keptCopy) {
	k.mu.bytes -= c.room
	k.mu.dropped = append(k.mu.dropped, c.path)
	select {
	case k.dropC <- struct{}{}:
	default:
	}
}

// run removes the files of copies that were dropped, until ctx ends.
func (k *kept) run(ctx context.Context, running func() []weir.JobID) error {
	tick := time.NewTicker(keptLook)
	defer tick.Stop()
	for {
		select {
		case <-k.dropC:
			k.clear()
		case <-tick.C:
			k.open() // whoever had the folder may have ended
			k.look(running())
		case <-ctx.Done():
			return nil
		}
	}
}

// clear removes the files of copies that were dropped.
func (k *kept) clear() {
	k.mu.Lock()
	files := k.mu.dropped
	k.mu.dropped = nil
	k.mu.Unlock()
	for _, path := range files {
		_ = os.Remove(path) // what stays is found by the next life
	}
}
