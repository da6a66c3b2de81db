//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/metastore/postgrestest"
	"weir/transport/transporttest"
)

// A worker that is stopped for two seconds goes on as if nothing had been. One that is
// stopped for longer than it is waited for is replaced; when it wakes up it changes
// nothing, neither the counts nor the attempt that runs.
func TestWorkerSleeps(t *testing.T) {
	t.Parallel()
	o := startOutage(t, nil, "sqlite", 7*time.Second, "w3")
	o.through("w1 sleeps", 2*time.Second, func() { o.signal("w1", syscall.SIGSTOP) }, func() { o.signal("w1", syscall.SIGCONT) })
	attempt := o.job().Attempt
	o.signal("w1", syscall.SIGSTOP)
	slept := time.Now()
	next := o.awaitNext(attempt, 20*time.Second)
	pass(time.Until(slept.Add(6 * time.Second)))
	o.signal("w1", syscall.SIGCONT)
	until(t, 20*time.Second, "w1 has dropped the attempt that is over", func() bool { return o.a.tasksOf("w1") == 0 })
	if j := o.finish(); j.Attempt != next.Attempt {
		t.Errorf("attempt %d has finished, want %d: a sleeper's return is nobody's concern", j.Attempt, next.Attempt)
	}
}

// R06: the NATS server is killed and started again in mid-stream, for as long as it
// takes; the job goes on by itself in the attempt that it was in, and counts exactly.
// Longer than a cut-off worker waits, 60 s, is not tried here.
func TestNATSKilled(t *testing.T) {
	t.Parallel()
	away := []time.Duration{time.Second}
	if long() {
		away = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, time.Second, 5 * time.Second}
	}
	work := 3 * time.Second
	for _, lasts := range away {
		work += lasts + time.Second
	}
	o := startOutage(t, nil, "sqlite", work)
	for _, lasts := range away {
		o.through("NATS is away", lasts, func() { o.processes["nats"].kill() }, o.startNATS)
	}
	o.finish()
}

// R12: a worker that is killed is followed at once by another one on the same folder,
// again and again, and once while the old one still holds on to it, stopped.
func TestReplacedAtOnce(t *testing.T) {
	t.Parallel()
	kills := 3
	if long() {
		kills = 20
	}
	o := startOutage(t, nil, "sqlite", time.Duration(kills+3)*time.Second)
	for range kills {
		attempt := o.job().Attempt
		o.processes["w1"].cmd.Process.Kill() // who follows does not wait for its end
		o.begin("w1", "")
		o.awaitNext(attempt, 20*time.Second)
		o.awaitFlow()
	}
	attempt := o.job().Attempt
	old := o.processes["w1"]
	o.signal("w1", syscall.SIGSTOP)
	o.begin("w1", "")
	next := o.awaitNext(attempt, 20*time.Second)
	o.awaitFlow()
	if err := old.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	o.awaitFlow()
	o.same(next.Attempt, "the one that was replaced wakes up")
	o.finish()
}

// R17: told to end under load, once or twice, worker and server end well and in time,
// and what follows them counts exactly.
func TestToldToEnd(t *testing.T) {
	t.Parallel()
	o := startOutage(t, nil, "sqlite", 7*time.Second)
	for _, names := range [][]string{{"w1"}, {"server"}, {"server", "w1", "w2"}} {
		attempt := o.job().Attempt
		began := time.Now()
		for _, name := range names {
			o.signal(name, syscall.SIGTERM)
		}
		if len(names) > 1 {
			for _, name := range names { // it may have ended
				o.processes[name].cmd.Process.Signal(syscall.SIGTERM)
			}
		}
		for _, name := range names {
			o.awaitEnd(name, 30*time.Second)
			o.begin(name, "")
		}
		t.Logf("%v ended within %d ms", names, time.Since(began).Milliseconds())
		until(t, 20*time.Second, "the server is ready", func() bool { return o.a.do("GET", "/readyz", nil, nil) == http.StatusOK })
		o.awaitNext(attempt, 20*time.Second)
		o.awaitFlow()
	}
	o.finish()
}

// awaitEnd waits until a process that was told to end has ended, and well.
func (o *outage) awaitEnd(name string, limit time.Duration) {
	o.t.Helper()
	p := o.processes[name]
	select {
	case <-p.done:
	case <-time.After(limit):
		o.t.Fatalf("%s was told to end and has not within %v", name, limit)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		o.t.Errorf("%s ended with %v, want 0", name, p.cmd.ProcessState)
	}
}

