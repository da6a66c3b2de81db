package checkpoint_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// TestAskedBeside: a checkpoint and a savepoint expire together, and a worker takes all the
// time that it has to answer. Both are told of: neither question waits for the other.
func TestAskedBeside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{Timeout: time.Minute, TolerableFailures: 9})
		slow := weir.TaskID{Chain: 1, Subtask: 1}
		r.tasks.Answer = func(a *checkpoint.Ack) bool { return a.Task != slow }
		r.tasks.Far = func(weir.CheckpointID) ([]checkpoint.Progress, error) {
			time.Sleep(1900 * time.Millisecond)
			return []checkpoint.Progress{{Task: slow, Worker: "w2", Stage: checkpoint.StageCutting, SinceMS: 59000}}, nil
		}
		r.start()
		first := r.begin()
		second, _, err := r.runner.Savepoint(t.Context(), "s", false)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []weir.CheckpointID{first, second} {
			rec, err := r.runner.Wait(t.Context(), id)
			const want = "expired after 60 s: global_aggregate(k) subtask 1 was still cutting its snapshot, since 59 s"
			if err != nil || !strings.HasPrefix(rec.Failure.Message, want) {
				t.Errorf("checkpoint %d: %+v, %v", id, rec.Failure, err)
			}
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestManifestBeside: storage hangs at a manifest; the metastore is not waited for by what
// has nothing to do with it.
func TestManifestBeside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{})
		r.fault(func(c blob.Call) blob.Fault {
			if c.Verb == "PutIfAbsent" {
				return blob.Fault{Wait: make(chan struct{})}
			}
			return blob.Fault{}
		})
		r.tasks.Answer = func(a *checkpoint.Ack) bool { return a.Checkpoint == 1 }
		r.start()
		if _, _, err := r.runner.Savepoint(t.Context(), "s", false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begun := time.Now()
		id := r.begin()
		if err := r.runner.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if rec := r.ended(id); rec.Status != checkpoint.StatusAborted {
			t.Errorf("%+v", rec)
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("begin and cancel of a checkpoint waited %v for a savepoint's manifest", took)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestUndelivered(t *testing.T) {
	t.Parallel()
	gone := errors.New("no responders")
	u := checkpoint.Undelivered{{Subtask: 2}: gone, {Subtask: 0}: errors.New("deadline exceeded"), {Subtask: 1}: gone}
	if got := u.Error(); got != "deadline exceeded; no responders" {
		t.Error(got)
	}
}
