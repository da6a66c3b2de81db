package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint"
	"weir/exec"
	"weir/exec/deploy"
	"weir/planner/plan"
)

// An attempt is the part of an attempt that runs on this worker.
type attempt struct {
	w      *Worker
	m      deploy.Deploy
	log    *slog.Logger
	ctx    context.Context // ends when the attempt is stopped or superseded
	cancel context.CancelFunc
	idleC  chan struct{} // closed when no task runs any more
	doneC  chan struct{} // closed when nothing of it is left
	report reports

	mu struct {
		sync.Mutex
		tasks  map[weir.TaskID]*exec.Task // empty until they are built
		closed bool                       // the server has closed it
		paused bool                       // sources read nothing
	}
}

// start begins an attempt: it is built and run in a goroutine of its own. w.mu is held.
func (w *Worker) start(m deploy.Deploy) *attempt {
	a := &attempt{w: w, m: m, log: w.cfg.Logger.With("job", m.Job, "attempt", m.Attempt), idleC: make(chan struct{}), doneC: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancel(w.runCtx)
	a.report.moreC = make(chan struct{}, 1)
	a.mu.paused = w.mu.paused
	w.group.Go(func() error { a.run(); return nil })
	return a
}

// run is the attempt's goroutine: it owns those of the tasks and of the reports.
func (a *attempt) run() {
	defer close(a.doneC)
	defer a.cancel()
	sendCtx, sent := context.WithCancel(a.ctx)
	defer sent()
	var sender errgroup.Group
	sender.Go(func() error { a.send(sendCtx); return nil })
	err := a.runTasks()
	close(a.idleC)
	if errors.Is(err, syscall.ENOSPC) {
		a.w.kept.yield()
	}
	a.w.kick()
	if err == nil {
		<-a.ctx.Done() // W6
	}
	a.report.end()
	sender.Wait() //nolint:errcheck // it fails with the attempt only
	a.w.cfg.Network.Release(a.m.Job, a.m.Attempt)
	a.w.forget(a)
	a.w.kick()
}

// runTasks builds and runs the tasks until all have ended; one that fails ends the
// others (W4).
func (a *attempt) runTasks() error {
	tasks, err := exec.Build(a.ctx, a.buildConfig())
	if err != nil {
		if a.ctx.Err() == nil {
			a.failBuild(err)
		}
		return err
	}
	a.log.Info("tasks built", "worker", a.w.cfg.ID, "tasks", len(tasks))
	a.built(tasks) // before they report: an answer may be a command for them
	g, ctx := errgroup.WithContext(a.ctx)
	for _, t := range tasks {
		g.Go(func() error { return t.Run(ctx) })
		a.report.add(deploy.Report{Status: &deploy.TaskStatus{Task: t.ID()}})
	}
	a.w.kick()
	return g.Wait()
}

// built lets commands reach the tasks.
func (a *attempt) built(tasks []*exec.Task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.tasks = make(map[weir.TaskID]*exec.Task, len(tasks))
	for _, t := range tasks {
		a.mu.tasks[t.ID()] = t
		t.Pause(a.mu.paused)
	}
	if a.mu.closed {
		a.closeSources()
	}
}

// failBuild reports a deployment that cannot be built.
func (a *attempt) failBuild(err error) {
	f := weir.Failure{Reason: exec.ReasonRestore, Worker: a.w.cfg.ID, Message: exec.Message(err)}
	var row *exec.RowError
	bad := errors.As(err, &row)
	if bad {
		f.Reason = exec.ReasonRow
	} else if a.m.Restored == 0 {
		f.Reason = exec.ReasonOperator
	}
	restart := !bad && !errors.Is(err, weir.ErrInvalid) && !errors.Is(err, weir.ErrNotFound)
	a.report.add(deploy.Report{Status: &deploy.TaskStatus{Task: a.m.Tasks[0].Task, Failure: &f, Restart: restart}})
}

func (a *attempt) buildConfig() exec.BuildConfig {
	m, cfg := a.m, a.w.cfg
	ids := make([]weir.TaskID, len(m.Tasks))
	for i, t := range m.Tasks {
		ids[i] = t.Task
	}
	return exec.BuildConfig{
		Job: m.Job, Attempt: m.Attempt, Worker: cfg.ID, Graph: &m.Graph, Mode: m.Mode, Parallelism: m.Parallelism, Tasks: ids, FrameLimit: m.FrameLimit,
		Restored: restored(m), GivenUp: m.GivenUp, Network: &channels{a}, Blobs: a.w.kept,
		Named:    func(id weir.TaskID, objects []string) { a.w.kept.named(m.Job, m.Attempt, id, objects) },
		Reporter: a, Openers: cfg.Openers, Files: cfg.Files, Logger: cfg.Logger, Options: cfg.Tasks,
	}
}

// restored puts together what each task starts from; nil: nothing.
func restored(m deploy.Deploy) map[weir.TaskID]checkpoint.TaskSnapshot {
	if m.Restored == 0 {
		return nil
	}
	out := make(map[weir.TaskID]checkpoint.TaskSnapshot, len(m.Tasks))
	for _, t := range m.Tasks {
		snap := checkpoint.TaskSnapshot{Task: t.Task, Ended: t.Ended}
		for _, op := range m.Graph.Chains[t.Task.Chain].Operators {
			if list, ok := m.Lists[op.ID]; ok {
				snap.Operators = append(snap.Operators, checkpoint.OperatorSnapshot{Operator: op.ID, List: list})
			}
		}
		for _, k := range t.Keyed {
			snap.Operators = append(snap.Operators, checkpoint.OperatorSnapshot{Operator: k.Operator, Keyed: k.Handles})
		}
		out[t.Task] = snap
	}
	return out
}

// task finds a task that runs.
func (a *attempt) task(id weir.TaskID) *exec.Task {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.tasks[id]
}

// close tells the sources to end; the others follow through their channels.
func (a *attempt) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.closed = true
	a.closeSources()
}

