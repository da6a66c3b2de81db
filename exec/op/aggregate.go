package op

import (
	"fmt"
	"math"
	"math/bits"

	"weir/exec"
	"weir/exec/batch"
	"weir/planner/expr"
	"weir/planner/plan"
)

// An accKind says how an accumulator counts.
type accKind uint8

const (
	countRows   accKind = iota // 1 word: n
	countValues                // 1 word: n
	sumInts                    // 3 words: low, high, seen; the argument lies in Ints
	sumDecimals                // 3 words: low, high, seen
	sumDoubles                 // 6 words: sum, compensation, values, NaNs, +Infs, -Infs
)

// An accumulator is one aggregate of a grouping: where its argument and its words lie.
type accumulator struct {
	kind accKind
	arg  int // the input's column: the argument, or the first partial column
	word int // its first word among those of a group
	typ  expr.Type
	text string

	top, bottom batch.Int128 // a DECIMAL result lies between them
}

// accumulators lays out the aggregates of a grouping; words is the size of a group.
func accumulators(spec *plan.AggregateSpec) (accs []accumulator, words int, err error) {
	for _, g := range spec.Aggregates {
		a := accumulator{arg: g.Arg, word: words, typ: g.Type, text: g.Text}
		switch {
		case g.Func == expr.CountStar:
			a.kind = countRows
		case g.Func == expr.Count:
			a.kind = countValues
		case g.Func != expr.Sum:
			return nil, 0, fmt.Errorf("aggregate %s: this version does not know %q", g.Text, g.Func)
		case g.ArgType.Kind == expr.Double:
			a.kind = sumDoubles
		case g.ArgType.Kind == expr.Decimal:
			a.kind = sumDecimals
		default:
			a.kind = sumInts
		}
		if a.typ.Kind == expr.Decimal {
			a.top = batch.Pow10(a.typ.Precision)
			a.bottom, _ = a.top.Neg()
		}
		accs = append(accs, a)
		words += a.words()
	}
	return accs, words, nil
}

func (a *accumulator) words() int {
	switch a.kind {
	case countRows, countValues:
		return 1
	case sumDoubles:
		return 6
	}
	return 3
}

// overflow is the error of a value that leaves its type (O4).
func (a *accumulator) overflow(typ string) error {
	return &exec.ValueError{Column: a.text, Reason: "the sum does not fit " + typ}
}

// add takes one row of plain input into w, the accumulator's words.
func (a *accumulator) add(w []uint64, b *batch.Batch, row int) error {
	if a.kind == countRows {
		w[0]++
		return nil
	}
	v := &b.Columns[a.arg]
	if v.Null(row) {
		return nil
	}
	switch a.kind {
	case countValues:
		w[0]++
	case sumInts:
		return a.addExact(w, batch.Int128Of(v.Ints[row]))
	case sumDecimals:
		return a.addExact(w, v.Decimals[row])
	case sumDoubles:
		addDouble(w, v.Floats[row])
	}
	return nil
}

// merge takes one row of partial columns into w.
func (a *accumulator) merge(w []uint64, b *batch.Batch, row int) error {
	v := b.Columns[a.arg:]
	switch a.kind {
	case countRows, countValues:
		return a.addCount(w, v[0].Ints[row])
	case sumDoubles:
		mergeDouble(w, v, row)
	default:
		if !v[0].Null(row) {
			return a.addExact(w, v[0].Decimals[row])
		}
	}
	return nil
}

func (a *accumulator) addCount(w []uint64, n int64) error {
	sum := int64(w[0]) + n
	if n > 0 && sum < int64(w[0]) {
		return &exec.ValueError{Column: a.text, Reason: "the count does not fit BIGINT"}
	}
	w[0] = uint64(sum)
	return nil
}

