package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
)

// A restore is what the tasks of an attempt start from, and what its coordinator has
// to know of the past. The zero one is nothing.
type restore struct {
	ref   weir.SnapshotRef
	plan  *checkpoint.RestorePlan // nil: nothing
	open  []weir.CheckpointID     // commits that its sinks have to make good
	given listItems               // which sinks were to make visible, and what was given up instead
}

// A coordination is the coordinator of the attempt's checkpoints at work.
type coordination struct {
	runner *checkpoint.Runner
	tasks  *tasks
	doneC  chan struct{} // closed when it has ended
}

// load reads the base of an attempt and gives each task its part. A snapshot that is
// not whole is no reason to start from nothing.
func (d *driver) load(ctx context.Context, j weir.Job) event {
	ready := evLoaded{Need: slotsNeeded(d.graph, j.Parallelism), Tasks: len(checkpoint.TasksOf(d.graph, j.Parallelism))}
	r, err := d.readBase(ctx, j)
	if err != nil {
		f := &weir.Failure{Reason: "restore", Message: fmt.Sprintf("checkpoint %d of job %s cannot be restored: %v", j.Base.Checkpoint, j.Base.Job, err)}
		if !gone(err) {
			return evLoaded{Failure: f, Restart: true}
		}
		f.Message += elsewhere
		if why := d.s.behind(ctx, j.ID); why != "" {
			f = checkpoint.BehindFailure(fmt.Sprintf("checkpoint %d, which it says to start from, is not whole any more, and %s", j.Base.Checkpoint, why))
		}
		return evLoaded{Failure: f}
	}
	d.mu.Lock()
	d.mu.restore = r
	say := len(r.given) > 0 && d.mu.told != r.ref
	if say {
		d.mu.told = r.ref
	}
	d.mu.Unlock()
	if say {
		d.record(ctx, weir.Event{Job: j.ID, Kind: "commit", Attempt: j.Attempt.Number, Message: leavesOut(r)})
	}
	return ready
}

func (d *driver) readBase(ctx context.Context, j weir.Job) (*restore, error) {
	r := &restore{ref: j.Base}
	if j.Base.IsZero() {
		return r, nil
	}
	m, err := d.s.manifest(ctx, j.Base)
	if err != nil {
		return nil, err
	}
	if err := m.CheckObjects(ctx, d.s.deps.Blobs); err != nil {
		return nil, err
	}
	if r.plan, err = checkpoint.Restore(m, d.graph, j.Parallelism); err != nil {
		return nil, err
	}
	if r.plan.Lists, r.given, err = d.s.withoutGivenUp(ctx, m, r.plan.Lists); err != nil {
		return nil, err
	}
	kept, err := d.s.deps.Checkpoints.Retained(ctx, j.ID)
	for _, k := range slices.Backward(kept) {
		if k.CommitsOpen {
			r.open = append(r.open, k.ID)
		}
	}
	return r, err
}

// before is where the tasks were that were deployed last.
func (d *driver) before() []deploy.Placed {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.before
}

// deploy sends every worker its tasks. A worker that does not answer is asked again
// until it does or is found dead.
func (d *driver) deploy(ctx context.Context) {
	j := d.machine.job
	was := slices.Concat(d.before(), d.s.keepers(j.ID))
	d.mu.Lock()
	placed := placeTasks(d.graph, j.Parallelism, stay(d.machine.slots, was))
	d.mu.placed, d.mu.before = placed, placed
	r := d.mu.restore
	d.mu.Unlock()
	lists := r.lists()
	if err := d.s.deps.Control.Ready(); err != nil {
		d.record(ctx, weir.Event{Job: j.ID, Kind: "status", Attempt: j.Attempt.Number, Message: fmt.Sprintf("its tasks wait for NATS: %v", err)})
	}
	for _, w := range workersIn(placed) {
		m := deploy.Deploy{
			Header: deploy.Head(), Job: j.ID, Attempt: j.Attempt, Term: d.term, Graph: d.graph, Mode: d.options.Mode, Parallelism: j.Parallelism, FrameLimit: d.s.deps.Control.MaxPayload(),
			MaxParallelism: d.graph.MaxParallelism, Restored: r.ref.Checkpoint, RestoredJob: r.ref.Job, Placement: placed, Lists: lists, GivenUp: r.given,
		}
		for _, p := range placed {
			if p.Worker == w {
				m.Tasks = append(m.Tasks, r.task(p.Task))
			}
		}
		d.async(func() { d.deployTo(ctx, w, m) })
	}
}

