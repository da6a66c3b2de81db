package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// An attempt is one try at running the job: the coordinator's driver, and the tasks.
type attempt struct {
	w           *world
	fence       weir.Fence
	parallelism int
	ended       bool // killed, or failed: another follows
	dead        bool // gone; not even a zombie
	c           *checkpoint.Coordinator
	collector   *checkpoint.Collector
	sources     []*source
	counters    []*counter
	laneFree    [2]time.Time // when the lanes of the metastore and of the tasks are free
	ticks       time.Time    // of the tick scheduled; zero: none
	base        weir.CheckpointID
	seen        weir.CheckpointID // newest id begun here
	requests    checkpoint.RequestID
}

func newAttempt(w *world, fence weir.Fence, parallelism int) *attempt {
	return &attempt{
		w: w, fence: fence, parallelism: parallelism,
		collector: checkpoint.NewCollector(faultyStore{w.store, w}, w.faulty, fence, slog.New(slog.DiscardHandler)),
	}
}

// faultyStore fails the collector's calls; the coordinator's are failed by its driver.
type faultyStore struct {
	checkpoint.Store
	w *world
}

// DiscardCheckpoints fails before or after its work.
func (s faultyStore) DiscardCheckpoints(ctx context.Context, fence weir.Fence, ids []weir.CheckpointID) ([]weir.CheckpointID, error) {
	before, after := s.w.fault()
	if before != nil {
		return nil, before
	}
	marked, err := s.Store.DiscardCheckpoints(ctx, fence, ids)
	if err == nil && after != nil {
		return nil, after
	}
	return marked, err
}

// begin makes the tasks, with the state that the manifest gives them, and starts all.
func (a *attempt) begin(m *checkpoint.Manifest, base, last weir.CheckpointID) {
	a.base = base
	p := &checkpoint.RestorePlan{}
	if m != nil {
		var err error
		if p, err = checkpoint.Restore(m, graph(), a.parallelism); err != nil {
			a.w.fail("restore: %v", err)
			return
		}
	}
	a.makeTasks(p)
	var open []weir.CheckpointID
	for _, r := range a.w.store.Rows() {
		if r.CommitsOpen {
			open = append(open, r.ID)
		}
	}
	var acts []checkpoint.Action
	a.c, acts = checkpoint.NewCoordinator(a.w.now, checkpoint.Start{
		Fence: a.fence, Graph: graph(), Parallelism: a.parallelism,
		Options: a.w.options, Base: base, LastID: last, OpenCommits: open,
	})
	a.do(acts)
	a.w.after(a.w.upTo(time.Second), a.survey)
	for _, s := range a.sources {
		s.poll()
	}
	for _, k := range a.counters {
		k.poll()
	}
}

func (a *attempt) survey() {
	newest, keys, err := a.collector.Survey(context.Background())
	if a.dead || err != nil {
		return
	}
	_ = a.collector.Sweep(context.Background(), keys) // what it cannot do is done later
	a.w.checkKept()
	a.feed(checkpoint.Surveyed{Newest: newest})
}

// user asks for something.
func (a *attempt) user() {
	a.requests++
	switch a.w.rng.IntN(4) {
	case 0:
		a.feed(checkpoint.AskSavepoint{Request: a.requests, Name: fmt.Sprintf("s%d", a.w.rng.Uint32())})
	case 1:
		a.feed(checkpoint.AskCancel{Request: a.requests, ID: a.seen})
	default:
		a.feed(checkpoint.AskCheckpoint{Request: a.requests})
	}
}

// feed gives the machine an event and performs what it answers.
func (a *attempt) feed(e checkpoint.Event) {
	if a.dead || a.c == nil {
		return
	}
	a.do(a.c.Step(a.w.now, e))
	next := a.c.Next()
	if next.IsZero() || next.Equal(a.ticks) {
		return
	}
	a.ticks = next
	a.w.after(max(0, next.Sub(a.w.now)), func() {
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
			a.onLane(1, func() checkpoint.Event { return a.trigger(act) })
		case checkpoint.Notify:
			a.onLane(1, func() checkpoint.Event { return a.notify(act) })
		case checkpoint.DropObjects:
			a.w.after(a.w.upTo(100*time.Millisecond), func() { a.clean(a.collector.Drop(context.Background(), act.ID, act.Keys)) })
		case checkpoint.Collect:
			a.w.after(a.w.upTo(100*time.Millisecond), func() { a.clean(a.collector.Collect(context.Background(), a.w.options.NumRetained)) })
		case checkpoint.Answer:
		case checkpoint.Tell:
			a.w.log("%v: %s", a.fence.Attempt, act.Message)
		case checkpoint.Ended:
			a.w.log("%v: checkpoint %d %s", a.fence.Attempt, act.Record.ID, act.Record.Status)
		case checkpoint.Finish:
			a.finish(act.Ending)
		case checkpoint.FailAttempt:
			a.failed(act.Failure)
		case checkpoint.GiveUp:
			if a == a.w.attempt {
				a.w.fail("attempt %v gave up, but it is the current one", a.fence.Attempt)
			}
			a.dead = true
		default:
			a.onLane(0, func() checkpoint.Event { return a.write(act) })
		}
	}
}

func (a *attempt) clean(err error) {
	if err != nil {
		a.w.log("%v: clean-up: %v", a.fence.Attempt, err)
	}
	a.w.checkKept()
}

func (a *attempt) finish(e checkpoint.Ending) {
	if a != a.w.attempt { // its decision came before its end; saying so would be stale
		a.dead = true
		return
	}
	a.w.log("%v: finished with %d", a.fence.Attempt, e.Checkpoint)
	a.w.finished = true
}

