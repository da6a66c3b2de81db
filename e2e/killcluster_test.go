//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/checkpoint/blob/s3test"
	"weir/metastore/postgrestest"
	"weir/transport"
)

// A setting is what a cluster of the kill tests decides and stores with.
type setting struct{ metastore, storage string }

func (s setting) String() string { return s.metastore + " and " + s.storage }

// A doomed is a cluster whose processes die at named points: a server, and two workers
// with one slot each, so that a job of parallelism 2 has a subtask of every operator on
// both. Each job has so many keys, and so much for each, if nobody says otherwise, that their
// state does not fit into an ack.
type doomed struct {
	t                             *testing.T
	dir, nats, metastore, storage string
	listen                        map[string]string // a server's address
	hosts                         *hosts            // each process is on the one of its name; nil: all on this machine
	disk                          *disk             // workers write to; nil: to that of this machine
	processes                     map[string]*process
	rows, perSecond, keys         int // of each job
}

func startDoomed(t *testing.T, s setting, gateway *s3test.Server) *doomed {
	t.Helper()
	ns, err := transport.StartServer(context.Background(), transport.ServerOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ns.Stop)
	return newDoomed(t, s, gateway, ns.URL())
}

// newDoomed is a cluster of which nothing runs yet, on a NATS of the caller's.
func newDoomed(t *testing.T, s setting, gateway *s3test.Server, nats string) *doomed {
	t.Helper()
	d := &doomed{t: t, dir: t.TempDir(), nats: nats, listen: map[string]string{}, processes: map[string]*process{}, rows: 3000, perSecond: 3000, keys: 1000}
	d.metastore = "sqlite:" + filepath.Join(d.dir, "weir.db")
	if s.metastore == "postgres" {
		d.metastore = postgrestest.Database(t)
	}
	d.storage = "file://" + filepath.Join(d.dir, "objects")
	if s.storage == "s3" {
		d.storage = gateway.URL("weir/"+filepath.Base(filepath.Dir(d.dir)), gateway.Credentials(t))
	}
	if out, errs, code := weir(t, "", "", "migrate", "--metastore", d.metastore); code != 0 {
		t.Fatalf("weir migrate: %s%s", out, errs)
	}
	return d
}

// begin starts, or starts again, the process of that name with a plan for its death; ""
// for none.
func (d *doomed) begin(name, plan string) {
	d.t.Helper()
	d.processes[name] = startCommand(d.t, name, d.dir, d.command(name, plan))
}

// command is what begin starts.
func (d *doomed) command(name, plan string) *exec.Cmd {
	d.t.Helper()
	var args []string
	if strings.HasPrefix(name, "server") {
		args = []string{"server", "--metastore", d.metastore, "--listen", d.address(name)}
	} else {
		args = []string{"worker", "--id", name, "--slots", "1", "--data", filepath.Join(d.dir, name)}
	}
	cmd := exec.Command(built(d.t, "weir-killpoints", "make killpoints"), append(args, "--nats", d.nats, "--storage", d.storage, "--files", d.dir)...)
	cmd.Env = append(os.Environ(), "WEIR_KILL="+plan)
	switch {
	case d.hosts != nil:
		return within(d.hosts.inner[name], cmd)
	case d.disk != nil:
		return d.disk.on(cmd, d.dir)
	}
	return cmd
}

// address is where a server listens; the test finds it at listen.
func (d *doomed) address(server string) string {
	const inside = "127.0.0.1:7420"
	switch {
	case d.listen[server] != "":
	case d.hosts != nil:
		d.listen[server] = d.hosts.outside(server, inside)
	default:
		d.listen[server] = freeAddress(d.t)
	}
	if d.hosts != nil {
		return inside
	}
	return d.listen[server]
}

func (d *doomed) api(t *testing.T, server string) api { return api{t, "http://" + d.listen[server]} }

// struck reports whether the process has died, or sleeps, of its plan.
func (d *doomed) struck(name string) bool {
	log := d.processes[name].log.String()
	return strings.Contains(log, "killpoint: killed at") || strings.Contains(log, "killpoint: stopped at")
}

