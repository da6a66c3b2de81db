package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// An attempt is one try at running a job: the coordinator's driver on a server, and the
// tasks on workers.
type attempt struct {
	w           *world
	server      *process
	fence       weir.Fence
	parallelism int
	base        weir.SnapshotRef
	before      *attempt // of the same job, by any server; nil: none

	c         *checkpoint.Coordinator
	collector *checkpoint.Collector
	sweeper   *borrowed // by whom the collector reaches what is outside
	sources   []*source
	counters  []*counter
	lanes     [4]lane
	ticks     time.Time // of the tick scheduled; zero: none

	under    map[weir.CheckpointID]checkpoint.Type // that have begun, and not ended
	failures int                                   // failed checkpoints in a row
	open     map[checkpoint.RequestID]bool         // requests without an answer
	requests checkpoint.RequestID
	begun    weir.CheckpointID    // newest id begun here
	asked    checkpoint.RequestID // of the stop's savepoint; 0: not yet
	stopping weir.CheckpointID    // the stop's savepoint; 0: it has not begun
	refused  bool                 // the stop's savepoint could not be taken

	ending *checkpoint.Ending
	failed *weir.Failure
	stale  bool
}

// A lane performs actions in order, each once the one before has been answered.
type lane struct {
	queue []func(*thread) checkpoint.Event
	busy  bool
}

// over reports whether the attempt decides nothing any more.
func (a *attempt) over() bool {
	return a.c == nil || a.stale || a.failed != nil || !a.server.alive
}

// onLane performs an action on the lane.
func (a *attempt) onLane(i int, perform func(*thread) checkpoint.Event) {
	l := &a.lanes[i]
	l.queue = append(l.queue, perform)
	if l.busy {
		return
	}
	l.busy = true
	a.server.spawn(func(t *thread) {
		for len(l.queue) > 0 {
			perform := l.queue[0]
			l.queue = l.queue[1:]
			if e := perform(t); e != nil {
				a.feed(e)
			}
		}
		l.busy = false
	})
}

// coordinate starts the coordinator.
func (a *attempt) coordinate(t *thread, last weir.CheckpointID, open []weir.CheckpointID) {
	base := a.base.Checkpoint
	if a.base.Job != a.fence.Job {
		base = 0
	}
	a.sweeper = &borrowed{t}
	a.collector = checkpoint.NewCollector(conn{a.sweeper}, blobs{a.sweeper}, checkpoint.CollectOptions{})
	var acts []checkpoint.Action
	a.c, acts = checkpoint.NewCoordinator(a.w.now, checkpoint.Start{
		Fence: a.fence, Graph: graph(), Parallelism: a.parallelism,
		Options: a.w.options, Base: base, LastID: last, OpenCommits: open,
	})
	a.do(acts)
	a.feed(checkpoint.Tick{})
}

// sweep does something with the collector.
func (a *attempt) sweep(work func(*thread) checkpoint.Event) {
	a.onLane(2, func(t *thread) checkpoint.Event {
		a.sweeper.thread = t
		return work(t)
	})
}

func (a *attempt) survey() checkpoint.Event {
	found, err := checkpoint.Find(context.Background(), blobs{a.sweeper}, a.fence.Job)
	if err != nil {
		return checkpoint.Surveyed{Err: err}
	}
	return checkpoint.Surveyed{Newest: found.Newest(), Attempt: found.Rival(a.fence.Attempt)}
}

func (a *attempt) clean(err error) {
	if err != nil {
		a.w.log("%v: clean-up: %v", a.fence.Attempt, err)
	}
}

// collect clears up what the job has given up.
func (a *attempt) collect() checkpoint.Event {
	for {
		more, err := a.collector.Round(context.Background(), a.fence.Job)
		if a.clean(err); !more || err != nil {
			return nil
		}
	}
}

// feed gives the machine an event and performs what it answers.
func (a *attempt) feed(e checkpoint.Event) {
	if a.over() {
		return
	}
	a.do(a.c.Step(a.w.now, e))
	next := a.c.Next()
	if next.IsZero() || next.Equal(a.ticks) {
		return
	}
	a.ticks = next
	a.server.after(max(0, next.Sub(a.w.now)), func() {
		if a.ticks.Equal(next) {
			a.ticks = time.Time{}
		}
		a.feed(checkpoint.Tick{})
	})
}

