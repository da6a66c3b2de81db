//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/metastore/postgrestest"
	"weir/transport"
)

// A usage is what a process has.
type usage struct {
	RSS, FDs, Threads int
	CPU               time.Duration
}

// usage reads what the process has now.
func (p *process) usage() (u usage) {
	p.t.Helper()
	dir := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "VmRSS":
			u.RSS = n << 10
		case "Threads":
			u.Threads = n
		}
	}
	files, err := os.ReadDir(dir + "fd")
	if err != nil {
		p.t.Fatal(err)
	}
	u.FDs = len(files)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		p.t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, i := range []int{11, 12} { // user and system, in hundredths of a second
		n, _ := strconv.Atoi(fields[i])
		u.CPU += time.Duration(n) * 10 * time.Millisecond
	}
	return u
}

// connections is how many connections to a database there are.
func connections(t *testing.T, url string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), "SELECT COUNT(*) - 1 FROM pg_stat_activity WHERE datname = current_database()").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// P02: jobs come and go on a server, workers, NATS and PostgreSQL as an operator runs them: that
// count, that planning refuses, that are canceled while they start, that are stopped with a
// savepoint. What the processes have in the end is what they had after the first ones.
func TestP02ComeAndGo(t *testing.T) {
	t.Parallel()
	cycles, settled := 24, 12
	if long() {
		cycles, settled = 200, 20
	}
	c := startCluster(t)
	processes := map[string]*process{"server": c.server, "w1": c.workers["w1"], "w2": c.workers["w2"]}
	look := func() (all map[string]usage, conns int) {
		all = map[string]usage{}
		for name, p := range processes {
			all[name] = p.usage()
		}
		return all, connections(t, c.metastore)
	}
	var first map[string]usage
	var conns int
	for i := range cycles {
		c.comeAndGo(i % 4)
		if i == settled-1 {
			c.awaitEmpty()
			first, conns = look()
		}
	}
	c.awaitEmpty()
	until(t, time.Minute, "the processes have what they had", func() bool {
		now, n := look()
		for name, u := range now {
			if was := first[name]; u.FDs > was.FDs+2 || u.Threads > was.Threads+6 || u.RSS > was.RSS+was.RSS/20+(24<<20) {
				return false
			}
		}
		return n <= conns+1
	})
	last, n := look()
	t.Logf("%d connections, then %d", conns, n)
	for name := range first {
		t.Logf("%s: %+v, then %+v", name, first[name], last[name])
	}
}

// awaitEmpty waits until storage holds nothing of any job, and no worker runs a task.
func (c *cluster) awaitEmpty() {
	c.t.Helper()
	until(c.t, 30*time.Second, "nothing of the jobs is left", func() bool {
		left, err := filepath.Glob(filepath.Join(c.dir, "objects", "job_*"))
		return err == nil && len(left) == 0 && c.api.tasksOf("w1") == 0 && c.api.tasksOf("w2") == 0
	})
}

func (c *cluster) comeAndGo(kind int) {
	c.t.Helper()
	rows := ", 'number-of-rows' = '100'"
	if kind >= 2 { // one that ends by itself may have ended before it is canceled
		rows = ", 'rows-per-second' = '100'"
	}
	sql := fmt.Sprintf(`CREATE TABLE g (k BIGINT) WITH ('connector' = 'datagen', 'fields.k.kind' = 'sequence', 'fields.k.start' = '0'%s);
		SELECT k %% 7 AS behavior, COUNT(*) AS n FROM g GROUP BY k %% 7`, rows)
	if kind == 1 {
		c.api.must(http.StatusUnprocessableEntity, "POST", "/v1/jobs", map[string]any{"name": "brief", "sql": sql + " HAVING nothing"}, nil)
		return
	}
	c.api.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{"name": "brief", "sql": sql, "parallelism": 2, "checkpoint": map[string]any{"interval": "50ms"}}, nil)
	end := "FINISHED"
	switch kind {
	case 2:
		end = "CANCELED"
		c.api.must(http.StatusAccepted, "POST", "/v1/jobs/brief/cancel", map[string]any{}, nil)
	case 3:
		end = "STOPPED"
		c.api.awaitJob("brief", 30*time.Second, "RUNNING", func(j job) bool { return j.Status == "RUNNING" })
		c.api.must(http.StatusAccepted, "POST", "/v1/jobs/brief/stop", map[string]any{"name": "brief"}, nil)
	}
	c.api.awaitJob("brief", 30*time.Second, end, func(j job) bool { return j.Status == end })
	until(c.t, 30*time.Second, "the job is deleted", func() bool {
		return c.api.do("DELETE", "/v1/jobs/brief", nil, nil) == http.StatusNoContent
	})
	if kind == 3 {
		if status := c.api.do("DELETE", "/v1/savepoints/brief", nil, nil); status != http.StatusNoContent {
			c.t.Fatalf("the savepoint is not deleted: %d", status)
		}
	}
}

