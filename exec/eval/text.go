package eval

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"weir/exec/batch"
	"weir/planner/expr"
)

// textFunction lists the functions that make a string of a string, or count in it.
func textFunction(name string) compileFunc {
	const s, i, b = expr.String, expr.Int, expr.Bytes
	switch name {
	case "lower":
		return strictly(changeCase(unicode.ToLower, 'A', 'Z'), s)
	case "upper":
		return strictly(changeCase(unicode.ToUpper, 'a', 'z'), s)
	case "char_length":
		return strictly(charLength, s)
	case "octet_length":
		return anyOf(strictly(octetLength, s), strictly(octetLength, b))
	case "trim":
		return withDefault(2, text(" "), strictly(trim(true, true), s, s))
	case "ltrim":
		return withDefault(2, text(" "), strictly(trim(true, false), s, s))
	case "rtrim":
		return withDefault(2, text(" "), strictly(trim(false, true), s, s))
	case "substring":
		return anyOf(strictly(substring(skip), s, i), strictly(substring(skip), s, i, i),
			strictly(substring(skipBytes), b, i), strictly(substring(skipBytes), b, i, i))
	case "left":
		return strictly(left, s, i)
	case "right":
		return strictly(right, s, i)
	case "lpad":
		return withDefault(3, text(" "), strictly(pad(true), s, i, s))
	case "rpad":
		return withDefault(3, text(" "), strictly(pad(false), s, i, s))
	case "reverse":
		return strictly(reverse, s)
	case "repeat":
		return strictly(repeat, s, i)
	}
	return nil
}

// text is a constant.
func text(s string) *expr.Expr {
	return &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.String}, Literal: &expr.Literal{String: s}}
}

// changeCase maps every character by itself, as PostgreSQL does; from and to are the
// ASCII letters that change.
func changeCase(f func(rune) rune, from, to byte) kernel {
	return func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			return appendCase(dst, args[0].Str(row), f, from, to), ""
		})
	}
}

func appendCase(dst, s []byte, f func(rune) rune, from, to byte) []byte {
	at := len(dst)
	dst = append(dst, s...)
	for i, c := range dst[at:] {
		if c >= utf8.RuneSelf {
			return appendRunes(dst[:at+i], s[i:], f)
		}
		if c-from <= to-from {
			dst[at+i] = c ^ ('a' - 'A')
		}
	}
	return dst
}

func appendRunes(dst, s []byte, f func(rune) rune) []byte {
	for len(s) > 0 {
		r, size := utf8.DecodeRune(s)
		dst, s = utf8.AppendRune(dst, f(r)), s[size:]
	}
	return dst
}

func charLength(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return fill(out, out.Ints, rows, func(row int) (int64, verdict) {
		return int64(utf8.RuneCount(args[0].Str(row))), ""
	})
}

func octetLength(out *batch.Vector, args []*batch.Vector, _ []int32) (int, verdict) {
	offsets := args[0].Offsets
	for i := range out.Ints {
		out.Ints[i] = int64(offsets[i+1] - offsets[i])
	}
	return 0, ""
}

// trim takes away the characters of a set at one end or both.
func trim(front, back bool) kernel {
	return func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			s, set := args[0].Str(row), args[1].Str(row)
			if front {
				s = trimFront(s, set)
			}
			if back {
				s = trimBack(s, set)
			}
			return append(dst, s...), ""
		})
	}
}

// A character of valid UTF-8 occurs in a set as its bytes, and nowhere else.

func trimFront(s, set []byte) []byte {
	for len(s) > 0 {
		size := 1
		if s[0] >= utf8.RuneSelf {
			_, size = utf8.DecodeRune(s)
		}
		if !contains(set, s[:size]) {
			break
		}
		s = s[size:]
	}
	return s
}

func trimBack(s, set []byte) []byte {
	for len(s) > 0 {
		size := 1
		if s[len(s)-1] >= utf8.RuneSelf {
			_, size = utf8.DecodeLastRune(s)
		}
		if !contains(set, s[len(s)-size:]) {
			break
		}
		s = s[:len(s)-size]
	}
	return s
}

func contains(set, char []byte) bool {
	if len(set) == 1 {
		return len(char) == 1 && char[0] == set[0]
	}
	return bytes.Contains(set, char)
}

func reverse(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
		for s := args[0].Str(row); len(s) > 0; {
			_, size := utf8.DecodeLastRune(s)
			dst = append(dst, s[len(s)-size:]...)
			s = s[:len(s)-size]
		}
		return dst, ""
	})
}
