package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/checkpoint/checkpointtest"
	"weir/planner/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var fence = weir.Fence{Job: "job_00000000000000000000000000000001", Attempt: weir.AttemptID{Number: 1, Tag: "aaaaaaaa"}, Term: 1}

func graph(sink bool) plan.Graph {
	last := plan.Operator{ID: "result_1", Name: "result", Kind: plan.Result}
	if sink {
		last = plan.Operator{ID: "sink_out", Name: "sink(out)", Kind: plan.Sink}
	}
	return plan.Graph{Version: 1, MaxParallelism: 8, Chains: []plan.Chain{
		{Operators: []plan.Operator{{ID: "source_in", Name: "source(in)", Kind: plan.Source}}},
		{Operators: []plan.Operator{{ID: "global_k", Name: "global_aggregate(k)", Kind: plan.GlobalAggregate}, last}},
	}}
}

// A rig is a runner with everything around it in memory. It lives in a synctest bubble.
type rig struct {
	t      *testing.T
	cfg    checkpoint.Config
	store  *checkpointtest.Store
	blobs  *blob.Memory
	faulty *blob.Faulty
	tasks  *checkpointtest.Tasks
	runner *checkpoint.Runner
	cancel context.CancelFunc
	endC   chan error

	mu struct {
		sync.Mutex
		fault  func(blob.Call) blob.Fault
		events []string
	}
}

func newRig(t *testing.T, sink bool, o checkpoint.Options) *rig {
	r := &rig{t: t, store: checkpointtest.NewStore(fence), blobs: blob.NewMemory()}
	r.faulty = blob.NewFaulty(r.blobs, func(c blob.Call) blob.Fault {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.mu.fault == nil {
			return blob.Fault{}
		}
		return r.mu.fault(c)
	})
	r.cfg = checkpoint.Config{
		Fence: fence, Graph: graph(sink), Parallelism: 2, Options: o, Store: r.store, Blobs: r.faulty,
		Now: time.Now, Logger: slog.New(slog.DiscardHandler), OnEvent: func(_ context.Context, e weir.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.mu.events = append(r.mu.events, e.Kind+": "+e.Message)
		},
	}
	r.tasks = &checkpointtest.Tasks{Fence: fence, List: checkpoint.TasksOf(r.cfg.Graph, 2), Blobs: r.blobs}
	r.cfg.Tasks = r.tasks
	return r
}

func (r *rig) fault(f func(blob.Call) blob.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.fault = f
}

func (r *rig) start() {
	r.runner = checkpoint.NewRunner(r.cfg)
	r.tasks.Bind(r.runner)
	ctx, cancel := context.WithCancel(r.t.Context())
	r.cancel, r.endC = cancel, make(chan error, 1)
	go func() { r.endC <- r.runner.Run(ctx) }()
	synctest.Wait()
}

// end stops the runner and returns what Run did.
func (r *rig) end() error {
	r.cancel()
	return <-r.endC
}

// attempt hands the job to its next attempt, started from the base.
func (r *rig) attempt() {
	f := r.cfg.Fence
	f.Attempt = weir.AttemptID{Number: f.Attempt.Number + 1, Tag: "bbbbbbbb"}
	r.store.Own(f)
	base, last := r.store.Base()
	r.cfg.Fence, r.tasks.Fence = f, f
	r.cfg.Base, r.cfg.LastID = weir.SnapshotRef{Job: f.Job, Checkpoint: base}, last
	r.cfg.OpenCommits = nil
	for _, row := range r.store.Rows() {
		if row.CommitsOpen {
			r.cfg.OpenCommits = append(r.cfg.OpenCommits, row.ID)
		}
	}
}

func (r *rig) rows() []string {
	var list []string
	for _, row := range r.store.Rows() {
		s := fmt.Sprintf("%d %s %s", row.ID, row.Type, row.Status)
		if row.Failure != nil {
			s += " " + row.Failure.Reason
		}
		if row.Discarded {
			s += " discarded"
		}
		if row.CommitsOpen {
			s += " open"
		}
		list = append(list, s)
	}
	return list
}

