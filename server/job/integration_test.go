package job_test

import (
	"context"
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"weir"
	"weir/server/job"
	"weir/server/job/jobtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*Server).startGoRoutine.func1"))
}

// counts has four keys, each a quarter of the rows.
const counts = `
CREATE TABLE numbers (k INT, v BIGINT) WITH (
  'connector' = 'datagen', 'number-of-rows' = '200000', 'rows-per-second' = '100000',
  'fields.k.kind' = 'sequence', 'fields.k.start' = '0', 'fields.k.end' = '199999',
  'fields.v.kind' = 'sequence', 'fields.v.start' = '0', 'fields.v.end' = '199999');
SET 'checkpoint.interval' = '100ms';
SELECT k % 4 AS key, COUNT(*) AS n, SUM(v) AS total FROM numbers GROUP BY k % 4`

func submit(t *testing.T, c *jobtest.Cluster, s *job.Service, name, sql string) weir.Job {
	t.Helper()
	spec := c.Spec(name, sql, 4)
	spec.Checkpoint = json.RawMessage(`{"interval":"100ms"}`)
	j, err := s.Submit(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func rows(t *testing.T, s *job.Service, name, at string) []string {
	t.Helper()
	page, err := s.Results(context.Background(), name, job.ResultQuery{OrderBy: "key", At: at})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range page.Rows {
		out = append(out, string(r))
	}
	return out
}

func TestCountFinishes(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 2)
	c.Worker("w2", 2)
	submit(t, c, s, "counts", counts)
	c.Await(s, "counts", weir.StatusRunning)
	j := c.Await(s, "counts", weir.StatusFinished, weir.StatusFailed)
	if j.Status != weir.StatusFinished {
		t.Fatalf("%s: %+v", j.Status, j.Failure)
	}
	t.Log(rows(t, s, "counts", ""))
}