func (a *accumulator) addExact(w []uint64, x batch.Int128) error {
	lo, carry := bits.Add64(w[0], x.Lo, 0)
	hi, _ := bits.Add64(w[1], uint64(x.Hi), carry)
	if int64((w[1]^hi)&(uint64(x.Hi)^hi)) < 0 {
		return a.overflow("128 bits")
	}
	w[0], w[1], w[2] = lo, hi, 1
	return nil
}

// addDouble adds with Neumaier's compensation; NaN and the infinities are counted
// apart, so that they never poison the sum.
func addDouble(w []uint64, x float64) {
	w[2]++
	switch {
	case math.IsNaN(x):
		w[3]++
	case math.IsInf(x, 1):
		w[4]++
	case math.IsInf(x, -1):
		w[5]++
	default:
		addFinite(w, x)
	}
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

// appendPartial appends w to the accumulator's partial columns and returns the rest.
func (a *accumulator) appendPartial(cols []batch.Vector, w []uint64) []batch.Vector {
	switch a.kind {
	case countRows, countValues:
		cols[0].AppendInt(int64(w[0]))
		return cols[1:]
	case sumDoubles:
		cols[0].AppendFloat(math.Float64frombits(w[0]))
		cols[1].AppendFloat(math.Float64frombits(w[1]))
		for i := 2; i < 6; i++ {
			cols[i].AppendInt(int64(w[i]))
		}
		return cols[6:]
	}
	if w[2] == 0 {
		cols[0].AppendNull()
	} else {
		cols[0].AppendDecimal(batch.Int128{Lo: w[0], Hi: int64(w[1])})
	}
	return cols[1:]
}

// appendFinal appends the aggregate's value to its output column.
func (a *accumulator) appendFinal(v *batch.Vector, w []uint64) error {
	switch a.kind {
	case countRows, countValues:
		v.AppendInt(int64(w[0]))
	case sumDoubles:
		if w[2] == 0 {
			v.AppendNull()
		} else {
			v.AppendFloat(double(w))
		}
	default:
		return a.appendExact(v, w)
	}
	return nil
}

func (a *accumulator) appendExact(v *batch.Vector, w []uint64) error {
	sum := batch.Int128{Lo: w[0], Hi: int64(w[1])}
	switch {
	case w[2] == 0:
		v.AppendNull()
	case a.typ.Kind == expr.Decimal:
		if sum.Cmp(a.top) >= 0 || sum.Cmp(a.bottom) <= 0 {
			return a.overflow(a.typ.String())
		}
		v.AppendDecimal(sum)
	default:
		n, ok := sum.Int64()
		if !ok {
			return a.overflow(a.typ.String())
		}
		v.AppendInt(n)
	}
	return nil
}

// addAll takes the selected rows of a batch of plain input into groups: groups[i] is
// the group of the i-th row, whose words begin at group × stride in mem.
func (a *accumulator) addAll(mem []uint64, stride int, groups []uint32, b *batch.Batch, from int) error {
	word := mem[a.word:]
	if a.kind == countRows || a.kind == countValues && b.Columns[a.arg].Valid == nil {
		for _, g := range groups {
			word[int(g)*stride]++
		}
		return nil
	}
	if v := a.dense(b); v != nil {
		for i, g := range groups {
			x := v[from+i]
			at := int(g) * stride
			lo, carry := bits.Add64(word[at], uint64(x), 0)
			hi, _ := bits.Add64(word[at+1], uint64(x>>63), carry)
			// 2^64 rows would be needed to overflow: a local group never sees as many.
			word[at], word[at+1], word[at+2] = lo, hi, 1
		}
		return nil
	}
	for i, g := range groups {
		if err := a.add(word[int(g)*stride:], b, b.Row(from+i)); err != nil {
			return err
		}
	}
	return nil
}

// dense returns the argument's values where they are plain integers without NULLs
// and no selection; else nil.
func (a *accumulator) dense(b *batch.Batch) []int64 {
	if a.kind != sumInts || b.Sel != nil || b.Columns[a.arg].Valid != nil {
		return nil
	}
	return b.Columns[a.arg].Ints
}