func (r *rig) objects() (keys []string) {
	err := r.blobs.List(r.t.Context(), "", func(key string, _ int64) bool {
		keys = append(keys, strings.TrimPrefix(key, string(fence.Job)+"/"))
		return true
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return keys
}

func (r *rig) want(what string, got, want []string) {
	r.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// objectsOf are the keys that complete checkpoints of the rig's tasks leave.
func objectsOf(attempt string, ids ...int) []string {
	var keys []string
	for _, id := range ids {
		keys = append(keys, fmt.Sprintf("%d/manifest", id))
		for _, op := range []string{"global_k-0", "global_k-1", "source_in-0", "source_in-1"} {
			keys = append(keys, fmt.Sprintf("%s/%s/%d-0", attempt, op, id))
		}
	}
	slices.Sort(keys)
	return keys
}

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
		first, err := r.runner.Checkpoint(t.Context())
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
					id, err = r.runner.Savepoint(t.Context(), name, false)
				} else {
					id, err = r.runner.Checkpoint(t.Context())
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
		if _, err := r.runner.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.runner.Savepoint(ctx, "late", false); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := r.runner.Savepoint(ctx, "Bad Name", false); !errors.Is(err, weir.ErrInvalid) {
			t.Error(err)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
		if _, err := r.runner.Checkpoint(t.Context()); !errors.Is(err, weir.ErrConflict) {
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
			if _, err := r.runner.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
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

func TestRunCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{})
		r.tasks.Answer = func(a *checkpoint.Ack) bool { return a.Task.Subtask == 0 }
		r.start()
		id, err := r.runner.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.runner.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if rec, err := r.runner.Wait(t.Context(), id); err != nil || rec.Status != checkpoint.StatusAborted {
			t.Errorf("%+v, %v", rec, err)
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

// TestRunRestoredCommits: an attempt dies between the decision and the commits; the
// next one, restored from that base, commits and closes them.
func TestRunRestoredCommits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, true, checkpoint.Options{NumRetained: 1})
		r.start()
		if _, err := r.runner.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.tasks.Answer = func(*checkpoint.Ack) bool { r.tasks.Fail(errors.New("worker died")); return true }
		if _, err := r.runner.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
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
		if id, err := r.runner.Checkpoint(t.Context()); err != nil || id != 3 {
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
		id, err := r.runner.Savepoint(t.Context(), "last", true)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := r.runner.Wait(t.Context(), id)
		if err != nil || rec.Status != checkpoint.StatusFailed || rec.Failure.Reason != checkpoint.ReasonManifest {
			t.Fatalf("%+v, %v", rec, err)
		}
		id, err = r.runner.Savepoint(t.Context(), "last", true)
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
		id, err := r.runner.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if rec, err := r.runner.Wait(t.Context(), id); err != nil || rec.Status != checkpoint.StatusCompleted {
			t.Errorf("%+v, %v", rec, err)
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
			id, err := r.runner.Checkpoint(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.runner.Wait(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		before := r.objects()
		r.store.GoBack(1)
		r.attempt()
		r.start()
		err := <-r.endC
		var failure *checkpoint.AttemptFailure
		if !errors.As(err, &failure) || failure.Failure.Reason != checkpoint.ReasonMetastoreBack {
			t.Errorf("%v", err)
		}
		r.want("objects", r.objects(), before)
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
			if _, err := r.runner.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
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
		r.start()
		r.want("objects", r.objects(), objectsOf("1-aaaaaaaa", 2))
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCollectorEnd: a savepoint outlives its job; what its user gives up goes, and what
// another kept manifest names stays (C26, I9).
func TestCollectorEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, checkpoint.Options{})
		r.start()
		for _, name := range []string{"", "mine", "other", ""} {
			var id weir.CheckpointID
			var err error
			if name == "" {
				id, err = r.runner.Checkpoint(t.Context())
			} else {
				id, err = r.runner.Savepoint(t.Context(), name, false)
			}
			if err == nil {
				_, err = r.runner.Wait(t.Context(), id)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		c := checkpoint.NewCollector(r.store, r.faulty, fence, slog.New(slog.DiscardHandler))
		if err := c.Collect(t.Context(), 0); err != nil { // the base stays
			t.Fatal(err)
		}
		r.want("objects", r.objects(), objectsOf("1-aaaaaaaa", 2, 3, 4))
		r.fault(blob.FailTimes(1, "Delete", "2-0", blob.Fault{Before: errors.New("access denied")}))
		if err := c.Forget(t.Context(), checkpoint.ManifestKey(fence.Job, 2)); err == nil || !strings.Contains(err.Error(), "1 objects stay for now: access denied") {
			t.Errorf("%v", err)
		}
		if err := c.Forget(t.Context(), checkpoint.ManifestKey(fence.Job, 2)); err != nil { // gone: nothing to do
			t.Error(err)
		}
		if err := c.Collect(t.Context(), 0); err != nil {
			t.Error(err)
		}
		r.want("objects", r.objects(), objectsOf("1-aaaaaaaa", 3, 4))
		// The job is deleted; in the store of this test, savepoint 2 is still listed.
		if _, err := r.store.DiscardCheckpoints(t.Context(), fence, []weir.CheckpointID{2}); err != nil {
			t.Fatal(err)
		}
		if err := c.Purge(t.Context()); err != nil {
			t.Error(err)
		}
		r.want("objects", r.objects(), objectsOf("1-aaaaaaaa", 3))
	})
}
