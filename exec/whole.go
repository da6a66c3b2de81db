package exec

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// AppendWhole appends x in decimal digits, as strconv.AppendInt does, eight digits at once.
func AppendWhole(dst []byte, x int64) []byte {
	n := uint64(x)
	if x < 0 {
		dst, n = append(dst, '-'), -n
	}
	const block = 1e8 // eight digits
	switch {
	case n < block:
		return appendShort(dst, n)
	case n < block*block:
		return binary.LittleEndian.AppendUint64(appendShort(dst, n/block), eightDigits(n%block)|zeros)
	default:
		return strconv.AppendUint(dst, n, 10)
	}
}

const zeros = 0x3030303030303030 // eight characters 0

// appendShort appends a number below 1e8 without zeros in front.
func appendShort(dst []byte, n uint64) []byte {
	d := eightDigits(n)
	none := bits.TrailingZeros64(d|1<<56) >> 3 // digits in front; the last one stays
	dst = binary.LittleEndian.AppendUint64(dst, (d|zeros)>>(8*none&63))
	return dst[:len(dst)-none]
}

// eightDigits gives the digits of a number below 1e8, a byte each, the first one lowest: each
// step halves all parts at once, dividing by a multiplication (P. Khuong, "How to print integers
// really fast", 2017).
func eightDigits(n uint64) uint64 {
	n = n/1e4 | n%1e4<<32
	tens := n * 10486 >> 20 & 0x0000007f_0000007f // n/100, exact below 43,699
	n = tens | (n-100*tens)<<16
	tens = n * 103 >> 10 & 0x000f_000f_000f_000f // n/10, exact below 179
	return tens | (n-10*tens)<<8
}
