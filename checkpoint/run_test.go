package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

func TestRunPeriodic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{Interval: 10 * time.Second, NumRetained: 2})
		r.start()
		time.Sleep(45 * time.Second)
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		r.want("rows", r.rows(), []string{"1 checkpoint completed discarded", "2 checkpoint completed discarded", "3 checkpoint completed", "4 checkpoint completed"})
		r.want("objects", r.objects(), objectsOf("1-aaaaaaaa", 3, 4))
		r.want("calls", r.tasks.Calls(), []string{"trigger 1 base 0", "trigger 2 base 1", "trigger 3 base 2", "trigger 4 base 3"})
		row := r.store.Rows()[3]
		if len(row.Acks) != 4 || row.Acks[0].Snapshot != nil || row.StateBytes == 0 || !row.Periodic || row.CompletedAt.IsZero() {
			t.Errorf("row: %+v", row)
		}
		m, err := checkpoint.LoadManifest(t.Context(), r.blobs, row.Manifest)
		if err != nil || m.CheckObjects(t.Context(), r.blobs) != nil || len(m.Tasks) != 4 {
			t.Errorf("manifest: %+v, %v", m, err)
		}
	})
}

func TestRunRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{})
		gate := make(chan struct{})
		r.fault(func(c blob.Call) blob.Fault { // a slow snapshot
			if c.Verb == "PutIfAbsent" {
				return blob.Fault{Wait: gate}
			}
			return blob.Fault{}
		})
		r.start()
		first, _, err := r.runner.Checkpoint(t.Context())
		if err != nil || first != 1 {
			t.Fatal(first, err)
		}
		// C04: many at once; each gets an id, each id ends, one runs at a time.
		var mu sync.Mutex
		var got []string
		var wg sync.WaitGroup
		for i := range 25 {
			wg.Go(func() {
				name := ""
				var id weir.CheckpointID
				var err error
				if i%5 == 0 {
					name = fmt.Sprintf("s%d", i)
					id, _, err = r.runner.Savepoint(t.Context(), name, false)
				} else {
					id, _, err = r.runner.Checkpoint(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
				rec, err := r.runner.Wait(t.Context(), id)
				if err != nil || rec.Status != checkpoint.StatusCompleted || rec.Savepoint != name {
					t.Errorf("%+v, %v", rec, err)
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprint(id))
			})
		}
		synctest.Wait()
		close(gate)
		wg.Wait()
		slices.Sort(got)
		r.want("ids", slices.Compact(got), []string{"2", "3", "4", "5", "6", "7"})

		// A request whose user goes away is withdrawn.
		r.fault(func(c blob.Call) blob.Fault {
			if c.Verb == "PutIfAbsent" {
				return blob.Fault{Wait: make(chan struct{})}
			}
			return blob.Fault{}
		})
		if _, turn, err := r.runner.Savepoint(t.Context(), "slow", false); err != nil || turn != checkpoint.TurnStarted {
			t.Fatal(turn, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := r.runner.Savepoint(ctx, "late", false); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, _, err := r.runner.Savepoint(ctx, "Bad Name", false); !errors.Is(err, weir.ErrInvalid) {
			t.Error(err)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
		if _, _, err := r.runner.Checkpoint(t.Context()); !errors.Is(err, weir.ErrConflict) {
			t.Error(err)
		}
		r.runner.Ack(checkpoint.Ack{}) // is dropped
	})
}

func TestRunEndAbortsPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // C09
		r := newRig(t, false, checkpoint.Options{})
		r.tasks.Answer = func(a *checkpoint.Ack) bool { return a.Checkpoint != 2 || a.Task.Subtask == 0 }
		r.start()
		for range 2 {
			r.begin()
		}
		waitC := make(chan checkpoint.Record, 1)
		go func() {
			rec, _ := r.runner.Wait(t.Context(), 2)
			waitC <- rec
		}()
		synctest.Wait()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if rec := <-waitC; rec.Status != checkpoint.StatusAborted {
			t.Errorf("%+v", rec)
		}
		r.want("rows", r.rows(), []string{"1 checkpoint completed", "2 checkpoint aborted attempt_ended"})
		r.want("objects", r.objects(), objectsOf("1-aaaaaaaa", 1))
	})
}

