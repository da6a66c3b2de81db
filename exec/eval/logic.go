package eval

import "weir/exec/batch"

// A connective is AND or OR of two conditions. Its right side sees only the rows
// that the left one leaves open (E2).
type connective struct {
	left, right node
	or          bool
	open        []int32 // rows that the left side does not decide
	out         batch.Vector
}

func (n *connective) eval(b *batch.Batch, rows []int32) (*batch.Vector, error) {
	l, err := n.left.eval(b, rows)
	if err != nil {
		return nil, err
	}
	// The left side may share storage with what the right side computes only if they
	// are the same column, which neither changes.
	n.out.Physical = batch.Bools
	n.out.Resize(b.Len)
	nulls := false
	n.open = n.open[:0]
	for i := range count(b.Len, rows) {
		row := at(rows, i)
		n.out.Bools[row] = l.Bools[row]
		if null := l.Null(row); null || l.Bools[row] != n.or {
			n.open = append(n.open, int32(row))
			nulls = nulls || null
		}
	}
	if len(n.open) == 0 {
		return &n.out, nil
	}
	r, err := n.right.eval(b, n.open)
	if err != nil {
		return nil, err
	}
	if !nulls && r.Valid == nil {
		for _, row := range n.open {
			n.out.Bools[row] = r.Bools[row]
		}
		return &n.out, nil
	}
	valid := n.out.MakeValid(b.Len)
	for i := range valid {
		valid[i] = ^uint64(0)
	}
	for _, row := range n.open {
		if !r.Null(int(row)) && (r.Bools[row] == n.or || !l.Null(int(row))) {
			n.out.Bools[row] = r.Bools[row] // it decides, or the left side is neutral
			continue
		}
		valid[row>>6] &^= 1 << (row & 63)
	}
	return &n.out, nil
}

// A not node is NOT of a condition that has no negated form of its own.
type not struct {
	arg node
	out batch.Vector
}

func (n *not) eval(b *batch.Batch, rows []int32) (*batch.Vector, error) {
	v, err := n.arg.eval(b, rows)
	if err != nil {
		return nil, err
	}
	n.out.Physical = batch.Bools
	n.out.Resize(b.Len)
	meet(&n.out, v, v, b.Len)
	for i, x := range v.Bools[:b.Len] {
		n.out.Bools[i] = !x
	}
	return &n.out, nil
}

// isNull is IS NULL, or negated IS NOT NULL.
type isNull struct {
	arg     node
	negated bool
	out     batch.Vector
}

func (n *isNull) eval(b *batch.Batch, rows []int32) (*batch.Vector, error) {
	v, err := n.arg.eval(b, rows)
	if err != nil {
		return nil, err
	}
	n.out.Physical = batch.Bools
	n.out.Resize(b.Len)
	for i := range count(b.Len, rows) {
		row := at(rows, i)
		n.out.Bools[row] = v.Null(row) != n.negated
	}
	return &n.out, nil
}

func (n *isNull) choose(b *batch.Batch, rows, out []int32) ([]int32, error) {
	v, err := n.arg.eval(b, rows)
	if err != nil {
		return out, err
	}
	for i := range count(b.Len, rows) {
		if row := at(rows, i); v.Null(row) != n.negated {
			out = append(out, int32(row))
		}
	}
	return out, nil
}
