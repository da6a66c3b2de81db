package job

import (
	"context"
	"encoding/json"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/planner/plan"
)

// A Spec is a job as its user submits it, planned already.
type Spec struct {
	Name        string // empty: one is made
	SQL         string
	Graph       plan.Graph
	Parallelism int             // 0: 2
	Checkpoint  json.RawMessage // checkpoint.Options; nil: the defaults
	Restart     json.RawMessage // RestartOptions; nil: the defaults
	OnRowError  string          // "fail", or empty, "skip" or "keep": what Graph was planned for
	RestoreFrom string          // a From; empty: nothing
	// AllowDuplicateOutput starts behind output that an append sink has made visible.
	AllowDuplicateOutput bool
	IdempotencyKey       string
}

// A StopRequest asks for a stop with savepoint.
type StopRequest struct {
	Drain bool
	Name  string // of the savepoint; empty: one is made
}

// A StartRequest asks for another start of a job.
type StartRequest struct {
	From                 string // a From; empty: latest
	Parallelism          int    // 0: as it was
	AllowDuplicateOutput bool
	AbandonOutput        bool
}

// Submit creates a job and lets it start. A name in use is weir.ErrConflict, wrong
// options are weir.ErrInvalid, a snapshot that does not exist weir.ErrNotFound.
func (s *Service) Submit(ctx context.Context, spec Spec) (weir.Job, error) {
	return s.submit(ctx, spec)
}

// Get finds a job by id or name.
func (s *Service) Get(ctx context.Context, idOrName string) (weir.Job, error) {
	return s.deps.Store.Job(ctx, idOrName)
}

// List lists jobs, newest first.
func (s *Service) List(ctx context.Context, f weir.JobFilter) ([]weir.Job, error) {
	return s.deps.Store.Jobs(ctx, f)
}

// Stop asks for a stop with savepoint and returns at once; the job's StopSavepoint is
// the savepoint's name. Asked again it changes nothing.
func (s *Service) Stop(ctx context.Context, idOrName string, req StopRequest) (weir.Job, error) {
	return s.stop(ctx, idOrName, req)
}

// Cancel asks for the job's end without a savepoint and returns at once. Asked again
// it changes nothing. With abandonOutput, decided output that a sink has not made
// visible yet is given up.
func (s *Service) Cancel(ctx context.Context, idOrName string, abandonOutput bool) (weir.Job, error) {
	return s.cancel(ctx, idOrName, abandonOutput)
}

// Start starts a job that has ended, from a snapshot of the user's choice. A missing
// snapshot is weir.ErrNotFound; one that failed, a job that runs, or output that
// would be repeated is weir.ErrConflict.
func (s *Service) Start(ctx context.Context, idOrName string, req StartRequest) (weir.Job, error) {
	return s.start(ctx, idOrName, req)
}

// Restore is Start that ends a running attempt first, without a savepoint. Once it is
// recorded it happens, whether its caller waits or not.
func (s *Service) Restore(ctx context.Context, idOrName string, req StartRequest) (weir.Job, error) {
	return s.restore(ctx, idOrName, req)
}

// Delete deletes a job that has ended and, as its retention says, its checkpoints;
// never a savepoint.
func (s *Service) Delete(ctx context.Context, idOrName string, abandonOutput bool) error {
	return s.delete(ctx, idOrName, abandonOutput)
}

// A Triggered is a checkpoint or savepoint that a user asked for, as far as it came.
type Triggered struct {
	checkpoint.Record
	Turn checkpoint.Turn // how the request came to it
}

// TriggerCheckpoint begins a checkpoint now. With wait it also waits, at most that
// long, for the job to run and for the checkpoint to end; the record says how far it
// came. Without, a job that does not run is weir.ErrConflict.
func (s *Service) TriggerCheckpoint(ctx context.Context, idOrName string, wait time.Duration) (Triggered, error) {
	return s.trigger(ctx, idOrName, triggerRequest{Wait: wait})
}

// TriggerSavepoint is TriggerCheckpoint for a savepoint; an empty name is made up.
func (s *Service) TriggerSavepoint(ctx context.Context, idOrName, name string, wait time.Duration) (Triggered, error) {
	return s.trigger(ctx, idOrName, triggerRequest{Savepoint: true, Name: name, Wait: wait})
}

// CancelCheckpoint gives a pending checkpoint or savepoint up and returns its record,
// aborted unless it takes long; one that is not pending is weir.ErrConflict.
func (s *Service) CancelCheckpoint(ctx context.Context, idOrName string, id weir.CheckpointID) (checkpoint.Record, error) {
	return s.cancelCheckpoint(ctx, idOrName, id)
}

// CheckpointProgress asks the tasks of a job how far they are with a pending checkpoint.
func (s *Service) CheckpointProgress(ctx context.Context, job weir.JobID, id weir.CheckpointID) (Progress, error) {
	return s.progress(ctx, job, id)
}

// Workers lists the workers heard of, by id.
func (s *Service) Workers(ctx context.Context) ([]Worker, error) {
	return s.workers(ctx)
}

// Rates gives the figures of a job's running attempt; all are zero when none runs.
func (s *Service) Rates(ctx context.Context, idOrName string) (Rates, error) {
	return s.rates(ctx, idOrName)
}

// Channels asks the workers of a job how its channels fare, for 2 s at most, and names those
// that do not answer.
func (s *Service) Channels(ctx context.Context, idOrName string) (Channels, error) {
	return s.channels(ctx, idOrName)
}

// Observe asks all workers at once for what is measured, for 2 s at most. What is known is
// there beside an error too, which says that the jobs could not be listed.
func (s *Service) Observe(ctx context.Context) (Observation, error) {
	return s.observe(ctx)
}
