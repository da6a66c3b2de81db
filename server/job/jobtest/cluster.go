// Package jobtest runs servers and workers in one process, for tests: a NATS server
// and a SQLite metastore of their own, a folder for objects, real tasks.
package jobtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir"
	"weir/checkpoint/blob"
	"weir/checkpoint/clocktest"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/op"
	"weir/exec/sink"
	"weir/exec/source"
	"weir/exec/worker"
	"weir/metastore"
	"weir/planner"
	"weir/server/job"
	"weir/transport"
)

// Timeout bounds every wait of this package.
const Timeout = 60 * time.Second

// A Cluster is servers, workers and what they stand on. Everything ends with the test.
type Cluster struct {
	tb    testing.TB
	Dir   string // of the test: files below it may be read and written
	Store *metastore.Store
	Blobs blob.Store
	url   string
	log   *slog.Logger
	nats  *transport.Server

	// KeepBytes is what each worker may keep of the state that it stores; 0: nothing.
	KeepBytes int64

	// Lose, if it says so, loses a command of a server on its way.
	Lose atomic.Pointer[func(kind string) bool]
	// LoseReply, if it says so, loses the reply to a command that was carried out.
	LoseReply atomic.Pointer[func(kind string) bool]

	// LoseLease, if it says so, fails what a server asks of its lease.
	LoseLease atomic.Pointer[func(server string) bool]
	// Metastore, if set, is called before most of what servers ask of the metastore that
	// decides something, and fails it.
	Metastore atomic.Pointer[func(ctx context.Context, server string) error]
	// Deciding, if set, is called before a checkpoint is decided.
	Deciding atomic.Pointer[func()]

	// Full, as long as it is set, leaves sinks no room to write.
	Full atomic.Bool

	// Held, as it is at first, keeps sources that have no more rows from ending, so that a job
	// whose rows a busy machine has read meanwhile still runs until the test is through with it,
	// which it is where it has Await see a job finish.
	Held atomic.Bool
	// Batches, if positive, is how many a source gives before it waits.
	Batches atomic.Int64
	// Given counts those that all sources have given.
	Given atomic.Int64

	// Panic, once, has the next source that is asked for rows panic.
	Panic atomic.Bool

	mu struct {
		sync.Mutex
		nodes  map[string]*node
		clocks map[string]*clocktest.Clock
	}
}

// A node is a server or worker: what ends it, and when it has ended.
type node struct {
	cancel  context.CancelFunc
	control *control
	doneC   chan struct{}
}

// A control is a transport.Control that can be cut off, as kill -9 does.
type control struct {
	*transport.Control
	dead      atomic.Bool
	lose      *atomic.Pointer[func(kind string) bool]
	loseReply *atomic.Pointer[func(kind string) bool]
}

// Command loses what the test wants lost.
func (c *control) Command(ctx context.Context, worker weir.WorkerID, key weir.CommandKey, body []byte) ([]byte, error) {
	if f := c.lose.Load(); f != nil && (*f)(key.Kind) {
		return nil, fmt.Errorf("%s to %s: lost", key.Kind, worker)
	}
	reply, err := c.Control.Command(ctx, worker, key, body)
	if f := c.loseReply.Load(); f != nil && err == nil && (*f)(key.Kind) {
		return nil, fmt.Errorf("%s to %s: %w", key.Kind, worker, context.DeadlineExceeded)
	}
	return reply, err
}

// Heartbeat says nothing once the node is dead.
func (c *control) Heartbeat(ctx context.Context, body []byte) error {
	if c.dead.Load() {
		return errors.New("dead")
	}
	return c.Control.Heartbeat(ctx, body)
}

// New starts NATS and the metastore; servers and workers are added.
func New(tb testing.TB) *Cluster {
	tb.Helper()
	return NewOn(tb, transport.ServerOptions{})
}

// NewOn is New with a NATS server of these options.
func NewOn(tb testing.TB, opts transport.ServerOptions) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb, Dir: tb.TempDir(), log: slog.New(slog.DiscardHandler)}
	if os.Getenv("WEIR_TEST_LOG") != "" {
		c.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	c.Held.Store(true)
	c.mu.nodes, c.mu.clocks = map[string]*node{}, map[string]*clocktest.Clock{}
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	var err error
	c.nats, err = transport.StartServer(ctx, opts)
	c.must(err)
	tb.Cleanup(func() { c.nats.Stop() })
	c.url = c.nats.URL()
	db := "sqlite:" + filepath.Join(c.Dir, "weir.db")
	patient := metastore.Options{ConnectTimeout: Timeout} // a busy machine takes long
	_, err = metastore.Migrate(ctx, db, patient)
	c.must(err)
	c.Store, err = metastore.Open(ctx, db, patient)
	c.must(err)
	tb.Cleanup(func() { c.Store.Close() })
	c.must(os.Mkdir(filepath.Join(c.Dir, "objects"), 0o700))
	c.Blobs, err = blob.Open("file://" + filepath.Join(c.Dir, "objects"))
	c.must(err)
	tb.Cleanup(c.stopAll)
	return c
}

