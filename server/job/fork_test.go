package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir"
	"weir/checkpoint"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// fork submits a job that starts from another one's snapshot.
func fork(t *testing.T, c *jobtest.Cluster, s *job.Service, name, sql string, parallelism int, from string) weir.Job {
	t.Helper()
	spec := c.Spec(name, sql, parallelism)
	spec.Checkpoint = json.RawMessage(`{"interval":"50ms","num_retained":100}`)
	spec.RestoreFrom = from
	j, err := s.Submit(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// ownOnly makes sure that no snapshot of a job needs another job's objects, and returns
// the ids, oldest first.
func ownOnly(t *testing.T, c *jobtest.Cluster, id weir.JobID) []weir.CheckpointID {
	t.Helper()
	found, err := checkpoint.Find(context.Background(), c.Blobs, id)
	if err != nil {
		t.Fatal(err)
	}
	objects := 0
	for _, n := range found.Manifests {
		m, err := checkpoint.LoadManifest(context.Background(), c.Blobs, checkpoint.ManifestKey(id, n))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range m.Objects() {
			if objects++; !strings.HasPrefix(object, checkpoint.JobPrefix(id)) {
				t.Errorf("checkpoint %d of %s names %s", n, id, object)
			}
		}
	}
	if objects == 0 {
		t.Errorf("the snapshots %v of %s have no objects", found.Manifests, id)
	}
	return found.Manifests
}

// Two jobs start from another one's checkpoint and savepoint. Until their first checkpoint
// what they start from stays, though the other job is deleted; from then on they need
// nothing of it, and its storage is empty.
func TestForkOutlivesItsSource(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	ctx := context.Background()
	source := stopped(t, c, s, strings.Replace(many, "'12500'", "'5000'", 1), "mine") // it would run for long
	var kept []checkpoint.Retained
	c.Until("the savepoint and two checkpoints are kept", func(ctx context.Context) bool {
		var err error
		kept, err = c.Store.Retained(ctx, source.ID)
		return err == nil && len(kept) == 3 && kept[0].Type == checkpoint.TypeSavepoint
	})
	saved, left, taken := kept[0].ID, kept[1].ID, kept[2].ID
	sql := strings.Replace(many, "'12500'", "'50000'", 1)
	one := fork(t, c, s, "one", sql, 5, fmt.Sprintf("checkpoint:counts/%d", taken)) // it waits for slots
	two := fork(t, c, s, "two", sql, 6, "savepoint:mine")
	for j, base := range map[weir.JobID]weir.CheckpointID{one.ID: taken, two.ID: saved} {
		got, err := s.Get(ctx, string(j))
		if err != nil || got.LastCheckpoint != base || got.Base != (weir.SnapshotRef{Job: source.ID, Checkpoint: base}) {
			t.Fatalf("forked: %+v, %v", got, err)
		}
	}
	if err := s.Delete(ctx, "counts", false); err != nil {
		t.Fatal(err)
	}
	manifests := func() []weir.CheckpointID {
		found, err := checkpoint.Find(ctx, c.Blobs, source.ID)
		if err != nil {
			t.Fatal(err)
		}
		return found.Manifests
	}
	c.Until("what nobody needs is gone", func(context.Context) bool { return !slices.Contains(manifests(), left) })
	if got := manifests(); !slices.Equal(got, []weir.CheckpointID{taken, saved}) {
		t.Fatalf("manifests %v lie in storage, want %d and %d", got, taken, saved)
	}
	same(t, "the other job is deleted", findings(t, s, job.StorageRequest{Deep: true}))
	if err := s.DeleteSavepoint(ctx, "mine"); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("a savepoint that a job starts from is deleted: %v", err)
	}

	c.Worker("w2", 12)
	exact(t, c, s, "one")
	exact(t, c, s, "two")
	first := ownOnly(t, c, one.ID)[0]
	if id := ownOnly(t, c, two.ID)[0]; first != taken+1 || id != saved+1 {
		t.Errorf("ids go on with %d and %d, want %d and %d", first, id, taken+1, saved+1)
	}
	if err := s.DeleteSavepoint(ctx, "mine"); err != nil {
		t.Fatal(err)
	}
	c.Until("nothing of the other job is left", func(ctx context.Context) bool {
		keys, err := checkpoint.Check{Blobs: c.Blobs}.List(ctx, source.ID)
		return err == nil && len(keys) == 0
	})
	if _, err := s.Start(ctx, "one", job.StartRequest{From: fmt.Sprintf("checkpoint:%d", first)}); err != nil {
		t.Fatal(err)
	}
	exact(t, c, s, "one")
}

// foreign lets the manifest of another snapshot come to lie where that of a job's base was,
// and then that of an attempt which did not take it: no start is accepted, and an attempt
// that begins all the same fails. The job has ended before and after.
func foreign(t *testing.T, c *jobtest.Cluster, s *job.Service, j weir.Job) {
	t.Helper()
	ctx := context.Background()
	key := checkpoint.ManifestKey(j.ID, j.Base.Checkpoint)
	whole := read(t, c, key)
	for what, change := range map[string]func(*checkpoint.Manifest){
		"is that of checkpoint 1 of job " + string(j.ID): func(m *checkpoint.Manifest) { m.Checkpoint = 1 },
		"was written by attempt 7-0badcafe, but attempt " + j.Attempt.String() + " took the checkpoint": func(m *checkpoint.Manifest) {
			m.Attempt = weir.AttemptID{Number: 7, Tag: "0badcafe"}
		},
	} {
		m, err := checkpoint.DecodeManifest(whole)
		if err != nil {
			t.Fatal(err)
		}
		change(m)
		data, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		put(t, c, key, data)
		if _, err := s.Start(ctx, "counts", job.StartRequest{}); !errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), what) {
			t.Errorf("a start: %v, want a conflict that says %q", err, what)
		}
		// It came to lie there after the start was accepted.
		if _, err := c.Store.SetDesired(ctx, j.ID, []weir.Status{weir.StatusStopped, weir.StatusFailed}, weir.Wish{Desired: weir.DesiredRunning}); err != nil {
			t.Fatal(err)
		}
		failed := c.Await(s, "counts", weir.StatusFailed, weir.StatusFinished)
		if failed.Status != weir.StatusFailed || failed.Failure.Reason != "restore" || !strings.Contains(failed.Failure.Message, what) {
			t.Errorf("%s: %+v, want a failure that says %q", failed.Status, failed.Failure, what)
		}
	}
	put(t, c, key, whole)
}

