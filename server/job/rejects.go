package job

import (
	"context"
	"encoding/json"
	"fmt"

	"weir"
	"weir/exec/deploy"
	"weir/planner/plan"
)

// A RejectPage is one page of the rows that a job rejected.
type RejectPage struct {
	Counts []deploy.Count    // all of them, by table
	Rows   []json.RawMessage // objects, by table, path and offset
	AsOf   AsOf
	Next   string // cursor; empty: the last page
}

// Rejects reads a page of the rows that the job rejected: from the running tasks, or
// from the base where the job does not run. limit 0 is the default. A job that fails by a
// row error is weir.ErrConflict.
func (s *Service) Rejects(ctx context.Context, idOrName string, limit int, cursor string) (*RejectPage, error) {
	t, ok, err := s.findTable(ctx, idOrName, plan.Rejects)
	switch {
	case err != nil:
		return nil, err
	case !ok && t.graph.OnRowError == "":
		return nil, fmt.Errorf("%w: job %q rejects no rows: its on_row_error is fail, so that a row at fault fails it; submit it with skip or keep", weir.ErrConflict, t.job.Name)
	case !ok: // nothing in its query can fail
		return &RejectPage{Counts: []deploy.Count{}, Rows: []json.RawMessage{}}, nil
	}
	query, err := t.query(ResultQuery{Limit: limit, Cursor: cursor, OrderBy: rejectOrder})
	if err != nil {
		return nil, err
	}
	page := &ResultPage{}
	if err := s.page(ctx, t, From{Latest: true}, query, rejectOrder, page); err != nil {
		return nil, err
	}
	return &RejectPage{Counts: append([]deploy.Count{}, page.Counts...), Rows: append([]json.RawMessage{}, page.Rows...), AsOf: page.AsOf, Next: page.Next}, nil
}

// rejectOrder is the order of rejected rows, by which their pages are joined.
const rejectOrder = "table, path, offset"

// shown are the columns that a table's readers see.
func (t table) shown() []plan.Column {
	if t.kind == plan.Rejects {
		return plan.RejectColumns()
	}
	return t.graph.Result
}
