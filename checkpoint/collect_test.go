package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/checkpoint/checkpointtest"
)

// A heap is a job whose checkpoints are made by hand, each of two objects, and what
// collects them.
type heap struct {
	t      *testing.T
	store  *checkpointtest.Store
	blobs  *blob.Memory
	faulty *blob.Faulty
	fault  func(blob.Call) blob.Fault
	c      *checkpoint.Collector

	calls, at int    // of a slow collector; at which one
	meanwhile func() // happens
}

func newHeap(t *testing.T, keep int) *heap {
	h := &heap{t: t, store: checkpointtest.NewStore(fence), blobs: blob.NewMemory()}
	h.faulty = blob.NewFaulty(h.blobs, func(c blob.Call) blob.Fault {
		if h.fault == nil {
			return blob.Fault{}
		}
		return h.fault(c)
	})
	h.store.Keep(keep, false)
	h.restart()
	return h
}

// restart forgets what a collector knows, as a server that dies does.
func (h *heap) restart() {
	h.c = checkpoint.NewCollector(h.store, h.faulty, checkpoint.CollectOptions{})
}

func (h *heap) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// take takes a checkpoint, or a savepoint, to its end; status completed, failed or aborted.
// Its manifest names reused objects too.
func (h *heap) take(savepoint string, status checkpoint.Status, reused ...string) weir.CheckpointID {
	h.t.Helper()
	ctx := h.t.Context()
	r := checkpoint.Record{Job: fence.Job, Attempt: fence.Attempt, Type: checkpoint.TypeCheckpoint, Savepoint: savepoint}
	if savepoint != "" {
		r.Type = checkpoint.TypeSavepoint
	}
	id, err := h.store.BeginCheckpoint(ctx, fence, r)
	h.must(err)
	m := &checkpoint.Manifest{Version: checkpoint.ManifestVersion, Job: fence.Job, Checkpoint: id, Attempt: fence.Attempt, Type: r.Type}
	op := checkpoint.OperatorSnapshot{Operator: "agg"}
	for n := range 2 {
		key := checkpoint.StateKey(fence.Job, fence.Attempt, "agg", n, id, 0)
		h.must(h.blobs.Put(ctx, key, strings.NewReader("state")))
		reused = append(reused, key)
	}
	for _, key := range reused {
		op.Keyed = append(op.Keyed, checkpoint.Handle{Object: key, Size: 5})
	}
	m.Tasks = []checkpoint.TaskSnapshot{{Operators: []checkpoint.OperatorSnapshot{op}}}
	r.ID, r.Status = id, status
	if status != checkpoint.StatusCompleted {
		_, err := h.store.AbortCheckpoint(ctx, fence, r)
		h.must(err)
		return id
	}
	data, err := m.Encode()
	h.must(err)
	r.Manifest = checkpoint.ManifestKey(fence.Job, id)
	h.must(h.blobs.Put(ctx, r.Manifest, strings.NewReader(string(data))))
	h.must(h.store.CompleteCheckpoint(ctx, fence, r, savepoint == ""))
	return id
}

// collect does rounds until there is nothing more to do, or one fails.
func (h *heap) collect() error {
	for {
		more, err := h.c.Round(h.t.Context(), fence.Job)
		if err != nil || !more {
			return err
		}
	}
}

// left lists what lies in storage, by checkpoint: "3: 2 objects, manifest".
func (h *heap) left() (list []string) {
	h.t.Helper()
	objects, manifests := map[weir.CheckpointID]int{}, map[weir.CheckpointID]bool{}
	for _, r := range h.store.Rows() {
		for n := range 2 {
			if _, err := h.blobs.Stat(h.t.Context(), checkpoint.StateKey(fence.Job, fence.Attempt, "agg", n, r.ID, 0)); err == nil {
				objects[r.ID]++
			}
		}
		_, err := h.blobs.Stat(h.t.Context(), checkpoint.ManifestKey(fence.Job, r.ID))
		manifests[r.ID] = err == nil
		if objects[r.ID] > 0 || manifests[r.ID] {
			list = append(list, fmt.Sprintf("%d: %d %v", r.ID, objects[r.ID], manifests[r.ID]))
		}
	}
	return list
}

