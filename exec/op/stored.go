package op

import (
	"fmt"
	"time"

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
	groups       *globalAgg   // whose groups the rows are; nil: it keeps them itself
}

// openGroups opens the aggregate over its state, to be read only.
func openGroups(o plan.Operator, input []plan.Column, store *state.Store) (*globalAgg, error) {
	if o.Kind != plan.GlobalAggregate || o.Aggregate == nil {
		return nil, fmt.Errorf("%w: %s keeps no groups", weir.ErrInvalid, o.Name)
	}
	return openGlobalAgg(exec.Setup{Operator: o, Input: input, State: store, Now: time.Now})
}

// OpenStored opens a result, or rejected rows, in a store restored from a snapshot of its
// operator, or, where the rows are groups, of the aggregate: of all subtasks for the whole
// result. groups is that aggregate, or nil; input is the schema of what the one reads whose
// state it is. From then on the store may spill, and no more.
func OpenStored(o plan.Operator, groups *plan.Operator, input []plan.Column, store *state.Store) (*Stored, error) {
	s := &Stored{operator: o, input: input}
	switch {
	case o.Rejects != nil:
		s.rejectCounts, s.table = rejectTables(store)
	case o.Result != nil && o.Result.Groups:
		if groups == nil {
			return nil, fmt.Errorf("%w: %s: its rows are groups, and the aggregate is not named", weir.ErrInvalid, o.Name)
		}
		a, err := openGroups(*groups, input, store)
		if err != nil {
			return nil, err
		}
		s.input = groups.Schema
		s.groups, s.table, s.rows = a, a.table, int64(a.table.Len())
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
	if s.groups != nil {
		v.groups = newGroupRows(s.groups, s.input)
	}
	page, err := v.read(s.table, q)
	page.Full, page.Total = true, s.rows
	return page, err
}
