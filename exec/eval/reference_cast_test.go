package eval

import (
	"encoding/hex"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/planner/civil"
	"weir/planner/expr"
)

// castable lists the kinds that are cast to a kind, beside STRING.
func castable(to expr.Kind) []expr.Kind {
	switch to {
	case expr.Int:
		return []expr.Kind{expr.Boolean, expr.BigInt, expr.Double, expr.Decimal}
	case expr.BigInt:
		return []expr.Kind{expr.Int, expr.Double, expr.Decimal}
	case expr.Double:
		return []expr.Kind{expr.Int, expr.BigInt, expr.Decimal}
	case expr.Decimal:
		return []expr.Kind{expr.Int, expr.BigInt, expr.Double}
	case expr.Boolean:
		return []expr.Kind{expr.Int}
	case expr.Date:
		return []expr.Kind{expr.Timestamp}
	case expr.Timestamp:
		return []expr.Kind{expr.Date}
	case expr.String:
		return []expr.Kind{expr.Boolean, expr.Int, expr.BigInt, expr.Double, expr.Decimal, expr.Bytes, expr.Date, expr.Timestamp, expr.Interval}
	}
	return nil
}

// referenceCast casts one value; the texts of dates and times are civil's, which has
// tests of its own.
func referenceCast(e *expr.Expr, a value, row int) (value, *RowError) {
	from, to := e.Args[0].Type, e.Type
	var v value
	ok := true
	switch {
	case from.Kind == to.Kind && to.Kind != expr.Decimal:
		v = a
	case to.Kind == expr.String:
		v.s = referenceText(from, a)
	case from.Kind == expr.String:
		v, ok = referenceParse(to, a.s)
	case to.Kind == expr.Boolean:
		v.b = a.n.Sign() != 0
	case from.Kind == expr.Boolean:
		v.n = big.NewInt(int64(one(a.b)))
	case from.Kind == expr.Date:
		v.n = new(big.Int).Mul(a.n, big.NewInt(86_400_000_000))
	case to.Kind == expr.Date:
		v.n = new(big.Int).Div(a.n, big.NewInt(86_400_000_000)) // Euclid's: by the floor
	case from.Kind == expr.Double:
		v, ok = referenceRound(to, a.f)
	case to.Kind == expr.Double:
		v.f, _ = strconv.ParseFloat(ratio(a.n, from.Scale).FloatString(from.Scale), 64)
	default:
		v.n = round(new(big.Int).Mul(a.n, pow10(to.Scale)), pow10(from.Scale))
	}
	if ok && v.n != nil && to.Numeric() {
		_, err := inRange(e, v.n, row)
		ok = err == nil
	}
	switch {
	case ok:
		return v, nil
	case e.Op == expr.OpTryCast:
		return value{null: true}, nil
	}
	return value{}, &RowError{Row: row, Text: e.Text}
}

func ratio(n *big.Int, scale int) *big.Rat { return new(big.Rat).SetFrac(n, pow10(scale)) }

func referenceText(t expr.Type, a value) string {
	switch t.Kind {
	case expr.Boolean:
		return strconv.FormatBool(a.b)
	case expr.Double:
		s := strconv.FormatFloat(a.f, 'e', -1, 64)
		_, exponent, ok := strings.Cut(s, "e")
		if n, _ := strconv.Atoi(exponent); ok && n >= -4 && n < 15 {
			s = strconv.FormatFloat(a.f, 'f', -1, 64)
		}
		return strings.Replace(strings.TrimPrefix(s, "+"), "Inf", "Infinity", 1)
	case expr.Decimal:
		return ratio(a.n, t.Scale).FloatString(t.Scale)
	case expr.Bytes:
		return `\x` + hex.EncodeToString([]byte(a.s))
	case expr.Date:
		return string(civil.AppendDate(nil, a.n.Int64()))
	case expr.Timestamp:
		return string(civil.AppendTimestamp(nil, a.n.Int64()))
	case expr.Interval:
		return string(civil.AppendInterval(nil, a.n.Int64()))
	}
	return a.n.String()
}

var (
	integerForm = regexp.MustCompile(`^[+-]?[0-9]+$`)
	numberForm  = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	specialForm = regexp.MustCompile(`^(?i)[+-]?(nan|inf|infinity)$`)
)

func referenceParse(to expr.Type, s string) (value, bool) {
	trimmed := strings.Trim(s, " \t\n\v\f\r")
	switch to.Kind {
	case expr.Boolean:
		yes := []string{"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"}
		no := []string{"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"}
		word := strings.ToLower(trimmed)
		return value{b: slices.Contains(yes, word)}, slices.Contains(yes, word) || slices.Contains(no, word)
	case expr.Int, expr.BigInt:
		n, ok := new(big.Int).SetString(trimmed, 10)
		return value{n: n}, ok && integerForm.MatchString(trimmed)
	case expr.Double:
		if special := strings.TrimLeft(trimmed, "+-"); specialForm.MatchString(trimmed) && strings.EqualFold(special, "nan") {
			return value{f: math.NaN()}, true
		}
		f, err := strconv.ParseFloat(trimmed, 64)
		return value{f: f}, err == nil && (specialForm.MatchString(trimmed) || numberForm.MatchString(trimmed))
	case expr.Decimal:
		r, ok := new(big.Rat).SetString(trimmed)
		if !ok || !numberForm.MatchString(trimmed) {
			return value{}, false
		}
		return value{n: round(new(big.Int).Mul(r.Num(), pow10(to.Scale)), r.Denom())}, true
	case expr.Bytes:
		if digits, ok := strings.CutPrefix(s, `\x`); ok {
			b, err := hex.DecodeString(digits)
			return value{s: string(b)}, err == nil
		}
		return value{s: s}, !strings.Contains(s, `\`)
	case expr.Date:
		n, problem := civil.ParseDate([]byte(s))
		return value{n: big.NewInt(n)}, problem == ""
	case expr.Timestamp:
		n, problem := civil.ParseTimestamp([]byte(s), to.Precision)
		return value{n: big.NewInt(n)}, problem == ""
	}
	months, n, problem := civil.ParseInterval([]byte(s))
	return value{n: big.NewInt(n)}, problem == "" && months == 0
}

// referenceRound makes a number of a double.
func referenceRound(to expr.Type, f float64) (value, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return value{}, false
	}
	if to.Kind != expr.Decimal {
		n, _ := new(big.Float).SetFloat64(math.RoundToEven(f)).Int(nil)
		return value{n: n}, true
	}
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', 14, 64))
	return value{n: round(new(big.Int).Mul(r.Num(), pow10(to.Scale)), r.Denom())}, true
}
