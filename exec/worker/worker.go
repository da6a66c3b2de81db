package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/deploy"
)

// A Control carries commands to this worker, and its reports to servers (transport).
type Control interface {
	// Serve takes the commands for a worker until ctx ends, and answers pings with its
	// incarnation. What the handler returns with an error is answered, and not kept for
	// those who command the same.
	Serve(ctx context.Context, worker weir.WorkerID, incarnation string, handler func(ctx context.Context, kind string, body []byte) ([]byte, error)) error
	// Request has another worker run a command.
	Request(ctx context.Context, worker weir.WorkerID, kind string, body []byte) ([]byte, error)
	// Publish reports to the servers until one has taken the report in, or ctx ends.
	// weir.ErrStale, weir.ErrNotFound and weir.ErrInvalid are a server's answers.
	Publish(ctx context.Context, kind string, body []byte) ([]byte, error)
	// Heartbeat tells every server that listens, once.
	Heartbeat(ctx context.Context, body []byte) error
	// Connected reports whether our own connection is up.
	Connected() bool
}

// A Network has the channels of all attempts (transport).
type Network interface {
	// Inbound opens the receiving end of a channel; local: the sender runs here too.
	Inbound(job weir.JobID, attempt weir.AttemptID, ch weir.ChannelID, local bool, wakeC chan<- struct{}) (weir.Inbound, error)
	// Outbound opens the sending end; local: the receiver runs here too. broken is called
	// once the channel is.
	Outbound(job weir.JobID, attempt weir.AttemptID, ch weir.ChannelID, local bool, broken func(error)) (weir.Outbound, error)
	// MaxPayload is the largest payload of a frame that the network takes; 0: any.
	MaxPayload() int
	// Channels says how every end of a channel here fares, by job, attempt and channel.
	Channels() []weir.ChannelStats
	// Release drops all channels of an attempt.
	Release(job weir.JobID, attempt weir.AttemptID)
}

// A Config is what a Worker works with. Files and Now may be empty.
type Config struct {
	ID      weir.WorkerID
	Slots   int
	PID     int
	Host    string
	Control Control
	Network Network
	Blobs   blob.Store
	Openers exec.Openers
	Files   []string // roots below which file connectors may read and write
	// Keep is a folder for copies of the state that tasks store, of KeepBytes in all; the
	// next life of the worker finds them there. 0 bytes: no copies, those that are there are removed.
	Keep      string
	KeepBytes int64
	Memory    Memory
	Logger    *slog.Logger
	Now       func() time.Time // nil: time.Now
	Tasks     exec.Options
	// Patience bounds how long a command waits for tasks to end; 0: 20 s.
	Patience time.Duration
	// Ticks is when the worker looks whether it is cut off; nil: four times a second.
	Ticks <-chan time.Time
}

// beatEvery is the time between two heartbeats.
const beatEvery = time.Second

// A Worker is one life of a worker process.
type Worker struct {
	cfg         Config
	incarnation string
	kickC       chan struct{} // room for one: something changed, say so
	group       errgroup.Group
	runCtx      context.Context // of Run; attempts live under it
	snapshots   snapshots
	kept        *kept
	memory      *memory

	mu struct {
		sync.Mutex
		attempts map[weir.JobID]*attempt       // the newest of each job
		newest   map[weir.JobID]weir.AttemptID // known; also of jobs that do not run here any more
		leaving  bool
		paused   bool   // sources read nothing
		lost     []lost // that no server knows of yet
	}
}

// New makes a worker; Run runs it.
func New(cfg Config) *Worker {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Patience = cmp.Or(cfg.Patience, 20*time.Second)
	w := &Worker{cfg: cfg, incarnation: weir.NewIncarnation(), kickC: make(chan struct{}, 1)}
	w.kept = newKept(cfg.Blobs, cfg.Keep, cfg.KeepBytes, cfg.Logger.With("worker", cfg.ID))
	w.cfg.Tasks.Budget, w.cfg.Tasks.Disk = cfg.Memory.State, cfg.Memory.Disk
	w.snapshots.disk, w.snapshots.budget = cfg.Memory.Disk, cfg.Memory.State
	w.memory = newMemory(cfg.Memory, w.relax)
	if cfg.Memory.Heap > 0 {
		w.snapshots.most = min(snapshotBytes, cfg.Memory.Heap/snapshotPart)
	}
	w.mu.attempts, w.mu.newest = map[weir.JobID]*attempt{}, map[weir.JobID]weir.AttemptID{}
	return w
}

