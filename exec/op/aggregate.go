package op

import (
	"fmt"
	"math/bits"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/eval"
	"weir/planner/expr"
	"weir/planner/plan"
)

// An accKind says how an accumulator counts and what its words are.
type accKind uint8

const (
	countRows    accKind = iota // 1 word: n
	countValues                 // 1 word: n
	sumInts                     // 3 words: low, high, values (seen: 1, unless counted); the argument lies in Ints
	sumDecimals                 // 3 words, the same
	sumDoubles                  // 6 words: sum, compensation, values, NaNs, +Infs, -Infs
	leastInts                   // 2 words: value, seen
	leastBools                  // 2 words, the same: FALSE is 0
	leastFloats                 // 2 words, the same: the value by its order
	leastDecimal                // 3 words: low, high, seen
	leastStrings                // 2 words: seen, the local phase's place; the value is a part of the group's bytes
	truths                      // 2 words: trues, falses
	sketches                    // 2 words: estimate, changed; in the local phase its place. The sketch is a part of the group's bytes
)

// An accumulator is one aggregate of a grouping: where its argument and its words lie.
type accumulator struct {
	kind accKind
	arg  int // the input's column: the argument, or the first partial column
	word int // its first word among those of a group
	part int // its byte string among those of a group; -1: none
	typ  expr.Type
	text string

	flip    int64 // all ones for MAX, the least of the values turned round; else 0
	average bool  // the sum is divided by the number of values
	counted bool  // a sum counts its values; else it knows only whether there was one
	or      bool  // BOOL_OR
	values  int   // the table of values that feeds it (DISTINCT, MIN and MAX of changing rows); -1: rows do
	// canonical: a least -0 is 0, because it was looked up as one.
	canonical bool

	top, bottom batch.Int128 // a DECIMAL result lies between them
	up          batch.Int128 // what takes a DECIMAL sum to the average's scale
}

// newAccumulator makes the accumulator of an aggregate; its words and parts are not yet
// laid out.
func newAccumulator(g expr.Aggregate, changing bool) (accumulator, error) {
	a := accumulator{arg: g.Arg, part: -1, values: -1, typ: g.Type, text: g.Text, counted: changing, canonical: changing}
	kind, known := kindOf(g)
	a.kind, a.average, a.or = kind, g.Func == expr.Avg, g.Func == expr.BoolOr
	a.counted = a.counted || a.average
	if g.Func == expr.Max {
		a.flip = -1
	}
	known = known && !(kind == sketches && changing)
	if !known || a.average && a.typ.Kind != expr.Double && a.typ.Kind != expr.Decimal {
		return a, fmt.Errorf("%w: aggregate %s: this version has no %q of %v that gives %v over such rows", weir.ErrInvalid, g.Text, g.Func, g.ArgType, g.Type)
	}
	if a.typ.Kind == expr.Decimal {
		a.top = batch.Pow10(a.typ.Precision)
		a.bottom, _ = a.top.Neg()
		if a.average {
			a.up = batch.Pow10(a.typ.Scale - g.ArgType.Scale)
		}
	}
	return a, nil
}

// kindOf finds the kind for an aggregate; false: there is none.
func kindOf(g expr.Aggregate) (kind accKind, known bool) {
	physical := eval.Physical(g.ArgType)
	switch g.Func {
	case expr.CountStar:
		return countRows, true
	case expr.Count:
		return countValues, true
	case expr.Sum, expr.Avg:
		kind, known = map[batch.Physical]accKind{batch.Ints: sumInts, batch.Decimals: sumDecimals, batch.Floats: sumDoubles}[physical]
	case expr.Min, expr.Max:
		kind, known = map[batch.Physical]accKind{
			batch.Bools: leastBools, batch.Ints: leastInts, batch.Floats: leastFloats, batch.Decimals: leastDecimal, batch.Strings: leastStrings,
		}[physical]
	case expr.BoolAnd, expr.BoolOr:
		return truths, physical == batch.Bools
	case expr.ApproxCountDistinct:
		return sketches, true
	}
	return kind, known
}

// accumulators lays out the aggregates of a grouping from a word on; words is where they end.
func accumulators(spec *plan.AggregateSpec, from int) (accs []accumulator, words int, err error) {
	words = from
	for _, g := range spec.Aggregates {
		a, err := newAccumulator(g, spec.Changing)
		if err != nil {
			return nil, 0, err
		}
		a.word = words
		words += a.words()
		accs = append(accs, a)
	}
	part := 0
	for _, kind := range []accKind{leastStrings, sketches} { // texts first: see parts
		for i := range accs {
			if accs[i].kind == kind {
				accs[i].part = part
				part++
			}
		}
	}
	return accs, words, nil
}

