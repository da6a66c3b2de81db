package jobtest

import (
	"context"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/metastore"
)

// A view is the metastore as one server sees it.
type view struct {
	*metastore.Store
	server string
	c      *Cluster
}

// AcquireLease fails when the test wants it to.
func (v view) AcquireLease(ctx context.Context, shard int, holder string, ttl time.Duration) (weir.Lease, error) {
	if f := v.c.LoseLease.Load(); f != nil && (*f)(v.server) {
		return weir.Lease{}, context.DeadlineExceeded
	}
	if err := v.ask(ctx); err != nil {
		return weir.Lease{}, err
	}
	return v.Store.AcquireLease(ctx, shard, holder, ttl)
}

// CompleteCheckpoint takes as long as the test wants.
func (v view) CompleteCheckpoint(ctx context.Context, fence weir.Fence, r checkpoint.Record, base bool) error {
	if f := v.c.Deciding.Load(); f != nil {
		(*f)()
	}
	if err := v.ask(ctx); err != nil {
		return err
	}
	return v.Store.CompleteCheckpoint(ctx, fence, r, base)
}

func (v view) ask(ctx context.Context) error {
	if f := v.c.Metastore.Load(); f != nil {
		return (*f)(ctx, v.server)
	}
	return nil
}

// Jobs is asked first.
func (v view) Jobs(ctx context.Context, f weir.JobFilter) ([]weir.Job, error) {
	if err := v.ask(ctx); err != nil {
		return nil, err
	}
	return v.Store.Jobs(ctx, f)
}

// BeginAttempt is asked first.
func (v view) BeginAttempt(ctx context.Context, job weir.JobID, last weir.AttemptID, term int64) (weir.Job, error) {
	if err := v.ask(ctx); err != nil {
		return weir.Job{}, err
	}
	return v.Store.BeginAttempt(ctx, job, last, term)
}

// SetStatus is asked first.
func (v view) SetStatus(ctx context.Context, f weir.Fence, to weir.Status, failure *weir.Failure) error {
	if err := v.ask(ctx); err != nil {
		return err
	}
	return v.Store.SetStatus(ctx, f, to, failure)
}

// SetDesired is asked first.
func (v view) SetDesired(ctx context.Context, id weir.JobID, from []weir.Status, wish weir.Wish) (weir.Job, error) {
	if err := v.ask(ctx); err != nil {
		return weir.Job{}, err
	}
	return v.Store.SetDesired(ctx, id, from, wish)
}

// BeginCheckpoint is asked first.
func (v view) BeginCheckpoint(ctx context.Context, f weir.Fence, r checkpoint.Record) (weir.CheckpointID, error) {
	if err := v.ask(ctx); err != nil {
		return 0, err
	}
	return v.Store.BeginCheckpoint(ctx, f, r)
}

// AbortCheckpoint is asked first.
func (v view) AbortCheckpoint(ctx context.Context, f weir.Fence, r checkpoint.Record) (checkpoint.Status, error) {
	if err := v.ask(ctx); err != nil {
		return "", err
	}
	return v.Store.AbortCheckpoint(ctx, f, r)
}

// DiscardCheckpoints is asked first.
func (v view) DiscardCheckpoints(ctx context.Context, f weir.Fence, ids []weir.CheckpointID) ([]weir.CheckpointID, error) {
	if err := v.ask(ctx); err != nil {
		return nil, err
	}
	return v.Store.DiscardCheckpoints(ctx, f, ids)
}
