package worker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"weir/checkpoint/blob"
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

// snapshots keeps the results that were read from snapshots last, so that whoever
// pages through one has it loaded once. The zero value keeps none yet.
type snapshots struct {
	most int64 // bytes; 0: snapshotBytes
	mu   struct {
		sync.Mutex
		open []*snapshot         // the one read last is the last
		room *semaphore.Weighted // bytes that are being loaded; nil: none ever were
	}
}

// A snapshot is a result in a snapshot, once loaded.
type snapshot struct {
	id    [sha256.Size]byte
	bytes int64
	used  time.Time     // guarded by snapshots.mu
	loadC chan struct{} // room for one: whoever holds it may load, and look at stored

	stored *op.Stored // nil: not loaded
}

// open returns the result in a snapshot, which it loads unless it is open already or
// another reader loads it just now.
func (s *snapshots) open(ctx context.Context, blobs blob.Store, from deploy.Snapshot, now func() time.Time) (*op.Stored, error) {
	x, err := s.use(from, now())
	if err != nil {
		return nil, err
	}
	select {
	case x.loadC <- struct{}{}:
		defer func() { <-x.loadC }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if x.stored != nil {
		return x.stored, nil
	}
	load := s.loads()
	bytes := min(x.bytes, s.bound())
	if err := load.Acquire(ctx, bytes); err != nil {
		return nil, err
	}
	defer load.Release(bytes)
	store := state.New(state.Options{MaxParallelism: from.MaxParallelism})
	if _, err := store.Restore(ctx, blobs, from.Handles); err != nil {
		return nil, err
	}
	if x.stored, err = op.OpenStored(from.Operator, from.Input, store); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x.used = now() // it may have taken long
	return x.stored, nil
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
// there are too many.
func (s *snapshots) use(from deploy.Snapshot, now time.Time) (*snapshot, error) {
	text, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("name the snapshot: %w", err)
	}
	id := sha256.Sum256(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	var x *snapshot
	if i := slices.IndexFunc(s.mu.open, func(x *snapshot) bool { return x.id == id }); i >= 0 {
		x = s.mu.open[i]
		s.mu.open = slices.Delete(s.mu.open, i, i+1)
	} else {
		x = &snapshot{id: id, loadC: make(chan struct{}, 1)}
		for _, h := range from.Handles {
			x.bytes += h.Size
		}
	}
	x.used = now
	s.mu.open = append(s.mu.open, x)
	var total int64
	for i := len(s.mu.open) - 1; i >= 0; i-- {
		total += s.mu.open[i].bytes
		if n := len(s.mu.open) - i; n > 1 && (n > snapshotsMost || total > s.bound()) {
			s.mu.open = slices.Delete(s.mu.open, 0, i+1)
			break
		}
	}
	return x, nil
}

// expire drops the snapshots that were not read for a while, and are not being read.
func (s *snapshots) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.open = slices.DeleteFunc(s.mu.open, func(x *snapshot) bool { return now.Sub(x.used) >= snapshotIdle && len(x.loadC) == 0 })
}
