package metastoretest

import (
	"encoding/json"
	"testing"
	"time"

	"weir"
	"weir/checkpoint"
)

var retentionTests = map[string]func(*testing.T, suite){
	"what is in use is kept": retentionKeeps,
	"pins expire":            retentionPins,
	"a canceled job gives its base up when asked": retentionCanceled,
	"a deleted job gives everything up":           retentionDeleted,
}

func retentionKeeps(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	old := s.checkpoint(t, f, true)
	pinned := s.checkpoint(t, f, true)
	forked := s.checkpoint(t, f, true)
	saved := s.savepoint(t, f, "sp")
	open := s.openCommits(t, f)
	base := s.checkpoint(t, f, true)
	pending, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	ok(t, s.Pin(t.Context(), weir.SnapshotRef{Job: j.ID, Checkpoint: pinned}, "reader", time.Hour))
	fork := newJob("b")
	fork.Base = weir.SnapshotRef{Job: j.ID, Checkpoint: forked}
	_, err = s.CreateJob(t.Context(), fork, "")
	ok(t, err)

	got, err := s.Retained(t.Context(), j.ID)
	ok(t, err)
	equal(t, got, []checkpoint.Retained{
		{ID: base, Type: checkpoint.TypeCheckpoint, Manifest: "m", Base: true, Reused: true}, // by the pending one
		{ID: open, Type: checkpoint.TypeCheckpoint, Manifest: "m", CommitsOpen: true},
		{ID: saved, Type: checkpoint.TypeSavepoint, Manifest: "m"},
		{ID: forked, Type: checkpoint.TypeCheckpoint, Manifest: "m", Pinned: true},
		{ID: pinned, Type: checkpoint.TypeCheckpoint, Manifest: "m", Pinned: true},
		{ID: old, Type: checkpoint.TypeCheckpoint, Manifest: "m"},
	})
	all := []weir.CheckpointID{old, pinned, forked, saved, open, base, pending, 99}
	gone, err := s.DiscardCheckpoints(t.Context(), f, all)
	ok(t, err)
	equal(t, gone, []weir.CheckpointID{old})
	gone, err = s.DiscardCheckpoints(t.Context(), f, all)
	ok(t, err)
	equal(t, gone, []weir.CheckpointID{old}) // again: its objects may not be gone yet
	r, err := s.CheckpointByID(t.Context(), j.ID, old)
	ok(t, err)
	equal(t, r.Discarded, true)
}

func retentionPins(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id := s.checkpoint(t, f, true)
	s.checkpoint(t, f, true)
	ref := weir.SnapshotRef{Job: j.ID, Checkpoint: id}
	ok(t, s.Pin(t.Context(), ref, "reader", time.Hour))
	ok(t, s.Pin(t.Context(), ref, "reader", -time.Second)) // the same holder: not two pins
	gone, err := s.DiscardCheckpoints(t.Context(), f, []weir.CheckpointID{id})
	ok(t, err)
	equal(t, gone, []weir.CheckpointID{id})
}

func retentionCanceled(t *testing.T, s suite) {
	for name, c := range map[string]struct {
		retention string
		status    weir.Status
		givesUp   bool
	}{
		"a": {"retain_on_cancellation", weir.StatusCanceled, false},
		"b": {"delete_on_cancellation", weir.StatusCanceled, true},
		"c": {"delete_on_cancellation", weir.StatusFailed, false},
		"d": {"none", weir.StatusFailed, true},
		"e": {"none", weir.StatusCanceled, true},
	} {
		j := newJob(name)
		j.Checkpoint, _ = json.Marshal(map[string]string{"retention": c.retention}) // strings marshal
		_, err := s.CreateJob(t.Context(), j, "")
		ok(t, err)
		f := s.begin(t, j, 1)
		ok(t, s.SetStatus(t.Context(), f, weir.StatusRunning, nil))
		id := s.checkpoint(t, f, true)
		ok(t, s.SetStatus(t.Context(), f, c.status, nil))
		kept, err := s.Retained(t.Context(), j.ID)
		ok(t, err)
		equal(t, kept[0].Base, !c.givesUp)
		gone, err := s.DiscardCheckpoints(t.Context(), f, []weir.CheckpointID{id})
		ok(t, err)
		equal(t, len(gone) == 1, c.givesUp)
		equal(t, s.job(t, name).Base.IsZero(), c.givesUp)
	}
}

func retentionDeleted(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id := s.checkpoint(t, f, true)
	s.savepoint(t, f, "sp")
	ok(t, s.SetStatus(t.Context(), f, weir.StatusCanceled, nil))
	ok(t, s.DeleteJob(t.Context(), j.ID))
	gone, err := s.DiscardCheckpoints(t.Context(), f, []weir.CheckpointID{id, 2})
	ok(t, err)
	equal(t, gone, []weir.CheckpointID{id}) // the savepoint is its user's
}
