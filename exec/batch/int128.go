package batch

import (
	"math"
	"math/bits"
)

// Int128Of returns x as a 128-bit integer.
func Int128Of(x int64) Int128 { return Int128{Lo: uint64(x), Hi: x >> 63} }

// Sign returns -1, 0 or 1.
func (a Int128) Sign() int {
	if a.Hi < 0 {
		return -1
	}
	if a == (Int128{}) {
		return 0
	}
	return 1
}

// Cmp returns -1, 0 or 1 as a is less than, equal to or greater than b.
func (a Int128) Cmp(b Int128) int {
	switch {
	case a.Hi < b.Hi, a.Hi == b.Hi && a.Lo < b.Lo:
		return -1
	case a == b:
		return 0
	}
	return 1
}

// Add returns a + b; ok is false when it overflows.
func (a Int128) Add(b Int128) (sum Int128, ok bool) {
	lo, carry := bits.Add64(a.Lo, b.Lo, 0)
	hi, _ := bits.Add64(uint64(a.Hi), uint64(b.Hi), carry)
	sum = Int128{Lo: lo, Hi: int64(hi)}
	return sum, (a.Hi^sum.Hi)&(b.Hi^sum.Hi) >= 0
}

// AddInt64 returns a + x; ok is false when it overflows.
func (a Int128) AddInt64(x int64) (sum Int128, ok bool) { return a.Add(Int128Of(x)) }

// Sub returns a - b; ok is false when it overflows.
func (a Int128) Sub(b Int128) (diff Int128, ok bool) {
	lo, borrow := bits.Sub64(a.Lo, b.Lo, 0)
	hi, _ := bits.Sub64(uint64(a.Hi), uint64(b.Hi), borrow)
	diff = Int128{Lo: lo, Hi: int64(hi)}
	return diff, (a.Hi^b.Hi)&(a.Hi^diff.Hi) >= 0
}

// Neg returns -a; ok is false for the smallest value.
func (a Int128) Neg() (neg Int128, ok bool) { return Int128{}.Sub(a) }

// Mul returns a × b; ok is false when it overflows.
func (a Int128) Mul(b Int128) (product Int128, ok bool) {
	if a.Hi == int64(a.Lo)>>63 && b.Hi == int64(b.Lo)>>63 { // both fit in 64 bits
		hi, lo := bits.Mul64(a.Lo, b.Lo)
		// The unsigned product of two's complements exceeds the signed one by 2^64
		// times the other factor for each negative one.
		hi -= uint64(int64(a.Lo)>>63)&b.Lo + uint64(int64(b.Lo)>>63)&a.Lo
		return Int128{Lo: lo, Hi: int64(hi)}, true
	}
	p := mul256(a.abs(), b.abs())
	if p[3]|p[2] != 0 {
		return Int128{}, false
	}
	return signed(uint128{p[1], p[0]}, a.Hi < 0 != (b.Hi < 0))
}

// MulInt64 returns a × x; ok is false when it overflows.
func (a Int128) MulInt64(x int64) (product Int128, ok bool) { return a.Mul(Int128Of(x)) }

// QuoRem returns a / b truncated towards zero, and the remainder, which has the
// sign of a; ok is false when b is zero or the quotient overflows.
func (a Int128) QuoRem(b Int128) (quo, rem Int128, ok bool) {
	if b == (Int128{}) {
		return Int128{}, Int128{}, false
	}
	u := a.abs()
	q, r := div256([4]uint64{u.lo, u.hi}, b.abs())
	quo, ok = signed(uint128{q[1], q[0]}, a.Hi < 0 != (b.Hi < 0))
	rem, _ = signed(r, a.Hi < 0)
	return quo, rem, ok
}

// QuoInt64 returns a / x truncated towards zero; ok is false when x is zero or the
// quotient overflows.
func (a Int128) QuoInt64(x int64) (quo Int128, ok bool) {
	quo, _, ok = a.QuoRem(Int128Of(x))
	return quo, ok
}

// MulDivRound returns a × m / d rounded to the nearest integer, halves away from
// zero, computed exactly; ok is false when d is zero or the result overflows.
func (a Int128) MulDivRound(m, d Int128) (result Int128, ok bool) {
	if d == (Int128{}) {
		return Int128{}, false
	}
	den := d.abs()
	q, r := div256(mul256(a.abs(), m.abs()), den)
	if q[3]|q[2] != 0 {
		return Int128{}, false
	}
	u := uint128{q[1], q[0]}
	if rest := den.sub(r); !r.less(rest) { // r ≥ d - r: at least a half
		if u.lo++; u.lo == 0 {
			if u.hi++; u.hi == 0 {
				return Int128{}, false
			}
		}
	}
	return signed(u, (a.Hi < 0) != (m.Hi < 0) != (d.Hi < 0))
}

// Int64 returns a as 64 bits; ok is false when it does not fit.
func (a Int128) Int64() (x int64, ok bool) { return int64(a.Lo), a.Hi == int64(a.Lo)>>63 }

// A uint128 is the magnitude of an Int128.
type uint128 struct{ hi, lo uint64 }