// NATS is the server of all connections.
func (c *Cluster) NATS() *transport.Server { return c.nats }

// RestartNATS ends the NATS server, and starts one of other options in its place.
func (c *Cluster) RestartNATS(opts transport.ServerOptions) {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	opts.Port = c.nats.Port()
	c.nats.Stop()
	next, err := transport.StartServer(ctx, opts)
	c.must(err)
	c.nats = next
}

func (c *Cluster) must(err error) {
	c.tb.Helper()
	if err != nil {
		c.tb.Fatal(err)
	}
}

// Server adds a server.
func (c *Cluster) Server(name string) *job.Service {
	c.tb.Helper()
	ctl := c.control(name)
	store := view{c.Store, name, c}
	s := job.New(job.Deps{
		Store: store, Checkpoints: store, Blobs: c.Blobs, Control: ctl, Reports: ctl, Logger: c.log.With("server", name),
	}, job.Options{LeaseTTL: 2 * time.Second, Poll: 200 * time.Millisecond, CollectLinger: 100 * time.Millisecond, Now: c.Clock(name).Now})
	c.run(name, ctl, s.Run)
	return s
}

// Worker adds a worker.
func (c *Cluster) Worker(name string, slots int) {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	net, err := transport.OpenNetwork(ctx, transport.Options{URL: c.url, Name: name})
	c.must(err)
	ctl := c.control(name)
	w := worker.New(worker.Config{
		ID: weir.WorkerID(name), Slots: slots, PID: os.Getpid(), Host: "test", Control: ctl, Network: net, Blobs: c.Blobs,
		Openers: exec.Openers{Source: c.openSource, Operator: op.Open, Sink: c.openSink}, Files: []string{c.Dir}, Logger: c.log,
		Now: c.Clock(name).Now, Tasks: exec.Options{Now: c.Clock(name).Now}, Keep: c.Kept(name), KeepBytes: c.KeepBytes,
	})
	c.run(name, ctl, func(ctx context.Context) error {
		return errors.Join(both(ctx, net.Run, w.Run)...)
	})
}

// Kept is the folder of a worker's copies of state.
func (c *Cluster) Kept(worker string) string { return filepath.Join(c.Dir, "kept", worker) }

// Clock is that of the machine on which a server or worker runs, to be set.
func (c *Cluster) Clock(name string) *clocktest.Clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.clocks[name] == nil {
		c.mu.clocks[name] = &clocktest.Clock{}
	}
	return c.mu.clocks[name]
}

// openSource opens a source that panics, or does not end, when the test wants it to.
func (c *Cluster) openSource(ctx context.Context, s exec.Setup) (exec.Source, error) {
	src, err := source.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	return &obeying{Source: src, c: c}, nil
}

// openSink opens a sink that has no room when the test wants it to.
func (c *Cluster) openSink(ctx context.Context, s exec.Setup) (exec.Operator, error) {
	op, err := sink.Open(ctx, s)
	if w, ok := op.(writing); ok {
		return &filling{w, &c.Full}, err
	}
	return op, err
}

// A writing is a sink whose output is made visible by commits.
type writing interface {
	exec.Operator
	exec.Committer
}

type filling struct {
	writing
	full *atomic.Bool
}