func (a *attempt) failed(f checkpoint.AttemptFailure) {
	a.w.log("%v: failed: %s", a.fence.Attempt, f.Error())
	if f.Failure.Reason == checkpoint.ReasonMetastoreBack {
		a.w.fail("metastore_behind, but it never went back: %s", f.Error())
	}
	a.dead = true
	if !a.ended {
		a.ended = true
		a.w.after(a.w.upTo(time.Second), a.w.newAttempt)
	}
}

// onLane performs an action when its lane is free. A write that is under way happens
// also when its attempt dies; only the answer is lost then.
func (a *attempt) onLane(lane int, perform func() checkpoint.Event) {
	at := a.w.now
	if a.laneFree[lane].After(at) {
		at = a.laneFree[lane]
	}
	at = at.Add(a.w.upTo(80 * time.Millisecond))
	answer := at.Add(a.w.upTo(80 * time.Millisecond))
	a.laneFree[lane] = answer
	a.w.after(at.Sub(a.w.now), func() {
		e := perform()
		a.w.after(answer.Sub(a.w.now), func() { a.feed(e) })
	})
}

// write performs an action on the metastore or writes a manifest, with faults.
func (a *attempt) write(act checkpoint.Action) checkpoint.Event {
	ctx := context.Background()
	before, after := a.w.fault()
	run := func(work func() error) error {
		if before != nil {
			return before
		}
		if err := work(); err != nil {
			return err
		}
		return after
	}
	switch act := act.(type) {
	case checkpoint.Begin:
		var id weir.CheckpointID
		err := run(func() (err error) {
			_, last := a.w.store.Base()
			if id, err = a.w.store.BeginCheckpoint(ctx, a.fence, act.Record); err == nil && id <= last {
				a.w.fail("id %d was given out twice (I1)", id)
			}
			return err
		})
		a.seen = max(a.seen, id)
		return checkpoint.Begun{ID: id, Err: err}
	case checkpoint.WriteManifest:
		return checkpoint.ManifestWritten{ID: act.Manifest.Checkpoint, Err: a.putManifest(ctx, act.Manifest)}
	case checkpoint.Decide:
		err := run(func() error { return a.w.store.CompleteCheckpoint(ctx, a.fence, act.Record, act.Base) })
		if r, _ := a.w.rowOf(act.Record.ID); r.Status == checkpoint.StatusCompleted && !r.Discarded {
			if _, err := a.w.blobs.Stat(ctx, act.Record.Manifest); err != nil {
				a.w.fail("checkpoint %d is decided without a manifest (I8)", act.Record.ID)
			}
		}
		return checkpoint.Decided{ID: act.Record.ID, Err: err}
	case checkpoint.ReadBack:
		var r checkpoint.Record
		err := run(func() (err error) { r, err = a.w.store.Checkpoint(ctx, a.fence, act.ID); return err })
		return checkpoint.Read{ID: act.ID, Record: r, Err: err}
	case checkpoint.WriteAbort:
		var s checkpoint.Status
		err := run(func() (err error) { s, err = a.w.store.AbortCheckpoint(ctx, a.fence, act.Record); return err })
		return checkpoint.Aborted{ID: act.Record.ID, Status: s, Err: err}
	case checkpoint.CloseCommits:
		err := run(func() (err error) {
			for _, id := range act.IDs {
				err = errors.Join(err, a.w.store.CloseCommits(ctx, a.fence, id, nil))
			}
			return err
		})
		return checkpoint.CommitsClosed{ID: act.ID, Err: err}
	}
	panic(fmt.Sprintf("unknown action %T", act))
}

func (a *attempt) putManifest(ctx context.Context, m *checkpoint.Manifest) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	err = a.w.faulty.PutIfAbsent(ctx, checkpoint.ManifestKey(m.Job, m.Checkpoint), bytes.NewReader(data))
	if errors.Is(err, blob.ErrExists) {
		return nil // only this attempt has this id; the bytes follow from the acks
	}
	return err
}

// trigger reaches each source or not; the driver hears of a failure only.
func (a *attempt) trigger(act checkpoint.SendTrigger) checkpoint.Event {
	var err error
	for _, task := range act.Targets {
		before, after := a.w.fault()
		if err = errors.Join(err, before, after); before == nil {
			a.w.after(a.w.upTo(50*time.Millisecond), func() { a.sources[task.Subtask].trigger(act.Trigger.Checkpoint) })
		}
	}
	return checkpoint.Triggered{ID: act.Trigger.Checkpoint, Err: err}
}

func (a *attempt) notify(act checkpoint.Notify) checkpoint.Event {
	var err error
	for _, task := range act.Tasks {
		before, after := a.w.fault()
		if err = errors.Join(err, before, after); before == nil {
			a.w.after(a.w.upTo(50*time.Millisecond), func() { a.counters[task.Subtask].commit(act.ID) })
		}
	}
	return checkpoint.Notified{ID: act.ID, Err: err}
}

// report carries a task's message to the coordinator: late, lost or twice.
func (a *attempt) report(e checkpoint.Event) {
	before, after := a.w.fault()
	if before != nil {
		return
	}
	a.w.after(a.w.upTo(100*time.Millisecond), func() { a.feed(e) })
	if after != nil {
		a.w.after(a.w.upTo(5*time.Second), func() { a.feed(e) })
	}
}

// rowOf reads a checkpoint's row past all faults.
func (w *world) rowOf(id weir.CheckpointID) (checkpoint.Record, bool) {
	rows := w.store.Rows()
	i := slices.IndexFunc(rows, func(r checkpoint.Record) bool { return r.ID == id })
	if i < 0 {
		return checkpoint.Record{}, false
	}
	return rows[i], true
}
