package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"weir"
	"weir/checkpoint/blob"
)

var (
	errLost = errors.New("connection lost")
	errAway = errors.New("no answer")
)

// A process is a server or a worker: it dies and sleeps as a whole.
type process struct {
	w           *world
	name        string
	alive       bool
	asleepUntil time.Time
	threads     []*thread
}

func newProcess(w *world, name string) *process { return &process{w: w, name: name, alive: true} }

// after lets run happen to the process after a while, if it still lives.
func (p *process) after(d time.Duration, run func()) { p.w.at(p, p.w.now.Add(d), run) }

// kill ends the process wherever it is.
func (p *process) kill() {
	if !p.alive {
		return
	}
	p.alive = false
	for _, t := range p.threads {
		t.end()
	}
	p.threads = nil
}

// A thread runs ordinary code of a process in virtual time: a coroutine that hands
// control back wherever it waits, so that one thing happens at a time.
type thread struct {
	p       *process
	yield   func(time.Duration) bool
	next    func() (time.Duration, bool)
	stop    func()
	running bool
}

// killed unwinds a thread whose process is dead.
type killed struct{}

// spawn starts code as a thread of the process.
func (p *process) spawn(code func(*thread)) {
	if !p.alive {
		return
	}
	t := &thread{p: p}
	t.next, t.stop = iter.Pull(func(yield func(time.Duration) bool) {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(killed); !ok {
					p.w.fail("panic in %s: %v", p.name, r)
				}
			}
		}()
		t.yield = yield
		code(t)
	})
	p.threads = append(p.threads, t)
	t.resume()
}

func (t *thread) resume() {
	t.running = true
	d, ok := t.next()
	t.running = false
	switch {
	case !ok:
		t.p.threads = slices.DeleteFunc(t.p.threads, func(o *thread) bool { return o == t })
	case t.p.alive:
		t.p.after(d, t.resume)
	default:
		t.end()
	}
}

// end unwinds a thread that is not the one running; that one ends itself.
func (t *thread) end() {
	if !t.running {
		t.stop()
	}
}

// sleep lets time pass.
func (t *thread) sleep(d time.Duration) {
	if !t.p.alive || !t.yield(d) {
		panic(killed{})
	}
}

// call does work outside the process: it takes time, and may go wrong before or after
// the work, for the caller or for good.
func (t *thread) call(point, where string, work func() error) error {
	w := t.p.w
	f := w.tape.fault(w, point)
	t.sleep(w.upTo(30 * time.Millisecond))
	if f == slow {
		w.saw("call: %s", f)
		t.sleep(w.upTo(2 * w.options.Timeout))
	}
	t.dieIf(f == dieBefore, point)
	if f == before {
		w.saw("call: %s", f)
		return errLost
	}
	if w.now.Before(w.away[where]) || w.now.Before(w.away[point]) {
		w.saw("call: no answer")
		t.sleep(w.upTo(time.Second))
		return errAway
	}
	err := work()
	if errors.Is(err, weir.ErrStale) {
		w.saw("call: of a zombie")
	}
	t.dieIf(f == dieAfter, point)
	t.sleep(w.upTo(30 * time.Millisecond))
	if err == nil && f == after {
		w.saw("call: %s", f)
		return errLost
	}
	return err
}

func (t *thread) dieIf(dies bool, point string) {
	if dies {
		t.p.w.log("%s dies at %s", t.p.name, point)
		t.p.w.saw("call: the %s dies", strings.Fields(t.p.name)[0])
		t.p.w.died(t.p)
		panic(killed{})
	}
}

// A caller calls what is outside: a thread, or whoever uses one thread after the other.
type caller interface {
	call(point, where string, work func() error) error
	world() *world
}

func (t *thread) world() *world { return t.p.w }

// borrowed calls by the thread that its owner lends it.
type borrowed struct{ *thread }

// blobs is the object store as a caller reaches it.
type blobs struct{ caller }

// Put implements blob.Store.
func (b blobs) Put(ctx context.Context, key string, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return b.call("put", "storage", func() error {
		b.world().truth.written(key, data)
		return b.world().blobs.Put(ctx, key, bytes.NewReader(data))
	})
}

// PutIfAbsent implements blob.Store.
func (b blobs) PutIfAbsent(ctx context.Context, key string, r io.Reader) error {
	return b.call("put_if_absent", "storage", func() error {
		delete(b.world().truth.read, key)
		return b.world().blobs.PutIfAbsent(ctx, key, r)
	})
}

// Get implements blob.Store.
func (b blobs) Get(ctx context.Context, key string, offset, length int64) (body io.ReadCloser, err error) {
	err = b.call("get", "storage", func() error {
		body, err = b.world().blobs.Get(ctx, key, offset, length)
		return err
	})
	return body, err
}

// Stat implements blob.Store.
func (b blobs) Stat(ctx context.Context, key string) (size int64, err error) {
	err = b.call("stat", "storage", func() error {
		size, err = b.world().blobs.Stat(ctx, key)
		return err
	})
	return size, err
}

// List implements blob.Store.
func (b blobs) List(ctx context.Context, prefix string, f func(key string, size int64) bool) error {
	return b.call("list", "storage", func() error { return b.world().blobs.List(ctx, prefix, f) })
}

// Delete implements blob.Store.
func (b blobs) Delete(ctx context.Context, key string) error {
	return b.call("delete", "storage", func() error {
		err := b.world().blobs.Delete(ctx, key)
		delete(b.world().truth.read, key)
		b.world().truth.deleted(key)
		return err
	})
}

var _ blob.Store = blobs{}
