package checkpoint

import (
	"context"
	"encoding/json"
	"time"

	"weir"
)

// ManifestVersion is the version of the manifest's JSON form.
const ManifestVersion = 1

// A Handle names a piece of keyed state: an object, or the bytes themselves where
// they are few.
type Handle struct {
	// Object is the key in object storage; empty when the bytes are Inline.
	Object string `json:"object,omitempty"`
	Inline []byte `json:"inline,omitempty"`
	Size   int64  `json:"size"`
	// Checksum is the xxh3 (64 bit) of the bytes.
	Checksum uint64 `json:"checksum,string"`
	// KeyGroups is the range for which the piece is valid in this snapshot; a restore
	// trims by it.
	KeyGroups weir.KeyGroupRange `json:"key_groups"`
	// Trimmed: the piece holds more key groups than these.
	Trimmed bool `json:"trimmed,omitempty"`
	// Delta: it is laid over the handles before it. Otherwise it holds all there is of its key groups.
	Delta bool `json:"delta,omitempty"`
}

// Trim restricts the handle to a range of key groups; ok is false where it has none of them.
func (h Handle) Trim(to weir.KeyGroupRange) (trimmed Handle, ok bool) {
	groups := h.KeyGroups.Intersect(to)
	h.Trimmed = h.Trimmed || groups != h.KeyGroups
	h.KeyGroups = groups
	return h, !groups.Empty()
}

// An OperatorSnapshot is what one operator's subtask put into a checkpoint.
type OperatorSnapshot struct {
	Operator weir.OperatorID `json:"operator"`
	// Keyed are the handles of its keyed state; nil when it keeps none.
	Keyed []Handle `json:"keyed,omitempty"`
	// List is its list state: items that a restore at another parallelism hands, all
	// of them, to every new subtask, which takes its share. Sources keep one item per
	// split, sinks one per segment not yet committed.
	List []json.RawMessage `json:"list,omitempty"`
}

// A TaskSnapshot is what one task put into a checkpoint.
type TaskSnapshot struct {
	Task      weir.TaskID        `json:"task"`
	Operators []OperatorSnapshot `json:"operators"`
	// Ended: the task had seen the end of all its inputs (a source: of its data) and
	// had emitted its final rows before the barrier; restored, it never repeats them.
	Ended bool `json:"ended,omitempty"`
	// Commits: it holds sink segments to be committed after the decision.
	Commits bool `json:"commits,omitempty"`
}

// An Ack says that a task's snapshot is durable (I7). Exactly one of Snapshot and
// Failure is set.
type Ack struct {
	Version    int               `json:"version"`
	Job        weir.JobID        `json:"job"`
	Attempt    weir.AttemptID    `json:"attempt"`
	Task       weir.TaskID       `json:"task"`
	Checkpoint weir.CheckpointID `json:"checkpoint"`
	Worker     weir.WorkerID     `json:"worker"`
	Snapshot   *TaskSnapshot     `json:"snapshot,omitempty"`
	Failure    *weir.Failure     `json:"failure,omitempty"`
	Timing     Timing            `json:"timing"`
	// AckedAt is when the coordinator took it in, by its clock.
	AckedAt time.Time `json:"acked_at,omitzero"`
}

// Timing says where a task's part of a checkpoint spent its time (milliseconds) and
// what it weighs (bytes).
type Timing struct {
	StartDelayMS float64 `json:"start_delay_ms"` // trigger to first barrier
	AlignmentMS  float64 `json:"alignment_ms"`   // first to last barrier
	CutMS        float64 `json:"cut_ms"`         // on the task's loop
	UploadMS     float64 `json:"upload_ms"`      // off it
	CommitMS     float64 `json:"commit_ms"`      // decision to the sink's confirmation; 0: none, or not yet
	NewBytes     int64   `json:"new_bytes"`      // written for this checkpoint
	TotalBytes   int64   `json:"total_bytes"`    // of the whole snapshot
	// LastInput is the task whose barrier completed the alignment; nil for a source.
	LastInput *weir.TaskID `json:"last_input,omitempty"`
}

// A Stage is how far a task has come with a checkpoint.
type Stage string

// The stages, in their order.
const (
	StageWaiting   Stage = "waiting"   // nothing of it has come: no trigger, no barrier
	StageAligning  Stage = "aligning"  // some barriers have come
	StageCutting   Stage = "cutting"   // flush, positions, cut: on the task's loop
	StageUploading Stage = "uploading" // off the loop
	StageDone      Stage = "done"      // acknowledged, or declined
)

// A Progress is how far one task has come with a checkpoint that is pending, as its
// worker says when it is asked.
type Progress struct {
	Task   weir.TaskID   `json:"task"`
	Worker weir.WorkerID `json:"worker,omitempty"`
	Stage  Stage         `json:"stage"`
	// SinceMS is how long it has been at that stage; 0 while it waits, which nobody knows.
	SinceMS float64 `json:"since_ms"`
	// Missing are the tasks whose barrier has not come, in order.
	Missing []weir.TaskID `json:"missing,omitempty"`
	// BackPressured and Busy are shares, 0 to 1, of the time since the checkpoint was
	// triggered, or of the last seconds.
	BackPressured float64 `json:"back_pressured"`
	Busy          float64 `json:"busy"`
	// Doing names what takes long, where the task knows: "storing 3 of 7 objects".
	Doing string `json:"doing,omitempty"`
}

