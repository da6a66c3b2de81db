package job

import (
	"context"
	"encoding/json"

	"weir"
	"weir/exec/deploy"
	"weir/planner/plan"
)

// A ResultQuery asks for a page of a job's result table.
type ResultQuery struct {
	Limit   int    // 0: 1000; at most 10000
	OrderBy string // "n desc, behavior": columns of the result
	Cursor  string // Next of the page before
	At      string // latest (or empty) or a checkpoint or savepoint, as From
}

// A ResultPage is one page of a result table.
type ResultPage struct {
	Columns []plan.Column
	Rows    []json.RawMessage // objects of the columns
	AsOf    AsOf
	Total   int64          // rows of the whole table
	Next    string         // cursor; empty: the last page
	Counts  []deploy.Count // of rejected rows: how many there are of each table
}

// AsOf says what a read shows: the state of a checkpoint, or, Live, the running
// tasks', which go back to Checkpoint if they fail.
type AsOf struct {
	Checkpoint weir.CheckpointID `json:"checkpoint"`
	Live       bool              `json:"live"`
}

// A ChangePage is what changed in a result table since Cursor was given out. With
// Reset the rows are the whole table: what the reader has is to be forgotten.
type ChangePage struct {
	Columns []plan.Column
	Changes []Change
	AsOf    AsOf
	Cursor  string
	Reset   bool
	More    bool // ask again at once
	// Truncated: with Reset, the table is too large for one answer and rows of it are
	// left out; Results pages through it.
	Truncated bool
	Status    weir.Status
}

// A Change is one change of a result table: Op is +I, -U, +U or -D.
type Change struct {
	Op  string          `json:"op"`
	Row json.RawMessage `json:"row"`
}

// Results reads a page of the job's result table: of the running tasks, or of the
// base where the job does not run. A job without a kept result, and one whose tasks
// cannot be reached just now, are weir.ErrConflict; no worker at all is ErrUnavailable.
func (s *Service) Results(ctx context.Context, idOrName string, q ResultQuery) (*ResultPage, error) {
	return s.results(ctx, idOrName, q)
}

// Changes reads what changed in the job's result table since cursor (empty: the whole
// table comes, as a Reset). It returns at once, also when nothing changed.
func (s *Service) Changes(ctx context.Context, idOrName, cursor string) (*ChangePage, error) {
	return s.changes(ctx, idOrName, cursor)
}
