package batch

import "slices"

// Gather appends the given rows of src, in their order, to dst, a vector of the
// same layout. The two must not be the same vector.
func Gather(dst, src *Vector, rows []int32) {
	from := dst.Len()
	switch src.Physical {
	case Bools:
		dst.Bools = gather(dst.Bools, src.Bools, rows)
	case Ints:
		dst.Ints = gather(dst.Ints, src.Ints, rows)
	case Floats:
		dst.Floats = gather(dst.Floats, src.Floats, rows)
	case Decimals:
		dst.Decimals = gather(dst.Decimals, src.Decimals, rows)
	case Strings:
		gatherStrings(dst, src, rows)
	}
	if src.Valid == nil && dst.Valid == nil {
		return
	}
	for i, r := range rows {
		if src.Null(int(r)) {
			dst.setNull(from + i)
		} else if dst.Valid != nil {
			dst.setValid(from + i)
		}
	}
}

func gather[T any](dst, src []T, rows []int32) []T {
	n := len(dst)
	dst = slices.Grow(dst, len(rows))[:n+len(rows)]
	for i, r := range rows {
		dst[n+i] = src[r]
	}
	return dst
}

func gatherStrings(dst, src *Vector, rows []int32) {
	if len(dst.Offsets) == 0 {
		dst.Offsets = append(dst.Offsets, 0)
	}
	n := len(dst.Offsets)
	dst.Offsets = slices.Grow(dst.Offsets, len(rows))[:n+len(rows)]
	for i, r := range rows {
		dst.Bytes = append(dst.Bytes, src.Bytes[src.Offsets[r]:src.Offsets[r+1]]...)
		dst.Offsets[n+i] = int32(len(dst.Bytes))
	}
}

// CopyFrom makes the vector an independent copy of src, all rows of it.
func (v *Vector) CopyFrom(src *Vector) {
	v.Reset()
	v.Physical = src.Physical
	v.Bools = append(v.Bools, src.Bools...)
	v.Ints = append(v.Ints, src.Ints...)
	v.Floats = append(v.Floats, src.Floats...)
	v.Decimals = append(v.Decimals, src.Decimals...)
	v.Offsets = append(v.Offsets, src.Offsets...)
	v.Bytes = append(v.Bytes, src.Bytes...)
	if src.Valid != nil {
		copy(v.MakeValid(64*len(src.Valid)), src.Valid)
	}
}

// compact keeps the rows that sel lists; sel ascends, so it works in place.
func (v *Vector) compact(sel []int32) {
	switch v.Physical {
	case Bools:
		v.Bools = compact(v.Bools, sel)
	case Ints:
		v.Ints = compact(v.Ints, sel)
	case Floats:
		v.Floats = compact(v.Floats, sel)
	case Decimals:
		v.Decimals = compact(v.Decimals, sel)
	case Strings:
		v.compactStrings(sel)
	}
	if v.Valid == nil {
		return
	}
	for i, r := range sel {
		bit := v.Valid[r>>6] >> (r & 63) & 1
		v.Valid[i>>6] = v.Valid[i>>6]&^(1<<(i&63)) | bit<<(i&63)
	}
}

func compact[T any](s []T, sel []int32) []T {
	for i, r := range sel {
		s[i] = s[r]
	}
	return s[:len(sel)]
}

func (v *Vector) compactStrings(sel []int32) {
	if len(v.Offsets) == 0 {
		return
	}
	end := int32(0)
	for i, r := range sel {
		from, to := v.Offsets[r], v.Offsets[r+1]
		v.Offsets[i] = end // i ≤ r: row r and later ones are still whole
		end += int32(copy(v.Bytes[end:], v.Bytes[from:to]))
	}
	v.Offsets, v.Bytes = v.Offsets[:len(sel)+1], v.Bytes[:end]
	v.Offsets[len(sel)] = end
}
