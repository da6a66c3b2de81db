package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/killpoint"
	"weir/exec"
	"weir/exec/deploy"
)

// Reports are what an attempt has to say, in order. Adding never blocks: they are as
// many as its tasks and open checkpoints make.
type reports struct {
	moreC chan struct{} // room for one
	mu    struct {
		sync.Mutex
		list  []deploy.Report
		ended bool // nothing follows
	}
}

func (q *reports) add(r deploy.Report) {
	q.mu.Lock()
	q.mu.list = append(q.mu.list, r)
	q.mu.Unlock()
	q.more()
}

func (q *reports) end() {
	q.mu.Lock()
	q.mu.ended = true
	q.mu.Unlock()
	q.more()
}

func (q *reports) more() {
	select {
	case q.moreC <- struct{}{}:
	default:
	}
}

func (q *reports) take() (list []deploy.Report, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, q.mu.list = q.mu.list, nil
	return list, q.mu.ended
}

// send delivers the attempt's reports, each until a server has taken it in (W3).
func (a *attempt) send(ctx context.Context) {
	for {
		list, ended := a.report.take()
		for _, r := range list {
			r.Header, r.Job, r.Attempt = deploy.Head(), a.m.Job, a.m.Attempt
			r.Worker, r.Incarnation = a.w.cfg.ID, a.w.incarnation
			err := a.publish(ctx, r)
			switch {
			case err == nil:
			case ctx.Err() != nil:
				return
			case errors.Is(err, weir.ErrStale):
				a.log.Info("attempt is over", "worker", a.w.cfg.ID)
				a.cancel()
				return
			default:
				a.log.Error("report refused", "err", err)
				a.refused(r, err)
			}
		}
		if ended {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-a.report.moreC:
		}
	}
}

// refused says in the place of an ack that did not get through, for it is too large, why
// there is none: its checkpoint would expire without a word of it.
func (a *attempt) refused(r deploy.Report, err error) {
	if r.Ack == nil || r.Ack.Snapshot == nil {
		return
	}
	ack := *r.Ack
	ack.Snapshot = nil
	ack.Failure = &weir.Failure{
		Reason: checkpoint.ReasonDeclined, Subtask: &ack.Task.Subtask, Worker: ack.Worker,
		Message: fmt.Sprintf("task %v: checkpoint %d: its snapshot is stored, but the ack is refused: %s", ack.Task, ack.Checkpoint, exec.Message(err)),
	}
	a.Ack(ack)
}

// publish delivers one report.
func (a *attempt) publish(ctx context.Context, r deploy.Report) error {
	switch {
	case r.Ack != nil:
		killpoint.Here("before-ack")
	case r.Committed != nil:
		killpoint.Here("before-confirm")
	}
	_, err := a.w.cfg.Control.Publish(ctx, "report", deploy.Encode(r))
	switch {
	case r.Ack != nil:
		killpoint.Here("after-ack")
	case r.Committed != nil:
		killpoint.Here("after-confirm")
	}
	return err
}

// Ack reports a snapshot.
func (a *attempt) Ack(ack checkpoint.Ack) { a.report.add(deploy.Report{Ack: &ack}) }

// Ended reports a source without more data. Other tasks' ends are nobody's concern.
func (a *attempt) Ended(task weir.TaskID) { a.report.add(deploy.Report{Ended: &task}) }

// Committed reports visible output.
func (a *attempt) Committed(task weir.TaskID, id weir.CheckpointID) {
	a.report.add(deploy.Report{Committed: &deploy.Committed{Task: task, Checkpoint: id}})
}

// Failed reports the end of a task.
func (a *attempt) Failed(task weir.TaskID, f weir.Failure, restart bool) {
	a.log.Warn("task failed", "worker", a.w.cfg.ID, "subtask", task, "op", f.Operator, "err", f.Message)
	a.report.add(deploy.Report{Status: &deploy.TaskStatus{Task: task, Failure: &f, Restart: restart}})
}

// placedHere lists which of the tasks run here, in order.
func placedHere(parts []deploy.Placed, worker weir.WorkerID) []weir.TaskID {
	var list []weir.TaskID
	for _, p := range parts {
		if p.Worker == worker {
			list = append(list, p.Task)
		}
	}
	slices.SortFunc(list, weir.TaskID.Compare)
	return list
}
