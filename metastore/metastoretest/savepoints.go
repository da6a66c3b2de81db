package metastoretest

import (
	"testing"
	"time"

	"weir"
	"weir/checkpoint"
)

var savepointTests = map[string]func(*testing.T, suite){
	"savepoint names are unique":           savepointNames,
	"a savepoint outlives its job":         savepointOutlives,
	"a savepoint in use is not deleted":    savepointDelete,
	"a savepoint built on is not deleted":  savepointReused,
	"a failed savepoint's name is free":    savepointFailed,
	"savepoints are listed newest first":   savepointList,
	"a given-up snapshot cannot be a base": savepointGivenUp,
}

func savepointNames(t *testing.T, s suite) {
	_, f := s.running(t, "a")
	_, other := s.running(t, "b")
	id := s.savepoint(t, f, "sp")
	_, err := s.BeginCheckpoint(t.Context(), other, checkpoint.Record{Type: checkpoint.TypeSavepoint, Savepoint: "sp"})
	fails(t, err, weir.ErrConflict)
	equal(t, s.job(t, "b").LastCheckpoint, 0) // the id was not used
	got, err := s.Savepoint(t.Context(), "sp")
	ok(t, err)
	if got.CompletedAt.IsZero() {
		t.Fatal("no end")
	}
	got.CompletedAt = time.Time{}
	equal(t, got, checkpoint.Savepoint{
		Name: "sp", Job: f.Job, JobName: "a", Checkpoint: id, Status: checkpoint.StatusCompleted, Manifest: "m", StateBytes: 10, TriggeredAt: day,
	})
	_, err = s.Savepoint(t.Context(), "nobody")
	fails(t, err, weir.ErrNotFound)
}

func savepointOutlives(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id := s.savepoint(t, f, "sp")
	ok(t, s.SetStatus(t.Context(), f, weir.StatusCanceled, nil))
	ok(t, s.DeleteJob(t.Context(), j.ID))
	got, err := s.Savepoint(t.Context(), "sp")
	ok(t, err)
	equal(t, got.Status, checkpoint.StatusCompleted)
	fork := newJob("b")
	fork.Base = weir.SnapshotRef{Job: j.ID, Checkpoint: id}
	_, err = s.CreateJob(t.Context(), fork, "")
	ok(t, err)
}

func savepointDelete(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id := s.savepoint(t, f, "sp")
	ref := weir.SnapshotRef{Job: j.ID, Checkpoint: id}
	fork := newJob("b")
	fork.Base = ref
	fork, err := s.CreateJob(t.Context(), fork, "")
	ok(t, err)
	_, err = s.DeleteSavepoint(t.Context(), "sp")
	fails(t, err, weir.ErrConflict) // b starts from it
	s.checkpoint(t, s.begin(t, fork, 1), true)

	ok(t, s.Pin(t.Context(), ref, "reader", time.Hour))
	_, err = s.DeleteSavepoint(t.Context(), "sp")
	fails(t, err, weir.ErrConflict) // it is being read
	ok(t, s.Unpin(t.Context(), ref, "reader"))

	pending, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeSavepoint, Savepoint: "pending"})
	ok(t, err)
	_, err = s.DeleteSavepoint(t.Context(), "pending")
	fails(t, err, weir.ErrConflict)
	_, err = s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: pending, Status: checkpoint.StatusAborted})
	ok(t, err)

	got, err := s.DeleteSavepoint(t.Context(), "sp")
	ok(t, err)
	equal(t, got.Checkpoint, id)
	_, err = s.DeleteSavepoint(t.Context(), "sp")
	fails(t, err, weir.ErrNotFound)
	r, err := s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	equal(t, r.Discarded, true) // the history stays
	s.savepoint(t, f, "sp")     // and the name is free
}

// A stop's savepoint that a job went on from: of two checkpoints begun then, the first
// completes and is the base. The second one may name the savepoint's objects, still.
func savepointReused(t *testing.T, s suite) {
	_, f := s.running(t, "a")
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeSavepoint, Savepoint: "sp"})
	ok(t, err)
	ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Type: checkpoint.TypeSavepoint, Savepoint: "sp", Manifest: "m"}, true))
	first, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	second, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: first, Type: checkpoint.TypeCheckpoint, Manifest: "m"}, true))
	_, err = s.DeleteSavepoint(t.Context(), "sp")
	fails(t, err, weir.ErrConflict)
	ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: second, Type: checkpoint.TypeCheckpoint, Manifest: "m"}, true))
	_, err = s.DeleteSavepoint(t.Context(), "sp")
	ok(t, err)
}

func savepointFailed(t *testing.T, s suite) {
	_, f := s.running(t, "a")
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeSavepoint, Savepoint: "sp"})
	ok(t, err)
	failure := &weir.Failure{Reason: checkpoint.ReasonDeclined, Message: "disk full"}
	_, err = s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Status: checkpoint.StatusFailed, Failure: failure})
	ok(t, err)
	got, err := s.Savepoint(t.Context(), "sp")
	ok(t, err)
	equal(t, got.Status, checkpoint.StatusFailed)
	equal(t, got.Failure, failure)
	again := s.savepoint(t, f, "sp")
	got, err = s.Savepoint(t.Context(), "sp")
	ok(t, err)
	equal(t, got.Checkpoint, again)
}

func savepointList(t *testing.T, s suite) {
	_, f := s.running(t, "a")
	for i, name := range []string{"x", "y"} {
		_, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeSavepoint, Savepoint: name, TriggeredAt: day.Add(time.Duration(i) * time.Second)})
		ok(t, err)
	}
	list, err := s.Savepoints(t.Context())
	ok(t, err)
	if len(list) != 2 || list[0].Name != "y" || list[1].Name != "x" {
		t.Fatalf("savepoints: %+v", list)
	}
}

func savepointGivenUp(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	s.savepoint(t, f, "sp")
	_, err := s.DeleteSavepoint(t.Context(), "sp")
	ok(t, err)
	pending, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	for id, want := range map[weir.CheckpointID]error{1: weir.ErrConflict, pending: weir.ErrConflict, 99: weir.ErrNotFound} {
		ref := weir.SnapshotRef{Job: j.ID, Checkpoint: id}
		fork := newJob("b")
		fork.Base = ref
		_, err := s.CreateJob(t.Context(), fork, "")
		fails(t, err, want)
		fails(t, s.Pin(t.Context(), ref, "reader", time.Hour), want)
	}
}
