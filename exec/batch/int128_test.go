package batch

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func (a Int128) big() *big.Int {
	x := new(big.Int).Lsh(big.NewInt(a.Hi), 64)
	return x.Add(x, new(big.Int).SetUint64(a.Lo))
}

func check(t *rapid.T, name string, got Int128, ok bool, want *big.Int) {
	limit := new(big.Int).Lsh(big.NewInt(1), 127)
	fits := want.Cmp(limit) < 0 && want.Cmp(new(big.Int).Neg(limit)) >= 0
	if ok != fits || ok && got.big().Cmp(want) != 0 {
		t.Fatalf("%s: got %v (ok %v), want %v", name, got.big(), ok, want)
	}
}

func TestInt128(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, d := drawInt128(t), drawInt128(t), drawInt128(t)
		if rapid.Bool().Draw(t, "small") {
			b = Int128Of(rapid.Int64Range(-20, 20).Draw(t, "b"))
		}
		x, y, z := a.big(), b.big(), d.big()
		sum, ok := a.Add(b)
		check(t, "add", sum, ok, new(big.Int).Add(x, y))
		diff, ok := a.Sub(b)
		check(t, "sub", diff, ok, new(big.Int).Sub(x, y))
		neg, ok := a.Neg()
		check(t, "neg", neg, ok, new(big.Int).Neg(x))
		product, ok := a.Mul(b)
		check(t, "mul", product, ok, new(big.Int).Mul(x, y))
		small, ok := Int128Of(int64(a.Lo)).MulInt64(int64(b.Lo))
		check(t, "mul of 64 bits", small, ok, new(big.Int).Mul(big.NewInt(int64(a.Lo)), big.NewInt(int64(b.Lo))))
		if got := a.Cmp(b); got != x.Cmp(y) {
			t.Fatalf("cmp: got %d", got)
		}
		if a.Sign() != x.Sign() {
			t.Fatalf("sign: got %d", a.Sign())
		}
		if y.Sign() != 0 {
			quo, rem, ok := a.QuoRem(b)
			check(t, "quo", quo, ok, new(big.Int).Quo(x, y))
			check(t, "rem", rem, true, new(big.Int).Rem(x, y))
		}
		if z.Sign() != 0 {
			scaled, ok := a.MulDivRound(b, d)
			check(t, "scaled", scaled, ok, divRound(new(big.Int).Mul(x, y), z))
		}
	})
}

// divRound divides with halves away from zero.
func divRound(n, d *big.Int) *big.Int {
	negative := n.Sign()*d.Sign() < 0
	n, d = new(big.Int).Abs(n), new(big.Int).Abs(d)
	n.Lsh(n, 1).Add(n, d)
	n.Quo(n, d.Lsh(d, 1))
	if negative {
		n.Neg(n)
	}
	return n
}

func TestDecimalText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		scale int
		want  string
	}{
		{"0", 0, "0"},
		{"-0", 2, "0.00"},
		{"12.5", 2, "12.50"},
		{"-0.05", 2, "-0.05"},
		{"+7", 0, "7"},
		{".5", 1, "0.5"},
		{"5.", 1, "5.0"},
		{"1e3", 0, "1000"},
		{"1.5E-1", 2, "0.15"},
		{"100e-2", 0, "1"},
		{"99999999999999999999999999999999999999", 0, "99999999999999999999999999999999999999"},
		{"-0.99999999999999999999999999999999999999", 38, "-0.99999999999999999999999999999999999999"},
		{"1000000000000000000", 0, "1000000000000000000"},
		{"0e500", 3, "0.000"},
		{"0e99999", 0, "0"},
		{"0e99999999999999999999", 0, "0"},
		{"1." + strings.Repeat("0", 40), 0, "1"},
		{"1." + strings.Repeat("0", 40), 3, "1.000"},
		{"1" + strings.Repeat("0", 50) + "e-50", 2, "1.00"},
		{strings.Repeat("0", 50) + "7", 0, "7"},
		{"0." + strings.Repeat("0", 60) + "12e62", 0, "12"},
		{"123456789012345678.9", 1, "123456789012345678.9"},
		{"12345678901234567890.12345678901234567", 18, "12345678901234567890.123456789012345670"},
	} {
		d, err := ParseDecimal(c.text, c.scale)
		if err != nil || d.Decimal(c.scale) != c.want {
			t.Errorf("%q at scale %d: %q, %v; want %q", c.text, c.scale, d.Decimal(c.scale), err, c.want)
		}
	}
	for _, text := range []string{
		"", "-", ".", "1..2", "1x", "--1", "+-1", "1e", "1e99999999999", "0.001", "1e38", "1e-3", " 1",
		"100000000000000000000000000000000000000",
	} {
		if d, err := ParseDecimal(text, 2); err == nil {
			t.Errorf("%q: got %v, want an error", text, d.Decimal(2))
		}
	}
}

