package job_test

import (
	"context"
	"encoding/json"
	"testing"

	"weir"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// killed runs counts with checkpoint options over the death of a worker.
func killed(t *testing.T, options string) (*jobtest.Cluster, *job.Service) {
	t.Helper()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	c.Worker("w2", 4)
	c.Heard(s, 2)
	spec := c.Spec("counts", counts, 4)
	spec.Checkpoint = json.RawMessage(options)
	if _, err := s.Submit(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	completed(t, c, "counts")
	c.Kill("w2")
	return c, s
}

// Several checkpoints under way at a time: every row counts once over a worker's death.
func TestConcurrentCheckpointsKilled(t *testing.T) {
	t.Parallel()
	c, s := killed(t, `{"interval":"20ms","max_concurrent":8}`)
	j := finished(t, c, s, "counts")
	if j.Attempt.Number < 2 {
		t.Errorf("it finished in attempt %v", j.Attempt)
	}
}

// At-least-once: no row is missing over a worker's death, some may count twice.
func TestAtLeastOnceKilled(t *testing.T) {
	t.Parallel()
	c, s := killed(t, `{"interval":"20ms","mode":"at_least_once","max_concurrent":4}`)
	if j := c.Await(s, "counts", weir.StatusFinished, weir.StatusFailed); j.Status != weir.StatusFinished || j.Attempt.Number < 2 {
		t.Fatalf("%s in attempt %v: %+v", j.Status, j.Attempt, j.Failure)
	}
	got := rows(t, s, "counts", "")
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i, text := range got {
		var have, least struct{ Key, N, Total int64 }
		if err := json.Unmarshal([]byte(text), &have); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(want[i]), &least); err != nil {
			t.Fatal(err)
		}
		if have.Key != least.Key || have.N < least.N || have.Total < least.Total {
			t.Errorf("%+v, at least %+v", have, least)
		}
	}
}
