package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/killpoint"
	"weir/exec/state"
)

// A Task is one running subtask of a chain. Build makes it; Run runs it in the
// caller's goroutine; the other methods may be called from any goroutine.
type Task struct {
	id       weir.TaskID
	job      weir.JobID
	attempt  weir.AttemptID
	worker   weir.WorkerID
	reporter Reporter
	logger   *slog.Logger
	latency  time.Duration // how long rows wait for company
	now      func() time.Time

	source      Source // nil: the task reads its gate
	sourceSetup Setup
	gate        *gate
	nodes       []*node // the operators behind the source, or all of them
	stores      []*state.Store
	outputs     *outputs
	rejects     *rejects // nil: a row error fails the job
	uploader    *uploader
	mail        *mailbox
	stats       counters
	meter       meter
	tracker     tracker
	doneC       chan struct{} // closed when Run returns

	// Below: the loop's own.
	at       int               // index of the node at work; -1: source, gate or outputs
	ended    bool              // all inputs have ended and the final rows are emitted
	paused   bool              // the source reads nothing
	held     held              // what is buffered since the last flush
	barrier  weir.CheckpointID // of the last snapshot
	timer    *time.Timer
	lookedAt time.Time // when all that could go went last
}

// ID names the task.
func (t *Task) ID() weir.TaskID { return t.id }

// Trigger tells a source task to begin a checkpoint. It never blocks.
func (t *Task) Trigger(tr checkpoint.Trigger) error {
	if t.source == nil {
		return fmt.Errorf("%w: task %v is no source: barriers reach it through its channels", weir.ErrInvalid, t.id)
	}
	t.mail.trigger(tr)
	return nil
}

// Wanted tells a task which checkpoints before newest are still pending (Trigger.Pending):
// it stores nothing more for any other of them. It never blocks.
func (t *Task) Wanted(newest weir.CheckpointID, pending []weir.CheckpointID) {
	t.uploader.wanted(newest, pending)
}

// Commit tells the task's sinks to make the segments of checkpoints up to id visible;
// Reporter.Committed answers, at once where there is no sink. It never blocks.
func (t *Task) Commit(id weir.CheckpointID) { t.mail.commit(id) }

// Close ends a task: it sends `close` over its channels and Run returns nil. It is
// for tasks that have ended (sources after the final checkpoint). It never blocks.
func (t *Task) Close() { t.mail.close() }

// Pause has a source task read nothing more, or go on. Barriers, commits and questions are
// dealt with meanwhile; other tasks have nothing to pause. It never blocks.
func (t *Task) Pause(on bool) { t.mail.pause(on) }

// Relax has a task that waits for rows look at once whether its state is beyond its share of
// the worker's memory. It never blocks.
func (t *Task) Relax() { t.mail.wake() }

// Run runs the task until its context ends (the context's error), it is closed (nil),
// its attempt is superseded (weir.ErrStale) or it fails (*TaskError, also given to
// Reporter.Failed). It may be called once.
func (t *Task) Run(ctx context.Context) error {
	defer close(t.doneC)
	start := t.now()
	t.stats.start.Store(&start)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return t.uploader.run(gctx) })
	g.Go(func() error {
		defer t.uploader.stop()
		return t.guard(gctx)
	})
	err := errors.Join(g.Wait(), t.shut())
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, weir.ErrStale): // a newer attempt took the channels: end quietly
		return fmt.Errorf("task %v: %w", t.id, err)
	}
	failed := t.taskError(err)
	t.reporter.Failed(t.id, failed.Failure, failed.Restart)
	return failed
}

// guard runs the loop and turns a panic into an error.
func (t *Task) guard(ctx context.Context) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		err = t.panicked(p)
		if t.at >= 0 && t.at < len(t.nodes) {
			err = inOperator(t.nodes[t.at], err)
		}
	}()
	t.outputs.ctx = ctx
	t.timer = time.NewTimer(time.Hour)
	defer t.timer.Stop()
	if t.source != nil {
		return t.runSource(ctx)
	}
	return t.runGate(ctx)
}

// panicked makes an error of a panic, while its stack is still there.
func (t *Task) panicked(p any) error {
	var disk *state.DiskError
	if err, ok := p.(error); ok && errors.As(err, &disk) {
		return &reasonError{ReasonSpill, disk}
	}
	t.logger.Error("task panicked", "err", p, "stack", string(debug.Stack()))
	return &reasonError{reason: ReasonPanic, err: fmt.Errorf("panic: %v", p)}
}

// runSource is the loop of a source task: polls, and between them the mailbox.
func (t *Task) runSource(ctx context.Context) error {
	if t.ended { // restored so: the end is said again, the rows are not
		if err := t.sayEnd(); err != nil {
			return err
		}
	}
	head := t.head()
	for {
		t.meter.round()
		if done, err := t.control(ctx); done || err != nil {
			return err
		}
		tight, err := t.relax()
		if err != nil {
			return err
		}
		if t.ended || t.paused || tight {
			if err := t.idle(ctx, time.Time{}); err != nil {
				return err
			}
			continue
		}
		b, poll, until, err := t.source.Next(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", t.sourceSetup.Operator.Name, err)
		}
		t.countRead(b)
		if b != nil {
			t.held.came()
			if err := head.Emit(b); err != nil {
				return err
			}
		}
		switch poll {
		case More:
			err = t.flushBusy()
		case Wait:
			err = t.idle(ctx, until)
		case Done:
			err = t.end()
		}
		if err != nil {
			return err
		}
	}
}

