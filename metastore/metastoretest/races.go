package metastoretest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"weir"
	"weir/checkpoint"
)

// racers is how many try the same thing at once.
const racers = 8

var raceTests = map[string]func(*testing.T, suite){
	"one of many begins the attempt":        raceBegin,
	"complete or abort, never both":         raceDecision,
	"an attempt begins or a checkpoint is":  raceOwners,
	"ids are given out once":                raceIDs,
	"one of many takes the lease":           raceLease,
	"one of many creates the name":          raceCreate,
	"one key makes one job":                 raceKey,
	"a pin or a discard, never both":        racePin,
	"two jobs that start from each other":   raceCross,
	"a savepoint is deleted or a base of b": raceSavepoint,
}

// race runs f for 0 to racers-1 at once and returns their errors.
func race(f func(i int) error) []error {
	errs := make([]error, racers)
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(racers)
	for i := range racers {
		done.Go(func() {
			ready.Done()
			<-start
			errs[i] = f(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
	return errs
}

// tally counts the nil errors; every other one must be one of allowed.
func tally(t testing.TB, errs []error, allowed ...error) (won int) {
	t.Helper()
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		legal := false
		for _, a := range allowed {
			legal = legal || errors.Is(err, a)
		}
		if !legal {
			t.Fatal(err)
		}
	}
	return won
}

func raceBegin(t *testing.T, s suite) {
	j := s.create(t, "a")
	errs := race(func(i int) error {
		_, err := s.BeginAttempt(t.Context(), j.ID, weir.AttemptID{}, int64(1+i%2))
		return err
	})
	equal(t, tally(t, errs, weir.ErrStale), 1)
	equal(t, s.job(t, "a").Attempt.Number, 1)
	attempts, err := s.Attempts(t.Context(), j.ID)
	ok(t, err)
	equal(t, len(attempts), 1)
}

func raceDecision(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	statuses := make([]checkpoint.Status, racers)
	errs := race(func(i int) (err error) {
		if i%2 == 0 {
			statuses[i] = checkpoint.StatusCompleted
			return s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Manifest: "m"}, true)
		}
		statuses[i], err = s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Status: checkpoint.StatusFailed})
		return err
	})
	tally(t, errs, weir.ErrConflict)
	r, err := s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	for i, err := range errs { // whoever heard an answer heard the same one
		if err == nil && statuses[i] != r.Status {
			t.Fatalf("racer %d heard %s, the row says %s", i, statuses[i], r.Status)
		}
	}
	equal(t, s.job(t, "a").Base.IsZero(), r.Status != checkpoint.StatusCompleted)
}

func raceOwners(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	var next weir.Job
	var nextErr error
	errs := race(func(i int) error {
		if i == 0 { // a new owner: term 2, a new attempt
			taken, err := s.TakeOver(t.Context(), f, 2)
			if err != nil {
				return err
			}
			if err := s.SetStatus(t.Context(), fenceOf(taken), weir.StatusRestarting, nil); err != nil {
				return err
			}
			next, nextErr = s.BeginAttempt(t.Context(), j.ID, taken.Attempt, 2)
			return nextErr
		}
		return s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Manifest: "m"}, true)
	})
	ok(t, errs[0])
	won := tally(t, errs[1:], weir.ErrStale)
	r, err := s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	completed := r.Status == checkpoint.StatusCompleted
	equal(t, completed, won > 0)
	equal(t, next.RestoredFrom.Checkpoint == id, completed) // it starts from what was decided before it
}

func raceIDs(t *testing.T, s suite) {
	_, f := s.running(t, "a")
	ids := make([]weir.CheckpointID, racers)
	errs := race(func(i int) (err error) {
		ids[i], err = s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
		if err == nil {
			err = s.AddEvent(t.Context(), weir.Event{Job: f.Job, Kind: "checkpoint", Message: "x"})
		}
		return err
	})
	equal(t, tally(t, errs), racers)
	seen := map[weir.CheckpointID]bool{}
	for _, id := range ids {
		seen[id] = true
	}
	equal(t, len(seen), racers)
	equal(t, s.job(t, "a").LastCheckpoint, racers)
}

func raceLease(t *testing.T, s suite) {
	held := make([]weir.Lease, racers)
	errs := race(func(i int) (err error) {
		held[i], err = s.AcquireLease(t.Context(), 0, fmt.Sprint("server-", i), time.Hour)
		return err
	})
	equal(t, tally(t, errs), racers)
	for _, l := range held {
		equal(t, l, held[0])
	}
	equal(t, held[0].Term, 1)
}

func raceCreate(t *testing.T, s suite) {
	errs := race(func(int) error {
		_, err := s.CreateJob(t.Context(), newJob("a"), "")
		return err
	})
	equal(t, tally(t, errs, weir.ErrConflict), 1)
}

func raceKey(t *testing.T, s suite) {
	ids := make([]weir.JobID, racers)
	errs := race(func(i int) error {
		j, err := s.CreateJob(t.Context(), newJob("a"), "key")
		ids[i] = j.ID
		return err
	})
	equal(t, tally(t, errs), racers)
	for _, id := range ids {
		equal(t, id, ids[0])
	}
}

func racePin(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id := s.checkpoint(t, f, true)
	s.checkpoint(t, f, true)
	ref := weir.SnapshotRef{Job: j.ID, Checkpoint: id}
	var gone []weir.CheckpointID
	errs := race(func(i int) (err error) {
		if i == 0 {
			gone, err = s.DiscardCheckpoints(t.Context(), f, []weir.CheckpointID{id})
			return err
		}
		return s.Pin(t.Context(), ref, fmt.Sprint("reader-", i), time.Hour)
	})
	ok(t, errs[0])
	pinned := tally(t, errs[1:], weir.ErrConflict)
	equal(t, pinned > 0, len(gone) == 0)
}

func raceCross(t *testing.T, s suite) {
	var jobs [2]weir.Job
	for i, name := range []string{"a", "b"} {
		j, f := s.running(t, name)
		s.checkpoint(t, f, true)
		ok(t, s.SetStatus(t.Context(), f, weir.StatusCanceled, nil))
		jobs[i] = j
	}
	errs := race(func(i int) error {
		me, other := jobs[i%2], jobs[1-i%2]
		_, err := s.SetDesired(t.Context(), me.ID, []weir.Status{weir.StatusCanceled},
			weir.Wish{Desired: weir.DesiredRunning, Base: &weir.SnapshotRef{Job: other.ID, Checkpoint: 1}})
		return err
	})
	equal(t, tally(t, errs), racers)
}

func raceSavepoint(t *testing.T, s suite) {
	_, f := s.running(t, "a")
	id := s.savepoint(t, f, "sp")
	errs := race(func(i int) error {
		if i == 0 {
			_, err := s.DeleteSavepoint(t.Context(), "sp")
			return err
		}
		fork := newJob(fmt.Sprint("b", i))
		fork.Base = weir.SnapshotRef{Job: f.Job, Checkpoint: id}
		_, err := s.CreateJob(t.Context(), fork, "")
		return err
	})
	deleted := tally(t, errs[:1], weir.ErrConflict) == 1
	equal(t, deleted, tally(t, errs[1:], weir.ErrConflict) == 0)
}
