package worker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/deploy"
	"weir/exec/op"
	"weir/exec/state"
)

// Bounds of the snapshots that are kept open.
const (
	snapshotIdle  = 10 * time.Second // after its last read
	snapshotsMost = 4
	snapshotBytes = 256 << 20 // as objects, of all together; one may be larger
	snapshotPart  = 8         // and no more than this part of the heap's limit
)

// snapshots keeps the results that were read from snapshots last, so that whoever pages
// through one has it loaded once. They are stores like those of tasks: they have a share of the
// memory for state, and spill what is beyond it. The zero value keeps none yet.
type snapshots struct {
	most   int64 // bytes; 0: snapshotBytes
	disk   *state.Disk
	budget *state.Budget
	mu     struct {
		sync.Mutex
		open []*snapshot         // the one read last is the last
		room *semaphore.Weighted // bytes that are being loaded; nil: none ever were
	}
}

// A snapshot is a result in a snapshot, once loaded.
type snapshot struct {
	id      [sha256.Size]byte
	bytes   int64
	used    time.Time     // guarded by snapshots.mu, as are
	readers int           // those who read it, or wait for their turn,
	dropped bool          // and that the last of them closes it
	turnC   chan struct{} // room for one: whoever holds it may load, read and close

	store  *state.Store // nil: not loaded
	stored *op.Stored
}

// read reads a page of the result in a snapshot, which it loads unless it is open already.
func (s *snapshots) read(ctx context.Context, blobs blob.Store, from deploy.Snapshot, now func() time.Time, q exec.Query) (page exec.Page, err error) {
	x, err := s.use(from, now())
	if err != nil {
		return exec.Page{}, err
	}
	defer func() { err = errors.Join(err, s.leave(x, now())) }()
	select {
	case x.turnC <- struct{}{}:
		defer func() { <-x.turnC }()
	case <-ctx.Done():
		return exec.Page{}, ctx.Err()
	}
	return s.page(ctx, blobs, x, from, q)
}

// page reads a page of a snapshot whose turn it is. What cannot be loaded, or read from disk, is
// an error, and is loaded anew the next time.
func (s *snapshots) page(ctx context.Context, blobs blob.Store, x *snapshot, from deploy.Snapshot, q exec.Query) (page exec.Page, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		err = x.close()
		failed, ok := p.(*state.DiskError)
		if !ok {
			panic(p)
		}
		err = errors.Join(failed, err)
	}()
	if x.store == nil {
		err = s.load(ctx, blobs, x, from)
	}
	if err == nil {
		err = x.store.Relax() // others need more than they did
	}
	if err != nil {
		return exec.Page{}, errors.Join(err, x.close())
	}
	return x.stored.Read(q)
}

func (s *snapshots) load(ctx context.Context, blobs blob.Store, x *snapshot, from deploy.Snapshot) (err error) {
	load := s.loads()
	bytes := min(x.bytes, s.bound())
	if err := load.Acquire(ctx, bytes); err != nil {
		return err
	}
	defer load.Release(bytes)
	x.store = state.New(state.Options{MaxParallelism: from.MaxParallelism, Disk: s.disk, Budget: s.budget})
	if _, err := x.store.Restore(ctx, blobs, from.Handles); err != nil {
		return err
	}
	if x.stored, err = op.OpenStored(from.Operator, from.Groups, from.Input, x.store); err != nil {
		return err
	}
	x.store.Cut().Release() // what an older version wrote counts as changed, and nobody is to be shown it
	return nil
}

// close gives back what the snapshot takes.
func (x *snapshot) close() error {
	store := x.store
	x.store, x.stored = nil, nil
	if store == nil {
		return nil
	}
	return store.Close()
}

// bound is how many bytes are open, and how many are loaded at a time, unless it is one snapshot.
func (s *snapshots) bound() int64 { return cmp.Or(s.most, snapshotBytes) }

// loads is who bounds what is loaded at a time.
func (s *snapshots) loads() *semaphore.Weighted {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.room == nil {
		s.mu.room = semaphore.NewWeighted(s.bound())
	}
	return s.mu.room
}

// use finds or enters a snapshot, and drops those that were read longest ago where
// there are too many. Who used it leaves it.
func (s *snapshots) use(from deploy.Snapshot, now time.Time) (*snapshot, error) {
	text, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("name the snapshot: %w", err)
	}
	id := sha256.Sum256(text)
	x, dropped := s.enter(id, from.Handles, now)
	if err := closeAll(dropped); err != nil {
		return nil, errors.Join(err, s.leave(x, now))
	}
	return x, nil
}

func (s *snapshots) enter(id [sha256.Size]byte, handles []checkpoint.Handle, now time.Time) (x *snapshot, dropped []*snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.mu.open, func(x *snapshot) bool { return x.id == id }); i >= 0 {
		x = s.mu.open[i]
		s.mu.open = slices.Delete(s.mu.open, i, i+1)
	} else {
		x = &snapshot{id: id, turnC: make(chan struct{}, 1)}
		for _, h := range handles {
			x.bytes += h.Size
		}
	}
	x.used = now
	x.readers++
	s.mu.open = append(s.mu.open, x)
	var total int64
	for i := len(s.mu.open) - 1; i >= 0; i-- {
		total += s.mu.open[i].bytes
		if n := len(s.mu.open) - i; n > 1 && (n > snapshotsMost || total > s.bound()) {
			dropped = s.drop(s.mu.open[:i+1])
			s.mu.open = slices.Delete(s.mu.open, 0, i+1)
			break
		}
	}
	return x, dropped
}

// drop returns those that nobody reads; the others are closed by who leaves them. s.mu is held.
func (s *snapshots) drop(list []*snapshot) (unread []*snapshot) {
	for _, x := range list {
		if x.dropped = true; x.readers == 0 {
			unread = append(unread, x)
		}
	}
	return unread
}

// leave ends a use.
func (s *snapshots) leave(x *snapshot, now time.Time) error {
	s.mu.Lock()
	x.used = now // it may have taken long
	x.readers--
	last := x.dropped && x.readers == 0
	s.mu.Unlock()
	if last {
		return x.close()
	}
	return nil
}

// expire drops the snapshots that were not read for a while, and are not being read.
func (s *snapshots) expire(now time.Time) error {
	s.mu.Lock()
	idle := func(x *snapshot) bool { return now.Sub(x.used) >= snapshotIdle && x.readers == 0 }
	var dropped []*snapshot
	for _, x := range s.mu.open {
		if idle(x) {
			dropped = append(dropped, x)
		}
	}
	s.mu.open = slices.DeleteFunc(s.mu.open, idle)
	s.mu.Unlock()
	return closeAll(dropped)
}

// close drops all.
func (s *snapshots) close() error {
	s.mu.Lock()
	dropped := s.drop(s.mu.open)
	s.mu.open = nil
	s.mu.Unlock()
	return closeAll(dropped)
}

func closeAll(list []*snapshot) error {
	var errs []error
	for _, x := range list {
		errs = append(errs, x.close())
	}
	return errors.Join(errs...)
}