func (d *driver) deployTo(ctx context.Context, w weir.WorkerID, m deploy.Deploy) {
	for {
		_, err := d.s.ask(ctx, w, deploy.KindDeploy, m)
		final := deploy.Refused(err) || errors.Is(err, weir.ErrInvalid)
		switch {
		case err == nil, ctx.Err() != nil, final && errors.Is(err, weir.ErrStale):
			return
		case final:
			d.post(evTaskFailed{m.Attempt, weir.Failure{Reason: "deploy", Worker: w, Message: fmt.Sprintf("worker %s: %v", w, err)}, !errors.Is(err, weir.ErrInvalid)})
			return
		}
		d.log.Warn("worker did not take its tasks, asked again", "worker", w, "attempt", m.Attempt, "err", err)
		if pause(ctx, askAgain) != nil {
			return
		}
	}
}

func workersIn(placed []deploy.Placed) []weir.WorkerID {
	var list []weir.WorkerID
	for _, p := range placed {
		list = append(list, p.Worker)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// lists is the list state of each operator: every subtask gets all of it.
func (r *restore) lists() listItems {
	if r.plan == nil {
		return nil
	}
	return r.plan.Lists
}

// task gives one task its own part.
func (r *restore) task(id weir.TaskID) deploy.Task {
	t := deploy.Task{Task: id}
	if r.plan == nil {
		return t
	}
	i := slices.IndexFunc(r.plan.Tasks, func(p checkpoint.TaskRestore) bool { return p.Task == id })
	from := r.plan.Tasks[i]
	t.Ended = from.Ended
	for _, op := range from.Keyed {
		t.Keyed = append(t.Keyed, deploy.Keyed{Operator: op.Operator, Handles: op.Handles})
	}
	return t
}

// coordinate starts the coordinator of the attempt's checkpoints.
func (d *driver) coordinate(ctx context.Context) {
	j := d.machine.job
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.mu.restore
	reached := &tasks{d, j.Attempt, d.mu.placed}
	run := &coordination{doneC: make(chan struct{}), tasks: reached, runner: checkpoint.NewRunner(checkpoint.Config{
		Fence: d.fence(), Graph: d.graph, Parallelism: j.Parallelism, Options: d.options,
		Base: r.ref, LastID: j.LastCheckpoint, First: first(j.ID, d.options.Interval), OpenCommits: r.open, Workers: workersOf(d.mu.placed),
		Store: d.s.deps.Checkpoints, Blobs: d.s.deps.Blobs, Tasks: reached,
		Now: d.s.now, Logger: d.s.deps.Logger, OnEvent: d.record, Garbage: func() { d.s.clean.wake(d.id) },
	})}
	d.mu.run = run
	ended := d.mu.ended
	d.async(func() { d.runCoordinator(ctx, run, j.Attempt) })
	d.async(func() {
		for _, task := range ended {
			run.runner.SourceEnded(task)
		}
		d.awaitFinal(ctx, run, j.Attempt)
	})
}

// spread is how much sooner than after an interval a job's first periodic checkpoint is due,
// at most, and half an interval.
const spread = 30 * time.Second

// first is when a job's first periodic checkpoint is due. It goes by the job, so that those
// that a server takes over at once do not take all their checkpoints at the same moments.
func first(job weir.JobID, interval time.Duration) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(job))
	room := uint64(min(interval/2, spread))
	return interval - time.Duration(h.Sum64()%(room+1))
}

