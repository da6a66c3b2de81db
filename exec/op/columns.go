package op

import (
	"math/bits"

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
