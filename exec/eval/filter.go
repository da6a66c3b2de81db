package eval

import (
	"bytes"
	"math"
	"slices"

	"weir/exec/batch"
)

// filterOf returns the fastest way to select the rows for which a BOOLEAN node is true.
func filterOf(n node) filter {
	switch n := n.(type) {
	case *connective:
		if n.or {
			return &either{left: filterOf(n.left), right: filterOf(n.right)}
		}
		return &both{left: filterOf(n.left), right: filterOf(n.right)}
	case *in:
		return n
	case *isNull:
		return n
	case *conditional:
		return n
	case *compare:
		if f := filterByConstant(n); f != nil {
			return f
		}
	}
	return &whereTrue{arg: n}
}

// whereTrue evaluates the condition and keeps the rows where it is true.
type whereTrue struct{ arg node }

func (f *whereTrue) choose(b *batch.Batch, rows, out []int32) ([]int32, error) {
	v, err := f.arg.eval(b, rows)
	if err != nil {
		return out, err
	}
	from := len(out)
	k, n := from, count(b.Len, rows)
	out = slices.Grow(out, n)[:k+n]
	for i := range n {
		row := at(rows, i)
		out[k] = int32(row)
		k += one(v.Bools[row])
	}
	return dropNulls(v, out[:k], from), nil
}

// dropNulls removes the NULL rows of v from rows[from:].
func dropNulls(v *batch.Vector, rows []int32, from int) []int32 {
	if v.Valid == nil {
		return rows
	}
	k := from
	for _, row := range rows[from:] {
		rows[k] = row
		k += one(!v.Null(int(row)))
	}
	return rows[:k]
}

// both is AND: the right side sees what the left side kept.
type both struct {
	left, right filter
	kept        []int32
}

func (f *both) choose(b *batch.Batch, rows, out []int32) ([]int32, error) {
	kept, err := f.left.choose(b, rows, f.kept[:0])
	f.kept = kept
	if err != nil || len(kept) == 0 {
		return out, err
	}
	return f.right.choose(b, kept, out)
}

// either is OR: the right side sees what the left side did not keep.
type either struct {
	left, right       filter
	kept, rest, added []int32
}

func (f *either) choose(b *batch.Batch, rows, out []int32) ([]int32, error) {
	kept, err := f.left.choose(b, rows, f.kept[:0])
	f.kept = kept
	if err != nil {
		return out, err
	}
	f.rest = f.rest[:0]
	for i, k := 0, 0; i < count(b.Len, rows); i++ {
		row := int32(at(rows, i))
		if k < len(kept) && kept[k] == row {
			k++
			continue
		}
		f.rest = append(f.rest, row)
	}
	f.added = f.added[:0]
	if len(f.rest) > 0 {
		if f.added, err = f.right.choose(b, f.rest, f.added); err != nil {
			return out, err
		}
	}
	return merge(out, kept, f.added), nil
}

// merge appends two ascending lists, without common rows, as one.
func merge(out, a, b []int32) []int32 {
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// filterByConstant returns a filter for a comparison with a constant, or nil where
// there is none.
func filterByConstant(n *compare) filter {
	arg, c, flipped := n.left, n.right, false
	if _, ok := arg.(*constant); ok {
		arg, c, flipped = c, arg, true
	}
	value, ok := c.(*constant)
	if !ok || value.null || n.nullSafe && n.negated { // a filter drops NULLs
		return nil
	}
	switch value.physical {
	case batch.Ints:
		return newRangeFilter(arg, value.value.Ints[0], n.less, flipped, n.negated)
	case batch.Floats:
		return newRangeFilter(arg, int64(batch.FloatOrder(value.value.Floats[0])), n.less, flipped, n.negated)
	case batch.Strings:
		if n.less {
			return &stringOrder{arg: arg, value: slices.Clone(value.value.Bytes), flipped: flipped, negated: n.negated}
		}
		return &in{arg: arg, negated: n.negated, strings: newStringSet(&value.value)}
	}
	return nil
}

// A rangeFilter keeps integers (or doubles, mapped) that lie in a range, or outside:
// every comparison with a constant is one.
type rangeFilter struct {
	arg      node
	low      int64
	span     uint64 // the range is [low, low+span]
	excluded bool
	order    []int64
}

func newRangeFilter(arg node, c int64, less, flipped, negated bool) *rangeFilter {
	f := &rangeFilter{arg: arg, low: c, excluded: negated}
	switch {
	case !less: // x = c
	case !flipped: // x < c: not [c, greatest]
		f.span, f.excluded = uint64(math.MaxInt64)-uint64(c), !negated
	default: // c < x: not [least, c]
		f.low, f.span, f.excluded = math.MinInt64, uint64(c)-1<<63, !negated
	}
	return f
}

func (f *rangeFilter) choose(b *batch.Batch, rows, out []int32) ([]int32, error) {
	v, err := f.arg.eval(b, rows)
	if err != nil {
		return out, err
	}
	values := v.Ints
	if v.Physical == batch.Floats {
		f.order = ordered(f.order, v.Floats[:b.Len])
		values = f.order
	}
	from := len(out)
	k, n := from, count(b.Len, rows)
	out = slices.Grow(out, n)[:k+n]
	low, span, excluded := uint64(f.low), f.span, f.excluded
	if rows == nil {
		for i, x := range values[:b.Len] {
			out[k] = int32(i)
			k += one((uint64(x)-low <= span) != excluded)
		}
	} else {
		for _, row := range rows {
			out[k] = row
			k += one((uint64(values[row])-low <= span) != excluded)
		}
	}
	return dropNulls(v, out[:k], from), nil
}

// stringOrder keeps strings less than a constant, or flipped those greater, or negated the others.
type stringOrder struct {
	arg              node
	value            []byte
	flipped, negated bool
}

func (f *stringOrder) choose(b *batch.Batch, rows, out []int32) ([]int32, error) {
	v, err := f.arg.eval(b, rows)
	if err != nil {
		return out, err
	}
	from := len(out)
	for i := range count(b.Len, rows) {
		row := at(rows, i)
		c := bytes.Compare(v.Str(row), f.value)
		if f.flipped {
			c = -c
		}
		if c < 0 != f.negated {
			out = append(out, int32(row))
		}
	}
	return dropNulls(v, out, from), nil
}
