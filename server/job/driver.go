package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
	"weir/planner/plan"
)

const (
	closeWithin = 20 * time.Second       // tasks of a finished job end by themselves
	stopWithin  = 10 * time.Second       // tasks end when told to, before the job's end
	leaveWithin = 500 * time.Millisecond // as much is waited before another attempt: who hangs is left behind
	askAgain    = 200 * time.Millisecond
)

// A driver owns one job while this server holds the lease: it performs what the job's
// machine decides. run is its goroutine; it owns those of the actions that wait.
type driver struct {
	s       *Service
	id      weir.JobID
	term    int64
	log     *slog.Logger
	graph   plan.Graph
	options checkpoint.Options
	machine *machine
	group   errgroup.Group
	eventC  chan struct{} // room for one: events are there

	// The loop's own: what the attempt started works under work, which cancel ends.
	work    context.Context
	cancel  context.CancelFunc
	resumed time.Time // when it last took a stop back
	taken   bool      // nothing was placed yet, and an earlier holder had placed the job

	mu struct {
		sync.Mutex
		events  []event
		attempt weir.AttemptID
		over    bool // it has been given up
		placed  []deploy.Placed
		before  []deploy.Placed  // of the attempt that was deployed last
		restore *restore         // what the attempt starts from; nil: nothing
		told    weir.SnapshotRef // of which snapshot the history says that output is left out
		run     *coordination
		ended   []weir.TaskID // sources that ended before the coordinator began
	}
}

func newDriver(s *Service, j weir.Job, term int64) *driver {
	d := &driver{s: s, id: j.ID, term: term, log: s.deps.Logger.With("job", j.ID), eventC: make(chan struct{}, 1), cancel: func() {}}
	d.mu.attempt, d.mu.over = j.Attempt, true // whatever ran is begun anew
	return d
}

// attempt is the job's current one as this driver knows it.
func (d *driver) attempt() weir.AttemptID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.attempt
}

// standing is the job's current attempt, and whether it has been given up.
func (d *driver) standing() (attempt weir.AttemptID, over bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.attempt, d.mu.over
}

// post gives the machine an event. It never blocks: of the events that repeat, the
// last is kept; the others are as many as an attempt has tasks.
func (d *driver) post(ev event) {
	d.mu.Lock()
	switch ev.(type) {
	case evWished:
		d.mu.events = slices.DeleteFunc(d.mu.events, func(e event) bool { _, same := e.(evWished); return same })
	case evSlots:
		d.mu.events = slices.DeleteFunc(d.mu.events, func(e event) bool { _, same := e.(evSlots); return same })
	}
	d.mu.events = append(d.mu.events, ev)
	d.mu.Unlock()
	select {
	case d.eventC <- struct{}{}:
	default:
	}
}

func (d *driver) take() []event {
	d.mu.Lock()
	defer d.mu.Unlock()
	events := d.mu.events
	d.mu.events = nil
	return events
}

// run drives the job until its machine is done (nil), a newer owner exists
// (weir.ErrStale), ctx ends, or it cannot go on from what it knows.
func (d *driver) run(ctx context.Context) (err error) {
	defer d.survive(func(broken error) { err = broken })
	ctx, cancel := context.WithCancel(ctx)
	defer d.group.Wait() //nolint:errcheck // its goroutines report by events
	defer cancel()
	queue, err := d.begin(ctx)
	if err != nil || d.machine == nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		for len(queue) > 0 {
			ev := queue[0]
			queue = queue[1:]
			if skip, err := d.outdated(ev); skip || err != nil {
				if err != nil {
					return err
				}
				continue
			}
			acts := d.machine.step(d.s.now(), ev)
			for _, act := range acts {
				more, done, err := d.do(ctx, act)
				if done || err != nil {
					return err
				}
				queue = append(queue, more...)
			}
		}
		if at := d.machine.wake(); !at.IsZero() {
			timer.Reset(max(at.Sub(d.s.now()), time.Millisecond))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.eventC:
			queue = d.take()
		case <-timer.C:
			queue = []event{evTick{}}
		}
	}
}

// outdated reports whether an event says what is not so any more: a wish that was read
// before this driver wrote one itself. A newer owner of the attempt is an error.
func (d *driver) outdated(ev event) (bool, error) {
	switch ev := ev.(type) {
	case evWished:
		return !ev.ReadAt.After(d.resumed), nil
	case evStale:
		if ev.Attempt == d.machine.job.Attempt {
			return false, fmt.Errorf("job %s: %w", d.id, weir.ErrStale)
		}
		return true, nil
	case evBroken:
		return false, ev.err
	}
	return false, nil
}

