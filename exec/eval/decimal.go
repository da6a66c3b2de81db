package eval

import (
	"fmt"

	"weir/exec/batch"
	"weir/planner/expr"
)

// A decimalOp is decimal arithmetic with the scales and the limit worked out. Each
// result is exact, or rounded once with halves away from zero where the result's
// scale is too small for it.
type decimalOp struct {
	op   expr.Op
	a, b batch.Int128 // powers of ten, see decimalOpOf
	max  batch.Int128 // 10^precision: results are less in magnitude
	min  batch.Int128
}

// decimalOpOf works out an operation for operands at scales l and r:
//
//   - - %   l·a op r·b, each brought to the larger scale, which is the result's
//   - l·r·a/b, the result brought from scale l+r to its own
//     /       l·a/r, with a such that the quotient has the result's scale
func decimalOpOf(op expr.Op, l, r, result expr.Type) (decimalOp, error) {
	d := decimalOp{op: op, a: batch.Int128Of(1), b: batch.Int128Of(1)}
	d.max, d.min = limits(result)
	powers := [2]int{}
	switch op {
	case expr.OpMul:
		powers[0], powers[1] = max(result.Scale-l.Scale-r.Scale, 0), max(l.Scale+r.Scale-result.Scale, 0)
	case expr.OpDiv:
		powers[0] = result.Scale + r.Scale - l.Scale
	default:
		powers[0], powers[1] = result.Scale-l.Scale, result.Scale-r.Scale
	}
	for _, p := range powers {
		if p < 0 || p > batch.MaxPrecision {
			return d, fmt.Errorf("%v %s %v cannot give %v", l, op, r, result)
		}
	}
	d.a, d.b = batch.Pow10(powers[0]), batch.Pow10(powers[1])
	return d, nil
}

// limits returns the bounds, both exclusive, of a DECIMAL's unscaled values.
func limits(t expr.Type) (above, below batch.Int128) {
	precision := t.Precision
	if precision <= 0 || precision > batch.MaxPrecision {
		precision = batch.MaxPrecision
	}
	above = batch.Pow10(precision)
	below, _ = above.Neg()
	return above, below
}

// decimals computes the rows one by one.
func (n *arith) decimals(l, r *batch.Vector, rows []int32) error {
	out, divides := n.out.Decimals, n.op == expr.OpDiv || n.op == expr.OpMod
	for i := range count(len(out), rows) {
		row := at(rows, i)
		if n.out.Null(row) {
			continue
		}
		x, y := l.Decimals[row], r.Decimals[row]
		if divides && y == (batch.Int128{}) {
			return n.failure.zeroAt(row)
		}
		z, ok := n.decimal.apply(x, y)
		if !ok {
			return n.failure.overflowAt(row)
		}
		out[row] = z
	}
	return nil
}

// apply computes x op y; ok is false when the result is out of range.
func (d *decimalOp) apply(x, y batch.Int128) (z batch.Int128, ok bool) {
	switch d.op {
	case expr.OpMul:
		if z, ok = x.MulDivRound(y, d.b); ok {
			z, ok = z.Mul(d.a) // one of a and b is 1
		}
	case expr.OpDiv:
		z, ok = x.MulDivRound(d.a, y)
	default:
		var fits bool
		if x, ok = x.Mul(d.a); !ok {
			return z, false
		}
		if y, fits = y.Mul(d.b); !fits {
			return z, false
		}
		switch d.op {
		case expr.OpAdd:
			z, ok = x.Add(y)
		case expr.OpSub:
			z, ok = x.Sub(y)
		default:
			_, z, ok = x.QuoRem(y)
		}
	}
	return z, ok && z.Cmp(d.max) < 0 && z.Cmp(d.min) > 0
}
