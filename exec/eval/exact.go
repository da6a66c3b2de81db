package eval

import "math"

// The elementary functions of DOUBLE, rounded to the nearest double: package math's
// differ from one machine to the next, and from PostgreSQL's, in the last digit. They
// compute in pairs of doubles, of about 100 bits.

// A pair is the exact sum of two doubles, lo being less than an ulp of hi.
type pair struct{ hi, lo float64 }

const (
	log2E      = 1 / math.Ln2
	ln2Low     = 2.3190468138462996e-17 // ln 2 - math.Ln2
	log10EHigh = 0.4342944819032518
	log10ELow  = 1.098319650216765e-17
)

// sumOf adds two doubles exactly.
func sumOf(a, b float64) pair {
	s := a + b
	t := s - a
	return pair{s, (a - (s - t)) + (b - t)}
}

func (a pair) add(b pair) pair {
	s, t := sumOf(a.hi, b.hi), sumOf(a.lo, b.lo)
	s = sumOf(s.hi, s.lo+t.hi)
	return sumOf(s.hi, s.lo+t.lo)
}

func (a pair) mul(b pair) pair {
	p := a.hi * b.hi
	e := math.FMA(a.hi, b.hi, -p)
	return sumOf(p, e+float64(a.hi*b.lo)+float64(a.lo*b.hi))
}

// over divides by 3, or by a power of two.
func (a pair) over(n float64) pair {
	if n != 3 {
		return pair{a.hi / n, a.lo / n} // exact
	}
	q := a.hi / n
	return sumOf(q, (math.FMA(-q, n, a.hi)+a.lo)/n)
}

// expOf returns e^x as (1 + m) × 2^k.
func expOf(x pair) (m pair, k int) {
	turns := math.RoundToEven(x.hi * log2E)
	product := turns * math.Ln2
	r := x.add(pair{-product, -math.FMA(turns, math.Ln2, -product)}).add(pair{-turns * ln2Low, 0})
	r.hi, r.lo = r.hi/256, r.lo/256
	// e^r - 1 = r (1 + r/2 (1 + r/3 (1 + r/4 (1 + t)))); of t the digits of a double do.
	t := r.hi / 5 * (1 + r.hi/6*(1+r.hi/7*(1+r.hi/8*(1+r.hi/9))))
	m = pair{t, 0}
	for _, n := range [...]float64{4, 3, 2, 1} {
		m = m.add(pair{1, 0}).mul(r).over(n)
	}
	for range 8 { // (1 + m)² - 1
		m = m.mul(m).add(pair{2 * m.hi, 2 * m.lo})
	}
	return m, int(turns)
}

// expPair returns e^x, rounded.
func expPair(x pair) float64 {
	switch {
	case x.hi > 710:
		return math.Inf(1)
	case x.hi < -746:
		return 0
	}
	m, k := expOf(x)
	return math.Ldexp(m.add(pair{1, 0}).hi, k)
}

// lnPair returns the natural logarithm of a finite x > 0: a first guess y is mended
// by the logarithm of x e^-y, which is near 1.
func lnPair(x float64) pair {
	y := math.Log(x)
	m, k := expOf(pair{-y, 0})
	var d pair // x e^-y - 1
	if k == 0 {
		d = m.mul(pair{x, 0}).add(sumOf(x, -1))
	} else {
		f, e := math.Frexp(x)
		d = m.add(pair{1, 0}).mul(pair{math.Ldexp(f, e+k), 0}).add(pair{-1, 0})
	}
	return d.add(pair{-d.hi * d.hi / 2, 0}).add(pair{y, 0})
}

func exp(x float64) float64 {
	if x-x != 0 {
		return math.Exp(x)
	}
	return expPair(pair{x, 0})
}

func ln(x float64) float64 {
	if x-x != 0 {
		return math.Log(x)
	}
	return lnPair(x).hi
}

func log10(x float64) float64 {
	if x-x != 0 {
		return math.Log10(x)
	}
	return lnPair(x).mul(pair{log10EHigh, log10ELow}).hi
}

func pow(x, y float64) float64 {
	if x == 0 || x == 1 || y == 0 || x-x != 0 || y-y != 0 || y == 1 {
		return math.Pow(x, y)
	}
	p := lnPair(math.Abs(x)).mul(pair{y, 0})
	if p.hi-p.hi != 0 {
		return math.Pow(x, y)
	}
	z := expPair(p)
	if x < 0 && math.Mod(y, 2) != 0 {
		return -z
	}
	return z
}
