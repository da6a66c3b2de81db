package eval

import (
	"bytes"
	"unicode/utf8"

	"weir/exec/batch"
	"weir/planner/expr"
)

// searchFunction lists the functions that look for strings in strings, and those that put
// them together.
func searchFunction(name string) compileFunc {
	const s, i, b = expr.String, expr.Int, expr.Bytes
	switch name {
	case "replace":
		return strictly(replace, s, s, s)
	case "position":
		return strictly(position, s, s)
	case "starts_with":
		return strictly(startsWith, s, s)
	case "split_index":
		return strictly(splitIndex, s, s, i)
	case "split_part":
		return strictly(splitPart, s, s, i)
	case "concat_op":
		return anyOf(strictly(concatTwo, s, s), strictly(concatTwo, b, b))
	case "concat":
		return compileConcat
	case "concat_ws":
		return compileConcatWith
	}
	return nil
}

func replace(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
		s, old, replacement := args[0].Str(row), args[1].Str(row), args[2].Str(row)
		if len(old) == 0 {
			return append(dst, s...), ""
		}
		for from := len(dst); ; {
			i := bytes.Index(s, old)
			if i < 0 {
				return append(dst, s...), ""
			}
			dst = append(append(dst, s[:i]...), replacement...)
			s = s[i+len(old):]
			if len(dst)-from > maxString {
				return dst, tooLong
			}
		}
	})
}

// position returns where args[0] begins in args[1], the first character being 1; 0: nowhere.
func position(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return fill(out, out.Ints, rows, func(row int) (int64, verdict) {
		s := args[1].Str(row)
		i := bytes.Index(s, args[0].Str(row))
		if i < 0 {
			return 0, ""
		}
		return int64(utf8.RuneCount(s[:i])) + 1, ""
	})
}

func startsWith(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return fill(out, out.Bools, rows, func(row int) (bool, verdict) {
		return bytes.HasPrefix(args[0].Str(row), args[1].Str(row)), ""
	})
}

// splitIndex takes a piece between delimiters, the first being 0, as Flink does: there is
// none in an empty string, and an empty delimiter is a blank.
func splitIndex(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
		s, delimiter, n := args[0].Str(row), args[1].Str(row), args[2].Ints[row]
		if len(delimiter) == 0 {
			delimiter = blank
		}
		if n < 0 || len(s) == 0 {
			return dst, absent
		}
		part, ok := piece(s, delimiter, n)
		if !ok {
			return dst, absent
		}
		return append(dst, part...), ""
	})
}

var blank = []byte{' '}

// splitPart takes a piece between delimiters, the first being 1 and the last -1, as
// PostgreSQL does: an empty string where there is none.
func splitPart(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
		s, delimiter, n := args[0].Str(row), args[1].Str(row), args[2].Ints[row]
		switch {
		case n == 0:
			return dst, "there is no piece 0"
		case len(delimiter) == 0:
			if n == 1 || n == -1 {
				dst = append(dst, s...)
			}
			return dst, ""
		case n < 0:
			n += int64(bytes.Count(s, delimiter)) + 2
		}
		if n < 1 {
			return dst, ""
		}
		part, _ := piece(s, delimiter, n-1)
		return append(dst, part...), ""
	})
}

// piece returns piece n of s, the first being 0.
func piece(s, delimiter []byte, n int64) (part []byte, ok bool) {
	for ; n > 0; n-- {
		i := bytes.Index(s, delimiter)
		if i < 0 {
			return nil, false
		}
		s = s[i+len(delimiter):]
	}
	if i := bytes.Index(s, delimiter); i >= 0 {
		s = s[:i]
	}
	return s, true
}

func concatTwo(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
		return append(append(dst, args[0].Str(row)...), args[1].Str(row)...), ""
	})
}

// compileConcat makes CONCAT, which leaves NULLs out and is never NULL.
func compileConcat(e *expr.Expr, args []node, _ Env) (node, error) {
	if err := checkKinds(e, allStrings(len(args))...); err != nil {
		return nil, err
	}
	n := newCall(e, args, func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			for _, v := range args {
				if !v.Null(row) {
					dst = append(dst, v.Str(row)...)
				}
			}
			return dst, ""
		})
	})
	n.strict = 0
	return n, nil
}

// compileConcatWith makes CONCAT_WS, which puts its first argument between the others
// that are not NULL.
func compileConcatWith(e *expr.Expr, args []node, _ Env) (node, error) {
	if err := checkKinds(e, allStrings(max(len(args), 1))...); err != nil {
		return nil, err
	}
	n := newCall(e, args, func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			some := false
			for _, v := range args[1:] {
				if v.Null(row) {
					continue
				}
				if some {
					dst = append(dst, args[0].Str(row)...)
				}
				dst, some = append(dst, v.Str(row)...), true
			}
			return dst, ""
		})
	})
	n.strict = 1
	return n, nil
}

// allStrings are the kinds of n arguments.
func allStrings(n int) []expr.Kind {
	kinds := make([]expr.Kind, n)
	for i := range kinds {
		kinds[i] = expr.String
	}
	return kinds
}
