package metastoretest

import (
	"testing"
	"time"

	"weir"
	"weir/checkpoint"
)

var abandonTests = map[string]func(*testing.T, suite){
	"output is given up for good":             abandonCommits,
	"snapshots share what was given up":       abandonShared,
	"what was given up is not forgotten":      abandonForgotten,
	"another job's output is not given up":    abandonFork,
	"what was adopted is not given up so far": abandonAdopted,
}

// abandonedUpTo is up to which barrier a snapshot's output was given up.
func (s suite) abandonedUpTo(t testing.TB, job weir.JobID, id weir.CheckpointID) weir.CheckpointID {
	t.Helper()
	upTo, err := s.OutputGivenUp(t.Context(), weir.SnapshotRef{Job: job, Checkpoint: id})
	ok(t, err)
	return upTo
}

func abandonCommits(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id := s.openCommits(t, f)
	equal(t, s.abandonedUpTo(t, j.ID, id), 0)
	stale := f
	stale.Term--
	fails(t, s.AbandonCommits(t.Context(), stale, id), weir.ErrStale)
	for range 2 { // twice is once
		ok(t, s.AbandonCommits(t.Context(), f, id))
	}
	ok(t, s.CloseCommits(t.Context(), f, id, nil)) // a sink that was late: nobody knows of the others
	r, err := s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	equal(t, []bool{r.CommitsOpen, r.OutputGivenUp}, []bool{false, true})
	equal(t, r.CommittedAt, time.Time{})
	equal(t, s.abandonedUpTo(t, j.ID, id), id)
	events, err := s.Events(t.Context(), j.ID, 0, 0)
	ok(t, err)
	var said []string
	for _, e := range events {
		if e.Kind == "commit" {
			said = append(said, e.Message)
		}
	}
	equal(t, said, []string{"output of checkpoint 1 that was not visible yet was given up (abandon_output)"})

	id = s.openCommits(t, f)
	ok(t, s.CloseCommits(t.Context(), f, id, nil))
	ok(t, s.AbandonCommits(t.Context(), f, id)) // all of it is visible
	r, err = s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	equal(t, r.OutputGivenUp, false)
	ok(t, s.AbandonCommits(t.Context(), f, 99))
	equal(t, s.abandonedUpTo(t, j.ID, 99), 0)
}

// restart begins another attempt, from a checkpoint of the job.
func (s suite) restart(t testing.TB, j weir.Job, f weir.Fence, base weir.SnapshotRef) weir.Fence {
	t.Helper()
	ok(t, s.SetStatus(t.Context(), f, weir.StatusStopping, nil))
	ok(t, s.SetStatus(t.Context(), f, weir.StatusStopped, nil))
	_, err := s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusStopped}, weir.Wish{Desired: weir.DesiredRunning, Base: &base})
	ok(t, err)
	f = s.begin(t, s.job(t, string(j.ID)), f.Term)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRunning, nil))
	return f
}

// A snapshot holds the segments that were given up with another one as far as both have one
// history: savepoints beside it, what the attempt went back behind.
func abandonShared(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	at := func(id weir.CheckpointID) weir.SnapshotRef { return weir.SnapshotRef{Job: j.ID, Checkpoint: id} }
	s.checkpoint(t, f, true)      // 1
	s.savepoint(t, f, "left")     // 2, of a branch that is gone back behind
	f = s.restart(t, j, f, at(1)) // attempt 2
	s.savepoint(t, f, "before")   // 3
	given := s.openCommits(t, f)  // 4
	s.savepoint(t, f, "after")    // 5
	f = s.restart(t, j, f, at(4)) // attempt 3
	s.savepoint(t, f, "next")     // 6
	ok(t, s.AbandonCommits(t.Context(), f, given))
	s.savepoint(t, f, "begun after") // 7
	for id, want := range []weir.CheckpointID{1: 1, 2: 1, 3: 3, 4: 4, 5: 4, 6: 4, 7: 4} {
		equal(t, s.abandonedUpTo(t, j.ID, weir.CheckpointID(id)), want)
	}
}

func abandonForgotten(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id := s.openCommits(t, f)
	s.savepoint(t, f, "kept")
	ok(t, s.AbandonCommits(t.Context(), f, id))
	for range 5 {
		s.checkpoint(t, f, true)
	}
	gone, err := s.DiscardCheckpoints(t.Context(), f, []weir.CheckpointID{id, id + 2})
	ok(t, err)
	equal(t, gone, []weir.CheckpointID{id, id + 2})
	s.collect(t, j.ID)
	_, err = s.ThinHistory(t.Context(), checkpoint.Thinning{Rows: time.Nanosecond})
	ok(t, err)
	_, err = s.CheckpointByID(t.Context(), j.ID, id+2)
	fails(t, err, weir.ErrNotFound)
	equal(t, s.abandonedUpTo(t, j.ID, id+1), id)
}

func abandonFork(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id := s.openCommits(t, f)
	other := s.create(t, "b")
	_, err := s.SetDesired(t.Context(), other.ID, []weir.Status{weir.StatusCreated}, weir.Wish{Desired: weir.DesiredRunning, Base: &weir.SnapshotRef{Job: j.ID, Checkpoint: id}})
	ok(t, err)
	g := s.begin(t, s.job(t, "b"), 1)
	own := s.openCommits(t, g)
	ok(t, s.AbandonCommits(t.Context(), g, own))
	equal(t, s.abandonedUpTo(t, other.ID, own), own)
	equal(t, s.abandonedUpTo(t, j.ID, id), 0)
	ok(t, s.AbandonCommits(t.Context(), f, id))
	equal(t, s.abandonedUpTo(t, j.ID, id), id)
	equal(t, s.abandonedUpTo(t, other.ID, own), own)
}

// Whether the output of what lies in storage was given up the metastore has forgotten with
// its row: its commits are open, and can be given up again.
func abandonAdopted(t *testing.T, s suite) {
	j, _ := s.behind(t, "a")
	got, err := s.Adopt(t.Context(), j.ID, adoption(j, 7))
	ok(t, err)
	equal(t, s.abandonedUpTo(t, j.ID, 7), 0)
	ok(t, s.AbandonCommits(t.Context(), fenceOf(got), 7))
	equal(t, s.abandonedUpTo(t, j.ID, 7), 7)
}
