package metastore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir"
	"weir/checkpoint"
	"weir/metastore"
	"weir/metastore/postgrestest"
)

// A holdUp is a transaction of its own on a PostgreSQL database, for tests that need
// others to wait at a certain row.
type holdUp struct {
	*testing.T
	conn *pgx.Conn
	tx   pgx.Tx
}

func newHoldUp(t *testing.T, url, lock string, args ...any) *holdUp {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	h := &holdUp{T: t, conn: conn}
	if h.tx, err = conn.Begin(t.Context()); err == nil {
		_, err = h.tx.Exec(t.Context(), lock, args...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// await waits until so many others wait for a lock.
func (h *holdUp) await(want int) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 5*time.Second)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for waiting := 0; waiting < want; <-ticker.C {
		_, err := h.tx.Exec(ctx, `SELECT pg_stat_clear_snapshot()`) // else it sees who was there at first
		if err == nil {
			err = h.tx.QueryRow(ctx, `SELECT COUNT(DISTINCT pid) FROM pg_locks WHERE NOT granted AND pid IN
			(SELECT pid FROM pg_stat_activity WHERE datname = current_database())`).Scan(&waiting)
		}
		if err != nil {
			h.Fatalf("%d wait, want %d: %v", waiting, want, err)
		}
	}
}

// begun creates a job, lets its first attempt begin and a checkpoint of it complete.
func begun(t *testing.T, s *metastore.Store, name string) (weir.Fence, weir.SnapshotRef) {
	t.Helper()
	j, err := s.CreateJob(t.Context(), weir.Job{ID: weir.NewJobID(), Name: name, Desired: weir.DesiredRunning, Status: weir.StatusCreated}, "")
	if err == nil {
		j, err = s.BeginAttempt(t.Context(), j.ID, weir.AttemptID{}, 1)
	}
	f := weir.Fence{Job: j.ID, Attempt: j.Attempt, Term: 1}
	if err == nil {
		err = s.SetStatus(t.Context(), f, weir.StatusRunning, nil)
	}
	id := weir.CheckpointID(0)
	if err == nil {
		id, err = s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint})
	}
	if err == nil {
		err = s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Manifest: "m"}, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f, weir.SnapshotRef{Job: j.ID, Checkpoint: id}
}

// The end of a job that is to go on from another job's checkpoint locks both rows, in the
// order that everybody does: who asks for the same at that moment is no deadlock.
func TestThenStartLocksInOrder(t *testing.T) {
	t.Parallel()
	url := postgrestest.Database(t)
	s := open(t, url)
	f, own := begun(t, s, "a")
	_, ref := begun(t, s, "b")
	if own.Job < ref.Job { // the one that ends is the higher one
		ref = own
		j, err := s.Job(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		f = weir.Fence{Job: j.ID, Attempt: j.Attempt, Term: 1}
	}
	alive := []weir.Status{weir.StatusRunning, weir.StatusStopping, weir.StatusStopped}
	wish := weir.Wish{Desired: weir.DesiredStopped, Then: &weir.Start{Base: &ref}}
	if _, err := s.SetDesired(t.Context(), f.Job, alive, wish); err != nil {
		t.Fatal(err)
	}
	h := newHoldUp(t, url, `UPDATE jobs SET writes = writes WHERE id = $1`, ref.Job)
	errC := make(chan error, 2)
	go func() {
		_, err := s.SetDesired(t.Context(), f.Job, alive, weir.Wish{Desired: weir.DesiredRunning, Base: &ref})
		if errors.Is(err, weir.ErrConflict) {
			err = nil // PostgreSQL let the end go first
		}
		errC <- err
	}()
	h.await(1)
	go func() { errC <- s.SetStatus(t.Context(), f, weir.StatusCanceled, nil) }()
	h.await(2)
	if err := h.tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-errC; err != nil {
			t.Error(err)
		}
	}
}

// A savepoint that failed leaves its name to others: its deletion does not take theirs.
func TestDeleteSavepointWhoseNameIsTaken(t *testing.T) {
	t.Parallel()
	url := postgrestest.Database(t)
	s := open(t, url)
	a, _ := begun(t, s, "a")
	b, _ := begun(t, s, "b")
	named := checkpoint.Record{Type: checkpoint.TypeSavepoint, Savepoint: "sale"}
	failed, err := s.BeginCheckpoint(t.Context(), a, named)
	if err == nil {
		_, err = s.AbortCheckpoint(t.Context(), a, checkpoint.Record{ID: failed, Status: checkpoint.StatusFailed})
	}
	if err != nil {
		t.Fatal(err)
	}
	h := newHoldUp(t, url, `UPDATE checkpoints SET path = path WHERE job = $1 AND id = $2`, a.Job, failed)
	errC := make(chan error, 1)
	go func() {
		_, err := s.DeleteSavepoint(t.Context(), "sale")
		errC <- err
	}()
	h.await(1)
	id, err := s.BeginCheckpoint(t.Context(), b, named)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-errC; err != nil {
		t.Error(err)
	}
	if p, err := s.Savepoint(t.Context(), "sale"); err != nil || p.Job != b.Job || p.Checkpoint != id {
		t.Errorf("savepoint %+v, %v; want %d of job b", p, err, id)
	}
}
