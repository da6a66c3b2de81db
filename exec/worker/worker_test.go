package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/deploy"
	"weir/exec/op"
	"weir/exec/sink"
	"weir/exec/source"
	"weir/exec/worker"
	"weir/planner"
	"weir/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const jobID = weir.JobID("job_000102030405060708090a0b0c0d0e0f")

// control is a control in memory: the test is the server.
type control struct {
	handler chan func(ctx context.Context, kind string, body []byte) ([]byte, error)
	moved   chan struct{} // room for one: something below changed
	askedC  chan deploy.Returned
	overC   chan deploy.Over

	mu struct {
		sync.Mutex
		reports []deploy.Report
		beat    deploy.Heartbeat
		answer  error // to reports
		away    bool  // NATS is
		refuse  func(deploy.Report) error
	}
}

func (c *control) note(f func()) {
	c.mu.Lock()
	f()
	c.mu.Unlock()
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// Serve hands the handler to the test.
func (c *control) Serve(ctx context.Context, _ weir.WorkerID, _ string, h func(context.Context, string, []byte) ([]byte, error)) error {
	c.handler <- h
	<-ctx.Done()
	return nil
}

// Request finds no other worker.
func (c *control) Request(context.Context, weir.WorkerID, string, []byte) ([]byte, error) {
	return nil, weir.ErrNotFound
}

// Connected is as the test says.
func (c *control) Connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.mu.away
}

// Publish keeps the report.
func (c *control) Publish(ctx context.Context, kind string, body []byte) ([]byte, error) {
	if kind == deploy.KindReturned {
		return c.returned(ctx, body)
	}
	var r deploy.Report
	if err := deploy.Decode(body, &r); err != nil {
		return nil, err
	}
	var err error
	c.note(func() {
		if c.mu.refuse != nil {
			if err = c.mu.refuse(r); err != nil {
				return
			}
		}
		c.mu.reports, err = append(c.mu.reports, r), c.mu.answer
	})
	return nil, err
}

// Heartbeat keeps the last one.
func (c *control) Heartbeat(_ context.Context, body []byte) error {
	var b deploy.Heartbeat
	if err := deploy.Decode(body, &b); err != nil {
		return err
	}
	c.note(func() { c.mu.beat = b })
	return nil
}

// A network is that of one worker without NATS: senders that are nowhere are here.
type network struct{ *transport.Network }

// MaxPayload is that of a NATS server that takes little.
func (n network) MaxPayload() int { return 100 << 10 }

// Inbound opens a receiving end.
func (n network) Inbound(j weir.JobID, a weir.AttemptID, ch weir.ChannelID, _ bool, wakeC chan<- struct{}) (weir.Inbound, error) {
	return n.Network.Inbound(j, a, ch, true, wakeC)
}

type harness struct {
	t      *testing.T
	c      *control
	handle func(ctx context.Context, kind string, body []byte) ([]byte, error)
	dir    string
	stop   func()
	blobs  blob.Store
}

func start(t *testing.T) *harness {
	t.Helper()
	return startWith(t, source.Open)
}

// startWith starts a worker whose sources are opened by open.
func startWith(t *testing.T, open func(context.Context, exec.Setup) (exec.Source, error)) *harness {
	t.Helper()
	return startAt(t, open, nil, nil)
}

// startAt starts a worker whose watch looks at now on each of ticks.
func startAt(t *testing.T, open func(context.Context, exec.Setup) (exec.Source, error), now func() time.Time, ticks <-chan time.Time) *harness {
	t.Helper()
	return startAs(t, func(c *worker.Config) { c.Openers.Source, c.Now, c.Ticks = open, now, ticks })
}

// startAs lets the test change what the worker works with.
func startAs(t *testing.T, change func(*worker.Config)) *harness {
	t.Helper()
	h := &harness{t: t, dir: t.TempDir(), blobs: blob.NewMemory()}
	h.c = &control{handler: make(chan func(context.Context, string, []byte) ([]byte, error), 1), moved: make(chan struct{}, 1), askedC: make(chan deploy.Returned), overC: make(chan deploy.Over)}
	net, err := transport.OpenNetwork(context.Background(), transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := worker.Config{
		ID: "w1", Slots: 4, Control: h.c, Network: network{net}, Blobs: h.blobs,
		Openers: exec.Openers{Source: source.Open, Operator: op.Open, Sink: sink.Open}, Files: []string{h.dir}, Logger: slog.New(slog.DiscardHandler), Patience: time.Second,
	}
	change(&cfg)
	w := worker.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { net.Run(ctx) })
	wg.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	h.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(h.stop)
	h.handle = <-h.c.handler
	return h
}

