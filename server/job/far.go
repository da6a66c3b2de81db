package job

import (
	"context"
	"fmt"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
)

// A Progress is how far the tasks of a job are with a pending checkpoint.
type Progress struct {
	Tasks []checkpoint.Progress // of the workers that answered, in order
	// Unknown says why some tasks are not among them; empty: all are.
	Unknown string
}

// A farAnswer is a Progress on its way between servers.
type farAnswer struct {
	deploy.Header
	Tasks   []checkpoint.Progress `json:"tasks"`
	Unknown string                `json:"unknown,omitempty"`
}

// progressWithin bounds how long a reader waits: the workers' own bound, and the way to
// the holder of the lease.
const progressWithin = answerIn + time.Second

// progress asks, by the holder of the lease, how far the tasks are.
func (s *Service) progress(ctx context.Context, job weir.JobID, id weir.CheckpointID) (Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, progressWithin)
	defer cancel()
	d, holder, err := s.holderOf(job)
	if err != nil {
		return Progress{}, err
	}
	if d != nil {
		a, err := d.far(ctx, id)
		return Progress{a.Tasks, a.Unknown}, err
	}
	body, err := s.askHolder(ctx, holder, deploy.KindProgress, deploy.Progress{Header: deploy.Head(), Job: job, Checkpoint: id})
	if err != nil {
		return Progress{}, err
	}
	var a farAnswer
	err = deploy.Decode(body, &a)
	return Progress{a.Tasks, a.Unknown}, err
}

// far asks the tasks of the running attempt.
func (d *driver) far(ctx context.Context, id weir.CheckpointID) (farAnswer, error) {
	d.mu.Lock()
	run := d.mu.run
	d.mu.Unlock()
	if run == nil {
		return farAnswer{}, fmt.Errorf("%w: job %s is between two attempts", weir.ErrConflict, d.id)
	}
	a := farAnswer{Header: deploy.Head()}
	var err error
	if a.Tasks, err = run.tasks.Progress(ctx, id); err != nil {
		a.Unknown = err.Error()
	}
	return a, nil
}
