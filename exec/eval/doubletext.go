package eval

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"

	"weir/exec/batch"
)

// appendDouble appends a double as PostgreSQL writes it: the shortest digits that read
// back the same, with an exponent from 1e+15 on and below 0.0001.
func appendDouble(dst []byte, f float64) []byte {
	a := math.Abs(f)
	switch {
	case f != f:
		return append(dst, "NaN"...)
	case a > math.MaxFloat64:
		if f < 0 {
			dst = append(dst, '-')
		}
		return append(dst, "Infinity"...)
	case a == 0, a >= 1e-4 && a < 1e15:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// PostgreSQL takes no digits that lie right between two doubles, though they would be
	// rounded to this one: 1e+23 is 9.999999999999999e+22 there.
	for precision := 15; precision <= 16 && a >= 1<<53 && halfway(dst[from:]); precision++ {
		longer := strconv.AppendFloat(dst[:from], f, 'e', precision, 64)
		if back, _ := strconv.ParseFloat(string(longer[from:]), 64); back == f {
			dst = longer
		}
	}
	return dst
}

// halfway reports whether digits with an exponent, those of a number above 2^53, are the
// exact middle of two doubles: a number of 54 bits.
func halfway(text []byte) bool {
	e := bytes.IndexByte(text, 'e')
	exponent, err := strconv.Atoi(string(text[e+1:]))
	d := batch.Int128{}
	for _, c := range text[:e] {
		if c < '0' || c > '9' {
			continue
		}
		d, _ = shiftIn(d, c)
	}
	if point := bytes.IndexByte(text[:e], '.'); point >= 0 {
		exponent -= e - point - 1
	}
	if err != nil || exponent < 0 || exponent > 23 { // 5^24 has more bits than 54
		return false
	}
	for range exponent { // d·10^exponent has the bits of d·5^exponent
		d, _ = d.MulInt64(5)
	}
	length := bits.Len64(uint64(d.Hi)) + 64
	zeros := bits.TrailingZeros64(uint64(d.Hi)) + 64
	if d.Hi == 0 {
		length = bits.Len64(d.Lo)
	}
	if d.Lo != 0 {
		zeros = bits.TrailingZeros64(d.Lo)
	}
	return length-zeros == 54
}
