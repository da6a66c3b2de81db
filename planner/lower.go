package planner

import (
	"fmt"
	"slices"
	"strings"

	"weir"
	"weir/planner/expr"
	"weir/planner/plan"
)

// lower turns a rewritten query into a graph:
//
//	grouped   [source, filter, project, local_aggregate] ─keys─▶ [global_aggregate, project, result | sink]
//	rows      [source, filter, project] ─all columns─▶ [result]
//	insert    [source, filter, project, sink]
//
// Operators with nothing to do are left out. Without keys, everything goes to one subtask.
func lower(q *query, maxParallelism int) *plan.Graph {
	l := &lowering{q: q, names: namer{ids: q.ids, seen: map[weir.OperatorID]int{}}}
	l.graph = plan.Graph{Version: plan.Version, MaxParallelism: maxParallelism, Edges: []plan.Edge{}, Bounded: q.source.bounded}
	l.source()
	if q.where != nil && (q.filterBelow || q.sink != nil && !q.grouped) {
		l.filter(0)
	}
	switch {
	case q.grouped:
		l.grouped()
	case q.sink != nil:
		l.project(l.outputColumns(), l.sourceExprs(l.outputExprs()))
		l.sink()
	default:
		l.rows()
	}
	l.closeChain(q.grouped && len(q.keys) == 0 && len(l.graph.Chains) > 0)
	return &l.graph
}

// A lowering appends operators to the current chain; schema is what the last one emits.
type lowering struct {
	q      *query
	graph  plan.Graph
	chain  []plan.Operator
	schema []plan.Column
	names  namer
}

// add appends an operator that emits schema.
func (l *lowering) add(op plan.Operator, detail string) {
	op.ID = l.names.id(op.Kind)
	op.Name = string(op.Kind) + "(" + detail + ")"
	if detail == "" {
		op.Name = string(op.Kind)
	}
	l.schema = op.Schema
	l.chain = append(l.chain, op)
}

func (l *lowering) closeChain(single bool) {
	l.graph.Chains = append(l.graph.Chains, plan.Chain{Operators: l.chain, Single: single})
	l.chain = nil
}

// exchange ends the chain; rows go on by the hash of these columns.
func (l *lowering) exchange(keys []int) {
	l.closeChain(false)
	n := len(l.graph.Chains)
	l.graph.Edges = append(l.graph.Edges, plan.Edge{From: n - 1, To: n, Keys: keys})
}

func (l *lowering) columnNames() []string {
	names := make([]string, len(l.schema))
	for i, c := range l.schema {
		names[i] = c.Name
	}
	return names
}

func (l *lowering) source() {
	t := l.q.source
	schema := make([]plan.Column, len(l.q.read))
	for i, c := range l.q.read {
		schema[i] = t.Columns[c]
	}
	l.add(plan.Operator{Kind: plan.Source, Schema: schema, Source: &plan.SourceSpec{
		Table: t.Table, Read: l.q.read, Bounded: t.bounded, RowsPerSecond: t.rowsPerSecond,
	}}, t.Name)
}

// fromSource maps an expression over the table's columns to those that are read, which
// begin at column offset.
func (l *lowering) fromSource(e *expr.Expr, offset int) *expr.Expr {
	return mapColumns(e, func(i int) int { return offset + slices.Index(l.q.read, i) })
}

func (l *lowering) sourceExprs(list []*expr.Expr) []*expr.Expr {
	mapped := make([]*expr.Expr, len(list))
	for i, e := range list {
		mapped[i] = l.fromSource(e, 0)
	}
	return mapped
}

// filter keeps the rows that WHERE keeps; the columns read begin at column offset.
func (l *lowering) filter(offset int) {
	predicate := l.fromSource(l.q.where, offset)
	l.add(plan.Operator{Kind: plan.Filter, Schema: l.schema, Filter: &plan.FilterSpec{Predicate: predicate}},
		shorten(predicate.SQL(l.columnNames())))
}

// project computes columns, unless the input has exactly these already.
func (l *lowering) project(schema []plan.Column, exprs []*expr.Expr) {
	same := len(exprs) == len(l.schema)
	for i, e := range exprs {
		same = same && e.Op == expr.OpColumn && e.Column == i && schema[i].Name == l.schema[i].Name
	}
	if same {
		return
	}
	list := make([]string, len(exprs))
	for i, e := range exprs {
		list[i] = e.SQL(l.columnNames())
	}
	l.add(plan.Operator{Kind: plan.Project, Schema: schema, Project: &plan.ProjectSpec{Exprs: exprs}}, shorten(strings.Join(list, ", ")))
}