// P06: nine of ten rows have one key, on four subtasks. The counts are exact, also of its
// hundred thousand distinct values; and the other keys keep up with it: what of them has been
// counted is never further behind what was read than some seconds.
func TestP06HotKey(t *testing.T) {
	t.Parallel()
	rows, behind := int64(200_000), 10*time.Second
	if long() {
		rows = 1_000_000
	}
	dir, address := t.TempDir(), freeAddress(t)
	start(t, "up", dir, "up", "--data", filepath.Join(dir, "data"), "--listen", address, "--workers", "2", "--slots", "2")
	a := api{t, "http://" + address}
	until(t, 20*time.Second, "weir up is ready", func() bool { return a.do("GET", "/readyz", nil, nil) == http.StatusOK && len(a.tasks()) == 2 })
	a.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{
		"name": "hot", "parallelism": 4, "checkpoint": map[string]any{"interval": "500ms"},
		"sql": fmt.Sprintf(`CREATE TABLE g (i BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'fields.i.kind' = 'sequence', 'fields.i.start' = '0');
			CREATE VIEW v AS SELECT CASE WHEN i %% 10 < 9 THEN 'hot' ELSE CONCAT('k', CAST((i / 10) %% 10000 AS STRING)) END AS k, (i / 10 * 9 + i %% 10) %% 100000 AS v FROM g;
			SELECT k, COUNT(*) AS n, COUNT(DISTINCT v) AS d FROM v GROUP BY k`, rows),
	}, nil)
	type point struct {
		at         time.Time
		read, seen int64 // rows read, and rows of other keys that are counted
	}
	var line []point
	finished := func() bool {
		var j job
		a.do("GET", "/v1/jobs/hot", nil, &j)
		if j.Status == "FAILED" {
			t.Fatalf("%+v", j.Failure)
		}
		hot, all := a.hot(1)
		if hot != nil {
			line = append(line, point{time.Now(), j.RowsIn, all - 1})
		}
		return j.Status == "FINISHED"
	}
	until(t, 3*time.Minute, "the job has finished", finished)
	hot, keys := a.hot(10_000)
	if len(hot) == 0 || hot["hot"] != [2]int64{rows * 9 / 10, min(rows*9/10, 100_000)} || keys != 1+min(rows/10, 10_000) {
		t.Errorf("%d keys, hot %v", keys, hot["hot"])
	}
	for k, n := range hot {
		if each := max(rows/100_000, 1); k != "hot" && n != [2]int64{each, each} {
			t.Fatalf("%s was counted as %v, want %d", k, n, each)
		}
	}
	for i, p := range line { // what was read by then is counted within the bound
		for _, q := range line[i:] {
			if q.seen >= min(p.read/10, 10_000) {
				break
			}
			if late := q.at.Sub(p.at); late > behind {
				t.Fatalf("%v after %d rows were read, %d other keys are counted", late, p.read, q.seen)
			}
		}
	}
}

// hot reads the counts of so many keys, and how many keys there are; nil: there is no result yet.
func (a api) hot(limit int) (counts map[string][2]int64, total int64) {
	a.t.Helper()
	var page struct {
		Rows []struct {
			K    string `json:"k"`
			N, D int64
		} `json:"rows"`
		Total int64  `json:"total"`
		Next  string `json:"next"`
	}
	if a.do("GET", fmt.Sprintf("/v1/jobs/hot/results?limit=%d", limit), nil, &page) != http.StatusOK {
		return nil, 0
	}
	counts = map[string][2]int64{}
	for {
		for _, r := range page.Rows {
			counts[r.K] = [2]int64{r.N, r.D}
		}
		if page.Next == "" || limit == 1 {
			return counts, page.Total
		}
		cursor := page.Next
		page.Rows, page.Next = nil, ""
		a.must(http.StatusOK, "GET", fmt.Sprintf("/v1/jobs/hot/results?limit=%d&cursor=%s", limit, cursor), nil, &page)
	}
}

