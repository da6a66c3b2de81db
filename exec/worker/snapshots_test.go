package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/deploy"
	"weir/exec/state"
	"weir/planner/plan"
)

// TestSnapshots: what was read lately stays open, within bounds, for a while; what
// cannot be loaded is tried again.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), time.Unix(1000, 0)
	clock := func() time.Time { return now }
	blobs := blob.NewMemory()
	store := state.New(state.Options{MaxParallelism: 8})
	store.Table("rows", state.Layout{Words: 1, Blob: true}).Upsert(1, []byte("key"))
	var handles []checkpoint.Handle
	for _, p := range store.Cut().Run() {
		handles = append(handles, p.Handle("", false))
	}
	result := plan.Operator{Kind: plan.Result, Result: &plan.ResultSpec{}}
	named := func(name string, handles []checkpoint.Handle) deploy.Snapshot {
		result.Name = name
		return deploy.Snapshot{Operator: result, MaxParallelism: 8, Handles: handles}
	}
	var s snapshots
	gone := named("gone", []checkpoint.Handle{{Object: "a/gone", Size: 1, KeyGroups: weir.KeyGroupRange{End: 8}}})
	for range 2 {
		if _, err := s.open(ctx, blobs, gone, clock); !errors.Is(err, weir.ErrNotFound) {
			t.Errorf("a missing object: %v", err)
		}
	}
	first, err := s.open(ctx, blobs, named("0", handles), clock)
	if err != nil {
		t.Fatal(err)
	}
	same := func(want bool, why string) {
		t.Helper()
		if again, err := s.open(ctx, blobs, named("0", handles), clock); err != nil || (again == first) != want {
			t.Errorf("%s: the same %v, %v", why, again == first, err)
		} else {
			first = again
		}
	}
	same(true, "read again")
	now = now.Add(snapshotIdle - 1)
	s.expire(now)
	same(true, "not idle for long enough")
	now = now.Add(snapshotIdle - 1)
	s.expire(now)
	same(true, "used since")
	now = now.Add(snapshotIdle)
	s.expire(now)
	same(false, "idle")
	for _, name := range []string{"1", "2", "3"} {
		if _, err := s.open(ctx, blobs, named(name, handles), clock); err != nil {
			t.Fatal(err)
		}
	}
	same(true, "among the last four")
	for _, name := range []string{"1", "2", "3", "4"} {
		if _, err := s.open(ctx, blobs, named(name, handles), clock); err != nil {
			t.Fatal(err)
		}
	}
	same(false, "four others since")
	large := named("large", []checkpoint.Handle{{Object: "a/gone", Size: snapshotBytes + 1, KeyGroups: weir.KeyGroupRange{End: 8}}})
	if _, err := s.use(large, now); err != nil || len(s.mu.open) != 1 {
		t.Errorf("%d are open with a large one: %v", len(s.mu.open), err)
	}
}

// TestSnapshotsAtOnce: what is loaded at a time is within the bound too, unless it is one alone.
func TestSnapshotsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goOnC := make(chan struct{})
		blobs := blob.NewFaulty(blob.NewMemory(), func(blob.Call) blob.Fault { return blob.Fault{Wait: goOnC} })
		s := snapshots{most: 100}
		var all sync.WaitGroup
		for i, size := range []int64{60, 1000, 40, 50} {
			key := fmt.Sprintf("a/%d", i)
			all.Go(func() {
				from := deploy.Snapshot{MaxParallelism: 8, Handles: []checkpoint.Handle{{Object: key, Size: size, KeyGroups: weir.KeyGroupRange{End: 8}}}}
				if _, err := s.open(t.Context(), blobs, from, time.Now); !errors.Is(err, weir.ErrNotFound) {
					t.Errorf("%s: %v", key, err)
				}
			})
			synctest.Wait()
		}
		if n := len(blobs.Calls()); n != 1 {
			t.Errorf("%d are loaded at a time", n)
		}
		close(goOnC)
		all.Wait()
		if n := len(blobs.Calls()); n != 4 {
			t.Errorf("%d were loaded", n)
		}
	})
}