func (l *lowering) outputColumns() []plan.Column {
	schema := make([]plan.Column, len(l.q.outputs))
	for i, o := range l.q.outputs {
		schema[i] = plan.Column{Name: o.name, Type: o.e.Type, NotNull: o.notNull}
	}
	return schema
}

func (l *lowering) outputExprs() []*expr.Expr {
	exprs := make([]*expr.Expr, len(l.q.outputs))
	for i, o := range l.q.outputs {
		exprs[i] = o.e
	}
	return exprs
}

// rows lowers SELECT without groups: equal rows meet in one subtask and are counted.
func (l *lowering) rows() {
	schema, exprs := l.outputColumns(), l.sourceExprs(l.outputExprs())
	shown := len(schema)
	above := l.q.where != nil && !l.q.filterBelow
	if above { // what the filter reads travels behind the outputs
		for i, c := range l.schema {
			schema = append(schema, c)
			exprs = append(exprs, &expr.Expr{Op: expr.OpColumn, Type: c.Type, Column: i})
		}
	}
	l.project(schema, exprs)
	l.exchange(upTo(shown))
	if above {
		l.filter(shown)
		l.project(l.outputColumns(), columnsOf(l.schema[:shown]))
	}
	l.result(plan.ResultSpec{Keys: []int{}, Multiset: true, Show: upTo(shown)})
}

