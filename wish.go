package weir

// A Wish is what a user asks of a job. A start of a job that has ended clears its
// EndedAt and Failure: a terminal job without an end is one that waits to be started.
type Wish struct {
	Desired     Desired
	Savepoint   string       // stop: name of its savepoint
	Parallelism int          // start: 0 keeps it
	Base        *SnapshotRef // start: nil keeps it; zero: from nothing
	Then        *Start       // stop: the start that follows it, as a restore asks; nil: none
	// TakesBack is the savepoint of the stop that this wish takes back: where another
	// wish has come since, that one stays (ErrConflict). Empty: it replaces any.
	TakesBack string
	// Fence is that of who takes a stop back: where the job has a newer owner, the stop is
	// that one's (ErrStale).
	Fence Fence
}

// A Start says what an attempt starts from after a stop.
type Start struct {
	Base        *SnapshotRef `json:"base,omitempty"`        // nil: the job's base at its end; zero: nothing
	Parallelism int          `json:"parallelism,omitempty"` // 0 keeps it
}

// A JobFilter chooses and pages jobs; the zero value means all.
type JobFilter struct {
	Status    []Status
	Name      string // part of the name
	Desired   []Desired
	After     JobID // cursor: jobs created before this one (newest first)
	Limit     int   // 0: no limit
	Skip      int   // so many of the newest are left out; with a limit only
	Unsettled bool  // only jobs that are not terminal, or that wait to be started again
	// IdempotencyKey is that with which the job was created; "": any.
	IdempotencyKey string
}
