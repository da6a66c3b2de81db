package planner

import (
	"slices"

	"weir/planner/expr"
)

// finalGroups lets groups over bounded input be emitted once, at the end: those below a
// sink that only appends, so that nothing below it changes; and those whose values are
// divided by, cast or given to a function that may fail: a row that changes again is no row
// of the answer, which of them there are depends on time, and none may fail the job.
func (w *rewriting) finalGroups(s *statement) {
	for i, t := range s.targets {
		if t.sink != nil && !t.sink.takesChanges() {
			s.targets[i].rel = withFinal(t.rel, func(*aggregate) bool { return true })
			continue
		}
		below := map[relation]bool{}
		markFallible(t.rel, false, below)
		s.targets[i].rel = withFinal(t.rel, func(a *aggregate) bool { return below[a] })
	}
}

// withFinal makes those aggregates final that are chosen, bounded and emit changes.
func withFinal(r relation, chosen func(*aggregate) bool) relation {
	t := rebuilding{done: map[relation]relation{}, f: func(old, made relation) relation {
		a, ok := made.(*aggregate)
		if !ok || !chosen(old.(*aggregate)) || !bounded(a) || !changing(a) {
			return made
		}
		c := *a
		c.final = true
		return &c
	}}
	return t.of(r)
}

// markFallible notes the aggregates from whose rows something is computed that may fail;
// above says that this is so of r's.
func markFallible(r relation, above bool, below map[relation]bool) {
	fails := func(list ...*expr.Expr) bool {
		return slices.ContainsFunc(list, failsByValue)
	}
	switch r := r.(type) {
	case *filter:
		above = above || fails(r.predicate)
	case *project:
		above = above || fails(r.exprs...)
	case *aggregate:
		if above {
			below[r] = true
		}
		above = fails(r.keys...)
		for _, c := range r.aggs {
			above = above || fails(c.arg)
		}
	}
	for _, in := range r.inputs() {
		markFallible(in, above, below)
	}
}

// failsByValue reports whether an expression may fail by a value that lies within its type:
// by more than an overflow of + - *.
func failsByValue(e *expr.Expr) bool {
	if e == nil {
		return false
	}
	switch e.Op {
	case expr.OpDiv, expr.OpMod:
		if e.Args[1].Op != expr.OpLiteral && expr.CanFail(e) {
			return true
		}
	case expr.OpCast, expr.OpCall:
		return expr.CanFail(e)
	}
	return slices.ContainsFunc(e.Args, failsByValue)
}