func (h *harness) ask(kind string, m deploy.Message) ([]byte, error) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	reply, err := h.handle(ctx, kind, deploy.Encode(m))
	if reply == nil {
		h.t.Fatal(err)
	}
	return deploy.DecodeReply(reply)
}

func (h *harness) must(kind string, m deploy.Message) []byte {
	h.t.Helper()
	body, err := h.ask(kind, m)
	if err != nil {
		h.t.Fatalf("%s: %v", kind, err)
	}
	return body
}

// until waits until done says true of what the worker said.
func (h *harness) until(what string, done func(reports []deploy.Report, beat deploy.Heartbeat) bool) {
	h.t.Helper()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for {
		h.c.mu.Lock()
		ok := done(h.c.mu.reports, h.c.mu.beat)
		h.c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-h.c.moved:
		case <-limit.C:
			h.t.Fatalf("never: %s", what)
		}
	}
}

// deployment plans a script for this worker alone.
func (h *harness) deployment(attempt int64, sql string) deploy.Deploy {
	h.t.Helper()
	r, err := planner.Plan(sql, nil, planner.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	m := deploy.Deploy{
		Header: deploy.Head(), Job: jobID, Attempt: weir.AttemptID{Number: attempt, Tag: "x"}, Graph: *r.Graph, Parallelism: 2,
		MaxParallelism: r.Graph.MaxParallelism,
	}
	for _, t := range checkpoint.TasksOf(m.Graph, m.Parallelism) {
		m.Tasks = append(m.Tasks, deploy.Task{Task: t.ID})
		m.Placement = append(m.Placement, deploy.Placed{Task: t.ID, Worker: "w1"})
	}
	return m
}

const endless = `CREATE TABLE r (k INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000');
SELECT k % 10 AS k, COUNT(*) AS n FROM r GROUP BY k % 10`

const five = `CREATE TABLE r (k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '5', 'fields.k.kind' = 'sequence', 'fields.k.start' = '1', 'fields.k.end' = '5');
SELECT k, COUNT(*) AS n FROM r GROUP BY k`

func statuses(reports []deploy.Report, attempt int64) (running, failed int) {
	for _, r := range reports {
		if r.Status != nil && r.Attempt.Number == attempt {
			if r.Status.Failure == nil {
				running++
			} else {
				failed++
			}
		}
	}
	return running, failed
}

func TestAttemptsSupersede(t *testing.T) {
	t.Parallel()
	h := start(t)
	first := h.deployment(1, endless)
	h.must(deploy.KindDeploy, first)
	h.must(deploy.KindDeploy, first) // W2
	h.until("every task runs, once", func(r []deploy.Report, b deploy.Heartbeat) bool {
		n, _ := statuses(r, 1)
		return n == len(first.Tasks) && len(b.Attempts) == 1 && b.UsedSlots == 2
	})
	h.must(deploy.KindDeploy, h.deployment(2, endless))
	h.until("the second attempt runs alone", func(r []deploy.Report, b deploy.Heartbeat) bool {
		n, _ := statuses(r, 2)
		return n == len(first.Tasks) && len(b.Attempts) == 1 && b.Attempts[0].Attempt.Number == 2
	})
	if _, err := h.ask(deploy.KindDeploy, first); !errors.Is(err, weir.ErrStale) { // W1
		t.Errorf("an older attempt: %v", err)
	}
	trigger := deploy.Trigger{Header: deploy.Head(), Trigger: checkpoint.Trigger{Job: jobID, Attempt: first.Attempt, Checkpoint: 1}, Tasks: []weir.TaskID{{}}}
	if _, err := h.ask(deploy.KindTrigger, trigger); !errors.Is(err, weir.ErrStale) {
		t.Errorf("a trigger of an older attempt: %v", err)
	}
	stop := deploy.Stop{Header: deploy.Head(), Job: jobID, Attempt: weir.AttemptID{Number: 3, Tag: "x"}}
	h.must(deploy.KindStop, stop)
	h.must(deploy.KindStop, stop)
	h.until("nothing runs", func(_ []deploy.Report, b deploy.Heartbeat) bool { return len(b.Attempts) == 0 })
	if _, err := h.ask(deploy.KindDeploy, h.deployment(2, endless)); !errors.Is(err, weir.ErrStale) {
		t.Errorf("a stopped attempt: %v", err)
	}
	if _, err := h.ask("dance", stop); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("an unknown command: %v", err)
	}
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if _, failed := statuses(h.c.mu.reports, 1); failed > 0 {
		t.Errorf("%d failures of an attempt that was superseded", failed)
	}
}

