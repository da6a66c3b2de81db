package checkpoint

import (
	"context"
	"fmt"

	"weir"
)

// Ack takes in a task's ack.
func (r *Runner) Ack(a Ack) { r.send(Acked{Ack: a}) }

// SourceEnded says that a source task has no more data.
func (r *Runner) SourceEnded(task weir.TaskID) { r.send(SourceEnded{Task: task}) }

// Committed says that a sink task has committed its segments up to id, or why it could
// not.
func (r *Runner) Committed(task weir.TaskID, id weir.CheckpointID, err error) {
	r.send(Committed{Task: task, ID: id, Err: err})
}

// send hands an event to Run's goroutine; after Run has returned it is dropped.
func (r *Runner) send(e Event) {
	r.input(input{event: func(RequestID) Event { return e }})
}

func (r *Runner) input(in input) {
	select {
	case r.inputC <- in:
	case <-r.stopC:
	}
}

// Checkpoint begins a checkpoint and returns its id once it has one, and how it came to
// its turn. While as many are under way as may be it waits; all that wait share the next
// one, so that what a user did before the call is in it. weir.ErrConflict: the attempt
// is ending.
func (r *Runner) Checkpoint(ctx context.Context) (weir.CheckpointID, Turn, error) {
	a, err := r.request(ctx, func(id RequestID) Event { return AskCheckpoint{Request: id} })
	return a.ID, a.Turn, err
}

// Savepoint begins a savepoint and returns its id once it has one, and how it came to
// its turn: it runs beside checkpoints, one savepoint after the other. With stop the job
// ends with it. A name that is taken, and a second stop, are weir.ErrConflict.
func (r *Runner) Savepoint(ctx context.Context, name string, stop bool) (weir.CheckpointID, Turn, error) {
	if err := CheckSavepointName(name); err != nil {
		return 0, "", err
	}
	a, err := r.request(ctx, func(id RequestID) Event { return AskSavepoint{Request: id, Name: name, Stop: stop} })
	return a.ID, a.Turn, err
}

// Cancel gives up a pending checkpoint or savepoint; one that is not, or is ending
// already, is weir.ErrConflict. It returns at once; Wait waits for the end.
func (r *Runner) Cancel(ctx context.Context, id weir.CheckpointID) error {
	_, err := r.request(ctx, func(request RequestID) Event { return AskCancel{Request: request, ID: id} })
	return err
}

// request makes a request and waits for its answer.
func (r *Runner) request(ctx context.Context, event func(RequestID) Event) (Answer, error) {
	answerC := make(chan Answer, 1)
	given := make(chan RequestID, 1)
	in := input{answerC: answerC, event: func(id RequestID) Event { given <- id; return event(id) }}
	select {
	case r.inputC <- in:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	case <-r.doneC:
		return Answer{}, r.over()
	}
	select {
	case a := <-answerC:
		return a, a.Err
	case <-ctx.Done():
		r.input(input{event: func(RequestID) Event { return Withdraw{Request: <-given} }}) // taken in order: given is there
		return Answer{}, ctx.Err()
	case <-r.doneC:
	}
	select {
	case a := <-answerC: // the last thing Run did
		return a, a.Err
	default:
		return Answer{}, r.over()
	}
}

func (r *Runner) over() error {
	return fmt.Errorf("%w: attempt %v has ended", weir.ErrConflict, r.cfg.Fence.Attempt)
}

// Wait waits until the checkpoint has ended, however it ends, and returns its record.
func (r *Runner) Wait(ctx context.Context, id weir.CheckpointID) (Record, error) {
	waitC := make(chan waited, 1)
	select {
	case r.inputC <- input{wait: id, waitC: waitC}:
		select {
		case w := <-waitC:
			if w.known {
				return w.record, nil
			}
		case <-ctx.Done():
			return Record{}, ctx.Err()
		case <-r.doneC:
			select {
			case w := <-waitC:
				if w.known {
					return w.record, nil
				}
			default:
			}
		}
	case <-ctx.Done():
		return Record{}, ctx.Err()
	case <-r.doneC:
	}
	return r.cfg.Store.Checkpoint(ctx, r.cfg.Fence, id)
}

// Ending is sent to once: the last checkpoint of a bounded job, or the savepoint that
// stops the job, is decided and all commits are closed. The tasks may close now.
func (r *Runner) Ending() <-chan Ending { return r.endingC }
