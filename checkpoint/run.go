package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"weir"
	"weir/checkpoint/blob"
	"weir/planner/plan"
)

const (
	ioTimeout      = 10 * time.Second // of one call to the metastore or to the workers
	askTimeout     = 2 * time.Second  // of asking the tasks how far they are
	blobTimeout    = 30 * time.Second // of one manifest
	storageTimeout = 5 * time.Minute  // of a look at what storage holds, or of deletions
	drainTimeout   = 2 * time.Second  // for what is in hand when the attempt has failed
	leaveTimeout   = 5 * time.Second  // for giving up what is pending at the end
)

// Tasks are the tasks of the attempt, wherever they run.
type Tasks interface {
	// Trigger tells the source tasks to begin a checkpoint. It is repeated until it
	// returned nil once; a task ignores a checkpoint that it has begun already. An error
	// that is Undelivered says which of them it did not reach.
	Trigger(ctx context.Context, t Trigger, targets []weir.TaskID) error
	// Notify asks sink tasks to commit their segments up to id. Their answers come by
	// Runner.Committed; it is repeated until they do.
	Notify(ctx context.Context, id weir.CheckpointID, tasks []weir.TaskID) error
	// Progress asks all tasks how far they are with a pending checkpoint. It returns
	// what was answered, in the order of the tasks; an error names the workers that did
	// not answer, and comes beside the answers of the others.
	Progress(ctx context.Context, id weir.CheckpointID) ([]Progress, error)
}

// Undelivered is the error of a Trigger: why it did not reach these of its targets.
type Undelivered map[weir.TaskID]error

// Error gives each of the errors once, in the order of the tasks.
func (u Undelivered) Error() string {
	var list []string
	for _, id := range slices.SortedFunc(maps.Keys(u), weir.TaskID.Compare) {
		if text := u[id].Error(); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, "; ")
}

// A Config is what a Runner works with. All fields are required but those that say
// otherwise.
type Config struct {
	Fence       weir.Fence
	Graph       plan.Graph
	Parallelism int
	Options     Options
	// Base is what the attempt started from, LastID the newest checkpoint id the job
	// has given out (weir.Job.LastCheckpoint).
	Base   weir.SnapshotRef
	LastID weir.CheckpointID
	// First is when the first periodic checkpoint is due; 0: after an interval.
	First time.Duration
	// OpenCommits are the job's checkpoints whose commits are open, Pending those that a
	// dead owner left pending. May be nil.
	OpenCommits []weir.CheckpointID
	Pending     []weir.CheckpointID
	// Workers says where the tasks run, for the messages of failures. May be nil.
	Workers map[weir.TaskID]weir.WorkerID

	Store  Store
	Blobs  blob.Store
	Tasks  Tasks
	Now    func() time.Time
	Logger *slog.Logger
	// OnEvent is called with lines for the job's history, in order, one at a time; Seq
	// is not set. nil: nobody listens.
	OnEvent func(context.Context, weir.Event)
	// Garbage is called when something was given up that a Collector may clear up; it
	// must not block. nil: nobody listens.
	Garbage func()
}

// A Runner takes the checkpoints of one attempt while Run runs. All other methods may
// be called from any goroutine, also before Run.
type Runner struct {
	cfg     Config
	inputC  chan input
	resultC chan Event
	endingC chan Ending
	stopC   chan struct{} // closed when Run takes no more inputs
	doneC   chan struct{} // closed when Run has returned

	// Of Run's goroutine.
	machine  *Coordinator
	lanes    [lanes]lane
	busy     int // actions handed to lanes and not answered
	requests RequestID
	answers  map[RequestID]chan<- Answer
	waiters  map[weir.CheckpointID][]chan<- waited
	exit     error // set: Run ends with it
}

// An input is what methods hand to Run's goroutine.
type input struct {
	event   func(RequestID) Event // nil: a wait
	answerC chan<- Answer         // nil: no answer
	wait    weir.CheckpointID
	waitC   chan<- waited
}

// waited answers a wait: known is false for a checkpoint that is not pending here.
type waited struct {
	record Record
	known  bool
}

