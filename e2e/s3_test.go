//go:build e2e

package e2e

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/checkpoint"
	"weir/checkpoint/blob/s3test"
)

// A job whose snapshots lie in S3 counts exactly over kill -9 of a worker and over a
// restart of the S3 server; no secret shows anywhere. Workers keep copies of their state.
func TestCountsOnS3(t *testing.T) {
	t.Parallel()
	const rows, users = 60_000, 20_000
	s3, dir, listen := s3test.Start(t), t.TempDir(), freeAddress(t)
	up := start(t, "up", dir, "up", "--data", filepath.Join(dir, "data"), "--files", dir, "--listen", listen,
		"--storage", s3.URL("weir/e2e", s3.Credentials(t)))
	a := api{t, "http://" + listen}
	until(t, 30*time.Second, "weir is ready", func() bool { return strings.Contains(up.log.String(), "weir is ready") })
	want := writeBehavior(t, filepath.Join(dir, "behavior.json"), rows)
	a.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{
		"name": "main", "parallelism": 2, "checkpoint": map[string]any{"interval": "200ms", "tolerable_failures": 10},
		"sql": fmt.Sprintf(`CREATE TABLE b (ts BIGINT, behavior STRING) WITH ('connector' = 'filesystem', 'path' = 'behavior.json', 'format' = 'json', 'rows-per-second' = '15000');
			CREATE VIEW v AS SELECT behavior, ts %% %d AS u, COUNT(*) AS n FROM b GROUP BY behavior, ts %% %d;
			SELECT behavior, SUM(n) AS n FROM v GROUP BY behavior`, users, users),
	}, nil)
	a.awaitJob("main", 30*time.Second, "a checkpoint is complete", func(j job) bool { return j.Base != "nothing" })
	if copies, err := filepath.Glob(filepath.Join(dir, "data", "worker-*", "kept", "[0-9]*")); err != nil || len(copies) == 0 {
		t.Errorf("copies of state: %v, %v", copies, err)
	}
	var workers struct {
		Workers []struct {
			ID  string `json:"id"`
			PID int    `json:"pid"`
		} `json:"workers"`
	}
	a.must(http.StatusOK, "GET", "/v1/workers", nil, &workers)
	busy := a.busyWorker()
	for _, w := range workers.Workers {
		if w.ID != busy {
			continue
		}
		if err := syscall.Kill(w.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	a.awaitJob("main", 30*time.Second, "the second attempt runs", func(j job) bool { return j.Attempt > 1 && j.Status == "RUNNING" })
	s3.Stop()
	if j, _ := a.awaitJob("main", time.Second, "a status", func(job) bool { return true }); j.Status == "FINISHED" {
		t.Error("the job had ended before its storage went away")
	}
	s3.Restart(t)
	j, _ := a.awaitJob("main", time.Minute, "the job ends", func(j job) bool { return j.Status == "FINISHED" })
	if diff := cmp.Diff(want, a.counts("main")); diff != "" {
		t.Errorf("counts (-oracle +weir):\n%s", diff)
	}
	var keys []string
	err := filepath.WalkDir(filepath.Join(s3.Dir, "weir", "e2e"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			keys = append(keys, path)
		}
		return err
	})
	if err != nil || len(keys) < 2 || !strings.Contains(strings.Join(keys, "\n"), j.ID) {
		t.Errorf("objects of job %s in the bucket: %v, %v", j.ID, keys, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "objects")); !os.IsNotExist(err) {
		t.Errorf("a folder for objects is there too: %v", err)
	}
	if strings.Contains(up.log.String(), "copy of the state") {
		t.Error("a copy was no good")
	}
	if strings.Contains(up.log.String(), s3test.SecretKey) {
		t.Error("the log shows the secret")
	}
}

