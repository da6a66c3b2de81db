package planner

import (
	"slices"
	"strconv"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// A query is a job's statement with every name and type known: the output of the
// binding phase, and, with the last group of fields decided, of the rewriting phase.
//
//	source ─▶ where ─▶ [group by keys: aggs] ─▶ outputs ─▶ sink | result
type query struct {
	source  *table
	where   *expr.Expr // over the source's columns; nil: all rows
	grouped bool
	keys    []*expr.Expr // over the source's columns
	aggs    []aggregate  // their arguments, too
	outputs []output     // over the source's columns; of a grouped query over keys, then aggs
	sink    *table       // nil: the result is kept
	ids     identities   // made from the tree as bound

	read        []int // columns of the source that are read
	filterBelow bool  // the filter runs in the source's chain, below the exchange
	split       bool  // aggregates run in two phases, local and global
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
	case *sql.Select:
		if q = b.selectQuery(job, false); q != nil {
			b.warnKeepsAll(q)
		}
	case *sql.Insert:
		q = b.insert(job)
	}
	if q == nil || len(found.list) > 0 {
		return nil, b.warnings
	}
	q.read = allColumns(q.source)
	q.ids = identify(q)
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
	t := b.source(s.From)
	if t == nil {
		return nil
	}
	alias := t.Name
	if s.From.Alias != nil {
		alias = s.From.Alias.Name
	}
	rows := &scope{found: b.found, table: t, alias: alias, clause: "an aggregate"}
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
	q.finishOutputs()
	if !inserted {
		b.name(q, items)
	}
	return q
}

