package source

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"weir/exec/batch"
)

// pad is how far behind a record's end the scanners may load; every buffer that they
// are given has at least this many readable bytes there.
const pad = 16

const (
	zeros = 0x3030303030303030
	highs = 0x8080808080808080
	ones  = 0x0101010101010101
)

var pow10 = [20]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

// match marks, with the high bit, the lowest byte of w that equals the byte of which
// pattern has eight (bits above the lowest one may be wrong).
func match(w, pattern uint64) uint64 {
	x := w ^ pattern
	return (x - ones) &^ x & highs
}

// equal marks, with the high bit, exactly the bytes of w that equal the byte of which
// pattern has eight.
func equal(w, pattern uint64) uint64 {
	x := w ^ pattern
	return ^((x&^highs + ^uint64(highs)) | x) & highs
}

// halves are the high halves of eight bytes.
const halves = 0xf0f0f0f0f0f0f0f0

// decimal reports whether the n lowest bytes of w, 1 to 8, which all have a digit's high
// half, are digits.
func decimal(w uint64, n int) bool {
	return (w^zeros+0x0606060606060606)&halves<<(uint(64-8*n)&63) == 0
}

// longInt counts the digits at data[p:], of which w has eight; 0: there are more than 15, or
// they begin with a zero.
func longInt(data []byte, p int, w uint64) int {
	tail := load(data, p+8)
	n := bits.TrailingZeros64((tail^zeros)&halves) >> 3
	if n == 8 || n > 0 && !decimal(tail, n) || !decimal(w, 8) || byte(w) == '0' {
		return 0
	}
	return 8 + n
}

// digits counts the decimal digits at the low end of w.
func digits(w uint64) int {
	t := w ^ zeros
	return bits.TrailingZeros64(((t&^highs)+0x7676767676767676|t)&highs) >> 3
}

// value gives the number that the n lowest bytes of w, all digits, spell.
func value(w uint64, n int) uint64 { return fold((w ^ zeros) << (64 - 8*uint(n))) }

// fold gives the number of which the bytes of t are the digits, the first one lowest.
func fold(t uint64) uint64 {
	t = t*10 + t>>8
	return ((t&0x000000ff000000ff)*(100+1000000<<32) + (t>>16&0x000000ff000000ff)*(1+10000<<32)) >> 32
}

// scanDigits reads the decimal digits at b[p:]. It returns their value, which has
// wrapped when there are more than 19, and the position behind them.
func scanDigits(b []byte, p int) (uint64, int) {
	w := load(b, p)
	n := digits(w)
	v := value(w, n)
	p += n
	for n == 8 {
		w = load(b, p)
		n = digits(w)
		v = v*pow10[n] + value(w, n)
		p += n
	}
	return v, p
}

// scanInt reads a plain whole number of at most 18 digits at b[p:]: an optional minus
// and digits, without leading zeros when strict. ok is false for everything else, a
// fraction or an exponent included; the slow path then finds out what it is.
func scanInt(b []byte, p int, strict bool) (v int64, end int, ok bool) {
	negative := b[p] == '-'
	if negative {
		p++
	}
	u, end := scanDigits(b, p)
	if n := end - p; n == 0 || n > 18 || strict && n > 1 && b[p] == '0' {
		return 0, end, false
	}
	if c := b[end]; c == '.' || c|0x20 == 'e' {
		return 0, end, false
	}
	if negative {
		return -int64(u), end, true
	}
	return int64(u), end, true
}

// scanDecimal reads a plain decimal number at b[p:] as an unscaled value of at most 18 digits at
// scale: what scanInt takes, and digits behind a point. ok is false for everything else, as there.
func scanDecimal(b []byte, p, scale int, strict bool) (v int64, end int, ok bool) {
	negative := b[p] == '-'
	if negative {
		p++
	}
	u, end := scanDigits(b, p)
	n := end - p
	if n == 0 || n+scale > 18 || strict && n > 1 && b[p] == '0' {
		return 0, end, false
	}
	u *= pow10[scale]
	if b[end] == '.' {
		from := end + 1
		var fraction uint64
		fraction, end = scanDigits(b, from)
		if n = end - from; n == 0 || n > scale {
			return 0, end, false
		}
		u += fraction * pow10[scale-n]
	}
	if goesOn(b[end]) {
		return 0, end, false
	}
	if negative {
		return -int64(u), end, true
	}
	return int64(u), end, true
}

// A numeral is a decimal number taken apart: ±digits × 10^exponent.
type numeral struct {
	negative bool
	whole    []byte // digits before the point
	fraction []byte // digits behind it
	exponent int    // as written; saturates at ±batch.MaxExponent
}

// parseNumeral takes a number's text apart. JSON's grammar is a part of what it
// accepts: it also takes a plus sign and leading zeros.
func parseNumeral(text []byte) (n numeral, ok bool) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		n.negative = text[0] == '-'
		text = text[1:]
	}
	n.whole, text = splitDigits(text)
	if len(text) > 0 && text[0] == '.' {
		if n.fraction, text = splitDigits(text[1:]); len(n.fraction) == 0 {
			return n, false
		}
	}
	if len(n.whole) == 0 {
		return n, false
	}
	if len(text) == 0 {
		return n, true
	}
	if text[0]|0x20 != 'e' {
		return n, false
	}
	text = text[1:]
	negative := false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	exponent, rest := splitDigits(text)
	for _, c := range exponent {
		n.exponent = min(n.exponent*10+int(c-'0'), batch.MaxExponent)
	}
	if negative {
		n.exponent = -n.exponent
	}
	return n, len(exponent) > 0 && len(rest) == 0
}

func splitDigits(b []byte) (digits, rest []byte) {
	i := 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return b[:i], b[i:]
}

// decimal returns the exact unscaled value of a numeral at scale.
func (n numeral) decimal(scale int) (batch.Int128, batch.Fit) {
	return batch.DecimalOf(n.negative, n.whole, n.fraction, n.exponent, scale)
}

// parseFloat returns the double nearest to a number's text; ok is false where it is
// beyond the largest double. A text too small for a double gives zero.
func parseFloat(text []byte) (f float64, ok bool) {
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}

// special reads the texts of doubles that are no numbers, as CSV has them.
func special(text string) (f float64, ok bool) {
	switch strings.ToLower(text) {
	case "nan":
		return math.NaN(), true
	case "infinity", "inf":
		return math.Inf(1), true
	case "-infinity", "-inf":
		return math.Inf(-1), true
	}
	return 0, false
}