// The lanes: each is one goroutine that performs its actions in order, so that a slow
// object store holds up neither acks nor decisions.
const (
	storeLane    = iota // the metastore
	manifestLane        // manifests
	taskLane            // triggers and notifies
	askLane             // how far tasks are: as many goroutines as checkpoints may expire at once
	storageLane         // what storage holds, and deletions
	lanes
)

type lane struct {
	queue []Action
	c     chan Action
}

// width is how many goroutines a lane has. A worker that does not answer uses up all the
// time that a question has: what expires beside must not wait for it.
func (r *Runner) width(lane int) int {
	if lane == askLane {
		return r.cfg.Options.withDefaults().MaxConcurrent + 1 // a savepoint
	}
	return 1
}

// performed answers actions whose outcome tells the machine nothing.
type performed struct{}

func (performed) event() {}

// NewRunner returns a Runner; Run runs it.
func NewRunner(cfg Config) *Runner {
	r := &Runner{
		cfg: cfg, inputC: make(chan input, 256), resultC: make(chan Event),
		endingC: make(chan Ending, 1), stopC: make(chan struct{}), doneC: make(chan struct{}), answers: map[RequestID]chan<- Answer{},
		waiters: map[weir.CheckpointID][]chan<- waited{},
	}
	for i := range r.lanes {
		r.lanes[i].c = make(chan Action)
	}
	return r
}

// Run takes checkpoints until ctx ends (nil), a newer owner of the job exists
// (weir.ErrStale), or the attempt must fail (*AttemptFailure). What is still pending then
// is given up.
func (r *Runner) Run(ctx context.Context) error {
	defer close(r.doneC)
	base := r.cfg.Base.Checkpoint
	if r.cfg.Base.Job != r.cfg.Fence.Job {
		base = 0
	}
	var acts []Action
	r.machine, acts = NewCoordinator(r.cfg.Now(), Start{
		Fence: r.cfg.Fence, Graph: r.cfg.Graph, Parallelism: r.cfg.Parallelism,
		Options: r.cfg.Options, Base: base, LastID: r.cfg.LastID, First: r.cfg.First, OpenCommits: r.cfg.OpenCommits, Pending: r.cfg.Pending,
		Workers: r.cfg.Workers,
	})
	laneCtx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i := range r.lanes {
		for range r.width(i) {
			wg.Go(func() { r.perform(laneCtx, r.lanes[i].c) })
		}
	}
	r.dispatch(acts)
	r.loop(ctx)
	close(r.stopC)
	cancel()
	wg.Wait()
	if !errors.Is(r.exit, weir.ErrStale) {
		r.untold(ctx)
	}
	if mayLeave(r.exit) {
		r.leave(ctx)
	}
	return r.exit
}

// mayLeave reports whether the attempt may still give up what is pending: neither where
// a newer owner exists, nor where the metastore is behind.
func mayLeave(exit error) bool { return !behind(exit) && !errors.Is(exit, weir.ErrStale) }

// behind reports whether storage knows more than the metastore.
func behind(exit error) bool {
	var failure *AttemptFailure
	return errors.As(exit, &failure) && failure.Failure.Reason == ReasonMetastoreBack
}