// begin takes the job over from whoever drove it before, and makes its machine; one
// that cannot be read ends as FAILED, without a machine.
func (d *driver) begin(ctx context.Context) ([]event, error) {
	j, err := d.s.deps.Store.Job(ctx, string(d.id))
	if err != nil {
		return nil, err
	}
	if j, err = d.s.deps.Store.TakeOver(ctx, weir.Fence{Job: j.ID, Attempt: j.Attempt, Term: j.Term}, d.term); err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.mu.attempt = j.Attempt
	d.mu.Unlock()
	d.taken = !j.Status.Terminal() && j.Attempt != weir.AttemptID{}
	saved, err := d.saved(ctx, j)
	if err != nil {
		return nil, err
	}
	restart, err := ParseRestart(j.Restart)
	if err == nil {
		d.options, err = checkpoint.ParseOptions(j.Checkpoint)
	}
	if err == nil {
		d.graph, err = decodeGraph(j)
	}
	if err != nil {
		f := &weir.Failure{Reason: "plan", Message: err.Error()}
		return nil, d.s.deps.Store.SetStatus(ctx, d.fenceOf(j), weir.StatusFailed, f)
	}
	d.machine = newMachine(j, restart)
	return []event{evStart{saved}}, nil
}

// saved reports whether a job's base is the savepoint that its stop asked for.
func (d *driver) saved(ctx context.Context, j weir.Job) (bool, error) {
	if j.StopSavepoint == "" || j.Base.Job != j.ID {
		return false, nil
	}
	r, err := d.s.deps.Store.CheckpointByID(ctx, j.ID, j.Base.Checkpoint)
	return err == nil && r.Savepoint == j.StopSavepoint && r.Status == checkpoint.StatusCompleted, err
}

func (d *driver) fenceOf(j weir.Job) weir.Fence {
	return weir.Fence{Job: j.ID, Attempt: j.Attempt, Term: d.term}
}

func (d *driver) fence() weir.Fence { return d.fenceOf(d.machine.job) }

// do performs one action. What is decided in the metastore is awaited, the rest goes
// on in goroutines whose outcomes are posted.
func (d *driver) do(ctx context.Context, act action) (more []event, done bool, err error) {
	switch act := act.(type) {
	case actBegin:
		d.work, d.cancel = context.WithCancel(ctx)
		ev, err := d.beginAttempt(ctx)
		return []event{ev}, false, err
	case actLoad:
		j := d.machine.job
		d.async(func() { d.post(d.load(ctx, j)) })
	case actPlace:
		ev := d.s.reserve(d.id, act.Need, d.taken, d.before())
		d.taken = d.taken && ev.Slots == nil
		more = []event{ev}
	case actDeploy:
		d.deploy(d.work)
	case actRun:
		d.coordinate(d.work)
	case actSave:
		d.async(func() { d.save(d.work, act.Name) })
	case actEnd:
		d.end(ctx, act)
	case actCommit:
		fence := d.fence()
		d.async(func() { d.post(evCommitted{d.completeCommits(ctx, fence)}) })
	case actStatus:
		return nil, false, d.setStatus(ctx, act)
	case actResume:
		return nil, false, d.resume(ctx, act.Stop)
	case actNote:
		d.note(ctx, act)
	case actDone:
		return nil, true, nil
	default:
		panic(fmt.Sprintf("job: unknown action %T", act))
	}
	return more, false, nil
}

// async runs an action that waits; run waits for all of them.
func (d *driver) async(f func()) {
	d.group.Go(func() error {
		defer d.survive(func(err error) { d.post(evBroken{err}) })
		f()
		return nil
	})
}

// evBroken: an action has met a broken invariant.
type evBroken struct{ err error }

func (evBroken) isEvent() {}

// survive, deferred, keeps a broken invariant of one job from ending the server.
func (d *driver) survive(tell func(error)) {
	if p := recover(); p != nil {
		d.log.Error("driver panicked", "err", p, "stack", string(debug.Stack()))
		tell(fmt.Errorf("job %s: panic: %v", d.id, p))
	}
}

