package eval

import (
	"fmt"
	"math"

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
)

// A timeOp computes x op y for one row of whole numbers.
type timeOp func(x, y int64) (int64, verdict)

// compileTimeArith makes + - * / and the sign where one side at least is a date, a time
// or an interval.
func compileTimeArith(e *expr.Expr, args ...node) (node, error) {
	kinds := []expr.Kind{e.Args[0].Type.Kind, e.Type.Kind}
	if len(args) == 2 {
		kinds = []expr.Kind{e.Args[0].Type.Kind, e.Args[1].Type.Kind, e.Type.Kind}
		// Sums and products with the interval or number first are turned around.
		if (e.Op == expr.OpAdd && rank(kinds[0]) < rank(kinds[1])) || (e.Op == expr.OpMul && rank(kinds[0]) == 0) {
			args, kinds[0], kinds[1] = []node{args[1], args[0]}, kinds[1], kinds[0]
		}
	}
	if len(kinds) == 3 && kinds[1] == expr.Double && kinds[0] == expr.Interval && kinds[2] == expr.Interval {
		if k := intervalTimesDouble(e.Op); k != nil {
			return newCall(e, args, k), nil
		}
	}
	op, err := timeOpOf(e, kinds)
	switch {
	case err != nil:
		return nil, err
	case op == nil:
		return nil, fmt.Errorf("%q of %v and %v giving %v", e.Op, e.Args[0].Type, e.Args[len(args)-1].Type, e.Type)
	}
	return newCall(e, args, func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		x, y := args[0].Ints, args[len(args)-1].Ints
		return fill(out, out.Ints, rows, func(row int) (int64, verdict) { return op(x[row], y[row]) })
	}), nil
}

// temporal reports whether t is a date, a time or an interval.
func temporal(t expr.Type) bool { return rank(t.Kind) > 0 }

// rank orders the operands of a sum: what is moved first, then by what.
func rank(k expr.Kind) int {
	switch k {
	case expr.Date, expr.Timestamp, expr.TimestampLTZ:
		return 2
	case expr.Interval, expr.MonthInterval:
		return 1
	}
	return 0
}

// signature is the kinds of a sum: left, right, result.
type signature [3]expr.Kind

// timeOpOf finds the operation on these kinds of operands, the last being the result's;
// nil: there is none.
func timeOpOf(e *expr.Expr, kinds []expr.Kind) (timeOp, error) {
	overflow := overflowOf(e.Type)
	if e.Op == expr.OpNeg {
		if kinds[0] != kinds[1] || rank(kinds[0]) != 1 {
			return nil, nil
		}
		return spanTimes(e.Type, overflow, func(x, _ int64) (int64, bool) { return multiply(x, -1) }), nil
	}
	k := signature{kinds[0], kinds[1], kinds[2]}
	if k[1] == expr.BigInt && rank(k[0]) != 2 {
		k[1] = expr.Int
	}
	switch e.Op {
	case expr.OpMul, expr.OpDiv:
		return scaled(e, k, overflow), nil
	case expr.OpSub, expr.OpAdd:
		zone, err := zoneOf(e, e.Args[0].Type)
		if e.Op == expr.OpAdd && err == nil && zone == nil {
			zone, err = zoneOf(e, e.Args[1].Type)
		}
		if err != nil {
			return nil, err
		}
		sign := int64(1)
		if e.Op == expr.OpSub {
			sign = -1
		}
		return sumOfTimes(k, sign, e.Type, zone, overflow), nil
	}
	return nil, nil
}

// spanTimes checks the results of an operation on intervals: months have 32 bits.
func spanTimes(t expr.Type, overflow verdict, f func(x, y int64) (int64, bool)) timeOp {
	months := t.Kind == expr.MonthInterval
	return func(x, y int64) (int64, verdict) {
		z, ok := f(x, y)
		if !ok || months && !withinInt(z) {
			return 0, overflow
		}
		return z, ""
	}
}

