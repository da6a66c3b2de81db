package op

import (
	"fmt"

	"weir"
	"weir/exec"
	"weir/exec/state"
	"weir/planner/plan"
)

// A Stored is a result, or a job's rejected rows, in a snapshot.
type Stored struct {
	operator     plan.Operator
	input        []plan.Column
	table        *state.Table
	rows         int64
	rejectCounts *state.Table // nil: a result
}

// OpenStored opens a result, or rejected rows, in a store restored from a snapshot of its
// operator: of all subtasks for the whole result. input is the schema of what the operator
// reads. From then on the store may spill, and no more.
func OpenStored(o plan.Operator, input []plan.Column, store *state.Store) (*Stored, error) {
	s := &Stored{operator: o, input: input}
	switch {
	case o.Rejects != nil:
		s.rejectCounts, s.table = rejectTables(store)
	case o.Result != nil:
		s.table = resultTable(store, o, input)
		s.rows = totalRows(s.table, o.Result)
	default:
		return nil, fmt.Errorf("%w: %s keeps no result", weir.ErrInvalid, o.Name)
	}
	return s, nil
}

// Read reads a page; q is not about changes. It panics with a *state.DiskError where what was
// spilled cannot be read.
func (s *Stored) Read(q exec.Query) (exec.Page, error) {
	if s.rejectCounts != nil {
		v, err := newRejectsView()
		if err != nil {
			return exec.Page{}, err
		}
		return readRejects(&v, s.rejectCounts, s.table, q)
	}
	v, err := newView(s.operator, s.input) // it has scratch memory
	if err != nil {
		return exec.Page{}, err
	}
	page, err := v.read(s.table, q)
	page.Full, page.Total = true, s.rows
	return page, err
}
