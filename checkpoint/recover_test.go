package checkpoint_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/checkpoint/checkpointtest"
)

// TestRunRestoredCommits: an attempt dies between the decision and the commits; the
// next one, restored from that base, commits and closes them.
func TestRunRestoredCommits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, true, checkpoint.Options{NumRetained: 1})
		r.start()
		r.begin()
		synctest.Wait()
		r.tasks.Answer = func(*checkpoint.Ack) bool { r.tasks.Fail(errors.New("worker died")); return true }
		r.begin()
		synctest.Wait()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		// What has open commits stays, however many are to be kept.
		r.want("rows", r.rows(), []string{"1 checkpoint completed discarded", "2 checkpoint completed open"})
		r.tasks.Fail(nil)
		r.tasks.Answer = nil
		r.attempt()
		r.start()
		r.want("rows", r.rows(), []string{"1 checkpoint completed discarded", "2 checkpoint completed"})
		if id, _, err := r.runner.Checkpoint(t.Context()); err != nil || id != 3 {
			t.Errorf("%d, %v", id, err) // C24: ids go on
		}
		synctest.Wait()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		r.want("objects", r.objects(), objectsOf("2-bbbbbbbb", 3))
	})
}

// TestRunStop: stop with savepoint, first with an object store that refuses (C10).
func TestRunStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, true, checkpoint.Options{})
		r.fault(blob.FailTimes(3, "PutIfAbsent", "manifest", blob.Fault{Before: errors.New("access denied")}))
		r.start()
		id, _, err := r.runner.Savepoint(t.Context(), "last", true)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := r.runner.Wait(t.Context(), id)
		if err != nil || rec.Status != checkpoint.StatusFailed || rec.Failure.Reason != checkpoint.ReasonManifest {
			t.Fatalf("%+v, %v", rec, err)
		}
		id, _, err = r.runner.Savepoint(t.Context(), "last", true)
		if err != nil {
			t.Fatal(err)
		}
		if got := <-r.runner.Ending(); got != (checkpoint.Ending{Checkpoint: id, Stopped: true}) {
			t.Errorf("%+v", got)
		}
		if base, _ := r.store.Base(); base != id {
			t.Errorf("base %d, want %d", base, id)
		}
		r.want("rows", r.rows(), []string{"1 savepoint failed manifest", "2 savepoint completed"})
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestRunUnknownOutcomes loses the connection before and after every kind of call; the
// outcome is found out and every checkpoint ends.
func TestRunUnknownOutcomes(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	for _, method := range []string{"BeginCheckpoint", "CompleteCheckpoint", "AbortCheckpoint", "CloseCommits", "Checkpoint", "Retained", "DiscardCheckpoints"} {
		for _, fault := range []checkpointtest.Fault{{Before: lost}, {After: lost}} {
			t.Run(fmt.Sprintf("%s after=%v", method, fault.After != nil), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { unknownOutcome(t, method, fault) })
			})
		}
	}
}

func unknownOutcome(t *testing.T, method string, fault checkpointtest.Fault) {
	r := newRig(t, true, checkpoint.Options{Interval: 5 * time.Second, Timeout: 4 * time.Second, NumRetained: 1, TolerableFailures: 1})
	n := 0
	r.store.Fail(func(m string) checkpointtest.Fault {
		if m == "CompleteCheckpoint" && method == "Checkpoint" && n == 0 {
			return checkpointtest.Fault{After: errors.New("connection lost")} // so that the row is read back
		}
		if m == method {
			if n++; n == 1 {
				return fault
			}
		}
		return checkpointtest.Fault{}
	})
	r.tasks.Answer = func(a *checkpoint.Ack) bool { return a.Checkpoint != 2 } // so that one is aborted
	r.start()
	time.Sleep(33 * time.Second)
	r.store.Fail(func(string) checkpointtest.Fault { return checkpointtest.Fault{} })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	rows := r.store.Rows()
	for _, row := range rows {
		if row.Status == checkpoint.StatusPending || row.CommitsOpen {
			t.Errorf("checkpoint %d is left %s, commits open %v", row.ID, row.Status, row.CommitsOpen)
		}
	}
	last := rows[len(rows)-1]
	if base, _ := r.store.Base(); base != last.ID || last.Status != checkpoint.StatusCompleted {
		t.Errorf("base %d, last %d %s", base, last.ID, last.Status)
	}
	r.want("objects", r.objects(), objectsOf("1-aaaaaaaa", int(last.ID)))
}