// Process implements exec.Operator.
func (f *filling) Process(b *batch.Batch, out exec.Collector) error {
	if f.full.Load() {
		return fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	return f.writing.Process(b, out)
}

// An obeying source does what the test wants.
type obeying struct {
	exec.Source
	c     *Cluster
	given int64 // batches
	done  bool
}

// Next implements exec.Source.
func (o *obeying) Next(ctx context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	if o.c.Panic.CompareAndSwap(true, false) {
		panic("as the test wants it")
	}
	most := o.c.Batches.Load()
	switch {
	case most > 0 && o.given >= most, o.done && o.c.Held.Load():
		return nil, exec.Wait, time.Now().Add(10 * time.Millisecond), nil
	case o.done:
		return nil, exec.Done, time.Time{}, nil
	}
	b, poll, until, err := o.Source.Next(ctx)
	if b != nil {
		o.given++
		o.c.Given.Add(1)
	}
	if o.done = err == nil && poll == exec.Done; o.done {
		poll = exec.More // it is asked again, and may have to wait
	}
	return b, poll, until, err
}

// both runs a beside b and ends it after b.
func both(ctx context.Context, a, b func(context.Context) error) []error {
	actx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	errC := make(chan error, 1)
	go func() { errC <- a(actx) }()
	err := b(ctx)
	cancel()
	return []error{err, <-errC}
}

func (c *Cluster) control(name string) *control {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	ctl, err := transport.OpenControl(ctx, transport.Options{URL: c.url, Name: name, Log: c.log, Objects: blob.Whole{Store: c.Blobs}})
	c.must(err)
	return &control{Control: ctl, lose: &c.Lose, loseReply: &c.LoseReply}
}

// Control is a connection for control, as a worker's; it ends with the test.
func (c *Cluster) Control(name string) *transport.Control {
	c.tb.Helper()
	ctl := c.control(name)
	c.tb.Cleanup(ctl.Close)
	return ctl.Control
}

func (c *Cluster) run(name string, ctl *control, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	n := &node{cancel: cancel, control: ctl, doneC: make(chan struct{})}
	c.mu.Lock()
	c.mu.nodes[name] = n
	c.mu.Unlock()
	go func() {
		defer close(n.doneC)
		if err := run(ctx); err != nil && !ctl.dead.Load() {
			c.tb.Errorf("%s: %v", name, err)
		}
		ctl.Close()
	}()
}

// Kill ends a server or worker as kill -9 does: nobody hears a word of it.
func (c *Cluster) Kill(name string) {
	c.mu.Lock()
	n := c.mu.nodes[name]
	delete(c.mu.nodes, name)
	c.mu.Unlock()
	n.control.dead.Store(true)
	n.control.Close()
	n.cancel()
	<-n.doneC
}

// Stop ends a server or worker in an orderly way.
func (c *Cluster) Stop(name string) {
	c.mu.Lock()
	n := c.mu.nodes[name]
	delete(c.mu.nodes, name)
	c.mu.Unlock()
	n.cancel()
	<-n.doneC
}

func (c *Cluster) stopAll() {
	c.mu.Lock()
	var names []string
	for name := range c.mu.nodes {
		names = append(names, name)
	}
	c.mu.Unlock()
	for _, name := range names {
		c.Stop(name)
	}
}

// Heard waits until a server has heard of n workers.
func (c *Cluster) Heard(s *job.Service, n int) {
	c.tb.Helper()
	c.Until(fmt.Sprintf("%d workers are heard", n), func(ctx context.Context) bool {
		workers, err := s.Workers(ctx)
		return err == nil && len(workers) == n
	})
}

// Spec plans a script.
func (c *Cluster) Spec(name, sql string, parallelism int) job.Spec {
	c.tb.Helper()
	r, err := planner.Plan(sql, nil, planner.Options{})
	c.must(err)
	return job.Spec{Name: name, SQL: sql, Graph: *r.Graph, Parallelism: parallelism, OnRowError: r.Settings["on_row_error"]}
}

// Await waits until a job is in one of the statuses. Where that may be its end by itself,
// sources are held no longer.
func (c *Cluster) Await(s *job.Service, name string, want ...weir.Status) weir.Job {
	c.tb.Helper()
	if slices.Contains(want, weir.StatusFinished) {
		c.Held.Store(false)
	}
	var j weir.Job
	c.Until(fmt.Sprintf("job %s is %v", name, want), func(ctx context.Context) bool {
		var err error
		if j, err = s.Get(ctx, name); err != nil {
			c.tb.Log(err)
			return false
		}
		for _, w := range want {
			if j.Status == w && (!w.Terminal() || !j.EndedAt.IsZero()) {
				return true
			}
		}
		return false
	})
	return j
}

// Until waits until done says true, and fails the test when it does not in time, with
// the history of all jobs.
func (c *Cluster) Until(what string, done func(ctx context.Context) bool) {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done(ctx) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			c.history()
			c.tb.Fatalf("not within %v: %s", Timeout, what)
		}
	}
}

func (c *Cluster) history() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	jobs, err := c.Store.Jobs(ctx, weir.JobFilter{})
	if err != nil {
		c.tb.Log(err)
	}
	for _, j := range jobs {
		c.tb.Logf("%s: %s, desired %s, attempt %v, base %v, failure %+v", j.Name, j.Status, j.Desired, j.Attempt, j.Base, j.Failure)
		events, err := c.Store.Events(ctx, j.ID, 0, 1000)
		if err != nil {
			c.tb.Log(err)
		}
		for _, e := range events {
			c.tb.Logf("  %d %s %s: %s", e.Seq, e.At.Format(time.StampMilli), e.Kind, e.Message)
		}
	}
}