// Incarnation names this life of the worker.
func (w *Worker) Incarnation() string { return w.incarnation }

// Run takes commands until ctx ends and all tasks have ended. It may be called once.
func (w *Worker) Run(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	w.runCtx = gctx
	w.kept.open()
	defer w.kept.shut()
	g.Go(func() error { return w.cfg.Control.Serve(gctx, w.cfg.ID, w.incarnation, w.command) })
	g.Go(func() error { return w.beat(gctx) })
	g.Go(func() error { return w.watch(gctx) })
	g.Go(func() error { return w.memory.run(gctx) })
	g.Go(func() error { return w.kept.run(gctx, w.jobs) })
	err := g.Wait()
	w.leave(context.WithoutCancel(ctx))
	w.group.Wait() //nolint:errcheck // attempts report their failures
	err = errors.Join(err, w.snapshots.close())
	if ctx.Err() == nil {
		return fmt.Errorf("worker %s: %w", w.cfg.ID, err)
	}
	return nil
}

// relax has the tasks of all attempts look whether their state is beyond its share.
func (w *Worker) relax() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.mu.attempts {
		a.relax()
	}
}

// jobs are those of which an attempt runs here.
func (w *Worker) jobs() []weir.JobID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sortedKeys(w.mu.attempts)
}

// beat sends heartbeats: every second, and when something has changed. Meanwhile it
// forgets snapshots that nobody reads any more.
func (w *Worker) beat(ctx context.Context) error {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	reached := true
	for {
		reached = w.sayAlive(ctx, reached)
		if err := w.snapshots.expire(w.cfg.Now()); err != nil {
			w.cfg.Logger.Warn("result in a snapshot not closed", "worker", w.cfg.ID, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-w.kickC:
		}
	}
}

// sayAlive sends one heartbeat; it logs when they cannot be sent any more, or can again.
func (w *Worker) sayAlive(ctx context.Context, before bool) (reached bool) {
	err := w.cfg.Control.Heartbeat(ctx, deploy.Encode(w.heartbeat()))
	reached = err == nil
	switch {
	case reached == before || ctx.Err() != nil:
	case reached:
		w.cfg.Logger.Info("heartbeats are sent again", "worker", w.cfg.ID)
	default:
		w.cfg.Logger.Warn("heartbeats cannot be sent, tried again", "worker", w.cfg.ID, "err", err)
	}
	return reached
}

// leave says that the worker takes no more tasks, so that its jobs go on elsewhere at
// once.
func (w *Worker) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	w.mu.Lock()
	w.mu.leaving = true
	w.mu.Unlock()
	if err := w.cfg.Control.Heartbeat(ctx, deploy.Encode(w.heartbeat())); err != nil {
		w.cfg.Logger.Info("not said goodbye", "worker", w.cfg.ID, "err", err)
	}
}

// kick has a heartbeat sent now.
func (w *Worker) kick() {
	select {
	case w.kickC <- struct{}{}:
	default:
	}
}

func (w *Worker) heartbeat() deploy.Heartbeat {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := deploy.Heartbeat{
		Header: deploy.Head(), Worker: w.cfg.ID, Incarnation: w.incarnation, PID: w.cfg.PID, Host: w.cfg.Host,
		Slots: w.cfg.Slots, Leaving: w.mu.leaving,
	}
	running := sortedKeys(w.mu.attempts)
	b.Kept = w.kept.list(running)
	for _, job := range running {
		a := w.mu.attempts[job]
		b.UsedSlots += a.slots()
		b.Attempts = append(b.Attempts, a.running())
	}
	b.Memory = w.memory.figures()
	for _, a := range b.Attempts {
		for _, t := range a.Tasks {
			b.Memory.Uploads += t.Uploads
		}
	}
	return b
}

// together calls f for 0 to n-1 at a time and returns the first error.
func together(n int, f func(i int) error) error {
	var g errgroup.Group
	for i := range n {
		g.Go(func() error { return f(i) })
	}
	return g.Wait()
}
