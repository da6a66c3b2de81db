package op

import (
	"math/bits"
	"slices"

	"weir/exec/batch"
)

// addAll takes the selected rows of a batch of plain input, from the from-th on, into
// groups: groups[i] is the group of the i-th of them, whose words begin at group × stride in
// mem. Kinds with parts are not its business.
func (a *accumulator) addAll(mem []uint64, stride int, groups []uint32, b *batch.Batch, from int) error {
	word := mem[a.word:]
	if a.kind == countRows || a.kind == countValues && b.Columns[a.arg].Valid == nil {
		for _, g := range groups {
			word[int(g)*stride]++
		}
		return nil
	}
	if b.Sel == nil && b.Columns[a.arg].Valid == nil && a.addDense(word, stride, groups, &b.Columns[a.arg], from) {
		return nil
	}
	for i, g := range groups {
		if err := a.add(word[int(g)*stride:], b, b.Row(from+i)); err != nil {
			return err
		}
	}
	return nil
}

// addDense does it for an argument without NULLs and without a selection, where there is
// a loop for its kind.
func (a *accumulator) addDense(word []uint64, stride int, groups []uint32, v *batch.Vector, from int) bool {
	switch a.kind {
	case sumInts:
		a.sumInts(word, stride, groups, v.Ints[from:])
	case sumDoubles:
		values := v.Floats[from:]
		for i, g := range groups {
			addDouble(word[int(g)*stride:], values[i])
		}
	case leastInts:
		values, flip := v.Ints[from:], a.flip
		for i, g := range groups {
			offer(word[int(g)*stride:], values[i]^flip)
		}
	case leastFloats:
		values, flip := v.Floats[from:], a.flip
		for i, g := range groups {
			offer(word[int(g)*stride:], a.orderOf(values[i])^flip)
		}
	case truths:
		values := v.Bools[from:]
		for i, g := range groups {
			word[int(g)*stride+int(1-truth(values[i]))]++
		}
	default:
		return false
	}
	return true
}

// sumInts adds whole numbers. 2^64 rows would be needed to overflow: a local group never
// sees as many.
func (a *accumulator) sumInts(word []uint64, stride int, groups []uint32, values []int64) {
	if a.counted {
		for i, g := range groups {
			x, w := values[i], word[int(g)*stride:]
			lo, carry := bits.Add64(w[0], uint64(x), 0)
			hi, _ := bits.Add64(w[1], uint64(x>>63), carry)
			w[0], w[1] = lo, hi
			w[2]++
		}
		return
	}
	for i, g := range groups {
		x := values[i]
		at := int(g) * stride
		lo, carry := bits.Add64(word[at], uint64(x), 0)
		hi, _ := bits.Add64(word[at+1], uint64(x>>63), carry)
		word[at], word[at+1], word[at+2] = lo, hi, 1
	}
}

// appendRows appends rows of plain input, each as a group of its own, to the partial columns
// of the accumulator, and returns the rest of them. scratch has room for its words. Kinds
// with parts are not its business.
func (a *accumulator) appendRows(cols []batch.Vector, b *batch.Batch, rows []int32, scratch []uint64) ([]batch.Vector, error) {
	if a.kind == countRows {
		appendOnes(&cols[0], len(rows))
		return cols[1:], nil
	}
	v := &b.Columns[a.arg]
	switch {
	case v.Valid != nil:
	case a.kind == countValues:
		appendOnes(&cols[0], len(rows))
		return cols[1:], nil
	case a.kind == sumInts:
		sums := slices.Grow(cols[0].Decimals, len(rows))
		for _, row := range rows {
			sums = append(sums, batch.Int128Of(v.Ints[row]))
		}
		cols[0].Decimals = sums
		if a.average {
			appendOnes(&cols[1], len(rows))
			return cols[2:], nil
		}
		return cols[1:], nil
	case a.kind == leastInts || a.kind == leastBools || a.kind == leastDecimal:
		batch.Gather(&cols[0], v, rows)
		return cols[1:], nil
	}
	w, rest := scratch[:a.words()], cols
	for _, row := range rows {
		clear(w)
		if err := a.add(w, b, int(row)); err != nil {
			return nil, err
		}
		rest = a.appendPartial(cols, w)
	}
	return rest, nil
}

// appendOnes appends n ones to a column without NULLs.
func appendOnes(v *batch.Vector, n int) {
	v.Ints = slices.Grow(v.Ints, n)
	for range n {
		v.Ints = append(v.Ints, 1)
	}
}