// runGate is the loop of a task with inputs.
func (t *Task) runGate(ctx context.Context) error {
	for {
		t.meter.round()
		if done, err := t.control(ctx); done || err != nil {
			return err
		}
		tight, err := t.relax()
		if err != nil {
			return err
		}
		if tight {
			if err := t.idle(ctx, time.Time{}); err != nil {
				return err
			}
			continue
		}
		f, ch, ok, err := t.gate.poll()
		if err != nil {
			return err
		}
		if !ok {
			if err := t.idle(ctx, time.Time{}); err != nil {
				return err
			}
			continue
		}
		if err := t.frame(ch, f); err != nil {
			return err
		}
	}
}

// frame works off one frame of input ch.
func (t *Task) frame(ch int, f weir.Frame) error {
	switch f.Kind {
	case weir.FrameRecords:
		b, err := t.gate.rows(ch, f)
		if err != nil {
			return err
		}
		t.held.came()
		t.stats.rowsIn.Add(int64(b.Rows()))
		t.stats.bytesIn.Add(int64(f.Size))
		if err := t.head().Emit(b); err != nil {
			return err
		}
		return t.flushBusy()
	case weir.FrameBarrier:
		o, err := originIn(f)
		if err != nil {
			return fmt.Errorf("channel %v: %w", t.gate.inputs[ch].id, err)
		}
		a, aligned := t.gate.barrier(ch, weir.CheckpointID(f.Value), o, t.now())
		if aligned {
			err := t.snapshot(a)
			t.tracker.awaits(t.gate)
			return err
		}
		t.tracker.awaits(t.gate)
	case weir.FrameEnd:
		if t.gate.end(ch) && !t.ended {
			return t.end()
		} else if t.gate.going == 0 { // restored as ended: only said again
			return t.sayEnd()
		}
	case weir.FrameClose:
		return t.closeInput(ch)
	case weir.FrameWatermark, weir.FrameIdle: // no operator keeps event time
	default:
		return fmt.Errorf("channel %v carries %v, which this version does not know", t.gate.inputs[ch].id, f.Kind)
	}
	return nil
}

func (t *Task) closeInput(ch int) error {
	aligned, err := t.gate.close(ch)
	if err != nil {
		return err
	}
	for _, a := range aligned {
		if err := t.snapshot(a); err != nil {
			return err
		}
	}
	t.tracker.awaits(t.gate)
	if t.gate.open == 0 {
		t.mail.close() // through the mailbox, behind what is in it
	}
	return nil
}

// control works off the mailbox; done: the task was closed.
func (t *Task) control(ctx context.Context) (done bool, err error) {
	if err := ctx.Err(); err != nil {
		return true, err
	}
	l, ok := t.mail.take()
	if !ok {
		return false, nil
	}
	if l.broken != nil {
		return true, l.broken
	}
	t.paused = l.paused
	for _, q := range l.questions {
		page, err := t.reader().Read(q.query)
		q.replyC <- reply{page, err}
	}
	for _, tr := range l.triggers {
		if err := t.snapshot(alignment{id: tr.Checkpoint, origin: originOf(tr)}); err != nil {
			return true, err
		}
	}
	for _, id := range l.commits {
		if err := t.commit(ctx, id); err != nil {
			return true, err
		}
	}
	if l.close {
		return true, t.outputs.broadcast(weir.Frame{Kind: weir.FrameClose})
	}
	return false, nil
}

// commit makes segments visible, on the loop: a sink's calls are never concurrent,
// and the rows behind a commit wait for it.
func (t *Task) commit(ctx context.Context, id weir.CheckpointID) error {
	killpoint.Here("before-commit")
	t.stats.committing.Store(int64(id))
	defer t.stats.committing.Store(0)
	defer t.meter.resume(t.meter.whole())
	for _, n := range t.nodes {
		c, ok := n.op.(Committer)
		if !ok {
			continue
		}
		t.meter.turn(n.slot)
		if err := c.Commit(ctx, id); err != nil {
			return inOperator(n, &reasonError{ReasonCommit, fmt.Errorf("commit checkpoint %d: %w", id, err)})
		}
	}
	killpoint.Here("after-commit")
	t.reporter.Committed(t.id, id)
	return nil
}

// end works off the end of all inputs: final rows, then `end` behind them.
func (t *Task) end() error {
	if err := t.endNodes(); err != nil {
		return err
	}
	return t.sayEnd()
}

func (t *Task) sayEnd() error {
	if err := t.outputs.broadcast(weir.Frame{Kind: weir.FrameEnd}); err != nil {
		return err
	}
	t.ended, t.held = true, held{}
	t.stats.ended.Store(true)
	if t.source != nil {
		t.reporter.Ended(t.id)
	}
	return nil
}

// shut releases what the task's operators and channels hold.
func (t *Task) shut() error {
	var errs []error
	if t.source != nil {
		errs = append(errs, t.source.Close())
	}
	for _, n := range t.nodes {
		errs = append(errs, inOperator(n, n.op.Close()))
	}
	for _, s := range t.stores {
		errs = append(errs, s.Close())
	}
	if t.rejects != nil {
		t.rejects.lines.close()
	}
	return errors.Join(append(errs, t.outputs.close())...)
}
