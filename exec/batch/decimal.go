package batch

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxPrecision is the largest number of digits of a decimal.
const MaxPrecision = 38

// Pow10 returns 10^n for n in [0, MaxPrecision].
func Pow10(n int) Int128 {
	p := Int128Of(1)
	for ; n >= 18; n -= 18 {
		p, _ = p.MulInt64(1_000_000_000_000_000_000)
	}
	for ; n > 0; n-- {
		p, _ = p.MulInt64(10)
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
// ("-12.5", "1e3"), as an unscaled value at scale. It fails where digits behind the
// scale would be lost or the value has more than MaxPrecision digits.
func ParseDecimal(text string, scale int) (Int128, error) {
	mantissa, exponent, err := splitExponent(text)
	if err != nil {
		return Int128{}, err
	}
	negative := strings.HasPrefix(mantissa, "-")
	digits := strings.TrimPrefix(strings.TrimPrefix(mantissa, "-"), "+")
	if len(mantissa)-len(digits) > 1 {
		return Int128{}, fmt.Errorf("%q is not a decimal number", text)
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole == "" && fraction == "" {
		return Int128{}, fmt.Errorf("%q is not a decimal number", text)
	}
	var u Int128
	shift := scale + exponent - len(fraction) // zeros to append; negative: digits to drop
	for _, part := range [2]string{whole, fraction} {
		for i := range len(part) {
			if part[i] < '0' || part[i] > '9' {
				return Int128{}, fmt.Errorf("%q is not a decimal number", text)
			}
			var fits bool
			if u, fits = u.shiftIn(int64(part[i] - '0')); !fits {
				return Int128{}, fmt.Errorf("%q has more than %d digits", text, MaxPrecision)
			}
		}
	}
	for ; shift > 0 && u != (Int128{}); shift-- {
		var fits bool
		if u, fits = u.shiftIn(0); !fits {
			return Int128{}, fmt.Errorf("%q has more than %d digits at scale %d", text, MaxPrecision, scale)
		}
	}
	for ; shift < 0 && u != (Int128{}); shift++ {
		q, r, _ := u.QuoRem(Int128Of(10))
		if r != (Int128{}) {
			return Int128{}, fmt.Errorf("%q has digits behind scale %d", text, scale)
		}
		u = q
	}
	if negative {
		u, _ = u.Neg()
	}
	return u, nil
}

func splitExponent(text string) (mantissa string, exponent int, err error) {
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return text, 0, nil
	}
	exponent, err = strconv.Atoi(text[i+1:])
	if err != nil || exponent < -1000 || exponent > 1000 {
		return "", 0, fmt.Errorf("%q has a bad exponent", text)
	}
	return text[:i], exponent, nil
}

// shiftIn appends a decimal digit to a magnitude.
func (a Int128) shiftIn(digit int64) (Int128, bool) {
	p, ok := a.MulInt64(10)
	if !ok {
		return Int128{}, false
	}
	p, ok = p.AddInt64(digit)
	return p, ok && p.Fits(MaxPrecision)
}

// AppendDecimal appends the decimal text of an unscaled value at scale: "-12.50".
func (a Int128) AppendDecimal(dst []byte, scale int) []byte {
	const chunk = 1_000_000_000_000_000_000 // 18 digits
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
