package checkpoint

import (
	"weir"
)

// An Event is what happened, as the Coordinator is told. Every action that can fail
// has an event that says how it ended.
type Event interface{ event() }

// A RequestID names a request to the Coordinator until its Answer.
type RequestID int64

// The events.
type (
	// Tick: time has passed; Coordinator.Next says when one is needed.
	Tick struct{}
	// AskCheckpoint: a user wants a checkpoint.
	AskCheckpoint struct{ Request RequestID }
	// AskSavepoint: a user wants a savepoint; with Stop the job ends with it.
	AskSavepoint struct {
		Request RequestID
		Name    string
		Stop    bool
	}
	// Withdraw: whoever made a request waits no more. One that has not begun is dropped.
	Withdraw struct{ Request RequestID }
	// AskCancel: a user gives up the pending checkpoint ID.
	AskCancel struct {
		Request RequestID
		ID      weir.CheckpointID
	}
	// Begun answers Begin.
	Begun struct {
		ID  weir.CheckpointID
		Err error
	}
	// Triggered answers SendTrigger.
	Triggered struct {
		ID  weir.CheckpointID
		Err error
	}
	// Acked: a task's ack arrived.
	Acked struct{ Ack Ack }
	// SourceEnded: a source task has no more data.
	SourceEnded struct{ Task weir.TaskID }
	// ManifestWritten answers WriteManifest.
	ManifestWritten struct {
		ID  weir.CheckpointID
		Err error
	}
	// Decided answers Decide.
	Decided struct {
		ID  weir.CheckpointID
		Err error
	}
	// Read answers ReadBack.
	Read struct {
		ID     weir.CheckpointID
		Record Record
		Err    error
	}
	// Aborted answers WriteAbort: the status the row has now.
	Aborted struct {
		ID     weir.CheckpointID
		Status Status
		Err    error
	}
	// Notified answers Notify.
	Notified struct {
		ID  weir.CheckpointID
		Err error
	}
	// Committed: a sink task confirms the segments up to ID, or could not commit.
	Committed struct {
		Task weir.TaskID
		ID   weir.CheckpointID
		Err  error
	}
	// CommitsClosed answers CloseCommits.
	CommitsClosed struct {
		ID  weir.CheckpointID
		Err error
	}
	// Surveyed answers Survey: the newest checkpoint whose manifest the object store
	// holds (0: none), and the newest attempt, other than ours, that is not older than
	// ours and wrote something (zero: none).
	Surveyed struct {
		Newest  weir.CheckpointID
		Attempt weir.AttemptID
		Err     error
	}
	// Progressed answers AskProgress: what the workers that answered said of their tasks,
	// and what became of the others.
	Progressed struct {
		ID    weir.CheckpointID
		Tasks []Progress
		Err   error
	}
)

func (Tick) event()            {}
func (AskCheckpoint) event()   {}
func (AskSavepoint) event()    {}
func (Withdraw) event()        {}
func (AskCancel) event()       {}
func (Begun) event()           {}
func (Triggered) event()       {}
func (Acked) event()           {}
func (SourceEnded) event()     {}
func (ManifestWritten) event() {}
func (Decided) event()         {}
func (Read) event()            {}
func (Aborted) event()         {}
func (Notified) event()        {}
func (Committed) event()       {}
func (CommitsClosed) event()   {}
func (Surveyed) event()        {}
func (Progressed) event()      {}

// An Action is what the driver does next, in order.
type Action interface{ action() }

// A Turn says how a request came to its checkpoint or savepoint.
type Turn string

// The turns.
const (
	TurnStarted Turn = "started" // it began at once
	TurnQueued  Turn = "queued"  // it waited for its turn
	TurnJoined  Turn = "joined"  // it shares the checkpoint that an earlier request waited for
)

// The actions.
type (
	// Survey looks for what the metastore does not know; nothing begins before it has
	// answered.
	Survey struct{}
	// Begin inserts the row of a new checkpoint; its id, above After, comes back.
	Begin struct {
		Record Record
		After  weir.CheckpointID
	}
	// SendTrigger tells the source tasks to begin a checkpoint.
	SendTrigger struct {
		Trigger Trigger
		Targets []weir.TaskID
	}
	// AskProgress asks all tasks how far they are with checkpoint ID, which has expired.
	AskProgress struct{ ID weir.CheckpointID }
	// WriteManifest puts the manifest if absent; equal bytes that are there are success.
	WriteManifest struct{ Manifest *Manifest }
	// Decide records the completion: the decision moment (I8).
	Decide struct {
		Record Record
		Base   bool // it becomes the job's base
	}
	// ReadBack asks for the row after a Decide of unknown outcome.
	ReadBack struct{ ID weir.CheckpointID }
	// WriteAbort records that a checkpoint is given up, unless it ended otherwise.
	WriteAbort struct{ Record Record }
	// DropObjects deletes Keys, which a late ack of checkpoint ID named. All else that was
	// given up is the Collector's.
	DropObjects struct {
		ID   weir.CheckpointID
		Keys []string
	}
	// Notify asks sink tasks to commit their segments up to ID.
	Notify struct {
		ID    weir.CheckpointID
		Tasks []weir.TaskID
	}
	// CloseCommits records that the segments of IDs, ascending, are committed; the
	// answer names ID, whose sinks took as long as Took says.
	CloseCommits struct {
		ID   weir.CheckpointID
		IDs  []weir.CheckpointID
		Took []CommitTime
	}
	// Collect has a Collector look at the job: something was given up, retention may give
	// up more, or earlier attempts left something.
	Collect struct{}
	// Answer ends a request.
	Answer struct {
		Request RequestID
		ID      weir.CheckpointID
		Turn    Turn // of a checkpoint or savepoint that began
		Err     error
	}
	// Ended tells of a checkpoint that reached its last status.
	Ended struct{ Record Record }
	// Tell adds a line to the job's history.
	Tell struct {
		Kind    string
		Message string
	}
	// Finish: the last checkpoint is decided and its segments are committed.
	Finish struct{ Ending Ending }
	// FailAttempt: more checkpoints failed than are tolerated, or going on is unsafe.
	FailAttempt struct{ Failure AttemptFailure }
	// GiveUp: a newer owner of the job exists; stop quietly.
	GiveUp struct{}
)

func (Survey) action()        {}
func (Begin) action()         {}
func (SendTrigger) action()   {}
func (AskProgress) action()   {}
func (WriteManifest) action() {}
func (Decide) action()        {}
func (ReadBack) action()      {}
func (WriteAbort) action()    {}
func (DropObjects) action()   {}
func (Notify) action()        {}
func (CloseCommits) action()  {}
func (Collect) action()       {}
func (Answer) action()        {}
func (Ended) action()         {}
func (Tell) action()          {}
func (Finish) action()        {}
func (FailAttempt) action()   {}
func (GiveUp) action()        {}

// An Ending is why no checkpoint follows.
type Ending struct {
	Checkpoint weir.CheckpointID
	// Stopped: a stop with savepoint; otherwise every source had ended.
	Stopped bool
}

// An AttemptFailure is the error of an attempt that its checkpoints ended: the root
// cause and the checkpoint it hit.
type AttemptFailure struct {
	Checkpoint weir.CheckpointID
	Failure    weir.Failure
}

// Error gives the message for the user.
func (e *AttemptFailure) Error() string { return e.Failure.Message }
