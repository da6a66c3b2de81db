package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// Cases of other systems' faults in the life of checkpoints and savepoints; each test
// carries its case's id.

// onRequest starts a job that takes checkpoints on request only; fault chooses what
// becomes of calls to its storage.
func onRequest(t *testing.T, sql string, fault func(blob.Call) blob.Fault) (*jobtest.Cluster, *job.Service) {
	t.Helper()
	c := jobtest.New(t)
	c.Blobs = blob.NewFaulty(c.Blobs, fault)
	s := c.Server("s1")
	c.Worker("w1", 4)
	c.Heard(s, 1)
	spec := c.Spec("counts", sql, 2)
	spec.Checkpoint = json.RawMessage(`{"interval":"0s"}`)
	if _, err := s.Submit(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	c.Await(s, "counts", weir.StatusRunning)
	return c, s
}

// trigger takes a checkpoint to its end.
func trigger(t *testing.T, s *job.Service) job.Triggered {
	t.Helper()
	r, err := s.TriggerCheckpoint(context.Background(), "counts", jobtest.Timeout)
	if err != nil || r.Status != checkpoint.StatusCompleted {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

// TestC09CancelWhilePending: a cancel while a checkpoint is being written ends the job as
// CANCELED, the checkpoint as aborted, and clears up what it had stored; the one before can be
// started from. Repeated calls change nothing.
func TestC09CancelWhilePending(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	c, s := onRequest(t, many, func(call blob.Call) blob.Fault {
		if slow.Load() && strings.HasSuffix(call.Key, "/manifest") && call.Verb == "PutIfAbsent" {
			return blob.Fault{Wait: make(chan struct{})}
		}
		return blob.Fault{}
	})
	ctx := context.Background()
	first := trigger(t, s)
	slow.Store(true)
	pending, err := s.TriggerCheckpoint(ctx, "counts", 0)
	if err != nil || pending.Status != checkpoint.StatusPending {
		t.Fatalf("%+v, %v", pending, err)
	}
	stored := func() bool { // objects are named checkpoint-n
		found := false
		err := c.Blobs.List(ctx, checkpoint.JobPrefix(pending.Job), func(key string, _ int64) bool {
			found = found || strings.Contains(key, fmt.Sprintf("/%d-", pending.ID))
			return true
		})
		return err == nil && found
	}
	c.Until("it has stored something", func(context.Context) bool { return stored() })
	if err := s.Delete(ctx, "counts", false); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("delete of a running job: %v", err)
	}
	for range 2 {
		if _, err := s.Cancel(ctx, "counts", false); err != nil {
			t.Errorf("cancel: %v", err)
		}
	}
	if _, err := s.Stop(ctx, "counts", job.StopRequest{}); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("stop of a canceled job: %v", err)
	}
	if j := c.Await(s, "counts", weir.StatusCanceled, weir.StatusFailed); j.Status != weir.StatusCanceled || j.Failure != nil {
		t.Fatalf("%s: %+v", j.Status, j.Failure)
	}
	if _, err := s.Cancel(ctx, "counts", false); err != nil {
		t.Errorf("cancel of a canceled job: %v", err)
	}
	r, err := c.Store.CheckpointByID(ctx, pending.Job, pending.ID)
	if err != nil || r.Status != checkpoint.StatusAborted || r.Failure == nil || !slices.Contains([]string{checkpoint.ReasonAttemptEnded, checkpoint.ReasonCanceled}, r.Failure.Reason) {
		t.Errorf("%+v, %v", r, err)
	}
	c.Until("what it stored is gone", func(context.Context) bool { return !stored() })
	slow.Store(false)
	if _, err := s.Start(ctx, "counts", job.StartRequest{From: "latest"}); err != nil {
		t.Fatal(err)
	}
	if j := manyFinished(t, c, s); j.RestoredFrom.Checkpoint != first.ID {
		t.Errorf("restored from %v, want %d", j.RestoredFrom, first.ID)
	}
}

// TestC10StopRefusedStorage: a stop whose savepoint cannot be stored fails with its reason and
// leaves the job RUNNING; the next one, asked for twice at once, ends it, and no row is lost.
func TestC10StopRefusedStorage(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	c, s := onRequest(t, counts, func(call blob.Call) blob.Fault {
		if refuses.Load() && strings.HasPrefix(call.Verb, "Put") {
			return blob.Fault{Before: errors.New("access denied")}
		}
		return blob.Fault{}
	})
	ctx := context.Background()
	refuses.Store(true)
	if _, err := s.Stop(ctx, "counts", job.StopRequest{Name: "last"}); err != nil {
		t.Fatal(err)
	}
	c.Until("the savepoint has failed", func(ctx context.Context) bool {
		sp, err := c.Store.Savepoint(ctx, "last")
		return err == nil && sp.Status == checkpoint.StatusFailed && sp.Failure != nil && strings.Contains(sp.Failure.Message, "access denied")
	})
	c.Until("the stop is taken back", func(ctx context.Context) bool {
		j, err := c.Store.Job(ctx, "counts")
		return err == nil && j.Desired == weir.DesiredRunning && j.Status == weir.StatusRunning
	})
	if j, err := s.Get(ctx, "counts"); err != nil || j.Attempt.Number != 1 || j.Failure != nil {
		t.Errorf("%+v, %v: want it to run on in its attempt", j, err)
	}
	refuses.Store(false)
	errC := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.Stop(ctx, "counts", job.StopRequest{Name: "last"})
			errC <- err
		}()
	}
	one, two := <-errC, <-errC
	if one != nil && two != nil || one != nil && !errors.Is(one, weir.ErrConflict) || two != nil && !errors.Is(two, weir.ErrConflict) {
		t.Errorf("two stops at once: %v, %v", one, two)
	}
	j := c.Await(s, "counts", weir.StatusStopped)
	if sp, err := c.Store.Savepoint(ctx, "last"); err != nil || sp.Status != checkpoint.StatusCompleted || sp.Checkpoint != j.Base.Checkpoint {
		t.Errorf("%+v, base %v, %v", sp, j.Base, err)
	}
	if _, err := s.Start(ctx, "counts", job.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	finished(t, c, s, "counts")
}

// TestC26LostSavepoint: a savepoint is newer than every checkpoint, its user has deleted its
// objects, and a worker dies: the job goes on from its checkpoint, with the exact answer.
func TestC26LostSavepoint(t *testing.T) {
	t.Parallel()
	c, s := onRequest(t, counts, func(blob.Call) blob.Fault { return blob.Fault{} })
	ctx := context.Background()
	first := trigger(t, s)
	sp, err := s.TriggerSavepoint(ctx, "counts", "mine", jobtest.Timeout)
	if err != nil || sp.Status != checkpoint.StatusCompleted || sp.ID <= first.ID {
		t.Fatalf("%+v, %v", sp, err)
	}
	remove(t, c, checkpoint.ManifestKey(sp.Job, sp.ID))
	c.Worker("w2", 4)
	c.Kill("w1")
	if j := finished(t, c, s, "counts"); j.RestoredFrom.Checkpoint != first.ID || j.Attempt.Number < 2 {
		t.Errorf("attempt %v restored from %v, want checkpoint %d", j.Attempt, j.RestoredFrom, first.ID)
	}
}
