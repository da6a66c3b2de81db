package planner

import (
	"slices"

	"weir/planner/expr"
)

// A projection is merged into the projection or the aggregate above it where nothing is
// computed twice for that. What may fail, and is not read for every row (it stands in a
// branch of CASE), is merged in any case: it is computed for the rows that need it and
// no others, and what nobody reads is not computed. PostgreSQL does the same.

// merge merges the projections of a statement.
func (w *rewriting) merge(s *statement) {
	w.transform(s, func(r relation) relation {
		switch r := r.(type) {
		case *project:
			return w.mergeProject(r)
		case *aggregate:
			if exprs, input := w.inline(r.input, r.computed()); input != r.input {
				return r.withComputed(exprs, input)
			}
		}
		return r
	})
}

// orInput drops a projection that changes nothing.
func (p *project) orInput(without Rewrites) relation {
	cols := p.input.columns()
	if without.NoMerge || len(cols) != len(p.cols) {
		return p
	}
	for i, e := range p.exprs {
		if !isColumn(e, i) || cols[i].name != p.cols[i].name {
			return p
		}
	}
	return p.input
}

// withComputed gives a copy of the aggregate with other keys and arguments.
func (a *aggregate) withComputed(exprs []*expr.Expr, input relation) *aggregate {
	c := *a
	c.input, c.keys, c.aggs = input, exprs[:len(a.keys)], slices.Clone(a.aggs)
	rest := exprs[len(a.keys):]
	for i := range c.aggs {
		if c.aggs[i].arg != nil {
			c.aggs[i].arg, rest = rest[0], rest[1:]
		}
	}
	return &c
}

func (w *rewriting) mergeProject(r *project) relation {
	c := *r
	c.exprs, c.input = w.inline(r.input, r.exprs)
	u, ok := c.input.(*union)
	if !ok || w.shared[u] || w.without.NoMerge || w.faults.any(u) || !onlyColumns(c.exprs) {
		return c.orInput(w.without)
	}
	each := &union{cols: c.cols} // each input is projected, and there merged
	for _, in := range u.from {
		p := c
		p.input = in
		each.from = append(each.from, w.mergeProject(&p))
	}
	return each
}

// inline writes expressions over a relation over what lies below it, as far as it is
// projections and that is good.
func (w *rewriting) inline(input relation, exprs []*expr.Expr) ([]*expr.Expr, relation) {
	for {
		p, ok := input.(*project)
		if !ok || w.shared[p] {
			return exprs, input
		}
		made, below := w.inlineOne(p, exprs)
		if below == nil {
			return exprs, input
		}
		exprs, input = made, below
	}
}

// inlineOne writes expressions over a projection over its input; nil: better not.
func (w *rewriting) inlineOne(p *project, exprs []*expr.Expr) ([]*expr.Expr, relation) {
	must, good := w.inlined(p, exprs)
	if !must && (w.without.NoMerge || !good) || slices.ContainsFunc(p.exprs, expr.Volatile) {
		return nil, nil
	}
	made := make([]*expr.Expr, len(exprs))
	size := 0
	for i, e := range exprs {
		made[i] = substitute(e, p.exprs)
		if size += sizeOf(made[i], largest); size > largest {
			return nil, nil
		}
	}
	return made, p.input
}

// inlined tells whether a projection has to be written into the expressions above it, and
// whether that is good: nothing is computed twice.
func (w *rewriting) inlined(p *project, exprs []*expr.Expr) (must, good bool) {
	uses, computed := make([]int, len(p.exprs)), make([]bool, len(p.exprs))
	for _, e := range exprs {
		eachColumn(e, func(i int) { uses[i]++ })
		eachComputed(e, func(i int) { computed[i] = true })
	}
	good = true
	for i, e := range p.exprs {
		must = must || !computed[i] && w.faults.fails(e, p.input)
		good = good && (uses[i] < 2 || e.Op == expr.OpColumn || e.Op == expr.OpLiteral)
	}
	return must, good
}
