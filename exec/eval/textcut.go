package eval

import (
	"unicode/utf8"

	"weir/exec/batch"
)

// skip returns the number of bytes of the first n characters of s, or of all if there are
// fewer.
func skip(s []byte, n int64) int64 {
	if n >= int64(len(s)) {
		return int64(len(s))
	}
	i := 0
	for ; n > 0 && i < len(s); n-- {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRune(s[i:])
		i += size
	}
	return int64(i)
}

// skipBytes is skip where every byte is a character.
func skipBytes(s []byte, n int64) int64 { return max(min(n, int64(len(s))), 0) }

// substring takes what lies from a position, the first being 1, to the end, or for a
// length, which counts also what lies before the first.
func substring(skip func(s []byte, n int64) int64) kernel {
	return func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			s, from := args[0].Str(row), args[1].Ints[row]
			if len(args) == 3 {
				length := args[2].Ints[row]
				if length < 0 {
					return dst, "negative substring length"
				}
				end := max(from+length, 1)
				s = s[:skip(s, end-1)]
			}
			return append(dst, s[skip(s, max(from, 1)-1):]...), ""
		})
	}
}

// left takes the first n characters, or all but the last -n.
func left(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
		s, n := args[0].Str(row), args[1].Ints[row]
		if n < 0 {
			n += int64(utf8.RuneCount(s))
		}
		return append(dst, s[:skip(s, max(n, 0))]...), ""
	})
}

// right takes the last n characters, or all but the first -n; for the least INT, which has
// no opposite, PostgreSQL takes all.
func right(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
		s, n := args[0].Str(row), int64(-int32(args[1].Ints[row]))
		if n <= 0 {
			n += int64(utf8.RuneCount(s))
		}
		return append(dst, s[skip(s, max(n, 0)):]...), ""
	})
}

// pad brings a string to a length in characters: it is cut at its end, or filled.
func pad(front bool) kernel {
	return func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			s, n, filler := args[0].Str(row), max(args[1].Ints[row], 0), args[2].Str(row)
			missing := n - int64(utf8.RuneCount(s))
			switch {
			case missing <= 0:
				return append(dst, s[:skip(s, n)]...), ""
			case len(filler) == 0:
				return append(dst, s...), ""
			case n > maxString: // no character is shorter than a byte
				return dst, tooLong
			}
			if front {
				return append(appendFill(dst, filler, missing), s...), ""
			}
			return appendFill(append(dst, s...), filler, missing), ""
		})
	}
}

// appendFill appends n characters, those of filler again and again.
func appendFill(dst, filler []byte, n int64) []byte {
	for size := int64(utf8.RuneCount(filler)); n > size; n -= size {
		dst = append(dst, filler...)
	}
	return append(dst, filler[:skip(filler, n)]...)
}

func repeat(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
		s, n := args[0].Str(row), args[1].Ints[row]
		if int64(len(s))*n > maxString {
			return dst, tooLong
		}
		if len(s) > 0 {
			for range n {
				dst = append(dst, s...)
			}
		}
		return dst, ""
	})
}
