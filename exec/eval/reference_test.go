package eval

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"weir/exec/batch"
	"weir/planner/expr"
)

// A value is one SQL value in the reference evaluator, which works row by row, in
// unbounded numbers, and shares nothing with the kernels.
type value struct {
	null bool
	b    bool
	n    *big.Int // integers; unscaled decimals
	f    float64
	s    string
}

// reference evaluates e for one row. where: only whether it is true matters, as in
// Select, so that AND and OR evaluate less.
func reference(e *expr.Expr, b *batch.Batch, row int, where bool) (value, *RowError) {
	switch e.Op {
	case expr.OpColumn:
		return columnValue(&b.Columns[e.Column], row), nil
	case expr.OpLiteral:
		return literalValue(e), nil
	case expr.OpAnd, expr.OpOr:
		return referenceConnective(e, b, row, where)
	case expr.OpIn:
		return referenceIn(e, b, row)
	case expr.OpCase:
		return referenceCase(e, b, row, where)
	case expr.OpCoalesce:
		return referenceCoalesce(e, b, row)
	}
	args := make([]value, len(e.Args))
	for i, a := range e.Args {
		var err *RowError
		if args[i], err = reference(a, b, row, false); err != nil {
			return value{}, err
		}
	}
	switch e.Op {
	case expr.OpCall:
		return referenceCall(e, args, row)
	case expr.OpIsNull:
		return value{b: args[0].null}, nil
	case expr.OpIsNotNull:
		return value{b: !args[0].null}, nil
	case expr.OpDistinct, expr.OpNotDistinct:
		same := args[0].null && args[1].null
		if !args[0].null && !args[1].null {
			same = order(e.Args[0].Type.Kind, args[0], args[1]) == 0
		}
		return value{b: same == (e.Op == expr.OpNotDistinct)}, nil
	}
	for _, a := range args {
		if a.null {
			return value{null: true}, nil
		}
	}
	switch e.Op {
	case expr.OpNot:
		return value{b: !args[0].b}, nil
	case expr.OpEq, expr.OpNe, expr.OpLt, expr.OpLe, expr.OpGt, expr.OpGe:
		return value{b: compares(e.Op, order(e.Args[0].Type.Kind, args[0], args[1]))}, nil
	case expr.OpConvert:
		return referenceConvert(e, args[0], row)
	case expr.OpCast, expr.OpTryCast:
		return referenceCast(e, args[0], row)
	}
	return referenceArith(e, args, row)
}

func referenceConnective(e *expr.Expr, b *batch.Batch, row int, where bool) (value, *RowError) {
	decisive := e.Op == expr.OpOr
	left, err := reference(e.Args[0], b, row, where)
	if err != nil || !left.null && left.b == decisive {
		return left, err
	}
	if where && !decisive && left.null {
		return value{null: true}, nil
	}
	right, err := reference(e.Args[1], b, row, where)
	if err != nil || !right.null && right.b == decisive {
		return right, err
	}
	return value{null: left.null || right.null, b: !decisive}, nil
}

func referenceCase(e *expr.Expr, b *batch.Batch, row int, where bool) (value, *RowError) {
	last := len(e.Args) - 1
	for i := 0; i < last; i += 2 {
		c, err := reference(e.Args[i], b, row, true)
		if err != nil {
			return value{}, err
		}
		if !c.null && c.b {
			return reference(e.Args[i+1], b, row, where)
		}
	}
	return reference(e.Args[last], b, row, where)
}

func referenceCoalesce(e *expr.Expr, b *batch.Batch, row int) (value, *RowError) {
	for _, a := range e.Args {
		if v, err := reference(a, b, row, false); err != nil || !v.null {
			return v, err
		}
	}
	return value{null: true}, nil
}

func referenceIn(e *expr.Expr, b *batch.Batch, row int) (value, *RowError) {
	result := value{}
	for _, a := range e.Args[1:] {
		eq := &expr.Expr{Op: expr.OpEq, Type: e.Type, Args: []*expr.Expr{e.Args[0], a}}
		one, err := reference(eq, b, row, false)
		if err != nil || !one.null && one.b {
			return one, err
		}
		result.null = result.null || one.null
	}
	return result, nil
}

func columnValue(v *batch.Vector, row int) value {
	if v.Null(row) {
		return value{null: true}
	}
	switch v.Physical {
	case batch.Bools:
		return value{b: v.Bools[row]}
	case batch.Ints:
		return value{n: big.NewInt(v.Ints[row])}
	case batch.Floats:
		return value{f: v.Floats[row]}
	case batch.Decimals:
		return value{n: bigOf(v.Decimals[row])}
	}
	return value{s: string(v.Str(row))}
}

func bigOf(d batch.Int128) *big.Int {
	x := new(big.Int).Lsh(big.NewInt(d.Hi), 64)
	return x.Add(x, new(big.Int).SetUint64(d.Lo))
}

