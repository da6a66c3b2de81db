// Package metastoretest is the conformance suite of a metastore: what checkpoint and
// server/job ask of one, run on every database.
package metastoretest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/server/job"
)

// A Store is everything that a metastore keeps.
type Store interface {
	job.Jobs
	job.Attempts
	job.Leases
	job.Events
	job.History
	job.Tables
	job.Checkpoints
	job.Pins
	job.Storage
	CheckpointSummary(ctx context.Context, job weir.JobID, f checkpoint.Filter) (checkpoint.Summary, error)
	NewestEvents(ctx context.Context, job weir.JobID, before int64, limit int) ([]weir.Event, error)
}

// Run runs the suite; open returns an empty store for each test.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, group := range []map[string]func(*testing.T, suite){jobTests, attemptTests, checkpointTests, savepointTests, retentionTests, collectionTests, adoptTests, abandonTests, historyTests, catalogTests, raceTests} {
		for name, test := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, suite{Store: open(t)})
			})
		}
	}
}

// A suite is a store with the steps that many tests share.
type suite struct{ Store }

var day = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// newJob is a job as a user submits it; its creation follows the names a, b, c….
func newJob(name string) weir.Job {
	return weir.Job{
		ID: weir.NewJobID(), Name: name, SQL: "SELECT 1", Plan: json.RawMessage(`{"version":1}`), Parallelism: 2, MaxParallelism: 1024,
		Checkpoint: json.RawMessage(`{"interval":"10s"}`), Restart: json.RawMessage(`{"strategy":"none"}`), OnRowError: "fail",
		Desired: weir.DesiredRunning, Status: weir.StatusCreated, CreatedAt: day.Add(time.Duration(name[0]) * time.Second),
	}
}

func (s suite) create(t testing.TB, name string) weir.Job {
	t.Helper()
	j, err := s.CreateJob(t.Context(), newJob(name), "")
	ok(t, err)
	return j
}

// running creates a job and takes its first attempt to RUNNING under term 1.
func (s suite) running(t testing.TB, name string) (weir.Job, weir.Fence) {
	t.Helper()
	j := s.create(t, name)
	f := s.begin(t, j, 1)
	ok(t, s.SetStatus(t.Context(), f, weir.StatusRunning, nil))
	return s.job(t, string(j.ID)), f
}

func (s suite) begin(t testing.TB, j weir.Job, term int64) weir.Fence {
	t.Helper()
	j, err := s.BeginAttempt(t.Context(), j.ID, j.Attempt, term)
	ok(t, err)
	return fenceOf(j)
}

func fenceOf(j weir.Job) weir.Fence { return weir.Fence{Job: j.ID, Attempt: j.Attempt, Term: j.Term} }

func (s suite) job(t testing.TB, id string) weir.Job {
	t.Helper()
	j, err := s.Job(t.Context(), id)
	ok(t, err)
	return j
}

// checkpoint takes a checkpoint to its completion.
func (s suite) checkpoint(t testing.TB, f weir.Fence, base bool) weir.CheckpointID {
	t.Helper()
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint, Periodic: true, TriggeredAt: day})
	ok(t, err)
	ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Manifest: "m", StateBytes: 10, NewBytes: 5}, base))
	return id
}

func (s suite) savepoint(t testing.TB, f weir.Fence, name string) weir.CheckpointID {
	t.Helper()
	id, err := s.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeSavepoint, Savepoint: name, TriggeredAt: day})
	ok(t, err)
	ok(t, s.CompleteCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Manifest: "m", StateBytes: 10}, false))
	return id
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fails(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want one that is %q", err, want)
	}
}

func equal[T any](t testing.TB, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

func names(jobs []weir.Job) []string {
	var out []string
	for _, j := range jobs {
		out = append(out, j.Name)
	}
	return out
}
