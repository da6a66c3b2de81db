package planner

import (
	"slices"
	"strconv"

	"weir/planner/expr"
	"weir/planner/sql"
)

// A bound is a query as bound, whose columns may still take a type: a bare NULL and a
// string literal take that of the UNION or of the table that they meet.
type bound struct {
	input   relation // of outputs; nil: values
	outputs []output
	items   []item         // of outputs that have no names yet
	rows    *scope         // of items
	values  [][]*expr.Expr // of VALUES: then outputs have only names
	nodes   [][]sql.Expr   // of values
	whole   bool           // outputs are all columns of input as they are
}

// An output is one column of a query.
type output struct {
	name string
	e    *expr.Expr
	node sql.Expr // where it was written; nil: nowhere
}

// query binds [WITH …] body; nil where something is wrong with it.
func (b *binder) query(q *sql.Query, outer *with) *bound {
	return b.body(q.Body, b.with(q.With, outer))
}

func (b *binder) body(body sql.Body, w *with) *bound {
	switch body := body.(type) {
	case *sql.Select:
		return b.selectQuery(body, w)
	case *sql.Values:
		return b.values(body)
	case *sql.Union:
		return b.union(body, w)
	}
	return b.query(body.(*sql.Query), w)
}

// finish makes a relation of a query: what has no type yet is a STRING. It is nil where
// the rows of VALUES do not fit each other.
func (b *binder) finish(q *bound) relation {
	switch {
	case q.whole:
		return q.input
	case q.values != nil:
		return b.finishRows(q)
	}
	if q.items != nil {
		b.name(q)
	}
	p := &project{input: q.input, exprs: make([]*expr.Expr, len(q.outputs)), cols: make([]column, len(q.outputs))}
	in := q.input.columns()
	for i, o := range q.outputs {
		p.exprs[i] = typed(o.e)
		p.cols[i] = column{o.name, p.exprs[i].Type, notNull(p.exprs[i], func(c int) bool { return in[c].notNull })}
	}
	return p
}

// finishRows brings the rows of VALUES to one type for each column.
func (b *binder) finishRows(q *bound) relation {
	v, right := &values{rows: q.values, cols: make([]column, len(q.outputs))}, true
	for i, o := range q.outputs {
		t, ok := b.meet(q.column(i), func(r int) sql.Node { return q.nodes[r][i] }, "column "+strconv.Itoa(i+1)+" of VALUES")
		if !ok {
			right = false
			continue
		}
		q.convert(i, t, b.zone)
		null := slices.ContainsFunc(q.column(i), func(e *expr.Expr) bool { return !notNull(e, nil) })
		v.cols[i] = column{o.name, t, !null}
	}
	if !right {
		return nil
	}
	return v
}

// column gives the expressions that the i-th column comes from: one, or one for each row.
func (q *bound) column(i int) []*expr.Expr {
	if q.values == nil {
		return []*expr.Expr{q.outputs[i].e}
	}
	list := make([]*expr.Expr, len(q.values))
	for r, row := range q.values {
		list[r] = row[i]
	}
	return list
}

// convert brings the i-th column to a type that it may take.
func (q *bound) convert(i int, to expr.Type, zone string) {
	if q.values == nil {
		q.outputs[i].e = exactly(q.outputs[i].e, to, zone)
	}
	for _, row := range q.values {
		row[i] = exactly(row[i], to, zone)
	}
	q.whole = q.whole && q.outputs[i].e.Op == expr.OpColumn
}

// exactly brings e to a type that it may take, its precision too.
func exactly(e *expr.Expr, to expr.Type, zone string) *expr.Expr {
	return castTo(convertIn(e, to, zone), to, zone, expr.OpCast)
}

// whole gives the query that is all columns of a relation, as those of another were.
func whole(rel relation, nodes []output) *bound {
	q := &bound{input: rel, whole: true}
	for i, c := range rel.columns() {
		q.outputs = append(q.outputs, output{c.name, &expr.Expr{Op: expr.OpColumn, Type: c.typ, Column: i}, nodes[i].node})
	}
	return q
}