// TestRunTellsAll: what the history has not been told when the attempt ends, it is told then.
func TestRunTellsAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{})
		onEvent, goC := r.cfg.OnEvent, make(chan struct{})
		r.cfg.OnEvent = func(ctx context.Context, e weir.Event) {
			<-goC // a slow metastore
			if ctx.Err() == nil {
				onEvent(ctx, e)
			}
		}
		r.start()
		id, _, err := r.runner.Savepoint(t.Context(), "one", false)
		if err != nil {
			t.Fatal(err)
		}
		r.ended(id)
		r.cancel()
		synctest.Wait()
		close(goC)
		if err := <-r.endC; err != nil {
			t.Fatal(err)
		}
		r.want("events", r.mu.events, []string{"savepoint: savepoint one completed as checkpoint 1"})
	})
}

// TestRunConcurrent: checkpoints and a savepoint under way at a time; the newest, complete
// first, supersedes the older one. The attempt's end gives up all that is pending.
func TestRunConcurrent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, true, checkpoint.Options{MaxConcurrent: 2})
		r.tasks.Answer = func(a *checkpoint.Ack) bool { return a.Checkpoint == 3 || a.Task.Chain == 0 }
		r.start()
		ask := func(name string, want checkpoint.Turn) {
			t.Helper()
			var turn checkpoint.Turn
			var err error
			if name == "" {
				_, turn, err = r.runner.Checkpoint(t.Context())
			} else {
				_, turn, err = r.runner.Savepoint(t.Context(), name, false)
			}
			if err != nil || turn != want {
				t.Fatalf("%s, %v", turn, err)
			}
			synctest.Wait()
		}
		ask("", checkpoint.TurnStarted)
		ask("mine", checkpoint.TurnStarted)
		ask("", checkpoint.TurnStarted)
		ask("", checkpoint.TurnStarted)
		if rec, err := r.runner.Wait(t.Context(), 1); err != nil || rec.Failure == nil || rec.Failure.Message != "checkpoint 3 completed first" {
			t.Errorf("%+v, %v", rec, err)
		}
		if row := r.store.Rows()[2]; row.CommitsOpen || row.Path == "" || row.Acks[0].AckedAt.IsZero() {
			t.Errorf("%+v", row)
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		r.want("rows", r.rows(), []string{"1 checkpoint aborted superseded", "2 savepoint aborted attempt_ended", "3 checkpoint completed", "4 checkpoint aborted attempt_ended"})
		r.want("objects", r.objects(), objectsOf("1-aaaaaaaa", 3))
	})
}

// TestRunPause: C06: for two minutes somebody asks for a savepoint every five seconds. Each
// begins at once, and a periodic checkpoint completes every 20 seconds all the same.
func TestRunPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{Interval: 2 * time.Second, MinPause: 20 * time.Second})
		r.start()
		began := time.Now()
		for i := range 24 {
			time.Sleep(5 * time.Second)
			asked := time.Now()
			id, turn, err := r.runner.Savepoint(t.Context(), fmt.Sprintf("s%d", i), false)
			if err != nil || turn != checkpoint.TurnStarted || time.Since(asked) > 0 {
				t.Errorf("savepoint %d: %s after %v, %v", i, turn, time.Since(asked), err)
			}
			if rec := r.ended(id); rec.Status != checkpoint.StatusCompleted {
				t.Errorf("%+v", rec)
			}
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		var at []string
		for _, row := range r.store.Rows() {
			if row.Periodic {
				at = append(at, fmt.Sprint(row.TriggeredAt.Sub(began)))
			}
		}
		r.want("periodic checkpoints", at, []string{"2s", "22s", "42s", "1m2s", "1m22s", "1m42s"})
	})
}

