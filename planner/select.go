package planner

import (
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// An item is one expression of the select list, * written out.
type item struct {
	node  sql.Expr
	alias *sql.Ident
}

// selectQuery binds SELECT:
//
//	FROM ─▶ filter WHERE ─▶ aggregate ─▶ filter HAVING ─▶ project ─▶ aggregate DISTINCT
//
// All of its clauses are bound, even where one of them is wrong.
func (b *binder) selectQuery(s *sql.Select, w *with) *bound {
	before := len(b.found.list)
	in := b.from(s.From, w)
	rows := &scope{found: b.found, fields: in.fields, from: in.what, wild: in.rel == nil, zone: b.zone, clause: "an aggregate"}
	items := b.expand(s.Items, rows)
	rows.items = items
	rel := b.filter(in.rel, s.Where, rows, "WHERE")
	out := *rows
	grouped := len(s.GroupBy) > 0 || s.Having != nil || slices.ContainsFunc(items, func(it item) bool { return hasAggregate(it.node) })
	if grouped {
		out.groups = &grouping{rows: rows}
		b.groupBy(s.GroupBy, items, &out)
	}
	q := &bound{items: items, rows: rows}
	for _, it := range items {
		q.outputs = append(q.outputs, output{e: out.expr(it.node), node: it.node})
	}
	having := b.condition(s.Having, &out, "HAVING")
	b.refuseOverChanges(s, items, rel, &out)
	if len(b.found.list) > before || rel == nil || slices.ContainsFunc(q.outputs, func(o output) bool { return o.e == nil }) {
		return nil // of a wrong table definition, too
	}
	if q.input = rel; grouped {
		q.input = out.groups.relation(rel)
	}
	if having != nil {
		q.input = &filter{input: q.input, predicate: having}
	}
	if s.Distinct {
		return distinct(b.finish(q), q.outputs)
	}
	return q
}

// filter puts a condition, which may be nil, over a relation.
func (b *binder) filter(rel relation, e sql.Expr, rows *scope, clause string) relation {
	predicate := b.condition(e, rows, clause)
	if rel == nil || predicate == nil {
		return rel
	}
	return &filter{input: rel, predicate: predicate}
}

func (b *binder) condition(e sql.Expr, rows *scope, clause string) *expr.Expr {
	if e == nil {
		return nil
	}
	s := *rows
	s.clause = clause
	bound := s.expr(e)
	if bound == nil || !s.condition(e, bound, clause) {
		return nil
	}
	return convert(bound, expr.Type{Kind: expr.Boolean})
}

// distinct keeps each row once: an aggregate by all columns, without aggregates.
func distinct(rel relation, outputs []output) *bound {
	a := &aggregate{input: rel, cols: rel.columns()}
	for i, c := range a.cols {
		a.keys = append(a.keys, &expr.Expr{Op: expr.OpColumn, Type: c.typ, Column: i})
	}
	return whole(a, outputs)
}

// expand writes * and table.* out.
func (b *binder) expand(list []*sql.Item, rows *scope) []item {
	var items []item
	for _, it := range list {
		star, ok := it.Expr.(*sql.Star)
		if !ok {
			items = append(items, item{it.Expr, it.Alias})
			continue
		}
		if !rows.checkQualifier(star.Table) {
			continue
		}
		if rows.from == "" && !rows.wild {
			b.found.add(star, CodeQuery, "", "* stands for the columns of FROM, and the query has none")
		}
		for _, f := range rows.fields {
			if star.Table == nil || sameName(f.table, star.Table.Name) {
				name := sql.Ident{Span: star.Span, Name: f.name}
				items = append(items, item{node: &sql.ColumnRef{Span: star.Span, Name: name}})
			}
		}
	}
	return items
}

// refuseOverChanges refuses what cannot be kept right where rows are taken back: reading
// the clock gives another value for the same row, and a sketch forgets nothing. out is
// the scope of the select list.
func (b *binder) refuseOverChanges(s *sql.Select, items []item, rel relation, out *scope) {
	over := rel != nil && changing(rel)
	groups := over || out.groups != nil && len(out.groups.aggs) > 0
	for _, e := range append(slices.Clone(s.GroupBy), s.Where) {
		b.refuseCalls(e, over, over, nil)
	}
	b.refuseCalls(s.Having, over, groups, out)
	for _, it := range items {
		b.refuseCalls(it.node, over, groups, out)
	}
}

// refuseCalls refuses the calls in e, which may be nil, that rows which change do not
// allow: rows says so of those that aggregates read, groups of those that e reads. Keys
// of out, which may be nil, are none of its calls.
func (b *binder) refuseCalls(e sql.Expr, rows, groups bool, out *scope) {
	if e == nil || out != nil && out.groups != nil && out.groups.key(out, e) >= 0 {
		return
	}
	if c, ok := e.(*sql.Call); ok {
		f := expr.FindFunction(c.Name.Name)
		a := expr.FindAggregate(c.Name.Name)
		switch {
		case groups && f != nil && f.Volatile:
			b.found.add(c, CodeQuery, "call it in a query over rows that do not change, below the grouping",
				"%s reads the clock, and the rows here change: what is taken back would not be what was given", strings.ToUpper(c.Name.Name))
		case rows && a != nil && !a.Changing:
			b.found.add(c, CodeQuery, "COUNT(DISTINCT x) is exact and counts back", "%s cannot take a row back, and the rows it reads here change", a.SQL)
		}
		if a != nil {
			groups, out = rows, nil
		}
	}
	for _, x := range operands(e) {
		b.refuseCalls(x, rows, groups, out)
	}
}
