package planner

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"weir/planner/expr"
)

// fold computes what is constant in an expression. What would fail stays as it is, and
// fails, or does not, where it runs: 1 / 0 and an overflow are never folded away, nor
// is an operand dropped that the running expression would have computed.
func fold(e *expr.Expr) *expr.Expr {
	if len(e.Args) == 0 {
		return e
	}
	e = withArgs(e, mapped(e.Args, fold))
	if short := simplify(e); short != nil {
		return short
	}
	if !slices.ContainsFunc(e.Args, func(a *expr.Expr) bool { return !isLiteral(a) }) {
		if value := compute(e); value != nil {
			return value
		}
	}
	return e
}

// simplify drops the operands that do not matter, without those that would fail; nil
// where there is nothing to drop.
func simplify(e *expr.Expr) *expr.Expr {
	switch e.Op {
	case expr.OpAnd, expr.OpOr:
		return foldLogic(e)
	case expr.OpNot:
		if x := e.Args[0]; x.Op == expr.OpNot {
			return x.Args[0]
		}
	case expr.OpCase:
		return foldCase(e)
	case expr.OpCoalesce:
		return foldCoalesce(e)
	}
	return nil
}

// foldLogic drops the operands of AND and OR that do not matter. The left operand is
// always computed, so it may be dropped only where it cannot fail; the right one is
// not computed where the left decides.
func foldLogic(e *expr.Expr) *expr.Expr {
	x, y := e.Args[0], e.Args[1]
	neutral := e.Op == expr.OpAnd // TRUE AND x, FALSE OR x
	switch {
	case isBool(x, neutral):
		return y
	case isBool(y, neutral):
		return x
	case isBool(x, !neutral):
		return x
	case isBool(y, !neutral) && !expr.CanFail(x):
		return y
	}
	return nil
}

// foldCase drops the branches that are never taken, and those behind one that always is.
func foldCase(e *expr.Expr) *expr.Expr {
	var kept []*expr.Expr
	last := len(e.Args) - 1
	value := e.Args[last]
	for i := 0; i < last; i += 2 {
		condition := e.Args[i]
		if isBool(condition, true) {
			value = e.Args[i+1]
			break
		}
		if !isLiteral(condition) {
			kept = append(kept, condition, e.Args[i+1])
		}
	}
	switch {
	case len(kept) == 0:
		return ofType(value, e.Type)
	case len(kept) == last:
		return nil
	}
	return &expr.Expr{Op: e.Op, Type: e.Type, Args: append(kept, value), Text: e.Text}
}

// foldCoalesce drops NULLs and what stands behind a constant.
func foldCoalesce(e *expr.Expr) *expr.Expr {
	var kept []*expr.Expr
	for _, a := range e.Args {
		if isNull(a) {
			continue
		}
		if kept = append(kept, a); isLiteral(a) {
			break
		}
	}
	switch {
	case len(kept) == 0:
		return nullLiteral(e.Type)
	case len(kept) == 1:
		return ofType(kept[0], e.Type)
	case len(kept) == len(e.Args):
		return nil
	}
	return &expr.Expr{Op: e.Op, Type: e.Type, Args: kept, Text: e.Text}
}

// ofType gives e in the place of an expression of a type, or nil: it may have another
// precision.
func ofType(e *expr.Expr, t expr.Type) *expr.Expr {
	if isLiteral(e) {
		return convert(e, t)
	}
	if e.Type != t {
		return nil
	}
	return e
}

