package planner

import (
	"fmt"
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/plan"
)

// lower turns a rewritten statement into a graph: each node becomes an operator at the
// end of the chains that hold its input; chains end where rows change subtasks.
//
//	grouped   [source, filter, project, local_aggregate] ─keys─▶ [global_aggregate, project, result | sink]
//	rows      [source, filter, project] ─all columns─▶ [result]
//	insert    [source, filter, project, sink]
//	union     [source, filter] ─keys─┐
//	          [source, project] ─keys┴▶ [global_aggregate, …]
//	shared    [source] ─forward─▶ [filter, sink] and ─forward─▶ [project, sink]
//
// Operators with nothing to do are left out. Without keys, everything goes to one subtask.
// notes say what was made of the rewrites, for people.
func lower(s *statement, maxParallelism int) (_ *plan.Graph, notes []string) {
	l := &lowering{names: namer{}, shared: sharedNodes(s), done: map[relation][]stream{}}
	l.graph = plan.Graph{Version: plan.Version, MaxParallelism: maxParallelism, Edges: []plan.Edge{}, Bounded: true}
	if mode := s.settings["on_row_error"]; mode != "fail" {
		l.graph.OnRowError = mode
	}
	l.graph.LatencyTarget = s.settings["latency_target"]
	for _, t := range s.targets {
		l.graph.Bounded = l.graph.Bounded && bounded(t.rel)
		if t.sink != nil {
			l.sink(t)
		} else {
			l.result(t)
		}
	}
	if l.graph.OnRowError != "" {
		l.rejects()
	}
	return &l.graph, l.notes
}

// A lowering is the state of the phase.
type lowering struct {
	graph  plan.Graph
	sealed []bool // per chain: it is the input of several, and gets no more operators
	names  namer
	shared map[relation]bool
	done   map[relation][]stream // of the shared nodes
	notes  []string
}

func (l *lowering) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(l.notes, text) {
		l.notes = append(l.notes, text)
	}
}

// A stream is the rows at the end of a chain. A relation is one, or, a union, several
// whose columns have the same types.
type stream struct {
	chain  int
	schema []plan.Column
	by     []int  // the rows are spread by the hash of these columns; nil: anyhow
	origin string // names what has no state: the sources below
}

func (l *lowering) chain(s *stream) *plan.Chain { return &l.graph.Chains[s.chain] }

// open begins a chain.
func (l *lowering) open(single bool) int {
	l.graph.Chains = append(l.graph.Chains, plan.Chain{Single: single, Operators: make([]plan.Operator, 0, 4)})
	l.sealed = append(l.sealed, false)
	return len(l.graph.Chains) - 1
}

// add appends an operator, which emits op.Schema, to a stream's chain, or to a chain
// behind it where that one is shared.
func (l *lowering) add(s *stream, op plan.Operator, detail, identity string) {
	if l.sealed[s.chain] {
		next := l.open(l.chain(s).Single)
		l.graph.Edges = append(l.graph.Edges, plan.Edge{From: s.chain, To: next, Keys: []int{}, Forward: true})
		s.chain = next
	}
	op.ID = l.names.id(op.Kind, identity)
	op.Name = string(op.Kind)
	if detail != "" {
		op.Name += "(" + detail + ")"
	}
	s.schema = op.Schema
	c := l.chain(s)
	c.Operators = append(c.Operators, op)
}

// exchange brings streams together in a new chain: rows go on by the hash of these
// columns, or, without, to one subtask.
func (l *lowering) exchange(in []stream, keys []int) stream {
	out := stream{chain: l.open(len(keys) == 0), schema: in[0].schema, by: keys, origin: origins(in)}
	for _, s := range in {
		l.graph.Edges = append(l.graph.Edges, plan.Edge{From: s.chain, To: out.chain, Keys: keys})
	}
	return out
}

// join brings streams together in one chain and leaves rows in their subtasks.
func (l *lowering) join(in []stream) stream {
	if len(in) == 1 {
		return in[0]
	}
	single := true
	for _, s := range in {
		single = single && l.chain(&s).Single
	}
	out := stream{chain: l.open(single), schema: in[0].schema, origin: origins(in)}
	for _, s := range in {
		forward := l.chain(&s).Single == single // otherwise the one subtask sends to the first of many
		l.graph.Edges = append(l.graph.Edges, plan.Edge{From: s.chain, To: out.chain, Keys: []int{}, Forward: forward})
	}
	return out
}

func origins(in []stream) string {
	var list []string
	for _, s := range in {
		if !slices.Contains(list, s.origin) {
			list = append(list, s.origin)
		}
	}
	return strings.Join(list, " + ")
}