// workersOf says where each task runs.
func workersOf(placed []deploy.Placed) map[weir.TaskID]weir.WorkerID {
	at := map[weir.TaskID]weir.WorkerID{}
	for _, p := range placed {
		at[p.Task] = p.Worker
	}
	return at
}

// evStale: a write of the attempt's coordinator met a newer owner.
type evStale struct{ Attempt weir.AttemptID }

func (evStale) isEvent() {}

// runCoordinator runs it and turns its end into an event.
func (d *driver) runCoordinator(ctx context.Context, run *coordination, attempt weir.AttemptID) {
	defer close(run.doneC)
	err := run.runner.Run(ctx)
	var failed *checkpoint.AttemptFailure
	switch {
	case err == nil:
	case errors.As(err, &failed):
		d.post(evTaskFailed{attempt, failed.Failure, failed.Failure.Reason != checkpoint.ReasonMetastoreBack})
	case errors.Is(err, weir.ErrStale):
		d.post(evStale{attempt})
	default:
		d.post(evTaskFailed{attempt, weir.Failure{Reason: "checkpoint", Message: err.Error()}, true})
	}
}

// awaitFinal waits for the last checkpoint of the attempt.
func (d *driver) awaitFinal(ctx context.Context, run *coordination, attempt weir.AttemptID) {
	select {
	case e := <-run.runner.Ending():
		if e.Stopped {
			d.post(evSaved{Attempt: attempt})
		} else {
			d.post(evFinal{attempt})
		}
	case <-run.doneC:
	case <-ctx.Done():
	}
}

// record appends a line to the job's history.
func (d *driver) record(ctx context.Context, e weir.Event) {
	if err := d.s.deps.Store.AddEvent(ctx, e); err != nil && ctx.Err() == nil {
		d.log.Warn("event not recorded", "err", err)
	}
}

// save takes the savepoint of a stop. Its success is told by awaitFinal, once its
// output is visible; its failure here.
func (d *driver) save(ctx context.Context, name string) {
	d.mu.Lock()
	run, attempt := d.mu.run, d.mu.attempt
	d.mu.Unlock()
	failed := func(f weir.Failure) { d.post(evSaved{Attempt: attempt, Failure: &f}) }
	id, _, err := run.runner.Savepoint(ctx, name, true)
	if err != nil {
		if ctx.Err() == nil {
			failed(weir.Failure{Reason: checkpoint.ReasonTrigger, Message: err.Error()})
		}
		return
	}
	var r checkpoint.Record
	err = d.insist(ctx, "read savepoint", func() (err error) { // it may be complete: then the job ends
		r, err = run.runner.Wait(ctx, id)
		return err
	})
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, weir.ErrStale):
		d.post(evStale{attempt})
	case err != nil:
		failed(weir.Failure{Reason: checkpoint.ReasonStore, Message: err.Error()})
	case r.Status != checkpoint.StatusCompleted && r.Failure != nil:
		failed(*r.Failure)
	case r.Status != checkpoint.StatusCompleted:
		failed(weir.Failure{Reason: checkpoint.ReasonCanceled, Message: "savepoint " + name + " was given up"})
	}
}

// trigger begins a checkpoint or savepoint, or cancels one. Right after the job
// became RUNNING its coordinator may still be about to start.
func (d *driver) trigger(ctx context.Context, req triggerRequest) (triggered, error) {
	var run *coordination
	wctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := d.s.await(wctx, func() (bool, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		run = d.mu.run
		return run != nil, nil
	})
	if err != nil {
		return triggered{}, fmt.Errorf("%w: job %s is between two attempts: try again", weir.ErrConflict, d.id)
	}
	t := triggered{Header: deploy.Head(), Checkpoint: req.Cancel}
	switch {
	case req.Cancel != 0:
		err = run.runner.Cancel(ctx, req.Cancel)
	case req.Savepoint:
		t.Checkpoint, t.Turn, err = run.runner.Savepoint(ctx, req.Name, false)
	default:
		t.Checkpoint, t.Turn, err = run.runner.Checkpoint(ctx)
	}
	return t, err
}

