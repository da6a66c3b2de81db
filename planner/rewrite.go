package planner

import (
	"fmt"
	"slices"

	"weir/planner/expr"
)

// Rewrites says which rewrites are left out; the zero value makes all of them. A plan
// gives the same answer without any of them, which is what tests use it for: what would
// fail for some rows is computed for the same rows with and without each rewrite.
type Rewrites struct {
	NoFold        bool // leave constant expressions as they are
	NoMerge       bool // leave adjacent projections as they are
	NoPushDown    bool // filter where the query says, not below projections, unions and groups
	NoReadColumns bool // read every column of the sources, compute every column of subqueries
	NoFilterBelow bool // filter behind the exchange, unless what comes before it can fail
	NoSplit       bool // aggregate in one phase
}

// A rewriting is the state of the phase: each rewrite takes the tree and leaves another
// one; nodes are copied where they change.
type rewriting struct {
	without Rewrites
	notes   []string
	faults  faults
	shared  map[relation]bool // inputs of several nodes
}

// rewrite makes a statement cheaper and leaves its meaning alone: the tree that it is
// given is not changed. notes say what was done, for people.
func rewrite(bound *statement, without Rewrites) (_ *statement, notes []string) {
	s := *bound
	s.targets = slices.Clone(bound.targets)
	w := &rewriting{without: without}
	for _, step := range []func(s *statement){w.fold, w.pushDown, w.merge, w.fold, w.readColumns, w.finish} {
		w.faults, w.shared = faults{}, sharedNodes(&s)
		step(&s)
	}
	return &s, w.notes
}

// note records a rewrite, once.
func (w *rewriting) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}

// sharedNodes finds the nodes that are the input of several, or what several targets write.
func sharedNodes(s *statement) map[relation]bool {
	shared := map[relation]bool{}
	var walk func(r relation)
	walk = func(r relation) {
		_, seen := shared[r]
		if shared[r] = seen; seen {
			return
		}
		for _, in := range r.inputs() {
			walk(in)
		}
	}
	for _, t := range s.targets {
		walk(t.rel)
	}
	return shared
}

// transform rebuilds the trees from below: f gets each node, once, over the inputs that it
// has rebuilt.
func (w *rewriting) transform(s *statement, f func(r relation) relation) {
	t := rebuilding{done: map[relation]relation{}, f: func(r, over relation) relation {
		made := f(over)
		if w.shared[r] {
			w.shared[made] = true
		}
		return made
	}}
	for i := range s.targets {
		s.targets[i].rel = t.of(s.targets[i].rel)
	}
}

// A rebuilding makes trees anew from below: f gets each node, once, as it was and over the
// inputs that were made.
type rebuilding struct {
	done map[relation]relation
	f    func(r, over relation) relation
}

func (t *rebuilding) of(r relation) relation {
	made, ok := t.done[r]
	if !ok {
		made = t.f(r, withInputs(r, t.of))
		t.done[r] = made
	}
	return made
}

// withInputs gives r over what f makes of its inputs: r itself, or a copy.
func withInputs(r relation, f func(in relation) relation) relation {
	switch r := r.(type) {
	case *filter:
		if in := f(r.input); in != r.input {
			c := *r
			c.input = in
			return &c
		}
	case *project:
		if in := f(r.input); in != r.input {
			c := *r
			c.input = in
			return &c
		}
	case *aggregate:
		if in := f(r.input); in != r.input {
			c := *r
			c.input = in
			return &c
		}
	case *union:
		c := *r
		c.from = make([]relation, len(r.from))
		for i, in := range r.from {
			c.from[i] = f(in)
		}
		if !slices.Equal(c.from, r.from) {
			return &c
		}
	}
	return r
}

// withExprs gives a copy of r whose own expressions are f's.
func withExprs(r relation, f func(e *expr.Expr) *expr.Expr) relation {
	switch r := r.(type) {
	case *values:
		c := *r
		c.rows = make([][]*expr.Expr, len(r.rows))
		for i, row := range r.rows {
			c.rows[i] = mapped(row, f)
		}
		return &c
	case *filter:
		c := *r
		c.predicate = f(r.predicate)
		return &c
	case *project:
		c := *r
		c.exprs = mapped(r.exprs, f)
		return &c
	case *aggregate:
		c := *r
		c.keys, c.aggs = mapped(r.keys, f), slices.Clone(r.aggs)
		for i := range c.aggs {
			if c.aggs[i].arg != nil {
				c.aggs[i].arg = f(c.aggs[i].arg)
			}
		}
		return &c
	}
	return r
}

