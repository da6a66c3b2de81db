package metastoretest

import (
	"testing"
	"time"

	"weir"
	"weir/checkpoint"
)

var attemptTests = map[string]func(*testing.T, suite){
	"an attempt begins at the base":              attemptBegin,
	"an attempt's life is recorded":              attemptLife,
	"only legal transitions happen":              attemptTransitions,
	"a take-over makes the old holder stale":     attemptTakeOver,
	"every decision of a stale owner is refused": staleFences,
	"a new attempt aborts what is pending":       attemptPending,
}

func attemptBegin(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	equal(t, j.Attempt.Number, int64(1))
	equal(t, j.Term, int64(1))
	equal(t, j.RestoredFrom, weir.SnapshotRef{})
	id := s.checkpoint(t, f, true)
	s.checkpoint(t, f, false) // a savepoint-like one: the base stays
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRestarting, &weir.Failure{Reason: "worker_lost", Message: "gone"}))

	j, err := s.BeginAttempt(t.Context(), j.ID, f.Attempt, 2)
	ok(t, err)
	base := weir.SnapshotRef{Job: j.ID, Checkpoint: id}
	if j.Attempt.Number != 2 || j.Attempt.Tag == f.Attempt.Tag || j.Term != 2 || j.Status != weir.StatusScheduling || j.Base != base || j.RestoredFrom != base {
		t.Fatalf("second attempt: %+v", j)
	}
	_, err = s.BeginAttempt(t.Context(), j.ID, f.Attempt, 2)
	fails(t, err, weir.ErrStale) // not the last attempt any more
	_, err = s.BeginAttempt(t.Context(), j.ID, j.Attempt, 2)
	fails(t, err, weir.ErrConflict) // SCHEDULING already
	ok(t, s.SetStatus(t.Context(), fenceOf(j), weir.StatusRestarting, nil))
	_, err = s.BeginAttempt(t.Context(), j.ID, j.Attempt, 1)
	fails(t, err, weir.ErrStale) // an old term
}

func attemptLife(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	failure := &weir.Failure{Reason: "worker_lost", Worker: "w1", Message: "worker w1 is gone"}
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRestarting, failure))
	equal(t, s.job(t, "a").Failure, failure)
	f = s.begin(t, s.job(t, "a"), 1)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRunning, nil))
	ok(t, s.SetStatus(t.Context(), f, weir.StatusFinished, nil))

	attempts, err := s.Attempts(t.Context(), j.ID)
	ok(t, err)
	if len(attempts) != 2 || attempts[0].ID != f.Attempt || attempts[0].EndedBy != "FINISHED" || attempts[1].EndedBy != "worker_lost" {
		t.Fatalf("attempts: %+v", attempts)
	}
	equal(t, attempts[1].Failure, failure)
	for _, a := range attempts {
		if a.StartedAt.IsZero() || a.RunningAt.Before(a.StartedAt) || a.EndedAt.Before(a.RunningAt) || a.Parallelism != 2 || a.Job != j.ID || a.Term != 1 {
			t.Fatalf("attempt: %+v", a)
		}
	}
	events, err := s.Events(t.Context(), j.ID, 0, 0)
	ok(t, err)
	var got []string
	for _, e := range events {
		got = append(got, e.Kind+" "+e.Message)
	}
	equal(t, got, []string{
		"status CREATED", "attempt attempt 1 begins from nothing at parallelism 2", "status RUNNING", "status RESTARTING: worker w1 is gone",
		"attempt attempt 2 begins from nothing at parallelism 2", "status RUNNING", "status FINISHED",
	})
}

