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
	transform(s, func(old, r relation) relation {
		switch r := r.(type) {
		case *project:
			if exprs, input := w.inline(old, r.input, r.exprs); input != r.input {
				c := *r
				c.exprs, c.input = exprs, input
				return c.orInput(w.without)
			}
			return r.orInput(w.without)
		case *aggregate:
			if exprs, input := w.inline(old, r.input, r.computed()); input != r.input {
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

// inline writes the expressions of a node over the input of the projection that its input
// is, as far as that is good; where it is not, they come back as they are. old is the node
// before its inputs were rebuilt.
func (w *rewriting) inline(old, input relation, exprs []*expr.Expr) ([]*expr.Expr, relation) {
	p, ok := input.(*project)
	if !ok || w.shared[old.inputs()[0]] {
		return exprs, input
	}
	inlined, must := w.inlined(p, exprs)
	all := !slices.Contains(inlined, false)
	if !must && (w.without.NoMerge || !all) {
		return exprs, p
	}
	below, rest := p.exprs, p.input
	if !all {
		below, rest = p.without(inlined)
	}
	made := make([]*expr.Expr, len(exprs))
	size := 0
	for i, e := range exprs {
		made[i] = substitute(e, below)
		if size += sizeOf(made[i], largest); size > largest {
			return exprs, p
		}
	}
	return made, rest
}

// inlined tells which columns of a projection are better written into the expressions
// above it, and whether some have to be. A column that is not read counts as written.
func (w *rewriting) inlined(p *project, exprs []*expr.Expr) (list []bool, must bool) {
	uses, computed := make([]int, len(p.exprs)), make([]bool, len(p.exprs))
	for _, e := range exprs {
		eachColumn(e, func(i int) { uses[i]++ })
		eachComputed(e, func(i int) { computed[i] = true })
	}
	list = make([]bool, len(p.exprs))
	for i, e := range p.exprs {
		has := expr.CanFail(e) && !computed[i] && !expr.Volatile(e)
		must = must || has
		trivial := e.Op == expr.OpColumn || e.Op == expr.OpLiteral
		list[i] = has || uses[i] == 0 || !expr.Volatile(e) && (trivial || uses[i] == 1)
	}
	return list, must
}

// without takes columns out of a projection: it keeps the others, and what those that
// are taken out read. exprs are all of p's columns over the projection that is left.
func (p *project) without(taken []bool) (exprs []*expr.Expr, rest *project) {
	rest = &project{input: p.input}
	cols := p.input.columns()
	at := map[int]int{} // of a column of the input, where rest has it
	exprs = make([]*expr.Expr, len(p.exprs))
	for i, e := range p.exprs {
		if taken[i] {
			continue
		}
		exprs[i] = columnExpr(len(rest.exprs), e.Type)
		rest.exprs, rest.cols = append(rest.exprs, e), append(rest.cols, p.cols[i])
	}
	for i, e := range p.exprs {
		if !taken[i] {
			continue
		}
		exprs[i] = mapColumns(e, func(c int) int {
			if _, ok := at[c]; !ok {
				at[c] = len(rest.exprs)
				rest.exprs, rest.cols = append(rest.exprs, columnExpr(c, cols[c].typ)), append(rest.cols, cols[c])
			}
			return at[c]
		})
	}
	return exprs, rest
}