// P09: many idle jobs on one worker: each counts its one row; they cost little, also when they
// are many; the last one starts as the first; after kill -9 of everything all are RUNNING
// again, and their checkpoints are not begun all at once. One more than --max-jobs is refused.
func TestP09IdleJobs(t *testing.T) {
	t.Parallel()
	n, interval := 30, 4*time.Second
	if long() {
		n, interval = 200, 10*time.Second
	}
	dir, address, db := t.TempDir(), freeAddress(t), postgrestest.Database(t)
	if out, errs, code := weir(t, "", "", "migrate", "--metastore", db); code != 0 {
		t.Fatalf("weir migrate: %s%s", out, errs)
	}
	ns, err := transport.StartServer(context.Background(), transport.ServerOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ns.Stop)
	storage := "file://" + filepath.Join(dir, "objects")
	worker := start(t, "worker", dir, "worker", "--id", "w1", "--nats", ns.URL(), "--storage", storage, "--slots", "1000", "--data", filepath.Join(dir, "w1"))
	a := api{t, "http://" + address}
	serve := func() *process {
		p := start(t, "server", dir, "server", "--metastore", db, "--nats", ns.URL(), "--storage", storage, "--listen", address, "--max-jobs", strconv.Itoa(n))
		until(t, 20*time.Second, "the server is ready", func() bool { return a.do("GET", "/readyz", nil, nil) == http.StatusOK && a.tasksOf("w1") >= 0 })
		return p
	}
	server := serve()
	empty := [2]usage{server.usage(), worker.usage()}
	post := func(i int) (status int) {
		return a.do("POST", "/v1/jobs", map[string]any{
			"name": fmt.Sprint("idle-", i), "parallelism": 1, "checkpoint": map[string]any{"interval": interval.String()},
			"sql": "CREATE TABLE g (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '0.00001', 'fields.k.kind' = 'sequence', 'fields.k.start' = '7'); SELECT k AS behavior, COUNT(*) AS n FROM g GROUP BY k",
		}, nil)
	}
	for i := range n {
		if status := post(i); status != http.StatusCreated {
			t.Fatalf("job %d: %d", i, status)
		}
		if i == 0 || i == n-1 {
			began := time.Now()
			a.awaitJob(fmt.Sprint("idle-", i), 20*time.Second, "RUNNING", func(j job) bool { return j.Status == "RUNNING" && j.RowsIn == 1 })
			t.Logf("job %d counts after %d ms", i, time.Since(began).Milliseconds())
		}
	}
	if status := post(n); status != http.StatusTooManyRequests {
		t.Errorf("one more than --max-jobs: %d", status)
	}
	running := func() bool {
		var list struct {
			Jobs []job `json:"jobs"`
		}
		a.do("GET", "/v1/jobs?limit=500&status=RUNNING", nil, &list)
		return len(list.Jobs) == n
	}
	until(t, 30*time.Second, "all are RUNNING", running)
	before, began := [2]usage{server.usage(), worker.usage()}, time.Now()
	pass(interval + time.Second) // each takes a checkpoint meanwhile
	after := [2]usage{server.usage(), worker.usage()}
	cpu := (after[0].CPU - before[0].CPU + after[1].CPU - before[1].CPU).Seconds() / time.Since(began).Seconds()
	rss := (after[0].RSS - empty[0].RSS + after[1].RSS - empty[1].RSS) / n
	t.Logf("%d idle jobs: %.3f of a core, %d KiB each; %d connections to PostgreSQL; server %+v, worker %+v", n, cpu, rss>>10, connections(t, db), after[0], after[1])
	if cpu > 1 || rss > 5<<20 || connections(t, db) > 40 || after[1].FDs > empty[1].FDs+10 || after[0].FDs > empty[0].FDs+40 {
		t.Errorf("idle jobs cost too much: %.3f of a core, %d bytes each", cpu, rss)
	}
	server.kill()
	worker.kill()
	killed := time.Now()
	start(t, "worker", dir, "worker", "--id", "w1", "--nats", ns.URL(), "--storage", storage, "--slots", "1000", "--data", filepath.Join(dir, "w1"))
	serve()
	until(t, time.Minute, "all are RUNNING again", func() bool { return running() && a.tasksOf("w1") > 0 })
	t.Logf("all are RUNNING again %d ms after kill -9 of everything", time.Since(killed).Milliseconds())
	var triggered []time.Time
	for i := range n {
		name := fmt.Sprint("idle-", i)
		// A table that is paced begins anew with a row at once: it is the next one.
		if got := a.ones(name); got != "7 " && got != "7 8 " {
			t.Errorf("%s counted %s", name, got)
		}
		triggered = append(triggered, a.nextTrigger(name, killed))
	}
	slices.SortFunc(triggered, time.Time.Compare)
	if span := triggered[len(triggered)-1].Sub(triggered[0]); span < interval/5 {
		t.Errorf("the first checkpoints of %d jobs were begun within %v", n, span)
	}
}