// checkpoint takes one at the end of the sources, tasks 0 and 1 of chain 0, and returns
// what the aggregate stored, whose groups are the result.
func (h *harness) checkpoint(m deploy.Deploy) []checkpoint.Handle {
	h.t.Helper()
	sources := []weir.TaskID{{Chain: 0, Subtask: 0}, {Chain: 0, Subtask: 1}}
	h.until("the sources end", func(r []deploy.Report, _ deploy.Heartbeat) bool {
		n := 0
		for _, x := range r {
			if x.Ended != nil && x.Ended.Chain == 0 {
				n++
			}
		}
		return n == 2
	})
	h.must(deploy.KindTrigger, deploy.Trigger{Header: deploy.Head(), Tasks: sources, Trigger: checkpoint.Trigger{Job: jobID, Attempt: m.Attempt, Checkpoint: 1, At: time.Now()}})
	var handles []checkpoint.Handle
	h.until("every task acknowledges", func(r []deploy.Report, _ deploy.Heartbeat) bool {
		n := 0
		handles = nil
		for _, x := range r {
			if x.Ack == nil {
				continue
			}
			n++
			for _, o := range x.Ack.Snapshot.Operators {
				if strings.HasPrefix(string(o.Operator), "global_aggregate") {
					handles = append(handles, o.Keyed...)
				}
			}
		}
		return n == len(m.Tasks)
	})
	return handles
}

func TestCheckpointCloseRead(t *testing.T) {
	t.Parallel()
	h := start(t)
	m := h.deployment(1, five)
	h.must(deploy.KindDeploy, m)
	handles := h.checkpoint(m)
	last := len(m.Graph.Chains) - 1
	parts := slices.DeleteFunc(slices.Clone(m.Placement), func(p deploy.Placed) bool { return p.Task.Chain != last })
	var live []string
	for after := []byte(nil); ; {
		var page deploy.Page
		body := h.must(deploy.KindResults, deploy.Results{
			Header: deploy.Head(), Job: jobID, Attempt: m.Attempt, Parts: parts,
			Query: deploy.Query{Limit: 2, OrderBy: []deploy.Order{{Column: "k", Desc: true}}, After: after},
		})
		if err := deploy.Decode(body, &page); err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Rows {
			live = append(live, string(r))
		}
		if page.Total != 5 {
			t.Errorf("total %d", page.Total)
		}
		if after = page.Next; after == nil {
			break
		}
	}
	want := `{"k":5,"n":1} {"k":4,"n":1} {"k":3,"n":1} {"k":2,"n":1} {"k":1,"n":1}`
	if got := strings.Join(live, " "); got != want {
		t.Errorf("pages of the live result: %s", got)
	}
	var page deploy.Page
	body := h.must(deploy.KindResults, deploy.Results{
		Header: deploy.Head(), Job: jobID, Query: deploy.Query{Limit: 10, OrderBy: []deploy.Order{{Column: "k", Desc: true}}},
		Snapshot: snapshotOf(m, handles),
	})
	if err := deploy.Decode(body, &page); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s", page.Rows); got != "["+want+"]" {
		t.Errorf("result in the snapshot: %s", got)
	}
	h.must(deploy.KindClose, deploy.Close{Header: deploy.Head(), Job: jobID, Attempt: m.Attempt})
	h.must(deploy.KindStop, deploy.Stop{Header: deploy.Head(), Job: jobID, Attempt: m.Attempt})
	h.until("nothing runs", func(_ []deploy.Report, b deploy.Heartbeat) bool { return len(b.Attempts) == 0 })
}

