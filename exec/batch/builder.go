package batch

import "slices"

// Reset empties the vector and keeps its storage.
func (v *Vector) Reset() {
	v.Bools, v.Ints, v.Floats, v.Decimals = v.Bools[:0], v.Ints[:0], v.Floats[:0], v.Decimals[:0]
	v.Offsets, v.Bytes = v.Offsets[:0], v.Bytes[:0]
	v.ClearValid()
}

// Grow makes room for n more rows (for strings, 16 bytes each).
func (v *Vector) Grow(n int) {
	switch v.Physical {
	case Bools:
		v.Bools = slices.Grow(v.Bools, n)
	case Ints:
		v.Ints = slices.Grow(v.Ints, n)
	case Floats:
		v.Floats = slices.Grow(v.Floats, n)
	case Decimals:
		v.Decimals = slices.Grow(v.Decimals, n)
	case Strings:
		v.Offsets, v.Bytes = slices.Grow(v.Offsets, n+1), slices.Grow(v.Bytes, 16*n)
	}
}

// Resize makes the vector hold exactly n rows, none NULL. The values are whatever the
// storage held: the caller sets all of them (strings are all empty).
func (v *Vector) Resize(n int) {
	v.ClearValid()
	switch v.Physical {
	case Bools:
		v.Bools = resized(v.Bools, n)
	case Ints:
		v.Ints = resized(v.Ints, n)
	case Floats:
		v.Floats = resized(v.Floats, n)
	case Decimals:
		v.Decimals = resized(v.Decimals, n)
	case Strings:
		v.Offsets, v.Bytes = resized(v.Offsets, n+1), v.Bytes[:0]
		clear(v.Offsets)
	}
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, max(n, 2*cap(s)))
	}
	return s[:n]
}

// MakeValid gives the vector a bitmap for n rows, all NULL at first, and returns it.
func (v *Vector) MakeValid(n int) []uint64 {
	v.ClearValid()
	v.Valid = resized(v.spare, max((n+63)/64, 1))
	v.spare = nil
	clear(v.Valid)
	return v.Valid
}

// ClearValid declares that no row is NULL; the bitmap's storage is kept.
func (v *Vector) ClearValid() {
	if v.Valid != nil {
		v.spare, v.Valid = v.Valid[:0], nil
	}
}

// AppendBool appends a value to a Bools vector.
func (v *Vector) AppendBool(x bool) {
	v.Bools = append(v.Bools, x)
	if v.Valid != nil {
		v.setValid(len(v.Bools) - 1)
	}
}

// AppendInt appends a value to an Ints vector.
func (v *Vector) AppendInt(x int64) {
	v.Ints = append(v.Ints, x)
	if v.Valid != nil {
		v.setValid(len(v.Ints) - 1)
	}
}

// AppendFloat appends a value to a Floats vector.
func (v *Vector) AppendFloat(x float64) {
	v.Floats = append(v.Floats, x)
	if v.Valid != nil {
		v.setValid(len(v.Floats) - 1)
	}
}

// AppendDecimal appends an unscaled value to a Decimals vector.
func (v *Vector) AppendDecimal(x Int128) {
	v.Decimals = append(v.Decimals, x)
	if v.Valid != nil {
		v.setValid(len(v.Decimals) - 1)
	}
}

// AppendString appends a value to a Strings vector.
func (v *Vector) AppendString(x string) {
	v.Bytes = append(v.Bytes, x...)
	v.endString()
}

// AppendBytes appends a value, given as its UTF-8 bytes, to a Strings vector.
func (v *Vector) AppendBytes(x []byte) {
	v.Bytes = append(v.Bytes, x...)
	v.endString()
}

// endString ends a row whose bytes were appended to Bytes.
func (v *Vector) endString() {
	if len(v.Offsets) == 0 {
		v.Offsets = append(v.Offsets, 0)
	}
	v.Offsets = append(v.Offsets, int32(len(v.Bytes)))
	if v.Valid != nil {
		v.setValid(len(v.Offsets) - 2)
	}
}

// AppendNull appends NULL.
func (v *Vector) AppendNull() {
	row := v.Len()
	switch v.Physical {
	case Bools:
		v.Bools = append(v.Bools, false)
	case Ints:
		v.Ints = append(v.Ints, 0)
	case Floats:
		v.Floats = append(v.Floats, 0)
	case Decimals:
		v.Decimals = append(v.Decimals, Int128{})
	case Strings:
		v.endString()
	}
	v.setNull(row)
}

// AppendFrom appends row i of src, a vector of the same layout.
func (v *Vector) AppendFrom(src *Vector, i int) {
	if src.Null(i) {
		v.AppendNull()
		return
	}
	switch src.Physical {
	case Bools:
		v.AppendBool(src.Bools[i])
	case Ints:
		v.AppendInt(src.Ints[i])
	case Floats:
		v.AppendFloat(src.Floats[i])
	case Decimals:
		v.AppendDecimal(src.Decimals[i])
	case Strings:
		v.AppendBytes(src.Str(i))
	}
}

func (v *Vector) setValid(row int) {
	if row>>6 >= len(v.Valid) {
		v.Valid = append(v.Valid, 0)
	}
	v.Valid[row>>6] |= 1 << (row & 63)
}

func (v *Vector) setNull(row int) {
	if v.Valid == nil {
		valid := v.MakeValid(row + 1)
		for i := range valid {
			valid[i] = ^uint64(0)
		}
	}
	if row>>6 >= len(v.Valid) {
		v.Valid = append(v.Valid, 0)
	}
	v.Valid[row>>6] &^= 1 << (row & 63)
}

// SetNulls makes the vector hold exactly n rows, all NULL.
func (v *Vector) SetNulls(n int) {
	v.Resize(n)
	clear(v.Bools)
	clear(v.Ints)
	clear(v.Floats)
	clear(v.Decimals)
	v.MakeValid(n)
}
