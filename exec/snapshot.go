package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/checkpoint/killpoint"
	"weir/exec/state"
)

// snapshot takes the task's snapshot for checkpoint id and forwards the barrier.
// All of it but the upload happens here, on the loop, between two batches: partial
// results are flushed first (I11), the barrier goes behind them in every channel (I2),
// and the state is cut. A barrier that is not newer than the last one is ignored (I4).
func (t *Task) snapshot(id weir.CheckpointID, startAt, firstAt time.Time) error {
	if id <= t.barrier {
		return nil
	}
	t.barrier = id
	began := t.now()
	if err := t.flushNow(began); err != nil {
		return err
	}
	u := upload{id: id, snapshot: checkpoint.TaskSnapshot{Task: t.id, Ended: t.ended}}
	if err := t.lists(&u); err != nil {
		return err
	}
	killpoint.Here("before-barrier")
	if err := t.outputs.broadcast(barrierFrame(id, startAt)); err != nil {
		return err
	}
	killpoint.Here("after-barrier")
	killpoint.Here("before-cut")
	cutAt := t.now()
	for _, n := range t.nodes {
		if n.setup.State != nil {
			u.cuts = append(u.cuts, operatorCut{n, n.setup.State.Cut()})
		}
	}
	killpoint.Here("after-cut")
	u.timing = timing(startAt, firstAt, began)
	u.timing.CutMS = milliseconds(t.now().Sub(cutAt))
	if !t.uploader.put(u) {
		u.release()
		t.decline(u, fmt.Errorf("%d snapshots of the task are still being stored", cap(t.uploader.queueC)))
	}
	return nil
}

// lists collects the list state of the source and of every operator that has some.
func (t *Task) lists(u *upload) error {
	add := func(setup *Setup, s Snapshotter) error {
		items, err := s.Snapshot(u.id)
		if err != nil {
			return fmt.Errorf("snapshot %d: %w", u.id, err)
		}
		if items == nil {
			items = []json.RawMessage{}
		}
		u.snapshot.Operators = append(u.snapshot.Operators, checkpoint.OperatorSnapshot{Operator: setup.Operator.ID, List: items})
		return nil
	}
	if t.source != nil {
		if err := add(&t.sourceSetup, t.source); err != nil {
			return fmt.Errorf("%s: %w", t.sourceSetup.Operator.Name, err)
		}
	}
	for _, n := range t.nodes {
		if s, ok := n.op.(Snapshotter); ok {
			if err := add(&n.setup, s); err != nil {
				return inOperator(n, err)
			}
		}
		if c, ok := n.op.(Committer); ok && c.Pending() {
			u.snapshot.Commits = true
		}
	}
	return nil
}

func timing(startAt, firstAt, began time.Time) checkpoint.Timing {
	var tm checkpoint.Timing
	if firstAt.IsZero() {
		firstAt = began
	}
	if !startAt.IsZero() {
		tm.StartDelayMS = max(milliseconds(firstAt.Sub(startAt)), 0)
	}
	tm.AlignmentMS = milliseconds(began.Sub(firstAt))
	return tm
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (t *Task) ack(u upload) checkpoint.Ack {
	return checkpoint.Ack{
		Version: 1, Job: t.job, Attempt: t.attempt, Task: t.id, Checkpoint: u.id, Worker: t.worker, Timing: u.timing,
	}
}

func (t *Task) decline(u upload, err error) {
	subtask := t.id.Subtask
	a := t.ack(u)
	a.Failure = &weir.Failure{
		Reason: checkpoint.ReasonDeclined, Subtask: &subtask, Worker: t.worker,
		Message: fmt.Sprintf("task %v: checkpoint %d: %v", t.id, u.id, err),
	}
	t.reporter.Ack(a)
}

// An upload is a snapshot on its way to storage.
type upload struct {
	id       weir.CheckpointID
	snapshot checkpoint.TaskSnapshot
	cuts     []operatorCut
	timing   checkpoint.Timing
}

type operatorCut struct {
	node *node
	cut  *state.Cut
}

func (u *upload) release() {
	for _, c := range u.cuts {
		c.cut.Release()
	}
}

// openUploads bounds the snapshots of a task that wait for storage; the coordinator
// has few checkpoints open, so that more means that storage hangs.
const openUploads = 8

// An uploader stores snapshots off the loop, in their order, and acknowledges each
// once its objects are durable (I7). Its goroutine belongs to Run.
type uploader struct {
	task   *Task
	blobs  blob.Store
	queueC chan upload
}

func newUploader(t *Task, blobs blob.Store) *uploader {
	return &uploader{task: t, blobs: blobs, queueC: make(chan upload, openUploads)}
}

// put queues an upload; false: the queue is full.
func (w *uploader) put(u upload) bool {
	select {
	case w.queueC <- u:
		return true
	default:
		return false
	}
}

// stop is called by the loop when it ends; what is queued is still stored.
func (w *uploader) stop() { close(w.queueC) }

// run stores uploads until the loop has ended; after the end of ctx it only releases them.
func (w *uploader) run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = w.task.panicked(p)
		}
	}()
	for u := range w.queueC {
		if ctx.Err() == nil {
			w.store(ctx, u)
		}
		u.release()
	}
	return nil
}

func (w *uploader) store(ctx context.Context, u upload) {
	began := w.task.now()
	killpoint.Here("before-upload")
	if err := w.write(ctx, &u); err != nil {
		if ctx.Err() == nil {
			w.task.logger.Warn("snapshot not stored", "cp", u.id, "err", err)
			w.task.decline(u, err)
		}
		return
	}
	killpoint.Here("after-upload")
	u.timing.UploadMS = milliseconds(w.task.now().Sub(began))
	a := w.task.ack(u)
	a.Snapshot, a.Timing = &u.snapshot, u.timing
	w.task.reporter.Ack(a)
}