// relation lowers a node and what lies below it.
func (l *lowering) relation(r relation) []stream {
	if done, ok := l.done[r]; ok {
		return slices.Clone(done)
	}
	var out []stream
	switch r := r.(type) {
	case *scan:
		out = l.scan(r)
	case *values:
		out = l.values(r)
	case *filter:
		out = l.relation(r.input)
		for i := range out {
			l.filter(&out[i], r.predicate, 0)
		}
	case *project:
		out = l.relation(r.input)
		for i := range out {
			l.project(&out[i], planColumns(r.cols), r.exprs)
		}
	case *aggregate:
		out = []stream{l.aggregate(r)}
	case *union:
		out = l.union(r)
	}
	if l.shared[r] {
		for i := range out {
			l.sealed[out[i].chain] = true
		}
		l.done[r] = slices.Clone(out)
	}
	return out
}

func planColumns(cols []column) []plan.Column {
	schema := make([]plan.Column, len(cols))
	for i, c := range cols {
		schema[i] = plan.Column{Name: c.name, Type: c.typ, NotNull: c.notNull}
	}
	return schema
}

func (l *lowering) scan(r *scan) []stream {
	t := r.table
	s := stream{chain: l.open(false), origin: tableIdentity(t)}
	l.add(&s, plan.Operator{Kind: plan.Source, Schema: planColumns(r.columns()), Source: &plan.SourceSpec{
		Table: t.Table, Read: r.read, Bounded: t.bounded, RowsPerSecond: t.rowsPerSecond,
	}}, t.Name, s.origin)
	return []stream{s}
}

// values lowers rows written in the query: one subtask has them.
func (l *lowering) values(r *values) []stream {
	s := stream{chain: l.open(true), origin: "values"}
	schema := planColumns(r.cols)
	l.add(&s, plan.Operator{Kind: plan.Source, Schema: schema, Source: &plan.SourceSpec{
		Table: plan.Table{Name: "values", Connector: "values", Columns: schema}, Read: upTo(len(schema)), Bounded: true, Values: r.rows,
	}}, "values", s.origin)
	return []stream{s}
}

// union gives the streams of all inputs, under the union's names where these can be given.
func (l *lowering) union(r *union) []stream {
	var out []stream
	for _, in := range r.from {
		out = append(out, l.relation(in)...)
	}
	for i := range out {
		s := &out[i]
		ops := l.chain(s).Operators
		s.schema = planColumns(r.cols)
		if last := &ops[len(ops)-1]; !l.sealed[s.chain] && last.Kind == plan.Project {
			last.Schema = s.schema
		}
	}
	return out
}

// filter keeps the rows of a predicate whose columns begin at column offset.
func (l *lowering) filter(s *stream, predicate *expr.Expr, offset int) {
	predicate = mapColumns(predicate, func(i int) int { return offset + i })
	l.add(s, plan.Operator{Kind: plan.Filter, Schema: s.schema, Filter: &plan.FilterSpec{Predicate: predicate}},
		shorten(predicate.SQL(columnNames(s.schema))), s.origin)
}

// project computes columns, unless the input has exactly these already.
func (l *lowering) project(s *stream, schema []plan.Column, exprs []*expr.Expr) {
	same := len(exprs) == len(s.schema)
	for i, e := range exprs {
		same = same && isColumn(e, i) && schema[i].Name == s.schema[i].Name
	}
	if same {
		return
	}
	list := make([]string, len(exprs))
	for i, e := range exprs {
		list[i] = e.SQL(columnNames(s.schema))
	}
	by := make([]int, 0, len(s.by))
	for _, k := range s.by {
		by = append(by, slices.IndexFunc(exprs, func(e *expr.Expr) bool { return isColumn(e, k) }))
	}
	if s.by == nil || slices.Contains(by, -1) {
		by = nil
	}
	l.add(s, plan.Operator{Kind: plan.Project, Schema: schema, Project: &plan.ProjectSpec{Exprs: exprs}}, shorten(strings.Join(list, ", ")), s.origin)
	s.by = by
}

// rejects adds the chain that rows at fault go to, from all that may have some.
func (l *lowering) rejects() {
	var from []int
	for i, c := range l.graph.Chains {
		if slices.ContainsFunc(c.Operators, mayReject) {
			from = append(from, i)
		}
	}
	if len(from) == 0 {
		return
	}
	s := stream{chain: l.open(true)}
	l.add(&s, plan.Operator{Kind: plan.Rejects, Schema: []plan.Column{}, Rejects: &plan.RejectsSpec{Keep: l.graph.OnRowError == "keep"}}, "", "")
	for _, i := range from {
		l.graph.Edges = append(l.graph.Edges, plan.Edge{From: i, To: s.chain, Keys: []int{}, Rejects: true})
	}
}

// mayReject reports whether rows may be at fault in an operator.
func mayReject(op plan.Operator) bool {
	switch op.Kind {
	case plan.Source:
		return op.Source.Table.Connector != "values" ||
			slices.ContainsFunc(op.Source.Values, func(row []*expr.Expr) bool { return slices.ContainsFunc(row, expr.CanFail) })
	case plan.Filter:
		return expr.CanFail(op.Filter.Predicate)
	case plan.Project:
		return slices.ContainsFunc(op.Project.Exprs, expr.CanFail)
	}
	return false
}

func shorten(s string) string {
	const limit = 60
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
