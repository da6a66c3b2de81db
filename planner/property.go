package planner

import (
	"slices"

	"weir/planner/expr"
)

// changing reports whether a relation takes rows back: it has rows -U and +U beside +I.
// Groups change with every row of their input; only those without aggregates (DISTINCT)
// over rows that stay, stay.
func changing(r relation) bool {
	if a, ok := r.(*aggregate); ok {
		return !a.final && (len(a.aggs) > 0 || changing(a.input))
	}
	return slices.ContainsFunc(r.inputs(), changing)
}

// bounded reports whether a relation ends: all its sources do.
func bounded(r relation) bool {
	if s, ok := r.(*scan); ok {
		return s.table.bounded
	}
	return !slices.ContainsFunc(r.inputs(), func(in relation) bool { return !bounded(in) })
}

// appends reports whether a relation can go to a sink that only appends: what changes in
// it has an end, at which the final rows are written.
func appends(r relation) bool {
	if a, ok := r.(*aggregate); ok {
		return !changing(a) || bounded(a)
	}
	return !slices.ContainsFunc(r.inputs(), func(in relation) bool { return !appends(in) })
}

// keyColumns is the number of an aggregate's first columns that identify a group: the
// keys, and the number of the grouping set.
func (a *aggregate) keyColumns() int {
	if a.sets != nil {
		return len(a.keys) + 1
	}
	return len(a.keys)
}

func isColumn(e *expr.Expr, i int) bool { return e.Op == expr.OpColumn && e.Column == i }

// volatile reports whether a relation, or something below it, reads the clock.
func volatile(r relation) bool {
	found := false
	eachExpr(r, func(e *expr.Expr) { found = found || expr.Volatile(e) })
	return found || slices.ContainsFunc(r.inputs(), volatile)
}

// eachExpr calls f for every expression of a node itself.
func eachExpr(r relation, f func(e *expr.Expr)) {
	switch r := r.(type) {
	case *values:
		for _, row := range r.rows {
			for _, e := range row {
				f(e)
			}
		}
	case *filter:
		f(r.predicate)
	case *project:
		for _, e := range r.exprs {
			f(e)
		}
	case *aggregate:
		for _, k := range r.keys {
			f(k)
		}
		for _, a := range r.aggs {
			if a.arg != nil {
				f(a.arg)
			}
		}
	}
}

// A faults knows the columns of relations whose computing may fail: the expression itself,
// or a column below that it reads.
type faults map[relation][]bool

// of gives, per column of r, whether it may fail.
func (m faults) of(r relation) []bool {
	if known, ok := m[r]; ok {
		return known
	}
	list := make([]bool, len(r.columns()))
	switch r := r.(type) {
	case *values:
		for _, row := range r.rows {
			for i, e := range row {
				list[i] = list[i] || expr.CanFail(e)
			}
		}
	case *filter:
		copy(list, m.of(r.input))
	case *project:
		for i, e := range r.exprs {
			list[i] = m.fails(e, r.input)
		}
	case *aggregate:
		for i, k := range r.keys {
			list[i] = m.fails(k, r.input)
		}
		for i, a := range r.aggs {
			sums := a.fn == expr.Sum || a.fn == expr.Avg
			list[r.keyColumns()+i] = sums || a.arg != nil && m.fails(a.arg, r.input)
		}
	case *union:
		for _, in := range r.from {
			for i, f := range m.of(in) {
				list[i] = list[i] || f
			}
		}
	}
	m[r] = list
	return list
}

// fails reports whether computing an expression over a relation may fail.
func (m faults) fails(e *expr.Expr, over relation) bool {
	if expr.CanFail(e) {
		return true
	}
	below, found := m.of(over), false
	eachColumn(e, func(i int) { found = found || below[i] })
	return found
}

// any reports whether computing r may fail: one of its columns, or the keys of groups
// below it, which are computed whoever reads them.
func (m faults) any(r relation) bool {
	return slices.Contains(m.of(r), true) || m.keysFail(r)
}

func (m faults) keysFail(r relation) bool {
	if a, ok := r.(*aggregate); ok && slices.Contains(m.of(a)[:len(a.keys)], true) {
		return true
	}
	return slices.ContainsFunc(r.inputs(), m.keysFail)
}
