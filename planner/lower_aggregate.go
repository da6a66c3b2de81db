package planner

import (
	"fmt"
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/plan"
)

// aggregate lowers groups:
//
//	two phases   …, project, [expand], local_aggregate ─keys─▶ global_aggregate
//	one phase    …, project, [expand] ─keys─▶ global_aggregate raw
//	in place     …, project, [expand], global_aggregate raw    where rows are spread by the keys already
func (l *lowering) aggregate(a *aggregate) stream {
	f, behind := a.input.(*filter)
	behind = behind && f.behind
	input := a.input
	if behind {
		input = f.input
	}
	in := l.relation(input)
	var spec plan.AggregateSpec
	for i := range in {
		spec = l.prepare(&in[i], a, behind)
	}
	spec.Changing, spec.Final = changing(a.input), a.final
	place := len(in) == 1 && (l.chain(&in[0]).Single || len(spec.Keys) > 0 && slices.Equal(in[0].by, spec.Keys))
	var out stream
	switch {
	case place:
		out, spec.Raw = in[0], true
	case a.split:
		for i := range in {
			l.local(&in[i], spec, a.identity)
		}
		spec = merging(spec)
		l.note("aggregated%s in two phases, before and behind the exchange", when(len(spec.Keys) > 0, " by "+keyNames(in[0].schema[:len(spec.Keys)])))
		out = l.exchange(in, upTo(len(spec.Keys)))
	default:
		out, spec.Raw = l.exchange(in, spec.Keys), true
	}
	if behind {
		l.filter(&out, f.predicate, 0)
	}
	l.global(&out, spec, a)
	return out
}

// prepare sees that keys and arguments are columns of a stream, and expands grouping
// sets. whole keeps every column that is there.
func (l *lowering) prepare(s *stream, a *aggregate, whole bool) plan.AggregateSpec {
	keys, args := l.arguments(s, a, whole)
	spec := plan.AggregateSpec{Keys: keys, Aggregates: make([]expr.Aggregate, len(a.aggs))}
	for i, c := range a.aggs {
		spec.Aggregates[i] = expr.Aggregate{Func: c.fn, Arg: args[i], Type: c.typ, ArgType: expr.Type{Kind: expr.BigInt}, Distinct: c.distinct && c.countsDistinct(), Text: c.text}
		if c.arg != nil {
			spec.Aggregates[i].ArgType = c.arg.Type
		}
	}
	if a.sets != nil {
		spec.Keys = append(slices.Clone(keys), len(s.schema))
		spec.Always = a.always()
		l.expand(s, a, keys)
	}
	return spec
}

// arguments projects what keys and arguments compute and returns which columns they are.
func (l *lowering) arguments(s *stream, a *aggregate, whole bool) (keys, args []int) {
	wanted := a.computed()
	exprs, schema := planColumnsOf(s.schema), slices.Clone(s.schema)
	computed := slices.ContainsFunc(wanted, func(e *expr.Expr) bool { return e.Op != expr.OpColumn })
	apart := a.sets != nil && (computed || a.readsKeys()) // keys of sets become NULL, arguments do not
	if (computed || apart) && !whole {
		exprs, schema = nil, nil
	}
	names := columnNames(s.schema)
	at := make([]int, len(wanted))
	for n, e := range wanted {
		from := 0
		if apart {
			from = min(n, len(a.keys))
		}
		at[n] = indexOf(exprs, from, e)
		if at[n] < 0 {
			at[n] = len(exprs)
			exprs = append(exprs, e)
			schema = append(schema, plan.Column{Name: e.SQL(names), Type: e.Type, NotNull: notNull(e, func(c int) bool { return s.schema[c].NotNull })})
		}
	}
	l.project(s, schema, exprs)
	keys = append([]int{}, at[:len(a.keys)]...)
	rest := at[len(a.keys):]
	for _, c := range a.aggs {
		if c.arg == nil {
			args = append(args, -1)
			continue
		}
		args = append(args, rest[0])
		rest = rest[1:]
	}
	return keys, args
}

