package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/exec/deploy"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// faulty is a script over a file of n lines, of which each hundredth is no record and
// each hundredth cannot be divided by.
func faulty(t *testing.T, c *jobtest.Cluster, n int) string {
	t.Helper()
	var text strings.Builder
	for i := range n {
		switch i % 100 {
		case 7:
			fmt.Fprintf(&text, "{\"v\": line %d\n", i+1)
		default:
			fmt.Fprintf(&text, "{\"v\":%d}\n", i%100)
		}
	}
	path := filepath.Join(c.Dir, "in.json")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return `CREATE TABLE s (v BIGINT) WITH ('connector' = 'filesystem', 'path' = '` + path + `', 'format' = 'json', 'rows-per-second' = '5000');
SELECT COUNT(*) AS n, SUM(100 / v) AS q FROM s`
}

// rejects reads all pages of a job's rejected rows.
func rejects(t *testing.T, s *job.Service, name string, limit int) (rows []string, counts []deploy.Count) {
	t.Helper()
	cursor := ""
	for {
		page, err := s.Rejects(context.Background(), name, limit, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Rows {
			rows = append(rows, string(r))
		}
		if cursor = page.Next; cursor == "" {
			return rows, page.Counts
		}
	}
}

// TestRejectsOfAKilledWorker: M02: a worker is killed while the job runs; each rejected row is counted
// and kept once, with its bytes, and they can be read while the job runs and when it has ended.
// Skip keeps the first hundred.
func TestRejectsOfAKilledWorker(t *testing.T) {
	t.Parallel()
	for policy, kept := range map[string]int{"keep": 200, "skip": 100} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			testRejectsOfAKilledWorker(t, policy, kept)
		})
	}
}

func testRejectsOfAKilledWorker(t *testing.T, policy string, kept int) {
	const n = 10_000
	c := jobtest.New(t)
	c.Batches.Store(2) // so that rows are left when the worker is killed
	s := c.Server("s1")
	c.Worker("w1", 4)
	c.Worker("w2", 4)
	c.Heard(s, 2)
	spec := c.Spec("faulty", "SET 'on_row_error' = '"+policy+"';"+faulty(t, c, n), 4)
	spec.Checkpoint = json.RawMessage(`{"interval":"100ms"}`)
	if _, err := s.Submit(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	completed(t, c, "faulty")
	c.Until("some rejected rows", func(ctx context.Context) bool {
		page, err := s.Rejects(ctx, "faulty", 1, "")
		return err == nil && len(page.Rows) == 1 && page.AsOf.Live
	})
	c.Kill("w2")
	c.Batches.Store(0)
	if j := c.Await(s, "faulty", weir.StatusFinished, weir.StatusFailed); j.Status != weir.StatusFinished || j.Attempt.Number < 2 {
		t.Fatalf("%s, attempt %v: %+v", j.Status, j.Attempt, j.Failure)
	}
	got, counts := rejects(t, s, "faulty", 33)
	if diff := cmp.Diff([]deploy.Count{{Table: "s", Rows: 2 * n / 100}}, counts); diff != "" {
		t.Errorf("counts: -want +got\n%s", diff)
	}
	if len(got) != kept {
		t.Fatalf("%d rows", len(got))
	}
	for i, row := range got {
		want := fmt.Sprintf(`"line":%d,`, i/2*100+1)
		if i%2 == 1 {
			want = fmt.Sprintf(`"raw":"{\"v\": line %d"}`, i/2*100+8)
		}
		if !strings.Contains(row, want) {
			t.Fatalf("row %d is %s, not %s", i, row, want)
		}
	}
	r, err := s.Rates(t.Context(), "faulty")
	if err != nil || r.RowsRejected != 2*n/100 || r.RowsOut < 1 || r.RowsOut > 100 {
		t.Errorf("rates %+v, %v", r, err)
	}
	result, err := s.Results(t.Context(), "faulty", job.ResultQuery{})
	if err != nil || len(result.Rows) != 1 || !strings.Contains(string(result.Rows[0]), fmt.Sprintf(`"n":%d,`, n-2*n/100)) {
		t.Errorf("result %s, %v", result.Rows, err)
	}
}

// TestM02Fails: a row at fault fails the job at its first attempt, for good and with its
// place: it does not go away by starting again.
func TestM02Fails(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 2)
	c.Heard(s, 1)
	if _, err := s.Submit(t.Context(), c.Spec("faulty", faulty(t, c, 8), 2)); err != nil {
		t.Fatal(err)
	}
	j := c.Await(s, "faulty", weir.StatusFinished, weir.StatusFailed)
	if j.Status != weir.StatusFailed || j.Attempt.Number != 1 || j.Failure == nil || !strings.Contains(j.Failure.Message, "in.json:") {
		t.Errorf("%s, attempt %v: %+v", j.Status, j.Attempt, j.Failure)
	}
}

// TestNoRejects: what a job says that rejects nothing.
func TestNoRejects(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	sql := faulty(t, c, 10)
	if _, err := s.Submit(t.Context(), c.Spec("fails", sql, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rejects(t.Context(), "fails", 1, ""); !errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), "on_row_error is fail") {
		t.Errorf("%v", err)
	}
	spec := c.Spec("keeps", sql, 1)
	spec.OnRowError = "keep"
	if _, err := s.Submit(t.Context(), spec); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), `the plan was made for "fail"`) {
		t.Errorf("%v", err)
	}
	if _, err := s.Submit(t.Context(), c.Spec("keeps", "SET 'on_row_error' = 'keep';"+sql, 1)); err != nil {
		t.Fatal(err)
	}
	page, err := s.Rejects(t.Context(), "keeps", 1, "")
	if err != nil || len(page.Rows) != 0 || len(page.Counts) != 0 { // it has not run yet
		t.Errorf("%+v, %v", page, err)
	}
	if _, err := s.Rejects(t.Context(), "keeps", 1, "x"); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("a cursor of no page: %v", err)
	}
}
