package checkpoint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir"
	"weir/planner/plan"
)

const (
	// backoff is the pause before a failed action is repeated.
	backoff = time.Second
	// commitAgain is when a sink that has not answered a commit is asked again.
	commitAgain = 30 * time.Second
	// askWithin bounds how long an expired checkpoint waits for what its tasks say.
	askWithin = 3 * time.Second
	// maxOpenCommits decided checkpoints may wait for their sinks before periodic
	// checkpoints wait too.
	maxOpenCommits = 8
	// maxTries bounds the attempts to write a manifest or a decision.
	maxTries = 3
	// maxRequests bounds the requests that wait.
	maxRequests = 100
	// maxAborted is how many aborted checkpoints are remembered for late acks.
	maxAborted = 256
)

// A Coordinator is the machine that takes the checkpoints of one attempt. It does no
// I/O and knows no clock: Step takes an event and returns what is to be done.
type Coordinator struct {
	fence       weir.Fence
	opts        Options
	tasks       []Task
	workers     map[weir.TaskID]weir.WorkerID // where tasks run, as far as known
	operators   []ManifestOperator
	parallelism int
	maxGroups   int

	base    weir.CheckpointID // whose objects may be reused; 0: none
	lastID  weir.CheckpointID // newest id known to be given out (I1)
	lost    int               // begins of unknown outcome since lastID
	burnt   weir.CheckpointID // newest id that may have been given out and given up
	missed  error             // why a periodic checkpoint could not begin that was due; nil: none
	strays  []Record          // rows left pending by others, to be aborted
	strayAt time.Time         // when strays are tried again; zero: answers are awaited
	search  search
	opening *pending            // its row is being inserted; nil: none
	pending []*pending          // under way, ascending
	aborted []weir.CheckpointID // of this attempt, for late acks

	triggers    []SendTrigger // not delivered yet, ascending
	triggerSent bool          // the outcome of the first is awaited
	triggerAt   time.Time     // the first is not sent before

	queue      []request
	ended      map[weir.TaskID]bool
	due        time.Time // of the next periodic checkpoint; zero: none
	pauseUntil time.Time
	holdUntil  time.Time         // nothing begins before
	failed     int               // consecutive failures
	failure    AttemptFailure    // the first of them
	succeeded  weir.CheckpointID // newest that completed
	commits    []*openCommit
	ending     *Ending
	finished   bool // Finish was given
	stopped    bool // nothing follows any more
}

// A Start is what a Coordinator needs to know of the attempt.
type Start struct {
	Fence       weir.Fence
	Graph       plan.Graph
	Parallelism int
	Options     Options
	// Base is the checkpoint of this job that the attempt started from, 0: none, or
	// another job's. LastID is the newest id the job has given out.
	Base, LastID weir.CheckpointID
	// First is when the first periodic checkpoint is due, from now on; 0: an interval.
	First time.Duration
	// OpenCommits are the checkpoints up to Base whose segments are not confirmed; the
	// restored sinks have them in their state. Ascending.
	OpenCommits []weir.CheckpointID
	// Pending are checkpoints that a dead owner left pending.
	Pending []weir.CheckpointID
	// Workers says where the tasks run, for the messages of failures; may be nil.
	Workers map[weir.TaskID]weir.WorkerID
}

// NewCoordinator returns the machine of an attempt whose tasks run since now, and
// what it does first.
func NewCoordinator(now time.Time, s Start) (*Coordinator, []Action) {
	c := &Coordinator{
		fence: s.Fence, opts: s.Options.withDefaults(), tasks: TasksOf(s.Graph, s.Parallelism), workers: map[weir.TaskID]weir.WorkerID{},
		operators: operatorsOf(s.Graph), parallelism: s.Parallelism, maxGroups: s.Graph.MaxParallelism,
		base: s.Base, lastID: max(s.LastID, s.Base), ended: map[weir.TaskID]bool{},
	}
	maps.Copy(c.workers, s.Workers)
	if c.opts.Interval > 0 {
		c.due = now.Add(cmp.Or(s.First, c.opts.Interval))
	}
	acts := []Action{Survey{}}
	for _, id := range s.Pending {
		c.strays = append(c.strays, c.strayRecord(now, id, StatusAborted, ReasonAttemptEnded, "its coordinator died"))
	}
	for _, r := range c.strays {
		acts = append(acts, WriteAbort{Record: r})
	}
	if open := slices.DeleteFunc(slices.Clone(s.OpenCommits), func(id weir.CheckpointID) bool { return id > s.Base }); len(open) > 0 {
		sinks := tasksWhere(c.tasks, func(t Task) bool { return t.Sink })
		acts = append(acts, c.pushCommit(now, &openCommit{id: s.Base, closes: open, waiting: sinks})...)
	}
	return c, acts
}

