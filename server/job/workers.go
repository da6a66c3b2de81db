package job

import (
	"time"

	"weir"
)

// A Worker is a worker process that servers hear of.
type Worker struct {
	ID          weir.WorkerID
	Incarnation string
	PID         int
	Host        string
	Slots       int
	FreeSlots   int
	Tasks       int
	Jobs        []weir.JobID
	HeardAt     time.Time
}

// Rates are the figures of a job's running attempt.
type Rates struct {
	Attempt weir.AttemptID
	RowsIn  int64 // read by sources since the attempt began
	RowsOut int64 // given to sinks and results
	// RowsInPerSecond and RowsOutPerSecond are those of the last seconds.
	RowsInPerSecond  float64
	RowsOutPerSecond float64
	Chains           []ChainRates // by chain of the graph
}

// ChainRates are the figures of one chain, over its subtasks.
type ChainRates struct {
	Chain            int
	Tasks            int
	RowsIn           int64
	RowsOut          int64
	RowsInPerSecond  float64
	RowsOutPerSecond float64
	// Busy and Blocked are the shares of time, 0 to 1, of its busiest and its most
	// blocked subtask.
	Busy       float64
	Blocked    float64
	Watermark  time.Time // the lowest; zero: none
	StateBytes int64
}
