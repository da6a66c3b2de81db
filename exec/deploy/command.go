package deploy

import (
	"encoding/json"

	"weir"
	"weir/checkpoint"
	"weir/planner/plan"
)

// A Deploy gives a worker its tasks of an attempt. It ends every older attempt of
// the job on that worker.
type Deploy struct {
	Header
	Job         weir.JobID      `json:"job"`
	Attempt     weir.AttemptID  `json:"attempt"`
	Term        int64           `json:"term"`
	Graph       plan.Graph      `json:"graph"`
	Mode        checkpoint.Mode `json:"mode,omitempty"` // of its checkpoints; empty: exactly_once
	Parallelism int             `json:"parallelism"`
	// FrameLimit is what the server's NATS takes as the payload of a frame: rows are cut up,
	// or refused, by it on all workers alike; 0: no bound of NATS.
	FrameLimit     int               `json:"frame_limit,omitempty"`
	MaxParallelism int               `json:"max_parallelism"`
	Restored       weir.CheckpointID `json:"restored,omitempty"` // the checkpoint started from; 0: nothing
	RestoredJob    weir.JobID        `json:"restored_job,omitempty"`
	// Tasks are those of this worker, in order; Placement has all tasks of the attempt.
	Tasks     []Task   `json:"tasks"`
	Placement []Placed `json:"placement"`
	// Lists is the list state of the restored operators: every subtask gets all of it.
	Lists map[weir.OperatorID][]json.RawMessage `json:"lists,omitempty"`
	// GivenUp are the segments of sinks that the snapshot holds and that are not to be
	// made visible any more.
	GivenUp map[weir.OperatorID][]json.RawMessage `json:"given_up,omitempty"`
}

// A Task is one task to run and the state it starts from.
type Task struct {
	Task weir.TaskID `json:"task"`
	// Ended: it had seen the end of its inputs before the restored barrier.
	Ended bool    `json:"ended,omitempty"`
	Keyed []Keyed `json:"keyed,omitempty"`
}

// Keyed is the keyed state that an operator of a task starts from.
type Keyed struct {
	Operator weir.OperatorID     `json:"operator"`
	Handles  []checkpoint.Handle `json:"handles"`
}

// Placed says where a task runs.
type Placed struct {
	Task   weir.TaskID   `json:"task"`
	Worker weir.WorkerID `json:"worker"`
}

// A Trigger tells the sources that run on a worker to begin a checkpoint, and all of
// its tasks which checkpoints are still wanted. Tasks is empty where no source runs.
type Trigger struct {
	Header
	checkpoint.Trigger
	Tasks []weir.TaskID `json:"tasks"`
}

// A Progress asks how far the tasks of an attempt on a worker are with a checkpoint.
type Progress struct {
	Header
	Job        weir.JobID        `json:"job"`
	Attempt    weir.AttemptID    `json:"attempt"`
	Checkpoint weir.CheckpointID `json:"checkpoint"`
}

// A Progressed answers Progress: one entry for each task of the worker, in order.
type Progressed struct {
	Header
	Tasks []checkpoint.Progress `json:"tasks"`
}

// A Commit tells the sinks that run on a worker that a checkpoint is decided.
type Commit struct {
	Header
	Job        weir.JobID        `json:"job"`
	Attempt    weir.AttemptID    `json:"attempt"`
	Checkpoint weir.CheckpointID `json:"checkpoint"`
	Tasks      []weir.TaskID     `json:"tasks"`
}

// A Close tells the tasks of a finished attempt to close their channels and end. The
// reply comes when all of the worker's tasks have ended.
type Close struct {
	Header
	Job     weir.JobID     `json:"job"`
	Attempt weir.AttemptID `json:"attempt"`
}

// A Stop ends an attempt and every older one of the job on a worker. The reply comes
// when all its tasks have ended; an attempt that does not run is no error.
type Stop struct {
	Header
	Job     weir.JobID     `json:"job"`
	Attempt weir.AttemptID `json:"attempt"`
}

// A Stopped answers Stop: what the tasks of the attempt had done when they ended.
type Stopped struct {
	Header
	Tasks []TaskStats `json:"tasks,omitempty"`
}

// A CommitOnly makes the segments of a decided checkpoint visible without running
// the job: each sink is opened with the list state of that checkpoint, commits, and
// is closed. The reply comes when all have committed.
type CommitOnly struct {
	Header
	Job        weir.JobID                            `json:"job"`
	Attempt    weir.AttemptID                        `json:"attempt"`
	Checkpoint weir.CheckpointID                     `json:"checkpoint"`
	Graph      plan.Graph                            `json:"graph"`
	Lists      map[weir.OperatorID][]json.RawMessage `json:"lists,omitempty"`
}
