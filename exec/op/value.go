package op

import (
	"math"

	"weir/exec/batch"
	"weir/planner/expr"
)

// appendPartial appends w to the accumulator's partial columns (expr.Aggregate.Partial) and
// returns the rest. Kinds with parts are not its business.
func (a *accumulator) appendPartial(cols []batch.Vector, w []uint64) []batch.Vector {
	switch a.kind {
	case countRows, countValues:
		cols[0].AppendInt(int64(w[0]))
		return cols[1:]
	case truths:
		cols[0].AppendInt(int64(w[0]))
		cols[1].AppendInt(int64(w[1]))
		return cols[2:]
	case sumDoubles:
		cols[0].AppendFloat(math.Float64frombits(w[0]))
		cols[1].AppendFloat(math.Float64frombits(w[1]))
		for i := 2; i < 6; i++ {
			cols[i].AppendInt(int64(w[i]))
		}
		cols = cols[6:]
	case sumInts, sumDecimals:
		if w[2] == 0 {
			cols[0].AppendNull()
		} else {
			cols[0].AppendDecimal(batch.Int128{Lo: w[0], Hi: int64(w[1])})
		}
		cols = cols[1:]
	default:
		a.appendLeast(&cols[0], w, nil)
		return cols[1:]
	}
	if a.average {
		cols[0].AppendInt(int64(w[2]))
		cols = cols[1:]
	}
	return cols
}

// appendFinal appends the aggregate's value to its output column; part is its byte string.
func (a *accumulator) appendFinal(v *batch.Vector, w []uint64, part []byte) error {
	switch a.kind {
	case countRows, countValues, sketches:
		v.AppendInt(int64(w[0]))
	case sumDoubles:
		switch {
		case w[2] == 0:
			v.AppendNull()
		case a.average:
			v.AppendFloat(double(w) / float64(w[2]))
		default:
			v.AppendFloat(double(w))
		}
	case sumInts, sumDecimals:
		if a.average {
			return a.appendAverage(v, w)
		}
		return a.appendExact(v, w)
	case truths:
		switch {
		case w[0] == 0 && w[1] == 0:
			v.AppendNull()
		case a.or:
			v.AppendBool(w[0] > 0)
		default:
			v.AppendBool(w[1] == 0)
		}
	default:
		a.appendLeast(v, w, part)
	}
	return nil
}

// appendLeast appends the value of MIN or MAX.
func (a *accumulator) appendLeast(v *batch.Vector, w []uint64, part []byte) {
	switch seen := a.words() - 1; {
	case a.kind == leastStrings && w[0] == 0, a.kind != leastStrings && w[seen] == 0:
		v.AppendNull()
	case a.kind == leastInts:
		v.AppendInt(int64(w[0]) ^ a.flip)
	case a.kind == leastBools:
		v.AppendBool(int64(w[0])^a.flip != 0)
	case a.kind == leastFloats:
		v.AppendFloat(ofOrder(int64(w[0]) ^ a.flip))
	case a.kind == leastDecimal:
		v.AppendDecimal(batch.Int128{Lo: w[0] ^ uint64(a.flip), Hi: int64(w[1]) ^ a.flip})
	default:
		v.AppendBytes(part)
	}
}

// fits sees that an exact sum fits its type.
func (a *accumulator) fits(w []uint64) error {
	fits := w[1] == uint64(int64(w[0])>>63)
	if a.typ.Kind == expr.Decimal {
		sum := batch.Int128{Lo: w[0], Hi: int64(w[1])}
		fits = sum.Cmp(a.top) < 0 && sum.Cmp(a.bottom) > 0
	}
	if !fits {
		return a.overflow(a.typ.String())
	}
	return nil
}

func (a *accumulator) appendExact(v *batch.Vector, w []uint64) error {
	if err := a.fits(w); err != nil {
		return err
	}
	switch {
	case w[2] == 0:
		v.AppendNull()
	case a.typ.Kind == expr.Decimal:
		v.AppendDecimal(batch.Int128{Lo: w[0], Hi: int64(w[1])})
	default:
		v.AppendInt(int64(w[0]))
	}
	return nil
}

// appendAverage divides the exact sum: rounded once, to the nearest double, or half away
// from zero to the scale of a DECIMAL.
func (a *accumulator) appendAverage(v *batch.Vector, w []uint64) error {
	sum := batch.Int128{Lo: w[0], Hi: int64(w[1])}
	switch {
	case w[2] == 0:
		v.AppendNull()
	case a.typ.Kind == expr.Double:
		v.AppendFloat(sum.QuoFloat64(int64(w[2])))
	default:
		mean, ok := sum.MulDivRound(a.up, batch.Int128Of(int64(w[2])))
		if !ok || mean.Cmp(a.top) >= 0 || mean.Cmp(a.bottom) <= 0 {
			return a.overflow(a.typ.String())
		}
		v.AppendDecimal(mean)
	}
	return nil
}
