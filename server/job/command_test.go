package job_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/deploy"
	"weir/server/job"
	"weir/server/job/jobtest"
	"weir/transport"
)

// TestDeployAgain is R03: workers take their tasks, the replies do not come, so that they
// are asked again; meanwhile their server is killed and another one takes the job over.
// Each subtask lives once, and no row counts twice.
func TestDeployAgain(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s1 := c.Server("s1")
	c.Worker("w1", 2)
	c.Worker("w2", 2)
	c.Heard(s1, 2)
	var lost atomic.Int64
	againC := make(chan struct{})
	lose := func(kind string) bool {
		if kind != deploy.KindDeploy {
			return false
		}
		n := lost.Add(1)
		if n == 4 { // each worker was asked twice, or one of them often
			close(againC)
		}
		return n <= 4
	}
	c.LoseReply.Store(&lose)
	j := submit(t, c, s1, "counts", counts)
	graph := c.Spec("counts", counts, 4).Graph
	want := len(checkpoint.TasksOf(graph, 4))
	alive := func(s *job.Service) {
		t.Helper()
		c.Until("each subtask lives once", func(ctx context.Context) bool {
			workers, err := s.Workers(ctx)
			n, free := 0, 0
			for _, w := range workers {
				n, free = n+w.Tasks, free+w.FreeSlots
			}
			return err == nil && len(workers) == 2 && n == want && free == 0
		})
	}
	<-againC
	alive(s1)
	if got, err := s1.Get(context.Background(), "counts"); err != nil || got.Attempt.Number != 1 {
		t.Errorf("attempt %v, %v: repetitions of a deployment are no attempts", got.Attempt, err)
	}
	c.Kill("s1")
	s2 := c.Server("s2")
	c.Until("the job runs again", func(ctx context.Context) bool {
		got, err := s2.Get(ctx, "counts")
		return err == nil && got.Status == weir.StatusRunning && got.Attempt.Number > 1
	})
	alive(s2)
	if got := finished(t, c, s2, "counts"); got.ID != j.ID {
		t.Errorf("job %s, was %s", got.ID, j.ID)
	}
}

// messages counts the objects of control messages.
type messages struct {
	blob.Store
	puts, left atomic.Int64
}

// Put counts.
func (m *messages) Put(ctx context.Context, key string, r io.Reader) error {
	if _, ok := weir.IsControlKey(key); ok {
		m.puts.Add(1)
		m.left.Add(1)
	}
	return m.Store.Put(ctx, key, r)
}

// Delete counts.
func (m *messages) Delete(ctx context.Context, key string) error {
	if _, ok := weir.IsControlKey(key); ok {
		m.left.Add(-1)
	}
	return m.Store.Delete(ctx, key)
}

// TestLargeMessages: where NATS takes little, deployments and pages of results go by
// storage, which holds none of them afterwards.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	c := jobtest.NewOn(t, transport.ServerOptions{MaxPayload: 16 << 10})
	m := &messages{Store: c.Blobs}
	c.Blobs = m
	s := c.Server("s1")
	c.Worker("w1", 4)
	c.Heard(s, 1)
	var none []string // of the rows; as many as make a large plan
	for i := range 600 {
		none = append(none, fmt.Sprint(200000+i))
	}
	submit(t, c, s, "large", `CREATE TABLE numbers (k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '1500',
  'fields.k.kind' = 'sequence', 'fields.k.start' = '0', 'fields.k.end' = '1499');
SELECT k AS key, COUNT(*) AS n FROM numbers WHERE k NOT IN (`+strings.Join(none, ", ")+`) GROUP BY k`)
	if j := c.Await(s, "large", weir.StatusFinished, weir.StatusFailed); j.Status != weir.StatusFinished {
		t.Fatalf("%s: %+v", j.Status, j.Failure)
	}
	deployed := m.puts.Load()
	page, err := s.Results(t.Context(), "large", job.ResultQuery{OrderBy: "key", Limit: 10000})
	if err != nil || len(page.Rows) != 1500 || string(page.Rows[1499]) != `{"key":1499,"n":1}` {
		t.Errorf("%d rows, %v", len(page.Rows), err)
	}
	if all := m.puts.Load(); deployed == 0 || all == deployed {
		t.Errorf("%d messages went by storage, %d with the results", deployed, all)
	}
	c.Until("nothing is left of them", func(context.Context) bool { return m.left.Load() == 0 })
}

// TestSweepMessages: what a process that was killed has left of its messages is found an
// hour later, and goes with a repair; what may still be read is nobody's business.
func TestSweepMessages(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	old, young := weir.NewControlKey("default", time.Now().Add(-61*time.Minute)), weir.NewControlKey("default", time.Now().Add(-59*time.Minute))
	for _, key := range []string{old, young, "control/notes"} {
		put(t, c, key, []byte("{}"))
	}
	short := func(key string) string { return key[strings.Index(key, "/")+1:] }
	found := []string{"foreign notes", "orphan " + short(old)}
	sorted := func(req job.StorageRequest) []string { list := findings(t, s, req); slices.Sort(list); return list }
	same(t, "check", sorted(job.StorageRequest{}), found...)
	same(t, "repair", sorted(job.StorageRequest{Repair: true}), found[0], found[1]+": deleted")
	same(t, "afterwards", sorted(job.StorageRequest{}), found[0])
	if got := read(t, c, young); !bytes.Equal(got, []byte("{}")) {
		t.Errorf("what may still be read is %s", got)
	}
}

// TestThousandTasks: the heartbeat of a worker with very many tasks does not vanish.
func TestThousandTasks(t *testing.T) {
	t.Parallel()
	c := jobtest.NewOn(t, transport.ServerOptions{MaxPayload: 16 << 10})
	s := c.Server("s1")
	beat := deploy.Heartbeat{Header: deploy.Head(), Worker: "w1", Incarnation: weir.NewIncarnation(), Slots: 500, UsedSlots: 500}
	running := deploy.Running{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1)}
	for i := range 1000 {
		running.Tasks = append(running.Tasks, deploy.TaskStats{Task: weir.TaskID{Chain: i % 2, Subtask: i / 2}, RowsIn: int64(i) * 1e9, BytesIn: int64(i) * 1e10, Age: int64(i) * 1e6, Waited: 123456, Operators: make([]deploy.OperatorStats, 3)})
	}
	beat.Attempts = []deploy.Running{running}
	ctl := c.Control("w1")
	c.Until("all tasks are known", func(ctx context.Context) bool {
		if err := ctl.Heartbeat(ctx, deploy.Encode(beat)); err != nil {
			t.Fatal(err)
		}
		workers, err := s.Workers(ctx)
		return err == nil && len(workers) == 1 && workers[0].Tasks == 1000
	})
}
