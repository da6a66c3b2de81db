package exec

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"weir/exec/batch"
	"weir/planner/expr"
)

// AppendJSON appends row i of a column as a JSON value of its SQL type: numbers as
// exact JSON numbers, NaN and the infinities as strings, TIMESTAMP_LTZ in UTC
// ("2017-11-25T01:00:00Z", a fraction only where there is one). It is the one place
// where values become JSON.
func AppendJSON(dst []byte, t expr.Type, v *batch.Vector, i int) []byte {
	if v.Null(i) {
		return append(dst, "null"...)
	}
	switch t.Kind {
	case expr.Boolean:
		return strconv.AppendBool(dst, v.Bools[i])
	case expr.Double:
		return AppendJSONDouble(dst, v.Floats[i])
	case expr.Decimal:
		return v.Decimals[i].AppendDecimal(dst, t.Scale)
	case expr.String:
		return AppendJSONString(dst, v.Str(i))
	case expr.TimestampLTZ:
		return AppendJSONTime(dst, v.Ints[i])
	default:
		return strconv.AppendInt(dst, v.Ints[i], 10)
	}
}

// AppendJSONDouble appends the shortest number that reads back as f; "NaN",
// "Infinity" and "-Infinity" are strings.
func AppendJSONDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}

// AppendJSONTime appends a moment, microseconds since 1970, as a string in UTC.
func AppendJSONTime(dst []byte, micros int64) []byte {
	dst = append(dst, '"')
	dst = time.UnixMicro(micros).UTC().AppendFormat(dst, "2006-01-02T15:04:05.999999Z07:00")
	return append(dst, '"')
}

// AppendJSONString appends s, valid UTF-8, in quotes; only what JSON demands is
// escaped, so that all other bytes come out as they went in.
func AppendJSONString(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf || c >= utf8.RuneSelf {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"')
}
