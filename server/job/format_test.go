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
// objects that it names. Every later program must read it. -rewrite writes it only where it
// is not there: it is to stay as it was written.
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
	if rewrites(oldFolder) {
		writeOld(t, c, s)
		return
	}
	if m := finishOld(t, c, s, oldFolder, oldQuery); len(m.Objects()) == 0 {
		t.Fatal("it names no object")
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

// rewrites reports whether what was kept is to be made: with -rewrite, where nothing is.
func rewrites(folder string) bool {
	f := flag.Lookup("rewrite")
	_, err := os.Stat(folder)
	return f != nil && f.Value.String() == "true" && err != nil
}

// finishOld has a job adopt the one checkpoint that was kept in a folder, and go on from it
// at another parallelism, to its end.
func finishOld(t *testing.T, c *jobtest.Cluster, s *job.Service, folder, query string) *checkpoint.Manifest {
	t.Helper()
	ctx := context.Background()
	keys, manifest := readOld(t, folder)
	for key, data := range keys {
		put(t, c, key, data)
	}
	m, err := checkpoint.DecodeManifest(keys[manifest])
	if err != nil || m.Parallelism != 2 {
		t.Fatalf("%s: %v", manifest, err)
	}
	spec := c.Spec("old", query, 3)
	graph, err := json.Marshal(spec.Graph)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Store.CreateJob(ctx, weir.Job{
		ID: m.Job, Name: "old", SQL: query, Plan: graph, Parallelism: 3, MaxParallelism: spec.Graph.MaxParallelism, OnRowError: "fail",
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
	return m
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
	keepOld(t, c, oldFolder, j.ID, j.Base.Checkpoint)
}

// keepOld keeps the manifest of a checkpoint and what it names in a folder.
func keepOld(t *testing.T, c *jobtest.Cluster, folder string, j weir.JobID, id weir.CheckpointID) {
	t.Helper()
	m, err := checkpoint.LoadManifest(t.Context(), c.Blobs, checkpoint.ManifestKey(j, id))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range append(m.Objects(), checkpoint.ManifestKey(m.Job, m.Checkpoint)) {
		keep(t, filepath.Join(folder, filepath.FromSlash(key)), read(t, c, key))
	}
}

func keep(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// readOld reads a kept folder: objects by key, and which is the manifest.
func readOld(t *testing.T, folder string) (keys map[string][]byte, manifest string) {
	t.Helper()
	keys = map[string][]byte{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(folder, path)
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
	keys, manifest := readOld(t, oldFolder)
	newer := strings.Replace(string(keys[manifest]), `"version":1`, `"version":2`, 1)
	_, err := checkpoint.DecodeManifest([]byte(newer))
	if err == nil || !strings.Contains(err.Error(), "version 2, this program reads version 1") {
		t.Errorf("%v", err)
	}
}
