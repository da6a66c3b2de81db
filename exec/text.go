package exec

import (
	"math"
	"strconv"

	"weir/exec/batch"
	"weir/planner/expr"
)

// AppendText appends row i of a column, which is not NULL, as plain text of its SQL
// type: what AppendJSON appends, without quotes and escapes. These two are the one place
// where values become text.
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
	case expr.TimestampLTZ:
		return appendTimestamp(dst, v.Ints[i])
	default:
		return strconv.AppendInt(dst, v.Ints[i], 10)
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

// appendTimestamp appends microseconds since 1970 in ISO 8601, in UTC.
func appendTimestamp(dst []byte, micros int64) []byte {
	seconds, fraction := micros/1e6, micros%1e6
	if fraction < 0 {
		seconds, fraction = seconds-1, fraction+1e6
	}
	days, second := seconds/86400, seconds%86400
	if second < 0 {
		days, second = days-1, second+86400
	}
	year, month, day := civil(days)
	if year < 0 {
		dst, year = append(dst, '-'), -year
	}
	dst = appendDigits(dst, year, 4)
	dst = appendDigits(append(dst, '-'), month, 2)
	dst = appendDigits(append(dst, '-'), day, 2)
	dst = appendDigits(append(dst, 'T'), second/3600, 2)
	dst = appendDigits(append(dst, ':'), second/60%60, 2)
	dst = appendDigits(append(dst, ':'), second%60, 2)
	if fraction != 0 {
		dst = appendDigits(append(dst, '.'), fraction, 6)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, 'Z')
}

// appendDigits appends n ≥ 0 with leading zeros up to a width.
func appendDigits(dst []byte, n int64, width int) []byte {
	limit := int64(10)
	for w := 1; w < width; w++ {
		if n < limit {
			dst = append(dst, '0')
		}
		limit *= 10
	}
	return strconv.AppendInt(dst, n, 10)
}

// civil turns days since 1970 into a date of the proleptic Gregorian calendar. Years
// begin in March within, so that a leap day ends one; 400 of them have 146097 days.
func civil(days int64) (year, month, day int64) {
	days += 719468
	era := days / 146097
	if days < 0 {
		era = (days - 146096) / 146097
	}
	inEra := days - era*146097
	y := (inEra - inEra/1460 + inEra/36524 - inEra/146096) / 365
	inYear := inEra - (365*y + y/4 - y/100)
	m := (5*inYear + 2) / 153
	year, month, day = era*400+y, m+3, inYear-(153*m+2)/5+1
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}