// values binds VALUES: the columns of all rows meet in one type.
func (b *binder) values(v *sql.Values) *bound {
	s := &scope{found: b.found, clause: "VALUES", zone: b.zone}
	q := &bound{values: make([][]*expr.Expr, len(v.Rows)), nodes: v.Rows}
	right := true
	for r, row := range v.Rows {
		for _, node := range row {
			e := s.expr(node)
			right = right && e != nil
			q.values[r] = append(q.values[r], e)
		}
		if len(row) != len(v.Rows[0]) {
			b.found.add(row[0], CodeType, "", "the rows of VALUES have to be of one length, and this one has %s instead of %d", columns(len(row)), len(v.Rows[0]))
			right = false
		}
	}
	if !right {
		return nil
	}
	for i := range v.Rows[0] {
		q.outputs = append(q.outputs, output{name: "column" + strconv.Itoa(i+1)})
	}
	return q
}

// meet gives the type that expressions of one column take: STRING where all are bare
// NULLs. It says which of them, found at a node, does not fit.
func (b *binder) meet(list []*expr.Expr, at func(i int) sql.Node, what string) (expr.Type, bool) {
	t, x, y, ok := common(list)
	if !ok {
		b.found.add(at(y), CodeType, "bring both to one type, as with CAST(… AS STRING)", "%s is %s above and %s here", what, article(list[x]), article(list[y]))
		return t, false
	}
	s := &scope{found: b.found, zone: b.zone}
	read := slices.Clone(list)
	for i, e := range list {
		if !unknown(e) {
			continue
		}
		if read[i] = s.literalAs(at(i), e, t); read[i] == nil {
			return expr.Type{}, false
		}
	}
	if t, _, _, _ = common(read); t.Kind == expr.Null {
		t.Kind = expr.String
	}
	return t, true
}

// union binds UNION ALL: the columns are named as in the first query.
func (b *binder) union(u *sql.Union, w *with) *bound {
	list := make([]*bound, len(u.Inputs))
	for i, body := range u.Inputs {
		list[i] = b.body(body, w)
	}
	if slices.Contains(list, nil) {
		return nil
	}
	if !b.meetAll(u, list) {
		return nil
	}
	width := len(list[0].outputs)
	rel := &union{}
	for i, q := range list {
		if i > 0 {
			q.items = nil
			for c := range q.outputs {
				q.outputs[c].name = list[0].outputs[c].name
			}
		}
		rel.from = append(rel.from, b.finish(q)) // rows of VALUES have met: nothing is left to refuse
	}
	for i := range width {
		c := rel.from[0].columns()[i]
		c.notNull = !slices.ContainsFunc(rel.from, func(r relation) bool { return !r.columns()[i].notNull })
		rel.cols = append(rel.cols, c)
	}
	return whole(rel, list[0].outputs)
}

// meetAll sees that several queries have the same number of columns and brings these to
// one type each.
func (b *binder) meetAll(u *sql.Union, list []*bound) bool {
	width, right := len(list[0].outputs), true
	for i, q := range list[1:] {
		if len(q.outputs) != width {
			b.found.add(head(u.Inputs[i+1]), CodeType, "every query of UNION ALL gives as many columns as the first",
				"this query gives %s, and the first of UNION ALL %d", columns(len(q.outputs)), width)
			right = false
		}
	}
	if !right {
		return false
	}
	for i := range width {
		right = b.meetColumn(u, list, i) && right
	}
	return right
}

// meetColumn brings the i-th columns of several queries to one type.
func (b *binder) meetColumn(u *sql.Union, list []*bound, i int) bool {
	var exprs []*expr.Expr
	var nodes []sql.Node
	for n, q := range list {
		exprs = append(exprs, q.column(i)...)
		for _, row := range q.nodes {
			nodes = append(nodes, row[i])
		}
		switch {
		case q.values != nil:
		case q.outputs[i].node == nil:
			nodes = append(nodes, head(u.Inputs[n]))
		default:
			nodes = append(nodes, q.outputs[i].node)
		}
	}
	t, ok := b.meet(exprs, func(n int) sql.Node { return nodes[n] }, "column "+strconv.Itoa(i+1)+" of UNION ALL")
	for _, q := range list {
		if ok {
			q.convert(i, t, b.zone)
		}
	}
	return ok
}
