package job_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/server/job/jobtest"
)

// R10: the time of day of the server and of a worker is set an hour ahead and back while a
// job runs, the server's lease and a restart included. Nobody looks dead for it, checkpoints
// go on, and what is kept of them is true.
func TestClockStepR10(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	c.Worker("w2", 4)
	c.Heard(s, 2)
	began := time.Now()
	submit(t, c, s, "counts", strings.Replace(counts, "25000", "12500", 1))
	completed(t, c, "counts")
	step := func(server, worker time.Duration) {
		c.Clock("s1").Step(server)
		c.Clock("w1").Step(worker)
		first := weir.CheckpointID(0)
		c.Until("checkpoints after the clock was set", func(ctx context.Context) bool {
			j, err := c.Store.Job(ctx, "counts")
			if err == nil && first == 0 {
				first = j.Base.Checkpoint
			}
			return err == nil && (j.Base.Checkpoint >= first+4 || j.Status.Terminal())
		})
	}
	step(time.Hour, 0)
	step(time.Hour, -time.Hour)
	step(-time.Hour, time.Hour)
	j := c.Await(s, "counts", weir.StatusRunning)
	if j.Attempt.Number != 1 || j.Term != 1 {
		t.Errorf("attempt %v, term %d: somebody was taken for dead", j.Attempt, j.Term)
	}
	if workers, err := s.Workers(context.Background()); err != nil || len(workers) != 2 {
		t.Errorf("workers %+v, %v", workers, err)
	}
	c.Kill("w2") // who is dead is still found dead, and the job goes on at once
	c.Until("the next attempt runs", func(ctx context.Context) bool {
		j, err := c.Store.Job(ctx, "counts")
		return err == nil && j.Attempt.Number == 2 && j.Status == weir.StatusRunning
	})
	step(0, 0)
	if j = finished(t, c, s, "counts"); j.Attempt.Number != 2 || j.Term != 1 {
		t.Errorf("finished in attempt %v, term %d", j.Attempt, j.Term)
	}
	honest(t, c, j.ID, time.Since(began))
}

// honest checks the checkpoints of a job that ran for so long, one each 100 ms.
func honest(t *testing.T, c *jobtest.Cluster, id weir.JobID, ran time.Duration) {
	t.Helper()
	list, err := c.Store.Checkpoints(context.Background(), id, checkpoint.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if most := int(ran/(100*time.Millisecond)) + 2; len(list) == 0 || len(list) > most {
		t.Errorf("%d checkpoints in %v, want no more than %d", len(list), ran, most)
	}
	for _, r := range list {
		took := r.CompletedAt.Sub(r.TriggeredAt)
		if r.Failure != nil && r.Failure.Reason == checkpoint.ReasonTimeout || took < 0 || took > ran {
			t.Errorf("checkpoint %d: %s after %v, %+v", r.ID, r.Status, took, r.Failure)
		}
		r, err := c.Store.CheckpointByID(context.Background(), id, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range r.Acks {
			if d := a.Timing.StartDelayMS; d < 0 || d > float64(ran.Milliseconds()) || a.Timing.UploadMS < 0 || a.Timing.AlignmentMS < 0 {
				t.Errorf("checkpoint %d: task %v: %+v", r.ID, a.Task, a.Timing)
			}
		}
	}
}

// R02: the worker lives, one of its tasks has panicked. The job says so, and its rows flow
// again in another attempt.
func TestTaskPanicsR02(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	c.Heard(s, 1)
	j := submit(t, c, s, "counts", counts)
	completed(t, c, "counts")
	c.Panic.Store(true)
	done := finished(t, c, s, "counts")
	if done.Attempt.Number != 2 || done.RestoredFrom.IsZero() {
		t.Errorf("attempt %v restored from %v: want the second, from a checkpoint", done.Attempt, done.RestoredFrom)
	}
	events, err := c.Store.Events(context.Background(), j.ID, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var statuses []string
	for _, e := range events {
		if e.Kind == "status" {
			status, _, _ := strings.Cut(e.Message, ":")
			statuses = append(statuses, status)
		}
	}
	t.Log(statuses)
	_, after, restarted := strings.Cut(strings.Join(statuses, " "), "RUNNING RESTARTING")
	if !restarted || !strings.Contains(after, "RUNNING") {
		t.Errorf("statuses %v", statuses)
	}
}
