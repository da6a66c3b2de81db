package planner

import (
	"slices"
	"strings"

	"weir/planner/expr"
)

// readColumns leaves the columns that are needed: sources read them only, and
// projections and groups compute no others. What may fail and is not needed is never
// computed, whatever is switched off.
func (w *rewriting) readColumns(s *statement) {
	n := &needing{rewriting: w, needs: map[relation][]bool{}, done: map[relation]narrowed{}}
	for _, t := range s.targets {
		for i := range n.needed(t.rel) {
			n.needs[t.rel][i] = true
		}
	}
	for _, r := range slices.Backward(inputsFirst(s.relations()...)) {
		n.visit(r)
	}
	for i, t := range s.targets {
		made := n.narrow(t.rel)
		s.targets[i].rel = selected(made, upTo(len(t.rel.columns())), t.rel.columns())
	}
}

// A needing knows which columns of each node are needed, and what the nodes became.
type needing struct {
	*rewriting
	needs map[relation][]bool
	done  map[relation]narrowed
}

// A narrowed node: at tells where each column of the old one is; -1: nowhere.
type narrowed struct {
	rel relation
	at  []int
}

// needed gives the columns of r that are needed so far.
func (n *needing) needed(r relation) []bool {
	list, ok := n.needs[r]
	if !ok {
		list = make([]bool, len(r.columns()))
		n.needs[r] = list
	}
	return list
}

// visit decides which columns of r stay and marks what they read. All its readers have
// been visited.
func (n *needing) visit(r relation) {
	list := n.needed(r)
	for i := range list {
		list[i] = list[i] || n.kept(r, i)
	}
	mark := func(e *expr.Expr) {
		below := n.needed(r.inputs()[0])
		eachColumn(e, func(i int) { below[i] = true })
	}
	switch r := r.(type) {
	case *filter:
		for i, need := range list {
			n.needed(r.input)[i] = n.needed(r.input)[i] || need
		}
		mark(r.predicate)
	case *project:
		for i, e := range r.exprs {
			if list[i] {
				mark(e)
			}
		}
	case *aggregate:
		for _, k := range r.keys {
			mark(k)
		}
		for i, c := range r.aggs {
			if list[r.keyColumns()+i] {
				mark(c.arg)
			}
		}
	case *union:
		for _, in := range r.from {
			for i, need := range list {
				n.needed(in)[i] = n.needed(in)[i] || need
			}
		}
	}
}

// kept reports whether a column stays although nobody reads it.
func (n *needing) kept(r relation, i int) bool {
	switch r := r.(type) {
	case *scan:
		return n.without.NoReadColumns
	case *project:
		return n.without.NoReadColumns && !n.faults.of(r)[i]
	case *aggregate:
		return i < r.keyColumns() || n.without.NoReadColumns && !n.faults.of(r)[i]
	}
	return false
}

// narrow rebuilds r with the columns that are needed. A node may come back with others
// too.
func (n *needing) narrow(r relation) narrowed {
	if known, ok := n.done[r]; ok {
		return known
	}
	made := n.rebuilt(r, n.needed(r))
	n.done[r] = made
	return made
}

func (n *needing) rebuilt(r relation, need []bool) narrowed {
	keep, at := positions(need)
	switch r := r.(type) {
	case *scan:
		if len(keep) == len(r.read) {
			break
		}
		n.noteUnread(r, need)
		return narrowed{newScan(r.table, picked(r.read, keep)), at}
	case *values:
		if len(keep) == len(r.cols) {
			break
		}
		v := &values{cols: picked(r.cols, keep), rows: make([][]*expr.Expr, len(r.rows))}
		for i, row := range r.rows {
			v.rows[i] = picked(row, keep)
		}
		return narrowed{v, at}
	case *filter:
		in := n.narrow(r.input)
		c := *r
		c.input, c.predicate = in.rel, moved(r.predicate, in)
		return narrowed{&c, in.at}
	case *project:
		in := n.narrow(r.input)
		if len(keep) == 0 {
			return narrowed{in.rel, at}
		}
		p := &project{input: in.rel, cols: picked(r.cols, keep), exprs: picked(r.exprs, keep)}
		for i, e := range p.exprs {
			p.exprs[i] = moved(e, in)
		}
		return narrowed{p, at}
	case *aggregate:
		return narrowed{n.aggregate(r, need, keep), at}
	case *union:
		u := &union{cols: picked(r.cols, keep)}
		for _, from := range r.from {
			u.from = append(u.from, selected(n.narrow(from), keep, u.cols))
		}
		return narrowed{u, at}
	}
	return narrowed{r, upTo(len(r.columns()))}
}

func (n *needing) aggregate(r *aggregate, need []bool, keep []int) *aggregate {
	in := n.narrow(r.input)
	c := *r
	c.input, c.keys, c.aggs, c.cols = in.rel, make([]*expr.Expr, len(r.keys)), nil, picked(r.cols, keep)
	for i, k := range r.keys {
		c.keys[i] = moved(k, in)
	}
	for i, a := range r.aggs {
		if need[r.keyColumns()+i] {
			a.arg = moved(a.arg, in)
			c.aggs = append(c.aggs, a)
		} else {
			n.note("%s is not computed: nothing reads it", a.text)
		}
	}
	return &c
}

func (n *needing) noteUnread(s *scan, need []bool) {
	var names []string
	for i, c := range s.read {
		if !need[i] {
			names = append(names, s.table.Columns[c].Name)
		}
	}
	is := "are"
	if len(names) == 1 {
		is = "is"
	}
	n.note("%s: %d of %d columns %s not read: %s", s.table.Name, len(names), len(need), is, strings.Join(names, ", "))
}

// positions lists the indexes of what is needed, and for every index its place in the list.
func positions(need []bool) (keep, at []int) {
	keep, at = []int{}, make([]int, len(need))
	for i, needed := range need {
		if at[i] = -1; needed {
			at[i] = len(keep)
			keep = append(keep, i)
		}
	}
	return keep, at
}

func picked[T any](list []T, keep []int) []T {
	out := make([]T, len(keep))
	for i, k := range keep {
		out[i] = list[k]
	}
	return out
}

// moved writes an expression, which may be nil, over a node as it is now.
func moved(e *expr.Expr, in narrowed) *expr.Expr {
	return mapColumns(e, func(i int) int { return in.at[i] })
}

// selected gives exactly those columns of a narrowed node that keep names, as cols.
func selected(in narrowed, keep []int, cols []column) relation {
	have := in.rel.columns()
	same := len(have) == len(keep)
	for i, k := range keep {
		same = same && in.at[k] == i
	}
	if same {
		return in.rel
	}
	p := &project{input: in.rel, cols: cols, exprs: make([]*expr.Expr, len(keep))}
	for i, k := range keep {
		p.exprs[i] = columnExpr(in.at[k], cols[i].typ)
	}
	return p
}
