package planner

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"weir/planner/expr"
)

// Constructors of literals.

func boolLiteral(v bool) *expr.Expr {
	return &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.Boolean}, Literal: &expr.Literal{Bool: v}}
}

func intLiteral(v int64, t expr.Type) *expr.Expr {
	return &expr.Expr{Op: expr.OpLiteral, Type: t, Literal: &expr.Literal{Int: v}}
}

func doubleLiteral(v float64) *expr.Expr {
	text := strconv.FormatFloat(v, 'g', -1, 64)
	switch {
	case math.IsInf(v, 1):
		text = "Infinity"
	case math.IsInf(v, -1):
		text = "-Infinity"
	}
	return &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.Double}, Literal: &expr.Literal{Double: text}}
}

func decimalLiteral(d decimal) *expr.Expr {
	return &expr.Expr{Op: expr.OpLiteral, Type: expr.DecimalType(d.scale), Literal: &expr.Literal{Decimal: d.String()}}
}

// typedDecimal is decimalLiteral of a DECIMAL of fewer digits.
func typedDecimal(d decimal, t expr.Type) *expr.Expr {
	return &expr.Expr{Op: expr.OpLiteral, Type: t, Literal: &expr.Literal{Decimal: d.String()}}
}

// bytesLiteral takes hexadecimal digits.
func bytesLiteral(digits string) *expr.Expr {
	return &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.Bytes}, Literal: &expr.Literal{String: digits}}
}

func stringLiteral(v string) *expr.Expr {
	return &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.String}, Literal: &expr.Literal{String: v}}
}

func nullLiteral(t expr.Type) *expr.Expr { return &expr.Expr{Op: expr.OpLiteral, Type: t} }

func isLiteral(e *expr.Expr) bool { return e.Op == expr.OpLiteral }
func isNull(e *expr.Expr) bool    { return e.Op == expr.OpLiteral && e.Literal == nil }

// isBool reports whether e is the literal TRUE, or FALSE.
func isBool(e *expr.Expr, v bool) bool {
	return isLiteral(e) && e.Literal != nil && e.Type.Kind == expr.Boolean && e.Literal.Bool == v
}

// A decimal is an exact number: unscaled / 10^scale.
type decimal struct {
	unscaled *big.Int
	scale    int
}

// maxDigits is the precision of every DECIMAL.
const maxDigits = 38

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// fits reports whether d has at most 38 digits.
func (d decimal) fits() bool {
	return d.scale <= maxDigits && new(big.Int).Abs(d.unscaled).Cmp(pow10(maxDigits)) < 0
}

// fitsIn reports whether d, of the scale of t, has no more digits than t.
func (d decimal) fitsIn(t expr.Type) bool {
	return new(big.Int).Abs(d.unscaled).Cmp(pow10(t.Precision)) < 0
}

// at gives d at a scale that is no smaller.
func (d decimal) at(scale int) decimal {
	return decimal{new(big.Int).Mul(d.unscaled, pow10(scale-d.scale)), scale}
}

// rounded gives d at a scale, halves rounded away from zero.
func (d decimal) rounded(scale int) decimal {
	if scale >= d.scale {
		return d.at(scale)
	}
	unit := pow10(d.scale - scale)
	q, r := new(big.Int).QuoRem(d.unscaled, unit, new(big.Int))
	if r.Abs(r).Lsh(r, 1).Cmp(unit) >= 0 {
		q.Add(q, big.NewInt(int64(d.unscaled.Sign())))
	}
	return decimal{q, scale}
}

// String gives all digits, as many behind the point as the scale says.
func (d decimal) String() string {
	text := new(big.Int).Abs(d.unscaled).String()
	if pad := d.scale + 1 - len(text); pad > 0 {
		text = strings.Repeat("0", pad) + text
	}
	if d.scale > 0 {
		text = text[:len(text)-d.scale] + "." + text[len(text)-d.scale:]
	}
	if d.unscaled.Sign() < 0 {
		text = "-" + text
	}
	return text
}

// parseDecimal reads digits with an optional sign, point and exponent. ok is false
// where the number does not fit a DECIMAL.
func parseDecimal(text string) (d decimal, ok bool) {
	mantissa, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		n, err := strconv.Atoi(text[i+1:])
		if err != nil || n < -100 || n > 100 {
			return decimal{}, false
		}
		mantissa, exponent = text[:i], n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	unscaled, valid := new(big.Int).SetString(whole+fraction, 10)
	if !valid {
		return decimal{}, false
	}
	d = decimal{unscaled, len(fraction) - exponent}
	if d.scale < 0 {
		d = d.at(0)
	}
	return d, d.fits()
}

// number gives a number its type: INT, BIGINT or DECIMAL(38, 0) for whole numbers, the
// first that it fits; DECIMAL for others; DOUBLE where a DECIMAL has no room for it.
// ok is false where even a DOUBLE has none.
func number(text string) (e *expr.Expr, ok bool) {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return intLiteral(n, intType(n)), true
		}
		d, fits := parseDecimal(text)
		if !fits {
			return nil, false
		}
		return decimalLiteral(d), true
	}
	if d, fits := parseDecimal(text); fits {
		return decimalLiteral(d), true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, false
	}
	return doubleLiteral(f), true
}

func intType(n int64) expr.Type {
	if n == int64(int32(n)) {
		return expr.Type{Kind: expr.Int}
	}
	return expr.Type{Kind: expr.BigInt}
}

// literalDecimal gives the exact value of a literal of INT, BIGINT or DECIMAL.
func literalDecimal(e *expr.Expr) decimal {
	if e.Type.Kind != expr.Decimal {
		return decimal{big.NewInt(e.Literal.Int), 0}
	}
	d, _ := parseDecimal(e.Literal.Decimal) // made by decimalLiteral
	return d
}

// literalDouble gives the value of a literal of any numeric type.
func literalDouble(e *expr.Expr) float64 {
	text := e.Literal.Double
	if e.Type.Kind != expr.Double {
		text = literalDecimal(e).String()
	}
	f, _ := strconv.ParseFloat(text, 64) // digits, or made by doubleLiteral
	return f
}
