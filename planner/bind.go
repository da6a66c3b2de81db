package planner

import (
	"slices"
	"strconv"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// A query is a job's statement with every name and type known: the output of the
// binding phase.
//
//	source ─▶ where ─▶ [group by keys: aggs] ─▶ outputs ─▶ sink | result
type query struct {
	source  *table
	where   *expr.Expr // over the source's columns; nil: all rows
	grouped bool
	keys    []*expr.Expr // over the source's columns
	aggs    []call       // their arguments, too
	outputs []output     // over the source's columns; of a grouped query over keys, then aggs
	sink    *table       // nil: the result is kept
}

// An output is one column of a query's result.
type output struct {
	name    string
	e       *expr.Expr
	notNull bool
	node    sql.Expr // where it was written; nil: nowhere
}

// A binding is the state of the binding phase.
type binding struct {
	prog     *program
	found    *problems
	tables   *tables
	warnings []string
}

// bind gives every name of the program's query its meaning. It returns nil where too
// much is wrong to go on; found then says what.
func bind(prog *program, ts *tables, found *problems) (*query, []string) {
	b := &binding{prog: prog, found: found, tables: ts}
	var q *query
	switch job := prog.job.(type) {
	case *sql.Query:
		if refuseNew(job, b.found) {
			break
		}
		if q = b.selectQuery(job.Body.(*sql.Select), false); q != nil {
			b.warnKeepsAll(q)
		}
	case *sql.Insert:
		q = b.insert(job)
	}
	if q == nil || len(found.list) > 0 {
		return nil, b.warnings
	}
	return q, b.warnings
}

func allColumns(t *table) []int {
	all := make([]int, len(t.Columns))
	for i := range all {
		all[i] = i
	}
	return all
}

func (b *binding) warn(text string) { b.warnings = append(b.warnings, text) }

func (b *binding) warnKeepsAll(q *query) {
	if !q.grouped && !q.source.bounded {
		b.warn("the result keeps every row of the unbounded table " + q.source.Name + " and grows without end; GROUP BY or INSERT INTO keeps it small")
	}
}

// source finds a table that the query reads.
func (b *binding) source(ref *sql.TableRef) *table {
	t := b.tables.lookup(ref.Name, b.found)
	if t == nil {
		return nil
	}
	if t.Connector == "blackhole" {
		b.found.add(ref.Name, CodeQuery, "", "table %s cannot be read: its connector 'blackhole' only takes rows", t.Name)
		return nil
	}
	return t
}

// An item is one expression of the select list, * written out.
type item struct {
	node  sql.Expr
	alias *sql.Ident
}

// selectQuery binds SELECT. inserted: the names of its columns do not matter.
func (b *binding) selectQuery(s *sql.Select, inserted bool) *query {
	from := s.From.(*sql.TableRef)
	t := b.source(from)
	if t == nil {
		return nil
	}
	alias := t.Name
	if from.Alias != nil {
		alias = from.Alias.Name
	}
	all := &scan{table: t, read: allColumns(t)}
	rows := &scope{found: b.found, fields: visibleColumns(all.columns(), alias), from: "table " + t.Name, clause: "an aggregate"}
	q := &query{source: t, where: b.where(s.Where, rows)}
	items := b.expand(s.Items, rows)
	q.grouped = len(s.GroupBy) > 0 || slices.ContainsFunc(items, func(it item) bool { return hasAggregate(it.node) })
	out := *rows
	if q.grouped {
		out.groups = &grouping{rows: rows}
		b.groupBy(s.GroupBy, items, &out)
	}
	for _, it := range items {
		q.outputs = append(q.outputs, output{e: out.expr(it.node), node: it.node})
	}
	if slices.ContainsFunc(q.outputs, func(o output) bool { return o.e == nil }) {
		return nil
	}
	if q.grouped {
		q.keys, q.aggs = out.groups.keys, out.groups.aggs
	}
	if !inserted {
		b.name(q, items)
	}
	q.finishOutputs(inserted)
	return q
}

// finishOutputs gives bare NULLs a type, unless a sink will, and finds the outputs
// that are never NULL.
func (q *query) finishOutputs(inserted bool) {
	for i := range q.outputs {
		o := &q.outputs[i]
		if !inserted {
			o.e = typed(o.e)
		}
		o.notNull = notNull(o.e, q.outputColumnNotNull)
	}
}

// outputColumnNotNull reports whether the i-th column that the outputs read is never NULL.
func (q *query) outputColumnNotNull(i int) bool {
	source := func(i int) bool { return q.source.Columns[i].NotNull }
	switch {
	case !q.grouped:
		return source(i)
	case i < len(q.keys):
		return notNull(q.keys[i], source)
	}
	a := q.aggs[i-len(q.keys)]
	return a.fn != expr.Sum || len(q.keys) > 0 && notNull(a.arg, source)
}

func (b *binding) where(e sql.Expr, rows *scope) *expr.Expr {
	if e == nil {
		return nil
	}
	s := *rows
	s.clause = "WHERE"
	bound := s.expr(e)
	if bound == nil || !s.condition(e, bound, "WHERE") {
		return nil
	}
	return convert(bound, expr.Type{Kind: expr.Boolean})
}

// expand writes * and table.* out.
func (b *binding) expand(list []*sql.Item, rows *scope) []item {
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
		for _, f := range rows.fields {
			name := sql.Ident{Span: star.Span, Name: f.name}
			items = append(items, item{node: &sql.ColumnRef{Span: star.Span, Name: name}})
		}
	}
	return items
}