// TestRunManifestReadBack: a manifest whose write was reported failed, but was done,
// is read back; another's is never overwritten.
func TestRunManifestReadBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{})
		r.fault(blob.FailTimes(1, "PutIfAbsent", "manifest", blob.Fault{After: errors.New("connection lost")}))
		r.start()
		id := r.begin()
		if rec := r.ended(id); rec.Status != checkpoint.StatusCompleted {
			t.Errorf("%+v", rec)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestRunMetastoreBehind: the metastore is restored from a backup. The next attempt
// ends before it decides anything, and deletes nothing.
func TestRunMetastoreBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{})
		r.start()
		for range 3 {
			r.ended(r.begin())
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		before := r.objects()
		r.store.GoBack(1)
		r.attempt()
		r.start()
		err := <-r.endC
		if !isBehind(err) {
			t.Errorf("%v", err)
		}
		r.want("objects", r.objects(), before)
		r.cancel()
	})
}

// TestRunSurveyFirst: no checkpoint begins before storage was listed, nothing is deleted
// and the request waits; once the metastore is known to be behind it is refused.
func TestRunSurveyFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, key, message string }{
		{"manifest", checkpoint.ManifestKey(fence.Job, 9), "storage holds checkpoint 9, but the last id given out is 0"},
		{"newer attempt", checkpoint.StateKey(fence.Job, weir.AttemptID{Number: 2, Tag: "cccccccc"}, "global_k", 0, 1, 0), "storage holds objects of attempt 2-cccccccc, but the newest attempt is 1-aaaaaaaa"},
		{"other attempt", checkpoint.FullKey(fence.Job, weir.AttemptID{Number: 1, Tag: "cccccccc"}, "global_k", 0, 1), "storage holds objects of attempt 1-cccccccc, but the newest attempt is 1-aaaaaaaa"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, false, checkpoint.Options{Interval: time.Second, NumRetained: 1})
				r.fault(blob.FailTimes(3, "List", "", blob.Fault{Before: errors.New("access denied")}))
				if err := r.blobs.Put(t.Context(), c.key, strings.NewReader("x")); err != nil {
					t.Fatal(err)
				}
				r.cfg.Pending = []weir.CheckpointID{7}
				before := r.objects()
				r.start()
				_, _, refused := r.runner.Checkpoint(t.Context())
				if err := <-r.endC; !isBehind(err) || !strings.Contains(err.Error(), c.message) || !errors.Is(refused, weir.ErrConflict) {
					t.Errorf("%v; request: %v", err, refused)
				}
				r.want("objects", r.objects(), before)
				r.want("rows", r.rows(), nil)
				r.want("events", r.mu.events, []string{"checkpoint: no checkpoint begins until storage can be listed: list objects of " + string(fence.Job) + ": access denied"})
				r.cancel()
			})
		})
	}
}

func isBehind(err error) bool {
	var failure *checkpoint.AttemptFailure
	return errors.As(err, &failure) && failure.Failure.Reason == checkpoint.ReasonMetastoreBack
}

// TestRunSurveyStale: what a newer owner wrote does not make its predecessor say that the
// metastore is behind.
func TestRunSurveyStale(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{Interval: time.Second})
		other := fence
		other.Attempt = weir.AttemptID{Number: 2, Tag: "cccccccc"}
		if err := r.blobs.Put(t.Context(), checkpoint.StateKey(fence.Job, other.Attempt, "global_k", 0, 1, 0), strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		r.store.Own(other)
		r.start()
		if err := <-r.endC; !errors.Is(err, weir.ErrStale) {
			t.Errorf("%v", err)
		}
		r.cancel()
	})
}

// TestRunSweep: what a killed owner left is cleared up by the next attempt (C25).
func TestRunSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{NumRetained: 1})
		r.fault(func(c blob.Call) blob.Fault { // no object can be deleted
			if c.Verb == "Delete" {
				return blob.Fault{Before: errors.New("access denied")}
			}
			return blob.Fault{}
		})
		r.tasks.Answer = func(a *checkpoint.Ack) bool { return a.Checkpoint != 3 }
		r.start()
		for range 3 {
			r.begin()
			synctest.Wait()
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		r.want("rows", r.rows(), []string{"1 checkpoint completed discarded", "2 checkpoint completed", "3 checkpoint aborted attempt_ended"})
		left := slices.DeleteFunc(objectsOf("1-aaaaaaaa", 1, 2, 3), func(key string) bool { return key == "3/manifest" })
		r.want("objects", r.objects(), left)
		// One expired object is deleted by hand.
		if err := r.blobs.Delete(t.Context(), string(fence.Job)+"/1-aaaaaaaa/global_k-0/1-0"); err != nil {
			t.Fatal(err)
		}
		r.fault(nil)
		r.attempt()
		for _, attempt := range []weir.AttemptID{fence.Attempt, r.cfg.Fence.Attempt} { // what their tasks went by
			key := checkpoint.AgreedKey(fence.Job, attempt, "source_in", "files")
			if err := r.blobs.Put(t.Context(), key, strings.NewReader("x")); err != nil {
				t.Fatal(err)
			}
		}
		r.start()
		r.want("objects", r.objects(), slices.Sorted(slices.Values(append(objectsOf("1-aaaaaaaa", 2), "2-bbbbbbbb/source_in-0/agreed-files"))))
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
	})
}
