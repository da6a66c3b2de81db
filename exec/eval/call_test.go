package eval

import (
	"errors"
	"math"
	"testing"

	"weir/exec/batch"
	"weir/planner/expr"
)

func callOf(name string, typ expr.Kind, args ...*expr.Expr) *expr.Expr {
	return &expr.Expr{Op: expr.OpCall, Func: name, Type: expr.Type{Kind: typ}, Args: args, Text: name}
}

func stringColumn(i int) *expr.Expr {
	return &expr.Expr{Op: expr.OpColumn, Type: expr.Type{Kind: expr.String}, Column: i}
}

// write leaves rows empty that are not computed or NULL, and fill takes verdicts.
func TestLoops(t *testing.T) {
	t.Parallel()
	out := batch.Vector{Physical: batch.Strings}
	out.Resize(6)
	row, v := write(&out, []int32{1, 2, 4}, func(dst []byte, row int) ([]byte, verdict) {
		dst = append(dst, "xyz"[:row/2+1]...)
		if row == 2 {
			return dst, absent
		}
		return dst, ""
	})
	if row != 0 || v != "" || out.Len() != 6 || !out.Null(2) || out.Null(1) || out.Null(4) {
		t.Fatal(row, v, out)
	}
	for i, want := range []string{"", "x", "", "", "xyz", ""} {
		if got := string(out.Str(i)); got != want {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
	if row, v := write(&out, []int32{3}, func(dst []byte, _ int) ([]byte, verdict) {
		return append(dst, make([]byte, maxString+1)...), ""
	}); row != 3 || v != tooLong {
		t.Fatal(row, v)
	}
	numbers := batch.Vector{Physical: batch.Ints}
	numbers.Resize(3)
	row, v = fill(&numbers, numbers.Ints, nil, func(row int) (int64, verdict) {
		return int64(row), [...]verdict{"", absent, "no such number"}[row]
	})
	if row != 2 || v != "no such number" || !numbers.Null(1) || numbers.Null(0) {
		t.Fatal(row, v)
	}
}

// A strict function is not computed for rows that are NULL or not selected.
func TestCallIsStrict(t *testing.T) {
	t.Parallel()
	b := batch.New([]batch.Physical{batch.Ints}, 4)
	for _, x := range []int64{0, 1, 2, 3} {
		b.Columns[0].AppendInt(x)
		b.EndRow(batch.Insert)
	}
	b.Columns[0].AppendNull()
	b.EndRow(batch.Insert)
	e := callOf("odd", expr.BigInt, bigintColumn(0))
	n := newCall(e, []node{&column{physical: batch.Ints}}, func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		return fill(out, out.Ints, rows, func(row int) (int64, verdict) {
			if args[0].Ints[row]%2 == 0 {
				return math.MinInt64, "an even number"
			}
			return args[0].Ints[row], ""
		})
	})
	var failed *RowError
	if _, err := n.eval(b, nil); !errors.As(err, &failed) || failed.Row != 0 || err.Error() != "an even number in odd" {
		t.Fatal(err)
	}
	v, err := n.eval(b, []int32{1, 3, 4})
	if err != nil || v.Ints[1] != 1 || v.Ints[3] != 3 || !v.Null(4) || v.Null(3) {
		t.Fatal(v, err)
	}
}

func TestCallRefusals(t *testing.T) {
	t.Parallel()
	for _, e := range []*expr.Expr{
		callOf("no_such_function", expr.Int),
		callOf("char_length", expr.Int, number(1)),
		callOf("char_length", expr.Int),
		callOf("octet_length", expr.Int, number(1)),
	} {
		if _, err := Compile(e, Env{}); err == nil {
			t.Errorf("%s compiles", e.Func)
		} else {
			t.Log(err)
		}
	}
}
