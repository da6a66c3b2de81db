package eval

import (
	"fmt"
	"math"

	"weir/exec/batch"
	"weir/planner/expr"
)

// numberFunction lists the functions of numbers.
func numberFunction(name string) compileFunc {
	switch name {
	case "abs":
		return numeric(absKernel)
	case "sign":
		return numeric(signKernel)
	case "ceil":
		return numeric(ceilKernel)
	case "floor":
		return numeric(floorKernel)
	case "round", "truncate":
		return compileRound
	case "power":
		return strictly(powers, expr.Double, expr.Double)
	case "sqrt":
		return strictly(ofDoubles(sqrt), expr.Double)
	case "exp":
		return strictly(ofDoubles(exponential), expr.Double)
	case "ln":
		return strictly(ofDoubles(naturalLog), expr.Double)
	case "log10":
		return strictly(ofDoubles(decimalLog), expr.Double)
	case "greatest", "least":
		return compileExtreme
	}
	return nil
}

// numeric is the entry of a function of one number of any type.
func numeric(of func(from, to expr.Type) kernel) compileFunc {
	return func(e *expr.Expr, args []node, _ Env) (node, error) {
		if len(args) != 1 || !e.Args[0].Type.Numeric() || e.Type.Kind != e.Args[0].Type.Kind {
			return nil, fmt.Errorf("%s of %d operands giving %v", e.Func, len(args), e.Type)
		}
		return newCall(e, args, of(e.Args[0].Type, e.Type)), nil
	}
}

// ofDoubles is the kernel of a function of one DOUBLE.
func ofDoubles(f func(x float64) (float64, verdict)) kernel {
	return func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		in := args[0].Floats
		return fill(out, out.Floats, rows, func(row int) (float64, verdict) { return f(in[row]) })
	}
}

// ofIntegers is the kernel of a function of one INT or BIGINT.
func ofIntegers(f func(x int64) (int64, verdict)) kernel {
	return func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		in := args[0].Ints
		return fill(out, out.Ints, rows, func(row int) (int64, verdict) { return f(in[row]) })
	}
}

// ofDecimals is the kernel of a function of one DECIMAL; where it has no result, that is
// an overflow.
func ofDecimals(to expr.Type, f func(x batch.Int128) (batch.Int128, bool)) kernel {
	overflow := overflowOf(to)
	return func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		in := args[0].Decimals
		return fill(out, out.Decimals, rows, func(row int) (batch.Int128, verdict) {
			x, ok := f(in[row])
			if !ok {
				return x, overflow
			}
			return x, ""
		})
	}
}

func overflowOf(t expr.Type) verdict { return verdict(t.String() + " overflow") }

// same passes on whole numbers, which have nothing to round.
func same(x int64) (int64, verdict) { return x, "" }

func absKernel(_, to expr.Type) kernel {
	switch to.Kind {
	case expr.Double:
		return ofDoubles(func(x float64) (float64, verdict) { return math.Abs(x), "" })
	case expr.Decimal:
		return ofDecimals(to, func(x batch.Int128) (batch.Int128, bool) {
			if x.Sign() >= 0 {
				return x, true
			}
			return x.Neg()
		})
	}
	least, overflow := int64(math.MinInt64), overflowOf(to)
	if to.Kind == expr.Int {
		least = math.MinInt32
	}
	return ofIntegers(func(x int64) (int64, verdict) {
		if x == least {
			return 0, overflow
		}
		return max(x, -x), ""
	})
}

func signKernel(_, to expr.Type) kernel {
	switch to.Kind {
	case expr.Double:
		return ofDoubles(func(x float64) (float64, verdict) {
			switch {
			case x > 0:
				return 1, ""
			case x < 0:
				return -1, ""
			}
			return 0, "" // NaN too, as in PostgreSQL
		})
	case expr.Decimal:
		one := batch.Pow10(to.Scale)
		return ofDecimals(to, func(x batch.Int128) (batch.Int128, bool) { return one.MulInt64(int64(x.Sign())) })
	}
	return ofIntegers(func(x int64) (int64, verdict) {
		switch {
		case x > 0:
			return 1, ""
		case x < 0:
			return -1, ""
		}
		return 0, ""
	})
}

func ceilKernel(from, to expr.Type) kernel  { return wholeKernel(from, to, math.Ceil, 1) }
func floorKernel(from, to expr.Type) kernel { return wholeKernel(from, to, math.Floor, -1) }

// wholeKernel rounds to a whole number in one direction, 1 or -1.
func wholeKernel(from, to expr.Type, f func(float64) float64, direction int) kernel {
	switch to.Kind {
	case expr.Double:
		return ofDoubles(func(x float64) (float64, verdict) { return f(x), "" })
	case expr.Decimal:
		unit, scale := batch.Pow10(from.Scale), batch.Pow10(to.Scale)
		return ofDecimals(to, func(x batch.Int128) (batch.Int128, bool) {
			q, rest, _ := x.QuoRem(unit)
			if rest.Sign() == direction {
				q, _ = q.AddInt64(int64(direction))
			}
			q, ok := q.Mul(scale)
			return q, ok && q.Fits(to.Precision)
		})
	}
	return ofIntegers(same)
}

