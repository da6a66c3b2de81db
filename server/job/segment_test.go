package job_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir"
	"weir/checkpoint"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// A savepoint of version 1 of a job that writes files: its segments are sealed and not
// committed. storage has its manifest, output the folder of the table as it was left. A
// segment's item names files within that folder, which may lie elsewhere since.
const (
	oldSink     = "../../checkpoint/testdata/v1sink"
	oldSinkRows = 3000
)

func oldSinkQuery(dir string, rate int) string {
	return fmt.Sprintf(`
CREATE TABLE numbers (k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'rows-per-second' = '%d',
  'fields.k.kind' = 'sequence', 'fields.k.start' = '0', 'fields.k.end' = '%d');
CREATE TABLE copies (k INT) WITH ('connector' = 'filesystem', 'path' = '%s', 'format' = 'csv');
INSERT INTO copies SELECT k FROM numbers`, oldSinkRows, rate, oldSinkRows-1, dir)
}

// Rows that an older program sealed and never committed are shown by a newer one, once, and
// those that follow are added to them.
func TestOldSegments(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	c.Heard(s, 1)
	out := filepath.Join(c.Dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	if rewrites(oldSink) {
		writeOldSegments(t, c, s, out)
		return
	}
	left, err := os.ReadDir(filepath.Join(oldSink, "output"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		data, err := os.ReadFile(filepath.Join(oldSink, "output", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		keep(t, filepath.Join(out, e.Name()), data)
	}
	if n := len(lines(t, out)); n != 0 {
		t.Fatalf("%d rows are visible before", n)
	}
	m := finishOld(t, c, s, filepath.Join(oldSink, "storage"), oldSinkQuery(out, 10000))
	sealed := 0
	for _, items := range m.OpenSegments() {
		for _, item := range items {
			var segment struct {
				Final string
				Rows  int
			}
			if err := json.Unmarshal(item, &segment); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(out, segment.Final))
			if err != nil || strings.Count(string(data), "\n") != segment.Rows {
				t.Errorf("%s: %v, %d rows were sealed", segment.Final, err, segment.Rows)
			}
			sealed += segment.Rows
		}
	}
	got := lines(t, out)
	for line, n := range got {
		if n != 1 {
			t.Errorf("%d times %s", n, line)
		}
	}
	if len(got) != oldSinkRows || sealed == 0 || sealed >= oldSinkRows {
		t.Errorf("%d rows, %d of them sealed before; want %d", len(got), sealed, oldSinkRows)
	}
}

// writeOldSegments runs the job halfway, and keeps a savepoint and what lies in its folder.
func writeOldSegments(t *testing.T, c *jobtest.Cluster, s *job.Service, out string) {
	t.Helper()
	ctx := context.Background()
	spec := c.Spec("writer", oldSinkQuery(out, 500), 2)
	spec.Checkpoint = json.RawMessage(`{"interval":"0s"}`)
	j, err := s.Submit(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	c.Until("rows are read", func(ctx context.Context) bool {
		r, err := s.Rates(ctx, "writer")
		return err == nil && r.RowsIn > oldSinkRows/10
	})
	sp, err := s.TriggerSavepoint(ctx, "writer", "old", jobtest.Timeout)
	if err != nil || sp.Status != checkpoint.StatusCompleted {
		t.Fatalf("%+v, %v", sp, err)
	}
	if _, err := s.Cancel(ctx, "writer", false); err != nil {
		t.Fatal(err)
	}
	c.Await(s, "writer", weir.StatusCanceled)
	keepOld(t, c, filepath.Join(oldSink, "storage"), j.ID, sp.ID)
	left, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		data, err := os.ReadFile(filepath.Join(out, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		keep(t, filepath.Join(oldSink, "output", e.Name()), data)
	}
}
