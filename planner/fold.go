package planner

import (
	"cmp"
	"math"
	"math/big"
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
	folded := *e
	folded.Args = make([]*expr.Expr, len(e.Args))
	constant := true
	for i, a := range e.Args {
		folded.Args[i] = fold(a)
		constant = constant && isLiteral(folded.Args[i])
	}
	if short := foldLogic(&folded); short != nil {
		return short
	}
	if constant {
		if value := compute(&folded); value != nil {
			return value
		}
	}
	return &folded
}

// foldLogic drops the operands of AND and OR that do not matter. The left operand is
// always computed, so it may be dropped only where it cannot fail; the right one is
// not computed where the left decides.
func foldLogic(e *expr.Expr) *expr.Expr {
	if e.Op != expr.OpAnd && e.Op != expr.OpOr {
		return nil
	}
	x, y := e.Args[0], e.Args[1]
	neutral := e.Op == expr.OpAnd // TRUE AND x, FALSE OR x
	switch {
	case isBool(x, neutral):
		return y
	case isBool(y, neutral):
		return x
	case isBool(x, !neutral):
		return x
	case isBool(y, !neutral) && !canFail(x):
		return y
	}
	return nil
}

// canFail reports whether e may raise a row error.
func canFail(e *expr.Expr) bool {
	switch e.Op {
	case expr.OpAdd, expr.OpSub, expr.OpMul, expr.OpDiv, expr.OpMod, expr.OpNeg, expr.OpConvert:
		if e.Type.Kind != expr.Double {
			return true
		}
	}
	for _, a := range e.Args {
		if canFail(a) {
			return true
		}
	}
	return false
}

// compute gives the value of an operation on literals, or nil where it fails.
func compute(e *expr.Expr) *expr.Expr {
	x := e.Args[0]
	switch e.Op {
	case expr.OpIsNull:
		return boolLiteral(isNull(x))
	case expr.OpIsNotNull:
		return boolLiteral(!isNull(x))
	case expr.OpIn:
		return computeIn(e)
	case expr.OpAnd, expr.OpOr: // neither decides: foldLogic has seen to the rest
		return nullLiteral(e.Type)
	}
	for _, a := range e.Args {
		if isNull(a) {
			return nullLiteral(e.Type)
		}
	}
	switch e.Op {
	case expr.OpNot:
		return boolLiteral(!x.Literal.Bool)
	case expr.OpConvert:
		return convertLiteral(x, e.Type)
	case expr.OpNeg:
		zero := map[expr.Kind]*expr.Expr{expr.Int: intLiteral(0, x.Type), expr.BigInt: intLiteral(0, x.Type), expr.Decimal: decimalLiteral(decimal{new(big.Int), x.Type.Scale})}[x.Type.Kind]
		if zero == nil {
			return doubleLiteral(-literalDouble(x))
		}
		return computeArithmetic(expr.OpSub, e.Type, zero, x)
	case expr.OpAdd, expr.OpSub, expr.OpMul, expr.OpDiv, expr.OpMod:
		return computeArithmetic(e.Op, e.Type, x, e.Args[1])
	case expr.OpEq, expr.OpNe, expr.OpLt, expr.OpLe, expr.OpGt, expr.OpGe:
		return boolLiteral(holds(e.Op, compareLiterals(x, e.Args[1])))
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
	case expr.String:
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
