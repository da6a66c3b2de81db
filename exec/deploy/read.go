package deploy

import (
	"encoding/json"

	"weir"
	"weir/checkpoint"
	"weir/planner/plan"
)

// A Results asks a worker for one page of a job's result table, or of the rows that it
// rejected, ordered by table, path and offset. The worker gathers
// it: from its own tasks, from those of other workers by Read, or from a snapshot.
type Results struct {
	Header
	Job     weir.JobID     `json:"job"`
	Attempt weir.AttemptID `json:"attempt"`
	// Parts are the tasks of the operator; empty with Snapshot.
	Parts    []Placed  `json:"parts,omitempty"`
	Snapshot *Snapshot `json:"snapshot,omitempty"`
	Query    Query     `json:"query"`
}

// A Query says which rows a read wants.
type Query struct {
	Limit int `json:"limit"`
	// OrderBy orders the rows. Empty: by key where one page holds the whole result, else
	// in an order that makes pages cheap and tells nothing.
	OrderBy []Order `json:"order_by,omitempty"`
	// After is the Sort of the last row of the page before.
	After []byte `json:"after,omitempty"`
}

// An Order is one column of an order.
type Order struct {
	Column string `json:"column"`
	Desc   bool   `json:"desc,omitempty"`
}

// A Snapshot is the state of a result or rejects operator in a checkpoint, or that of the
// aggregate whose groups are the result's rows.
type Snapshot struct {
	Operator       plan.Operator       `json:"operator"`
	Groups         *plan.Operator      `json:"groups,omitempty"` // that aggregate
	Input          []plan.Column       `json:"input"`            // the schema of what the one reads whose state it is
	MaxParallelism int                 `json:"max_parallelism"`
	Handles        []checkpoint.Handle `json:"handles"`
}

// A Page is the answer to Results.
type Page struct {
	Header
	Rows []json.RawMessage `json:"rows"` // objects of the shown columns
	// Next is the After of the next page; empty: there is none.
	Next  []byte `json:"next,omitempty"`
	Total int64  `json:"total"` // rows of the whole table
	// Counts are, of rejected rows, how many there are of each table, by its name.
	Counts []Count `json:"counts,omitempty"`
}

// A Count is the number of rows that were rejected of a table.
type Count struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

// A Changes asks a worker for what changed in a job's result table since it was asked
// before. Where that is not known, the whole table is the answer.
type Changes struct {
	Header
	Job     weir.JobID     `json:"job"`
	Attempt weir.AttemptID `json:"attempt"`
	Parts   []Placed       `json:"parts"`
	// Since holds the version each part had; empty: the whole table is asked for.
	Since []uint64 `json:"since,omitempty"`
	Limit int      `json:"limit"`
}

// A ChangesPage is the answer to Changes. With Full the rows are the whole table, all
// of them inserted.
type ChangesPage struct {
	Header
	Rows  []Change `json:"rows"`
	Since []uint64 `json:"since"` // for the next question
	Full  bool     `json:"full,omitempty"`
	More  bool     `json:"more,omitempty"` // a limit left changes out: ask again at once
	// Truncated: with Full, the table does not fit one message and rows of it are left out.
	Truncated bool `json:"truncated,omitempty"`
}

// A Change is one change of a result table: Op is +I, -U, +U or -D.
type Change struct {
	Op  string          `json:"op"`
	Row json.RawMessage `json:"row"`
}

// A Read asks a worker, on behalf of one that gathers, for the parts of a result that
// its tasks hold.
type Read struct {
	Header
	Job     weir.JobID     `json:"job"`
	Attempt weir.AttemptID `json:"attempt"`
	Tasks   []weir.TaskID  `json:"tasks"`
	Query   Query          `json:"query"`
	Changes bool           `json:"changes,omitempty"`
	Since   []uint64       `json:"since,omitempty"` // one for each task
}

// Parts is the answer to Read: one part for each of its tasks.
type Parts struct {
	Header
	Parts []Part `json:"parts"`
}

// A Part is what one task of a result operator answered.
type Part struct {
	Task    weir.TaskID `json:"task"`
	Rows    []Row       `json:"rows"`
	Total   int64       `json:"total"`
	Version uint64      `json:"version"`
	Full    bool        `json:"full,omitempty"`
	More    bool        `json:"more,omitempty"`
	Counts  []Count     `json:"counts,omitempty"`
}

// A Row is a row of a part; rows of all parts are ordered by the bytes of Sort.
type Row struct {
	Op   string          `json:"op,omitempty"`
	Row  json.RawMessage `json:"row"`
	Sort []byte          `json:"sort,omitempty"`
}