// awaitDeath waits until the process has died of its plan.
func (d *doomed) awaitDeath(t *testing.T, name string) {
	t.Helper()
	p := d.processes[name]
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s has not come to its point within 20 s", name)
	}
	if !d.struck(name) {
		t.Fatalf("%s has ended otherwise: %s", name, tail(p.log.String(), 2000))
	}
}

// awaitStop waits until the process has stopped by its plan.
func (d *doomed) awaitStop(t *testing.T, name string) {
	t.Helper()
	until(t, 20*time.Second, name+" stops at its point", func() bool { return d.struck(name) })
}

// finished reports whether the job has ended well, as far as its server says so.
func (a api) finished(name string) bool {
	client := http.Client{Timeout: time.Second} // the server may sleep
	res, err := client.Get(a.base + "/v1/jobs/" + name)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	var j struct {
		Status any `json:"status"` // a word; the code where there is no job
	}
	return json.NewDecoder(res.Body).Decode(&j) == nil && j.Status == "FINISHED"
}

// submit starts a job that copies numbered rows into one folder and counts them by key
// into another.
func (d *doomed) submit(a api, name, interval string) {
	a.t.Helper()
	d.submitAt(a, name, interval, d.perSecond)
}

func (d *doomed) submitAt(a api, name, interval string, perSecond int) {
	a.t.Helper()
	sql := fmt.Sprintf(`CREATE TABLE g (i BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'rows-per-second' = '%d',
			'fields.i.kind' = 'sequence', 'fields.i.start' = '0');
		CREATE TABLE o (i BIGINT) WITH ('connector' = 'filesystem', 'path' = '%s-copy', 'format' = 'json');
		CREATE TABLE p (k BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '%s-counts', 'format' = 'json');
		SET 'checkpoint.interval' = '%s';
		SET 'checkpoint.num_retained' = '2';
		SET 'restart.max_backoff' = '200 ms';
		EXECUTE STATEMENT SET BEGIN
			INSERT INTO o SELECT i FROM g;
			INSERT INTO p SELECT i %% %d, COUNT(*) FROM g GROUP BY i %% %d HAVING MAX(CONCAT('%s', CAST(i AS STRING))) > '';
		END;`, d.rows, perSecond, name, name, interval, d.keys, d.keys, strings.Repeat("ballast ", 5))
	a.must(http.StatusCreated, "POST", "/v1/jobs", map[string]any{"name": name, "sql": sql, "parallelism": 2}, nil)
}

// checkOutput compares what a reader of the job's folders sees with what there has to be.
func (d *doomed) checkOutput(t *testing.T, name string) {
	t.Helper()
	copies := map[int64]int64{}
	for _, row := range d.read(t, name+"-copy") {
		copies[row.I]++
	}
	wrong := 0
	for i := range int64(d.rows) {
		if copies[i] != 1 {
			if wrong++; wrong <= 5 {
				t.Errorf("row %d was copied %d times", i, copies[i])
			}
		}
	}
	if wrong > 5 || len(copies) != d.rows && wrong == 0 {
		t.Errorf("%d rows are wrong, %d different ones were copied, want %d", wrong, len(copies), d.rows)
	}
	counts := map[int64][]int64{}
	for _, row := range d.read(t, name+"-counts") {
		counts[row.K] = append(counts[row.K], row.N)
	}
	wrong = 0
	for k := range int64(d.keys) {
		want := (int64(d.rows) - k + int64(d.keys) - 1) / int64(d.keys)
		if !slices.Equal(counts[k], []int64{want}) {
			if wrong++; wrong <= 5 {
				t.Errorf("key %d was counted as %v, want %d once", k, counts[k], want)
			}
		}
	}
	if wrong > 5 {
		t.Errorf("%d keys are counted wrongly", wrong)
	}
}

type killRow struct {
	I int64 `json:"i"`
	K int64 `json:"k"`
	N int64 `json:"n"`
}

// read reads the files of a folder whose names show.
func (d *doomed) read(t *testing.T, folder string) (rows []killRow) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(d.dir, folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasPrefix(filepath.Base(path), ".") {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var row killRow
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				t.Fatalf("%s: %v: %s", path, err, lines.Bytes())
			}
			rows = append(rows, row)
		}
		if err := f.Close(); err != nil || lines.Err() != nil {
			t.Fatal(err, lines.Err())
		}
	}
	return rows
}