func (a *attempt) do(acts []checkpoint.Action) {
	for _, act := range acts {
		switch act := act.(type) {
		case checkpoint.SendTrigger:
			a.onLane(1, func(t *thread) checkpoint.Event {
				return checkpoint.Triggered{ID: act.Trigger.Checkpoint, Err: a.tell(t, "trigger", act.Targets, func(task weir.TaskID) {
					a.sources[task.Subtask].trigger(act.Trigger)
					a.counters[task.Subtask].uploads.wanted(act.Trigger.Checkpoint, act.Trigger.Pending)
				})}
			})
		case checkpoint.Notify:
			a.onLane(1, func(t *thread) checkpoint.Event {
				return checkpoint.Notified{ID: act.ID, Err: a.tell(t, "notify", act.Tasks, func(task weir.TaskID) {
					a.counters[task.Subtask].commit(act.ID)
				})}
			})
		case checkpoint.AskProgress:
			a.server.spawn(func(t *thread) { a.feed(a.progress(t, act.ID)) }) // as many at a time as may expire
		case checkpoint.Survey:
			a.sweep(func(*thread) checkpoint.Event { return a.survey() })
		case checkpoint.DropObjects:
			a.sweep(func(*thread) checkpoint.Event {
				for _, key := range act.Keys {
					a.clean(blobs{a.sweeper}.Delete(context.Background(), key))
				}
				return a.collect()
			})
		case checkpoint.Collect:
			a.sweep(func(*thread) checkpoint.Event { return a.collect() })
		case checkpoint.Answer:
			if !a.open[act.Request] {
				a.w.fail("request %d is answered twice, or was never made", act.Request)
			}
			delete(a.open, act.Request)
			a.w.saw("request: %s", answered(act))
			if act.Request == a.asked {
				a.stopping, a.refused = act.ID, act.Err != nil
			}
		case checkpoint.Tell:
			a.w.log("%s %v: %s", a.fence.Job[34:], a.fence.Attempt, act.Message)
		case checkpoint.Ended:
			a.w.log("%s %v: %s %d %s", a.fence.Job[34:], a.fence.Attempt, act.Record.Type, act.Record.ID, act.Record.Status)
			a.w.sawEnd(act.Record)
			a.count(act.Record)
			if act.Record.Status != checkpoint.StatusCompleted && act.Record.ID == a.stopping {
				a.refused = true
			}
		case checkpoint.Finish:
			a.ending = &act.Ending
			if len(a.open) > 0 {
				a.w.fail("attempt %v ends, %d requests have no answer", a.fence.Attempt, len(a.open))
			}
		case checkpoint.FailAttempt:
			a.failed = &act.Failure.Failure
			a.w.saw("attempt: fails, %s", a.failed.Reason)
			if a.failed.Reason != checkpoint.ReasonMetastoreBack && a.failures <= a.w.options.TolerableFailures {
				a.w.fail("attempt %v failed after %d failed checkpoints, %d are tolerated", a.fence.Attempt, a.failures, a.w.options.TolerableFailures)
			}
			return
		case checkpoint.GiveUp:
			a.stale = true
			a.w.saw("attempt: gives up")
			return
		case checkpoint.WriteManifest:
			a.onLane(3, func(t *thread) checkpoint.Event {
				return checkpoint.ManifestWritten{ID: act.Manifest.Checkpoint, Err: putManifest(context.Background(), blobs{t}, act.Manifest)}
			})
		default:
			a.onLane(0, func(t *thread) checkpoint.Event { return a.write(t, act) })
		}
	}
}

// inTurn: no more are under way than the options allow. Savepoints do not count, and
// one is under way at a time.
func (a *attempt) inTurn() {
	number := map[checkpoint.Type]int{}
	for _, t := range a.under {
		number[t]++
	}
	if n := number[checkpoint.TypeCheckpoint]; n > a.w.options.MaxConcurrent || number[checkpoint.TypeSavepoint] > 1 {
		a.w.fail("%d checkpoints and %d savepoints of attempt %v are under way, %d and 1 may be",
			n, number[checkpoint.TypeSavepoint], a.fence.Attempt, a.w.options.MaxConcurrent)
	}
}

// count keeps what tolerable_failures counts.
func (a *attempt) count(r checkpoint.Record) {
	delete(a.under, r.ID)
	switch {
	case r.Type != checkpoint.TypeCheckpoint:
	case r.Status == checkpoint.StatusCompleted:
		a.failures = 0
	case r.Status == checkpoint.StatusFailed:
		a.failures++
	}
}

// request numbers what a user asks for.
func (a *attempt) request() checkpoint.RequestID {
	a.requests++
	a.open[a.requests] = true
	return a.requests
}

