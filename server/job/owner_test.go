package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/deploy"
	"weir/metastore"
	"weir/planner/plan"
)

const term = 1

// keep opens a metastore of the test's own.
func keep(t *testing.T) *metastore.Store {
	t.Helper()
	url := "sqlite:" + filepath.Join(t.TempDir(), "weir.db")
	if _, err := metastore.Migrate(t.Context(), url, metastore.Options{ConnectTimeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	store, err := metastore.Open(t.Context(), url, metastore.Options{ConnectTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// source is a graph of one operator.
func source() plan.Graph {
	return plan.Graph{Version: plan.Version, MaxParallelism: 8, Chains: []plan.Chain{
		{Operators: []plan.Operator{{ID: "source_in", Name: "source(in)", Kind: plan.Source}}},
	}}
}

func create(t *testing.T, store *metastore.Store, options string) weir.Job {
	t.Helper()
	j, err := newJob(Spec{Name: "counts", Graph: source(), Checkpoint: json.RawMessage(options)}, time.Now())
	if err == nil {
		j, err = store.CreateJob(t.Context(), j, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// running brings a job to RUNNING.
func running(t *testing.T, store *metastore.Store, j weir.Job) weir.Job {
	t.Helper()
	j, err := store.BeginAttempt(t.Context(), j.ID, j.Attempt, term)
	if err == nil {
		err = store.SetStatus(t.Context(), fenceAt(j), weir.StatusRunning, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	j.Status = weir.StatusRunning
	return j
}

func fenceAt(j weir.Job) weir.Fence { return weir.Fence{Job: j.ID, Attempt: j.Attempt, Term: term} }

// A plan that this program cannot read ends its job, and nothing else.
func TestUnreadablePlan(t *testing.T) {
	t.Parallel()
	store := keep(t)
	j := create(t, store, `{}`)
	j.ID, j.Name, j.Plan = weir.NewJobID(), "other", json.RawMessage(`{"version":999}`)
	if _, err := store.CreateJob(t.Context(), j, ""); err != nil {
		t.Fatal(err)
	}
	s := New(Deps{Store: store, Checkpoints: store, Control: nobody{}, Reports: nobody{}, Logger: quiet()}, Options{})
	if err := newDriver(s, j, term).run(t.Context()); err != nil {
		t.Error(err)
	}
	j, err := store.Job(t.Context(), "other")
	if err != nil || j.Status != weir.StatusFailed || j.Failure == nil || j.Failure.Reason != "plan" {
		t.Errorf("%s, %+v, %v", j.Status, j.Failure, err)
	}
}

// A user cancels while the savepoint of his stop fails: taking the stop back does not
// take the cancel back.
func TestResumeKeepsNewerWish(t *testing.T) {
	t.Parallel()
	store := keep(t)
	j := running(t, store, create(t, store, `{}`))
	s := New(Deps{Store: store, Checkpoints: store, Control: nobody{}, Reports: nobody{}, Logger: quiet()}, Options{})
	stopped, err := s.stop(t.Context(), j.Name, StopRequest{Name: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	d := newDriver(s, stopped, term)
	d.machine = newMachine(stopped, DefaultRestart())
	d.machine.phase, d.machine.begun = phaseSave, true
	if _, err := s.cancel(t.Context(), j.Name, false); err != nil {
		t.Fatal(err)
	}
	for _, act := range d.machine.step(time.Now(), evSaved{j.Attempt, &weir.Failure{Message: "no room"}}) {
		if _, ok := act.(actStatus); ok {
			continue
		}
		if _, _, err := d.do(t.Context(), act); err != nil {
			t.Fatal(err)
		}
	}
	if j, err = store.Job(t.Context(), j.Name); err != nil || j.Desired != weir.DesiredCanceled {
		t.Errorf("desired %s, want canceled (%v)", j.Desired, err)
	}
}

// A late is a metastore in which something happens just before a wish is recorded.
type late struct {
	*metastore.Store
	before func()
}

func (l *late) SetDesired(ctx context.Context, id weir.JobID, from []weir.Status, wish Wish) (weir.Job, error) {
	l.before()
	return l.Store.SetDesired(ctx, id, from, wish)
}

// A job is started again while its checkpoints are being deleted: it does not start from
// nothing without a word (J4).
func TestStartWhileDiscarded(t *testing.T) {
	t.Parallel()
	store, blobs := keep(t), blob.NewMemory()
	j := running(t, store, create(t, store, `{"retention":"delete_on_cancellation"}`))
	id, err := store.BeginCheckpoint(t.Context(), fenceAt(j), checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	if err != nil {
		t.Fatal(err)
	}
	putManifest(t, blobs, j, id)
	r := checkpoint.Record{Job: j.ID, ID: id, Attempt: j.Attempt, Manifest: checkpoint.ManifestKey(j.ID, id)}
	if err := store.CompleteCheckpoint(t.Context(), fenceAt(j), r, true); err != nil {
		t.Fatal(err)
	}
	if err := store.SetStatus(t.Context(), fenceAt(j), weir.StatusCanceled, nil); err != nil {
		t.Fatal(err)
	}
	between := &late{store, func() {
		ids, err := store.DiscardCheckpoints(t.Context(), fenceAt(j), []weir.CheckpointID{id})
		if err != nil || len(ids) != 1 {
			t.Fatal(ids, err)
		}
	}}
	s := New(Deps{Store: between, Checkpoints: store, Blobs: blobs, Control: nobody{}, Reports: nobody{}, Logger: quiet()}, Options{})
	if j, err = s.start(t.Context(), j.Name, StartRequest{}); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("started from %+v, %v; want it refused", j.Base, err)
	}
}

func putManifest(t *testing.T, blobs blob.Store, j weir.Job, id weir.CheckpointID) {
	t.Helper()
	m := checkpoint.Manifest{
		Version: checkpoint.ManifestVersion, Job: j.ID, Checkpoint: id, Attempt: j.Attempt, Type: checkpoint.TypeCheckpoint,
		Parallelism: j.Parallelism, MaxParallelism: 8,
		Operators: []checkpoint.ManifestOperator{{ID: "source_in", Name: "source(in)", Kind: plan.Source}},
	}
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := blobs.Put(t.Context(), checkpoint.ManifestKey(j.ID, id), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
}

// A server that hung while another one took its jobs over, and wakes up, does not tell
// workers that the attempts of that one are over, nor has them ended.
func TestWokenServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hung atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(hung.Load())) }
		s, stop := serve(t, &leases{now: time.Now}, Options{Now: now})
		defer stop()
		time.Sleep(10 * time.Millisecond)
		if !s.holds() {
			t.Fatal("it does not hold the lease")
		}
		old := weir.Job{ID: weir.NewJobID(), Attempt: weir.NewAttemptID(1)}
		s.mu.Lock()
		s.mu.jobs[old.ID] = newDriver(s, old, term)
		s.mu.Unlock()
		report := func(job weir.JobID, attempt int64) error {
			_, err := s.report(t.Context(), "report", deploy.Encode(deploy.Report{Header: deploy.Head(), Job: job, Attempt: weir.NewAttemptID(attempt)}))
			return err
		}
		if err := report(weir.NewJobID(), 1); !errors.Is(err, weir.ErrStale) {
			t.Errorf("holder, of a job that does not run: %v", err)
		}
		if err := report(old.ID, 2); !errors.Is(err, weir.ErrConflict) {
			t.Errorf("of a newer attempt than it knows: %v", err)
		}
		unknown := weir.NewJobID()
		beat := deploy.Heartbeat{Header: deploy.Head(), Worker: "w1", Incarnation: "i1", Slots: 1, Attempts: []deploy.Running{{Job: unknown, Attempt: weir.NewAttemptID(1)}}}
		s.heartbeat(deploy.Encode(beat))
		if first, again := s.strays(), s.strays(); len(first) != 1 || len(again) != 0 {
			t.Errorf("holder: strays %v, then %v", first, again)
		}
		s.mu.Lock()
		clear(s.mu.strays)
		s.mu.Unlock()
		hung.Store(int64(10 * time.Second))
		if err := report(unknown, 1); !errors.Is(err, weir.ErrConflict) {
			t.Errorf("of a job that another server began: %v", err)
		}
		if list := s.strays(); len(list) != 0 {
			t.Errorf("it would end %v", list)
		}
		hung.Store(0)
	})
}

// A server that is slow just when every worker has been heard tells waiting jobs all the
// same.
func TestSettledIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Int64
		s, stop := serve(t, &leases{now: time.Now}, Options{Now: func() time.Time { return time.Now().Add(time.Duration(slow.Load())) }})
		defer stop()
		time.Sleep(settleWithin - 75*time.Millisecond)
		d := newDriver(s, weir.Job{ID: weir.NewJobID()}, term)
		s.mu.Lock()
		s.mu.jobs[d.id] = d
		s.mu.Unlock()
		if !s.reserve(d.id, 1, true, nil).Wait {
			t.Fatal("it does not wait")
		}
		slow.Store(int64(time.Second))
		time.Sleep(time.Second)
		if got := d.take(); len(got) != 1 {
			t.Errorf("events %v", got)
		}
		slow.Store(0)
	})
}

// present is every worker, in its first life.
type present struct{ nobody }

func (present) Ping(context.Context, weir.WorkerID) (string, error) { return "i", nil }

// takenOver is a service whose job was another server's before.
func takenOver(t *testing.T) (s *Service, d *driver, stop func()) {
	t.Helper()
	s, stop = serveWith(t, &leases{now: time.Now}, present{}, Options{})
	d = newDriver(s, weir.Job{ID: weir.NewJobID()}, term)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.jobs[d.id] = d
	return s, d, stop
}

// Where everything starts anew, workers come after the server, one after another. A job that
// was taken over waits until all of them are there, and is told.
func TestWorkersAreAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d, stop := takenOver(t)
		defer stop()
		time.Sleep(2 * settleWithin)
		for _, id := range []weir.WorkerID{"w1", "w2", "w3"} {
			s.heartbeat(deploy.Encode(deploy.Heartbeat{Header: deploy.Head(), Worker: id, Incarnation: "i", Slots: 4}))
			if ev := s.reserve(d.id, 3, true, nil); !ev.Wait {
				t.Fatalf("placed at %v before other workers could come", ev.Slots)
			}
			time.Sleep(settleWithin / 2)
		}
		d.take()
		time.Sleep(settleWithin/2 + 2*watchEvery)
		if got := d.take(); len(got) != 1 {
			t.Errorf("events %v", got)
		}
		if ev := s.reserve(d.id, 3, true, nil); !slices.Equal(ev.Slots, []weir.WorkerID{"w1", "w2", "w3"}) {
			t.Errorf("placed at %v, %+v", ev.Slots, ev)
		}
	})
}

// A worker that starts again and again, however often, keeps no job from its place for long.
func TestWhoStartsAgainIsNotAwaited(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{settleWithin - 50*time.Millisecond, settleWithin, settleWithin + watchEvery/2, settleWithin + 3*watchEvery, 2 * settleWithin, 2*settleWithin + watchEvery/2} {
		synctest.Test(t, func(t *testing.T) {
			s, d, stop := takenOver(t)
			defer stop()
			s.heartbeat(deploy.Encode(deploy.Heartbeat{Header: deploy.Head(), Worker: "w1", Incarnation: "i", Slots: 4}))
			placed := func() bool {
				for range d.take() {
					if ev := s.reserve(d.id, 1, true, nil); ev.Slots != nil {
						return true
					}
				}
				return false
			}
			began := time.Now()
			for life := 'a'; time.Since(began) < 2*gatherWithin; life++ {
				s.heartbeat(deploy.Encode(deploy.Heartbeat{Header: deploy.Head(), Worker: "w2", Incarnation: string(life), Slots: 4}))
				for end := time.Now().Add(every); time.Now().Before(end); time.Sleep(time.Millisecond) {
					if placed() {
						return
					}
				}
			}
			t.Errorf("every %v: not placed within %v", every, time.Since(began))
		})
	}
}

// A broken is a metastore with a row that must not be.
type broken struct{ *metastore.Store }

func (b broken) TakeOver(ctx context.Context, f weir.Fence, term int64) (weir.Job, error) {
	j, err := b.Store.TakeOver(ctx, f, term)
	j.Status, j.Desired = weir.StatusFinished, weir.DesiredCanceled
	return j, err
}

// A broken invariant of one job ends its driver, and not the server.
func TestDriverPanics(t *testing.T) {
	t.Parallel()
	store := keep(t)
	j := create(t, store, `{}`)
	s := New(Deps{Store: broken{store}, Checkpoints: store, Control: nobody{}, Reports: nobody{}, Logger: quiet()}, Options{})
	d := newDriver(s, j, term)
	s.mu.jobs[j.ID] = d
	s.drive(t.Context(), d)
	if len(s.mu.jobs) != 0 {
		t.Error("its driver is still known")
	}
}