// loop feeds the machine until ctx ends or the attempt's checkpoints have.
func (r *Runner) loop(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var drained <-chan time.Time
	for {
		if r.exit != nil {
			if r.busy == 0 || behind(r.exit) { // then nothing in hand may delete any more
				return
			}
			if drained == nil {
				limit := time.NewTimer(drainTimeout)
				defer limit.Stop()
				drained = limit.C
			}
		}
		r.arm(timer)
		var out [lanes]chan<- Action
		var head [lanes]Action
		for i, l := range r.lanes {
			if len(l.queue) > 0 {
				out[i], head[i] = l.c, l.queue[0]
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-drained:
			return
		case in := <-r.inputC:
			r.take(in)
		case e := <-r.resultC:
			r.busy--
			r.step(e)
		case <-timer.C:
			r.step(Tick{})
		case out[storeLane] <- head[storeLane]:
			r.pop(storeLane)
		case out[manifestLane] <- head[manifestLane]:
			r.pop(manifestLane)
		case out[taskLane] <- head[taskLane]:
			r.pop(taskLane)
		case out[askLane] <- head[askLane]:
			r.pop(askLane)
		case out[storageLane] <- head[storageLane]:
			r.pop(storageLane)
		}
	}
}

func (r *Runner) arm(timer *time.Timer) {
	wait := time.Hour
	if next := r.machine.Next(); !next.IsZero() {
		wait = min(wait, max(0, next.Sub(r.cfg.Now())))
	}
	timer.Reset(wait)
}

func (r *Runner) push(to int, a Action) {
	r.lanes[to].queue = append(r.lanes[to].queue, a)
	r.busy++
}

func (r *Runner) pop(from int) { r.lanes[from].queue = r.lanes[from].queue[1:] }

func (r *Runner) step(e Event) {
	if _, ok := e.(performed); !ok {
		r.dispatch(r.machine.Step(r.cfg.Now(), e))
	}
}

// take hands an input to the machine, or keeps a wait.
func (r *Runner) take(in input) {
	if in.event == nil {
		if !slices.ContainsFunc(r.machine.Pending(), func(p Record) bool { return p.ID == in.wait }) {
			in.waitC <- waited{}
			return
		}
		r.waiters[in.wait] = append(r.waiters[in.wait], in.waitC)
		return
	}
	r.requests++
	if in.answerC != nil {
		r.answers[r.requests] = in.answerC
	}
	r.step(in.event(r.requests))
}

// dispatch performs what needs no I/O and hands the rest to the lanes.
func (r *Runner) dispatch(acts []Action) {
	for _, a := range acts {
		switch a := a.(type) {
		case SendTrigger, Notify:
			r.push(taskLane, a)
		case WriteManifest:
			r.push(manifestLane, a)
		case AskProgress:
			r.push(askLane, a)
		case Survey, DropObjects, Collect:
			r.push(storageLane, a)
		case Answer:
			if c, ok := r.answers[a.Request]; ok {
				delete(r.answers, a.Request)
				c <- a // buffered
			}
		case Ended:
			r.ended(a.Record)
		case Finish:
			r.endingC <- a.Ending // buffered, given once
		case FailAttempt:
			r.exit = &a.Failure
		case GiveUp:
			r.exit = fmt.Errorf("checkpoints of attempt %v: %w", r.cfg.Fence.Attempt, weir.ErrStale)
		default:
			r.push(storeLane, a)
		}
	}
}

func (r *Runner) ended(record Record) {
	for _, c := range r.waiters[record.ID] {
		c <- waited{record, true} // buffered
	}
	delete(r.waiters, record.ID)
	log := r.cfg.Logger.With("job", record.Job, "attempt", record.Attempt.String(), "cp", record.ID)
	took := record.CompletedAt.Sub(record.TriggeredAt)
	if record.Failure == nil {
		log.Info("checkpoint ended", "status", record.Status, "dur", took, "bytes", record.NewBytes)
		return
	}
	log.Warn("checkpoint ended", "status", record.Status, "dur", took, "err", record.Failure.Message)
}

// untold writes the lines that the history does not have yet: what they say has happened.
func (r *Runner) untold(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	for _, a := range r.lanes[storeLane].queue {
		if t, ok := a.(Tell); ok {
			r.tell(ctx, t)
		}
	}
}

// leave gives up all that is pending when the attempt's checkpoints end; what they wrote
// is the Collector's.
func (r *Runner) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	gone := false
	failed := func(id weir.CheckpointID, err error) {
		if err != nil && !errors.Is(err, weir.ErrStale) {
			r.cfg.Logger.Warn("pending checkpoint not given up", "job", r.cfg.Fence.Job, "cp", id, "err", err)
		}
	}
	for _, record := range r.machine.Pending() {
		if record.Status == StatusPending { // otherwise its end is on the way already
			record.Status, record.CompletedAt = StatusAborted, since(record.TriggeredAt, r.cfg.Now())
			record.Failure = &weir.Failure{Reason: ReasonAttemptEnded, Message: "the attempt ended"}
		}
		record.Manifest, record.CommitsOpen, record.Path = "", false, ""
		status, err := r.cfg.Store.AbortCheckpoint(ctx, r.cfg.Fence, record)
		if err == nil && status != StatusCompleted {
			record.Status = status
			r.ended(record)
			gone = true
		}
		failed(record.ID, err)
	}
	if gone {
		r.garbage()
	}
}
