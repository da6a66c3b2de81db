package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A database is one of a disk.
type database struct {
	disk    *Disk
	dir     string
	db      *pebble.DB
	opts    *pebble.Options
	brokenC chan struct{} // closed once it has failed for good
	mu      struct {
		sync.Mutex
		broken error
		begun  map[*pebble.Iterator]bool // lookups that have not ended
	}
}

// fail is the end of the database.
func (b *database) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.broken == nil {
		b.mu.broken = err
		close(b.brokenC)
	}
}

// broken is what the database has failed with for good; nil: it has not.
func (b *database) broken() error {
	select {
	case <-b.brokenC:
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.mu.broken
	default:
		return nil
	}
}

// do does what may be the end of the database, on another goroutine: that one waits for
// ever where it is.
func (b *database) do(f func() error) error {
	if err := b.broken(); err != nil {
		return err
	}
	doneC := make(chan error, 1)
	go func() { doneC <- f() }()
	select {
	case err := <-doneC:
		return err
	case <-b.brokenC:
		return b.broken()
	}
}

// A diskLogger hears of what Pebble takes for its end.
type diskLogger struct {
	db  *database
	log *slog.Logger
}

// Infof implements pebble.Logger.
func (*diskLogger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l *diskLogger) Errorf(format string, args ...any) {
	l.log.Warn("spilled state", "err", fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger: the goroutine goes no further, the process does. Who reads
// does so on its own goroutine, and gets a panic: nobody is going to ask the database again.
func (l *diskLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...) //nolint:err113 // it is Pebble's
	l.db.fail(err)
	if bytes.Contains(debug.Stack(), []byte("(*database).reads(")) {
		panic(brokenError{err})
	}
	select {}
}

// A brokenError is the end of the database in the middle of a read.
type brokenError struct{ error }

// reads does what reads, on the caller's goroutine.
func (b *database) reads(f func() error) (err error) {
	if err := b.broken(); err != nil {
		return b.disk.failed("read", err)
	}
	defer func() {
		if p := recover(); p != nil {
			broken, ok := p.(brokenError)
			if !ok {
				panic(p)
			}
			err = b.disk.failed("read", broken.error)
		}
	}()
	return b.disk.failed("read", f())
}

// A lookup finds keys in a database as it was when it began: looking at all levels anew for
// each key, as the database's own Get does, takes longer. It is its owner's goroutine's.
type lookup struct {
	of *database
	it *pebble.Iterator // nil: not begun
}

// get reads the value of a key; ok is false where there is none. use must copy it.
func (l *lookup) get(key []byte, use func(value []byte)) (ok bool, err error) {
	err = l.of.reads(func() (err error) {
		if l.it == nil {
			if l.it, err = l.of.db.NewIter(nil); err != nil {
				return err
			}
			l.of.begun(l.it, true)
		}
		if ok = l.it.SeekPrefixGE(key) && bytes.Equal(l.it.Key(), key); ok {
			use(l.it.Value())
		}
		return l.it.Error()
	})
	return ok, err
}

// end ends the lookup: the next get begins another one. That of a database that has failed
// may hold locks for ever, and is left alone.
func (l *lookup) end() error {
	it := l.it
	l.it = nil
	if it == nil {
		return nil
	}
	select {
	case <-l.of.brokenC:
		return nil
	default:
	}
	l.of.begun(it, false)
	return l.of.reads(it.Close)
}

// begun notes a lookup that has begun, or has ended.
func (b *database) begun(it *pebble.Iterator, on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.begun == nil {
		b.mu.begun = map[*pebble.Iterator]bool{}
	}
	if b.mu.begun[it] = true; !on {
		delete(b.mu.begun, it)
	}
}

// close ends the lookups that nobody has ended, and closes the database.
func (b *database) close() error {
	b.mu.Lock()
	begun := b.mu.begun
	b.mu.begun = nil
	b.mu.Unlock()
	var err error
	for it := range begun {
		err = errors.Join(err, it.Close())
	}
	return errors.Join(err, b.db.Close())
}

// each calls f with every key from from to to and its value, in order, until f returns false.
func (b *database) each(from, to []byte, f func(key, value []byte) bool) error {
	return b.reads(func() (err error) {
		i, err := b.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
		if err != nil {
			return err
		}
		defer func() { // f may panic, too
			if b.broken() == nil {
				err = errors.Join(err, i.Close())
			}
		}()
		for ok := i.First(); ok && f(i.Key(), i.Value()); ok = i.Next() {
			continue
		}
		return i.Error()
	})
}

// A spilled key is put on disk, or deleted there.
type spilled struct {
	key, value []byte
	gone       bool
}

// put puts keys, ascending, on disk at once.
func (b *database) put(list []spilled) error {
	return b.disk.failed("write", b.do(func() error { return b.ingest(list) }))
}

func (b *database) ingest(list []spilled) (err error) {
	fs := b.disk.fs
	path := fs.PathJoin(b.disk.dir, b.disk.newFile("table"))
	file, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(fs.Remove(path)))
		}
	}()
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(file), b.opts.MakeWriterOptions(0, b.db.TableFormat()))
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
	return b.db.Ingest(context.Background(), []string{path})
}

// drop deletes all keys of a prefix. Nothing is left where the database has failed.
func (b *database) drop(prefix []byte) error {
	select {
	case <-b.brokenC:
		return nil
	default:
	}
	return b.disk.failed("write", b.do(func() error {
		return b.db.Excise(context.Background(), pebble.KeyRange{Start: prefix, End: after(prefix)})
	}))
}

// spacePrefix is the prefix of the keys of a store.
func spacePrefix(store uint32) []byte { return binary.BigEndian.AppendUint32(nil, store) }

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
