package checkpoint

import (
	"errors"
	"fmt"
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

// A Coordinator is the machine that takes the checkpoints of one attempt, one at a
// time. It does no I/O and knows no clock: Step takes an event and returns what is to
// be done.
type Coordinator struct {
	fence       weir.Fence
	opts        Options
	tasks       []Task
	operators   []ManifestOperator
	parallelism int
	maxGroups   int

	base      weir.CheckpointID // whose objects may be reused; 0: none
	lastID    weir.CheckpointID // newest id known to be given out (I1)
	lost      int               // begins of unknown outcome since lastID
	strays    []Record          // rows left pending by others, to be aborted
	strayAt   time.Time         // when strays are tried again; zero: answers are awaited
	cur       *pending          // nil: none under way
	trigger   *SendTrigger      // not delivered yet, repeated at triggerAt
	triggerAt time.Time
	aborted   []weir.CheckpointID // of this attempt, for late acks

	queue      []request
	ended      map[weir.TaskID]bool
	due        time.Time // of the next periodic checkpoint; zero: none
	pauseUntil time.Time
	holdUntil  time.Time // nothing begins before
	failures   int       // consecutive
	commits    []*openCommit
	ending     *Ending
	finished   bool // Finish was given
	stopped    bool // nothing follows any more
}

// A request waits to begin.
type request struct {
	id        RequestID
	savepoint string // empty: a checkpoint
	stop      bool
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
	// OpenCommits are the checkpoints up to Base whose segments are not confirmed; the
	// restored sinks have them in their state. Ascending.
	OpenCommits []weir.CheckpointID
	// Pending are checkpoints that a dead owner left pending.
	Pending []weir.CheckpointID
}

// NewCoordinator returns the machine of an attempt whose tasks run since now, and
// what it does first.
func NewCoordinator(now time.Time, s Start) (*Coordinator, []Action) {
	c := &Coordinator{
		fence: s.Fence, opts: s.Options.withDefaults(), tasks: TasksOf(s.Graph, s.Parallelism),
		operators: operatorsOf(s.Graph), parallelism: s.Parallelism, maxGroups: s.Graph.MaxParallelism,
		base: s.Base, lastID: max(s.LastID, s.Base), ended: map[weir.TaskID]bool{},
	}
	if c.opts.Interval > 0 {
		c.due = now.Add(c.opts.Interval)
	}
	var acts []Action
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
	return append(acts, c.next(now)...)
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
		return c.surveyed(e)
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
	if c.trigger != nil {
		consider(c.triggerAt)
	}
	switch {
	case c.cur != nil && c.cur.phase == collecting:
		consider(c.cur.deadline)
	case c.cur != nil && c.cur.retry != nil:
		consider(c.cur.retryAt)
	case c.cur == nil && c.ending == nil && (len(c.queue) > 0 || c.allEnded()):
		consider(c.holdUntil)
	case c.cur == nil && c.ending == nil && len(c.commits) < maxOpenCommits:
		consider(c.periodicAt())
	}
	return next
}

func (c *Coordinator) tick(now time.Time) []Action {
	acts := append(c.commitTick(now), c.strayTick(now)...)
	if c.trigger != nil && !c.triggerAt.IsZero() && !now.Before(c.triggerAt) {
		c.triggerAt = time.Time{}
		acts = append(acts, *c.trigger)
	}
	p := c.cur
	switch {
	case p == nil:
	case p.phase == collecting && !now.Before(p.deadline):
		acts = append(acts, c.abort(now, StatusFailed, p.expired(c.opts.Timeout, c.tasks))...)
	case p.retry != nil && !now.Before(p.retryAt):
		again := p.retry
		p.retry = nil
		acts = append(acts, again)
	}
	return acts
}

// periodicAt is when the next periodic checkpoint is due; zero: never.
func (c *Coordinator) periodicAt() time.Time {
	at := c.due
	for _, t := range []time.Time{c.pauseUntil, c.holdUntil} {
		if !at.IsZero() && t.After(at) {
			at = t
		}
	}
	return at
}

func (c *Coordinator) allEnded() bool {
	return !slices.ContainsFunc(c.tasks, func(t Task) bool { return t.Source && !c.ended[t.ID] })
}

// next begins the checkpoint whose turn it is: what users asked for, in order; then the
// last one of a job whose sources have all ended; then a periodic one.
func (c *Coordinator) next(now time.Time) []Action {
	if c.cur != nil || c.stopped || c.ending != nil || now.Before(c.holdUntil) {
		return nil
	}
	r := Record{Job: c.fence.Job, Attempt: c.fence.Attempt, Type: TypeCheckpoint, Status: StatusPending, TriggeredAt: now}
	p := &pending{}
	switch {
	case len(c.queue) > 0:
		p.requests, p.stop = c.take(&r)
	case c.allEnded():
		r.Final = true
	case !c.due.IsZero() && !now.Before(c.periodicAt()) && len(c.commits) < maxOpenCommits:
		r.Periodic = true
	default:
		return nil
	}
	if r.Type == TypeCheckpoint && !c.due.IsZero() {
		c.due = now.Add(c.opts.Interval)
	}
	p.record = r
	c.cur = p
	return []Action{Begin{Record: r}}
}

// take removes the first request; all that wait for a checkpoint share one.
func (c *Coordinator) take(r *Record) (ids []RequestID, stop bool) {
	first := c.queue[0]
	if first.savepoint != "" {
		c.queue = c.queue[1:]
		r.Type, r.Savepoint = TypeSavepoint, first.savepoint
		return []RequestID{first.id}, first.stop
	}
	for _, q := range c.queue {
		if q.savepoint == "" {
			ids = append(ids, q.id)
		}
	}
	c.queue = slices.DeleteFunc(c.queue, func(q request) bool { return q.savepoint == "" })
	return ids, false
}

// ask queues a request.
func (c *Coordinator) ask(r request) []Action {
	refuse := func(why string) []Action {
		return []Action{Answer{Request: r.id, Err: fmt.Errorf("%w: %s", weir.ErrConflict, why)}}
	}
	stopping := func(q request) bool { return q.stop }
	switch {
	case c.ending != nil:
		return refuse("the job is ending; its last checkpoint is taken")
	case len(c.queue) >= maxRequests:
		return refuse(fmt.Sprintf("%d requests wait already", len(c.queue)))
	case r.stop && (c.cur != nil && c.cur.stop || slices.ContainsFunc(c.queue, stopping)):
		return refuse("a stop with savepoint is under way")
	}
	c.queue = append(c.queue, r)
	return nil
}

func (c *Coordinator) withdraw(e Withdraw) []Action {
	known := len(c.queue)
	c.queue = slices.DeleteFunc(c.queue, func(r request) bool { return r.id == e.Request })
	if len(c.queue) == known {
		return nil
	}
	return []Action{Answer{Request: e.Request, Err: fmt.Errorf("%w: withdrawn before it began", weir.ErrConflict)}}
}

// Pending is the checkpoint under way; its ID is 0 while its row is being inserted.
func (c *Coordinator) Pending() (Record, bool) {
	if c.cur == nil {
		return Record{}, false
	}
	return c.cur.record, true
}

// begun: the row is there, or is not, or nobody knows.
func (c *Coordinator) begun(now time.Time, e Begun) []Action {
	p := c.cur
	if p == nil || p.phase != beginning {
		return nil
	}
	if errors.Is(e.Err, weir.ErrStale) {
		return c.giveUp()
	}
	var acts []Action
	for _, id := range p.requests {
		acts = append(acts, Answer{Request: id, ID: e.ID, Err: e.Err})
	}
	p.requests = nil
	if e.Err != nil {
		c.cur, c.holdUntil = nil, now.Add(backoff)
		if p.record.Savepoint != "" && (errors.Is(e.Err, weir.ErrConflict) || errors.Is(e.Err, weir.ErrInvalid)) {
			c.holdUntil = time.Time{} // the request's own fault; nothing was inserted
			return acts
		}
		c.lost++
		return append(acts, Tell{Kind: "checkpoint", Message: fmt.Sprintf("a %s could not begin: %v", p.record.Type, e.Err)})
	}
	if e.ID <= c.lastID {
		return append(acts, c.behind(e.ID, fmt.Sprintf("it gave out checkpoint id %d, which is not above %d", e.ID, c.lastID))...)
	}
	acts = append(acts, c.abortLost(now, e.ID)...)
	p.record.ID, c.lastID = e.ID, e.ID
	p.phase, p.acks, p.deadline = collecting, map[weir.TaskID]Ack{}, p.record.TriggeredAt.Add(c.opts.Timeout)
	t := SendTrigger{
		Trigger: Trigger{Job: c.fence.Job, Attempt: c.fence.Attempt, Checkpoint: e.ID, At: p.record.TriggeredAt},
		Targets: tasksWhere(c.tasks, func(t Task) bool { return t.Source }),
	}
	if p.record.Type == TypeCheckpoint {
		t.Trigger.Base = c.base // a savepoint is self-contained
	}
	c.trigger, c.triggerAt = &t, time.Time{}
	return append(acts, t)
}

// triggered: a trigger that was not delivered is repeated, even after its checkpoint
// was given up: some sources may have sent the barrier, and channels held for it
// wait for the others. A newer trigger takes its place.
func (c *Coordinator) triggered(now time.Time, e Triggered) []Action {
	if c.trigger == nil || c.trigger.Trigger.Checkpoint != e.ID {
		return nil
	}
	if c.cur != nil && c.cur.record.ID == e.ID {
		c.cur.undelivered = e.Err
	}
	if e.Err == nil {
		c.trigger = nil
		return nil
	}
	c.triggerAt = now.Add(backoff)
	return nil
}

// surveyed: storage that knows a newer checkpoint than the metastore ever gave out
// says that the metastore went back in time.
func (c *Coordinator) surveyed(e Surveyed) []Action {
	if e.Newest <= c.lastID {
		return nil
	}
	return c.behind(e.Newest, fmt.Sprintf("storage holds checkpoint %d, but the last id given out is %d", e.Newest, c.lastID))
}

// behind ends the attempt; nothing is deleted.
func (c *Coordinator) behind(id weir.CheckpointID, why string) []Action {
	c.stopped = true
	return []Action{FailAttempt{Failure: AttemptFailure{Checkpoint: id, Failure: weir.Failure{
		Reason:  ReasonMetastoreBack,
		Message: "the metastore has gone back in time: " + why + "; restore the metastore, or adopt the checkpoint",
	}}}}
}

// giveUp stops quietly: a newer owner exists.
func (c *Coordinator) giveUp() []Action {
	c.stopped = true
	return []Action{GiveUp{}}
}