// A job that starts from another one's checkpoint and writes to a folder of its own fails
// before it runs, and says why: it is not restarted for ever.
func TestForkIntoAnotherFolder(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	c.Heard(s, 1)
	out, other := filepath.Join(c.Dir, "out"), filepath.Join(c.Dir, "other")
	spec := c.Spec("a", oldSinkQuery(out, 1000), 1)
	spec.Checkpoint = json.RawMessage(`{"interval":"50ms","num_retained":100}`)
	ctx := context.Background()
	a, err := s.Submit(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	var from checkpoint.Retained
	c.Until("a checkpoint is kept that holds rows of the folder, and they are visible", func(ctx context.Context) bool {
		kept, err := c.Store.Retained(ctx, a.ID)
		for _, from = range kept {
			if err == nil && !from.CommitsOpen && holdsRows(t, c, a.ID, from.ID) {
				return true
			}
		}
		return false
	})
	fork := c.Spec("b", oldSinkQuery(other, 1000), 1)
	fork.RestoreFrom, fork.AllowDuplicateOutput = fmt.Sprintf("checkpoint:a/%d", from.ID), true
	b, err := s.Submit(ctx, fork)
	if err != nil {
		t.Fatal(err)
	}
	c.Until("it has failed", func(ctx context.Context) bool {
		b, err = s.Get(ctx, string(b.ID))
		return err == nil && b.Status == weir.StatusFailed
	})
	if b.Attempt.Number != 1 || !strings.Contains(b.Failure.Message, "write to the folder of that job") {
		t.Errorf("failed in attempt %v: %s", b.Attempt, b.Failure.Message)
	}
}

// holdsRows reports whether a checkpoint holds segments: a busy machine may have written no
// row between two of them.
func holdsRows(t *testing.T, c *jobtest.Cluster, id weir.JobID, cp weir.CheckpointID) bool {
	t.Helper()
	m, err := checkpoint.DecodeManifest(read(t, c, checkpoint.ManifestKey(id, cp)))
	if err != nil {
		t.Fatal(err)
	}
	return len(m.OpenSegments()) > 0
}
