package exec

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"time"

	"weir"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/plan"
)

// A Setup is what an operator's subtask is opened with.
type Setup struct {
	Job            weir.JobID
	Attempt        weir.AttemptID
	Operator       plan.Operator
	Input          []plan.Column // schema of its input; nil for sources
	Subtask        int
	Parallelism    int
	MaxParallelism int
	// State is the operator's keyed state, restored before the first call; it is empty
	// at a start from nothing.
	State *state.Store
	// List holds the list state of all subtasks of the restored snapshot, in the order
	// of the subtasks; each takes its share. nil: nothing was restored.
	List []json.RawMessage
	// GivenUp are items of a sink's list state that are not in List: segments that are not
	// to be made visible any more, for good. What there still is of them may go.
	GivenUp []json.RawMessage
	// Restored tells a snapshot with empty List from a start from nothing.
	Restored bool
	// Agree gives all subtasks of the operator, wherever they run, one answer to what each
	// finds out for itself at a start from nothing: that of the first to say it, or of
	// subtask 0. nil: there is only one subtask.
	Agree func(ctx context.Context, name string, mine []byte) ([]byte, error)
	// Rejects takes rows at fault, which the operator then leaves out; nil: the first one
	// fails the job.
	Rejects Rejecter
	// Now is the clock of CURRENT_TIMESTAMP.
	Now func() time.Time
	// Files are the roots below which file connectors may read and write; empty: none.
	Files  []string
	Logger *slog.Logger
}

// A Rejecter takes the rows that on_row_error skips or keeps. An error means that the
// task is ending, and is returned as it is. It keeps nothing of e.
type Rejecter interface {
	Reject(e *RowError) error
}

// A Collector takes an operator's output. Emit passes the ownership of the batch on;
// an error means the task is ending, and is returned as it is.
type Collector interface {
	Emit(b *batch.Batch) error
}

// An Operator transforms batches. All methods are called by one goroutine. Process
// owns the batch it is given. The order of calls is: open (by its factory), then
// Process and Flush in any order, End at most once, Flush after it still, Close.
//
// A snapshot is taken by the task between Flush and the next Process: of State,
// without asking the operator, and of list state through Snapshotter. A partial
// result that Flush has not emitted is not part of any snapshot (I11).
type Operator interface {
	// Process takes in one batch.
	Process(b *batch.Batch, out Collector) error
	// Flush emits what is buffered: before every barrier, and when the task has
	// nothing else to do.
	Flush(out Collector) error
	// End says that no batch follows; final rows are emitted here. Barriers, and so
	// Flush, may still follow.
	End(out Collector) error
	// Close releases what it holds; nothing is emitted.
	Close() error
}

// A Snapshotter is an operator or source with list state.
type Snapshotter interface {
	// Snapshot returns the items of this subtask as of barrier id. It is called on the
	// task's loop.
	Snapshot(id weir.CheckpointID) ([]json.RawMessage, error)
}

// A Follower is an operator that also reads the state of the one in front of it.
type Follower interface {
	// Follow is called once, when both are open, before the first batch.
	Follow(before Operator) error
}

// A Committer is a sink whose output becomes visible only after the decision (I10).
type Committer interface {
	Snapshotter
	// Pending reports whether segments wait for a commit.
	Pending() bool
	// Commit makes the segments of barriers up to id visible, in barrier order. It is
	// atomic per segment and idempotent by the segment's identity.
	Commit(ctx context.Context, id weir.CheckpointID) error
}

// A Sealer is a Snapshotter that leaves to others what would keep the loop waiting: what its
// items name is not durable yet when Snapshot returns.
type Sealer interface {
	Snapshotter
	// Seal returns what makes durable what Snapshot has named since the last call; nil: it is
	// already. It is called on the loop behind every Snapshot. What it returns is called once,
	// off the loop and in barrier order, before any snapshot that names it is acknowledged
	// (I7), whatever becomes of the checkpoint; an attempt that ends may not call it any more.
	// None of it is at work when Close is called. An error ends the attempt.
	Seal() func() error
}

// A Poll says what a source has after Next.
type Poll uint8

// The answers of a source.
const (
	More Poll = iota // call again at once
	Wait             // nothing before the returned time
	Done             // the end: nothing more, ever
)

// A Source produces the rows of a table. All methods are called by one goroutine.
type Source interface {
	// Next returns the next batch, or nil when there is none just now. It must return
	// within about 10 ms of work, so that barriers are prompt; it never blocks on time:
	// with Wait, until says when to ask again.
	Next(ctx context.Context) (b *batch.Batch, p Poll, until time.Time, err error)
	Snapshotter
	Close() error
}

// A RowError is a fault of one row of the input: it fails the attempt, and a
// restart would not help.
type RowError struct {
	Table  string // empty: the row is no table's, but one that the operator makes
	Path   string // file; empty where the source has none
	Line   int64  // from 1; 0: unknown
	Offset int64  // of the record in Path, bytes, or the row's number in its source; -1: none
	Column string // the column at fault; empty: the whole row
	Reason string
	Raw    string // the record's bytes as they lie in the source; empty: unknown
}

// Error gives one line: table, file:line, column and reason.
func (e *RowError) Error() string {
	if e.Table == "" {
		return e.Reason
	}
	s := "table " + e.Table
	if e.Path != "" {
		s += ": " + e.Path
		if e.Line > 0 {
			s += ":" + strconv.FormatInt(e.Line, 10)
		}
	} else if e.Offset >= 0 {
		s += ": row " + strconv.FormatInt(e.Offset, 10)
	}
	if e.Column != "" {
		s += ": column " + e.Column
	}
	return s + ": " + e.Reason
}
