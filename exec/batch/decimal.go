package batch

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxPrecision is the largest number of digits of a decimal.
const MaxPrecision = 38

// Pow10 returns 10^n for n in [0, MaxPrecision].
func Pow10(n int) Int128 {
	p := Int128Of(shortPow10(min(n, chunkDigits)))
	for n -= chunkDigits; n > 0; n -= chunkDigits {
		p, _ = p.MulInt64(shortPow10(min(n, chunkDigits)))
	}
	return p
}

// shortPow10 returns 10^n for n up to chunkDigits.
func shortPow10(n int) int64 {
	p := int64(1)
	for ; n > 0; n-- {
		p *= 10
	}
	return p
}

// Fits reports whether a has at most precision decimal digits.
func (a Int128) Fits(precision int) bool {
	p := Pow10(precision)
	n, _ := p.Neg()
	return a.Cmp(p) < 0 && a.Cmp(n) > 0
}

// ParseDecimal reads plain decimal digits with an optional sign, point and exponent
// ("-12.5", ".5", "1e3"), as an unscaled value at scale. It fails where digits behind the
// scale would be lost or the value has more than MaxPrecision digits; zeros that say nothing
// are no digits.
func ParseDecimal(text string, scale int) (Int128, error) {
	mantissa, exponent, ok := splitExponent(text)
	if !ok {
		return Int128{}, fmt.Errorf("%q has a bad exponent", text)
	}
	digits, negative := strings.CutPrefix(mantissa, "-")
	if !negative {
		digits = strings.TrimPrefix(mantissa, "+")
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole == "" && fraction == "" || !areDigits(whole) || !areDigits(fraction) {
		return Int128{}, fmt.Errorf("%q is not a decimal number", text)
	}
	u, fit := DecimalOf(negative, whole, fraction, exponent, scale)
	switch fit {
	case Inexact:
		return Int128{}, fmt.Errorf("%q has digits behind scale %d", text, scale)
	case TooLarge:
		return Int128{}, fmt.Errorf("%q has more than %d digits at scale %d", text, MaxPrecision, scale)
	}
	return u, nil
}

func areDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// MaxExponent is beyond every exponent that matters: larger ones may be taken for it.
const MaxExponent = 1e6

func splitExponent(text string) (mantissa string, exponent int, ok bool) {
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return text, 0, true
	}
	exponent, err := strconv.Atoi(text[i+1:])
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return "", 0, false
	}
	return text[:i], max(-MaxExponent, min(exponent, MaxExponent)), true
}

// A Fit says whether a number is a decimal of a scale.
type Fit uint8

// The answers of DecimalOf.
const (
	Exact    Fit = iota
	Inexact      // it has digits behind the scale
	TooLarge     // it has more than MaxPrecision digits
)

// DecimalOf returns ±whole.fraction × 10^exponent as an unscaled value at scale. whole and
// fraction hold decimal digits and nothing else, and may be empty; exponent is at most
// MaxExponent either way. It allocates nothing.
func DecimalOf[T string | []byte](negative bool, whole, fraction T, exponent, scale int) (Int128, Fit) {
	shift := scale + exponent - len(fraction) // zeros to append; negative: digits to drop
	for len(whole) > 0 && whole[0] == '0' {
		whole = whole[1:]
	}
	for len(whole) == 0 && len(fraction) > 0 && fraction[0] == '0' {
		fraction = fraction[1:]
	}
	for ; shift < 0 && len(fraction) > 0 && fraction[len(fraction)-1] == '0'; shift++ {
		fraction = fraction[:len(fraction)-1]
	}
	for ; shift < 0 && len(fraction) == 0 && len(whole) > 0 && whole[len(whole)-1] == '0'; shift++ {
		whole = whole[:len(whole)-1]
	}
	switch n := len(whole) + len(fraction); {
	case n == 0:
		return Int128{}, Exact
	case shift < 0:
		return Int128{}, Inexact
	case n+shift > MaxPrecision:
		return Int128{}, TooLarge
	case n+shift <= chunkDigits:
		x := int64(appendDigits(appendDigits(0, whole), fraction))
		for ; shift > 0; shift-- {
			x *= 10
		}
		if negative {
			x = -x
		}
		return Int128Of(x), Exact
	}
	u := appendChunks(appendChunks(Int128{}, whole), fraction)
	u, _ = u.Mul(Pow10(shift)) // it has at most MaxPrecision digits
	if negative {
		u, _ = u.Neg()
	}
	return u, Exact
}

// chunkDigits are as many as an int64 holds, whatever they are.
const chunkDigits = 18

// appendDigits appends decimal digits to a number; together they are at most chunkDigits.
func appendDigits[T string | []byte](u uint64, digits T) uint64 {
	for i := range len(digits) {
		u = u*10 + uint64(digits[i]-'0')
	}
	return u
}

// appendChunks appends decimal digits to a number; together they are at most MaxPrecision.
func appendChunks[T string | []byte](u Int128, digits T) Int128 {
	for len(digits) > 0 {
		n := min(len(digits), chunkDigits)
		u, _ = u.Mul(Pow10(n))
		u, _ = u.AddInt64(int64(appendDigits(0, digits[:n])))
		digits = digits[n:]
	}
	return u
}

// AppendDecimal appends the decimal text of an unscaled value at scale: "-12.50".
func (a Int128) AppendDecimal(dst []byte, scale int) []byte {
	const chunk = 1_000_000_000_000_000_000 // chunkDigits of them
	u := a.abs()
	var digits [48]byte
	at := len(digits)
	for n := 0; u != (uint128{}) || n <= scale; {
		q, r := div256([4]uint64{u.lo, u.hi}, uint128{0, chunk})
		for k, low := 0, r.lo; k < 18 && (q[0]|q[1]|low != 0 || n <= scale); k++ {
			at--
			digits[at] = byte('0' + low%10)
			low /= 10
			n++
		}
		u = uint128{q[1], q[0]}
	}
	if a.Hi < 0 {
		dst = append(dst, '-')
	}
	point := len(digits) - scale
	dst = append(dst, digits[at:point]...)
	if scale > 0 {
		dst = append(append(dst, '.'), digits[point:]...)
	}
	return dst
}

// Decimal returns the decimal text of an unscaled value at scale.
func (a Int128) Decimal(scale int) string { return string(a.AppendDecimal(nil, scale)) }

// Float64 returns the double nearest to the unscaled value a at scale.
func (a Int128) Float64(scale int) float64 {
	if x, ok := a.Int64(); ok && scale <= 22 && x > -1<<53 && x < 1<<53 {
		return float64(x) / math.Pow10(scale) // both exact: one rounding
	}
	var text [64]byte
	f, _ := strconv.ParseFloat(string(a.AppendDecimal(text[:0], scale)), 64) // digits always parse
	return f
}
