package eval

import (
	"math"
	"strconv"

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
)

// betweenNumbers casts numbers: doubles round to integers with halves to even, decimals
// with halves away from zero.
func (c *caster) betweenNumbers() kernel {
	switch c.from.Kind {
	case expr.Double:
		return c.fromDouble()
	case expr.Decimal:
		return c.fromDecimal()
	}
	switch c.to.Kind {
	case expr.Double:
		return func(out *batch.Vector, args []*batch.Vector, _ []int32) (int, verdict) {
			for i, x := range args[0].Ints[:len(out.Floats)] {
				out.Floats[i] = float64(x)
			}
			return 0, ""
		}
	case expr.Decimal:
		mul := batch.Pow10(c.to.Scale)
		return castFill(c, decimals, func(v *batch.Vector, row int) (batch.Int128, civil.Problem) {
			d, ok := mul.MulInt64(v.Ints[row])
			return c.withinIf(d, ok)
		})
	}
	return castFill(c, ints, func(v *batch.Vector, row int) (int64, civil.Problem) {
		return c.fitting(v.Ints[row])
	})
}

// fitting checks an integer that is to be an INT or BIGINT.
func (c *caster) fitting(x int64) (int64, civil.Problem) {
	if c.to.Kind == expr.Int && x != int64(int32(x)) {
		return x, outOfRange
	}
	return x, ""
}

// within checks that a decimal has no more digits than its new type.
func (c *caster) within(d batch.Int128, problem civil.Problem) (batch.Int128, civil.Problem) {
	if problem == "" && (d.Cmp(c.above) >= 0 || d.Cmp(c.below) <= 0) {
		problem = outOfRange
	}
	return d, problem
}

func (c *caster) withinIf(d batch.Int128, ok bool) (batch.Int128, civil.Problem) {
	if !ok {
		return d, outOfRange
	}
	return c.within(d, "")
}

func (c *caster) fromDouble() kernel {
	if c.to.Kind == expr.Decimal {
		return castFill(c, decimals, func(v *batch.Vector, row int) (batch.Int128, civil.Problem) {
			return c.within(doubleToDecimal(v.Floats[row], c.to.Scale))
		})
	}
	return castFill(c, ints, func(v *batch.Vector, row int) (int64, civil.Problem) {
		f := math.RoundToEven(v.Floats[row])
		if !(f >= math.MinInt64 && f < -math.MinInt64) { // nor NaN
			return 0, outOfRange
		}
		return c.fitting(int64(f))
	})
}

// doubleToDecimal takes the 15 digits of a double that its decimal text is sure of, as
// PostgreSQL does: 0.1 is 0.1.
func doubleToDecimal(f float64, scale int) (batch.Int128, civil.Problem) {
	if f-f != 0 {
		if f != f {
			return batch.Int128{}, "a DECIMAL is a number"
		}
		return batch.Int128{}, outOfRange
	}
	var buffer [32]byte
	return parseDecimal(strconv.AppendFloat(buffer[:0], f, 'e', 14, 64), scale)
}

func (c *caster) fromDecimal() kernel {
	from, to := c.from.Scale, c.to.Scale
	switch c.to.Kind {
	case expr.Double:
		return castFill(c, doubles, func(v *batch.Vector, row int) (float64, civil.Problem) {
			return v.Decimals[row].Float64(from), ""
		})
	case expr.Decimal:
		mul, div := batch.Pow10(max(to-from, 0)), batch.Pow10(max(from-to, 0))
		return castFill(c, decimals, func(v *batch.Vector, row int) (batch.Int128, civil.Problem) {
			d, ok := v.Decimals[row].MulDivRound(mul, div)
			return c.withinIf(d, ok)
		})
	}
	unit, whole := batch.Int128Of(1), batch.Pow10(from)
	return castFill(c, ints, func(v *batch.Vector, row int) (int64, civil.Problem) {
		d, _ := v.Decimals[row].MulDivRound(unit, whole)
		x, ok := d.Int64()
		if !ok {
			return x, outOfRange
		}
		return c.fitting(x)
	})
}