// compute gives the value of an operation on literals, or nil where it fails or is left
// to the running expression.
func compute(e *expr.Expr) *expr.Expr {
	x := e.Args[0]
	switch e.Op {
	case expr.OpIsNull:
		return boolLiteral(isNull(x))
	case expr.OpIsNotNull:
		return boolLiteral(!isNull(x))
	case expr.OpDistinct, expr.OpNotDistinct:
		same := isNull(x) && isNull(e.Args[1])
		if !isNull(x) && !isNull(e.Args[1]) {
			same = compareLiterals(x, e.Args[1]) == 0
		}
		return boolLiteral(same == (e.Op == expr.OpNotDistinct))
	case expr.OpIn:
		return computeIn(e)
	case expr.OpAnd, expr.OpOr: // neither decides: foldLogic has seen to the rest
		return nullLiteral(e.Type)
	case expr.OpCase, expr.OpCoalesce:
		return nil
	case expr.OpCall:
		if f := expr.FunctionOf(e.Func); f == nil || f.Nulls != expr.Strict {
			return nil
		}
	}
	for _, a := range e.Args {
		if isNull(a) {
			return nullLiteral(e.Type)
		}
	}
	return computeValue(e, x)
}

// computeValue is compute of operands that are not NULL.
func computeValue(e, x *expr.Expr) *expr.Expr {
	switch e.Op {
	case expr.OpNot:
		return boolLiteral(!x.Literal.Bool)
	case expr.OpConvert:
		return convertLiteral(x, e.Type, e.Zone)
	case expr.OpCast, expr.OpTryCast:
		return computeCast(x, e.Type, e.Zone)
	case expr.OpNeg:
		return computeNegative(e, x)
	case expr.OpAdd, expr.OpSub, expr.OpMul, expr.OpDiv, expr.OpMod:
		if y := e.Args[1]; x.Type.Numeric() && y.Type.Numeric() {
			return computeArithmetic(e.Op, e.Type, x, y)
		}
	case expr.OpEq, expr.OpNe, expr.OpLt, expr.OpLe, expr.OpGt, expr.OpGe:
		return boolLiteral(holds(e.Op, compareLiterals(x, e.Args[1])))
	}
	return nil
}

func computeNegative(e, x *expr.Expr) *expr.Expr {
	switch x.Type.Kind {
	case expr.Int, expr.BigInt:
		return computeArithmetic(expr.OpSub, e.Type, intLiteral(0, x.Type), x)
	case expr.Decimal:
		return computeArithmetic(expr.OpSub, e.Type, decimalLiteral(decimal{new(big.Int), x.Type.Scale}), x)
	case expr.Double:
		return doubleLiteral(-literalDouble(x))
	}
	return nil
}

// computeCast casts what is simple: texts, booleans, whole numbers and decimals.
func computeCast(x *expr.Expr, t expr.Type, zone string) *expr.Expr {
	from := x.Type.Kind
	exact := from == expr.Int || from == expr.BigInt || from == expr.Decimal
	switch {
	case from == expr.String:
		if lit, problem := castText(x.Literal.String, t, zone); problem == "" {
			return lit
		}
	case exact && t.Kind == expr.String:
		return stringLiteral(literalDecimal(x).String())
	case from == expr.Boolean && t.Kind == expr.String:
		return stringLiteral(strconv.FormatBool(x.Literal.Bool))
	case from == expr.Boolean && t.Kind == expr.Int:
		return intLiteral(int64(boolOrder(x.Literal.Bool)), t)
	case from == expr.Int && t.Kind == expr.Boolean:
		return boolLiteral(x.Literal.Int != 0)
	case exact && (t.Kind == expr.Int || t.Kind == expr.BigInt):
		n := literalDecimal(x).rounded(0).unscaled
		if n.IsInt64() && (t.Kind == expr.BigInt || n.Int64() == int64(int32(n.Int64()))) {
			return intLiteral(n.Int64(), t)
		}
	case exact && t.Kind == expr.Decimal:
		if d := literalDecimal(x).rounded(t.Scale); d.fitsIn(t) {
			return typedDecimal(d, t)
		}
	case exact && t.Kind == expr.Double:
		return doubleLiteral(literalDouble(x))
	case timeRank(x.Type) > 0 && timeRank(t) > timeRank(x.Type) && x.Type.Precision <= t.Precision:
		return convertTime(x, t, zone)
	}
	return nil
}