// groupBy binds the keys: columns, expressions, positions, and output aliases where no
// input column has the name.
func (b *binding) groupBy(list []sql.Expr, items []item, out *scope) {
	rows := *out.groups.rows
	rows.clause = "GROUP BY"
	before := len(b.found.list)
	defer func() { out.groups.wrong = len(b.found.list) > before }()
	for _, e := range list {
		node := b.groupNode(e, items, &rows)
		if node == nil || out.groups.key(&rows, node) >= 0 {
			continue
		}
		if hasAggregate(node) {
			b.found.add(e, CodeQuery, "", "aggregates are not allowed in GROUP BY")
			continue
		}
		bound := rows.expr(node)
		if bound == nil {
			continue
		}
		out.groups.nodes = append(out.groups.nodes, node)
		out.groups.keys = append(out.groups.keys, typed(bound))
	}
}

// groupNode gives the expression that an element of GROUP BY means.
func (b *binding) groupNode(e sql.Expr, items []item, rows *scope) sql.Expr {
	switch g := e.(type) {
	case *sql.NumberLit, *sql.Unary:
		text, isNumber := signedNumber(g)
		if !isNumber {
			return e
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			break
		}
		if n < 1 || n > len(items) {
			b.found.add(e, CodeQuery, "", "GROUP BY position %d is not in the select list, which has %s", n, columns(len(items)))
			return nil
		}
		return items[n-1].node
	case *sql.ColumnRef:
		if g.Table != nil || rows.lookup(g.Name.Name) >= 0 {
			return e
		}
		return b.groupAlias(g, items, rows)
	case *sql.StringLit, *sql.BoolLit, *sql.NullLit:
	default:
		return e
	}
	b.found.add(e, CodeQuery, "GROUP BY takes columns, expressions, names of the select list and positions", "a constant cannot be grouped by")
	return nil
}

// columns words a number of columns.
func columns(n int) string {
	if n == 1 {
		return "1 column"
	}
	return strconv.Itoa(n) + " columns"
}

func signedNumber(e sql.Expr) (string, bool) {
	switch e := e.(type) {
	case *sql.NumberLit:
		return e.Text, true
	case *sql.Unary:
		if n, ok := e.X.(*sql.NumberLit); ok && e.Op == "-" {
			return "-" + n.Text, true
		}
	}
	return "", false
}

func (b *binding) groupAlias(ref *sql.ColumnRef, items []item, rows *scope) sql.Expr {
	var names []string
	for _, it := range items {
		if it.alias == nil {
			continue
		}
		if sameName(it.alias.Name, ref.Name.Name) {
			return it.node
		}
		names = append(names, it.alias.Name)
	}
	names = append(names, rows.names()...)
	b.found.add(ref, CodeName, hints(suggestion(ref.Name.Name, names), "the columns are "+strings.Join(rows.names(), ", ")),
		"%s has no column %s, and the select list no such name", rows.from, ref.Name.Name)
	return nil
}