func TestFailures(t *testing.T) {
	t.Parallel()
	h := start(t)
	file := filepath.Join(h.dir, "r.json")
	if err := os.WriteFile(file, []byte("{\"k\":1}\n{\"k\":[]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := `CREATE TABLE r (k INT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '` + file + `'); SELECT k FROM r`
	h.must(deploy.KindDeploy, h.deployment(1, bad))
	h.until("the bad row is reported, and the attempt ends", func(r []deploy.Report, b deploy.Heartbeat) bool {
		_, failed := statuses(r, 1)
		return failed == 1 && len(b.Attempts) == 0
	})
	missing := h.deployment(2, strings.ReplaceAll(bad, "r.json", "gone.json"))
	h.must(deploy.KindDeploy, missing)
	lost := h.deployment(3, five)
	lost.Restored, lost.Tasks = 7, lost.Tasks[2:] // without the sources, whose splits would be missing
	lost.Tasks[0].Keyed = []deploy.Keyed{{
		Operator: lost.Graph.Chains[1].Operators[0].ID,
		Handles:  []checkpoint.Handle{{Object: "job/gone", Size: 1, KeyGroups: weir.KeyGroupRange{End: 1024}}},
	}}
	h.until("the missing file is reported", func(r []deploy.Report, _ deploy.Heartbeat) bool { _, failed := statuses(r, 2); return failed == 1 })
	h.must(deploy.KindDeploy, lost)
	h.until("the missing object is reported", func(r []deploy.Report, _ deploy.Heartbeat) bool { _, failed := statuses(r, 3); return failed == 1 })
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for _, r := range h.c.mu.reports {
		if r.Status == nil || r.Status.Failure == nil {
			continue
		}
		want := []string{"r.json:2", "gone.json", "job/gone"}[r.Attempt.Number-1]
		if r.Status.Restart || !strings.Contains(r.Status.Failure.Message, want) {
			t.Errorf("attempt %v: restart %v, %+v; want %q", r.Attempt, r.Status.Restart, r.Status.Failure, want)
		}
	}
}

// A server that knows better ends the attempt by its answer to a report.
func TestStaleAnswer(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.c.note(func() { h.c.mu.answer = weir.ErrStale })
	h.must(deploy.KindDeploy, h.deployment(1, endless))
	h.until("the attempt has ended", func(r []deploy.Report, b deploy.Heartbeat) bool { return len(r) == 1 && len(b.Attempts) == 0 })
}

func TestLeaves(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.must(deploy.KindDeploy, h.deployment(1, endless))
	h.stop()
	h.until("it says goodbye", func(_ []deploy.Report, b deploy.Heartbeat) bool { return b.Leaving })
	if _, err := h.ask(deploy.KindDeploy, h.deployment(2, endless)); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("a deployment to a worker that ends: %v", err)
	}
}

// A hung is a source that hangs, as a dead file server makes it.
type hung struct {
	exec.Source
	inC   chan<- struct{}
	goneC <-chan struct{}
}

func (h hung) Next(context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	h.inC <- struct{}{}
	<-h.goneC
	return nil, exec.Done, time.Time{}, nil
}

// A task that hangs does not keep the commands of other jobs from being heard: who
// waits for its end is told in time that it has not come.
func TestHangingTask(t *testing.T) {
	t.Parallel()
	inC, goneC := make(chan struct{}, 2), make(chan struct{})
	h := startWith(t, func(ctx context.Context, s exec.Setup) (exec.Source, error) {
		src, err := source.Open(ctx, s)
		return hung{src, inC, goneC}, err
	})
	defer close(goneC)
	m := h.deployment(1, endless)
	h.must(deploy.KindDeploy, m)
	for range m.Parallelism {
		<-inC
	}
	const reading = "its trigger has come, and waits until the source returns from reading"
	for _, want := range []string{"no trigger has come", reading} {
		if got := h.progress(m, 1)[0]; got.Stage != checkpoint.StageWaiting || got.Doing != want {
			t.Errorf("the source is at %+v, want %s", got, want)
		}
		h.must(deploy.KindTrigger, deploy.Trigger{Header: deploy.Head(), Tasks: []weir.TaskID{{}}, Trigger: checkpoint.Trigger{Job: jobID, Attempt: m.Attempt, Checkpoint: 1}})
	}
	for kind, command := range map[string]deploy.Message{
		deploy.KindStop:  deploy.Stop{Header: deploy.Head(), Job: jobID, Attempt: m.Attempt},
		deploy.KindClose: deploy.Close{Header: deploy.Head(), Job: jobID, Attempt: m.Attempt},
	} {
		if _, err := h.ask(kind, command); !errors.Is(err, weir.ErrConflict) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// snapshotOf is the state of a result whose rows are groups, in a checkpoint with those handles.
func snapshotOf(m deploy.Deploy, handles []checkpoint.Handle) *deploy.Snapshot {
	chain := len(m.Graph.Chains) - 1
	ops := m.Graph.Chains[chain].Operators
	i := len(ops) - 1
	return &deploy.Snapshot{Operator: ops[i], Groups: &ops[i-1], Input: m.Graph.Input(chain), MaxParallelism: m.MaxParallelism, Handles: handles}
}