// After kill -9 of everything the workers find the copies in their data folders, get the subtasks
// that they had and restore from those: none of the state is fetched.
func TestRestoredFromCopies(t *testing.T) {
	t.Parallel()
	const rows, users = 60_000, 20_000
	s3, dir := s3test.Start(t), t.TempDir()
	var mu sync.Mutex
	var fetched []string
	proxy := s3test.StartProxy(t, s3.Address, func(r *http.Request) s3test.Fault {
		key := strings.TrimPrefix(r.URL.Path, "/weir/e2e/")
		if _, _, ok := checkpoint.StateOf(key); ok && r.Method == http.MethodGet {
			mu.Lock()
			defer mu.Unlock()
			fetched = append(fetched, key)
		}
		return s3test.Fault{}
	})
	storage := s3test.URL(proxy.Address, "weir/e2e", s3.Credentials(t))
	begin := func() (*process, api) {
		listen := freeAddress(t)
		up := start(t, "up", dir, "up", "--data", filepath.Join(dir, "data"), "--files", dir, "--listen", listen, "--storage", storage)
		until(t, 60*time.Second, "weir is ready", func() bool { return strings.Contains(up.log.String(), "weir is ready") })
		return up, api{t, "http://" + listen}
	}
	up, a := begin()
	want := writeBehavior(t, filepath.Join(dir, "behavior.json"), rows)
	a.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{
		"name": "main", "parallelism": 2, "checkpoint": map[string]any{"interval": "200ms", "tolerable_failures": 10},
		"sql": fmt.Sprintf(`CREATE TABLE b (ts BIGINT, behavior STRING) WITH ('connector' = 'filesystem', 'path' = 'behavior.json', 'format' = 'json', 'rows-per-second' = '6000');
			CREATE VIEW v AS SELECT behavior, ts %% %d AS u, COUNT(*) AS n FROM b GROUP BY behavior, ts %% %d;
			SELECT behavior, SUM(n) AS n FROM v GROUP BY behavior`, users, users),
	}, nil)
	a.awaitJob("main", 60*time.Second, "a checkpoint is complete", func(j job) bool { return j.Base != "nothing" })
	until(t, 60*time.Second, "both workers have copies", func() bool {
		one, _ := filepath.Glob(filepath.Join(dir, "data", "worker-1", "kept", "[0-9]*"))
		two, _ := filepath.Glob(filepath.Join(dir, "data", "worker-2", "kept", "[0-9]*"))
		return len(one) > 1 && len(two) > 1
	})
	var workers struct {
		Workers []struct {
			PID int `json:"pid"`
		} `json:"workers"`
	}
	a.must(http.StatusOK, "GET", "/v1/workers", nil, &workers)
	up.kill()
	for _, w := range workers.Workers {
		_ = syscall.Kill(w.PID, syscall.SIGKILL) // it may have ended by itself
	}
	_, a = begin()
	j, _ := a.awaitJob("main", 60*time.Second, "the second attempt runs", func(j job) bool { return j.Attempt > 1 && (j.Status == "RUNNING" || j.Status == "FINISHED") })
	mu.Lock()
	if len(fetched) > 0 && j.Status == "RUNNING" {
		t.Errorf("fetched: %v", fetched)
	}
	mu.Unlock()
	a.awaitJob("main", time.Minute, "the job ends", func(j job) bool { return j.Status == "FINISHED" })
	if diff := cmp.Diff(want, a.counts("main")); diff != "" {
		t.Errorf("counts (-oracle +weir):\n%s", diff)
	}
}

// Storage that does not work: the process does not start, and says why.
func TestStorageRefused(t *testing.T) {
	t.Parallel()
	s3, dir := s3test.Start(t), t.TempDir()
	good := s3.Credentials(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	metastore := "sqlite:" + filepath.Join(dir, "m.db")
	if _, errs, code := weir(t, dir, "", "migrate", "--metastore", metastore); code != 0 {
		t.Fatal(errs)
	}
	for storage, says := range map[string]string{
		s3.URL("nothing", good): "storage probe: cannot write: put object .probe-",
		s3.URL("weir", s3test.Credentials(t, s3test.AccessKey, "S3cret", "")): "SignatureDoesNotMatch",
		"s3://k:S3cret@weir?region=x":                                         "credentials do not belong into a URL",
		"s3://weir?region=x&endpont=http://h":                                 "did you mean endpoint?",
		"gs://weir":                                                           "gs is not supported by this version",
		"file://" + file:                                                      "not a directory",
		"file://relative":                                                     "not absolute",
	} {
		for _, args := range [][]string{
			{"up", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0"},
			{"server", "--metastore", metastore, "--nats", "nats://127.0.0.1:1", "--listen", "127.0.0.1:0"},
			{"worker", "--nats", "nats://127.0.0.1:1", "--data", filepath.Join(dir, "w")},
		} {
			_, errs, code := weir(t, dir, "", append(args, "--storage", storage)...)
			if code != 1 || !strings.Contains(errs, says) || strings.Contains(errs, "S3cret") || strings.Count(strings.TrimSpace(errs), "\n") > 0 {
				t.Errorf("%s, %s: exit code %d, %s\nwant %q", args[0], storage, code, errs, says)
			}
		}
	}
}
