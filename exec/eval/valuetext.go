package eval

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"

	"weir/exec/batch"
	"weir/planner/civil"
)

// trimmed takes away the blanks around a value, as PostgreSQL does.
func trimmed(text []byte) []byte {
	for len(text) > 0 && isBlank(text[0]) {
		text = text[1:]
	}
	for len(text) > 0 && isBlank(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// parseInt reads an integer of 64 bits: digits with an optional sign, in blanks.
func parseInt(text []byte) (int64, civil.Problem) {
	digits, negative := unsigned(trimmed(text))
	if len(digits) == 0 {
		return 0, malformed
	}
	x, problem := uint64(0), civil.Problem("")
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, malformed
		}
		hi, lo := bits.Mul64(x, 10)
		if x = lo + uint64(c-'0'); hi != 0 || x < lo {
			problem = outOfRange
		}
	}
	switch {
	case problem != "", x > 1<<63, x == 1<<63 && !negative:
		return 0, outOfRange
	case negative:
		return -int64(x), ""
	}
	return int64(x), ""
}

// unsigned takes a sign away.
func unsigned(text []byte) (rest []byte, negative bool) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		return text[1:], text[0] == '-'
	}
	return text, false
}

// parseDouble reads a double: decimal or hexadecimal digits, NaN, inf or infinity in any
// case, in blanks. What is too small for a double is out of range as well.
func parseDouble(text []byte) (float64, civil.Problem) {
	text = trimmed(text)
	rest, negative := unsigned(text)
	if len(rest) == 0 {
		return 0, malformed
	}
	if c := rest[0]; c != '.' && (c < '0' || c > '9') {
		f := math.Inf(1)
		switch {
		case equalFold(rest, "nan"):
			return math.NaN(), ""
		case !equalFold(rest, "inf") && !equalFold(rest, "infinity"):
			return 0, malformed
		case negative:
			f = -f
		}
		return f, ""
	}
	if bytes.IndexByte(text, '_') >= 0 {
		return 0, malformed
	}
	if len(rest) > 2 && rest[1]|0x20 == 'x' && !bytes.ContainsAny(rest, "pP") {
		text = append(bytes.Clone(text), 'p', '0')
	}
	f, err := strconv.ParseFloat(string(text), 64)
	switch {
	case err != nil && f-f == 0: // a range error gives an infinity
		return 0, malformed
	case err != nil, f == 0 && hasDigits(rest):
		return 0, outOfRange
	}
	return f, ""
}

// hasDigits reports whether the mantissa of a number is not zero.
func hasDigits(text []byte) bool {
	end, zeros := bytes.IndexAny(text, "eE"), "0."
	if len(text) > 1 && text[1]|0x20 == 'x' {
		end, zeros = bytes.IndexAny(text, "pP"), "0.xX"
	}
	if end >= 0 {
		text = text[:end]
	}
	return len(bytes.Trim(text, zeros)) > 0
}

// equalFold compares with a word of lower-case ASCII letters.
func equalFold(text []byte, word string) bool {
	if len(text) != len(word) {
		return false
	}
	for i, c := range text {
		if c|0x20 != word[i] {
			return false
		}
	}
	return true
}

// A numeral is a decimal number as it is written.
type numeral struct {
	whole, fraction []byte // digits, not yet checked
	exponent        int
	negative        bool
}

func splitNumeral(text []byte) (n numeral, problem civil.Problem) {
	digits, negative := unsigned(text)
	n.negative = negative
	point := -1
	for i, c := range digits {
		if c == '.' && point < 0 {
			point = i
		} else if c|0x20 == 'e' {
			n.exponent, problem = parseExponent(digits[i+1:])
			digits = digits[:i]
			break
		}
	}
	if n.whole = digits; point >= 0 {
		n.whole, n.fraction = digits[:point], digits[point+1:]
	}
	if len(n.whole)+len(n.fraction) == 0 {
		problem = malformed
	}
	return n, problem
}

