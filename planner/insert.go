package planner

import (
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// inserts binds the INSERTs of one job. Those into one table are one target: the rows of
// all of them.
func (b *binder) inserts(list []*sql.Insert) []target {
	var targets []target
	for _, ins := range list {
		t, ok := b.insert(ins)
		if !ok {
			continue
		}
		i := slices.IndexFunc(targets, func(old target) bool { return old.sink == t.sink })
		if i < 0 {
			targets = append(targets, t)
			continue
		}
		targets[i].rel = unite(targets[i].rel, t.rel)
	}
	for _, t := range targets {
		b.checkReads(t, targets)
	}
	return targets
}

// unite gives the rows of two relations of the same columns.
func unite(a, b relation) relation {
	u, ok := a.(*union)
	if !ok {
		u = &union{from: []relation{a}, cols: slices.Clone(a.columns())}
	}
	u.from = append(u.from, b)
	for i, c := range b.columns() {
		u.cols[i].notNull = u.cols[i].notNull && c.notNull
	}
	return u
}

// checkReads refuses a table that one INSERT of the job writes and t reads.
func (b *binder) checkReads(t target, all []target) {
	eachScan(t.rel, func(s *scan) {
		for _, other := range all {
			if other.sink == s.table {
				b.found.add(other.at.(*sql.Insert).Table, CodeQuery, "write to another table", "the job reads table %s and writes it", s.table.Name)
			}
		}
	})
}

// insert binds INSERT INTO: the query, and that its columns fit the sink's.
func (b *binder) insert(ins *sql.Insert) (target, bool) {
	sink := b.sink(ins)
	q := b.query(ins.Query, nil)
	if sink == nil {
		return target{}, false
	}
	to := b.columnsOf(ins, sink)
	if q == nil || to == nil {
		return target{}, false
	}
	if len(to) != len(q.outputs) {
		b.found.add(ins.Query, CodeType, "the columns are "+strings.Join(namesAt(sink, to), ", "),
			"table %s takes %s, and the query gives %d", sink.Name, columns(len(to)), len(q.outputs))
		return target{}, false
	}
	t := target{rel: b.assign(q, sink, to, ins), sink: sink, at: ins}
	if t.rel == nil {
		return target{}, false
	}
	b.checkChanging(ins, t)
	return t, true
}

func namesAt(t *table, columns []int) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = t.Columns[c].Name
	}
	return names
}

// sink finds the table that INSERT writes.
func (b *binder) sink(ins *sql.Insert) *table {
	def := b.definition(ins.Table, nil)
	if def == nil {
		return nil
	}
	if def.view != nil {
		b.found.add(ins.Table, CodeQuery, "write to a table", "%s is a view, and a view cannot be written", def.name())
		return nil
	}
	t := def.table
	switch {
	case t.Connector == "datagen":
		b.found.add(ins.Table, CodeQuery, "", "table %s cannot be written: its connector 'datagen' only makes rows", t.Name)
		return nil
	case t.rowsPerSecond > 0:
		b.found.add(ins.Table, CodeOption, "leave it out", "table %s cannot be written: its option 'rows-per-second' is one of sources", t.Name)
		return nil
	}
	if path := t.Options["path"]; t.Connector == "filesystem" && strings.ContainsAny(path, "*?[") {
		b.found.add(ins.Table, CodeOption, "give the sink a folder of its own", "table %s cannot be written: its path %s is a pattern", t.Name, path)
		return nil
	}
	return t
}

// columnsOf gives the sink's columns that the query's columns go to, in order; nil where
// one of the list is wrong.
func (b *binder) columnsOf(ins *sql.Insert, sink *table) []int {
	if len(ins.Columns) == 0 {
		return allColumns(sink)
	}
	var list []int
	right := true
	for _, c := range ins.Columns {
		i := sink.column(c.Name)
		computed := slices.ContainsFunc(sink.all, func(t tableColumn) bool { return t.computed != nil && sameName(t.name, c.Name) })
		switch {
		case computed:
			b.found.add(c, CodeQuery, "leave it out", "column %s of table %s is computed and takes no value", c.Name, sink.Name)
		case i < 0:
			b.found.add(c, CodeName, hints(suggestion(c.Name, sink.columnNames()), "the columns are "+strings.Join(sink.columnNames(), ", ")),
				"table %s has no column %s", sink.Name, c.Name)
		case slices.Contains(list, i):
			b.found.add(c, CodeName, "", "column %s is listed twice", c.Name)
		default:
			list = append(list, i)
			continue
		}
		right = false
	}
	if !right {
		return nil
	}
	return list
}