// columnsOf gives the expressions that read the first columns of a schema.
func columnsOf(schema []plan.Column) []*expr.Expr {
	exprs := make([]*expr.Expr, len(schema))
	for i, c := range schema {
		exprs[i] = &expr.Expr{Op: expr.OpColumn, Type: c.Type, Column: i}
	}
	return exprs
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func (l *lowering) result(spec plan.ResultSpec) {
	l.graph.Result = l.outputColumns()
	l.add(plan.Operator{Kind: plan.Result, Schema: l.graph.Result, Result: &spec}, "")
}

func (l *lowering) sink() {
	l.add(plan.Operator{Kind: plan.Sink, Sink: &plan.SinkSpec{Table: l.q.sink.Table}}, l.q.sink.Name)
}

// grouped lowers the aggregation and what follows it.
func (l *lowering) grouped() {
	q := l.q
	above := q.where != nil && !q.filterBelow
	keys, args := l.arguments(above)
	spec := plan.AggregateSpec{Keys: keys, Aggregates: l.aggregates(args)}
	if q.split {
		l.local(spec)
		spec = l.merging(spec)
		l.exchange(upTo(len(keys)))
	} else {
		l.exchange(keys)
		spec.Raw = true
		if above {
			l.filter(0)
		}
	}
	spec.Final = q.sink != nil && !q.sink.takesChanges()
	l.global(spec)
	if q.sink != nil {
		l.project(l.outputColumns(), l.outputExprs())
		l.sink()
		return
	}
	l.keyedResult()
}

// arguments sees that keys and arguments are columns and returns which. What is
// computed is projected; whole keeps every column that is read before it.
func (l *lowering) arguments(whole bool) (keys, args []int) {
	var wanted []*expr.Expr
	for _, k := range l.q.keys {
		wanted = append(wanted, l.fromSource(k, 0))
	}
	for _, a := range l.q.aggs {
		if a.arg != nil {
			wanted = append(wanted, l.fromSource(a.arg, 0))
		}
	}
	exprs, schema := columnsOf(l.schema), slices.Clone(l.schema)
	computed := slices.ContainsFunc(wanted, func(e *expr.Expr) bool { return e.Op != expr.OpColumn })
	if computed && !whole {
		exprs, schema = nil, nil
	}
	columns := l.columnNames()
	var at []int
	for _, e := range wanted {
		i := slices.IndexFunc(exprs, func(old *expr.Expr) bool { return equal(old, e) })
		if i < 0 {
			i = len(exprs)
			exprs = append(exprs, e)
			schema = append(schema, plan.Column{Name: e.SQL(columns), Type: e.Type, NotNull: notNull(e, func(c int) bool { return l.schema[c].NotNull })})
		}
		at = append(at, i)
	}
	l.project(schema, exprs)
	keys = append([]int{}, at[:len(l.q.keys)]...)
	rest := at[len(l.q.keys):]
	for _, a := range l.q.aggs {
		if a.arg == nil {
			args = append(args, -1)
			continue
		}
		args = append(args, rest[0])
		rest = rest[1:]
	}
	return keys, args
}

// equal reports whether two expressions over the same columns are the same.
func equal(a, b *expr.Expr) bool {
	if a.Op != b.Op || a.Type != b.Type || a.Column != b.Column || (a.Literal == nil) != (b.Literal == nil) || len(a.Args) != len(b.Args) {
		return false
	}
	return (a.Literal == nil || *a.Literal == *b.Literal) && slices.EqualFunc(a.Args, b.Args, equal)
}

func (l *lowering) aggregates(args []int) []expr.Aggregate {
	list := make([]expr.Aggregate, len(l.q.aggs))
	for i, a := range l.q.aggs {
		list[i] = expr.Aggregate{Func: a.fn, Arg: args[i], Type: a.typ, ArgType: expr.Type{Kind: expr.BigInt}, Text: a.text}
		if a.arg != nil {
			list[i].ArgType = a.arg.Type
		}
	}
	return list
}

func (l *lowering) keyColumns(keys []int) []plan.Column {
	var schema []plan.Column
	for _, k := range keys {
		schema = append(schema, l.schema[k])
	}
	return schema
}

func (l *lowering) local(spec plan.AggregateSpec) {
	schema := l.keyColumns(spec.Keys)
	for _, a := range spec.Aggregates {
		parts := a.Partial()
		for n, t := range parts {
			name := a.Text
			if len(parts) > 1 {
				name = fmt.Sprintf("%s#%d", a.Text, n)
			}
			schema = append(schema, plan.Column{Name: name, Type: t, NotNull: a.Func != expr.Sum})
		}
	}
	detail := l.keyNames(spec.Keys)
	l.add(plan.Operator{Kind: plan.LocalAggregate, Schema: nonNil(schema), Aggregate: &spec}, detail)
}

func nonNil(schema []plan.Column) []plan.Column { return append([]plan.Column{}, schema...) }

func (l *lowering) keyNames(keys []int) string {
	names := l.columnNames()
	var list []string
	for _, k := range keys {
		list = append(list, names[k])
	}
	return shorten(strings.Join(list, ", "))
}

// merging gives the spec of the global aggregate that reads a local one's output.
func (l *lowering) merging(local plan.AggregateSpec) plan.AggregateSpec {
	global := plan.AggregateSpec{Keys: upTo(len(local.Keys)), Aggregates: slices.Clone(local.Aggregates)}
	at := len(local.Keys)
	for i := range global.Aggregates {
		global.Aggregates[i].Arg = at
		at += len(global.Aggregates[i].Partial())
	}
	return global
}

func (l *lowering) global(spec plan.AggregateSpec) {
	schema := l.keyColumns(spec.Keys)
	for i, a := range spec.Aggregates {
		schema = append(schema, plan.Column{Name: a.Text, Type: a.Type, NotNull: l.q.outputColumnNotNull(len(spec.Keys) + i)})
	}
	l.add(plan.Operator{Kind: plan.GlobalAggregate, Schema: nonNil(schema), Aggregate: &spec}, l.keyNames(spec.Keys))
}

// keyedResult projects the outputs, and behind them the keys that are not among them,
// and keeps the result by the keys. Where the aggregate emits just that, its columns
// take the outputs' names and there is no projection.
func (l *lowering) keyedResult() {
	schema, exprs := l.outputColumns(), l.outputExprs()
	keys := make([]int, len(l.q.keys))
	for k := range l.q.keys {
		keys[k] = slices.IndexFunc(exprs, func(e *expr.Expr) bool { return e.Op == expr.OpColumn && e.Column == k })
		if keys[k] < 0 {
			keys[k] = len(exprs)
			hidden := l.schema[k]
			hidden.Name = fmt.Sprintf("$key%d", k)
			schema = append(schema, hidden)
			exprs = append(exprs, &expr.Expr{Op: expr.OpColumn, Type: hidden.Type, Column: k})
		}
	}
	identity := len(exprs) == len(l.schema)
	for i, e := range exprs {
		identity = identity && e.Op == expr.OpColumn && e.Column == i
	}
	if identity {
		l.chain[len(l.chain)-1].Schema = schema
		l.schema = schema
	}
	l.project(schema, exprs)
	l.result(plan.ResultSpec{Keys: keys, Show: upTo(len(l.q.outputs))})
}

func shorten(s string) string {
	const limit = 60
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
