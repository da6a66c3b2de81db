package weir

import (
	"encoding/json"
	"slices"
	"time"
)

// A Status is where a job stands. What its user wants is Desired.
type Status string

// The statuses of a job; JSON shows them as they are.
const (
	StatusCreated    Status = "CREATED"    // accepted, no attempt yet
	StatusScheduling Status = "SCHEDULING" // an attempt waits for slots or is being deployed
	StatusRunning    Status = "RUNNING"    // all tasks run
	StatusRestarting Status = "RESTARTING" // the attempt failed, another follows
	StatusStopping   Status = "STOPPING"   // stop with savepoint, or the last commits, under way
	StatusStopped    Status = "STOPPED"    // ended by stop; may be started again
	StatusCanceled   Status = "CANCELED"   // ended by cancel; may be started again
	StatusFinished   Status = "FINISHED"   // all input worked off and committed
	StatusFailed     Status = "FAILED"     // ended by a failure; may be started again
)

// Terminal reports whether no task of the job runs and none will without the user.
func (s Status) Terminal() bool {
	switch s {
	case StatusStopped, StatusCanceled, StatusFinished, StatusFailed:
		return true
	}
	return false
}

// Statuses lists all statuses in the order of a job's life.
func Statuses() []Status {
	return []Status{
		StatusCreated, StatusScheduling, StatusRunning, StatusRestarting, StatusStopping,
		StatusStopped, StatusCanceled, StatusFinished, StatusFailed,
	}
}

// CanBecome reports whether a job may pass from s to next.
func (s Status) CanBecome(next Status) bool {
	return slices.Contains(successors(s), next)
}

func successors(s Status) []Status {
	switch s {
	case StatusCreated:
		return []Status{StatusScheduling, StatusCanceled, StatusStopped, StatusFailed}
	case StatusScheduling:
		return []Status{StatusRunning, StatusRestarting, StatusStopping, StatusCanceled, StatusStopped, StatusFinished, StatusFailed}
	case StatusRunning:
		return []Status{StatusRestarting, StatusStopping, StatusCanceled, StatusFinished, StatusFailed}
	case StatusRestarting:
		return []Status{StatusScheduling, StatusStopping, StatusCanceled, StatusStopped, StatusFailed}
	case StatusStopping:
		return []Status{StatusRunning, StatusRestarting, StatusStopped, StatusCanceled, StatusFinished, StatusFailed}
	case StatusStopped, StatusCanceled, StatusFailed:
		return []Status{StatusScheduling}
	case StatusFinished:
		return []Status{StatusScheduling} // only from a chosen checkpoint, savepoint or nothing
	}
	return nil
}

// Desired is what the user last asked of a job.
type Desired string

// The wishes a user may have.
const (
	DesiredRunning  Desired = "running"
	DesiredStopped  Desired = "stopped"
	DesiredCanceled Desired = "canceled"
)

// A Fence is the identity under which the owner of a job writes: every deciding
// transaction changes the job's row WHERE job, attempt and term are these.
type Fence struct {
	Job     JobID
	Attempt AttemptID
	Term    int64 // of the lease on the job's shard
}

// A Job is one row of the metastore: what the user submitted and where it stands.
// Times are UTC; zero means not yet.
type Job struct {
	ID             JobID
	Name           string
	SQL            string
	Plan           json.RawMessage // a plan.Graph, opaque here
	Parallelism    int
	MaxParallelism int
	Checkpoint     json.RawMessage // checkpoint.Options
	Restart        json.RawMessage // job.RestartOptions of package server/job
	OnRowError     string          // "fail", "skip" or "keep"
	Shard          int
	Desired        Desired
	Status         Status
	Attempt        AttemptID    // the current or last attempt; zero: none yet
	Term           int64        // of the lease under which the attempt began
	Base           SnapshotRef  // what the next attempt starts from
	RestoredFrom   SnapshotRef  // what the current attempt started from
	StopSavepoint  string       // name of the savepoint a running stop takes; empty: none
	Then           *Start       // the start that follows the stop under way; nil: none
	LastCheckpoint CheckpointID // last id given out (I1)
	Failure        *Failure     // of the last failed attempt, cleared by start
	CreatedAt      time.Time
	StartedAt      time.Time // of the current or last attempt
	EndedAt        time.Time
}

// A SnapshotRef names a completed checkpoint or savepoint: the job that took it
// and its id there. The zero value means nothing (an empty state).
type SnapshotRef struct {
	Job        JobID        `json:"job,omitempty"`
	Checkpoint CheckpointID `json:"checkpoint,omitempty"`
}

// IsZero reports whether r names nothing.
func (r SnapshotRef) IsZero() bool { return r == SnapshotRef{} }

// A Failure says why an attempt, a checkpoint or a job failed. Reason is one word of
// a closed list; Message is a sentence for the user: what, where, why, what to do.
type Failure struct {
	Reason   string     `json:"reason"`
	Operator OperatorID `json:"operator,omitempty"`
	Subtask  *int       `json:"subtask,omitempty"`
	Worker   WorkerID   `json:"worker,omitempty"`
	Message  string     `json:"message"`
}

// An Attempt is the record of one try at running a job.
type Attempt struct {
	Job          JobID
	ID           AttemptID
	Term         int64
	Parallelism  int
	RestoredFrom SnapshotRef
	StartedAt    time.Time
	RunningAt    time.Time // zero: never ran
	EndedAt      time.Time // zero: current
	EndedBy      string    // status or failure reason that ended it
	Failure      *Failure
}

// An Event is one line of a job's history, numbered within the job from 1.
type Event struct {
	Job     JobID
	Seq     int64
	At      time.Time
	Kind    string // "status", "attempt", "checkpoint", "savepoint", "failure", "commit"
	Attempt int64
	Message string
	Data    json.RawMessage // details for programs; may be nil
}
