package op

import (
	"bytes"
	"math"

	"weir/exec/batch"
)

// MIN and MAX keep the least value: MAX that of the values turned round (flip), for ^x
// falls where x rises.

// offer takes a value into the words of a least one: value, seen.
func offer(w []uint64, x int64) {
	if w[1] == 0 || x < int64(w[0]) {
		w[0], w[1] = uint64(x), 1
	}
}

func (a *accumulator) offerDecimal(w []uint64, x batch.Int128) {
	x = batch.Int128{Lo: x.Lo ^ uint64(a.flip), Hi: x.Hi ^ a.flip}
	if w[2] == 0 || x.Cmp(batch.Int128{Lo: w[0], Hi: int64(w[1])}) < 0 {
		w[0], w[1], w[2] = x.Lo, uint64(x.Hi), 1
	}
}

// betters reports whether a text comes before the one that is kept.
func (a *accumulator) betters(text, kept []byte) bool {
	c := bytes.Compare(text, kept)
	if a.flip != 0 {
		return c > 0
	}
	return c < 0
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// orderOf gives a double as an integer of PostgreSQL's order. -0 comes right before 0, so
// that it shows where there is no 0, whatever the order of the rows.
func (a *accumulator) orderOf(f float64) int64 {
	if a.canonical || math.IsNaN(f) {
		return int64(batch.FloatOrder(f))
	}
	x := math.Float64bits(f)
	return int64(x ^ uint64(int64(x)>>63)>>1)
}

// ofOrder is the double that orderOf was given.
func ofOrder(x int64) float64 {
	return math.Float64frombits(uint64(x) ^ uint64(x>>63)>>1)
}

// holds reports whether the least value is that of a row.
func (a *accumulator) holds(w []uint64, kept []byte, b *batch.Batch, row int) bool {
	v := &b.Columns[a.arg]
	switch a.kind {
	case leastInts:
		return int64(w[0]) == v.Ints[row]^a.flip
	case leastBools:
		return int64(w[0]) == truth(v.Bools[row])^a.flip
	case leastFloats:
		return int64(w[0]) == a.orderOf(v.Floats[row])^a.flip
	case leastDecimal:
		x := v.Decimals[row]
		return w[0] == x.Lo^uint64(a.flip) && int64(w[1]) == x.Hi^a.flip
	}
	return bytes.Equal(kept, v.Str(row))
}