// tasks are the tasks of an attempt as its coordinator reaches them.
type tasks struct {
	d       *driver
	attempt weir.AttemptID
	placed  []deploy.Placed
}

// Trigger tells the source tasks to begin a checkpoint. Workers without any are told
// which ones are pending; the next trigger mends what they miss.
func (t *tasks) Trigger(ctx context.Context, tr checkpoint.Trigger, targets []weir.TaskID) error {
	for _, w := range t.without(targets) {
		t.d.async(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // ctx ends with the call
			defer cancel()
			_, _ = t.d.s.ask(ctx, w, deploy.KindTrigger, deploy.Trigger{Header: deploy.Head(), Trigger: tr})
		})
	}
	var mu sync.Mutex
	missed := checkpoint.Undelivered{}
	_ = t.each(targets, func(w weir.WorkerID, mine []weir.TaskID) error {
		_, err := t.d.s.ask(ctx, w, deploy.KindTrigger, deploy.Trigger{Header: deploy.Head(), Trigger: tr, Tasks: mine})
		mu.Lock()
		defer mu.Unlock()
		for _, task := range mine {
			if err != nil {
				missed[task] = err
			}
		}
		return nil
	})
	if len(missed) > 0 {
		return missed
	}
	return nil
}

// without lists the workers that run none of the tasks.
func (t *tasks) without(targets []weir.TaskID) []weir.WorkerID {
	return slices.DeleteFunc(workersIn(t.placed), func(w weir.WorkerID) bool {
		return slices.ContainsFunc(t.placed, func(p deploy.Placed) bool { return p.Worker == w && slices.Contains(targets, p.Task) })
	})
}

// Notify asks sink tasks to commit.
func (t *tasks) Notify(ctx context.Context, id weir.CheckpointID, targets []weir.TaskID) error {
	return t.each(targets, func(w weir.WorkerID, mine []weir.TaskID) error {
		_, err := t.d.s.ask(ctx, w, deploy.KindCommit, deploy.Commit{Header: deploy.Head(), Job: t.d.id, Attempt: t.attempt, Checkpoint: id, Tasks: mine})
		return err
	})
}

// each calls f, at the same time, for every worker that runs some of the targets.
func (t *tasks) each(targets []weir.TaskID, f func(weir.WorkerID, []weir.TaskID) error) error {
	mine := map[weir.WorkerID][]weir.TaskID{}
	for _, p := range t.placed {
		if slices.Contains(targets, p.Task) {
			mine[p.Worker] = append(mine[p.Worker], p.Task)
		}
	}
	return together(workersIn(t.placed), func(w weir.WorkerID) error {
		if len(mine[w]) == 0 {
			return nil
		}
		return f(w, mine[w])
	})
}

// answerIn bounds how long a worker may take to say how far its tasks are.
const answerIn = 2 * time.Second

// Progress asks all workers of the attempt, at the same time, how far their tasks are.
func (t *tasks) Progress(ctx context.Context, id weir.CheckpointID) ([]checkpoint.Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	var mu sync.Mutex
	var all []checkpoint.Progress
	var silent []error
	_ = together(workersIn(t.placed), func(w weir.WorkerID) error {
		var m deploy.Progressed
		body, err := t.d.s.ask(ctx, w, deploy.KindProgress, deploy.Progress{Header: deploy.Head(), Job: t.d.id, Attempt: t.attempt, Checkpoint: id})
		if err == nil {
			err = deploy.Decode(body, &m)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			silent = append(silent, fmt.Errorf("worker %s did not answer: %w", w, err))
		}
		for i := range m.Tasks {
			m.Tasks[i].Worker = w
		}
		all = append(all, m.Tasks...)
		return nil
	})
	slices.SortFunc(all, func(a, b checkpoint.Progress) int { return a.Task.Compare(b.Task) })
	slices.SortFunc(silent, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return all, errors.Join(silent...)
}