// indexOf finds an expression in a list from an index on, or gives -1.
func indexOf(list []*expr.Expr, from int, e *expr.Expr) int {
	for i := from; i < len(list); i++ {
		if equal(list[i], e) {
			return i
		}
	}
	return -1
}

// readsKeys reports whether a key is also an argument, or another key.
func (a *aggregate) readsKeys() bool {
	list := a.computed()
	for i := range a.keys {
		if indexOf(list, i+1, list[i]) >= 0 {
			return true
		}
	}
	return false
}

func planColumnsOf(schema []plan.Column) []*expr.Expr {
	exprs := make([]*expr.Expr, len(schema))
	for i, c := range schema {
		exprs[i] = columnExpr(i, c.Type)
	}
	return exprs
}

// setColumn is the name of the column that holds the number of a row's grouping set.
const setColumn = "$set"

// expand emits each row once for every grouping set.
func (l *lowering) expand(s *stream, a *aggregate, keys []int) {
	schema := slices.Clone(s.schema)
	for _, k := range keys {
		schema[k].NotNull = false
	}
	schema = append(schema, plan.Column{Name: setColumn, Type: expr.Type{Kind: expr.Int}, NotNull: true})
	spec := &plan.ExpandSpec{Keys: keys, Sets: make([][]int, len(a.sets))}
	for i, set := range a.sets {
		spec.Sets[i] = picked(keys, set)
	}
	l.add(s, plan.Operator{Kind: plan.Expand, Schema: schema, Expand: spec}, shorten(namesOf(s.schema, keys)), a.identity)
	s.by = nil
}

// always lists the groups of the empty grouping sets: they are there without a row.
func (a *aggregate) always() [][]*expr.Expr {
	var list [][]*expr.Expr
	for i, set := range a.sets {
		if len(set) > 0 {
			continue
		}
		keys := make([]*expr.Expr, 0, len(a.keys)+1)
		for _, k := range a.keys {
			keys = append(keys, nullLiteral(k.Type))
		}
		list = append(list, append(keys, intLiteral(int64(i), expr.Type{Kind: expr.Int})))
	}
	return list
}

func (l *lowering) local(s *stream, spec plan.AggregateSpec, identity string) {
	spec.Final, spec.Always = false, nil
	schema := picked(s.schema, spec.Keys)
	for _, a := range spec.Aggregates {
		parts := a.Partial()
		for n, t := range parts {
			name := a.Text
			if len(parts) > 1 {
				name = fmt.Sprintf("%s#%d", a.Text, n)
			}
			schema = append(schema, plan.Column{Name: name, Type: t, NotNull: neverNull(a, n)})
		}
	}
	detail := shorten(strings.Join(columnNames(schema[:len(spec.Keys)]), ", "))
	l.add(s, plan.Operator{Kind: plan.LocalAggregate, Schema: schema, Aggregate: &spec}, detail, identity)
	s.by = nil
}

// neverNull reports whether the n-th partial column of an aggregate is never NULL.
func neverNull(a expr.Aggregate, n int) bool {
	switch a.Func {
	case expr.Sum, expr.Min, expr.Max:
		return false
	case expr.Avg:
		return n > 0
	}
	return true
}

// merging gives the spec of the global aggregate that reads a local one's output.
func merging(local plan.AggregateSpec) plan.AggregateSpec {
	global := local
	global.Keys, global.Aggregates = upTo(len(local.Keys)), slices.Clone(local.Aggregates)
	at := len(local.Keys)
	for i := range global.Aggregates {
		global.Aggregates[i].Arg = at
		at += len(global.Aggregates[i].Partial())
	}
	return global
}

func (l *lowering) global(s *stream, spec plan.AggregateSpec, a *aggregate) {
	schema := picked(s.schema, spec.Keys)
	for i, c := range a.aggs {
		schema = append(schema, plan.Column{Name: c.text, Type: c.typ, NotNull: a.cols[a.keyColumns()+i].notNull})
	}
	detail := shorten(strings.Join(columnNames(schema[:len(spec.Keys)]), ", "))
	l.add(s, plan.Operator{Kind: plan.GlobalAggregate, Schema: schema, Aggregate: &spec}, detail, a.identity)
	s.by = upTo(len(spec.Keys))
}
