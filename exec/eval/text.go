package eval

import (
	"unicode/utf8"

	"weir/exec/batch"
	"weir/planner/expr"
)

// textFunction lists the functions of strings.
func textFunction(name string) compileFunc {
	switch name {
	case "char_length":
		return strictly(charLength, expr.String)
	case "octet_length":
		return compileOctetLength
	}
	return nil
}

func charLength(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return fill(out, out.Ints, rows, func(row int) (int64, verdict) {
		return int64(utf8.RuneCount(args[0].Str(row))), ""
	})
}

func compileOctetLength(e *expr.Expr, args []node, _ Env) (node, error) {
	if len(e.Args) != 1 || e.Args[0].Type.Kind != expr.Bytes {
		if err := checkKinds(e, expr.String); err != nil {
			return nil, err
		}
	}
	return newCall(e, args, func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		offsets := args[0].Offsets
		for i := range out.Ints {
			out.Ints[i] = int64(offsets[i+1] - offsets[i])
		}
		return 0, ""
	}), nil
}
