package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/killpoint"
)

// snapshot takes the task's snapshot for the checkpoint that has aligned, or was
// triggered, and forwards the barrier. All of it but the upload happens here, on the
// loop, between two batches: partial results are flushed first (I11), the barrier goes
// behind them in every channel (I2), and the state is cut. A barrier that is not newer
// than the last one is ignored (I4). The barrier goes on in every case, or whoever is
// behind would wait for it: where the snapshot cannot be taken it is declined, and
// where the checkpoint has ended already there is none.
func (t *Task) snapshot(a alignment) error {
	if a.id <= t.barrier {
		return nil
	}
	t.barrier = a.id
	defer t.meter.resume(t.meter.whole())
	began := t.now()
	t.tracker.reach(a.id, checkpoint.StageCutting, began)
	if err := t.flushNow(began); err != nil {
		return err
	}
	wanted := !t.uploader.ended(a.id)
	u := &upload{id: a.id, origin: a.origin, snapshot: checkpoint.TaskSnapshot{Task: t.id, Ended: t.ended}, timing: a.timing(began)}
	if wanted {
		if full := t.uploader.room(); full != nil { // what has changed stays for a later cut
			t.decline(u, full)
			wanted = false
		}
	}
	var failed error
	if wanted {
		failed = t.lists(u)
	}
	if failed != nil {
		t.logger.Warn("snapshot not taken", "cp", a.id, "err", failed)
		t.decline(u, failed)
		if !t.ofSource(failed) { // a sink that could not seal its segment cannot go on
			return failed
		}
		wanted = false
	}
	killpoint.Here("before-barrier")
	if err := t.outputs.broadcast(barrierFrame(a.id, a.origin)); err != nil {
		return err
	}
	if !wanted {
		t.tracker.reach(a.id, checkpoint.StageDone, t.now())
		return nil
	}
	killpoint.Here("after-barrier")
	t.cut(u)
	u.cutAt = t.now()
	u.timing.CutMS = milliseconds(u.cutAt.Sub(began))
	t.uploader.put(u)
	return nil
}

// cut cuts the keyed state of every operator that has some.
func (t *Task) cut(u *upload) {
	killpoint.Here("before-cut")
	for _, n := range t.nodes {
		if n.setup.State != nil {
			t.meter.turn(n.slot)
			u.cuts = append(u.cuts, &operatorCut{node: n, cut: n.setup.State.Cut()})
		}
	}
	killpoint.Here("after-cut")
}

// lists collects the list state of the source and of every operator that has some.
func (t *Task) lists(u *upload) error {
	if t.source != nil {
		if err := t.list(u, &t.sourceSetup, t.source); err != nil {
			return err
		}
	}
	for _, n := range t.nodes {
		if s, ok := n.op.(Snapshotter); ok {
			t.meter.turn(n.slot)
			if err := t.list(u, &n.setup, s); err != nil {
				return err
			}
		}
		if s, ok := n.op.(Sealer); ok {
			if seal := s.Seal(); seal != nil {
				u.seals = append(u.seals, operatorSeal{n, seal})
			}
		}
		if c, ok := n.op.(Committer); ok && c.Pending() {
			u.snapshot.Commits = true
		}
	}
	return nil
}

// list adds the list state of one operator. A panic is an error that names it.
func (t *Task) list(u *upload, setup *Setup, s Snapshotter) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = t.panicked(p)
		}
		if err != nil {
			err = &opError{setup, fmt.Errorf("snapshot %d: %w", u.id, err)}
		}
	}()
	items, err := s.Snapshot(u.id)
	if err != nil {
		return err
	}
	if items == nil {
		items = []json.RawMessage{}
	}
	for _, item := range items {
		u.timing.NewBytes += int64(len(item))
		u.timing.TotalBytes += int64(len(item))
	}
	u.snapshot.Operators = append(u.snapshot.Operators, checkpoint.OperatorSnapshot{Operator: setup.Operator.ID, List: items})
	return nil
}

// ofSource reports whether err is a source's whose position could not be taken, but no
// broken invariant: nothing has changed, and the source may go on.
func (t *Task) ofSource(err error) bool {
	var marked *opError
	var reason *reasonError
	return errors.As(err, &marked) && marked.setup == &t.sourceSetup && !errors.As(err, &reason)
}

// timing begins the times of an ack; began is when the last barrier, or the trigger,
// was taken up.
func (a alignment) timing(began time.Time) checkpoint.Timing {
	tm := checkpoint.Timing{LastInput: a.last}
	first := a.firstAt
	if first.IsZero() {
		first = began
	}
	if !a.origin.at.IsZero() {
		tm.StartDelayMS = max(milliseconds(first.Sub(a.origin.at)), 0)
	}
	tm.AlignmentMS = milliseconds(began.Sub(first))
	return tm
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (t *Task) ack(u *upload) checkpoint.Ack {
	return checkpoint.Ack{
		Version: 1, Job: t.job, Attempt: t.attempt, Task: t.id, Checkpoint: u.id, Worker: t.worker, Timing: u.timing,
	}
}

// decline says that there will be no snapshot, and whose fault that is.
func (t *Task) decline(u *upload, err error) {
	subtask := t.id.Subtask
	a := t.ack(u)
	a.Failure = &weir.Failure{
		Reason: checkpoint.ReasonDeclined, Subtask: &subtask, Worker: t.worker,
		Message: fmt.Sprintf("task %v: checkpoint %d: %s", t.id, u.id, Message(err)),
	}
	var marked *opError
	if errors.As(err, &marked) {
		a.Failure.Operator = marked.setup.Operator.ID
	}
	t.reporter.Ack(a)
}
