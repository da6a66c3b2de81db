package metastoretest

import (
	"encoding/json"
	"testing"
	"time"

	"weir"
	"weir/checkpoint"
)

var collectionTests = map[string]func(*testing.T, suite){
	"what is given up is listed until it is collected":    collectionRows,
	"an attempt's folder is looked through after its end": collectionAttempts,
	"a deleted job is purged":                             collectionPurge,
	"what a pending checkpoint may reuse stays":           collectionReused,
	"a job knows how many checkpoints it keeps":           collectionKeep,
}

func (s suite) givenUp(t testing.TB, job weir.JobID) checkpoint.GivenUp {
	t.Helper()
	g, err := s.GivenUp(t.Context(), job, 10, 0)
	ok(t, err)
	return g
}

func (s suite) collectable(t testing.TB) (all []weir.JobID) {
	t.Helper()
	for after := weir.JobID(""); ; {
		ids, next, err := s.Collectable(t.Context(), after, 1, 0)
		ok(t, err)
		if all = append(all, ids...); next == "" {
			return all
		}
		after = next
	}
}

func idsOf(rows []checkpoint.Record) (ids []weir.CheckpointID) {
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

func collectionRows(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	s.running(t, "b")
	discarded := s.checkpoint(t, f, true)
	equal(t, s.collectable(t), nil)
	failed, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	equal(t, s.givenUp(t, j.ID).Empty(), true)
	_, err = s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: failed, Status: checkpoint.StatusFailed})
	ok(t, err)
	saved := s.savepoint(t, f, "sp")
	s.checkpoint(t, f, true)
	_, err = s.DiscardCheckpoints(t.Context(), f, []weir.CheckpointID{discarded})
	ok(t, err)
	_, err = s.DeleteSavepoint(t.Context(), "sp")
	ok(t, err)
	g := s.givenUp(t, j.ID)
	equal(t, idsOf(g.Checkpoints), []weir.CheckpointID{discarded, failed, saved})
	equal(t, g.Checkpoints[1].Attempt, f.Attempt)
	equal(t, s.collectable(t), []weir.JobID{j.ID})

	one, err := s.GivenUp(t.Context(), j.ID, 1, 0)
	ok(t, err)
	ok(t, s.Collected(t.Context(), j.ID, one))
	ok(t, s.Collected(t.Context(), j.ID, one)) // again
	equal(t, idsOf(s.givenUp(t, j.ID).Checkpoints), []weir.CheckpointID{failed, saved})
	ok(t, s.Collected(t.Context(), j.ID, s.givenUp(t, j.ID)))
	equal(t, s.givenUp(t, j.ID).Empty(), true)
	equal(t, s.collectable(t), nil)
}

func collectionAttempts(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	equal(t, s.givenUp(t, j.ID).Attempts, nil)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRestarting, nil))
	equal(t, s.givenUp(t, j.ID).Attempts, []weir.AttemptID{f.Attempt})
	later, err := s.GivenUp(t.Context(), j.ID, 10, time.Hour)
	ok(t, err)
	equal(t, later.Empty(), true)
	next := s.begin(t, s.job(t, "a"), 1)
	ok(t, s.Collected(t.Context(), j.ID, checkpoint.GivenUp{Attempts: []weir.AttemptID{f.Attempt}}))
	equal(t, s.givenUp(t, j.ID).Attempts, nil)
	ok(t, s.Unswept(t.Context(), j.ID, f.Attempt)) // it has stored something since
	equal(t, s.givenUp(t, j.ID).Attempts, []weir.AttemptID{f.Attempt})
	ok(t, s.Collected(t.Context(), j.ID, checkpoint.GivenUp{Attempts: []weir.AttemptID{f.Attempt, next.Attempt}}))
	ok(t, s.SetStatus(t.Context(), next, weir.StatusCanceled, nil))
	equal(t, s.collectable(t), nil)
}

func collectionPurge(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	s.checkpoint(t, f, true)
	ok(t, s.Collected(t.Context(), j.ID, checkpoint.GivenUp{Job: true})) // it is not deleted: nothing happens
	ok(t, s.SetStatus(t.Context(), f, weir.StatusCanceled, nil))
	ok(t, s.DeleteJob(t.Context(), j.ID))
	subject, err := s.Subject(t.Context(), j.ID)
	ok(t, err)
	equal(t, subject, checkpoint.Subject{Fence: f, LastCheckpoint: 1, Deleted: true})
	_, err = s.DiscardCheckpoints(t.Context(), f, []weir.CheckpointID{1})
	ok(t, err)
	g := s.givenUp(t, j.ID)
	equal(t, g.Job, true)
	ok(t, s.Collected(t.Context(), j.ID, g))
	equal(t, s.givenUp(t, j.ID).Empty(), true)
	equal(t, s.collectable(t), nil)
}

func collectionReused(t *testing.T, s suite) {
	_, f := s.running(t, "a")
	old := s.checkpoint(t, f, true)
	base := s.checkpoint(t, f, true)
	slow, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeSavepoint, Savepoint: "slow"})
	ok(t, err)
	newer := s.checkpoint(t, f, true)
	gone, err := s.DiscardCheckpoints(t.Context(), f, []weir.CheckpointID{old, base, newer})
	ok(t, err)
	equal(t, gone, []weir.CheckpointID{old}) // the pending one began on base
	_, err = s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: slow, Status: checkpoint.StatusAborted})
	ok(t, err)
	gone, err = s.DiscardCheckpoints(t.Context(), f, []weir.CheckpointID{base})
	ok(t, err)
	equal(t, gone, []weir.CheckpointID{base})
}

func collectionKeep(t *testing.T, s suite) {
	j := newJob("a")
	j.Checkpoint = json.RawMessage(`{"num_retained":2,"retention":"delete_on_cancellation"}`)
	_, err := s.CreateJob(t.Context(), j, "")
	ok(t, err)
	f := s.begin(t, j, 1)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRunning, nil))
	for range 3 {
		s.checkpoint(t, f, true)
	}
	keep := func(want int) {
		t.Helper()
		subject, err := s.Subject(t.Context(), j.ID)
		ok(t, err)
		equal(t, subject.Keep, want)
	}
	keep(2)
	equal(t, s.collectable(t), []weir.JobID{j.ID}) // there are three
	ok(t, s.SetStatus(t.Context(), f, weir.StatusCanceled, nil))
	keep(0)
	_, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusCanceled}, weir.Wish{Desired: weir.DesiredRunning})
	ok(t, err)
	keep(2) // it waits to be started again
	f = s.begin(t, s.job(t, "a"), 1)
	behind := &weir.Failure{Reason: checkpoint.ReasonMetastoreBack}
	ok(t, s.SetStatus(t.Context(), f, weir.StatusFailed, behind))
	subject, err := s.Subject(t.Context(), j.ID)
	ok(t, err)
	equal(t, subject.Behind, true)
}