// A Trigger tells the sources of an attempt to begin checkpoint ID.
type Trigger struct {
	Job        weir.JobID        `json:"job"`
	Attempt    weir.AttemptID    `json:"attempt"`
	Checkpoint weir.CheckpointID `json:"checkpoint"`
	// At is when the coordinator triggered it, for start delays.
	At time.Time `json:"at"`
	// Base is the checkpoint whose objects may be named again, or read for a savepoint; 0: none.
	// They stay until this one has ended; those of an older base may go.
	Base weir.CheckpointID `json:"base,omitempty"`
	// Whole: its snapshots are to name no object of another one: it is a savepoint.
	Whole bool `json:"whole,omitempty"`
	// Pending are the checkpoints and savepoints not yet ended, ascending, Checkpoint
	// among them. Every other one before Checkpoint has ended, for ever: tasks store
	// nothing more for it. Empty: not known, nothing is dropped.
	Pending []weir.CheckpointID `json:"pending,omitempty"`
}

// A Type tells a checkpoint from a savepoint.
type Type string

// The types.
const (
	TypeCheckpoint Type = "checkpoint"
	TypeSavepoint  Type = "savepoint"
)

// A Status is where a checkpoint stands.
type Status string

// The statuses of a checkpoint. Pending is the only one that changes.
const (
	StatusPending   Status = "pending"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"  // a real failure: counts towards tolerable_failures
	StatusAborted   Status = "aborted" // given up for a reason that is none of its own: cancel, attempt's end
)

// The closed list of reasons in the Failure of a checkpoint.
const (
	ReasonTimeout       = "timeout"          // expired before every task had acknowledged
	ReasonDeclined      = "declined"         // a task could not take its snapshot
	ReasonManifest      = "manifest"         // the manifest could not be written
	ReasonStore         = "metastore"        // the decision could not be recorded
	ReasonTrigger       = "trigger"          // a source could not be reached
	ReasonAttemptEnded  = "attempt_ended"    // the attempt failed or ended meanwhile
	ReasonCanceled      = "canceled"         // its user or the job's cancel asked for it
	ReasonSuperseded    = "superseded"       // a newer checkpoint completed first
	ReasonMetastoreBack = "metastore_behind" // storage knows more than the metastore
)

// A CommitTime says how long a sink task took from the decision to its confirmation.
type CommitTime struct {
	Task weir.TaskID
	MS   float64
}

// A Record is one row of a job's checkpoint history.
type Record struct {
	Job           weir.JobID
	ID            weir.CheckpointID
	Attempt       weir.AttemptID
	Type          Type
	Status        Status
	Periodic      bool // begun by the interval rather than by a user
	TriggeredAt   time.Time
	CompletedAt   time.Time // when it ended, however; zero: pending
	StateBytes    int64
	NewBytes      int64
	Manifest      string    // object key; empty until completed
	Savepoint     string    // its name, for savepoints
	CommitsOpen   bool      // completed, but sinks have not confirmed yet
	OutputGivenUp bool      // what sinks had not made visible was given up (abandon_output)
	CommittedAt   time.Time // when the last sink had confirmed; zero: nothing to commit, or not yet
	Final         bool      // the last checkpoint of a bounded job
	Discarded     bool      // given up by retention; its objects go or are gone
	Failure       *weir.Failure
	Acks          []Ack // per-subtask detail; Snapshot left out
	Thinned       bool  // the detail was given up; the row stays
	// Path is the critical path in one sentence: who was last, and where the time went.
	Path string
}

// A Savepoint is one row of the list of savepoints: a snapshot the user owns; it
// outlives its job.
type Savepoint struct {
	Name        string // unique in the cluster
	Job         weir.JobID
	JobName     string
	Checkpoint  weir.CheckpointID
	Status      Status
	Manifest    string
	StateBytes  int64
	TriggeredAt time.Time
	CompletedAt time.Time
	Failure     *weir.Failure
}

// Store is what the coordinator needs of the metastore. Every method that decides
// carries the fence; a newer owner makes it weir.ErrStale. A method that returns
// another error may have done its work or not: the coordinator asks Checkpoint.
type Store interface {
	// BeginCheckpoint gives out the job's next id, inserts r with it as pending and
	// returns the id (I1). A savepoint's name already taken is weir.ErrConflict. r.ID is
	// the newest id that the caller knows: a store that does not know it has gone back in
	// time, inserts nothing, and answers weir.ErrNotFound.
	BeginCheckpoint(ctx context.Context, fence weir.Fence, r Record) (weir.CheckpointID, error)
	// CompleteCheckpoint is the decision moment (I8): r.ID becomes completed with r's
	// sizes, manifest, acks and CommitsOpen, and, when base is set, the job's base. Doing it
	// again is no error; a base that is not newer than the job's own is weir.ErrConflict.
	CompleteCheckpoint(ctx context.Context, fence weir.Fence, r Record, base bool) error
	// AbortCheckpoint ends a pending checkpoint as r.Status (failed or aborted) with
	// r.Failure and r.Acks; one that is not pending any more is left alone and its
	// status returned.
	AbortCheckpoint(ctx context.Context, fence weir.Fence, r Record) (Status, error)
	// CloseCommits records that every sink has confirmed the checkpoint's segments, and
	// how long each took; took may be nil. Doing it again is no error.
	CloseCommits(ctx context.Context, fence weir.Fence, id weir.CheckpointID, took []CommitTime) error
	// Checkpoint reads one row under the lock of the job's row.
	Checkpoint(ctx context.Context, fence weir.Fence, id weir.CheckpointID) (Record, error)
}

// Retained is a kept checkpoint as collection sees it.
type Retained struct {
	ID          weir.CheckpointID
	Type        Type
	Manifest    string
	Base        bool // the job's base
	Pinned      bool // another job or a read uses it
	Reused      bool // it was the base when a checkpoint began that is pending: that one may name its objects
	CommitsOpen bool
}