// parseDecimal reads decimal digits with an optional sign, point and exponent, in blanks,
// as an unscaled value at scale; what is behind it is rounded with halves away from zero.
func parseDecimal(text []byte, scale int) (d batch.Int128, problem civil.Problem) {
	n, problem := splitNumeral(trimmed(text))
	if problem != "" {
		return d, problem
	}
	keep, at := len(n.whole)+n.exponent+scale, 0 // that many digits count, the next one rounds
	for _, part := range [2][]byte{n.whole, n.fraction} {
		for _, c := range part {
			if c < '0' || c > '9' {
				return d, malformed
			}
			ok := true
			switch {
			case at < keep:
				d, ok = shiftIn(d, c)
			case at == keep && c >= '5':
				d, ok = d.AddInt64(1)
			}
			if !ok {
				problem = outOfRange
			}
			at++
		}
	}
	for ; at < keep && d != (batch.Int128{}) && problem == ""; at++ {
		var ok bool
		if d, ok = shiftIn(d, '0'); !ok {
			problem = outOfRange
		}
	}
	if n.negative {
		d, _ = d.Neg()
	}
	return d, problem
}

func shiftIn(d batch.Int128, digit byte) (batch.Int128, bool) {
	if d.Hi == 0 && d.Lo < 1<<59 {
		return batch.Int128{Lo: 10*d.Lo + uint64(digit-'0')}, true
	}
	d, ok := d.MulInt64(10)
	if !ok {
		return d, false
	}
	return d.AddInt64(int64(digit - '0'))
}

func parseExponent(text []byte) (int, civil.Problem) {
	digits, negative := unsigned(text)
	if len(digits) == 0 {
		return 0, malformed
	}
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, malformed
		}
		n = min(10*n+int(c-'0'), 1_000_000)
	}
	if negative {
		n = -n
	}
	return n, ""
}

// parseBool reads a truth value: true, yes, on, 1 and their opposites, and what they
// begin with where that is clear, in any case, in blanks.
func parseBool(text []byte) (bool, civil.Problem) {
	text = trimmed(text)
	if len(text) == 0 {
		return false, malformed
	}
	for _, w := range [...]struct {
		word  string
		least int
		value bool
	}{{"true", 1, true}, {"false", 1, false}, {"yes", 1, true}, {"no", 1, false}, {"on", 2, true}, {"off", 2, false}, {"1", 1, true}, {"0", 1, false}} {
		if len(text) >= w.least && len(text) <= len(w.word) && foldPrefix(text, w.word) {
			return w.value, ""
		}
	}
	return false, malformed
}

func foldPrefix(text []byte, word string) bool {
	for i, c := range text {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// appendBytes reads BYTES: \x and hexadecimal digits, or text in which a backslash stands
// before another one or before three octal digits.
func appendBytes(dst, text []byte) ([]byte, civil.Problem) {
	if !bytes.HasPrefix(text, []byte(`\x`)) {
		return appendEscaped(dst, text)
	}
	for text = text[2:]; len(text) > 0; {
		if c := text[0]; c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			text = text[1:]
			continue
		}
		if len(text) < 2 {
			return dst, "the number of hexadecimal digits is odd"
		}
		high, low := hexDigit(text[0]), hexDigit(text[1])
		if high < 0 || low < 0 {
			return dst, `behind \x stand hexadecimal digits`
		}
		dst, text = append(dst, byte(high<<4|low)), text[2:]
	}
	return dst, ""
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

func appendEscaped(dst, text []byte) ([]byte, civil.Problem) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		rest := text[i+1:]
		switch {
		case len(rest) > 0 && rest[0] == '\\':
			dst, i = append(dst, '\\'), i+1
		case len(rest) >= 3 && rest[0] >= '0' && rest[0] <= '3' && rest[1]&^7 == '0' && rest[2]&^7 == '0':
			dst, i = append(dst, (rest[0]-'0')<<6|rest[1]&7<<3|rest[2]&7), i+3
		default:
			return dst, "a backslash stands before another one, or before three octal digits"
		}
	}
	return dst, ""
}