func literalValue(e *expr.Expr) value {
	if e.Literal == nil {
		return value{null: true}
	}
	v := batch.Vector{Physical: Physical(e.Type)}
	if err := appendLiteral(&v, e); err != nil {
		panic(err)
	}
	return columnValue(&v, 0)
}

// order compares as PostgreSQL does.
func order(k expr.Kind, a, b value) int {
	switch k {
	case expr.Boolean:
		return one(a.b) - one(b.b)
	case expr.String, expr.Bytes:
		return strings.Compare(a.s, b.s)
	case expr.Double:
		x, y := math.IsNaN(a.f), math.IsNaN(b.f)
		switch {
		case x || y:
			return one(x) - one(y)
		case a.f < b.f:
			return -1
		}
		return one(a.f > b.f)
	}
	return a.n.Cmp(b.n)
}

func compares(op expr.Op, c int) bool {
	switch op {
	case expr.OpEq:
		return c == 0
	case expr.OpNe:
		return c != 0
	case expr.OpLt:
		return c < 0
	case expr.OpLe:
		return c <= 0
	case expr.OpGt:
		return c > 0
	}
	return c >= 0
}

func referenceConvert(e *expr.Expr, a value, row int) (value, *RowError) {
	from, to := e.Args[0].Type, e.Type
	switch {
	case to.Kind == expr.Double && from.Kind != expr.Double:
		f, _ := strconv.ParseFloat(new(big.Rat).SetFrac(a.n, pow10(from.Scale)).FloatString(from.Scale), 64)
		return value{f: f}, nil
	case to.Kind == expr.Decimal:
		return inRange(e, round(new(big.Int).Mul(a.n, pow10(to.Scale)), pow10(from.Scale)), row)
	}
	return a, nil
}

func referenceArith(e *expr.Expr, args []value, row int) (value, *RowError) {
	x, y := args[0], args[len(args)-1]
	if e.Type.Kind == expr.Double {
		switch e.Op {
		case expr.OpAdd:
			return value{f: x.f + y.f}, nil
		case expr.OpSub:
			return value{f: x.f - y.f}, nil
		case expr.OpMul:
			return value{f: x.f * y.f}, nil
		case expr.OpDiv:
			return value{f: x.f / y.f}, nil
		case expr.OpMod:
			return value{f: math.Mod(x.f, y.f)}, nil
		}
		return value{f: -x.f}, nil
	}
	if (e.Op == expr.OpDiv || e.Op == expr.OpMod) && y.n.Sign() == 0 {
		return value{}, &RowError{Row: row, Reason: "division by zero", Text: e.Text}
	}
	if e.Op == expr.OpNeg {
		return inRange(e, new(big.Int).Neg(x.n), row)
	}
	l, r := e.Args[0].Type.Scale, e.Args[1].Type.Scale
	z := new(big.Int)
	switch e.Op {
	case expr.OpAdd:
		z.Add(x.n, y.n)
	case expr.OpSub:
		z.Sub(x.n, y.n)
	case expr.OpMod:
		z.Rem(x.n, y.n)
	case expr.OpMul:
		z = round(z.Mul(z.Mul(x.n, y.n), pow10(e.Type.Scale)), pow10(l+r))
	case expr.OpDiv:
		if e.Type.Kind != expr.Decimal {
			z.Quo(x.n, y.n)
			break
		}
		z = round(z.Mul(x.n, pow10(e.Type.Scale+r)), new(big.Int).Mul(y.n, pow10(l)))
	}
	return inRange(e, z, row)
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// round divides with halves away from zero.
func round(n, d *big.Int) *big.Int {
	negative := n.Sign()*d.Sign() < 0
	n, d = new(big.Int).Abs(n), new(big.Int).Abs(d)
	n.Lsh(n, 1).Add(n, d)
	n.Quo(n, d.Lsh(d, 1))
	if negative {
		n.Neg(n)
	}
	return n
}

func inRange(e *expr.Expr, n *big.Int, row int) (value, *RowError) {
	var above, below *big.Int // exclusive
	switch e.Type.Kind {
	case expr.Int:
		above, below = big.NewInt(1<<31), big.NewInt(-1<<31-1)
	case expr.BigInt:
		above = new(big.Int).Lsh(big.NewInt(1), 63)
		below = new(big.Int).Sub(new(big.Int).Neg(above), big.NewInt(1))
	default:
		above = pow10(e.Type.Precision)
		below = new(big.Int).Neg(above)
	}
	if n.Cmp(above) >= 0 || n.Cmp(below) <= 0 {
		return value{}, &RowError{Row: row, Reason: e.Type.String() + " overflow", Text: e.Text}
	}
	return value{n: n}, nil
}
