package planner

import (
	"slices"

	"weir/planner/expr"
)

// Rewrites says which rewrites are left out; the zero value makes all of them. A plan
// gives the same answer without any of them, which is what tests use it for.
type Rewrites struct {
	NoFold        bool // leave constant expressions as they are
	NoReadColumns bool // read every column of the source
	NoFilterBelow bool // filter behind the exchange, unless what comes before it can fail
	NoSplit       bool // aggregate in one phase
}

// rewrite makes a query cheaper and leaves its meaning alone: the input is not changed.
func rewrite(bound *query, without Rewrites) *query {
	q := *bound
	if !without.NoFold {
		q.fold()
	}
	if !without.NoReadColumns {
		q.read = q.columnsRead()
	}
	q.filterBelow = !without.NoFilterBelow || q.failsBelow()
	q.split = q.grouped && !without.NoSplit && (q.where == nil || q.filterBelow)
	return &q
}

// failsBelow reports whether something that is computed before the exchange could fail
// for a row that the filter drops: then the filter has to come first.
func (q *query) failsBelow() bool {
	for _, a := range q.aggs {
		if a.arg != nil && canFail(a.arg) {
			return true
		}
	}
	if q.grouped {
		return slices.ContainsFunc(q.keys, canFail)
	}
	return slices.ContainsFunc(q.outputs, func(o output) bool { return canFail(o.e) })
}

// fold computes the constants of all expressions and drops a filter that keeps all rows.
func (q *query) fold() {
	if q.where != nil {
		if q.where = fold(q.where); isBool(q.where, true) {
			q.where = nil
		}
	}
	keys, aggs, outputs := q.keys, q.aggs, q.outputs
	q.keys = make([]*expr.Expr, len(keys))
	for i, k := range keys {
		q.keys[i] = fold(k)
	}
	q.aggs = make([]call, len(aggs))
	for i, a := range aggs {
		if a.arg != nil {
			a.arg = fold(a.arg)
		}
		q.aggs[i] = a
	}
	q.outputs = make([]output, len(outputs))
	for i, o := range outputs {
		o.e = fold(o.e)
		q.outputs[i] = o
	}
}

// columnsRead lists the source's columns that some expression over them names.
func (q *query) columnsRead() []int {
	used := make([]bool, len(q.source.Columns))
	mark := func(e *expr.Expr) { eachColumn(e, func(i int) { used[i] = true }) }
	mark(q.where)
	for _, k := range q.keys {
		mark(k)
	}
	for _, a := range q.aggs {
		mark(a.arg)
	}
	if !q.grouped {
		for _, o := range q.outputs {
			mark(o.e)
		}
	}
	read := []int{}
	for i, u := range used {
		if u {
			read = append(read, i)
		}
	}
	return read
}

// eachColumn calls f for every column that e, which may be nil, names.
func eachColumn(e *expr.Expr, f func(i int)) {
	if e == nil {
		return
	}
	if e.Op == expr.OpColumn {
		f(e.Column)
	}
	for _, a := range e.Args {
		eachColumn(a, f)
	}
}

// mapColumns copies e, which may be nil, with every column i replaced by to(i).
func mapColumns(e *expr.Expr, to func(i int) int) *expr.Expr {
	if e == nil {
		return nil
	}
	c := *e
	if e.Op == expr.OpColumn {
		c.Column = to(e.Column)
	}
	if len(e.Args) > 0 {
		c.Args = make([]*expr.Expr, len(e.Args))
		for i, a := range e.Args {
			c.Args[i] = mapColumns(a, to)
		}
	}
	return &c
}
