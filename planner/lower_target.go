package planner

import (
	"fmt"
	"slices"

	"weir/planner/expr"
	"weir/planner/plan"
)

// sink lowers what a target's table gets.
func (l *lowering) sink(t target) {
	s := l.join(l.relation(t.rel))
	l.add(&s, plan.Operator{Kind: plan.Sink, Sink: &plan.SinkSpec{Table: t.sink.Table}}, t.sink.Name, t.identity)
}

// result lowers a kept result: by the key of the groups that its rows are, where the rows
// lie by it, otherwise by the whole row.
func (l *lowering) result(t target) {
	shown := len(t.rel.columns())
	l.graph.Result = planColumns(t.rel.columns())
	keep := func(s *stream, spec plan.ResultSpec) {
		spec.Show = upTo(shown)
		l.add(s, plan.Operator{Kind: plan.Result, Schema: l.graph.Result, Result: &spec}, "", t.identity)
	}
	if a, show, ok := l.keptGroups(t.rel); ok {
		s := l.relation(a)[0]
		l.add(&s, plan.Operator{Kind: plan.Result, Schema: l.graph.Result, Result: &plan.ResultSpec{Keys: upTo(a.keyColumns()), Groups: true, Show: show}}, "", t.identity)
		return
	}
	if r, keys, ok := carryKeys(t.rel); ok {
		s := l.groups(r)
		keep(&s, plan.ResultSpec{Keys: keys})
		return
	}
	f, schema, exprs := filterOfRows(t), l.graph.Result, planColumnsOf(l.graph.Result)
	in := t.rel
	if p, ok := t.rel.(*project); ok {
		in, exprs = p.input, p.exprs
	}
	behind := f != nil && f.behind
	if behind { // what the filter reads travels behind the outputs
		in = f.input
		schema = append(slices.Clone(schema), planColumns(in.columns())...)
		exprs = append(slices.Clone(exprs), columnsOf(in.columns())...)
	}
	from := l.relation(in)
	for i := range from {
		l.project(&from[i], schema, exprs)
	}
	s := from[0]
	if len(from) > 1 || !l.chain(&s).Single && !slices.Equal(s.by, upTo(len(s.schema))) {
		s = l.exchange(from, upTo(shown))
	}
	if behind {
		l.filter(&s, f.predicate, shown)
		l.project(&s, l.graph.Result, planColumnsOf(s.schema[:shown]))
	}
	keep(&s, plan.ResultSpec{Keys: []int{}, Multiset: true})
}

// keptGroups reports whether the rows of a result are groups as an aggregate keeps them,
// columns left out or in another order, and which are shown. A sum that does not fit its type
// fails the job when it changes, which the aggregate sees to; averages that may not fit are
// computed then. Where the aggregate keeps the values of each group one by one, the result
// keeps its rows: whoever reads it out of a snapshot is not to load all those values.
func (l *lowering) keptGroups(r relation) (a *aggregate, show []int, ok bool) {
	show = upTo(len(r.columns()))
	if p, is := r.(*project); is {
		for i, e := range p.exprs {
			if e.Op != expr.OpColumn {
				return nil, nil, false
			}
			show[i] = e.Column
		}
		r = p.input
	}
	a, ok = r.(*aggregate)
	return a, show, ok && !a.final && !l.shared[a] && !slices.ContainsFunc(a.aggs, func(c call) bool {
		return !c.meanFits() || a.keepsValues(c)
	})
}

// meanFits reports whether a call is no average, or one that fits its type, whatever the values:
// no mean has more digits before the point than they have.
func (c call) meanFits() bool {
	if c.fn != expr.Avg || c.typ.Kind != expr.Decimal {
		return true
	}
	of := c.arg.Type
	return of.Precision-of.Scale <= c.typ.Precision-c.typ.Scale
}

// keepsValues reports whether a call needs the different values of each group.
func (a *aggregate) keepsValues(c call) bool {
	return c.distinct && c.countsDistinct() || (c.fn == expr.Min || c.fn == expr.Max) && changing(a.input)
}

// groups lowers filtered and projected groups. Where a projection only renames the
// columns of the aggregate, they take the names there.
func (l *lowering) groups(r relation) stream {
	p, ok := r.(*project)
	if !ok {
		return l.relation(r)[0]
	}
	a, ok := p.input.(*aggregate)
	s := l.relation(p.input)[0]
	renames := ok && !l.shared[a] && len(p.exprs) == len(s.schema)
	for i, e := range p.exprs {
		renames = renames && isColumn(e, i)
	}
	if renames {
		ops := l.chain(&s).Operators
		s.schema = planColumns(p.cols)
		ops[len(ops)-1].Schema = s.schema
	}
	l.project(&s, planColumns(p.cols), p.exprs)
	return s
}

// carryKeys sees that a relation which is groups, filtered and projected, has the columns
// that identify a group, hidden behind the others where they are not among them, and
// returns which they are.
func carryKeys(r relation) (_ relation, keys []int, ok bool) {
	switch r := r.(type) {
	case *aggregate:
		return r, upTo(r.keyColumns()), true
	case *filter:
		in, keys, ok := carryKeys(r.input)
		if !ok {
			return nil, nil, false
		}
		c := *r
		c.input = in
		return &c, keys, true
	case *project:
		in, keys, ok := carryKeys(r.input)
		if !ok {
			return nil, nil, false
		}
		made := r.carry(in, keys)
		return made, keys, true
	}
	return nil, nil, false
}

// carry adds the keys that a projection lacks, and says in keys where they are now.
func (p *project) carry(in relation, keys []int) relation {
	c := *p
	c.input, c.exprs, c.cols = in, slices.Clone(p.exprs), slices.Clone(p.cols)
	below := in.columns()
	for n, k := range keys {
		i := slices.IndexFunc(c.exprs, func(e *expr.Expr) bool { return isColumn(e, k) })
		if i < 0 {
			i = len(c.exprs)
			c.exprs = append(c.exprs, columnExpr(k, below[k].typ))
			name := fmt.Sprintf("$key%d", n)
			if below[k].name == setColumn {
				name = setColumn
			}
			c.cols = append(c.cols, column{name, below[k].typ, below[k].notNull})
		}
		keys[n] = i
	}
	return &c
}
