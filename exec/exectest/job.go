package exectest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/op"
	"weir/planner/plan"
)

// A Config says what job to run and how. Openers.Operator may be nil: op.Open.
type Config struct {
	Graph       *plan.Graph
	Parallelism int
	Mode        checkpoint.Mode // empty: exactly_once
	Blobs       blob.Store
	From        *Snapshot // nil: from nothing
	Files       []string
	Openers     exec.Openers
	// Encode sends batches as bytes, as between workers.
	Encode bool
	// Capacity of a channel in frames (default 4).
	Capacity int
	Attempt  int64
	Options  exec.Options
}

// A Snapshot is a completed checkpoint of a job.
type Snapshot struct {
	ID          weir.CheckpointID
	Parallelism int
	Tasks       map[weir.TaskID]checkpoint.TaskSnapshot
}

// A Job runs in this process until it is stopped or closed.
type Job struct {
	tb     testing.TB
	config Config
	tasks  []*exec.Task
	last   weir.CheckpointID
	cancel context.CancelFunc
	group  *errgroup.Group
	ctx    context.Context
	events chan struct{} // capacity 1: something below changed

	mu struct {
		sync.Mutex
		acks      map[weir.CheckpointID]map[weir.TaskID]checkpoint.Ack
		ended     map[weir.TaskID]bool
		committed map[weir.TaskID]weir.CheckpointID
		failure   *weir.Failure
		restart   bool
	}
}

const testJob = weir.JobID("job_00000000000000000000000000000001")

// Timeout bounds every wait of this package.
const Timeout = 2 * time.Minute

// Start builds the job's tasks and runs them. It fails the test when they cannot be built.
func Start(tb testing.TB, c Config) *Job {
	tb.Helper()
	j, err := Open(tb, c)
	if err != nil {
		tb.Fatalf("start: %v", err)
	}
	return j
}

// Open is Start that returns the error of building.
func Open(tb testing.TB, c Config) (*Job, error) {
	tb.Helper()
	if c.Openers.Operator == nil {
		c.Openers.Operator = op.Open
	}
	if c.Capacity == 0 {
		c.Capacity = 4
	}
	j := &Job{tb: tb, config: c, events: make(chan struct{}, 1)}
	j.mu.acks = map[weir.CheckpointID]map[weir.TaskID]checkpoint.Ack{}
	j.mu.ended, j.mu.committed = map[weir.TaskID]bool{}, map[weir.TaskID]weir.CheckpointID{}
	b := exec.BuildConfig{
		Job: testJob, Attempt: weir.AttemptID{Number: max(c.Attempt, 1), Tag: "00000001"},
		Worker: "w1", Graph: c.Graph, Parallelism: c.Parallelism, Mode: c.Mode, Network: NewNetwork(c.Capacity, c.Encode),
		Blobs: c.Blobs, Reporter: (*reporter)(j), Openers: c.Openers, Files: c.Files, Logger: slog.New(slog.DiscardHandler), Options: c.Options,
	}
	for chain, ch := range c.Graph.Chains {
		for s := range ch.Subtasks(c.Parallelism) {
			b.Tasks = append(b.Tasks, weir.TaskID{Chain: chain, Subtask: s})
		}
	}
	if c.From != nil {
		var err error
		if b.Restored, err = assign(c.Graph, c.From, c.Parallelism); err != nil {
			return nil, err
		}
		j.last = c.From.ID
	}
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	tasks, err := exec.Build(ctx, b)
	if err != nil {
		cancel()
		return nil, err
	}
	j.tasks, j.cancel = tasks, cancel
	j.group, j.ctx = errgroup.WithContext(ctx)
	for _, t := range tasks {
		j.group.Go(func() error { return t.Run(j.ctx) })
	}
	tb.Cleanup(func() {
		j.cancel()
		_ = j.group.Wait() // its error was asked for, or the test has failed
	})
	return j, nil
}

// manifest is what the coordinator would write of a snapshot, after a turn through its
// bytes.
func (s *Snapshot) manifest(g *plan.Graph) (*checkpoint.Manifest, error) {
	m := &checkpoint.Manifest{
		Version: checkpoint.ManifestVersion, Job: testJob, Checkpoint: s.ID, Type: checkpoint.TypeCheckpoint,
		Parallelism: s.Parallelism, MaxParallelism: g.MaxParallelism,
	}
	for i, c := range g.Chains {
		for _, o := range c.Operators {
			m.Operators = append(m.Operators, checkpoint.ManifestOperator{ID: o.ID, Name: o.Name, Kind: o.Kind, Chain: i})
		}
	}
	for _, t := range s.Tasks {
		m.Tasks = append(m.Tasks, t)
	}
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return checkpoint.DecodeManifest(data)
}