// R02: a worker that is dead and that nobody has reaped has still a process id, and no
// tasks. A task that panics is exec's to test.
func TestZombieOfAWorker(t *testing.T) {
	t.Parallel()
	o := startOutage(t, nil, "sqlite", 5*time.Second, "w3")
	attempt := o.job().Attempt
	o.processes["w1"].kill()
	attempt = o.awaitNext(attempt, 15*time.Second).Attempt
	cmd := o.command("w1", "")
	parent := bash(`setpriv --pdeathsig KILL -- "$@" & echo "pid $!"; exec sleep infinity`)
	parent.Args = append(append(parent.Args, "bash"), cmd.Args...)
	parent.Env = cmd.Env
	p := startCommand(t, "the parent of w1", o.dir, parent)
	pid := 0
	until(t, 20*time.Second, "w1 is back", func() bool {
		fmt.Sscanf(p.log.String(), "pid %d", &pid)
		return pid != 0 && o.a.tasksOf("w1") == 0
	})
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	for _, name := range []string{"w3", "w2"} { // the next attempt is w1's, too
		if o.a.tasksOf(name) > 0 {
			o.processes[name].kill()
			break
		}
	}
	attempt = o.awaitNext(attempt, 15*time.Second).Attempt
	if o.a.tasksOf("w1") == 0 {
		t.Fatal("w1 has no tasks: nothing is at stake when it dies")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, 10*time.Second, "w1 is a zombie", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") Z ")
	})
	o.begin("w4", "")
	o.awaitNext(attempt, 15*time.Second)
	o.finish()
}

// R05: the metastore says nothing for longer than the lease lasts, with its connections
// open. Each call ends with a problem, in time; the server is alive; and rows are read
// on. With the metastore's return the server keeps its jobs, since nobody else can have taken
// them: the attempt is the one it was, a checkpoint that could not be taken meanwhile has
// failed with a reason, and the next ones complete, without a restart of any process.
func TestMetastoreSaysNothing(t *testing.T) {
	t.Parallel()
	lasts := 11 * time.Second
	if long() {
		lasts = 60 * time.Second
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go relay(l, "unix", postgrestest.Socket())
	proxy := transporttest.NewProxy(t, l.Addr().String())
	o := startOutageWith(t, nil, setting{"postgres", "folder"}, func(d *doomed) {
		database, _, _ := strings.Cut(strings.TrimPrefix(d.metastore, "postgres://postgres@/"), "?")
		d.metastore = "postgres://postgres@" + strings.TrimPrefix(proxy.URL(), "nats://") + "/" + database + "?sslmode=disable"
	}, lasts+6*time.Second)
	attempt, running := o.job().Attempt, o.a.tasksOf("w1")
	proxy.Stall()
	began, atFirst := time.Now(), o.written()
	var calls sync.WaitGroup
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/jobs", ""},
		{"GET", "/v1/jobs/" + outageJob, ""},
		{"GET", "/v1/jobs/" + outageJob + "/checkpoints", ""},
		{"POST", "/v1/jobs", `{"name": "other", "sql": "CREATE TABLE g (i BIGINT) WITH ('connector' = 'datagen'); SELECT COUNT(*) AS n FROM g"}`},
		{"POST", "/v1/jobs/" + outageJob + "/checkpoints", `{}`},
		{"POST", "/v1/jobs/" + outageJob + "/savepoints", `{"name": "silent"}`},
		{"GET", "/readyz", ""},
	} {
		calls.Go(func() { o.refused(c.method, c.path, c.body) })
	}
	for time.Since(began) < lasts {
		asked := time.Now()
		if status := o.a.do("GET", "/healthz", nil, nil); status != http.StatusOK || time.Since(asked) > 5*time.Second {
			t.Errorf("/healthz: %d after %v", status, time.Since(asked))
		}
		if n := o.a.tasksOf("w1"); n != running {
			t.Errorf("%d tasks of the job run on, want %d", n, running)
		}
		pass(500 * time.Millisecond)
	}
	calls.Wait()
	if n := o.written(); n <= atFirst {
		t.Errorf("%d bytes were written when the metastore had just gone, %d at the end of its silence: no row came", atFirst, n)
	}
	proxy.Heal()
	t.Logf("a checkpoint %d ms after, in attempt %d", o.awaitFlow().Milliseconds(), o.job().Attempt)
	o.same(attempt, "the metastore was away")
	o.heldUp()
	o.finish()
	o.same(attempt, "the metastore was away")
}

// written is how much lies in the folder of copies, published or not.
func (o *outage) written() (sum int64) {
	o.t.Helper()
	files, err := os.ReadDir(filepath.Join(o.dir, outageJob+"-copy"))
	if err != nil {
		o.t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil { // else it has its other name by now
			sum += info.Size()
		}
	}
	return sum
}

