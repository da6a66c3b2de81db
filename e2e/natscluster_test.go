//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/transport"
	"weir/transport/transporttest"
)

const natsPassword = "S3cret-of-nats"

// TestNATSCluster: three NATS servers that want TLS and a password, a server and two
// workers that are each connected to another one. Those of the workers and of the server
// die in mid-stream, one after another, and come back: the job does not notice.
func TestNATSCluster(t *testing.T) {
	t.Parallel()
	ca := transporttest.NewAuthority(t)
	nats := transporttest.StartSecured(t, 3, transporttest.Secured{
		TLS: ca.Server(t, "127.0.0.1", time.Now().Add(time.Hour)), User: "weir", Password: natsPassword,
	})
	d := &doomed{t: t, dir: t.TempDir(), listen: map[string]string{"server": freeAddress(t)}, rows: 12_000, perSecond: 3000, keys: 1000}
	metastore, storage := "sqlite:"+filepath.Join(t.TempDir(), "weir.db"), "file://"+filepath.Join(t.TempDir(), "objects")
	if out, errs, code := weir(t, "", "", "migrate", "--metastore", metastore); code != 0 {
		t.Fatalf("weir migrate: %s%s", out, errs)
	}
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(natsPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	common := []string{"--nats", nats.URLs(), "--nats-ca", ca.File, "--nats-user", "weir", "--nats-password-file", password, "--storage", storage, "--files", d.dir}
	processes := []*process{start(t, "server", d.dir, append([]string{"server", "--metastore", metastore, "--listen", d.listen["server"]}, common...)...)}
	for _, id := range []string{"w1", "w2"} {
		processes = append(processes, start(t, id, d.dir, append([]string{"worker", "--id", id, "--slots", "1", "--data", filepath.Join(t.TempDir(), id)}, common...)...))
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]int{"weir-worker-w1 control": 0, "weir-worker-w1 data": 0, "weir-worker-w2 control": 1, "weir-worker-w2 data": 1, "weir-server@" + host + " control": 2} {
		transporttest.Until(t, name+" is connected", func() bool { return nats.Holder(t, name) >= 0 })
		nats.Move(t, name, at)
	}
	a := d.api(t, "server")
	until(t, 20*time.Second, "the server is ready", func() bool { return a.do("GET", "/readyz", nil, nil) == http.StatusOK })

	d.submit(a, "far", "300 ms")
	defer d.explain(a, "far")
	for i := range 3 {
		a.awaitJob("far", 30*time.Second, "rows are read", func(j job) bool { return j.RowsIn >= int64((i+1)*d.rows/4) })
		nats.Stop(i)
		t.Logf("NATS server %d is down", i)
		if i == 0 { // the others come back at once
			a.awaitJob("far", 30*time.Second, "rows are read without it", func(j job) bool { return j.RowsIn >= int64(d.rows*3/8) })
		}
		nats.Start(t, i)
	}
	a.awaitJob("far", time.Minute, "FINISHED", func(j job) bool { return j.Status == "FINISHED" })
	var j job
	a.must(http.StatusOK, "GET", "/v1/jobs/far", nil, &j)
	if j.Attempt != 1 {
		t.Errorf("the job is at attempt %d: somebody was taken for dead, or lost something", j.Attempt)
	}
	d.checkOutput(t, "far")
	for _, p := range processes {
		if log := p.log.String(); strings.Contains(log, natsPassword) {
			t.Errorf("the password is in the log of %s\n%s", p.name, log)
		} else if strings.Contains(log, "nats connection is back") {
			t.Logf("%s was connected anew %d times", p.name, strings.Count(log, "nats connection is back"))
		}
	}
}

// TestUpKeepsItsNATS: every user of the machine reaches the NATS server of weir up, and
// gets in only with the token, which no list of processes shows.
func TestUpKeepsItsNATS(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), freeAddress(t)
	up := start(t, "up", dir, "up", "--data", filepath.Join(dir, "data"), "--listen", address, "--workers", "1")
	a := api{t, "http://" + address}
	until(t, 20*time.Second, "weir up is ready", func() bool { return a.do("GET", "/readyz", nil, nil) == http.StatusOK })
	var args, env []string
	until(t, 20*time.Second, "a worker runs", func() bool {
		args, env = child(t, up.cmd.Process.Pid)
		return len(args) > 1 && args[1] == "worker"
	})
	at := slices.Index(args, "--nats")
	if at < 0 {
		t.Fatalf("the worker was started with %q", args)
	}
	url, token := args[at+1], ""
	for _, v := range env {
		if of, ok := strings.CutPrefix(v, "WEIR_NATS_TOKEN="); ok {
			token = of
		}
	}
	if token == "" {
		t.Fatal("the worker was given no token")
	}
	if _, err := transport.OpenControl(context.Background(), transport.Options{URL: url, Name: "stranger"}); err == nil || !strings.Contains(err.Error(), "wants some") {
		t.Errorf("somebody without the token: %v", err)
	}
	c, err := transport.OpenControl(context.Background(), transport.Options{URL: url, Name: "test", Security: transport.Security{Token: token}})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	shown := false // what every user sees of every process
	for _, stat := range processes(t) {
		line := proc(stat, "cmdline")
		if strings.Contains(line, token) {
			t.Errorf("the token is in the arguments of a process: %q", line)
		}
		shown = shown || strings.Contains(line, strings.Join(args[1:4], "\x00"))
	}
	if !shown {
		t.Errorf("no process is shown with the worker's arguments %q", args)
	}
	if strings.Contains(up.log.String(), token) {
		t.Error("the token is in the log")
	}
}

// child gives the arguments and the environment of a process that parent started.
func child(t *testing.T, parent int) (args, env []string) {
	t.Helper()
	for _, path := range processes(t) {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if fields := strings.Fields(rest); len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		return strings.Split(proc(path, "cmdline"), "\x00"), strings.Split(proc(path, "environ"), "\x00")
	}
	return nil, nil
}

// processes lists the files /proc/PID/stat of all processes.
func processes(t *testing.T) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// proc reads another file of the process with that stat.
func proc(stat, name string) string {
	b, err := os.ReadFile(filepath.Join(filepath.Dir(stat), name))
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(b)
}
