package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/plan"
)

// Openers make operators. They are handed in, because connectors and operators
// import this package: op.Open, source.Open and sink.Open.
type Openers struct {
	Source   func(ctx context.Context, s Setup) (Source, error)
	Operator func(ctx context.Context, s Setup) (Operator, error)
	Sink     func(ctx context.Context, s Setup) (Operator, error)
}

// Options tune tasks; the zero value works.
type Options struct {
	// Now is the clock (default time.Now).
	Now func() time.Time
	// Disk takes the state that does not fit into the tasks' share of Budget; nil: all
	// of it stays in memory.
	Disk   *state.Disk
	Budget *state.Budget
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// A BuildConfig says which tasks of an attempt to build and from what.
type BuildConfig struct {
	Job         weir.JobID
	Attempt     weir.AttemptID
	Worker      weir.WorkerID
	Graph       *plan.Graph
	Parallelism int
	// Mode of the job's checkpoints; empty: exactly_once.
	Mode checkpoint.Mode
	// Tasks are the worker's, in any order.
	Tasks []weir.TaskID
	// Restored holds, per task, what it restores: for each operator the keyed handles
	// that overlap its key groups and the list items of all subtasks. nil: a start from
	// nothing; otherwise every task of Tasks has an entry, operators without state none.
	Restored map[weir.TaskID]checkpoint.TaskSnapshot
	// GivenUp holds the segments of each sink that its part of the snapshot names and that
	// are not to be made visible; they are not among Restored.
	GivenUp map[weir.OperatorID][]json.RawMessage
	// FrameLimit is the greatest payload of a frame that the network takes, the same for all
	// tasks of the attempt wherever they run: at least MinFrame; 0, or more than MaxFrame:
	// MaxFrame.
	FrameLimit int
	Network    Network
	Blobs      blob.Store
	// Named is told which objects the snapshots of a task's state name, whenever they
	// are others: what Blobs keeps near is of use for these. nil: nobody asks.
	Named    func(id weir.TaskID, objects []string)
	Reporter Reporter
	Openers  Openers
	Files    []string // see Setup.Files
	Logger   *slog.Logger
	Options  Options
}

// Build opens and restores the tasks of one worker; none of them runs yet. On an
// error nothing stays open; one that concerns a snapshot names the object. The work
// of restoring is done here, of several tasks at a time, before any row is read; but the channels
// of all are opened first, so that senders elsewhere, which may be restored sooner, get an answer.
func Build(ctx context.Context, c BuildConfig) ([]*Task, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	// Subtasks 0 come first: others may wait for what they say, here and on other workers,
	// and they wait for nobody.
	order := slices.Clone(c.Tasks)
	slices.SortStableFunc(order, func(a, b weir.TaskID) int { return min(a.Subtask, 1) - min(b.Subtask, 1) })
	tasks := make([]*Task, 0, len(order))
	fail := func(err error) error {
		for _, open := range tasks {
			err = errors.Join(err, open.shut())
		}
		return err
	}
	for _, id := range order {
		t := c.task(id)
		tasks = append(tasks, t)
		if err := c.guarded(t, func() error { return c.connect(t) }); err != nil {
			return nil, fail(fmt.Errorf("build task %v: %w", t.id, err))
		}
	}
	if err := c.openAll(ctx, tasks); err != nil {
		return nil, fail(err)
	}
	return tasks, nil
}

// openAll opens tasks in their order, and where they restore something, side by side, as many at
// a time as there are processors. The first error ends the others.
func (c *BuildConfig) openAll(ctx context.Context, tasks []*Task) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(1)
	if c.Restored != nil {
		g.SetLimit(runtime.GOMAXPROCS(0))
	}
	for _, t := range tasks {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := c.guarded(t, func() error { return c.openChain(ctx, t) }); err != nil {
				return fmt.Errorf("build task %v: %w", t.id, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func (c *BuildConfig) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case c.Graph == nil:
		return fmt.Errorf("%w: build without a graph", weir.ErrInvalid)
	case c.Graph.Version != plan.Version:
		bad("graph has version %d, this program knows %d", c.Graph.Version, plan.Version)
	case c.Parallelism < 1 || c.Parallelism > c.Graph.MaxParallelism:
		bad("parallelism %d is not in 1…%d (max_parallelism)", c.Parallelism, c.Graph.MaxParallelism)
	}
	if c.FrameLimit != 0 && c.FrameLimit < MinFrame {
		bad("frames carry %d bytes, less than %d: raise the max_payload of the NATS servers (docs/nats.md)", c.FrameLimit, MinFrame)
	}
	for _, id := range c.Tasks {
		if id.Chain < 0 || id.Chain >= len(c.Graph.Chains) {
			bad("task %v: the graph has %d chains", id, len(c.Graph.Chains))
		} else if n := c.Graph.Chains[id.Chain].Subtasks(c.Parallelism); id.Subtask < 0 || id.Subtask >= n {
			bad("task %v: the chain has %d subtasks", id, n)
		}
		if _, ok := c.Restored[id]; c.Restored != nil && !ok {
			bad("task %v: nothing to restore is given", id)
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: build: %w", weir.ErrInvalid, errors.Join(errs...))
	}
	return nil
}

// guarded does a part of building t. A panic, such as that of state restored under another
// layout, is an error of the task, not the end of the worker.
func (c *BuildConfig) guarded(t *Task, part func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = t.panicked(p)
		}
	}()
	return part()
}

// task makes a task that is neither connected nor restored.
func (c *BuildConfig) task(id weir.TaskID) *Task {
	o := c.Options.withDefaults()
	t := &Task{
		id: id, job: c.Job, attempt: c.Attempt, worker: c.Worker, reporter: c.Reporter,
		logger:  c.Logger.With("job", c.Job, "attempt", c.Attempt, "subtask", id.String()),
		latency: c.Graph.Latency(), now: o.Now, mail: newMailbox(), outputs: &outputs{}, doneC: make(chan struct{}), at: -1,
		ended: c.Restored[id].Ended,
	}
	t.uploader = newUploader(t, c.Blobs, c.Named)
	if t.rejects = c.newRejects(t); t.rejects != nil {
		t.outputs.rejects = t.rejects
	}
	return t
}

// openChain opens the operators of t's chain, last to first, so that each finds the
// one behind it.
func (c *BuildConfig) openChain(ctx context.Context, t *Task) error {
	chain := c.Graph.Chains[t.id.Chain]
	for i, op := range slices.Backward(chain.Operators) {
		setup, runs, err := c.setup(ctx, t, i)
		if err != nil {
			return fmt.Errorf("%s: %w", op.Name, err)
		}
		setup.Rejects = t.rejecter(op.Kind)
		if op.Kind == plan.Source {
			if i != 0 {
				return fmt.Errorf("%w: %s is not the first of its chain", weir.ErrInvalid, op.Name)
			}
			t.sourceSetup = setup
			if t.source, err = c.Openers.Source(ctx, setup); err != nil {
				return fmt.Errorf("%s: %w", op.Name, err)
			}
			continue
		}
		open := c.Openers.Operator
		if op.Kind == plan.Sink {
			open = c.Openers.Sink
		}
		n := &node{setup: setup, task: t, at: &t.at, next: t.head(), chain: runs}
		if n.op, err = open(ctx, setup); err != nil {
			return fmt.Errorf("%s: %w", op.Name, err)
		}
		t.nodes = slices.Insert(t.nodes, 0, n)
	}
	behind := len(chain.Operators) - len(t.nodes) // of the source
	for i, n := range t.nodes {
		n.index, n.slot = i, behind+i
		if f, ok := n.op.(Follower); ok && i > 0 {
			if err := f.Follow(t.nodes[i-1].op); err != nil {
				return fmt.Errorf("%s: %w", n.setup.Operator.Name, err)
			}
		}
	}
	t.meter.start(t.now, &t.stats, len(chain.Operators))
	t.uploader.mu.Lock()
	defer t.uploader.mu.Unlock()
	t.uploader.tell()
	return nil
}

// setup prepares what operator i of a task's chain is opened with, its state restored.
func (c *BuildConfig) setup(ctx context.Context, t *Task, i int) (Setup, *state.Chain, error) {
	id, chain := t.id, c.Graph.Chains[t.id.Chain]
	s := Setup{
		Job: c.Job, Attempt: c.Attempt, Operator: chain.Operators[i], Subtask: id.Subtask,
		Parallelism: chain.Subtasks(c.Parallelism), MaxParallelism: c.Graph.MaxParallelism,
		Restored: c.Restored != nil, GivenUp: c.GivenUp[chain.Operators[i].ID], Files: c.Files, Now: c.Options.withDefaults().Now,
		Logger: c.Logger.With("job", c.Job, "attempt", c.Attempt, "op", chain.Operators[i].ID, "subtask", id.Subtask),
	}
	s.Input = c.input(id.Chain, i)
	var restored checkpoint.OperatorSnapshot
	for _, r := range c.Restored[id].Operators {
		if r.Operator == s.Operator.ID {
			restored.Keyed = append(restored.Keyed, r.Keyed...)
			restored.List = append(restored.List, r.List...)
		}
	}
	if c.Restored != nil {
		s.List = slices.Concat([]json.RawMessage{}, restored.List)
	} else if s.Parallelism > 1 {
		s.Agree = c.agreement(s.Operator.ID, s.Subtask)
	}
	if !keepsState(s.Operator) {
		return s, nil, nil
	}
	s.State = state.New(state.Options{
		MaxParallelism: s.MaxParallelism,
		KeyGroups:      weir.KeyGroupsOf(s.Subtask, s.Parallelism, s.MaxParallelism),
		Disk:           c.Options.Disk,
		Budget:         c.Options.Budget,
	})
	t.stores = append(t.stores, s.State) // closed whatever becomes of it
	var base []checkpoint.Handle
	var err error
	if slices.ContainsFunc(restored.Keyed, c.foreign) { // the first snapshot copies what is another job's
		err = s.State.RestoreAnew(ctx, c.Blobs, restored.Keyed)
	} else {
		base, err = s.State.Restore(ctx, c.Blobs, restored.Keyed)
	}
	if err != nil {
		return s, nil, &reasonError{ReasonRestore, fmt.Errorf("restore %s/%d: %w", s.Operator.ID, id.Subtask, err)}
	}
	runs := state.NewChain(0, base, state.Limits{})
	for _, run := range s.State.Runs() {
		runs.Add(1, run, false) // the ids of barriers go on from there
	}
	return s, runs, nil
}

// foreign reports whether a handle names an object of another job, which may delete it.
func (c *BuildConfig) foreign(h checkpoint.Handle) bool {
	return h.Object != "" && !strings.HasPrefix(h.Object, checkpoint.JobPrefix(c.Job))
}

// keepsState reports whether an operator keeps keyed state.
func keepsState(o plan.Operator) bool {
	return o.Kind == plan.GlobalAggregate || o.Kind == plan.Result && !o.Result.Groups || o.Kind == plan.Rejects
}

// input returns the schema that operator i of a chain reads; nil for a source.
func (c *BuildConfig) input(chain, i int) []plan.Column {
	if i > 0 {
		return c.Graph.Chains[chain].Operators[i-1].Schema
	}
	for _, e := range c.Graph.Edges {
		if e.To == chain {
			return edgeSchema(c.Graph, e)
		}
	}
	return nil
}

// edgeSchema is the schema of what an edge carries.
func edgeSchema(g *plan.Graph, e plan.Edge) []plan.Column {
	if e.Rejects {
		return plan.RejectColumns()
	}
	ops := g.Chains[e.From].Operators
	return ops[len(ops)-1].Schema
}

// connect opens the ends of the task's channels.
func (c *BuildConfig) connect(t *Task) error {
	var inputs []input
	for e, edge := range c.Graph.Edges {
		var err error
		switch t.id.Chain {
		case edge.To:
			inputs, err = c.connectInputs(t, e, inputs)
		case edge.From:
			err = c.connectOutput(t, e)
		}
		if err != nil {
			return err
		}
	}
	chain := c.Graph.Chains[t.id.Chain].Operators
	source := len(chain) > 0 && chain[0].Kind == plan.Source
	if source == (len(inputs) > 0) {
		return fmt.Errorf("%w: a task has either a source or inputs", weir.ErrInvalid)
	}
	if !source {
		t.gate = newGate(inputs, c.Mode)
		t.tracker.awaits(t.gate)
	}
	return nil
}

func (c *BuildConfig) connectInputs(t *Task, e int, inputs []input) ([]input, error) {
	edge := c.Graph.Edges[e]
	senders, err := c.peers(edge, edge.From, t.id.Subtask)
	if err != nil {
		return nil, err
	}
	pool := batch.NewPool(Layout(edgeSchema(c.Graph, edge)), batch.Target)
	for from := senders.start; from < senders.end; from++ {
		id := weir.ChannelID{Edge: e, From: weir.TaskID{Chain: edge.From, Subtask: from}, To: t.id}
		ch, err := c.Network.Inbound(id, t.mail.wakeC)
		if err != nil {
			return nil, fmt.Errorf("channel %v: %w", id, err)
		}
		inputs = append(inputs, input{id: id, ch: ch, pool: pool})
	}
	return inputs, nil
}

// subtasks are those from start to end, and not end.
type subtasks struct{ start, end int }

// peers are the subtasks of chain, at one end of an edge, that have a channel with a
// subtask at its other end: all of them, or over a forward edge the one of its index.
// Nobody else counts channels: a gate waits for the barriers of those it was given.
func (c *BuildConfig) peers(edge plan.Edge, chain, subtask int) (subtasks, error) {
	n := c.Graph.Chains[chain].Subtasks(c.Parallelism)
	if !edge.Forward {
		return subtasks{0, n}, nil
	}
	from, to := c.Graph.Chains[edge.From], c.Graph.Chains[edge.To]
	if from.Single != to.Single || len(edge.Keys) > 0 {
		return subtasks{}, fmt.Errorf("%w: the edge from chain %d to %d goes forward, but their subtasks are not as many or it has keys", weir.ErrInvalid, edge.From, edge.To)
	}
	return subtasks{subtask, subtask + 1}, nil
}

func (c *BuildConfig) connectOutput(t *Task, e int) error {
	edge := c.Graph.Edges[e]
	receivers, err := c.peers(edge, edge.To, t.id.Subtask)
	if err != nil {
		return err
	}
	schema, n := edgeSchema(c.Graph, edge), receivers.end-receivers.start
	o := &output{
		edge: e, keys: edge.Keys, owner: make([]uint16, c.Graph.MaxParallelism), rows: make([][]int32, n),
		pool: batch.NewPool(Layout(schema), batch.Target), now: t.now, stats: &t.stats, forward: edge.Forward,
		limit: min(cmp.Or(c.FrameLimit, MaxFrame), MaxFrame),
	}
	for g := range o.owner {
		o.owner[g] = uint16(weir.SubtaskOf(g, n, len(o.owner)))
	}
	if edge.Rejects {
		t.rejects.out, t.outputs.side = o, o
		t.rejects.fit(o.limit)
	} else {
		o.counts = len(t.outputs.edges) == 0
		t.outputs.edges = append(t.outputs.edges, o)
	}
	for to := receivers.start; to < receivers.end; to++ {
		id := weir.ChannelID{Edge: e, From: t.id, To: weir.TaskID{Chain: edge.To, Subtask: to}}
		out, local, err := c.Network.Outbound(id, t.mail.broken)
		if err != nil {
			return fmt.Errorf("channel %v: %w", id, err)
		}
		o.targets = append(o.targets, target{to: id.To, out: out, local: local})
	}
	return nil
}
