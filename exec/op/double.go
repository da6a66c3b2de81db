package op

import (
	"math"

	"weir/exec/batch"
)

// addDouble adds with Neumaier's compensation; NaN and the infinities are counted
// apart, so that they never poison the sum.
func addDouble(w []uint64, x float64) {
	w[2]++
	if s := special(x); s > 0 {
		w[s]++
		return
	}
	addFinite(w, x)
}

// takeDouble takes back what addDouble added; the number of values is no longer among w[2].
// Without values the sum is exactly 0 again.
func takeDouble(w []uint64, x float64) {
	if s := special(x); s > 0 {
		w[s]--
		return
	}
	if w[2] == w[3]+w[4]+w[5] {
		w[0], w[1] = 0, 0
		return
	}
	addFinite(w, -x)
}

// special is the word that counts such values; 0: x is finite.
func special(x float64) int {
	switch {
	case math.IsNaN(x):
		return 3
	case math.IsInf(x, 1):
		return 4
	case math.IsInf(x, -1):
		return 5
	}
	return 0
}

func addFinite(w []uint64, x float64) {
	s, c := math.Float64frombits(w[0]), math.Float64frombits(w[1])
	t := s + x
	if math.Abs(s) >= math.Abs(x) {
		c += (s - t) + x
	} else {
		c += (x - t) + s
	}
	w[0], w[1] = math.Float64bits(t), math.Float64bits(c)
}

func mergeDouble(w []uint64, v []batch.Vector, row int) {
	addFinite(w, v[0].Floats[row])
	c := math.Float64frombits(w[1]) + v[1].Floats[row]
	w[1] = math.Float64bits(c)
	for i := 2; i < 6; i++ {
		w[i] += uint64(v[i].Ints[row])
	}
}

// double gives the sum of w, which holds at least one value.
func double(w []uint64) float64 {
	switch {
	case w[3] > 0 || w[4] > 0 && w[5] > 0:
		return math.NaN()
	case w[4] > 0:
		return math.Inf(1)
	case w[5] > 0:
		return math.Inf(-1)
	}
	s := math.Float64frombits(w[0])
	if math.IsInf(s, 0) {
		return s
	}
	return s + math.Float64frombits(w[1])
}