// TestDecimalOf: a number is a decimal of a scale by its value, as math/big finds it, whatever
// zeros it is written with.
func TestDecimalOf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`0{0,20}[0-9]{0,30}0{0,20}`)
		whole, fraction := digits.Draw(t, "whole"), digits.Draw(t, "fraction")
		exponent, scale := rapid.IntRange(-60, 60).Draw(t, "exponent"), rapid.IntRange(0, MaxPrecision).Draw(t, "scale")
		negative := rapid.Bool().Draw(t, "negative")
		got, fit := DecimalOf(negative, []byte(whole), []byte(fraction), exponent, scale)
		r, _ := new(big.Rat).SetString("0" + whole + "." + fraction + "0e" + strconv.Itoa(exponent+scale))
		if negative {
			r.Neg(r)
		}
		switch size := len(new(big.Int).Abs(r.Num()).String()); {
		case fit == Exact && r.IsInt() && got.big().Cmp(r.Num()) == 0:
		case fit == Inexact && !r.IsInt():
		case fit == TooLarge && r.IsInt() && size > MaxPrecision:
		default:
			t.Fatalf("got %s, %d, want %s", got.Decimal(scale), fit, r)
		}
	})
}

func TestDecimalRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, scale := drawInt128(t), rapid.IntRange(0, 38).Draw(t, "scale")
		text := a.Decimal(scale)
		want := new(big.Rat).SetFrac(a.big(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
		if text != want.FloatString(scale) {
			t.Fatalf("text %q, want %q", text, want.FloatString(scale))
		}
		if f, _ := strconv.ParseFloat(text, 64); f != a.Float64(scale) {
			t.Fatalf("double %v, want %v", a.Float64(scale), f)
		}
		if !a.Fits(38) {
			return
		}
		if back, err := ParseDecimal(text, scale); err != nil || back != a {
			t.Fatalf("parsed %q to %v, %v", text, back, err)
		}
	})
}

// TestQuoFloat64: the double nearest to the exact quotient, as math/big finds it.
func TestQuoFloat64(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		a := Int128{Lo: rapid.Uint64().Draw(r, "lo"), Hi: rapid.SampledFrom([]int64{0, -1, 1, 12345, math.MinInt64, math.MaxInt64}).Draw(r, "hi")}
		if rapid.Bool().Draw(r, "near a tie") {
			a = Int128Of(1<<53 + 1)
			a, _ = a.MulInt64(rapid.Int64Range(-1<<60, 1<<60).Draw(r, "factor"))
			a, _ = a.AddInt64(rapid.Int64Range(-1, 1).Draw(r, "off"))
		}
		n := rapid.OneOf(rapid.Int64Range(1, math.MaxInt64), rapid.Int64Range(1, 8), rapid.Just(int64(1)<<62)).Draw(r, "n")
		digits, _ := new(big.Int).SetString(a.Decimal(0), 10)
		want, _ := new(big.Rat).SetFrac(digits, big.NewInt(n)).Float64()
		if got := a.QuoFloat64(n); got != want {
			r.Fatalf("%s / %d = %v, want %v", a.Decimal(0), n, got, want)
		}
	})
}
