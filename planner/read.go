package planner

import (
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"

	"weir/planner/civil"
	"weir/planner/expr"
)

// Texts are read as values of a type in the forms that PostgreSQL takes as input.

// readLiteral reads a literal that meets a type: a DECIMAL keeps its own digits, a time
// up to six of a second.
func readLiteral(text string, t expr.Type, zone string) (e *expr.Expr, problem string) {
	switch t.Kind {
	case expr.Decimal:
		d, problem := decimalText(text)
		if problem != "" {
			return nil, problem
		}
		return decimalLiteral(d), ""
	case expr.Timestamp, expr.TimestampLTZ:
		full := t
		full.Precision = 6
		if e, problem = castText(text, full, zone); problem != "" {
			return nil, problem
		}
		full.Precision = max(t.Precision, fractionDigits(e.Literal.Int))
		return intLiteral(e.Literal.Int, full), ""
	}
	return castText(text, t, zone)
}

// fractionDigits counts the digits of a second's fraction without trailing zeros.
func fractionDigits(micros int64) int {
	n := 6
	for ; n > 0 && micros%10 == 0; n-- {
		micros /= 10
	}
	return n
}

// castText reads a text as CAST does: rounded to the type.
func castText(text string, t expr.Type, zone string) (e *expr.Expr, problem string) {
	switch t.Kind {
	case expr.String:
		return stringLiteral(text), ""
	case expr.Boolean:
		v, ok := booleanText(text)
		if !ok {
			return nil, "it is neither true nor false"
		}
		return boolLiteral(v), ""
	case expr.Int, expr.BigInt:
		return integerText(text, t)
	case expr.Double:
		return doubleText(text)
	case expr.Decimal:
		d, problem := decimalText(text)
		if problem != "" {
			return nil, problem
		}
		if d = d.rounded(t.Scale); !d.fitsIn(t) {
			return nil, outOfRange
		}
		return typedDecimal(d, t), ""
	case expr.Bytes:
		return bytesText(text)
	case expr.Interval, expr.MonthInterval:
		months, micros, problem := civil.ParseInterval([]byte(text))
		if problem != "" {
			return nil, string(problem)
		}
		return intervalOf(t.Kind, months, micros)
	}
	return timeText(text, t, zone)
}

const outOfRange = "it is out of range"

func timeText(text string, t expr.Type, zone string) (*expr.Expr, string) {
	var n int64
	var problem civil.Problem
	switch t.Kind {
	case expr.Date:
		n, problem = civil.ParseDate([]byte(text))
	case expr.Timestamp:
		n, problem = civil.ParseTimestamp([]byte(text), t.Precision)
	case expr.TimestampLTZ:
		z, err := civil.NewZone(zone)
		if err != nil {
			return nil, err.Error()
		}
		n, problem = civil.ParseTimestampLTZ([]byte(text), t.Precision, z)
	}
	if problem != "" {
		return nil, string(problem)
	}
	return intLiteral(n, t), ""
}

// intervalOf makes a literal of the parts of an interval, of which a type has one.
func intervalOf(k expr.Kind, months, micros int64) (*expr.Expr, string) {
	t := expr.Type{Kind: k}
	switch {
	case k == expr.Interval && months != 0:
		return nil, "it holds months; INTERVAL YEAR TO MONTH is a type of its own"
	case k == expr.MonthInterval && micros != 0:
		return nil, "it holds days or hours; INTERVAL DAY TO SECOND is a type of its own"
	case k == expr.Interval:
		return intLiteral(micros, t), ""
	}
	return intLiteral(months, t), ""
}

// convertTime gives a literal date or time as a type that holds it.
func convertTime(e *expr.Expr, to expr.Type, zone string) *expr.Expr {
	n := e.Literal.Int
	if e.Type.Kind == expr.Date {
		n *= civil.Day
	}
	if to.Kind == expr.TimestampLTZ && e.Type.Kind != to.Kind {
		z, err := civil.NewZone(zone)
		if err != nil {
			return nil
		}
		if n = z.UTC(n); n < civil.MinMicros || n > civil.MaxMicros {
			return nil
		}
	}
	return intLiteral(n, to)
}

// trimSpace removes the blanks that PostgreSQL does not see around a value.
func trimSpace(text string) string { return strings.Trim(text, " \t\n\v\f\r") }

