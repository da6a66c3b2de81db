package planner

import (
	"weir/planner/expr"
)

// Filters move down, below projections and unions and, where they read keys only, below
// groups without sets. Two rules keep failing expressions as they are:
//
//   - Of two conditions of which one may fail, none passes the other: a row that the
//     first removes never reaches the second.
//   - A filter removes rows before what a subquery computes of them: there, moving it is
//     no choice, and no switch leaves it out. PostgreSQL does the same.

// pushDown moves the filters of a statement.
func (w *rewriting) pushDown(s *statement) {
	p := &pushing{rewriting: w, done: map[relation]relation{}}
	for i := range s.targets {
		s.targets[i].rel = p.push(s.targets[i].rel, nil)
	}
}

// A pushing is one walk of the rewrite; done holds the shared nodes it has been through.
type pushing struct {
	*rewriting
	done map[relation]relation
}

// push gives r with conditions, which are over its columns, as far down as they go.
func (p *pushing) push(r relation, conditions []*expr.Expr) relation {
	if f, ok := r.(*filter); ok && !p.shared[r] {
		return p.push(f.input, append(conjuncts(f.predicate), conditions...))
	}
	if p.shared[r] || len(conditions) > 0 && p.without.NoPushDown && !p.faults.any(r) {
		return filtered(p.inner(r), conditions)
	}
	switch r := r.(type) {
	case *project:
		down, keep := divide(conditions, func(c *expr.Expr) *expr.Expr { return p.belowProject(r, c) })
		c := *r
		c.input = p.push(r.input, down)
		return filtered(&c, keep)
	case *aggregate:
		down, keep := divide(conditions, func(c *expr.Expr) *expr.Expr { return p.belowGroups(r, c) })
		c := *r
		c.input = p.push(r.input, down)
		return filtered(&c, keep)
	case *union:
		return p.belowUnion(r, conditions)
	}
	return filtered(p.inner(r), conditions)
}

// inner rewrites what lies below r, once for a node that is shared.
func (p *pushing) inner(r relation) relation {
	if known, ok := p.done[r]; ok {
		return known
	}
	var made relation
	if f, ok := r.(*filter); ok { // a shared one
		made = p.push(f.input, conjuncts(f.predicate))
	} else {
		made = withInputs(r, func(in relation) relation { return p.push(in, nil) })
	}
	p.done[r] = made
	return made
}

// divide tells the conditions that move below a node, as below gives them, from those
// that stay above it: below gives nil, or one would pass another although one may fail.
func divide(conditions []*expr.Expr, below func(c *expr.Expr) *expr.Expr) (down, keep []*expr.Expr) {
	keptFails := false
	for _, c := range conditions {
		fails := expr.CanFail(c)
		if len(keep) == 0 || !fails && !keptFails {
			if moved := below(c); moved != nil {
				down = append(down, moved)
				continue
			}
		}
		keep, keptFails = append(keep, c), keptFails || fails
	}
	return down, keep
}

// belowProject writes a condition over a projection's input.
func (p *pushing) belowProject(r *project, c *expr.Expr) *expr.Expr {
	moved := substitute(c, r.exprs)
	if expr.Volatile(moved) || sizeOf(moved, largest) == largest {
		return nil
	}
	if !equal(c, moved) && !onlyColumns(r.exprs) {
		p.note("filter %s moved below the projection of %s", c.SQL(columnNamesOf(r.cols)), shorten(namesOfColumns(r.cols)))
	}
	return moved
}

// belowGroups writes a condition on keys over the input of the groups.
func (p *pushing) belowGroups(r *aggregate, c *expr.Expr) *expr.Expr {
	if r.sets != nil || len(r.keys) == 0 || expr.Volatile(c) {
		return nil
	}
	onKeys := true
	eachColumn(c, func(i int) { onKeys = onKeys && i < len(r.keys) })
	if !onKeys {
		return nil
	}
	moved := substitute(c, r.keys)
	if expr.Volatile(moved) || sizeOf(moved, largest) == largest {
		return nil
	}
	p.note("filter %s moved below the groups by %s", c.SQL(columnNamesOf(r.cols)), shorten(namesOfColumns(r.cols[:len(r.keys)])))
	return moved
}

// belowUnion filters each input of a union.
func (p *pushing) belowUnion(r *union, conditions []*expr.Expr) relation {
	c := *r
	c.from = make([]relation, len(r.from))
	for i, in := range r.from {
		c.from[i] = p.push(in, conditions)
	}
	for _, e := range conditions {
		p.note("filter %s moved below the union", e.SQL(columnNamesOf(r.cols)))
	}
	return &c
}

// largest bounds the expressions that substitution makes.
const largest = 2000

// conjuncts splits a predicate at its ANDs: as filters one after the other they keep the
// same rows. A condition is not computed for a row that one before it does not keep.
func conjuncts(e *expr.Expr) []*expr.Expr {
	if e.Op != expr.OpAnd {
		return []*expr.Expr{e}
	}
	var list []*expr.Expr
	for _, a := range e.Args {
		list = append(list, conjuncts(a)...)
	}
	return list
}

// filtered filters r by conditions, in their order. A new filter begins where AND would
// differ: it computes its right side where the left one is NULL.
func filtered(r relation, conditions []*expr.Expr) relation {
	cols := r.columns()
	never := func(i int) bool { return cols[i].notNull }
	var predicate *expr.Expr
	sure := true // the predicate so far is never NULL
	for _, c := range conditions {
		switch {
		case predicate == nil:
			predicate = c
		case sure || !expr.CanFail(c):
			predicate = &expr.Expr{Op: expr.OpAnd, Type: expr.Type{Kind: expr.Boolean}, Args: []*expr.Expr{predicate, c}}
		default:
			r, predicate, sure = &filter{input: r, predicate: predicate}, c, true
		}
		sure = sure && notNull(c, never)
	}
	if predicate == nil {
		return r
	}
	return &filter{input: r, predicate: predicate}
}

func onlyColumns(list []*expr.Expr) bool {
	for _, e := range list {
		if e.Op != expr.OpColumn {
			return false
		}
	}
	return true
}