// insist repeats f until it succeeds, fails with a sentinel, or ctx ends: the
// metastore may be away for a while, and nothing can be decided without it.
func (d *driver) insist(ctx context.Context, what string, f func() error) error {
	for wait := askAgain; ; wait = min(2*wait, 5*time.Second) {
		err := f()
		if err == nil || ctx.Err() != nil || isSentinel(err) {
			return err
		}
		d.log.Warn("metastore failed, tried again", "err", fmt.Errorf("%s: %w", what, err))
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

func isSentinel(err error) bool {
	return errors.Is(err, weir.ErrStale) || errors.Is(err, weir.ErrConflict) || errors.Is(err, weir.ErrNotFound) || errors.Is(err, weir.ErrInvalid)
}

func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *driver) beginAttempt(ctx context.Context) (event, error) {
	last := d.machine.job.Attempt
	var j weir.Job
	err := d.insist(ctx, "begin attempt", func() (err error) {
		j, err = d.s.deps.Store.BeginAttempt(ctx, d.id, last, d.term)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.mu.attempt, d.mu.over, d.mu.placed, d.mu.restore, d.mu.run, d.mu.ended = j.Attempt, false, nil, nil, nil, nil
	d.mu.Unlock()
	saved := false
	err = d.insist(ctx, "read base", func() (err error) {
		saved, err = d.saved(ctx, j)
		return err
	})
	return evBegun{j, saved}, err
}

// setStatus records a status; one that is there already was recorded by a try whose
// answer was lost.
func (d *driver) setStatus(ctx context.Context, act actStatus) error {
	err := d.insist(ctx, "set status", func() error {
		return d.s.deps.Store.SetStatus(ctx, d.fence(), act.To, act.Failure)
	})
	if errors.Is(err, weir.ErrConflict) {
		if j, rerr := d.s.deps.Store.Job(ctx, string(d.id)); rerr == nil && j.Status == act.To {
			err = nil
		}
	}
	if err == nil {
		if act.To.Terminal() {
			d.s.clean.wake(d.id) // its retention may say that its checkpoints end with it
		}
		said := []any{"status", act.To, "attempt", d.machine.job.Attempt}
		if f := act.Failure; f != nil {
			said = append(said, "reason", f.Reason, "failure", f.Message)
		}
		d.log.Info("job status", said...)
	}
	return err
}

// resume takes a stop back whose savepoint failed, unless its user wants something else
// by now, or another server has the job, which tries the stop itself.
func (d *driver) resume(ctx context.Context, stop string) error {
	err := d.insist(ctx, "take stop back", func() error {
		_, err := d.s.deps.Store.SetDesired(ctx, d.id, alive(), Wish{Desired: weir.DesiredRunning, TakesBack: stop, Fence: d.fence()})
		return err
	})
	d.resumed = d.s.now()
	if errors.Is(err, weir.ErrConflict) {
		return nil
	}
	return err
}

func (d *driver) note(ctx context.Context, act actNote) {
	j := d.machine.job
	d.record(ctx, weir.Event{Job: j.ID, At: d.s.now(), Kind: act.Kind, Attempt: j.Attempt.Number, Message: act.Message})
}

// end ends the attempt: its coordinator, so that nothing is decided any more, and its
// tasks, wherever they may run.
func (d *driver) end(ctx context.Context, act actEnd) {
	attempt, endWork := d.machine.job.Attempt, d.cancel
	d.cancel = func() {}
	d.mu.Lock()
	d.mu.over = !act.Close
	run, placed := d.mu.run, d.mu.placed
	d.mu.Unlock()
	workers := d.s.workersOf(d.id, placed)
	d.async(func() {
		if act.Close {
			d.askAll(ctx, workers, deploy.KindClose, deploy.Close{Header: deploy.Head(), Job: d.id, Attempt: attempt}, closeWithin, func([]byte) {})
		}
		endWork()
		within := leaveWithin
		if act.Wait {
			within = stopWithin
		}
		var last lastWords
		var stopping errgroup.Group // beside the coordinator's end, which may have to wait for the metastore
		stopping.Go(func() error {
			d.askAll(ctx, workers, deploy.KindStop, deploy.Stop{Header: deploy.Head(), Job: d.id, Attempt: attempt}, within, last.add)
			return nil
		})
		if run != nil {
			<-run.doneC
		}
		stopping.Wait() //nolint:errcheck // it has none
		d.s.keep(d.id, attempt, &last)
		d.s.release(d.id)
		d.post(evEnded{attempt, act.Wait})
	})
}

// askAll sends one command to several workers and waits for their replies, but not
// longer than within, nor for one that is found dead; hear gets them, several at a time.
func (d *driver) askAll(ctx context.Context, workers []weir.WorkerID, kind string, m deploy.Message, within time.Duration, hear func(body []byte)) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	//nolint:errcheck // failures are logged: a fence makes them harmless
	together(workers, func(w weir.WorkerID) error {
		body, err := d.s.askLiving(ctx, w, kind, m)
		if err == nil {
			hear(body)
		} else if !errors.Is(err, weir.ErrStale) {
			d.log.Warn("worker did not answer", "worker", w, "err", err)
		}
		return nil
	})
}

// together calls f for several workers at a time and returns the first error.
func together(workers []weir.WorkerID, f func(weir.WorkerID) error) error {
	var g errgroup.Group
	for _, w := range workers {
		g.Go(func() error { return f(w) })
	}
	return g.Wait()
}
