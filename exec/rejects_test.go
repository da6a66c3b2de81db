package exec_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/exectest"
	"weir/exec/source"
	"weir/planner"
)

// A poller lets sources be asked so many times.
type poller struct{ left atomic.Int64 }

func (p *poller) open(ctx context.Context, s exec.Setup) (exec.Source, error) {
	src, err := source.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	return &polled{src, p}, nil
}

type polled struct {
	exec.Source
	poller *poller
}

// Next implements exec.Source.
func (p *polled) Next(ctx context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	if p.poller.left.Add(-1) < 0 {
		return nil, exec.Wait, time.Now().Add(time.Millisecond), nil
	}
	return p.Source.Next(ctx)
}

// TestM02 takes a checkpoint wherever a source may stop, behind the line at fault too,
// kills the job and resumes it: the line is counted and kept once, with its bytes.
func TestM02(t *testing.T) {
	t.Parallel()
	dir, pad := t.TempDir(), strings.Repeat("x", 170<<10) // a batch has one row of that length
	body := fmt.Sprintf("{\"k\":\"a%[1]s\"}\n{\"k\":\"b%[1]s\"}\n{\"k\":\n{\"k\":\"a%[1]s\"}\n{\"k\":\"b%[1]s\"}\n", pad)
	path := filepath.Join(dir, "s.json")
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := planner.Plan("CREATE TABLE s (k STRING) WITH ('connector' = 'filesystem', 'path' = '"+path+"', 'format' = 'json'); SELECT k, COUNT(*) AS n FROM s GROUP BY k",
		nil, planner.Options{MaxParallelism: 8, OnRowError: "keep"})
	if err != nil {
		t.Fatal(err)
	}
	behind := false // a checkpoint lay right behind the line at fault
	for polls := int64(0); polls < 9; polls++ {
		var stop poller
		c := exectest.Config{Graph: p.Graph, Parallelism: 1, Blobs: blob.NewMemory(), Files: []string{dir}, Openers: exec.Openers{Source: stop.open}}
		j := exectest.Start(t, c)
		stop.left.Store(polls)
		waitFor(t, func() bool { return stop.left.Load() < 0 || j.Stats()[0].Ended })
		snapshot, err := j.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		counted, rejected := answers(t, j)
		behind = behind || counted == 2 && rejected == 1
		stop.left.Store(100) // rows that are lost with the job
		j.Kill()
		c.From, c.Parallelism, c.Encode, c.Attempt = snapshot, 3, true, 2
		j = exectest.Start(t, c)
		if _, err := j.Finish(); err != nil {
			t.Fatal(err)
		}
		if counted, rejected = answers(t, j); counted != 4 || rejected != 1 {
			t.Errorf("resumed after %d polls: %d rows, %d rejected", polls, counted, rejected)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !behind {
		t.Error("no checkpoint lay right behind the line at fault")
	}
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(exectest.Timeout); !done(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("not in time")
		}
	}
}

// answers adds a job's counts up, and its rejected rows, which must be the line at fault.
func answers(t *testing.T, j *exectest.Job) (counted, rejected int) {
	t.Helper()
	page, err := j.Read(exec.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Rows {
		n := 0
		if _, err := fmt.Sscanf(string(r.JSON[strings.LastIndex(string(r.JSON), ":")+1:]), "%d}", &n); err != nil {
			t.Fatal(err)
		}
		counted += n
	}
	if page, err = j.Rejects(); err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Rows {
		if !strings.Contains(string(r.JSON), `"line":3,`) || !strings.HasSuffix(string(r.JSON), `"raw":"{\"k\":"}`) {
			t.Errorf("rejected: %s", r.JSON)
		}
	}
	if page.Total != int64(len(page.Rows)) {
		t.Errorf("%d rejected rows are counted, %d kept", page.Total, len(page.Rows))
	}
	return counted, len(page.Rows)
}

// TestGroupTooLarge: a group whose value no frame can carry fails the job, whatever is to be
// done about row errors: with it the other rows of the group would go uncounted.
func TestGroupTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "s.csv")
	if err := os.WriteFile(path, []byte("1,a\n1,"+strings.Repeat("x", 300_000)+"\n1,b\n2,c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"fail", "skip", "keep"} {
		p, err := planner.Plan("CREATE TABLE s (k BIGINT, v STRING) WITH ('connector' = 'filesystem', 'path' = '"+path+"', 'format' = 'csv'); SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s GROUP BY k",
			nil, planner.Options{MaxParallelism: 8, OnRowError: policy})
		if err != nil {
			t.Fatal(err)
		}
		j := exectest.Start(t, exectest.Config{Graph: p.Graph, Parallelism: 1, Blobs: blob.NewMemory(), Files: []string{dir}, Openers: exec.Openers{Source: source.Open}})
		_, err = j.Finish()
		f, restart := j.Failure()
		if err == nil || f == nil || f.Reason != exec.ReasonRow || restart {
			t.Fatalf("%s: %v, %+v restart=%v", policy, err, f, restart)
		}
		if n := strings.Count(f.Message, "local_aggregate"); n != 1 {
			t.Errorf("%s: the operator is named %d times: %s", policy, n, f.Message)
		}
	}
}
