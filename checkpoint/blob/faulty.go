package blob

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Call is one call of a Faulty store: the verb is the method's name.
type Call struct {
	N    int // from 1, over all calls
	Verb string
	Key  string // or prefix
}

// A Fault is what happens to a call. The zero value lets it pass.
type Fault struct {
	Before error           // returned instead of doing the work
	After  error           // returned after the work was done: the caller cannot know
	Wait   <-chan struct{} // the call waits for it (or for its context) before anything
	Delay  time.Duration   // passes before the work; in a synctest bubble, of its clock
	Late   time.Duration   // passes after the work, before the answer: where the context ends meanwhile, its error hides that the work was done
	Cut    int64           // the body of a Get breaks with io.ErrUnexpectedEOF after so many bytes, if it is that long; 0: never
}

// A Faulty passes calls to another store, for tests, and fails those that its
// function chooses.
type Faulty struct {
	store  Store
	choose func(Call) Fault
	mu     struct {
		sync.Mutex
		calls []Call
	}
}

// NewFaulty wraps store. choose is called once for each call, one at a time.
func NewFaulty(store Store, choose func(Call) Fault) *Faulty {
	return &Faulty{store: store, choose: choose}
}

// FailTimes returns a chooser that gives fault to the first n calls of verb whose key
// contains part.
func FailTimes(n int, verb, part string, fault Fault) func(Call) Fault {
	return func(c Call) Fault {
		if n > 0 && c.Verb == verb && strings.Contains(c.Key, part) {
			n--
			return fault
		}
		return Fault{}
	}
}

// Calls returns the calls so far, in order.
func (s *Faulty) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.calls)
}

func (s *Faulty) do(ctx context.Context, verb, key string, work func() error) (Fault, error) {
	s.mu.Lock()
	c := Call{N: len(s.mu.calls) + 1, Verb: verb, Key: key}
	s.mu.calls = append(s.mu.calls, c)
	fault := s.choose(c)
	s.mu.Unlock()
	if fault.Wait != nil {
		select {
		case <-fault.Wait:
		case <-ctx.Done():
			return fault, ctx.Err()
		}
	}
	if err := pass(ctx, fault.Delay); err != nil {
		return fault, err
	}
	if fault.Before != nil {
		return fault, fault.Before
	}
	if err := work(); err != nil {
		return fault, err
	}
	if err := pass(ctx, fault.Late); err != nil {
		return fault, err
	}
	return fault, fault.After
}

// pass lets time go by, or returns the context's error where that ends first.
func pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Put implements Store.
func (s *Faulty) Put(ctx context.Context, key string, r io.Reader) error {
	_, err := s.do(ctx, "Put", key, func() error { return s.store.Put(ctx, key, r) })
	return err
}

// PutIfAbsent implements Store.
func (s *Faulty) PutIfAbsent(ctx context.Context, key string, r io.Reader) error {
	_, err := s.do(ctx, "PutIfAbsent", key, func() error { return s.store.PutIfAbsent(ctx, key, r) })
	return err
}

// Get implements Store.
func (s *Faulty) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	var body io.ReadCloser
	fault, err := s.do(ctx, "Get", key, func() (err error) {
		body, err = s.store.Get(ctx, key, offset, length)
		return err
	})
	if err != nil && body != nil {
		_ = body.Close()
		return nil, err
	}
	if err == nil && fault.Cut > 0 {
		body = readCloser{&cutReader{body, fault.Cut}, body}
	}
	return body, err
}

// A cutReader breaks after so many bytes.
type cutReader struct {
	r    io.Reader
	left int64
}

func (c *cutReader) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// Stat implements Store.
func (s *Faulty) Stat(ctx context.Context, key string) (size int64, err error) {
	_, err = s.do(ctx, "Stat", key, func() error {
		size, err = s.store.Stat(ctx, key)
		return err
	})
	return size, err
}

// List implements Store.
func (s *Faulty) List(ctx context.Context, prefix string, f func(key string, size int64) bool) error {
	_, err := s.do(ctx, "List", prefix, func() error { return s.store.List(ctx, prefix, f) })
	return err
}

// Delete implements Store.
func (s *Faulty) Delete(ctx context.Context, key string) error {
	_, err := s.do(ctx, "Delete", key, func() error { return s.store.Delete(ctx, key) })
	return err
}