func (a *accumulator) words() int {
	switch a.kind {
	case countRows, countValues:
		return 1
	case sumInts, sumDecimals, leastDecimal:
		return 3
	case sumDoubles:
		return 6
	}
	return 2
}

// plainly reports whether equal words are the only way to an equal value, and words are all
// there is: then a value has changed if and only if words have.
func (a *accumulator) plainly() bool {
	switch a.kind {
	case countRows, countValues:
		return true
	case sumInts, sumDecimals:
		return !a.counted
	case leastInts, leastBools, leastFloats, leastDecimal:
		return true
	}
	return false
}

// overflow is the error of a value that leaves its type (O4).
func (a *accumulator) overflow(typ string) error {
	what := "the sum"
	if a.average {
		what = "the average"
	}
	return &exec.ValueError{Column: a.text, Reason: what + " does not fit " + typ}
}

// add takes one row of plain input into w, the accumulator's words. Kinds with parts are
// not its business.
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
	case leastInts:
		offer(w, v.Ints[row]^a.flip)
	case leastBools:
		offer(w, truth(v.Bools[row])^a.flip)
	case leastFloats:
		offer(w, a.orderOf(v.Floats[row])^a.flip)
	case leastDecimal:
		a.offerDecimal(w, v.Decimals[row])
	case truths:
		w[1-truth(v.Bools[row])]++
	}
	return nil
}

// take takes back one row that add took in.
func (a *accumulator) take(w []uint64, b *batch.Batch, row int) error {
	count := 0 // the word that counts what is taken back
	if a.kind != countRows {
		v := &b.Columns[a.arg]
		if v.Null(row) {
			return nil
		}
		switch a.kind {
		case sumInts, sumDecimals, sumDoubles:
			count = 2
		case truths:
			count = int(1 - truth(v.Bools[row]))
		}
	}
	if w[count] == 0 {
		return fmt.Errorf("%s: a row is taken back that was not there", a.text)
	}
	w[count]--
	switch a.kind {
	case sumInts:
		return a.subExact(w, batch.Int128Of(b.Columns[a.arg].Ints[row]))
	case sumDecimals:
		return a.subExact(w, b.Columns[a.arg].Decimals[row])
	case sumDoubles:
		takeDouble(w, b.Columns[a.arg].Floats[row])
	}
	return nil
}

// merge takes one row of partial columns into w.
func (a *accumulator) merge(w []uint64, b *batch.Batch, row int) error {
	v := b.Columns[a.arg:]
	switch a.kind {
	case countRows, countValues:
		return a.addCount(w, v[0].Ints[row])
	case sumInts, sumDecimals:
		if v[0].Null(row) {
			return nil
		}
		n := uint64(1)
		if a.average {
			n = w[2] + uint64(v[1].Ints[row])
		}
		err := a.addExact(w, v[0].Decimals[row])
		w[2] = n
		return err
	case sumDoubles:
		mergeDouble(w, v, row)
	case truths:
		w[0] += uint64(v[0].Ints[row])
		w[1] += uint64(v[1].Ints[row])
	default:
		return a.add(w, b, row)
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

// wide is the error of a sum that leaves 128 bits.
func (a *accumulator) wide() error {
	return &exec.ValueError{Column: a.text, Reason: "the sum does not fit 128 bits"}
}

func (a *accumulator) addExact(w []uint64, x batch.Int128) error {
	lo, carry := bits.Add64(w[0], x.Lo, 0)
	hi, _ := bits.Add64(w[1], uint64(x.Hi), carry)
	if int64((w[1]^hi)&(uint64(x.Hi)^hi)) < 0 {
		return a.wide()
	}
	w[0], w[1] = lo, hi
	if a.counted {
		w[2]++
	} else {
		w[2] = 1
	}
	return nil
}

func (a *accumulator) subExact(w []uint64, x batch.Int128) error {
	diff, ok := batch.Int128{Lo: w[0], Hi: int64(w[1])}.Sub(x)
	if !ok {
		return a.wide()
	}
	w[0], w[1] = diff.Lo, uint64(diff.Hi)
	return nil
}