func computeIn(e *expr.Expr) *expr.Expr {
	x, null := e.Args[0], false
	if isNull(x) {
		return nullLiteral(e.Type)
	}
	for _, item := range e.Args[1:] {
		switch {
		case isNull(item):
			null = true
		case compareLiterals(x, item) == 0:
			return boolLiteral(true)
		}
	}
	if null {
		return nullLiteral(e.Type)
	}
	return boolLiteral(false)
}

func holds(op expr.Op, order int) bool {
	switch op {
	case expr.OpEq:
		return order == 0
	case expr.OpNe:
		return order != 0
	case expr.OpLt:
		return order < 0
	case expr.OpLe:
		return order <= 0
	case expr.OpGt:
		return order > 0
	}
	return order >= 0
}

// compareLiterals orders two literals of one type as PostgreSQL does.
func compareLiterals(x, y *expr.Expr) int {
	switch x.Type.Kind {
	case expr.Boolean:
		return boolOrder(x.Literal.Bool) - boolOrder(y.Literal.Bool)
	case expr.Double:
		return compareDoubles(literalDouble(x), literalDouble(y))
	case expr.Decimal:
		return literalDecimal(x).unscaled.Cmp(literalDecimal(y).unscaled)
	case expr.String, expr.Bytes:
		return strings.Compare(x.Literal.String, y.Literal.String)
	}
	return cmp.Compare(x.Literal.Int, y.Literal.Int)
}

func boolOrder(v bool) int {
	if v {
		return 1
	}
	return 0
}

// compareDoubles takes NaN as the greatest number, equal to itself.
func compareDoubles(a, b float64) int {
	return -cmp.Compare(-a, -b) // cmp puts NaN first
}

func computeArithmetic(op expr.Op, t expr.Type, x, y *expr.Expr) *expr.Expr {
	switch t.Kind {
	case expr.Double:
		return computeDouble(op, literalDouble(x), literalDouble(y))
	case expr.Decimal:
		return computeDecimal(op, t, literalDecimal(x), literalDecimal(y))
	}
	a, b := big.NewInt(x.Literal.Int), big.NewInt(y.Literal.Int)
	z := computeBig(op, a, b)
	limit := int64(math.MaxInt64)
	if t.Kind == expr.Int {
		limit = math.MaxInt32
	}
	if z == nil || !z.IsInt64() || z.Int64() > limit || z.Int64() < -limit-1 {
		return nil
	}
	return intLiteral(z.Int64(), t)
}

// computeBig computes exactly; nil is division by zero.
func computeBig(op expr.Op, a, b *big.Int) *big.Int {
	z := new(big.Int)
	switch op {
	case expr.OpAdd:
		return z.Add(a, b)
	case expr.OpSub:
		return z.Sub(a, b)
	case expr.OpMul:
		return z.Mul(a, b)
	}
	switch {
	case b.Sign() == 0:
		return nil
	case op == expr.OpDiv:
		return z.Quo(a, b)
	}
	return z.Rem(a, b)
}

// computeDecimal leaves the rounding of quotients to the running expression.
func computeDecimal(op expr.Op, t expr.Type, a, b decimal) *expr.Expr {
	if op == expr.OpDiv {
		return nil
	}
	z := computeBig(op, a.unscaled, b.unscaled)
	if z == nil || !(decimal{z, t.Scale}).fits() {
		return nil
	}
	return decimalLiteral(decimal{z, t.Scale})
}

func computeDouble(op expr.Op, a, b float64) *expr.Expr {
	switch op {
	case expr.OpAdd:
		return doubleLiteral(a + b)
	case expr.OpSub:
		return doubleLiteral(a - b)
	case expr.OpMul:
		return doubleLiteral(a * b)
	case expr.OpDiv:
		return doubleLiteral(a / b)
	}
	return nil
}
