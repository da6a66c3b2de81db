package eval

import (
	"encoding/hex"
	"strconv"

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
)

// toText casts to STRING: PostgreSQL's texts.
func (c *caster) toText() kernel {
	return func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		v := args[0]
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			return appendAsText(dst, c.from, v, row, c.zone), ""
		})
	}
}

// appendAsText appends a value that is not NULL as PostgreSQL writes it.
func appendAsText(dst []byte, t expr.Type, v *batch.Vector, row int, zone *civil.Zone) []byte {
	switch t.Kind {
	case expr.Boolean:
		return strconv.AppendBool(dst, v.Bools[row])
	case expr.Double:
		return appendDouble(dst, v.Floats[row])
	case expr.Decimal:
		return v.Decimals[row].AppendDecimal(dst, t.Scale)
	case expr.String:
		return append(dst, v.Str(row)...)
	case expr.Bytes:
		return hex.AppendEncode(append(dst, '\\', 'x'), v.Str(row))
	case expr.Date:
		return civil.AppendDate(dst, v.Ints[row])
	case expr.Timestamp:
		return civil.AppendTimestamp(dst, v.Ints[row])
	case expr.TimestampLTZ:
		return civil.AppendTimestampLTZ(dst, v.Ints[row], zone)
	case expr.Interval:
		return civil.AppendInterval(dst, v.Ints[row])
	case expr.MonthInterval:
		return civil.AppendMonths(dst, v.Ints[row])
	}
	return strconv.AppendInt(dst, v.Ints[row], 10)
}

// fromText casts from STRING: what PostgreSQL reads.
func (c *caster) fromText() kernel {
	switch c.to.Kind {
	case expr.Boolean:
		return castFill(c, bools, func(v *batch.Vector, row int) (bool, civil.Problem) { return parseBool(v.Str(row)) })
	case expr.Int:
		return castFill(c, ints, func(v *batch.Vector, row int) (int64, civil.Problem) {
			x, problem := parseInt(v.Str(row))
			if problem == "" && x != int64(int32(x)) {
				problem = outOfRange
			}
			return x, problem
		})
	case expr.BigInt:
		return castFill(c, ints, func(v *batch.Vector, row int) (int64, civil.Problem) { return parseInt(v.Str(row)) })
	case expr.Double:
		return castFill(c, doubles, func(v *batch.Vector, row int) (float64, civil.Problem) { return parseDouble(v.Str(row)) })
	case expr.Decimal:
		return castFill(c, decimals, func(v *batch.Vector, row int) (batch.Int128, civil.Problem) {
			return c.within(parseDecimal(v.Str(row), c.to.Scale))
		})
	case expr.Bytes:
		return c.textToBytes()
	}
	return c.timeFromText()
}

func (c *caster) textToBytes() kernel {
	return func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		v := args[0]
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			dst, problem := appendBytes(dst, v.Str(row))
			if problem != "" {
				return dst, c.verdict(v, row, problem)
			}
			return dst, ""
		})
	}
}

func (c *caster) timeFromText() kernel {
	switch c.to.Kind {
	case expr.Date:
		return castFill(c, ints, func(v *batch.Vector, row int) (int64, civil.Problem) { return civil.ParseDate(v.Str(row)) })
	case expr.Timestamp:
		return castFill(c, ints, func(v *batch.Vector, row int) (int64, civil.Problem) {
			return civil.ParseTimestamp(v.Str(row), c.to.Precision)
		})
	case expr.TimestampLTZ:
		return castFill(c, ints, func(v *batch.Vector, row int) (int64, civil.Problem) {
			return civil.ParseTimestampLTZ(v.Str(row), c.to.Precision, c.zone)
		})
	case expr.Interval:
		return castFill(c, ints, func(v *batch.Vector, row int) (int64, civil.Problem) {
			months, micros, problem := civil.ParseInterval(v.Str(row))
			if problem == "" && months != 0 {
				problem = "it has years or months"
			}
			return micros, problem
		})
	case expr.MonthInterval:
		return castFill(c, ints, func(v *batch.Vector, row int) (int64, civil.Problem) {
			months, micros, problem := civil.ParseInterval(v.Str(row))
			if problem == "" && micros != 0 {
				problem = "it has days or a time"
			}
			return months, problem
		})
	}
	return nil
}