// ones gives the keys of a result that were counted once, and others with their counts.
func (a api) ones(name string) (text string) {
	a.t.Helper()
	var page struct {
		Rows []struct {
			Behavior, N int64
		} `json:"rows"`
	}
	until(a.t, 20*time.Second, "results of "+name, func() bool {
		return a.do("GET", "/v1/jobs/"+name+"/results?order_by=behavior", nil, &page) == http.StatusOK
	})
	for _, r := range page.Rows {
		text += fmt.Sprint(r.Behavior, " ")
		if r.N != 1 {
			text += fmt.Sprintf("(%d times) ", r.N)
		}
	}
	return text
}

// nextTrigger is when a job's first checkpoint after a time was begun.
func (a api) nextTrigger(name string, after time.Time) (at time.Time) {
	a.t.Helper()
	until(a.t, 30*time.Second, "a checkpoint of "+name, func() bool {
		var h struct {
			Checkpoints []struct {
				Triggered time.Time `json:"triggered_at"`
			} `json:"checkpoints"`
		}
		a.do("GET", "/v1/jobs/"+name+"/checkpoints", nil, &h)
		for _, cp := range h.Checkpoints { // newest first
			if cp.Triggered.After(after) {
				at = cp.Triggered
			}
		}
		return !at.IsZero()
	})
	return at
}

// A job goes from one subtask to three and to two, stopped with a savepoint and started from it,
// then canceled and started from its newest checkpoint, which lies over deltas: its 300,000 keys are
// exact throughout. The processes are two workers and a server; one worker is killed in between.
func TestRescaleKeys(t *testing.T) {
	t.Parallel()
	keys, rows := int64(30_000), int64(400_000)
	if long() {
		keys, rows = 300_000, 4_000_000
	}
	c := startCluster(t)
	c.api.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{
		"name": "wide", "parallelism": 1, "checkpoint": map[string]any{"interval": "200ms"},
		"sql": fmt.Sprintf(`CREATE TABLE g (i BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'rows-per-second' = '%d', 'fields.i.kind' = 'sequence', 'fields.i.start' = '0');
			SELECT i %% %d AS k, COUNT(*) AS n, SUM(i) AS total FROM g GROUP BY i %% %[3]d`, rows, rows/12, keys),
	}, nil)
	for i, step := range []struct {
		parallelism int
		savepoint   bool
	}{{3, true}, {2, true}, {3, false}, {1, false}, {2, false}} {
		c.api.awaitJob("wide", time.Minute, "rows, and checkpoints over each other", func(j job) bool {
			at, _ := strconv.Atoi(strings.TrimPrefix(j.Base, "checkpoint:"))
			return j.Status == "RUNNING" && j.RowsIn > 0 && at >= 4*(i+1)
		})
		from, path := "latest", "cancel"
		body := map[string]any{}
		if step.savepoint {
			from, path, body = "savepoint:step-"+fmt.Sprint(i), "stop", map[string]any{"name": "step-" + fmt.Sprint(i)}
		}
		c.api.must(http.StatusAccepted, "POST", "/v1/jobs/wide/"+path, body, nil)
		c.api.awaitJob("wide", time.Minute, "ended", func(j job) bool { return j.Status == "STOPPED" || j.Status == "CANCELED" })
		until(t, 20*time.Second, "the job is started at another parallelism", func() bool {
			return c.api.do("POST", "/v1/jobs/wide/start", map[string]any{"from": from, "parallelism": step.parallelism}, nil) == http.StatusAccepted
		})
		if i == 2 {
			c.workers["w1"].kill()
			c.startWorker("w1")
		}
	}
	c.api.awaitJob("wide", 3*time.Minute, "FINISHED", func(j job) bool { return j.Status == "FINISHED" })
	type page struct {
		Rows []struct{ K, N, Total int64 } `json:"rows"`
		Next string                        `json:"next"`
	}
	var seen, total int64
	for cursor := ""; ; {
		var p page
		c.api.must(http.StatusOK, "GET", "/v1/jobs/wide/results?limit=10000"+cursor, nil, &p)
		for _, r := range p.Rows {
			seen, total = seen+1, total+r.Total
			if most := (rows + keys - 1) / keys; r.N != most && !(r.N == most-1 && r.K >= rows%keys) {
				t.Fatalf("key %d was counted as %d", r.K, r.N)
			}
		}
		if p.Next == "" {
			break
		}
		cursor = "&cursor=" + p.Next
	}
	if seen != keys || total != rows*(rows-1)/2 {
		t.Errorf("%d keys, sum %d; want %d and %d", seen, total, keys, rows*(rows-1)/2)
	}
}
