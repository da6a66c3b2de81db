//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/metastore/postgrestest"
	"weir/transport"
)

// A cluster is what an operator would run: PostgreSQL and NATS from elsewhere, weir
// servers and workers as processes.
type cluster struct {
	t                       *testing.T
	dir                     string
	metastore, nats, listen string
	server                  *process
	workers                 map[string]*process
	api                     api
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	ns, err := transport.StartServer(context.Background(), transport.ServerOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ns.Stop)
	c := &cluster{t: t, dir: t.TempDir(), metastore: postgrestest.Database(t), nats: ns.URL(), listen: freeAddress(t), workers: map[string]*process{}}
	c.api = api{t, "http://" + c.listen}
	if out, errs, code := weir(t, "", "", "migrate", "--metastore", c.metastore); code != 0 {
		t.Fatalf("weir migrate: %s%s", out, errs)
	}
	c.startServer()
	c.startWorker("w1")
	c.startWorker("w2")
	return c
}

// freeAddress returns a loopback address that was free a moment ago, its port below those
// that connections and other tests' listeners are given by chance.
func freeAddress(t *testing.T) string {
	t.Helper()
	for try := 1; ; try++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(10_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
		if try == 100 {
			t.Fatal(err)
		}
	}
}

func (c *cluster) storage() string { return "file://" + filepath.Join(c.dir, "objects") }

func (c *cluster) startServer() {
	c.server = start(c.t, "server", c.dir, "server", "--metastore", c.metastore, "--nats", c.nats, "--storage", c.storage(), "--listen", c.listen, "--files", c.dir)
	until(c.t, 20*time.Second, "the server is ready", func() bool { return c.api.do("GET", "/readyz", nil, nil) == http.StatusOK })
}

func (c *cluster) startWorker(id string) {
	c.workers[id] = start(c.t, "worker "+id, c.dir, "worker", "--id", id, "--nats", c.nats, "--storage", c.storage(), "--slots", "4",
		"--data", filepath.Join(c.dir, id), "--files", c.dir)
}

// The main job: counts stay exact over kill -9 of a worker at a third, of the server
// at two thirds, and of everything then, at parallelism 4 over two workers. With
// WEIR_LONG it has ten million rows.
func TestCountsSurviveKills(t *testing.T) {
	t.Parallel()
	rows, perSecond := 600_000, 60_000
	if os.Getenv("WEIR_LONG") != "" {
		rows, perSecond = 10_000_000, 500_000
	}
	c := startCluster(t)
	want := writeBehavior(t, filepath.Join(c.dir, "behavior.json"), rows)
	sql := fmt.Sprintf(`CREATE TABLE b (user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, ts BIGINT)
		WITH ('connector' = 'filesystem', 'path' = 'behavior.json', 'format' = 'json', 'rows-per-second' = '%d');
		SET 'checkpoint.interval' = '500 ms';
		SET 'checkpoint.tolerable_failures' = '10';
		SELECT behavior, COUNT(*) AS n FROM b GROUP BY behavior`, perSecond)
	c.api.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{"name": "main", "sql": sql, "parallelism": 4}, nil)

	c.awaitCounted(rows / 3)
	last, killed := c.attempt(), time.Now()
	c.workers["w1"].kill()
	c.awaitRunning("kill -9 of a worker", killed, last+1)
	c.startWorker("w1")

	c.awaitCounted(2 * rows / 3)
	last, killed = c.attempt(), time.Now()
	c.server.kill()
	c.startServer()
	c.awaitRunning("kill -9 of the server", killed, last+1)
	c.awaitCheckpoint(last + 1)

	last, killed = c.attempt(), time.Now()
	for _, p := range c.workers {
		p.kill()
	}
	c.server.kill()
	c.startServer()
	c.startWorker("w1")
	c.startWorker("w2")
	c.awaitRunning("kill -9 of everything", killed, last+1)
	c.api.awaitJob("main", 2*time.Minute, "FINISHED", func(j job) bool { return j.Status == "FINISHED" })
	if diff := cmp.Diff(want, c.api.counts("main")); diff != "" {
		t.Errorf("counts (-oracle +weir):\n%s", diff)
	}
	c.checkHistory()
}

// attempt is the job's attempt now.
func (c *cluster) attempt() int64 {
	var j job
	c.api.must(http.StatusOK, "GET", "/v1/jobs/main", nil, &j)
	return j.Attempt
}

// awaitRunning waits until attempt or a later one runs, or has ended its work already.
func (c *cluster) awaitRunning(what string, since time.Time, attempt int64) {
	c.t.Helper()
	j, _ := c.api.awaitJob("main", 30*time.Second, "RUNNING after "+what, func(j job) bool {
		return j.Attempt >= attempt && (j.Status == "RUNNING" || j.Status == "FINISHED")
	})
	c.t.Logf("%s: attempt %d is %s after %d ms", what, j.Attempt, j.Status, time.Since(since).Milliseconds())
}

// awaitCounted waits until the result has counted that many rows, over all attempts.
func (c *cluster) awaitCounted(rows int) {
	c.t.Helper()
	until(c.t, time.Minute, fmt.Sprintf("%d rows counted", rows), func() bool {
		var page struct {
			Rows []struct {
				N int `json:"n"`
			} `json:"rows"`
		}
		if c.api.do("GET", "/v1/jobs/main/results", nil, &page) != http.StatusOK {
			return false
		}
		sum := 0
		for _, r := range page.Rows {
			sum += r.N
		}
		return sum >= rows
	})
}

// awaitCheckpoint waits until attempt has completed a checkpoint.
func (c *cluster) awaitCheckpoint(attempt int64) {
	c.t.Helper()
	until(c.t, 30*time.Second, "a completed checkpoint", func() bool {
		var h checkpoints
		c.api.do("GET", "/v1/jobs/main/checkpoints", nil, &h)
		for _, cp := range h.Checkpoints {
			if cp.Attempt >= attempt && cp.Status == "completed" {
				return true
			}
		}
		return false
	})
}

// checkHistory: ids fall from the newest to the oldest without repeats, none is still
// pending, and several attempts have completed checkpoints.
func (c *cluster) checkHistory() {
	c.t.Helper()
	var h checkpoints
	c.api.must(http.StatusOK, "GET", "/v1/jobs/main/checkpoints?limit=500", nil, &h)
	var attempts []int64
	for i, cp := range h.Checkpoints {
		if i > 0 && cp.ID >= h.Checkpoints[i-1].ID {
			c.t.Errorf("checkpoint %d follows %d", cp.ID, h.Checkpoints[i-1].ID)
		}
		if cp.Status == "pending" {
			c.t.Errorf("checkpoint %d is pending for ever", cp.ID)
		}
		if cp.Status == "completed" && !slices.Contains(attempts, cp.Attempt) {
			attempts = append(attempts, cp.Attempt)
		}
	}
	var life struct {
		Events []struct {
			At      time.Time `json:"at"`
			Message string    `json:"message"`
		} `json:"events"`
	}
	c.api.must(http.StatusOK, "GET", "/v1/jobs/main/events?limit=1000", nil, &life)
	for _, e := range life.Events {
		c.t.Logf("%s  %s", e.At.Format("15:04:05.000"), e.Message)
	}
	if len(attempts) < 3 {
		c.t.Errorf("completed checkpoints of attempts %v: want three attempts at least", attempts)
	}
}
