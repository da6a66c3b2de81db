//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is weir as make build leaves it.
func binary(t *testing.T) string { return built(t, "weir", "make build") }

// built is a program that make has left in bin.
func built(t *testing.T, name, how string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run %s first", err, how)
	}
	return path
}

// A process is one weir process; the test's end kills it.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	log  *syncBuffer
	done chan struct{}
}

type syncBuffer struct {
	mu struct {
		sync.Mutex
		b bytes.Buffer
	}
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.b.String()
}

// start runs weir with args in dir ("": the test's own).
func start(t *testing.T, name, dir string, args ...string) *process {
	t.Helper()
	return startCommand(t, name, dir, exec.Command(binary(t), args...))
}

// startCommand runs a command of ours. It dies with the test binary, however that ends.
func startCommand(t *testing.T, name, dir string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: cmd, log: &syncBuffer{}, done: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("--- log of %s\n%s", name, tail(p.log.String(), 6000))
		}
	})
	return p
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// kill is kill -9, and waits until the process is gone.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// weir runs one command to its end.
func weir(t *testing.T, dir, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("weir %v hangs\n%s", args, tail(errs.String(), 4000))
	}
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// An api calls a server over HTTP.
type api struct {
	t    *testing.T
	base string
}

// do makes a call and decodes the answer into out; it returns the status, or 0 when
// nobody answers.
func (a api) do(method, path string, in, out any) int {
	a.t.Helper()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			a.t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, a.base+path, body)
	if err != nil {
		a.t.Fatal(err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			a.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, b)
		}
	}
	return res.StatusCode
}

// must is do that expects a status.
func (a api) must(status int, method, path string, in, out any) {
	a.t.Helper()
	var raw json.RawMessage
	if got := a.do(method, path, in, &raw); got != status {
		a.t.Fatalf("%s %s: status %d, want %d: %s", method, path, got, status, raw)
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			a.t.Fatalf("%s %s: %v: %s", method, path, err, raw)
		}
	}
}

type job struct {
	ID           string `json:"id"`
	Status       string `json:"status"`
	Desired      string `json:"desired"`
	Attempt      int64  `json:"attempt"`
	RowsIn       int64  `json:"rows_in"`
	RowsRejected int64  `json:"rows_rejected"`
	Base         string `json:"base"`
	Failure      *struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"failure"`
}

type checkpoints struct {
	Checkpoints []struct {
		ID      int64  `json:"id"`
		Attempt int64  `json:"attempt"`
		Type    string `json:"type"`
		Status  string `json:"status"`
	} `json:"checkpoints"`
}

// until polls ok every 20 ms and fails the test after limit.
func until(t *testing.T, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		if ok() {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// awaitJob polls the job until ok.
func (a api) awaitJob(name string, limit time.Duration, what string, ok func(job) bool) (job, time.Duration) {
	a.t.Helper()
	var j job
	took := until(a.t, limit, what, func() bool {
		var now job
		if a.do("GET", "/v1/jobs/"+name, nil, &now) != http.StatusOK {
			return false
		}
		if j = now; j.Status == "FAILED" && !ok(j) {
			a.t.Fatalf("%s: the job failed: %+v", what, j.Failure)
		}
		return ok(j)
	})
	return j, took
}

// counts reads the result of a GROUP BY behavior.
func (a api) counts(name string) map[string]int64 {
	a.t.Helper()
	var page struct {
		Rows []struct {
			Behavior string `json:"behavior"`
			N        int64  `json:"n"`
		} `json:"rows"`
	}
	a.must(http.StatusOK, "GET", "/v1/jobs/"+name+"/results", nil, &page)
	out := map[string]int64{}
	for _, r := range page.Rows {
		out[r.Behavior] = r.N
	}
	return out
}

// writeBehavior writes rows of user behaviour as JSON lines and returns the counts.
func writeBehavior(t *testing.T, path string, rows int) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	var b bytes.Buffer
	for i := range rows {
		h := uint64(i+1) * 0x9e3779b97f4a7c15
		behavior := []string{"pv", "pv", "pv", "pv", "pv", "cart", "fav", "buy"}[h>>61]
		counts[behavior]++
		fmt.Fprintf(&b, `{"user_id":%d,"item_id":%d,"category_id":%d,"behavior":"%s","ts":%d}`+"\n", h>>44, h>>40&0xfffff, h>>50, behavior, 1511658000+i)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return counts
}