func (h *heap) want(what string, want ...string) {
	h.t.Helper()
	if got := h.left(); !slices.Equal(got, want) {
		h.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// C22: after 100 checkpoints with retention 2 both that are kept are whole, also where they
// share objects with older ones.
func TestCollectHundred(t *testing.T) {
	t.Parallel()
	h := newHeap(t, 2)
	first := h.take("", checkpoint.StatusCompleted)
	shared := checkpoint.StateKey(fence.Job, fence.Attempt, "agg", 0, first, 0)
	for range 99 {
		h.take("", checkpoint.StatusCompleted, shared)
		h.must(h.collect())
	}
	h.want("after 100", "1: 1 false", "99: 2 true", "100: 2 true")
	kept, err := h.store.Retained(t.Context(), fence.Job)
	h.must(err)
	for _, r := range kept {
		m, err := checkpoint.LoadManifest(t.Context(), h.blobs, r.Manifest)
		h.must(err)
		h.must(m.CheckObjects(t.Context(), h.blobs))
	}
}

// C25: the process dies between deleting and recording it, at every call in turn; one
// object was deleted by hand. The next one finishes, and checkpoints go on.
func TestCollectInterrupted(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 12; at++ {
		h := newHeap(t, 1)
		h.take("", checkpoint.StatusCompleted)
		h.take("", checkpoint.StatusFailed)
		h.take("", checkpoint.StatusCompleted)
		h.must(h.blobs.Delete(t.Context(), checkpoint.StateKey(fence.Job, fence.Attempt, "agg", 1, 1, 0)))
		n, dead := 0, errors.New("killed")
		count := func() bool { n++; return n >= at }
		h.fault = func(c blob.Call) blob.Fault {
			if count() {
				return blob.Fault{Before: dead}
			}
			return blob.Fault{}
		}
		h.store.Fail(func(method string) checkpointtest.Fault {
			if count() {
				return checkpointtest.Fault{Before: dead}
			}
			return checkpointtest.Fault{}
		})
		_ = h.collect() // dies, or had finished before
		h.fault = nil
		h.store.Fail(func(string) checkpointtest.Fault { return checkpointtest.Fault{} })
		h.restart()
		h.take("", checkpoint.StatusCompleted)
		h.must(h.collect())
		h.want(fmt.Sprintf("killed at call %d", at), "4: 2 true")
		if gone := h.store.Gone(); !slices.Equal(gone, []weir.CheckpointID{1, 2, 3}) {
			t.Errorf("killed at call %d: collected %v", at, gone)
		}
	}
}

// C26: retention never removes a savepoint; one whose objects its user deleted, manifest
// and all, holds up nothing; one that he gives up goes.
func TestCollectSavepoints(t *testing.T) {
	t.Parallel()
	h := newHeap(t, 2)
	h.take("", checkpoint.StatusCompleted)
	mine := h.take("mine", checkpoint.StatusCompleted)
	lost := h.take("lost", checkpoint.StatusCompleted)
	h.must(h.blobs.Delete(t.Context(), checkpoint.ManifestKey(fence.Job, lost)))
	h.must(h.blobs.Delete(t.Context(), checkpoint.StateKey(fence.Job, fence.Attempt, "agg", 0, lost, 0)))
	for range 10 {
		h.take("", checkpoint.StatusCompleted)
	}
	h.must(h.collect())
	h.want("ten checkpoints later", "2: 2 true", "3: 1 false", "12: 2 true", "13: 2 true")
	h.store.Discard(mine)
	h.store.Discard(lost)
	h.must(h.collect())
	h.want("given up", "12: 2 true", "13: 2 true")
}

// A deleted job keeps its savepoints and what is pinned, until that is let go.
func TestCollectDeleted(t *testing.T) {
	t.Parallel()
	h := newHeap(t, 3)
	pinned := h.take("", checkpoint.StatusCompleted)
	h.take("mine", checkpoint.StatusCompleted)
	h.take("", checkpoint.StatusCompleted)
	h.take("", checkpoint.StatusAborted)
	h.must(h.blobs.Put(t.Context(), checkpoint.AgreedKey(fence.Job, fence.Attempt, "source", "files"), strings.NewReader("x")))
	h.store.Pin(pinned, true)
	h.store.Keep(0, true)
	h.must(h.collect())
	h.want("deleted", "1: 2 true", "2: 2 true")
	h.store.Pin(pinned, false)
	h.must(h.collect())
	h.want("let go", "2: 2 true")
	if _, err := h.blobs.Stat(t.Context(), checkpoint.AgreedKey(fence.Job, fence.Attempt, "source", "files")); !errors.Is(err, weir.ErrNotFound) {
		t.Error("what subtasks agreed on stays")
	}
}

// The metastore goes back in time: before a first look, and while a collector is at work.
// Nothing is deleted.
func TestCollectBehind(t *testing.T) {
	t.Parallel()
	for _, looked := range []bool{false, true} {
		h := newHeap(t, 1)
		h.take("", checkpoint.StatusFailed)
		h.take("", checkpoint.StatusCompleted)
		if looked {
			h.must(h.collect())
		}
		h.take("", checkpoint.StatusCompleted)
		h.take("", checkpoint.StatusCompleted)
		if looked {
			h.must(h.collect())
		}
		h.store.GoBack(2)
		h.store.Discard(2)
		before := h.left()
		var behind *checkpoint.BehindError
		if err := h.collect(); !errors.As(err, &behind) {
			t.Errorf("looked %v: %v", looked, err)
		}
		h.want("behind", before...)
	}
}

// An overtaken job gets a new attempt, or has a checkpoint adopted, while a round reads.
type overtaken struct {
	checkpoint.Rows
	looks int
}

func (o *overtaken) Subject(ctx context.Context, job weir.JobID) (checkpoint.Subject, error) {
	s, err := o.Rows.Subject(ctx, job)
	s.Fence.Attempt.Number += int64(o.looks)
	o.looks++
	return s, err
}

// What a round has read is of one attempt: else it deletes nothing, and the next one does.
func TestCollectOvertaken(t *testing.T) {
	t.Parallel()
	h := newHeap(t, 1)
	h.take("", checkpoint.StatusFailed)
	h.take("", checkpoint.StatusCompleted)
	before := h.left()
	_, err := checkpoint.NewCollector(&overtaken{Rows: h.store}, h.faulty, checkpoint.CollectOptions{}).Round(t.Context(), fence.Job)
	if !errors.Is(err, weir.ErrStale) {
		t.Errorf("%v", err)
	}
	h.want("overtaken", before...)
	h.must(h.collect())
	h.want("afterwards", "2: 2 true")
}

// What is deleted while a deep check reads, as retention does beside it, is missing, for
// the caller to ask whether it is still kept, and no end of the check.
func TestDeepCheckMeetsDeletion(t *testing.T) {
	t.Parallel()
	h := newHeap(t, 1)
	id := h.take("", checkpoint.StatusCompleted)
	check := checkpoint.Check{Blobs: h.blobs, Deep: true}
	keys, err := check.List(t.Context(), fence.Job)
	h.must(err)
	gone := checkpoint.StateKey(fence.Job, fence.Attempt, "agg", 1, id, 0)
	h.must(h.blobs.Delete(t.Context(), gone))
	found, err := check.Job(t.Context(), keys, checkpoint.Inventory{
		Subject:  checkpoint.Subject{Fence: fence, LastCheckpoint: id},
		Retained: []checkpoint.Retained{{ID: id, Type: checkpoint.TypeCheckpoint, Manifest: checkpoint.ManifestKey(fence.Job, id)}},
	})
	if err != nil || !slices.ContainsFunc(found, func(f checkpoint.Finding) bool { return f.Fault == checkpoint.FaultMissing && f.Key == gone }) {
		t.Errorf("%+v, %v", found, err)
	}
}

// A slow metastore and storage: at one call of a collector something happens meanwhile.
type slow struct {
	checkpoint.Rows
	h *heap
}

func (h *heap) call() {
	if h.calls++; h.calls == h.at {
		h.meanwhile()
	}
}

func (s slow) Subject(ctx context.Context, job weir.JobID) (checkpoint.Subject, error) {
	s.h.call()
	return s.Rows.Subject(ctx, job)
}

func (s slow) Retained(ctx context.Context, job weir.JobID) ([]checkpoint.Retained, error) {
	s.h.call()
	return s.Rows.Retained(ctx, job)
}

func (s slow) DiscardCheckpoints(ctx context.Context, f weir.Fence, ids []weir.CheckpointID) ([]weir.CheckpointID, error) {
	s.h.call()
	return s.Rows.DiscardCheckpoints(ctx, f, ids)
}

func (s slow) GivenUp(ctx context.Context, job weir.JobID, limit int, linger time.Duration) (checkpoint.GivenUp, error) {
	s.h.call()
	return s.Rows.GivenUp(ctx, job, limit, linger)
}

func (s slow) Collected(ctx context.Context, job weir.JobID, done checkpoint.GivenUp) error {
	s.h.call()
	return s.Rows.Collected(ctx, job, done)
}

// A holder of the lease hangs in its collection, at any call in turn: its lease lapses, and
// another one takes checkpoints, which share what the base has, and collects what it gives
// up. When the first comes back, and goes on where it was, what is kept stays whole:
// deletion is fenced by nothing but what the rows gave up for good.
func TestCollectHung(t *testing.T) {
	t.Parallel()
	calls := 0
	for at := 0; at <= calls; at++ { // 0: it does not hang, and tells how many calls there are
		h := newHeap(t, 2)
		base := h.take("", checkpoint.StatusCompleted)
		shared := func(id weir.CheckpointID) string {
			return checkpoint.StateKey(fence.Job, fence.Attempt, "agg", 0, id, 0)
		}
		h.take("", checkpoint.StatusFailed)
		h.take("mine", checkpoint.StatusCompleted)
		for range 2 {
			h.take("", checkpoint.StatusCompleted, shared(base))
		}
		last := h.take("", checkpoint.StatusCompleted, shared(base))
		h.at = at
		h.meanwhile = func() {
			other := checkpoint.NewCollector(h.store, h.blobs, checkpoint.CollectOptions{})
			for range 3 {
				h.take("", checkpoint.StatusAborted)
				h.take("", checkpoint.StatusCompleted, shared(base), shared(last))
				_, err := other.Round(t.Context(), fence.Job)
				h.must(err)
			}
		}
		h.fault = func(blob.Call) blob.Fault { h.call(); return blob.Fault{} }
		_, err := checkpoint.NewCollector(slow{h.store, h}, h.faulty, checkpoint.CollectOptions{}).Round(t.Context(), fence.Job)
		h.must(err)
		if at == 0 {
			calls = h.calls
			h.meanwhile()
		}
		kept, err := h.store.Retained(t.Context(), fence.Job)
		h.must(err)
		for _, r := range kept {
			m, err := checkpoint.LoadManifest(t.Context(), h.blobs, r.Manifest)
			h.must(err)
			if err := m.CheckObjects(t.Context(), h.blobs); err != nil {
				t.Errorf("hung at call %d: checkpoint %d: %v", at, r.ID, err)
			}
		}
		h.must(h.collect())
		h.want(fmt.Sprintf("hung at call %d", at), "1: 1 false", "3: 2 true", "6: 1 false", "10: 2 true", "12: 2 true")
	}
	if calls < 20 {
		t.Errorf("the round took %d calls", calls)
	}
}