// booleanText takes true, yes, on, 1 and their like, or a beginning of the words that
// only one of them has.
func booleanText(text string) (v, ok bool) {
	s := strings.ToLower(trimSpace(text))
	switch s {
	case "":
		return false, false
	case "1", "on":
		return true, true
	case "0", "of", "off":
		return false, true
	}
	begins := func(word string) bool { return strings.HasPrefix(word, s) }
	v = begins("true") || begins("yes")
	return v, v || begins("false") || begins("no")
}

func integerText(text string, t expr.Type) (*expr.Expr, string) {
	s := trimSpace(text)
	if !isNumber(s) || strings.ContainsAny(s, ".eE") {
		return nil, "it is not a whole number"
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || t.Kind == expr.Int && n != int64(int32(n)) {
		return nil, outOfRange
	}
	return intLiteral(n, t), ""
}

func doubleText(text string) (*expr.Expr, string) {
	s := strings.ToLower(trimSpace(text))
	switch strings.TrimLeft(s, "+-") {
	case "nan", "infinity", "inf":
		if len(s)-len(strings.TrimLeft(s, "+-")) > 1 {
			return nil, "it is not a number"
		}
	default:
		if digits, ok := strings.CutPrefix(withoutSign(s), "0x"); ok {
			return hexDouble(s, digits)
		}
		if !isNumber(s) {
			return nil, "it is not a number"
		}
	}
	if strings.HasSuffix(s, "nan") {
		s = "nan"
	}
	f, err := strconv.ParseFloat(s, 64)
	mantissa, _, _ := strings.Cut(s, "e")
	if err != nil || f == 0 && strings.ContainsAny(mantissa, "123456789") {
		return nil, outOfRange
	}
	return doubleLiteral(f), ""
}

// hexDouble reads hexadecimal digits with an optional point and power of two.
func hexDouble(s, digits string) (*expr.Expr, string) {
	mantissa, _, power := strings.Cut(digits, "p")
	if !power {
		s += "p0"
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax), strings.Contains(s, "_"):
		return nil, "it is not a number"
	case err != nil, f == 0 && strings.Trim(mantissa, "0.") != "":
		return nil, outOfRange
	}
	return doubleLiteral(f), ""
}

func decimalText(text string) (decimal, string) {
	s := trimSpace(text)
	if !isNumber(s) {
		return decimal{}, "it is not a number"
	}
	d, ok := parseDecimal(strings.TrimPrefix(s, "+"))
	if !ok {
		return decimal{}, outOfRange
	}
	return d, ""
}

// isNumber reports whether s is digits with an optional sign, point and exponent.
func isNumber(s string) bool {
	m, exponent, scientific := strings.Cut(strings.ToLower(withoutSign(s)), "e")
	whole, fraction, _ := strings.Cut(m, ".")
	return digitsOnly(whole+fraction) && (!scientific || digitsOnly(withoutSign(exponent)))
}

// withoutSign takes one sign off.
func withoutSign(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

func digitsOnly(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// bytesText takes \x and hexadecimal digits, which blanks may part, or text in which \\
// is a backslash and \ooo a byte.
func bytesText(text string) (*expr.Expr, string) {
	if digits, ok := strings.CutPrefix(text, `\x`); ok {
		pairs := strings.Fields(digits)
		for _, p := range pairs {
			if len(p)%2 != 0 {
				return hexLiteral(p)
			}
		}
		return hexLiteral(strings.Join(pairs, ""))
	}
	var b []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b = append(b, text[i])
			continue
		}
		if strings.HasPrefix(text[i:], `\\`) {
			b = append(b, '\\')
			i++
			continue
		}
		n, err := strconv.ParseUint(text[min(i+1, len(text)):min(i+4, len(text))], 8, 16)
		if err != nil || i+4 > len(text) || n > math.MaxUint8 {
			return nil, `a backslash stands before another one, before x, or before three octal digits`
		}
		b = append(b, byte(n))
		i += 3
	}
	return bytesLiteral(hex.EncodeToString(b)), ""
}

func hexLiteral(digits string) (*expr.Expr, string) {
	if _, err := hex.DecodeString(digits); err != nil {
		return nil, "it is not pairs of hexadecimal digits"
	}
	return bytesLiteral(strings.ToLower(digits)), ""
}
