package checkpoint

import (
	"time"

	"weir"
)

// A Filter says which rows of a job's history are meant; the zero value means all.
// Its conditions are joined by and, the values of one by or.
type Filter struct {
	Status  []Status
	Type    Type  // empty: both
	Attempt int64 // number of the attempt; 0: any
	Reason  []string
	// Since and Until bound when they were triggered: from Since on, before Until.
	Since, Until time.Time
	// MinDuration leaves out what ended sooner, and what has not ended.
	MinDuration time.Duration
	// Before leaves out this id and those above it; 0: begin with the newest.
	Before weir.CheckpointID
	Limit  int // 0: no limit
}

// A Summary counts the rows of a history and measures those that completed.
type Summary struct {
	Total, Pending, Completed, Failed, Aborted int64

	Duration   Distribution // milliseconds
	StateBytes Distribution
	NewBytes   Distribution
}

// A Distribution says how a figure is distributed; all zero where there is none. A
// quantile is the smallest value that so many are not above.
type Distribution struct {
	Min, Avg, Max       float64
	P50, P90, P99, P999 float64
}

// Thinning says how long a history is kept; 0: for ever.
type Thinning struct {
	// Detail is how long the detail per subtask stays after the end of a checkpoint,
	// Rows how long the row does. What can still be restored keeps both.
	Detail, Rows time.Duration
	// Batch bounds how many rows one transaction changes; 0: 500.
	Batch int
}

// A Thinned counts what thinning did.
type Thinned struct {
	Details int  // rows that lost their detail
	Rows    int  // rows that are gone
	More    bool // there is more to do
}