// finishOutputs gives bare NULLs a type and finds the outputs that are never NULL.
func (q *query) finishOutputs() {
	for i := range q.outputs {
		o := &q.outputs[i]
		o.e = typed(o.e)
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
		for _, c := range rows.table.Columns {
			name := sql.Ident{Span: star.Span, Name: c.Name}
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
	for _, e := range list {
		node := b.groupNode(e, items, &rows)
		if node == nil || out.groups.key(&rows, node) >= 0 {
			continue
		}
		if hasAggregate(node) {
			b.found.add(e, CodeQuery, "", "an aggregate cannot stand in GROUP BY")
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
			b.found.add(e, CodeQuery, "", "GROUP BY position %d is not in the select list, which has %d columns", n, len(items))
			return nil
		}
		return items[n-1].node
	case *sql.ColumnRef:
		if g.Table != nil || rows.table.column(g.Name.Name) >= 0 {
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
	names = append(names, rows.table.columnNames()...)
	b.found.add(ref, CodeName, hints(suggestion(ref.Name.Name, names), "the columns are "+strings.Join(rows.table.columnNames(), ", ")),
		"table %s has no column %s, and the select list no such name", rows.table.Name, ref.Name.Name)
	return nil
}

// name gives every output a name of its own: its alias; else the column's name; else
// the function's; else _c and its position. Names that were not written give way.
func (b *binding) name(q *query, items []item) {
	taken := map[string]int{} // folded name → output
	for i, it := range items {
		if it.alias != nil {
			b.claim(q, taken, i, it.alias.Name, it.alias)
		}
	}
	for i, it := range items {
		ref, ok := it.node.(*sql.ColumnRef)
		if it.alias != nil || !ok {
			continue
		}
		name := q.source.Columns[q.source.column(ref.Name.Name)].Name
		if old, clash := taken[strings.ToLower(name)]; clash && items[old].alias == nil {
			b.yield(q, taken, i, name)
			b.warn("column " + strconv.Itoa(i+1) + " of the result is named " + q.outputs[i].name + ": " + name + " stands there twice")
			continue
		}
		b.claim(q, taken, i, name, ref)
	}
	for i, it := range items {
		if q.outputs[i].name != "" {
			continue
		}
		name := "_c" + strconv.Itoa(i+1)
		if c, ok := it.node.(*sql.Call); ok {
			name = strings.ToLower(c.Name.Name)
		}
		b.yield(q, taken, i, name)
	}
}

// claim gives output i a name that was written; no other may have it.
func (b *binding) claim(q *query, taken map[string]int, i int, name string, at sql.Node) {
	if old, clash := taken[strings.ToLower(name)]; clash {
		b.found.add(at, CodeName, "name one of them otherwise with AS", "two columns of the result are named %s%s",
			q.outputs[old].name, sameButForCase(q.outputs[old].name, name))
		return
	}
	taken[strings.ToLower(name)] = i
	q.outputs[i].name = name
}

// yield gives output i the name, or that with a number where it is taken.
func (b *binding) yield(q *query, taken map[string]int, i int, name string) {
	free := name
	for n := 1; ; n++ {
		if _, clash := taken[strings.ToLower(free)]; !clash {
			break
		}
		free = name + "_" + strconv.Itoa(n)
	}
	taken[strings.ToLower(free)] = i
	q.outputs[i].name = free
}

// insert binds INSERT INTO: the query, and that its columns fit the sink's.
func (b *binding) insert(ins *sql.Insert) *query {
	sink := b.sink(ins)
	q := b.selectQuery(ins.Query, true)
	if sink == nil || q == nil {
		return nil
	}
	q.sink = sink
	targets := b.targets(ins, sink)
	if targets == nil {
		return nil
	}
	if len(targets) != len(q.outputs) {
		b.found.add(ins.Query.Items[0], CodeType, "the columns are "+strings.Join(namesAt(sink, targets), ", "),
			"table %s takes %d columns, and the query gives %d", sink.Name, len(targets), len(q.outputs))
		return nil
	}
	b.checkChanging(ins, q)
	b.assign(q, sink, targets, ins)
	return q
}

func namesAt(t *table, columns []int) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = t.Columns[c].Name
	}
	return names
}

func (b *binding) sink(ins *sql.Insert) *table {
	t := b.tables.lookup(ins.Table, b.found)
	if t == nil {
		return nil
	}
	switch {
	case t.Connector == "datagen":
		b.found.add(ins.Table, CodeQuery, "", "table %s cannot be written: its connector 'datagen' only makes rows", t.Name)
		return nil
	case t.rowsPerSecond > 0:
		b.found.add(ins.Table, CodeOption, "leave it out", "table %s cannot be written: its option 'rows-per-second' is one of sources", t.Name)
		return nil
	}
	return t
}

// targets gives the sink's columns that the query's columns go to, in order.
func (b *binding) targets(ins *sql.Insert, sink *table) []int {
	if len(ins.Columns) == 0 {
		return allColumns(sink)
	}
	var list []int
	for _, c := range ins.Columns {
		i := sink.column(c.Name)
		switch {
		case i < 0:
			b.found.add(c, CodeName, hints(suggestion(c.Name, sink.columnNames()), "the columns are "+strings.Join(sink.columnNames(), ", ")),
				"table %s has no column %s", sink.Name, c.Name)
			return nil
		case slices.Contains(list, i):
			b.found.add(c, CodeName, "", "column %s is listed twice", c.Name)
			return nil
		}
		list = append(list, i)
	}
	return list
}

// checkChanging refuses a result that changes where the sink only appends, unless the
// input ends: then the final rows are written once.
func (b *binding) checkChanging(ins *sql.Insert, q *query) {
	if q.grouped && !q.sink.takesChanges() && !q.source.bounded {
		b.found.add(ins.Table, CodeQuery, "bound the source, write to a table that takes changes, or leave INSERT out and read the result",
			"table %s (%s) only appends, and the rows of an aggregate over the unbounded table %s change", q.sink.Name, q.sink.Connector, q.source.Name)
	}
}

// takesChanges reports whether the table, as a sink, takes a changelog.
func (t *table) takesChanges() bool { return t.Connector == "blackhole" }

// assign brings the outputs into the order and the types of the sink's columns.
func (b *binding) assign(q *query, sink *table, targets []int, ins *sql.Insert) {
	given := q.outputs
	q.outputs = make([]output, len(sink.Columns))
	for i, c := range sink.Columns {
		from := slices.Index(targets, i)
		if from < 0 {
			if c.NotNull {
				b.found.add(ins.Table, CodeType, "", "column %s of table %s is NOT NULL and gets no value", c.Name, sink.Name)
			}
			q.outputs[i] = output{name: c.Name, e: nullLiteral(c.Type)}
			continue
		}
		o, node := given[from], given[from].node
		switch {
		case c.Type.Kind == expr.Null: // reported with the table
			return
		case !assignable(o.e, c.Type):
			b.found.add(node, CodeType, widening(o.e.Type, c.Type), "column %s of table %s is %s, and the query gives %s",
				c.Name, sink.Name, c.Type, o.e.Type)
			return
		case c.NotNull && !o.notNull:
			b.found.add(node, CodeType, "leave NOT NULL out of the table's definition", "column %s of table %s is NOT NULL, and the query may give NULL", c.Name, sink.Name)
		}
		q.outputs[i] = output{name: c.Name, e: convert(o.e, c.Type), notNull: o.notNull}
	}
}

func widening(from, to expr.Type) string {
	switch {
	case rank(from) > 0 && rank(to) > 0:
		return "numbers widen only (INT, BIGINT, DECIMAL, DOUBLE); declare the column as " + from.String()
	case to.Kind == expr.String:
		return "declare the column as " + from.String()
	}
	return ""
}