// compileRound makes ROUND and TRUNCATE, with or without a constant number of digits.
func compileRound(e *expr.Expr, args []node, _ Env) (node, error) {
	if len(args) < 1 || len(args) > 2 || !e.Args[0].Type.Numeric() || e.Type.Kind != e.Args[0].Type.Kind {
		return nil, fmt.Errorf("%s of %d operands giving %v", e.Func, len(args), e.Type)
	}
	digits, from, rounds := int64(0), e.Args[0].Type, e.Func == "round"
	if len(args) == 2 {
		d := e.Args[1]
		if d.Op != expr.OpLiteral || d.Type.Kind != expr.Int || from.Kind != expr.Decimal {
			return nil, fmt.Errorf("%s of %v to a number of digits that is no constant INT", e.Func, from)
		}
		if d.Literal == nil {
			return &constant{physical: Physical(e.Type), null: true}, nil
		}
		digits = d.Literal.Int
	}
	k := ofIntegers(same)
	switch {
	case from.Kind == expr.Decimal:
		k = roundDecimals(from.Scale, e.Type, digits, rounds)
	case from.Kind == expr.Double && rounds:
		k = ofDoubles(func(x float64) (float64, verdict) { return math.RoundToEven(x), "" })
	case from.Kind == expr.Double:
		k = ofDoubles(func(x float64) (float64, verdict) { return math.Trunc(x), "" })
	}
	return newCall(e, args[:1], k), nil
}

// roundDecimals keeps some digits behind the point, or before it where they are negative.
func roundDecimals(scale int, to expr.Type, digits int64, rounds bool) kernel {
	one := batch.Int128Of(1)
	drop := int64(scale) - max(digits, -batch.MaxPrecision-1) // digits that go
	if drop > batch.MaxPrecision {
		return ofDecimals(to, func(batch.Int128) (batch.Int128, bool) { return batch.Int128{}, true })
	}
	unit := batch.Pow10(int(max(drop, 0)))
	grow := batch.Pow10(max(to.Scale-scale+int(max(drop, 0)), 0)) // from the digits that stay to the result's scale
	short, isShort := unit.Int64()
	return ofDecimals(to, func(x batch.Int128) (batch.Int128, bool) {
		var q batch.Int128
		if v, ok := x.Int64(); ok && isShort {
			n := v / short
			if rest := v % short; rounds && absolute(rest) >= absolute(short)-absolute(rest) {
				n += int64(x.Sign())
			}
			q = batch.Int128Of(n)
		} else if rounds {
			q, _ = x.MulDivRound(one, unit)
		} else {
			q, _, _ = x.QuoRem(unit)
		}
		q, ok := q.Mul(grow)
		return q, ok && q.Fits(to.Precision)
	})
}

// Reasons of PostgreSQL's.
const (
	tooLarge    verdict = "DOUBLE overflow"
	tooSmall    verdict = "DOUBLE underflow"
	zeroPower   verdict = "zero raised to a negative power"
	complexRoot verdict = "a negative number raised to a power that is not whole"
	rootOf      verdict = "square root of a negative number"
	logOfZero   verdict = "logarithm of zero"
	logOf       verdict = "logarithm of a negative number"
)

func sqrt(x float64) (float64, verdict) {
	if x < 0 {
		return 0, rootOf
	}
	return math.Sqrt(x), ""
}

func exponential(x float64) (float64, verdict) {
	return finite(exp(x), math.IsInf(x, 0) || math.IsNaN(x))
}

// finite makes errors of results beyond the doubles, unless the arguments were.
func finite(y float64, excused bool) (float64, verdict) {
	switch {
	case excused:
	case math.IsInf(y, 0):
		return 0, tooLarge
	case y == 0:
		return 0, tooSmall
	}
	return y, ""
}

func naturalLog(x float64) (float64, verdict) { return logarithm(x, ln) }
func decimalLog(x float64) (float64, verdict) { return logarithm(x, log10) }

func logarithm(x float64, f func(float64) float64) (float64, verdict) {
	switch {
	case x == 0:
		return 0, logOfZero
	case x < 0:
		return 0, logOf
	}
	return f(x), ""
}

func powers(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	x, y := args[0].Floats, args[1].Floats
	return fill(out, out.Floats, rows, func(row int) (float64, verdict) { return power(x[row], y[row]) })
}

func power(x, y float64) (float64, verdict) {
	switch {
	case x == 0 && y < 0:
		return 0, zeroPower
	case x < 0 && math.Floor(y) != y && !math.IsNaN(y):
		return 0, complexRoot
	}
	infinite := x-x != 0 || y-y != 0 // or NaN
	return finite(pow(x, y), infinite || x == 0)
}