// write performs an action on the metastore.
func (a *attempt) write(t *thread, act checkpoint.Action) checkpoint.Event {
	ctx, c := context.Background(), conn{t}
	switch act := act.(type) {
	case checkpoint.Begin:
		act.Record.ID = act.After
		id, err := c.BeginCheckpoint(ctx, a.fence, act.Record)
		a.begun = max(a.begun, id)
		if err == nil {
			a.under[id] = act.Record.Type
			a.inTurn()
		}
		return checkpoint.Begun{ID: id, Err: err}
	case checkpoint.Decide:
		return checkpoint.Decided{ID: act.Record.ID, Err: c.CompleteCheckpoint(ctx, a.fence, act.Record, act.Base)}
	case checkpoint.ReadBack:
		r, err := c.Checkpoint(ctx, a.fence, act.ID)
		a.w.saw("decision: read back")
		return checkpoint.Read{ID: act.ID, Record: r, Err: err}
	case checkpoint.WriteAbort:
		s, err := c.AbortCheckpoint(ctx, a.fence, act.Record)
		return checkpoint.Aborted{ID: act.Record.ID, Status: s, Err: err}
	case checkpoint.CloseCommits:
		var errs []error
		for _, id := range act.IDs {
			errs = append(errs, c.CloseCommits(ctx, a.fence, id, nil))
		}
		return checkpoint.CommitsClosed{ID: act.ID, Err: errors.Join(errs...)}
	}
	panic(fmt.Sprintf("unknown action %T", act))
}

func putManifest(ctx context.Context, b blob.Store, m *checkpoint.Manifest) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	key := checkpoint.ManifestKey(m.Job, m.Checkpoint)
	err = b.PutIfAbsent(ctx, key, bytes.NewReader(data))
	if !errors.Is(err, blob.ErrExists) {
		return err
	}
	r, err := b.Get(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	if there, _ := io.ReadAll(r); !bytes.Equal(there, data) {
		return errors.New("another manifest is there")
	}
	return nil
}

// tell asks the workers of some tasks to do something. One that is dead or asleep gives
// no answer; one that is asleep does it later.
func (a *attempt) tell(t *thread, point string, targets []weir.TaskID, do func(weir.TaskID)) error {
	var errs []error
	for _, task := range targets {
		p := a.workerOf(task)
		errs = append(errs, t.call(point, "", func() error {
			p.after(0, func() { do(task) })
			if !p.alive || p.asleepUntil.After(a.w.now) {
				return errAway
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

// progress asks the workers how far their tasks are.
func (a *attempt) progress(t *thread, id weir.CheckpointID) checkpoint.Event {
	var list []checkpoint.Progress
	var errs []error
	for _, k := range a.counters {
		errs = append(errs, t.call("progress", "", func() error {
			if !k.p.alive || k.p.asleepUntil.After(a.w.now) {
				return errAway
			}
			list = append(list, a.sources[k.id.Subtask].progress(id), k.progress(id))
			return nil
		}))
	}
	return checkpoint.Progressed{ID: id, Tasks: list, Err: errors.Join(errs...)}
}

func (a *attempt) workerOf(id weir.TaskID) *process {
	if id.Chain == 0 {
		return a.sources[id.Subtask].p
	}
	return a.counters[id.Subtask].p
}

// send carries a message to a process: late, lost or twice.
func (w *world) send(point string, to *process, deliver func()) {
	f := w.tape.message(w, point)
	if f != none {
		w.saw("message: %s %s", point, f)
	}
	if f == drop {
		return
	}
	to.after(w.upTo(100*time.Millisecond), deliver)
	if f == repeat {
		to.after(w.upTo(5*time.Second), deliver)
	}
}

// start lets the tasks run; each worker hears of it in its time.
func (a *attempt) start() {
	for _, s := range a.sources {
		s.p.after(a.w.upTo(100*time.Millisecond), s.poll)
	}
	for _, k := range a.counters {
		k.p.after(a.w.upTo(100*time.Millisecond), k.poll)
	}
}

// stop tells the tasks to stop: a worker that does not hear it runs them on, as a zombie.
func (a *attempt) stop() {
	for _, s := range a.sources {
		a.w.send("stop", s.p, func() { s.stopped = true })
	}
	for _, k := range a.counters {
		a.w.send("stop", k.p, k.stop)
	}
}

// close ends the channels after the last checkpoint.
func (a *attempt) close() {
	for _, s := range a.sources {
		s.p.after(0, func() { s.broadcast(frame{close: true}) })
	}
}

// lost reports whether a worker that runs some of its tasks is gone, or seems so.
func (a *attempt) lost() bool {
	gone := func(p *process) bool {
		return !p.alive || p.asleepUntil.Sub(a.w.now) > 3*time.Second || !slices.Contains(a.w.workers, p)
	}
	return slices.ContainsFunc(a.sources, func(s *source) bool { return gone(s.p) })
}