type killHistory struct {
	Checkpoints []struct {
		ID          int64  `json:"id"`
		Status      string `json:"status"`
		Discarded   bool   `json:"discarded"`
		CommitsOpen bool   `json:"commits_open"`
		Manifest    string `json:"manifest"`
	} `json:"checkpoints"`
}

// checkHistory: ids fall from the newest to the oldest without repeats (C24), no row is
// pending or has commits open once the job has ended, and some checkpoint was completed.
func (d *doomed) checkHistory(a api, name string) (h killHistory) {
	a.t.Helper()
	a.must(http.StatusOK, "GET", "/v1/jobs/"+name+"/checkpoints?limit=500", nil, &h)
	completed := 0
	for i, cp := range h.Checkpoints {
		if cp.Status == "completed" {
			completed++
		}
		if i > 0 && cp.ID >= h.Checkpoints[i-1].ID {
			a.t.Errorf("checkpoint %d follows %d", cp.ID, h.Checkpoints[i-1].ID)
		}
		if cp.Status == "pending" || cp.CommitsOpen {
			a.t.Errorf("checkpoint %d is %s for ever, commits open: %v", cp.ID, cp.Status, cp.CommitsOpen)
		}
	}
	if completed == 0 {
		a.t.Errorf("none of %d checkpoints was completed", len(h.Checkpoints))
	}
	return h
}

// checkObjects: everything that is listed as completed can be restored (C19), and once
// what was given up has been collected nothing lies there that no kept checkpoint names. What an
// earlier attempt merged, and no checkpoint of it completed with, goes a minute after that attempt.
func (d *doomed) checkObjects(a api, name string, within time.Duration) {
	a.t.Helper()
	store, err := blob.Open(d.storage)
	if err != nil {
		a.t.Fatal(err)
	}
	var j job
	a.must(http.StatusOK, "GET", "/v1/jobs/"+name, nil, &j)
	ctx := context.Background()
	limit := time.Now().Add(within)
	for ; ; <-time.After(50 * time.Millisecond) {
		named, objects := map[string]bool{}, 0
		var wrong []string
		for _, cp := range d.checkHistory(a, name).Checkpoints {
			if cp.Status != "completed" || cp.Discarded {
				continue
			}
			m, err := checkpoint.LoadManifest(ctx, store, cp.Manifest)
			if err == nil {
				err = m.CheckObjects(ctx, store)
			}
			if err != nil { // it may have been given up meanwhile: then the next look does not list it
				wrong = append(wrong, fmt.Sprintf("checkpoint %d is completed and cannot be restored: %v", cp.ID, err))
				continue
			}
			named[cp.Manifest] = true
			for _, key := range m.Objects() {
				named[key] = true
				objects++
			}
		}
		if objects == 0 && d.keys >= 1000 { // else their state fits into the acks
			wrong = append(wrong, "no checkpoint that is kept names an object")
		}
		err := store.List(ctx, j.ID+"/", func(key string, _ int64) bool {
			swept := strings.Contains(key, "/full-") && !strings.HasPrefix(key, fmt.Sprintf("%s/%d-", j.ID, j.Attempt))
			if !named[key] && (!swept || within > time.Minute) {
				wrong = append(wrong, "left behind: "+key)
			}
			return true
		})
		if err != nil {
			a.t.Fatal(err)
		}
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(limit) {
			a.t.Error(strings.Join(wrong, "\n\t"))
			return
		}
	}
}

// explain writes the job's life into the log of a test that failed.
func (d *doomed) explain(a api, name string) {
	if !a.t.Failed() && os.Getenv("WEIR_ROUNDS") == "" {
		return
	}
	client := http.Client{Timeout: 2 * time.Second} // the server may sleep
	for _, what := range []string{"", "/events?limit=1000", "/checkpoints?limit=500"} {
		res, err := client.Get(a.base + "/v1/jobs/" + name + what)
		if err != nil {
			a.t.Log(err)
			continue
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		a.t.Logf("%s%s: %s", name, what, text)
	}
}
