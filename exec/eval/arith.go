package eval

import (
	"fmt"
	"math"
	"math/bits"

	"weir/exec/batch"
	"weir/planner/expr"
)

// An arith node computes a binary operation on two vectors of one layout.
type arith struct {
	op          expr.Op
	left, right node
	kind        expr.Kind
	decimal     decimalOp // for DECIMAL
	failure     failure
	out         batch.Vector
}

// A failure makes row errors for one node of the tree.
type failure struct{ overflow, text string }

func failureOf(e *expr.Expr) failure {
	return failure{overflow: e.Type.String() + " overflow", text: describe(e)}
}

func (f failure) overflowAt(row int) error {
	return &RowError{Row: row, Reason: f.overflow, Text: f.text}
}

func (f failure) zeroAt(row int) error {
	return &RowError{Row: row, Reason: "division by zero", Text: f.text}
}

func compileArith(e *expr.Expr, left, right node) (node, error) {
	l, r := e.Args[0].Type, e.Args[1].Type
	if temporal(l) || temporal(r) {
		return compileTimeArith(e, left, right)
	}
	if l.Kind != e.Type.Kind || r.Kind != e.Type.Kind || !e.Type.Numeric() {
		return nil, fmt.Errorf("%v %s %v giving %v", l, e.Op, r, e.Type)
	}
	n := &arith{op: e.Op, left: left, right: right, kind: e.Type.Kind, failure: failureOf(e)}
	n.out.Physical = Physical(e.Type)
	if n.kind == expr.Decimal {
		var err error
		if n.decimal, err = decimalOpOf(e.Op, l, r, e.Type); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *arith) eval(b *batch.Batch, rows []int32) (*batch.Vector, error) {
	l, r, err := operands(n.left, n.right, b, rows)
	if err != nil {
		return nil, err
	}
	n.out.Resize(b.Len)
	meet(&n.out, l, r, b.Len)
	switch n.kind {
	case expr.Double:
		floats(n.op, n.out.Floats, l.Floats[:b.Len], r.Floats[:b.Len])
	case expr.Decimal:
		err = n.decimals(l, r, rows)
	default:
		err = n.ints(l.Ints[:b.Len], r.Ints[:b.Len], rows)
	}
	return &n.out, err
}

// operands evaluates both sides of a binary operator.
func operands(left, right node, b *batch.Batch, rows []int32) (l, r *batch.Vector, err error) {
	if l, err = left.eval(b, rows); err != nil {
		return nil, nil, err
	}
	r, err = right.eval(b, rows)
	return l, r, err
}

// meet makes NULL the rows of out that are NULL in l or r.
func meet(out, l, r *batch.Vector, n int) {
	if l.Valid == nil && r.Valid == nil {
		out.ClearValid()
		return
	}
	if l.Valid == nil {
		l, r = r, l
	}
	words := (n + 63) / 64
	valid := out.MakeValid(n)
	copy(valid, l.Valid[:words])
	if r.Valid != nil {
		for i, w := range r.Valid[:words] {
			valid[i] &= w
		}
	}
}

func floats(op expr.Op, out, l, r []float64) {
	switch op {
	case expr.OpAdd:
		for i := range out {
			out[i] = l[i] + r[i]
		}
	case expr.OpSub:
		for i := range out {
			out[i] = l[i] - r[i]
		}
	case expr.OpMul:
		for i := range out {
			out[i] = l[i] * r[i]
		}
	case expr.OpDiv:
		for i := range out {
			out[i] = l[i] / r[i]
		}
	case expr.OpMod:
		for i := range out {
			out[i] = math.Mod(l[i], r[i])
		}
	}
}

// ints computes INT and BIGINT: all rows at once where nothing traps, then looks for
// a row that overflowed only when some row did.
func (n *arith) ints(l, r []int64, rows []int32) error {
	out := n.out.Ints
	var bad bool
	switch n.op {
	case expr.OpAdd:
		bad = addInts(out, l, r)
	case expr.OpSub:
		bad = subInts(out, l, r)
	case expr.OpMul:
		bad = mulInts(out, l, r)
	default:
		return n.divInts(l, r, rows)
	}
	if n.kind == expr.Int {
		bad = bad || beyondInt(out)
	}
	if !bad {
		return nil
	}
	for i := range count(len(out), rows) {
		row := at(rows, i)
		if !n.out.Null(row) && n.overflows(l[row], r[row]) {
			return n.failure.overflowAt(row)
		}
	}
	return nil
}

func addInts(out, l, r []int64) bool {
	var bad int64
	l, r = l[:len(out)], r[:len(out)]
	for i := range out {
		s := l[i] + r[i]
		bad |= (l[i] ^ s) & (r[i] ^ s)
		out[i] = s
	}
	return bad < 0
}

func subInts(out, l, r []int64) bool {
	var bad int64
	l, r = l[:len(out)], r[:len(out)]
	for i := range out {
		d := l[i] - r[i]
		bad |= (l[i] ^ r[i]) & (l[i] ^ d)
		out[i] = d
	}
	return bad < 0
}

func mulInts(out, l, r []int64) bool {
	var bad uint64
	l, r = l[:len(out)], r[:len(out)]
	for i := range out {
		hi, lo := mul(l[i], r[i])
		bad |= uint64(hi ^ lo>>63)
		out[i] = lo
	}
	return bad != 0
}

// mul returns the 128-bit product; it fits in lo if hi is lo's sign.
func mul(x, y int64) (hi, lo int64) {
	h, l := bits.Mul64(uint64(x), uint64(y))
	return int64(h) - (x>>63)&y - (y>>63)&x, int64(l)
}

// beyondInt reports whether a value does not fit in 32 bits.
func beyondInt(values []int64) bool {
	var bad uint64
	for _, x := range values {
		bad |= uint64(x+1<<31) >> 32
	}
	return bad != 0
}

// overflows repeats + - * for one row.
func (n *arith) overflows(x, y int64) bool {
	var result int64
	switch n.op {
	case expr.OpAdd:
		result = x + y
		if (x^result)&(y^result) < 0 {
			return true
		}
	case expr.OpSub:
		result = x - y
		if (x^y)&(x^result) < 0 {
			return true
		}
	default:
		hi, lo := mul(x, y)
		if hi != lo>>63 {
			return true
		}
		result = lo
	}
	return n.kind == expr.Int && result != int64(int32(result))
}

func (n *arith) divInts(l, r []int64, rows []int32) error {
	out, div := n.out.Ints, n.op == expr.OpDiv
	least := int64(math.MinInt64)
	if n.kind == expr.Int {
		least = math.MinInt32
	}
	for i := range count(len(out), rows) {
		row := at(rows, i)
		x, y := l[row], r[row]
		switch {
		case y == 0:
			if !n.out.Null(row) {
				return n.failure.zeroAt(row)
			}
			out[row] = 0
		case y == -1: // the hardware faults on the smallest value
			if div && x == least && !n.out.Null(row) {
				return n.failure.overflowAt(row)
			}
			out[row] = 0
			if div {
				out[row] = -x
			}
		case div:
			out[row] = x / y
		default:
			out[row] = x % y
		}
	}
	return nil
}

// A neg node changes the sign.
type neg struct {
	arg     node
	kind    expr.Kind
	failure failure
	out     batch.Vector
}

func compileNeg(e *expr.Expr, arg node) (node, error) {
	if temporal(e.Type) {
		return compileTimeArith(e, arg)
	}
	if !e.Type.Numeric() || e.Args[0].Type.Kind != e.Type.Kind || e.Args[0].Type.Scale != e.Type.Scale {
		return nil, fmt.Errorf("- %v giving %v", e.Args[0].Type, e.Type)
	}
	n := &neg{arg: arg, kind: e.Type.Kind, failure: failureOf(e)}
	n.out.Physical = Physical(e.Type)
	return n, nil
}

func (n *neg) eval(b *batch.Batch, rows []int32) (*batch.Vector, error) {
	v, err := n.arg.eval(b, rows)
	if err != nil {
		return nil, err
	}
	n.out.Resize(b.Len)
	meet(&n.out, v, v, b.Len)
	for i := range count(b.Len, rows) {
		row := at(rows, i)
		fits := true
		switch n.kind {
		case expr.Double:
			n.out.Floats[row] = -v.Floats[row]
		case expr.Decimal:
			n.out.Decimals[row], fits = v.Decimals[row].Neg()
		case expr.Int:
			n.out.Ints[row] = -v.Ints[row]
			fits = v.Ints[row] != math.MinInt32
		default:
			n.out.Ints[row] = -v.Ints[row]
			fits = v.Ints[row] != math.MinInt64
		}
		if !fits && !n.out.Null(row) {
			return nil, n.failure.overflowAt(row)
		}
	}
	return &n.out, nil
}