// assign gives every task of a job at a parallelism its share of a snapshot.
func assign(g *plan.Graph, s *Snapshot, parallelism int) (map[weir.TaskID]checkpoint.TaskSnapshot, error) {
	m, err := s.manifest(g)
	if err != nil {
		return nil, err
	}
	p, err := checkpoint.Restore(m, *g, parallelism)
	if err != nil {
		return nil, err
	}
	out := map[weir.TaskID]checkpoint.TaskSnapshot{}
	for _, t := range p.Tasks {
		snap := checkpoint.TaskSnapshot{Task: t.Task, Ended: t.Ended}
		for _, k := range t.Keyed {
			snap.Operators = append(snap.Operators, checkpoint.OperatorSnapshot{Operator: k.Operator, Keyed: k.Handles})
		}
		for _, o := range g.Chains[t.Task.Chain].Operators {
			if list, ok := p.Lists[o.ID]; ok {
				snap.Operators = append(snap.Operators, checkpoint.OperatorSnapshot{Operator: o.ID, List: list})
			}
		}
		out[t.Task] = snap
	}
	return out, nil
}

// wait returns when done says so or the job has failed or run out of time.
func (j *Job) wait(what string, done func() bool) error {
	for {
		j.mu.Lock()
		ok, failure := done(), j.mu.failure
		j.mu.Unlock()
		switch {
		case ok:
			return nil
		case failure != nil:
			return fmt.Errorf("%s: %s: %s", what, failure.Reason, failure.Message)
		}
		select {
		case <-j.events:
		case <-j.ctx.Done():
			j.mu.Lock()
			failure = j.mu.failure
			j.mu.Unlock()
			if failure == nil {
				return fmt.Errorf("%s: %w", what, j.ctx.Err())
			}
		}
	}
}

// Checkpoint takes a checkpoint of the running job, and commits it.
func (j *Job) Checkpoint() (*Snapshot, error) {
	s, err := j.Snapshot()
	if err != nil {
		return nil, err
	}
	return s, j.commit(s.ID)
}

// Snapshot takes a checkpoint that is decided and never committed by this attempt, as
// when all workers die at the decision.
func (j *Job) Snapshot() (*Snapshot, error) {
	id, err := j.Begin()
	if err != nil {
		return nil, err
	}
	return j.Await(id)
}

// Begin triggers a checkpoint over no base, and waits for nothing.
func (j *Job) Begin() (weir.CheckpointID, error) { return j.BeginAs(checkpoint.Trigger{}) }

// BeginAs triggers a checkpoint or a savepoint with the base of a trigger.
func (j *Job) BeginAs(tr checkpoint.Trigger) (weir.CheckpointID, error) {
	j.last++
	tr.Checkpoint, tr.At = j.last, time.Now()
	for _, t := range j.sources() {
		if err := t.Trigger(tr); err != nil {
			return 0, err
		}
	}
	return j.last, nil
}

// Await waits until all tasks have acknowledged a checkpoint. One that was declined is
// an error, which says by whom.
func (j *Job) Await(id weir.CheckpointID) (*Snapshot, error) {
	err := j.wait(fmt.Sprintf("checkpoint %d", id), func() bool { return len(j.mu.acks[id]) == len(j.tasks) })
	if err != nil {
		return nil, err
	}
	s := &Snapshot{ID: id, Parallelism: j.config.Parallelism, Tasks: map[weir.TaskID]checkpoint.TaskSnapshot{}}
	for _, a := range j.Acks(id) {
		if a.Failure != nil {
			err = fmt.Errorf("checkpoint %d: %s: %s", id, a.Failure.Reason, a.Failure.Message)
		} else {
			s.Tasks[a.Task] = *a.Snapshot
		}
	}
	return s, err
}

// Acks returns what the tasks have said of a checkpoint so far, in their order.
func (j *Job) Acks(id weir.CheckpointID) []checkpoint.Ack {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := slices.Collect(maps.Values(j.mu.acks[id]))
	slices.SortFunc(list, func(a, b checkpoint.Ack) int { return a.Task.Compare(b.Task) })
	return list
}

// Wanted tells all tasks which checkpoints before newest are pending.
func (j *Job) Wanted(newest weir.CheckpointID, pending ...weir.CheckpointID) {
	for _, t := range j.tasks {
		t.Wanted(newest, pending)
	}
}

// Relax has all tasks look whether their state is beyond its share of the budget.
func (j *Job) Relax() {
	for _, t := range j.tasks {
		t.Relax()
	}
}

// Progress asks all tasks how far they are with a checkpoint.
func (j *Job) Progress(id weir.CheckpointID) []checkpoint.Progress {
	var list []checkpoint.Progress
	for _, t := range j.tasks {
		list = append(list, t.Progress(id))
	}
	return list
}