// fold computes the constants of all expressions and drops filters that keep all rows.
// Where that leaves columns unread, or tells the conditions of a filter that may fail
// apart, it is no choice: what is not needed is not computed.
func (w *rewriting) fold(s *statement) {
	w.transform(s, func(r relation) relation {
		_, isFilter := r.(*filter)
		inputs := r.inputs()
		changed := false
		folding := func(e *expr.Expr) *expr.Expr {
			folded := fold(e)
			if folded == e || equal(e, folded) || w.without.NoFold && slices.Equal(reads(folded), reads(e)) && !(isFilter && w.faults.fails(e, inputs[0])) {
				return e
			}
			var names []string
			if len(inputs) > 0 {
				names = columnNamesOf(inputs[0].columns())
			}
			if from, to := e.SQL(names), folded.SQL(names); from != to { // conversions do not show
				w.note("%s computed: %s", from, to)
			}
			changed = true
			return folded
		}
		if made := withExprs(r, folding); changed {
			r = made
		}
		if f, ok := r.(*filter); ok && isBool(f.predicate, true) {
			return f.input
		}
		return r
	})
}

// reads lists the columns that e reads, as often as it does, and then those that it reads
// for every row.
func reads(e *expr.Expr) []int {
	var list []int
	eachColumn(e, func(i int) { list = append(list, i) })
	list = append(list, -1)
	eachComputed(e, func(i int) { list = append(list, i) })
	return list
}

// finish decides how aggregates and filters run.
func (w *rewriting) finish(s *statement) {
	w.finalGroups(s)
	w.filters(s)
	w.transform(s, func(r relation) relation {
		a, ok := r.(*aggregate)
		if !ok || w.without.NoSplit || !a.splits() {
			return r
		}
		c := *a
		c.split = true
		return &c
	})
}

// mostSketches bounds the sketches of a partial row, each of up to 16 KiB, so that the row
// fits a frame.
const mostSketches = 12

// splits reports whether an aggregate can be computed in two phases.
func (a *aggregate) splits() bool {
	if f, ok := a.input.(*filter); ok && f.behind || changing(a.input) {
		return false
	}
	sketches := 0
	for _, c := range a.aggs {
		if c.fn == expr.ApproxCountDistinct {
			sketches++
		}
	}
	if sketches > mostSketches {
		return false
	}
	return !slices.ContainsFunc(a.aggs, func(c call) bool { return c.distinct && c.countsDistinct() })
}

// countsDistinct reports whether it makes a difference that equal values count once.
func (c call) countsDistinct() bool {
	switch c.fn {
	case expr.Min, expr.Max, expr.BoolAnd, expr.BoolOr:
		return false
	}
	return true
}

// filters tells on which side of the exchange filters run.
func (w *rewriting) filters(s *statement) {
	if w.without.NoFilterBelow {
		w.filtersBehind(s)
		return
	}
	below := func(r relation) {
		if f, ok := r.(*filter); ok {
			w.note("filter %s moved below the exchange", f.predicate.SQL(columnNamesOf(f.input.columns())))
		}
	}
	w.transform(s, func(r relation) relation {
		if a, ok := r.(*aggregate); ok {
			below(a.input)
		}
		return r
	})
	for _, t := range s.targets {
		if f := filterOfRows(t); f != nil {
			below(f)
		}
	}
}

// filterOfRows finds the filter of a kept result that is kept by row.
func filterOfRows(t target) *filter {
	r := t.rel
	if p, ok := r.(*project); ok {
		r = p.input
	}
	if f, ok := r.(*filter); ok && t.sink == nil && lastAggregate(f) == nil {
		return f
	}
	return nil
}

// filtersBehind leaves filters to run behind the exchange, where nothing that is computed
// before it could fail for a row that the filter drops.
func (w *rewriting) filtersBehind(s *statement) {
	behind := func(r relation) (relation, bool) {
		f, ok := r.(*filter)
		if !ok {
			return r, false
		}
		c := *f
		c.behind = true
		return &c, true
	}
	w.transform(s, func(r relation) relation {
		a, ok := r.(*aggregate)
		if !ok || a.sets != nil || slices.ContainsFunc(a.computed(), expr.CanFail) {
			return r
		}
		if in, ok := behind(a.input); ok {
			return withInputs(a, func(relation) relation { return in })
		}
		return r
	})
	for i, t := range s.targets {
		f := filterOfRows(t)
		if f == nil {
			continue
		}
		in, _ := behind(f)
		if p, ok := t.rel.(*project); !ok {
			s.targets[i].rel = in
		} else if !slices.ContainsFunc(p.exprs, expr.CanFail) {
			s.targets[i].rel = withInputs(p, func(relation) relation { return in })
		}
	}
}

// computed lists the keys and arguments of an aggregate.
func (a *aggregate) computed() []*expr.Expr {
	list := slices.Clone(a.keys)
	for _, c := range a.aggs {
		if c.arg != nil {
			list = append(list, c.arg)
		}
	}
	return list
}
