package deploy

import (
	"weir"
	"weir/checkpoint"
)

// A Report tells the servers what happened to a task. Exactly one of Ack, Status,
// Ended and Committed is set.
type Report struct {
	Header
	Worker      weir.WorkerID   `json:"worker"`
	Incarnation string          `json:"incarnation"`
	Job         weir.JobID      `json:"job"`
	Attempt     weir.AttemptID  `json:"attempt"`
	Ack         *checkpoint.Ack `json:"ack,omitempty"`
	Status      *TaskStatus     `json:"status,omitempty"`
	Ended       *weir.TaskID    `json:"ended,omitempty"`
	Committed   *Committed      `json:"committed,omitempty"`
}

// A Returned is a report of a worker that was cut off, or asleep, and asks which of its
// attempts are over before it goes on with them.
type Returned struct {
	Header
	Worker      weir.WorkerID `json:"worker"`
	Incarnation string        `json:"incarnation"`
	Attempts    []Held        `json:"attempts"`
}

// Held is an attempt that a worker that was cut off has tasks of.
type Held struct {
	Job     weir.JobID     `json:"job"`
	Attempt weir.AttemptID `json:"attempt"`
	// Ended: it was cut off for so long that it ended its tasks.
	Ended bool `json:"ended,omitempty"`
}

// Over answers Returned: those of its attempts that are over.
type Over struct {
	Header
	Attempts []Held `json:"attempts,omitempty"`
}

// A TaskStatus says that a task runs, or that it failed.
type TaskStatus struct {
	Task weir.TaskID `json:"task"`
	// Failure is why the task ended; nil: it runs, its state is restored.
	Failure *weir.Failure `json:"failure,omitempty"`
	// Restart: another attempt may fare better.
	Restart bool `json:"restart,omitempty"`
}

// Committed says that a task's sinks have made the segments up to a checkpoint visible.
type Committed struct {
	Task       weir.TaskID       `json:"task"`
	Checkpoint weir.CheckpointID `json:"checkpoint"`
}

// A Heartbeat says that a worker lives and what it runs.
type Heartbeat struct {
	Header
	Worker      weir.WorkerID `json:"worker"`
	Incarnation string        `json:"incarnation"`
	PID         int           `json:"pid"`
	Host        string        `json:"host"`
	Slots       int           `json:"slots"`
	UsedSlots   int           `json:"used_slots"`
	Attempts    []Running     `json:"attempts,omitempty"`
	Memory      Memory        `json:"memory"`
	// Kept is the state of which it has copies, of jobs that do not run there.
	Kept []Kept `json:"kept,omitempty"`
	// Leaving: the worker ends in an orderly way and takes no tasks.
	Leaving bool `json:"leaving,omitempty"`
}

// Memory is how the memory of a worker is used, in bytes.
type Memory struct {
	Budget     int64 `json:"budget,omitempty"` // of the process; 0: none
	Heap       int64 `json:"heap"`             // of Go's runtime, live; State, Uploads and Network are parts of it
	State      int64 `json:"state,omitempty"`  // of all tasks
	StateLimit int64 `json:"state_limit,omitempty"`
	Spilled    int64 `json:"spilled,omitempty"` // on disk
	Uploads    int64 `json:"uploads,omitempty"` // runs that no completed checkpoint holds yet
	Network    int64 `json:"network,omitempty"` // in channels; told with the channels alone
	Cache      int64 `json:"cache,omitempty"`   // of what is on disk
}

// Kept says that a worker has copies of state that a subtask of a job stored, for which
// checkpoint at the latest.
type Kept struct {
	Job        weir.JobID        `json:"job"`
	Subtask    int               `json:"subtask"`
	Checkpoint weir.CheckpointID `json:"checkpoint"`
}

// Running is an attempt that runs on a worker.
type Running struct {
	Job     weir.JobID     `json:"job"`
	Attempt weir.AttemptID `json:"attempt"`
	Tasks   []TaskStats    `json:"tasks"`
}

// TaskStats are a task's figures. Counts are totals since the task started.
type TaskStats struct {
	Task weir.TaskID `json:"task"`
	// RowsIn are those received (a source: read), RowsOut those given on: to other tasks,
	// to the sink or to the kept result.
	RowsIn  int64 `json:"rows_in"`
	RowsOut int64 `json:"rows_out"`
	// BytesIn are those a source has read, or that the rows received weigh in frames; BytesOut
	// those that the rows given on weigh, or that the sink has written.
	BytesIn  int64 `json:"bytes_in,omitempty"`
	BytesOut int64 `json:"bytes_out,omitempty"`
	// Age is how long it has been running by its worker's clock, in microseconds; 0: it has not
	// begun. Waited and Blocked are those of it in which it waited for input or time, and for a
	// full channel; in the others it was at work.
	Age     int64 `json:"age_us,omitempty"`
	Waited  int64 `json:"waited_us,omitempty"`
	Blocked int64 `json:"blocked_us,omitempty"`
	Ended   bool  `json:"ended,omitempty"`
	// Operators are those of its chain, in order; none where it has one.
	Operators []OperatorStats `json:"operators,omitempty"`
	// Watermark is event time in microseconds since 1970; 0: none.
	Watermark int64 `json:"watermark,omitempty"`
	State     int64 `json:"state_bytes,omitempty"` // in memory
	// Spilled is how many entries of the state are on disk only, Uploads how many bytes of runs
	// no completed checkpoint holds yet.
	Spilled int64 `json:"spilled_entries,omitempty"`
	Uploads int64 `json:"upload_bytes,omitempty"`
	// Delta is how many seconds of a core went into writing what has changed of the state.
	Delta float64 `json:"delta_seconds,omitempty"`
	// Rejected is how many rows a task of rejects counts, restored ones included.
	Rejected int64 `json:"rejected,omitempty"`
}

// OperatorStats are the figures of an operator of a task, since the task started. What it put
// out is what the next one took in.
type OperatorStats struct {
	RowsIn  int64 `json:"rows"`
	BytesIn int64 `json:"bytes"`
	Busy    int64 `json:"busy_us"` // at work
}
