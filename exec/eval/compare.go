package eval

import (
	"bytes"
	"fmt"

	"weir/exec/batch"
	"weir/planner/expr"
)

// A compare node is a comparison, brought to one of two forms: equal or less, either
// one negated. The order is total (E5), so a >= b is not (a < b).
type compare struct {
	left, right node
	less        bool // left < right; otherwise left = right
	negated     bool
	nullSafe    bool    // NULL = NULL, and no value equals NULL; never with less
	l, r        []int64 // doubles as integers of the same order
	out         batch.Vector
}

func compileCompare(e *expr.Expr, left, right node) (node, error) {
	l, r := e.Args[0].Type, e.Args[1].Type
	if l.Kind == expr.Null || r.Kind == expr.Null {
		return &constant{physical: batch.Bools, null: true}, nil
	}
	if l.Kind != r.Kind || l.Scale != r.Scale {
		return nil, fmt.Errorf("%v %s %v", l, e.Op, r)
	}
	n := &compare{left: left, right: right}
	switch e.Op {
	case expr.OpNe:
		n.negated = true
	case expr.OpLt:
		n.less = true
	case expr.OpGe:
		n.less, n.negated = true, true
	case expr.OpGt:
		n.less, n.left, n.right = true, right, left
	case expr.OpLe:
		n.less, n.negated, n.left, n.right = true, true, right, left
	}
	return n, nil
}

// compileDistinct makes an equality that takes NULL as a value.
func compileDistinct(e *expr.Expr, left, right node) (node, error) {
	l, r := e.Args[0].Type, e.Args[1].Type
	negated := e.Op == expr.OpDistinct
	switch {
	case r.Kind == expr.Null:
		return &isNull{arg: left, negated: negated}, nil
	case l.Kind == expr.Null:
		return &isNull{arg: right, negated: negated}, nil
	case l.Kind != r.Kind || l.Scale != r.Scale:
		return nil, fmt.Errorf("%v %s %v", l, e.Op, r)
	}
	return &compare{left: left, right: right, negated: negated, nullSafe: true}, nil
}

func (n *compare) eval(b *batch.Batch, rows []int32) (*batch.Vector, error) {
	l, r, err := operands(n.left, n.right, b, rows)
	if err != nil {
		return nil, err
	}
	n.out.Physical = batch.Bools
	n.out.Resize(b.Len)
	meet(&n.out, l, r, b.Len)
	switch l.Physical {
	case batch.Bools:
		n.bools(l.Bools, r.Bools)
	case batch.Ints:
		n.ints(l.Ints[:b.Len], r.Ints[:b.Len])
	case batch.Floats:
		n.l, n.r = ordered(n.l, l.Floats[:b.Len]), ordered(n.r, r.Floats[:b.Len])
		n.ints(n.l, n.r)
	case batch.Decimals:
		n.decimals(l, r, rows)
	case batch.Strings:
		n.strings(l, r, rows)
	}
	if n.nullSafe && n.out.Valid != nil {
		n.decideNulls(l, r, rows)
	}
	return &n.out, nil
}

// decideNulls gives a truth value to the rows where an operand is NULL.
func (n *compare) decideNulls(l, r *batch.Vector, rows []int32) {
	for i := range count(len(n.out.Bools), rows) {
		if row := at(rows, i); n.out.Null(row) {
			n.out.Bools[row] = (l.Null(row) && r.Null(row)) != n.negated
		}
	}
	n.out.ClearValid()
}

// ordered maps doubles to integers that order as they do.
func ordered(into []int64, values []float64) []int64 {
	into = into[:0]
	for _, f := range values {
		into = append(into, int64(batch.FloatOrder(f)))
	}
	return into
}

func (n *compare) bools(l, r []bool) {
	for i := range n.out.Bools {
		result := l[i] == r[i]
		if n.less {
			result = !l[i] && r[i]
		}
		n.out.Bools[i] = result != n.negated
	}
}

func (n *compare) ints(l, r []int64) {
	out, negated := n.out.Bools, n.negated
	l, r = l[:len(out)], r[:len(out)]
	if n.less {
		for i := range out {
			out[i] = l[i] < r[i] != negated
		}
		return
	}
	for i := range out {
		out[i] = l[i] == r[i] != negated
	}
}

func (n *compare) decimals(l, r *batch.Vector, rows []int32) {
	for i := range count(len(n.out.Bools), rows) {
		row := at(rows, i)
		c := l.Decimals[row].Cmp(r.Decimals[row])
		n.out.Bools[row] = (n.less && c < 0 || !n.less && c == 0) != n.negated
	}
}

func (n *compare) strings(l, r *batch.Vector, rows []int32) {
	for i := range count(len(n.out.Bools), rows) {
		row := at(rows, i)
		var result bool
		if n.less {
			result = bytes.Compare(l.Str(row), r.Str(row)) < 0
		} else {
			result = bytes.Equal(l.Str(row), r.Str(row))
		}
		n.out.Bools[row] = result != n.negated
	}
}