// Step takes one event and returns what is to be done, in order.
func (c *Coordinator) Step(now time.Time, e Event) []Action {
	if c.stopped {
		return c.refuse(e)
	}
	acts := c.handle(now, e)
	return c.withhold(append(acts, c.follow(now)...))
}

// follow does what an event has made possible: the next decision, the next checkpoint,
// the end.
func (c *Coordinator) follow(now time.Time) []Action {
	if c.stopped {
		return nil
	}
	acts := append(c.sendTrigger(now), c.decideNext()...)
	acts = append(acts, c.next(now)...)
	return append(acts, c.settle(now)...)
}

func (c *Coordinator) handle(now time.Time, e Event) []Action {
	switch e := e.(type) {
	case Tick:
		return c.tick(now)
	case AskCheckpoint:
		return c.ask(request{id: e.Request})
	case AskSavepoint:
		return c.ask(request{id: e.Request, savepoint: e.Name, stop: e.Stop})
	case Withdraw:
		return c.withdraw(e)
	case AskCancel:
		return c.cancel(now, e)
	case Begun:
		return c.begun(now, e)
	case Triggered:
		return c.triggered(now, e)
	case Acked:
		_, acts := c.ack(now, e.Ack)
		return acts
	case SourceEnded:
		c.ended[e.Task] = true
		return nil
	case Progressed:
		return c.progressed(now, e)
	case ManifestWritten:
		return c.manifestWritten(now, e)
	case Decided:
		return c.decided(now, e)
	case Read:
		return c.read(now, e)
	case Aborted:
		return c.abortDone(now, e)
	case Notified:
		return c.notified(now, e)
	case Committed:
		return c.committed(now, e)
	case CommitsClosed:
		return c.commitsClosed(now, e)
	case Surveyed:
		return c.surveyed(now, e)
	}
	panic(fmt.Sprintf("checkpoint: unknown event %T", e))
}

// refuse answers requests that come after the end.
func (c *Coordinator) refuse(e Event) []Action {
	err := fmt.Errorf("%w: the attempt has ended", weir.ErrConflict)
	switch e := e.(type) {
	case AskCheckpoint:
		return []Action{Answer{Request: e.Request, Err: err}}
	case AskSavepoint:
		return []Action{Answer{Request: e.Request, Err: err}}
	case AskCancel:
		return []Action{Answer{Request: e.Request, Err: err}}
	}
	return nil
}

// Next is when Step needs a Tick; zero: not before another event.
func (c *Coordinator) Next() time.Time {
	if c.stopped {
		return time.Time{}
	}
	var next time.Time
	consider := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	consider(c.commitNext())
	consider(c.strayAt)
	consider(c.search.again)
	if len(c.triggers) > 0 && !c.triggerSent {
		consider(c.triggerAt)
	}
	for _, p := range c.pending {
		switch {
		case p.phase == collecting || p.phase == asking:
			consider(p.deadline)
		case p.retry != nil:
			consider(p.retryAt)
		}
	}
	if u, ok := c.upcoming(); ok {
		consider(u.at)
	}
	return next
}

func (c *Coordinator) tick(now time.Time) []Action {
	acts := append(c.commitTick(now), c.strayTick(now)...)
	acts = append(acts, c.searchTick(now)...)
	for _, p := range slices.Clone(c.pending) {
		switch {
		case p.phase == collecting && !now.Before(p.deadline):
			acts = append(acts, c.expire(now, p)...)
		case p.phase == asking && !now.Before(p.deadline):
			acts = append(acts, c.abort(now, p, StatusFailed, c.expired(p, nil, errNobody))...)
		case p.retry != nil && !now.Before(p.retryAt):
			again := p.retry
			p.retry = nil
			acts = append(acts, again)
		}
	}
	return acts
}

// Pending lists the checkpoints and savepoints under way, ascending; one whose row is
// being inserted is not among them.
func (c *Coordinator) Pending() []Record {
	var list []Record
	for _, p := range c.pending {
		list = append(list, p.record)
	}
	return list
}

// behind ends the attempt; nothing is deleted.
func (c *Coordinator) behind(id weir.CheckpointID, why string) []Action {
	c.stopped = true
	return []Action{FailAttempt{Failure: AttemptFailure{Checkpoint: id, Failure: *BehindFailure(why)}}}
}

// BehindFailure is how a job fails whose metastore has gone back in time; why says what
// storage knows of it and the metastore does not.
func BehindFailure(why string) *weir.Failure {
	return &weir.Failure{Reason: ReasonMetastoreBack, Message: "the metastore has gone back in time: " + why + "; restore the metastore, or adopt the checkpoint"}
}

// giveUp stops quietly: a newer owner exists.
func (c *Coordinator) giveUp() []Action {
	c.stopped = true
	return []Action{GiveUp{}}
}
