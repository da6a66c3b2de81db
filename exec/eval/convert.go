package eval

import (
	"fmt"

	"weir/exec/batch"
	"weir/planner/expr"
)

// A convert node changes the type of its argument, exactly or to a wider type.
type convert struct {
	arg     node
	kernel  func(n *convert, v *batch.Vector, row int) bool
	failure failure
	scale   int          // of the argument, a DECIMAL
	mul     batch.Int128 // power of ten to reach the result's scale
	div     batch.Int128
	above   batch.Int128
	below   batch.Int128
	out     batch.Vector
}

func compileConvert(e *expr.Expr, arg node) (node, error) {
	from, to := e.Args[0].Type, e.Type
	if from.Kind == expr.Null {
		return &constant{physical: Physical(to), null: true}, nil
	}
	n := &convert{arg: arg, failure: failureOf(e), scale: from.Scale}
	n.out.Physical = Physical(to)
	integer := from.Kind == expr.Int || from.Kind == expr.BigInt
	switch {
	case from.Kind == to.Kind && from.Kind != expr.Decimal, from.Kind == expr.Int && to.Kind == expr.BigInt:
	case integer && to.Kind == expr.Double:
		n.kernel = intToFloat
	case from.Kind == expr.Decimal && to.Kind == expr.Double:
		n.kernel = decimalToFloat
	case integer && to.Kind == expr.Decimal:
		n.kernel = intToDecimal
		n.above, n.below = limits(to)
		n.mul = batch.Pow10(to.Scale)
	case from.Kind == expr.Decimal && to.Kind == expr.Decimal:
		n.kernel = decimalToDecimal
		n.above, n.below = limits(to)
		n.mul, n.div = batch.Pow10(max(to.Scale-from.Scale, 0)), batch.Pow10(max(from.Scale-to.Scale, 0))
		if from.Scale == to.Scale && from.Precision <= to.Precision && from.Precision > 0 {
			n.kernel = nil
		}
	default:
		return nil, fmt.Errorf("convert %v to %v", from, to)
	}
	if n.kernel == nil { // the values stay as they are
		return arg, nil
	}
	return n, nil
}

func (n *convert) eval(b *batch.Batch, rows []int32) (*batch.Vector, error) {
	v, err := n.arg.eval(b, rows)
	if err != nil {
		return nil, err
	}
	n.out.Resize(b.Len)
	meet(&n.out, v, v, b.Len)
	for i := range count(b.Len, rows) {
		if row := at(rows, i); !n.kernel(n, v, row) && !n.out.Null(row) {
			return nil, n.failure.overflowAt(row)
		}
	}
	return &n.out, nil
}

func intToFloat(n *convert, v *batch.Vector, row int) bool {
	n.out.Floats[row] = float64(v.Ints[row])
	return true
}

func decimalToFloat(n *convert, v *batch.Vector, row int) bool {
	if !v.Null(row) {
		n.out.Floats[row] = v.Decimals[row].Float64(n.scale)
	}
	return true
}

func intToDecimal(n *convert, v *batch.Vector, row int) bool {
	d, ok := n.mul.MulInt64(v.Ints[row])
	n.out.Decimals[row] = d
	return ok && d.Cmp(n.above) < 0 && d.Cmp(n.below) > 0
}

func decimalToDecimal(n *convert, v *batch.Vector, row int) bool {
	d, ok := v.Decimals[row].MulDivRound(n.mul, n.div)
	n.out.Decimals[row] = d
	return ok && d.Cmp(n.above) < 0 && d.Cmp(n.below) > 0
}
