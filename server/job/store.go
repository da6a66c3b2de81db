package job

import (
	"context"
	"time"

	"weir"
	"weir/checkpoint"
)

// The rows that cross this border are nouns of the root package.
type (
	Lease = weir.Lease
	Wish  = weir.Wish
	Table = weir.Table
)

// Jobs is the part of the metastore that keeps jobs. Errors are the root sentinels.
type Jobs interface {
	// CreateJob inserts j. A name in use by a job not deleted is weir.ErrConflict. With an
	// idempotency key seen before, it inserts nothing and returns the job of then.
	CreateJob(ctx context.Context, j weir.Job, idempotencyKey string) (weir.Job, error)
	// Job finds a job, not deleted, by id or by name.
	Job(ctx context.Context, idOrName string) (weir.Job, error)
	// Jobs lists jobs, newest first.
	Jobs(ctx context.Context, f weir.JobFilter) ([]weir.Job, error)
	// SetDesired records the user's wish if the job's status is one of from; else
	// weir.ErrConflict. savepoint is the name for a stop's savepoint. A start also sets
	// parallelism (0: keep) and, when base is not nil, the base of the next attempt.
	SetDesired(ctx context.Context, id weir.JobID, from []weir.Status, wish Wish) (weir.Job, error)
	// DeleteJob marks a terminal job deleted (weir.ErrConflict otherwise): its name is
	// free again and its rows stay until its objects are gone.
	DeleteJob(ctx context.Context, id weir.JobID) error
}

// Attempts is the part of the metastore in which the job machine decides. Every
// method but the reads carries a fence: weir.ErrStale when a newer owner exists.
type Attempts interface {
	// BeginAttempt starts the next attempt of the job under lease term: one
	// transaction changes the job's row WHERE its attempt is last and its term is not
	// above term, gives it the attempt, status SCHEDULING and the term, ends the open
	// attempt row, and returns the job with the Base it must start from.
	BeginAttempt(ctx context.Context, job weir.JobID, last weir.AttemptID, term int64) (weir.Job, error)
	// SetStatus moves the job to a status, with the failure that caused it (nil
	// clears it), and records the attempt's times and an event in the same transaction.
	// A transition that Status.CanBecome forbids is weir.ErrConflict.
	SetStatus(ctx context.Context, fence weir.Fence, to weir.Status, failure *weir.Failure) error
	// TakeOver raises the term on the job's row to that of a new lease holder, keeping
	// the attempt, so that the old holder's writes are stale.
	TakeOver(ctx context.Context, fence weir.Fence, term int64) (weir.Job, error)
	// Attempts lists a job's attempts, newest first.
	Attempts(ctx context.Context, job weir.JobID) ([]weir.Attempt, error)
}

// Leases is the part of the metastore that keeps leases.
type Leases interface {
	// AcquireLease takes or renews the shard's lease for ttl by the database's clock:
	// the holder renews its term, another takes over after expiry with term+1. It
	// returns the lease as it stands, whoever holds it.
	AcquireLease(ctx context.Context, shard int, holder string, ttl time.Duration) (Lease, error)
	// ReleaseLease lets the lease expire now if holder still has it.
	ReleaseLease(ctx context.Context, shard int, holder string) error
}

// Events is the part of the metastore that keeps a job's history.
type Events interface {
	// AddEvent appends e, numbering it.
	AddEvent(ctx context.Context, e weir.Event) error
	// Events lists a job's events after seq, oldest first.
	Events(ctx context.Context, job weir.JobID, after int64, limit int) ([]weir.Event, error)
}

// History is the part of the metastore that the API reads checkpoints and
// savepoints from.
type History interface {
	// Checkpoints lists a job's checkpoints and savepoints, newest first, those that f
	// lets through.
	Checkpoints(ctx context.Context, job weir.JobID, f checkpoint.Filter) ([]checkpoint.Record, error)
	// CheckpointByID reads one with its per-subtask detail.
	CheckpointByID(ctx context.Context, job weir.JobID, id weir.CheckpointID) (checkpoint.Record, error)
	// Savepoints lists savepoints, newest first.
	Savepoints(ctx context.Context) ([]checkpoint.Savepoint, error)
	// Savepoint reads one by name.
	Savepoint(ctx context.Context, name string) (checkpoint.Savepoint, error)
	// DeleteSavepoint gives up a savepoint that nothing is based on (weir.ErrConflict
	// otherwise) and returns it; its objects are collected.
	DeleteSavepoint(ctx context.Context, name string) (checkpoint.Savepoint, error)
	// ThinHistory takes the detail from checkpoints that ended long ago and forgets those
	// that ended longer ago, by the database's clock, one batch of each; never what can
	// still be restored.
	ThinHistory(ctx context.Context, keep checkpoint.Thinning) (checkpoint.Thinned, error)
}

// Checkpoints is the part of the metastore in which checkpoints are decided and collected.
type Checkpoints interface {
	checkpoint.Store
	checkpoint.Rows
	// AbandonCommits closes the checkpoint's commits as they are, if they are open: what its
	// sinks have not made visible is given up for good. An event says so.
	AbandonCommits(ctx context.Context, fence weir.Fence, id weir.CheckpointID) error
	// OutputGivenUp tells which of the uncommitted segments that a snapshot holds were given
	// up: those of barriers up to the one returned; 0: none.
	OutputGivenUp(ctx context.Context, ref weir.SnapshotRef) (weir.CheckpointID, error)
	// Collectable lists jobs, by id after one, of which something may have to be
	// collected: limit of them are looked at, next is the last of these, empty at the end.
	Collectable(ctx context.Context, after weir.JobID, limit int, linger time.Duration) (ids []weir.JobID, next weir.JobID, err error)
	// Unswept records that a task of an attempt that is over has stored something since.
	Unswept(ctx context.Context, job weir.JobID, attempt weir.AttemptID) error
}

// Storage is the part of the metastore that storage is compared with.
type Storage interface {
	// JobIDs lists all jobs that have rows, deleted ones too.
	JobIDs(ctx context.Context) ([]weir.JobID, error)
	// Inventory reads what is known of a job's objects.
	Inventory(ctx context.Context, job weir.JobID) (checkpoint.Inventory, error)
	// Adopt makes a snapshot that lies in storage the base of its job and clears its
	// failure; weir.ErrConflict where the job did not fail as metastore_behind and knows as
	// much as storage, or has not ended.
	Adopt(ctx context.Context, job weir.JobID, a checkpoint.Adoption) (weir.Job, error)
}

// Pins is the part of the metastore that keeps snapshots from collection while they are used.
type Pins interface {
	// Pin keeps a completed checkpoint for ttl in the name of holder; one that was given
	// up is weir.ErrConflict.
	Pin(ctx context.Context, ref weir.SnapshotRef, holder string, ttl time.Duration) error
	// Unpin lets go what holder pinned.
	Unpin(ctx context.Context, ref weir.SnapshotRef, holder string) error
}

// Tables is the part of the metastore that keeps the catalog.
type Tables interface {
	// TableByName finds a table, whatever the case of name.
	TableByName(ctx context.Context, name string) (Table, error)
	// Tables lists the catalog by name.
	Tables(ctx context.Context) ([]Table, error)
	// ChangeTables takes tables out of the catalog, by name, and then puts tables into it:
	// all of it or nothing. A catalog that is no longer as Tables gave it is
	// weir.ErrConflict. Jobs keep the definitions that they were planned with.
	ChangeTables(ctx context.Context, seen []Table, drop []string, create []Table) error
}
