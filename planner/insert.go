package planner

import (
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// insert binds INSERT INTO: the query, and that its columns fit the sink's.
func (b *binding) insert(ins *sql.Insert) *query {
	sink := b.sink(ins)
	if refuseNew(ins.Query, b.found) {
		return nil
	}
	q := b.selectQuery(ins.Query.Body.(*sql.Select), true)
	if sink == nil || q == nil {
		return nil
	}
	if q.source == sink {
		b.found.add(ins.Table, CodeQuery, "write to another table", "the query reads table %s and writes it", sink.Name)
		return nil
	}
	q.sink = sink
	targets := b.targets(ins, sink)
	if targets == nil {
		return nil
	}
	if len(targets) != len(q.outputs) {
		b.found.add(ins.Query, CodeType, "the columns are "+strings.Join(namesAt(sink, targets), ", "),
			"table %s takes %s, and the query gives %d", sink.Name, columns(len(targets)), len(q.outputs))
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
	if path := t.Options["path"]; t.Connector == "filesystem" && strings.ContainsAny(path, "*?[") {
		b.found.add(ins.Table, CodeOption, "give the sink a folder of its own", "table %s cannot be written: its path %s is a pattern", t.Name, path)
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
