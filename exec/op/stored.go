package op

import (
	"fmt"

	"weir"
	"weir/exec"
	"weir/exec/state"
	"weir/planner/plan"
)

// A Stored is a result in a snapshot. Reads may run side by side.
type Stored struct {
	operator plan.Operator
	input    []plan.Column
	table    *state.Table
	rows     int64
}

// OpenStored opens a result in a store restored from a snapshot of its operator: of
// all subtasks for the whole result. input is the schema of what the operator reads.
// Nothing may change the store from then on.
func OpenStored(o plan.Operator, input []plan.Column, store *state.Store) (*Stored, error) {
	if o.Result == nil {
		return nil, fmt.Errorf("%w: %s keeps no result", weir.ErrInvalid, o.Name)
	}
	t := resultTable(store)
	return &Stored{operator: o, input: input, table: t, rows: totalRows(t, o.Result)}, nil
}

// Read reads a page of the result; q is not about changes.
func (s *Stored) Read(q exec.Query) (exec.Page, error) {
	v, err := newView(s.operator, s.input) // it has scratch memory
	if err != nil {
		return exec.Page{}, err
	}
	page, err := v.read(s.table, q)
	page.Full, page.Total = true, s.rows
	return page, err
}
