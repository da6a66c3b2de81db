package job_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir"
	"weir/checkpoint"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// A checkpoint of version 1 as a job at parallelism 2 left it: its manifest, and the
// objects that it names. Every later program must read it.
const (
	oldFolder = "../../checkpoint/testdata/v1"
	oldKeys   = 400
	oldRows   = 24000
)

var oldQuery = fmt.Sprintf(`
CREATE TABLE numbers (k INT, v BIGINT) WITH (
  'connector' = 'datagen', 'number-of-rows' = '%[1]d', 'rows-per-second' = '12000',
  'fields.k.kind' = 'sequence', 'fields.k.start' = '0', 'fields.k.end' = '%[2]d',
  'fields.v.kind' = 'sequence', 'fields.v.start' = '0', 'fields.v.end' = '%[2]d');
SELECT k %% %[3]d AS key, COUNT(*) AS n, SUM(v) AS total, MIN(v) AS least, COUNT(DISTINCT v %% 3) AS kinds FROM numbers GROUP BY k %% %[3]d`, oldRows, oldRows-1, oldKeys)

// oldAnswer is the row of a key.
func oldAnswer(key int) string {
	n, total, kinds := 0, 0, map[int]bool{}
	for v := key; v < oldRows; v += oldKeys {
		n, total, kinds[v%3] = n+1, total+v, true
	}
	return fmt.Sprintf(`{"key":%d,"n":%d,"total":%d,"least":%d,"kinds":%d}`, key, n, total, key, len(kinds))
}

func TestOldCheckpoint(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	c.Heard(s, 1)
	ctx := context.Background()
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" {
		writeOld(t, c, s)
		return
	}
	keys, manifest := readOld(t)
	for key, data := range keys {
		put(t, c, key, data)
	}
	m, err := checkpoint.DecodeManifest(keys[manifest])
	if err != nil || len(m.Objects()) == 0 || m.Parallelism != 2 {
		t.Fatalf("%s: %v", manifest, err)
	}
	spec := c.Spec("old", oldQuery, 3)
	graph, err := json.Marshal(spec.Graph)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Store.CreateJob(ctx, weir.Job{
		ID: m.Job, Name: "old", SQL: oldQuery, Plan: graph, Parallelism: 3, MaxParallelism: spec.Graph.MaxParallelism, OnRowError: "fail",
		Desired: weir.DesiredCanceled, Status: weir.StatusCreated,
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	c.Await(s, "old", weir.StatusCanceled)
	j, _, err := s.Adopt(ctx, "old", 0)
	if err != nil || j.Base.Checkpoint != m.Checkpoint {
		t.Fatalf("adopted %+v: %v", j.Base, err)
	}
	if _, err := s.Start(ctx, "old", job.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	if j = c.Await(s, "old", weir.StatusFinished, weir.StatusFailed); j.Status != weir.StatusFinished {
		t.Fatalf("%s: %+v", j.Status, j.Failure)
	}
	page, err := s.Results(ctx, "old", job.ResultQuery{OrderBy: "key", Limit: oldKeys + 1})
	if err != nil || len(page.Rows) != oldKeys {
		t.Fatalf("%d rows, %v", len(page.Rows), err)
	}
	for key, row := range page.Rows {
		if string(row) != oldAnswer(key) {
			t.Fatalf("row %s, want %s", row, oldAnswer(key))
		}
	}
}

// writeOld runs the job halfway and keeps what its savepoint consists of.
func writeOld(t *testing.T, c *jobtest.Cluster, s *job.Service) {
	t.Helper()
	ctx := context.Background()
	if _, err := s.Submit(ctx, c.Spec("writer", oldQuery, 2)); err != nil {
		t.Fatal(err)
	}
	c.Until("rows are read", func(ctx context.Context) bool {
		r, err := s.Rates(ctx, "writer")
		return err == nil && r.RowsIn > oldRows/4
	})
	if _, err := s.Stop(ctx, "writer", job.StopRequest{Name: "old"}); err != nil {
		t.Fatal(err)
	}
	j := c.Await(s, "writer", weir.StatusStopped)
	m, err := checkpoint.LoadManifest(ctx, c.Blobs, checkpoint.ManifestKey(j.ID, j.Base.Checkpoint))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(oldFolder); err != nil {
		t.Fatal(err)
	}
	for _, key := range append(m.Objects(), checkpoint.ManifestKey(m.Job, m.Checkpoint)) {
		path := filepath.Join(oldFolder, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, read(t, c, key), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// readOld reads the kept folder: objects by key, and which is the manifest.
func readOld(t *testing.T) (keys map[string][]byte, manifest string) {
	t.Helper()
	keys = map[string][]byte{}
	err := filepath.WalkDir(oldFolder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(oldFolder, path)
		if err != nil {
			return err
		}
		key := filepath.ToSlash(rel)
		if keys[key], err = os.ReadFile(path); strings.HasSuffix(key, "/manifest") {
			manifest = key
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys, manifest
}

// TestNewerManifest: a manifest of a version to come is refused by name, before any row is
// processed.
func TestNewerManifest(t *testing.T) {
	t.Parallel()
	keys, manifest := readOld(t)
	newer := strings.Replace(string(keys[manifest]), `"version":1`, `"version":2`, 1)
	_, err := checkpoint.DecodeManifest([]byte(newer))
	if err == nil || !strings.Contains(err.Error(), "version 2, this program reads version 1") {
		t.Errorf("%v", err)
	}
}