func attemptTransitions(t *testing.T, s suite) {
	j := s.create(t, "a")
	created := weir.Fence{Job: j.ID}
	fails(t, s.SetStatus(t.Context(), created, weir.StatusRunning, nil), weir.ErrConflict)
	ok(t, s.SetStatus(t.Context(), created, weir.StatusCanceled, nil)) // before its first attempt
	fails(t, s.SetStatus(t.Context(), created, weir.StatusCanceled, nil), weir.ErrConflict)
	f := s.begin(t, s.job(t, "a"), 3)
	if got := s.job(t, "a"); !got.EndedAt.IsZero() || got.StartedAt.IsZero() {
		t.Fatalf("started again: %+v", got)
	}
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRunning, nil))
	ok(t, s.SetStatus(t.Context(), f, weir.StatusStopping, nil))
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRunning, nil)) // the savepoint failed
}

func attemptTakeOver(t *testing.T, s suite) {
	_, f := s.running(t, "a")
	j, err := s.TakeOver(t.Context(), f, 4)
	ok(t, err)
	if j.Term != 4 || j.Attempt != f.Attempt || j.Status != weir.StatusRunning {
		t.Fatalf("taken over: %+v", j)
	}
	fails(t, s.SetStatus(t.Context(), f, weir.StatusFailed, nil), weir.ErrStale)
	_, err = s.TakeOver(t.Context(), fenceOf(j), 3)
	fails(t, err, weir.ErrStale)
	s.checkpoint(t, fenceOf(j), true)
}

func staleFences(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint, TriggeredAt: day})
	ok(t, err)
	before := s.job(t, "a")
	for name, stale := range map[string]weir.Fence{
		"number": {Job: j.ID, Attempt: weir.AttemptID{Number: 2, Tag: f.Attempt.Tag}, Term: f.Term},
		"tag":    {Job: j.ID, Attempt: weir.AttemptID{Number: 1, Tag: "ffffffff"}, Term: f.Term},
		"term":   {Job: j.ID, Attempt: f.Attempt, Term: f.Term + 1},
		"job":    {Job: weir.NewJobID(), Attempt: f.Attempt, Term: f.Term},
	} {
		t.Log(name)
		for _, err := range []error{
			s.SetStatus(t.Context(), stale, weir.StatusFailed, nil),
			second(s.TakeOver(t.Context(), stale, 9)),
			second(s.BeginCheckpoint(t.Context(), stale, checkpoint.Record{Type: checkpoint.TypeCheckpoint})),
			s.CompleteCheckpoint(t.Context(), stale, checkpoint.Record{ID: id}, true),
			second(s.AbortCheckpoint(t.Context(), stale, checkpoint.Record{ID: id, Status: checkpoint.StatusFailed})),
			s.CloseCommits(t.Context(), stale, id, nil),
			second(s.Checkpoint(t.Context(), stale, id)),
			second(s.DiscardCheckpoints(t.Context(), stale, []weir.CheckpointID{id})),
		} {
			fails(t, err, weir.ErrStale)
		}
	}
	equal(t, s.job(t, "a"), before)
	r, err := s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	equal(t, r.Status, checkpoint.StatusPending)
}

func second[T any](_ T, err error) error { return err }

func attemptPending(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeSavepoint, Savepoint: "sp", TriggeredAt: day})
	ok(t, err)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRestarting, nil))
	f2 := s.begin(t, s.job(t, "a"), 1)
	r, err := s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	if r.Status != checkpoint.StatusAborted || r.Failure == nil || r.Failure.Reason != checkpoint.ReasonAttemptEnded || r.CompletedAt.IsZero() {
		t.Fatalf("left pending: %+v", r)
	}
	if took := r.CompletedAt.Sub(r.TriggeredAt); took < 0 || took > time.Minute { // R10: its server's clock is years behind
		t.Errorf("it took %v, longer than its attempt lasted", took)
	}
	sp, err := s.Savepoint(t.Context(), "sp")
	ok(t, err)
	equal(t, sp.Status, checkpoint.StatusAborted)
	status, err := s.AbortCheckpoint(t.Context(), f2, checkpoint.Record{ID: id, Status: checkpoint.StatusFailed})
	ok(t, err)
	equal(t, status, checkpoint.StatusAborted)
	fails(t, s.CompleteCheckpoint(t.Context(), f2, checkpoint.Record{ID: id}, true), weir.ErrConflict)
}
