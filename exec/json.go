package exec

import (
	"weir/exec/batch"
	"weir/planner/expr"
)

// AppendJSON appends row i of a column as a JSON value of its SQL type: numbers as
// exact JSON numbers, NaN and the infinities as strings, and so BYTES, dates, times and
// intervals, as AppendText has them.
func AppendJSON(dst []byte, t expr.Type, v *batch.Vector, i int) []byte {
	switch {
	case v.Null(i):
		return append(dst, "null"...)
	case t.Kind == expr.String:
		return AppendJSONString(dst, v.Str(i))
	case t.Kind >= expr.TimestampLTZ, // Bytes, dates, times and intervals
		t.Kind == expr.Double && v.Floats[i]-v.Floats[i] != 0: // NaN, ±Infinity
		return append(AppendText(append(dst, '"'), t, v, i), '"')
	default:
		return AppendText(dst, t, v, i)
	}
}

// AppendJSONString appends s, valid UTF-8, in quotes; only what JSON demands is
// escaped, so that all other bytes come out as they went in.
func AppendJSONString(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
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