// heldUp fails the test unless the history shows the metastore's silence: a checkpoint that
// was due has failed for it, one that was under way has waited for its decision or its
// commit, or none was begun for a while, since the row of the next one was in doubt.
func (o *outage) heldUp() {
	o.t.Helper()
	var h struct {
		Checkpoints []struct {
			ID        int64     `json:"id"`
			Status    string    `json:"status"`
			Triggered time.Time `json:"triggered_at"`
			Duration  float64   `json:"duration_ms"`
			Commit    float64   `json:"commit_ms"`
			Failure   *struct{ Reason, Message string }
		} `json:"checkpoints"`
	}
	o.a.must(http.StatusOK, "GET", "/v1/jobs/"+outageJob+"/checkpoints?limit=500", nil, &h)
	for i, cp := range h.Checkpoints { // newest first
		switch {
		case cp.Status == "failed" && cp.Failure.Reason == "metastore":
			o.t.Logf("checkpoint %d failed: %s", cp.ID, cp.Failure.Message)
			return
		case cp.Status == "completed" && cp.Duration+cp.Commit > 5000:
			o.t.Logf("checkpoint %d took %.0f ms, and %.0f ms until it was committed", cp.ID, cp.Duration, cp.Commit)
			return
		case i > 0 && h.Checkpoints[i-1].Triggered.Sub(cp.Triggered) > 5*time.Second:
			o.t.Logf("checkpoint %d was triggered %v after the one before", h.Checkpoints[i-1].ID, h.Checkpoints[i-1].Triggered.Sub(cp.Triggered))
			return
		}
	}
	o.t.Errorf("nothing is said of the silence: %+v", h.Checkpoints)
}

// refused makes a call that cannot be answered now: within 15 s it is, with 503 and a
// problem.
func (o *outage) refused(method, path, body string) {
	client := http.Client{Timeout: 20 * time.Second}
	req, err := http.NewRequest(method, o.a.base+path, strings.NewReader(body))
	if err != nil {
		o.t.Error(err)
		return
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		o.t.Errorf("%s %s: %v", method, path, err)
		return
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	took := time.Since(began)
	var p struct {
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}
	if jerr := json.Unmarshal(text, &p); err != nil || jerr != nil || res.StatusCode != http.StatusServiceUnavailable || p.Status != res.StatusCode || p.Detail == "" || took > 15*time.Second {
		o.t.Errorf("%s %s: %d after %v, want 503 within 15 s: %s", method, path, res.StatusCode, took, text)
		return
	}
	o.t.Logf("%s %s: %d after %d ms: %s", method, path, res.StatusCode, took.Milliseconds(), p.Detail)
}

// R07: a worker that gets little of its processor reads slowly what another one sends it
// quickly, in all three times what a NATS client keeps by default. The quick one is held
// back, and nothing is lost.
func TestSlowReader(t *testing.T) {
	if !long() {
		return
	}
	t.Parallel()
	rows := 800_000
	o := startOutage(t, nil, "sqlite", time.Second)
	o.finish()
	sql := fmt.Sprintf(`CREATE TABLE g (i BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'fields.i.kind' = 'sequence', 'fields.i.start' = '0');
		CREATE TABLE p (k BIGINT, n BIGINT, different BIGINT) WITH ('connector' = 'filesystem', 'path' = 'wide-counts', 'format' = 'json');
		SET 'checkpoint.interval' = '1 s';
		INSERT INTO p SELECT i %% 1000, COUNT(*), COUNT(DISTINCT RPAD(CAST(i %% 7 AS STRING), 1024, 'x')) FROM g GROUP BY i %% 1000;`, rows)
	o.a.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{"name": "wide", "sql": sql, "parallelism": 2}, nil)
	began := time.Now()
	blocked, tick := 0.0, time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for ; !o.a.finished("wide") && time.Since(began) < 5*time.Minute; <-tick.C {
		blocked = max(blocked, o.backPressured("wide"))
		o.processes["w2"].cmd.Process.Signal(syscall.SIGCONT)
		pass(5 * time.Millisecond)
		o.processes["w2"].cmd.Process.Signal(syscall.SIGSTOP)
	}
	o.processes["w2"].cmd.Process.Signal(syscall.SIGCONT)
	j, _ := o.a.awaitJob("wide", time.Minute, "FINISHED", func(j job) bool { return j.Status == "FINISHED" })
	t.Logf("attempt %d, %v, blocked for %.2f of the time", j.Attempt, time.Since(began), blocked)
	if blocked < 0.5 {
		t.Errorf("the most blocked task was blocked for %.2f of the time by what is shown: the quick one was not held back", blocked)
	}
	counts := o.read(t, "wide-counts")
	for _, row := range counts {
		if row.N != int64(rows/1000) {
			t.Fatalf("key %d was counted as %d, want %d", row.K, row.N, rows/1000)
		}
	}
	if len(counts) != 1000 || j.Attempt != 1 {
		t.Errorf("%d keys in attempt %d, want 1000 in the first", len(counts), j.Attempt)
	}
}

// backPressured is the largest share of time that a task of the job waits for its
// readers, as the plan shows it.
func (o *outage) backPressured(name string) (most float64) {
	o.t.Helper()
	var raw json.RawMessage
	o.a.do("GET", "/v1/jobs/"+name+"/plan", nil, &raw)
	for _, m := range regexp.MustCompile(`"back_pressured": ?([0-9.]+)`).FindAllSubmatch(raw, -1) {
		share, _ := strconv.ParseFloat(string(m[1]), 64)
		most = max(most, share)
	}
	return most
}
