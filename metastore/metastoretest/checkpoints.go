package metastoretest

import (
	"encoding/json"
	"testing"
	"time"

	"weir"
	"weir/checkpoint"
)

var checkpointTests = map[string]func(*testing.T, suite){
	"ids grow over all attempts":             checkpointIDs,
	"a checkpoint's life is recorded":        checkpointLife,
	"completing moves the base":              checkpointBase,
	"the base never moves back":              checkpointForward,
	"an abort is final":                      checkpointAbort,
	"checkpoints are paged by id":            checkpointPages,
	"another attempt completes nothing":      checkpointAttempt,
	"commits are open until they are closed": checkpointCommits,
}

func checkpointIDs(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	equal(t, s.checkpoint(t, f, true), 1)
	equal(t, s.savepoint(t, f, "sp"), 2)
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	equal(t, id, 3)
	_, err = s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint, ID: 4})
	fails(t, err, weir.ErrNotFound) // it has gone back behind 4
	_, err = s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Status: checkpoint.StatusFailed})
	ok(t, err)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusStopping, nil))
	ok(t, s.SetStatus(t.Context(), f, weir.StatusStopped, nil))
	_, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusStopped}, weir.Wish{Desired: weir.DesiredRunning, Base: &weir.SnapshotRef{Job: j.ID, Checkpoint: 1}})
	ok(t, err)
	f = s.begin(t, s.job(t, "a"), 1)
	equal(t, s.checkpoint(t, f, true), 4) // restored from 1, numbered on from 3

	fork := newJob("b")
	fork.Base = weir.SnapshotRef{Job: j.ID, Checkpoint: 4}
	fork, err = s.CreateJob(t.Context(), fork, "")
	ok(t, err)
	equal(t, fork.LastCheckpoint, 4)
	equal(t, s.checkpoint(t, s.begin(t, fork, 1), true), 5)
}

func checkpointLife(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint, Periodic: true, TriggeredAt: day, Final: true})
	ok(t, err)
	want := checkpoint.Record{Job: j.ID, ID: id, Attempt: f.Attempt, Type: checkpoint.TypeCheckpoint, Status: checkpoint.StatusPending, Periodic: true, TriggeredAt: day, Final: true}
	got, err := s.Checkpoint(t.Context(), f, id)
	ok(t, err)
	equal(t, got, want)

	ack := checkpoint.Ack{
		Version: 1, Job: j.ID, Attempt: f.Attempt, Task: weir.TaskID{Chain: 1, Subtask: 2}, Checkpoint: id, Worker: "w1",
		Snapshot: &checkpoint.TaskSnapshot{Operators: []checkpoint.OperatorSnapshot{{Operator: "x", List: []json.RawMessage{[]byte(`1`)}}}},
		Timing:   checkpoint.Timing{StartDelayMS: 1.5, AlignmentMS: 2, CutMS: 0.25, UploadMS: 12, NewBytes: 5, TotalBytes: 9},
	}
	done := checkpoint.Record{ID: id, CompletedAt: day.Add(time.Second), StateBytes: 9, NewBytes: 5, Manifest: "j/1/manifest", CommitsOpen: true, Final: true, Acks: []checkpoint.Ack{ack}, Path: "agg subtask 2 was last"}
	ok(t, s.CompleteCheckpoint(t.Context(), f, done, true))
	ok(t, s.CompleteCheckpoint(t.Context(), f, done, true)) // twice is once
	ack.Snapshot = nil
	want.Status, want.CompletedAt, want.StateBytes, want.NewBytes, want.Manifest = checkpoint.StatusCompleted, day.Add(time.Second), 9, 5, "j/1/manifest"
	want.CommitsOpen, want.Acks, want.Path = true, []checkpoint.Ack{ack}, "agg subtask 2 was last"
	got, err = s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	equal(t, got, want)

	_, err = s.CheckpointByID(t.Context(), j.ID, 99)
	fails(t, err, weir.ErrNotFound)
	_, err = s.Checkpoint(t.Context(), f, 99)
	fails(t, err, weir.ErrNotFound)
	fails(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: 99}, true), weir.ErrNotFound)
}

func checkpointBase(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	s.checkpoint(t, f, true)
	equal(t, s.job(t, "a").Base, weir.SnapshotRef{Job: j.ID, Checkpoint: 1})
	s.savepoint(t, f, "sp")
	equal(t, s.job(t, "a").Base, weir.SnapshotRef{Job: j.ID, Checkpoint: 1})
	s.checkpoint(t, f, true)
	equal(t, s.job(t, "a").Base, weir.SnapshotRef{Job: j.ID, Checkpoint: 3})
	ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: 1, Manifest: "m"}, true)) // a repeat decides nothing
	equal(t, s.job(t, "a").Base, weir.SnapshotRef{Job: j.ID, Checkpoint: 3})
}

