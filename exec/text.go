package exec

import (
	"encoding/base64"
	"math"
	"strconv"

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
)

// AppendText appends row i of a column, which is not NULL, as plain text of its SQL
// type: what AppendJSON appends, without quotes and escapes. These two are the one place
// where values of results become text:
//
//	BYTES                   base64
//	DATE                    2017-11-25
//	TIMESTAMP               2017-11-25T01:00:00.5, the fraction without trailing zeros
//	TIMESTAMP_LTZ           2017-11-25T01:00:00.5Z, in UTC
//	INTERVAL DAY TO SECOND  1 day 02:03:04.5, as PostgreSQL prints it
//	INTERVAL YEAR TO MONTH  1 year 2 mons
func AppendText(dst []byte, t expr.Type, v *batch.Vector, i int) []byte {
	switch t.Kind {
	case expr.Boolean:
		return strconv.AppendBool(dst, v.Bools[i])
	case expr.Double:
		return appendDouble(dst, v.Floats[i])
	case expr.Decimal:
		return v.Decimals[i].AppendDecimal(dst, t.Scale)
	case expr.String:
		return append(dst, v.Str(i)...)
	case expr.Bytes:
		return base64.StdEncoding.AppendEncode(dst, v.Str(i))
	case expr.Date:
		return civil.AppendDate(dst, v.Ints[i])
	case expr.Timestamp:
		return civil.AppendISO(dst, v.Ints[i])
	case expr.TimestampLTZ:
		return append(civil.AppendISO(dst, v.Ints[i]), 'Z')
	case expr.Interval:
		return civil.AppendInterval(dst, v.Ints[i])
	case expr.MonthInterval:
		return civil.AppendMonths(dst, v.Ints[i])
	default:
		return AppendWhole(dst, v.Ints[i])
	}
}

// appendDouble appends the shortest digits that read back the same: plain ones from
// 1e-6 up to 1e21, else with an exponent.
func appendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}
