package eval

import (
	"fmt"
	"slices"

	"weir/exec/batch"
	"weir/planner/expr"
)

// An in node is membership of integers, doubles or strings in a list of constants.
type in struct {
	arg     node
	negated bool
	null    bool // the list holds NULL: what is not found is NULL
	ints    intSet
	strings stringSet
	found   []int32
	order   []int64
	out     batch.Vector
}

// compileIn makes an in node where the list is constant, and else the ORs that IN
// stands for.
func compileIn(e *expr.Expr, env Env) (node, error) {
	if len(e.Args) < 2 {
		return nil, fmt.Errorf("%q has %d operands", e.Op, len(e.Args))
	}
	n := &in{}
	list := batch.Vector{Physical: Physical(e.Args[0].Type)}
	if list.Physical == batch.Bools || list.Physical == batch.Decimals {
		return compileInAsOr(e, env)
	}
	for _, a := range e.Args[1:] {
		if a.Type.Kind != e.Args[0].Type.Kind && a.Type.Kind != expr.Null {
			return nil, fmt.Errorf("%v in a list with %v", e.Args[0].Type, a.Type)
		}
		item, err := compile(a, env)
		if err != nil {
			return nil, err
		}
		switch c, ok := item.(*constant); {
		case !ok:
			return compileInAsOr(e, env)
		case c.null:
			n.null = true
		default:
			list.AppendFrom(&c.value, 0)
		}
	}
	switch list.Physical {
	case batch.Ints:
		n.ints = newIntSet(list.Ints)
	case batch.Floats:
		n.ints = newIntSet(ordered(nil, list.Floats))
	case batch.Strings:
		n.strings = newStringSet(&list)
	}
	var err error
	n.arg, err = compile(e.Args[0], env)
	return n, err
}

func compileInAsOr(e *expr.Expr, env Env) (node, error) {
	var all node
	for _, a := range e.Args[1:] {
		one, err := compile(&expr.Expr{Op: expr.OpEq, Type: e.Type, Args: []*expr.Expr{e.Args[0], a}, Text: e.Text}, env)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = one
		} else {
			all = &connective{left: all, right: one, or: true}
		}
	}
	return all, nil
}

func (n *in) eval(b *batch.Batch, rows []int32) (*batch.Vector, error) {
	v, err := n.arg.eval(b, rows)
	if err != nil {
		return nil, err
	}
	n.out.Physical = batch.Bools
	n.out.Resize(b.Len)
	n.found = n.search(v, b.Len, rows, false, n.found[:0])
	for i := range n.out.Bools {
		n.out.Bools[i] = n.negated
	}
	for _, row := range n.found {
		n.out.Bools[row] = !n.negated
	}
	if !n.null {
		meet(&n.out, v, v, b.Len)
		return &n.out, nil
	}
	valid := n.out.MakeValid(b.Len)
	for _, row := range n.found {
		if !v.Null(int(row)) {
			valid[row>>6] |= 1 << (row & 63)
		}
	}
	return &n.out, nil
}

func (n *in) choose(b *batch.Batch, rows, out []int32) ([]int32, error) {
	v, err := n.arg.eval(b, rows)
	if err != nil {
		return out, err
	}
	if n.negated && n.null {
		return out, nil // what is not found is NULL
	}
	from := len(out)
	out = n.search(v, b.Len, rows, n.negated, out)
	return dropNulls(v, out, from), nil
}

// search appends to out the rows that are (or, if absent, are not) in the list,
// whatever their NULLs.
func (n *in) search(v *batch.Vector, size int, rows []int32, absent bool, out []int32) []int32 {
	switch v.Physical {
	case batch.Ints:
		return n.ints.search(v.Ints[:size], rows, absent, out)
	case batch.Floats:
		n.order = ordered(n.order, v.Floats[:size])
		return n.ints.search(n.order, rows, absent, out)
	}
	return n.strings.search(v, size, rows, absent, out)
}

// An intSet is a set of integers: a list while short, else a map.
type intSet struct {
	list []int64
	set  map[int64]struct{}
}

const longList = 8 // from here on a map is faster than a list

func newIntSet(values []int64) intSet {
	if len(values) < longList {
		return intSet{list: slices.Clone(values)}
	}
	set := make(map[int64]struct{}, len(values))
	for _, x := range values {
		set[x] = struct{}{}
	}
	return intSet{set: set}
}

func (s *intSet) has(x int64) bool {
	if s.set != nil {
		_, ok := s.set[x]
		return ok
	}
	for _, y := range s.list {
		if x == y {
			return true
		}
	}
	return false
}

func (s *intSet) search(values []int64, rows []int32, absent bool, out []int32) []int32 {
	at, n := len(out), count(len(values), rows)
	out = slices.Grow(out, n)[:at+n]
	if rows == nil {
		for i, x := range values {
			out[at] = int32(i)
			at += one(s.has(x) != absent)
		}
		return out[:at]
	}
	for _, row := range rows {
		out[at] = row
		at += one(s.has(values[row]) != absent)
	}
	return out[:at]
}

// one is 1 where x is true; the compiler makes it free of branches.
func one(x bool) int {
	if x {
		return 1
	}
	return 0
}