// checkChanging refuses a result that changes where the sink only appends, unless the
// input ends: then the final rows are written once.
func (b *binder) checkChanging(ins *sql.Insert, t target) {
	if t.sink.takesChanges() || appends(t.rel) {
		return
	}
	b.found.add(ins.Table, CodeQuery, "bound the source, write to a table that takes changes, or leave INSERT out and read the result",
		"table %s (%s) only appends, and the rows of an aggregate over the unbounded table %s change", t.sink.Name, t.sink.Connector, endless(t.rel).Name)
}

// endless gives the unbounded table over which rows of rel change for ever.
func endless(rel relation) *table {
	if a, ok := rel.(*aggregate); ok {
		return unbounded(a)
	}
	inputs := rel.inputs()
	return endless(inputs[slices.IndexFunc(inputs, func(in relation) bool { return !appends(in) })])
}

// takesChanges reports whether the table, as a sink, takes a changelog.
func (t *table) takesChanges() bool { return t.Connector == "blackhole" }

// assign brings the columns of a query into the order and the types of the sink's; nil
// where one does not fit.
func (b *binder) assign(q *bound, sink *table, to []int, ins *sql.Insert) relation {
	a := &assignment{b: b, sink: sink, right: true}
	for i, c := range sink.Columns {
		if !slices.Contains(to, i) && c.NotNull {
			b.found.add(ins.Table, CodeType, "", "column %s of table %s is NOT NULL and gets no value", c.Name, sink.Name)
			a.right = false
		}
	}
	if q.values != nil {
		return a.values(q, to)
	}
	p := &project{input: q.input, cols: make([]column, len(sink.Columns))}
	in := q.input.columns()
	for i, c := range sink.Columns {
		e := nullLiteral(c.Type)
		if from := slices.Index(to, i); from >= 0 {
			o := q.outputs[from]
			at := sql.Node(o.node)
			if o.node == nil {
				at = head(ins.Query)
			}
			e = a.value(o.e, i, at, func(c int) bool { return in[c].notNull })
		}
		if e == nil {
			continue
		}
		p.exprs = append(p.exprs, e)
		p.cols[i] = column{c.Name, c.Type, notNull(e, func(c int) bool { return in[c].notNull })}
	}
	if !a.right {
		return nil
	}
	return p
}

// An assignment is the columns of one INSERT while they are given to a table.
type assignment struct {
	b     *binder
	sink  *table
	right bool
}

// values assigns the rows of VALUES one by one.
func (a *assignment) values(q *bound, to []int) relation {
	v := &values{}
	for _, c := range a.sink.Columns {
		v.cols = append(v.cols, column{c.Name, c.Type, true})
	}
	for r, given := range q.values {
		row := make([]*expr.Expr, len(a.sink.Columns))
		for i, c := range a.sink.Columns {
			row[i] = nullLiteral(c.Type)
			if from := slices.Index(to, i); from >= 0 {
				row[i] = a.value(given[from], i, q.nodes[r][from], nil)
			}
			v.cols[i].notNull = v.cols[i].notNull && row[i] != nil && notNull(row[i], nil)
		}
		v.rows = append(v.rows, row)
	}
	if !a.right {
		return nil
	}
	return v
}

// value brings one expression to the type of the sink's i-th column, or says why it may
// not go there.
func (a *assignment) value(e *expr.Expr, i int, at sql.Node, never func(i int) bool) *expr.Expr {
	c := a.sink.Columns[i]
	switch {
	case c.Type.Kind == expr.Null: // reported with the table
	case c.Type.Kind != expr.String && !assignable(e, c.Type):
		a.b.found.add(at, CodeType, narrowing(at, e, c.Type), "column %s of table %s is %s, and the query gives %s",
			c.Name, a.sink.Name, c.Type, e.Type)
	case c.NotNull && !notNull(e, never):
		a.b.found.add(at, CodeType, "leave NOT NULL out of the table's definition, or write COALESCE(…)", "column %s of table %s is NOT NULL, and the query may give NULL", c.Name, a.sink.Name)
	default:
		if c.Type.Kind == expr.String { // of every value, as PostgreSQL assigns it
			return castTo(typed(e), c.Type, a.b.zone, expr.OpCast)
		}
		return exactly(e, c.Type, a.b.zone)
	}
	a.right = false
	return nil
}

// narrowing words what to write where a value does not go into a column by itself.
func narrowing(at sql.Node, e *expr.Expr, to expr.Type) string {
	declare := "declare the column as " + e.Type.String()
	node, ok := at.(sql.Expr)
	switch {
	case unknown(e):
		return hints(literalHint(to), declare)
	case !castable(e.Type, to):
		return hints(castHint(e.Type, to), declare)
	case !ok:
		return "write CAST(… AS " + to.String() + "), or " + declare
	}
	return "write CAST(" + label(node) + " AS " + to.String() + "), or " + declare
}