func checkpointForward(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	begin := func() weir.CheckpointID {
		t.Helper()
		id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint, TriggeredAt: day})
		ok(t, err)
		return id
	}
	older, newer := begin(), begin()
	ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: newer, Manifest: "m"}, true))
	fails(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: older, Manifest: "m"}, true), weir.ErrConflict)
	r, err := s.CheckpointByID(t.Context(), j.ID, older)
	ok(t, err)
	equal(t, r.Status, checkpoint.StatusPending)
	equal(t, s.job(t, "a").Base, weir.SnapshotRef{Job: j.ID, Checkpoint: newer})
	ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: older, Manifest: "m"}, false)) // as a savepoint does
	equal(t, s.job(t, "a").Base, weir.SnapshotRef{Job: j.ID, Checkpoint: newer})

	// The number of another job's snapshot is no measure, and a rollback is the user's.
	fork := newJob("b")
	fork.Base = weir.SnapshotRef{Job: j.ID, Checkpoint: newer}
	fork, err = s.CreateJob(t.Context(), fork, "")
	ok(t, err)
	forked := s.begin(t, fork, 1)
	equal(t, s.checkpoint(t, forked, true), newer+1)
	equal(t, s.job(t, "b").Base, weir.SnapshotRef{Job: fork.ID, Checkpoint: newer + 1})
	ok(t, s.SetStatus(t.Context(), f, weir.StatusFailed, nil))
	_, err = s.SetDesired(t.Context(), j.ID, []weir.Status{weir.StatusFailed}, weir.Wish{Desired: weir.DesiredRunning, Base: &weir.SnapshotRef{Job: j.ID, Checkpoint: older}})
	ok(t, err)
	equal(t, s.checkpoint(t, s.begin(t, s.job(t, "a"), 1), true), newer+1)
}

func checkpointAbort(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint, TriggeredAt: day})
	ok(t, err)
	failure := &weir.Failure{Reason: checkpoint.ReasonTimeout, Operator: "agg", Message: "no answer within 1m"}
	status, err := s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Status: checkpoint.StatusFailed, Failure: failure, CompletedAt: day})
	ok(t, err)
	equal(t, status, checkpoint.StatusFailed)
	status, err = s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Status: checkpoint.StatusAborted})
	ok(t, err)
	equal(t, status, checkpoint.StatusFailed)
	r, err := s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	equal(t, r.Failure, failure)
	equal(t, r.CompletedAt, day)
	fails(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id}, true), weir.ErrConflict)
	equal(t, s.job(t, "a").Base, weir.SnapshotRef{})

	done := s.checkpoint(t, f, true)
	status, err = s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: done, Status: checkpoint.StatusFailed})
	ok(t, err)
	equal(t, status, checkpoint.StatusCompleted)
	_, err = s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: done, Status: checkpoint.StatusCompleted})
	fails(t, err, weir.ErrInvalid)
	_, err = s.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: 99, Status: checkpoint.StatusFailed})
	fails(t, err, weir.ErrNotFound)
}

func checkpointPages(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	for range 4 {
		s.checkpoint(t, f, true)
	}
	_, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	page := func(before weir.CheckpointID, status []checkpoint.Status, limit int) (ids []weir.CheckpointID) {
		t.Helper()
		list, err := s.Checkpoints(t.Context(), j.ID, checkpoint.Filter{Before: before, Status: status, Limit: limit})
		ok(t, err)
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		return ids
	}
	equal(t, page(0, nil, 0), []weir.CheckpointID{5, 4, 3, 2, 1})
	equal(t, page(0, nil, 2), []weir.CheckpointID{5, 4})
	equal(t, page(4, nil, 2), []weir.CheckpointID{3, 2})
	equal(t, page(2, nil, 2), []weir.CheckpointID{1})
	equal(t, page(0, []checkpoint.Status{checkpoint.StatusPending}, 0), []weir.CheckpointID{5})
	equal(t, page(0, []checkpoint.Status{checkpoint.StatusFailed, checkpoint.StatusCompleted}, 1), []weir.CheckpointID{4})
}

func checkpointAttempt(t *testing.T, s suite) {
	_, f := s.running(t, "a")
	id := s.checkpoint(t, f, true)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRestarting, nil))
	f = s.begin(t, s.job(t, "a"), 1)
	fails(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id}, true), weir.ErrConflict)
}

// openCommits completes a checkpoint whose sinks have still to commit.
func (s suite) openCommits(t testing.TB, f weir.Fence) weir.CheckpointID {
	t.Helper()
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Manifest: "m", CommitsOpen: true}, true))
	return id
}

func checkpointCommits(t *testing.T, s suite) {
	j, f := s.running(t, "a")
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	acks := []checkpoint.Ack{{Task: weir.TaskID{Chain: 0}}, {Task: weir.TaskID{Chain: 1, Subtask: 1}, Timing: checkpoint.Timing{CutMS: 2}}}
	ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Manifest: "m", CommitsOpen: true, Acks: acks}, true))
	ok(t, s.CloseCommits(t.Context(), f, id, []checkpoint.CommitTime{{Task: weir.TaskID{Chain: 1, Subtask: 1}, MS: 12.5}, {Task: weir.TaskID{Chain: 7}, MS: 1}}))
	r, err := s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	equal(t, r.CommitsOpen, false)
	acks[1].Timing.CommitMS = 12.5
	equal(t, r.Acks, acks)
	equal(t, r.CommittedAt.Sub(r.CompletedAt), 12500*time.Microsecond) // as measured
	ok(t, s.CloseCommits(t.Context(), f, id, nil))                     // twice is once
	again, err := s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	equal(t, again, r)
	fails(t, s.CloseCommits(t.Context(), f, 99, nil), weir.ErrNotFound)

	// R10: the clock was set back since it completed, and nobody has measured.
	id, err = s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	ok(t, err)
	ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Manifest: "m", CommitsOpen: true, CompletedAt: time.Now().Add(time.Hour)}, true))
	ok(t, s.CloseCommits(t.Context(), f, id, nil))
	r, err = s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	equal(t, r.CommittedAt, r.CompletedAt)

	id = s.checkpoint(t, f, true) // nothing to commit
	ok(t, s.CloseCommits(t.Context(), f, id, nil))
	r, err = s.CheckpointByID(t.Context(), j.ID, id)
	ok(t, err)
	equal(t, r.CommittedAt, time.Time{})
}