// TestRunProgress: an expired checkpoint says where it was.
func TestRunProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{Timeout: time.Minute, TolerableFailures: 9})
		slow := weir.TaskID{Chain: 1, Subtask: 1}
		r.tasks.Answer = func(a *checkpoint.Ack) bool { return a.Task != slow }
		r.tasks.Far = func(weir.CheckpointID) ([]checkpoint.Progress, error) {
			return []checkpoint.Progress{{Task: slow, Worker: "w2", Stage: checkpoint.StageUploading, SinceMS: 59000, Doing: "storing 3 of 7 objects"}}, nil
		}
		r.start()
		id := r.begin()
		rec, err := r.runner.Wait(t.Context(), id)
		const want = "expired after 60 s: global_aggregate(k) subtask 1 was still storing its snapshot, since 59 s: storing 3 of 7 objects"
		if err != nil || rec.Failure.Message != want || rec.Failure.Worker != "w2" || *rec.Failure.Subtask != 1 || rec.Failure.Operator != "global_k" {
			t.Errorf("%+v, %v", rec.Failure, err)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestRunCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{})
		r.tasks.Answer = func(a *checkpoint.Ack) bool { return a.Task.Subtask == 0 }
		r.start()
		id := r.begin()
		synctest.Wait() // what was uploaded after the abort would be left to the next attempt
		if err := r.runner.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if rec := r.ended(id); rec.Status != checkpoint.StatusAborted {
			t.Errorf("%+v", rec)
		}
		if err := r.runner.Cancel(t.Context(), id); !errors.Is(err, weir.ErrConflict) {
			t.Error(err)
		}
		if _, err := r.runner.Wait(t.Context(), 99); !errors.Is(err, weir.ErrNotFound) {
			t.Error(err)
		}
		synctest.Wait()
		r.want("objects", r.objects(), nil)
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestRunTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // C07
		r := newRig(t, false, checkpoint.Options{Interval: time.Second, Timeout: 2 * time.Second, TolerableFailures: 1})
		var late checkpoint.Ack
		r.tasks.Answer = func(a *checkpoint.Ack) bool {
			if a.Checkpoint == 1 && a.Task == (weir.TaskID{Chain: 1, Subtask: 1}) {
				late = *a
				return false
			}
			return true
		}
		r.start()
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		// Its upload comes five seconds late and is acknowledged then.
		key := late.Snapshot.Operators[0].Keyed[0].Object
		if err := r.blobs.Put(t.Context(), key, strings.NewReader("late")); err != nil {
			t.Fatal(err)
		}
		r.runner.Ack(late)
		time.Sleep(time.Second)
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		rows := r.rows()
		r.want("rows", rows[:2], []string{"1 checkpoint failed timeout", "2 checkpoint completed"})
		for _, key := range r.objects() {
			if strings.HasSuffix(key, "/1-0") || strings.HasPrefix(key, "1/") {
				t.Errorf("left: %s", key)
			}
		}
		if f := r.store.Rows()[0].Failure.Message; f != "expired after 2 s: global_aggregate(k) subtask 1 had not acknowledged" {
			t.Error(f)
		}
	})
}

func TestRunFailsAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{Interval: time.Second})
		r.tasks.Answer = func(a *checkpoint.Ack) bool {
			if a.Task == (weir.TaskID{Chain: 1, Subtask: 0}) {
				a.Snapshot, a.Failure = nil, &weir.Failure{Message: "put object x: no space left on device"}
			}
			return true
		}
		r.start()
		err := <-r.endC
		var failure *checkpoint.AttemptFailure
		if !errors.As(err, &failure) || failure.Checkpoint != 1 || failure.Failure.Reason != checkpoint.ReasonDeclined ||
			failure.Error() != "checkpoint 1 failed: declined by global_aggregate(k) subtask 0 on worker w1: put object x: no space left on device" {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		r.want("rows", r.rows(), []string{"1 checkpoint failed declined"})
		r.want("objects", r.objects(), nil)
		r.want("events", r.mu.events, []string{"checkpoint: " + failure.Error()})
		r.cancel()
	})
}

func TestRunStale(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{Interval: time.Second})
		r.start()
		time.Sleep(1500 * time.Millisecond)
		other := fence
		other.Term++
		r.store.Own(other)
		if err := <-r.endC; !errors.Is(err, weir.ErrStale) {
			t.Errorf("%v", err)
		}
		r.want("rows", r.rows(), []string{"1 checkpoint completed"})
		r.cancel()
	})
}

func TestRunFinal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, true, checkpoint.Options{})
		r.start()
		for _, task := range r.tasks.List {
			if task.Source {
				r.runner.SourceEnded(task.ID)
			}
		}
		if got := <-r.runner.Ending(); got != (checkpoint.Ending{Checkpoint: 1}) {
			t.Errorf("%+v", got)
		}
		r.want("rows", r.rows(), []string{"1 checkpoint completed"})
		r.want("calls", r.tasks.Calls(), []string{"trigger 1 base 0", "notify 1"})
		if !r.store.Rows()[0].Final {
			t.Error("not final")
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}