func (j *Job) commit(id weir.CheckpointID) error {
	for _, t := range j.tasks {
		t.Commit(id)
	}
	return j.wait(fmt.Sprintf("commit %d", id), func() bool {
		return len(j.mu.committed) == len(j.tasks) && !slices.ContainsFunc(j.tasks, func(t *exec.Task) bool {
			return j.mu.committed[t.ID()] < id
		})
	})
}

func (j *Job) sources() []*exec.Task {
	var list []*exec.Task
	for _, t := range j.tasks {
		if j.config.Graph.Chains[t.ID().Chain].Operators[0].Kind == plan.Source {
			list = append(list, t)
		}
	}
	return list
}

// Finish waits for the end of all sources, takes the final checkpoint, and leaves the
// tasks running, so that the result can be read.
func (j *Job) Finish() (*Snapshot, error) {
	n := len(j.sources())
	if err := j.wait("end of input", func() bool { return len(j.mu.ended) == n }); err != nil {
		return nil, err
	}
	return j.Checkpoint()
}

// Close closes a finished job's sources and waits for all tasks to return.
func (j *Job) Close() error {
	for _, t := range j.sources() {
		t.Close()
	}
	return j.group.Wait()
}

// Kill ends all tasks, as the death of their worker would.
func (j *Job) Kill() {
	j.cancel()
	if err := j.group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		j.tb.Errorf("kill: %v", err)
	}
}

// Abandon is Kill for a job that may fail, or has failed, by itself.
func (j *Job) Abandon() {
	j.cancel()
	_ = j.group.Wait() // Failure tells
}

// Failure returns why the job failed and whether a restart may help; nil: it did not.
func (j *Job) Failure() (*weir.Failure, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.failure, j.mu.restart
}

// Read asks all result tasks and merges their pages.
func (j *Job) Read(q exec.Query) (exec.Page, error) { return j.read(plan.Result, q) }

// Rejects reads the rejected rows, all of them.
func (j *Job) Rejects() (exec.Page, error) { return j.read(plan.Rejects, exec.Query{}) }

func (j *Job) read(kind plan.OperatorKind, q exec.Query) (exec.Page, error) {
	var pages []exec.Page
	for _, t := range j.tasks {
		ops := j.config.Graph.Chains[t.ID().Chain].Operators
		if ops[len(ops)-1].Kind != kind {
			continue
		}
		p, err := t.Query(j.ctx, q)
		if err != nil {
			return exec.Page{}, err
		}
		pages = append(pages, p)
	}
	return merge(pages, q.Limit), nil
}

// merge joins the pages of several subtasks, answers to one query without Changes,
// into one.
func merge(pages []exec.Page, limit int) exec.Page {
	out := exec.Page{Full: true, Rows: []exec.Row{}}
	for _, p := range pages {
		out.Rows = append(out.Rows, p.Rows...)
		out.Total += p.Total
		out.More = out.More || p.More
		out.Version = max(out.Version, p.Version)
		out.Counts = append(out.Counts, p.Counts...)
	}
	slices.SortStableFunc(out.Rows, func(a, b exec.Row) int { return bytes.Compare(a.Sort, b.Sort) })
	if limit > 0 && len(out.Rows) > limit {
		out.Rows, out.More = out.Rows[:limit], true
	}
	return out
}

// Stats returns the tasks' counters.
func (j *Job) Stats() []exec.Stats {
	var list []exec.Stats
	for _, t := range j.tasks {
		list = append(list, t.Stats())
	}
	return list
}

// reporter is the Job as its tasks see it.
type reporter Job

func (r *reporter) note(f func()) {
	r.mu.Lock()
	f()
	r.mu.Unlock()
	select {
	case r.events <- struct{}{}:
	default:
	}
}

// Ack implements exec.Reporter.
func (r *reporter) Ack(a checkpoint.Ack) {
	r.note(func() {
		if r.mu.acks[a.Checkpoint] == nil {
			r.mu.acks[a.Checkpoint] = map[weir.TaskID]checkpoint.Ack{}
		}
		r.mu.acks[a.Checkpoint][a.Task] = a
	})
}

// Ended implements exec.Reporter.
func (r *reporter) Ended(task weir.TaskID) { r.note(func() { r.mu.ended[task] = true }) }

// Committed implements exec.Reporter.
func (r *reporter) Committed(task weir.TaskID, id weir.CheckpointID) {
	r.note(func() { r.mu.committed[task] = id })
}

// Failed implements exec.Reporter; the first failure counts.
func (r *reporter) Failed(_ weir.TaskID, f weir.Failure, restart bool) {
	r.note(func() {
		if r.mu.failure == nil {
			r.mu.failure, r.mu.restart = &f, restart
		}
	})
}