// pause has the sources read nothing more, or go on.
func (a *attempt) pause(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.paused = on
	for _, t := range a.mu.tasks {
		t.Pause(on)
	}
}

// relax has the tasks look whether their state is beyond its share.
func (a *attempt) relax() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.mu.tasks {
		t.Relax()
	}
}

func (a *attempt) closeSources() {
	for id, t := range a.mu.tasks {
		if isSource(a.m.Graph, id) {
			t.Close()
		}
	}
}

func isSource(g plan.Graph, id weir.TaskID) bool {
	return g.Chains[id.Chain].Operators[0].Kind == plan.Source
}

// slots counts the slots that the attempt takes here.
func (a *attempt) slots() int {
	subtasks := map[int]bool{}
	for _, t := range a.m.Tasks {
		subtasks[t.Task.Subtask] = true
	}
	return len(subtasks)
}

// running describes the attempt for a heartbeat.
func (a *attempt) running() deploy.Running {
	r := deploy.Running{Job: a.m.Job, Attempt: a.m.Attempt}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.m.Tasks {
		stats := deploy.TaskStats{Task: t.Task}
		if task := a.mu.tasks[t.Task]; task != nil {
			stats = statsOf(task.Stats())
		}
		r.Tasks = append(r.Tasks, stats)
	}
	return r
}

// statsOf are what a heartbeat says of a task.
func statsOf(s exec.Stats) deploy.TaskStats {
	stats := deploy.TaskStats{
		Task: s.Task, RowsIn: s.RowsIn, RowsOut: s.RowsOut, BytesIn: s.BytesIn, BytesOut: s.BytesOut,
		Age: s.Age.Microseconds(), Waited: s.Waited.Microseconds(), Blocked: s.Blocked.Microseconds(), Ended: s.Ended, Rejected: s.Rejected,
		State: s.StateBytes, Spilled: s.SpilledEntries, Uploads: s.UploadBytes, Delta: s.DeltaSeconds,
	}
	if len(s.Operators) > 1 {
		for _, o := range s.Operators {
			stats.Operators = append(stats.Operators, deploy.OperatorStats{RowsIn: o.RowsIn, BytesIn: o.BytesIn, Busy: o.Busy.Microseconds()})
		}
	}
	return stats
}

// channels gives an attempt's tasks their ends of channels.
type channels struct{ a *attempt }

// Inbound opens a receiving end.
func (c *channels) Inbound(id weir.ChannelID, wakeC chan<- struct{}) (weir.Inbound, error) {
	return c.a.w.cfg.Network.Inbound(c.a.m.Job, c.a.m.Attempt, id, c.local(id.From), wakeC)
}

// Outbound opens a sending end.
func (c *channels) Outbound(id weir.ChannelID, broken func(error)) (weir.Outbound, bool, error) {
	local := c.local(id.To)
	out, err := c.a.w.cfg.Network.Outbound(c.a.m.Job, c.a.m.Attempt, id, local, broken)
	return out, local, err
}

func (c *channels) local(task weir.TaskID) bool {
	return slices.ContainsFunc(c.a.m.Tasks, func(t deploy.Task) bool { return t.Task == task })
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