// scaled is an interval times or by a whole number.
func scaled(e *expr.Expr, k signature, overflow verdict) timeOp {
	switch {
	case rank(k[0]) != 1 || k[1] != expr.Int || k[0] != k[2]:
		return nil
	case e.Op == expr.OpMul:
		return spanTimes(e.Type, overflow, multiply)
	case k[0] != expr.Interval:
		return nil
	}
	return func(x, y int64) (int64, verdict) {
		switch {
		case y == 0:
			return 0, "division by zero"
		case x == math.MinInt64 && y == -1:
			return 0, overflow
		}
		return divideToEven(x, y), ""
	}
}

// divideToEven divides, rounding to the nearest whole number, halves to the even one.
func divideToEven(x, y int64) int64 {
	q, r := x/y, x%y
	step := int64(1)
	if x < 0 != (y < 0) {
		step = -1
	}
	// |r| is compared to |y| - |r|, which cannot overflow.
	rest, missing := absolute(r), absolute(y)-absolute(r)
	if rest > missing || rest == missing && q&1 != 0 {
		q += step
	}
	return q
}

func absolute(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// intervalTimesDouble is an interval times or by a DOUBLE, rounded to microseconds.
func intervalTimesDouble(op expr.Op) kernel {
	if op != expr.OpMul && op != expr.OpDiv {
		return nil
	}
	return func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		x, y := args[0].Ints, args[1].Floats
		return fill(out, out.Ints, rows, func(row int) (int64, verdict) {
			product := float64(x[row]) * y[row]
			if op == expr.OpDiv {
				if y[row] == 0 {
					return 0, "division by zero"
				}
				product = float64(x[row]) / y[row]
			}
			if product = math.RoundToEven(product); !(product >= math.MinInt64 && product < -math.MinInt64) { // NaN
				return 0, overflowOf(expr.Type{Kind: expr.Interval})
			}
			return int64(product), ""
		})
	}
}

// sumOfTimes is x + sign·y. What is less than a day is added to the moment; months and
// days of a calendar move the zone's clock.
func sumOfTimes(k signature, sign int64, t expr.Type, zone *civil.Zone, overflow verdict) timeOp {
	add := func(x, y int64) (int64, bool) {
		if sign < 0 {
			d := x - y
			return d, (x^y)&(x^d) >= 0
		}
		return plus(x, y)
	}
	switch k {
	case signature{expr.Timestamp, expr.Interval, expr.Timestamp}, signature{expr.TimestampLTZ, expr.Interval, expr.TimestampLTZ}:
		return movedBy(add, moment)
	case signature{expr.Date, expr.Interval, expr.Timestamp}:
		move := movedBy(add, moment)
		return func(x, y int64) (int64, verdict) { return move(x*civil.Day, y) }
	case signature{expr.Timestamp, expr.MonthInterval, expr.Timestamp}, signature{expr.TimestampLTZ, expr.MonthInterval, expr.TimestampLTZ}:
		return func(x, y int64) (int64, verdict) {
			if y == 0 { // stays where it is, be it in an hour that the clock shows twice
				return x, ""
			}
			days, inDay := civil.Split(zone.Local(x))
			if days, ok := civil.AddMonths(days, sign*y); ok {
				return moment(zone.UTC(days*civil.Day + inDay))
			}
			return 0, outsideYears
		}
	case signature{expr.Date, expr.MonthInterval, expr.Timestamp}:
		return func(x, y int64) (int64, verdict) {
			days, ok := civil.AddMonths(x, sign*y)
			if !ok {
				return 0, outsideYears
			}
			return days * civil.Day, ""
		}
	case signature{expr.Date, expr.Int, expr.Date}:
		return movedBy(add, day)
	}
	differences := k == signature{expr.Date, expr.Date, expr.Int} || k == signature{expr.Timestamp, expr.Timestamp, expr.Interval} ||
		k == signature{expr.TimestampLTZ, expr.TimestampLTZ, expr.Interval}
	if differences && sign < 0 || rank(k[0]) == 1 && k[0] == k[1] && k[0] == k[2] {
		return spanTimes(t, overflow, add)
	}
	return nil
}

// movedBy adds, and checks that the result is in range.
func movedBy(add func(x, y int64) (int64, bool), check func(int64) (int64, verdict)) timeOp {
	return func(x, y int64) (int64, verdict) {
		z, ok := add(x, y)
		if !ok {
			return 0, outsideYears
		}
		return check(z)
	}
}