func (a Int128) abs() uint128 {
	if a.Hi >= 0 {
		return uint128{uint64(a.Hi), a.Lo}
	}
	lo, borrow := bits.Sub64(0, a.Lo, 0)
	hi, _ := bits.Sub64(0, uint64(a.Hi), borrow)
	return uint128{hi, lo}
}

// signed gives the magnitude a sign; ok is false when it does not fit.
func signed(u uint128, negative bool) (Int128, bool) {
	if !negative {
		return Int128{Lo: u.lo, Hi: int64(u.hi)}, u.hi>>63 == 0
	}
	lo, borrow := bits.Sub64(0, u.lo, 0)
	hi, _ := bits.Sub64(0, u.hi, borrow)
	return Int128{Lo: lo, Hi: int64(hi)}, u.hi>>63 == 0 || u == uint128{1 << 63, 0}
}

func (u uint128) less(v uint128) bool { return u.hi < v.hi || u.hi == v.hi && u.lo < v.lo }

func (u uint128) sub(v uint128) uint128 {
	lo, borrow := bits.Sub64(u.lo, v.lo, 0)
	hi, _ := bits.Sub64(u.hi, v.hi, borrow)
	return uint128{hi, lo}
}

// mul256 multiplies into four limbs, the lowest first.
func mul256(a, b uint128) (p [4]uint64) {
	h00, l00 := bits.Mul64(a.lo, b.lo)
	h01, l01 := bits.Mul64(a.lo, b.hi)
	h10, l10 := bits.Mul64(a.hi, b.lo)
	h11, l11 := bits.Mul64(a.hi, b.hi)
	var c1, c2 uint64
	p[0] = l00
	p[1], c1 = bits.Add64(h00, l01, 0)
	p[1], c2 = bits.Add64(p[1], l10, 0)
	p[2], c1 = bits.Add64(h01, h10, c1)
	p[2], c2 = bits.Add64(p[2], l11, c2)
	p[3] = h11 + c1 + c2
	return p
}

// div256 divides four limbs, the lowest first, by d ≠ 0.
func div256(n [4]uint64, d uint128) (q [4]uint64, rem uint128) {
	if d.hi == 0 {
		r := uint64(0)
		for i := 3; i >= 0; i-- {
			q[i], r = bits.Div64(r, n[i], d.lo)
		}
		return q, uint128{0, r}
	}
	// Long division with a normalised divisor of two limbs.
	s := uint(bits.LeadingZeros64(d.hi))
	d1, d0 := d.hi<<s|d.lo>>1>>(63-s), d.lo<<s
	u := [5]uint64{
		n[0] << s, n[1]<<s | n[0]>>1>>(63-s), n[2]<<s | n[1]>>1>>(63-s),
		n[3]<<s | n[2]>>1>>(63-s), n[3] >> 1 >> (63 - s),
	}
	for i := 2; i >= 0; i-- {
		q[i], u[i+1], u[i] = div3by2(u[i+2], u[i+1], u[i], d1, d0)
	}
	return q, uint128{u[1] >> s, u[0]>>s | u[1]<<1<<(63-s)}
}

// div3by2 divides u2,u1,u0 by d1,d0, where d1 has its top bit set and u2,u1 is less than d1,d0.
func div3by2(u2, u1, u0, d1, d0 uint64) (q, r1, r0 uint64) {
	if u2 >= d1 {
		q = math.MaxUint64
	} else {
		q, _ = bits.Div64(u2, u1, d1)
	}
	for { // q is too large by at most two
		h0, l0 := bits.Mul64(q, d0)
		h1, l1 := bits.Mul64(q, d1)
		l1, c := bits.Add64(l1, h0, 0)
		h1 += c
		var b uint64
		r0, b = bits.Sub64(u0, l0, 0)
		r1, b = bits.Sub64(u1, l1, b)
		if _, b = bits.Sub64(u2, h1, b); b == 0 {
			return q, r1, r0
		}
		q--
	}
}

// QuoFloat64 returns the double nearest to the exact a / n, halves to even; n > 0.
func (a Int128) QuoFloat64(n int64) float64 {
	if a == (Int128{}) {
		return 0
	}
	if x, ok := a.Int64(); ok && x > -1<<53 && x < 1<<53 && n < 1<<53 {
		return float64(x) / float64(n) // both exact: one rounding
	}
	u := a.abs()
	q, rem := div256([4]uint64{2: u.lo, 3: u.hi}, uint128{0, uint64(n)}) // |a| × 2^128 / n
	top := 3
	for q[top] == 0 { // |a| ≥ 1 and n < 2^63: q ≥ 2^65
		top--
	}
	shift := bits.LeadingZeros64(q[top])
	head := q[top]<<shift | q[top-1]>>1>>(63-shift)
	rest := rem.hi | rem.lo | q[top-1]<<shift
	for _, limb := range q[:top-1] {
		rest |= limb
	}
	if rest != 0 {
		head |= 1 // 64 bits are 11 more than a double's: the last one breaks ties
	}
	f := math.Ldexp(float64(head), 64*top-shift-128)
	if a.Hi < 0 {
		return -f
	}
	return f
}
