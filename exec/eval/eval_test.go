package eval

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/exec/batch"
	"weir/planner/expr"
)

func compileFor(t *rapid.T, e *expr.Expr) *Program {
	p, err := Compile(e, Env{})
	if err != nil {
		text, _ := json.Marshal(e)
		t.Fatalf("compile %s: %v", text, err)
	}
	return p
}

// The kernels agree with the reference on values, NULLs and row errors.
func TestEvalAgreesWithReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		source := &exprSource{t: t}
		e := source.draw(source.anyType(), 3)
		p := compileFor(t, e)
		var out batch.Vector
		for range 2 { // scratch memory is used again
			b := drawTestBatch(t)
			want, failures := expectations(e, b, false)
			if err := p.Eval(b, &out); !checkFailure(t, e, err, failures) {
				selectOthers(b, failures)
				want, _ = expectations(e, b, false)
				if err := p.Eval(b, &out); err != nil {
					t.Fatalf("%s fails without a failing row: %v", show(e), err)
				}
			}
			if out.Len() != b.Len || out.Physical != Physical(e.Type) {
				t.Fatalf("%d rows of layout %d, want %d", out.Len(), out.Physical, b.Len)
			}
			for i := range b.Rows() {
				got := columnValue(&out, b.Row(i))
				if got.null != want[i].null || !got.null && (got.n != nil) != (want[i].n != nil) ||
					!got.null && order(e.Type.Kind, got, want[i]) != 0 {
					t.Fatalf("row %d of %s: got %+v, want %+v", b.Row(i), show(e), got, want[i])
				}
			}
			checkZeroes(t, b, &out)
		}
	})
}

// selectOthers takes the failing rows out of the selection (E2).
func selectOthers(b *batch.Batch, failures []RowError) {
	others := []int32{}
	for i := range b.Rows() {
		row := b.Row(i)
		if !slices.ContainsFunc(failures, func(f RowError) bool { return f.Row == row }) {
			others = append(others, int32(row))
		}
	}
	b.Sel = others
}

// checkZeroes checks that selected NULL rows hold zero.
func checkZeroes(t *rapid.T, b *batch.Batch, v *batch.Vector) {
	for i := range b.Rows() {
		row := b.Row(i)
		if !v.Null(row) {
			continue
		}
		zero := batch.Vector{Physical: v.Physical}
		zero.AppendNull()
		zero.ClearValid()
		valid := v.Valid
		v.Valid = nil
		got := columnValue(v, row)
		v.Valid = valid
		if want := columnValue(&zero, 0); got.b != want.b || got.f != want.f || got.s != want.s || got.n != nil && got.n.Sign() != 0 {
			t.Fatalf("NULL row %d holds %+v", row, got)
		}
	}
}

func TestSelectAgreesWithReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		source := &exprSource{t: t}
		e := source.condition(3)
		p := compileFor(t, e)
		var sel []int32
		for range 2 {
			b := drawTestBatch(t)
			values, failures := expectations(e, b, true)
			var err error
			if sel, err = p.Select(b, sel); !checkFailure(t, e, err, failures) {
				selectOthers(b, failures)
				values, _ = expectations(e, b, true)
				if sel, err = p.Select(b, sel); err != nil {
					t.Fatalf("%s fails without a failing row: %v", show(e), err)
				}
			}
			want := []int32{}
			for i, v := range values {
				if !v.null && v.b {
					want = append(want, int32(b.Row(i)))
				}
			}
			if !slices.Equal(sel, want) || sel == nil {
				t.Fatalf("%s selects %v, want %v", show(e), sel, want)
			}
		}
	})
}

// expectations evaluates the selected rows by the reference.
func expectations(e *expr.Expr, b *batch.Batch, where bool) (values []value, failures []RowError) {
	for i := range b.Rows() {
		v, err := reference(e, b, b.Row(i), where)
		if err != nil {
			failures = append(failures, *err)
		}
		values = append(values, v)
	}
	return values, failures
}

// checkFailure checks that err is one of the failures; it returns whether there is none.
func checkFailure(t *rapid.T, e *expr.Expr, err error, failures []RowError) bool {
	if err == nil {
		if len(failures) > 0 {
			t.Fatalf("%s did not fail with %v", show(e), failures[0])
		}
		return true
	}
	var rowError *RowError
	if !errors.As(err, &rowError) {
		t.Fatal(err)
	}
	for _, f := range failures {
		// A row may fail at several operands; the reference meets one of them.
		if f.Row == rowError.Row {
			return false
		}
	}
	t.Fatalf("%s fails with %+v, want one of %v", show(e), rowError, failures)
	return false
}

func show(e *expr.Expr) string {
	text, _ := json.Marshal(e)
	return string(text)
}

func bigint(op expr.Op, args ...*expr.Expr) *expr.Expr {
	return &expr.Expr{Op: op, Type: expr.Type{Kind: expr.BigInt}, Args: args, Text: string(op)}
}

func condition(op expr.Op, args ...*expr.Expr) *expr.Expr {
	return &expr.Expr{Op: op, Type: expr.Type{Kind: expr.Boolean}, Args: args, Text: string(op)}
}

func number(n int64) *expr.Expr {
	return &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.BigInt}, Literal: &expr.Literal{Int: n}}
}

func bigintColumn(i int) *expr.Expr {
	return &expr.Expr{Op: expr.OpColumn, Type: expr.Type{Kind: expr.BigInt}, Column: i}
}

func intBatch(values ...int64) *batch.Batch {
	b := batch.New([]batch.Physical{batch.Ints}, len(values))
	for _, x := range values {
		b.Columns[0].AppendInt(x)
		b.EndRow(batch.Insert)
	}
	return b
}

func TestGuardedDivision(t *testing.T) {
	t.Parallel()
	// x <> 0 AND 10 / x > 1
	e := condition(expr.OpAnd, condition(expr.OpNe, bigintColumn(0), number(0)),
		condition(expr.OpGt, bigint(expr.OpDiv, number(10), bigintColumn(0)), number(1)))
	p, err := Compile(e, Env{})
	if err != nil {
		t.Fatal(err)
	}
	b := intBatch(0, 3, 0, 20, 5)
	if sel, err := p.Select(b, nil); err != nil || !slices.Equal(sel, []int32{1, 4}) {
		t.Fatalf("selected %v, %v", sel, err)
	}
	var out batch.Vector
	if err := p.Eval(b, &out); err != nil || !slices.Equal(out.Bools, []bool{false, true, false, false, true}) {
		t.Fatalf("computed %v, %v", out.Bools, err)
	}
}

func TestRowErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e    *expr.Expr
		sel  []int32
		want string // empty: no error
		row  int
	}{
		{bigint(expr.OpAdd, bigintColumn(0), number(1)), nil, "BIGINT overflow in +", 2},
		{bigint(expr.OpAdd, bigintColumn(0), number(1)), []int32{0, 1, 3}, "", 0},
		{bigint(expr.OpDiv, number(1), bigintColumn(0)), nil, "division by zero in /", 1},
		{bigint(expr.OpMod, number(1), bigintColumn(0)), []int32{0, 1}, "division by zero in %", 1},
		{bigint(expr.OpNeg, bigintColumn(0)), nil, "BIGINT overflow in neg", 3},
	} {
		p, err := Compile(c.e, Env{})
		if err != nil {
			t.Fatal(err)
		}
		b := intBatch(5, 0, 1<<63-1, -1<<63)
		b.Sel = c.sel
		var out batch.Vector
		err = p.Eval(b, &out)
		var rowError *RowError
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.e.Op, err)
			}
		} else if !errors.As(err, &rowError) || err.Error() != c.want || rowError.Row != c.row {
			t.Errorf("%s: %v, want %q at row %d", c.e.Op, err, c.want, c.row)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	text := &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.String}, Literal: &expr.Literal{}}
	for name, e := range map[string]*expr.Expr{
		"unknown operation":    condition("like", text),
		"operands":             condition(expr.OpEq, text),
		"BIGINT = STRING":      condition(expr.OpEq, number(1), text),
		"convert STRING":       bigint(expr.OpConvert, text),
		"STRING + STRING":      bigint(expr.OpAdd, text, text),
		"\"and\" of BIGINT":    condition(expr.OpAnd, number(1), number(2)),
		"\"not\" of STRING":    condition(expr.OpNot, text),
		"in a list with":       condition(expr.OpIn, number(1), text),
		"parsing \"x\"":        {Op: expr.OpLiteral, Type: expr.Type{Kind: expr.Double}, Literal: &expr.Literal{Double: "x"}},
		"is not a decimal":     {Op: expr.OpLiteral, Type: expr.DecimalType(2), Literal: &expr.Literal{Decimal: "x"}},
		"- STRING giving BIGI": bigint(expr.OpNeg, text),
	} {
		if _, err := Compile(e, Env{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := Compile(number(1), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Select(intBatch(1), nil); err == nil {
		t.Error("selected by a number")
	}
}

func TestColumnPassesOn(t *testing.T) {
	t.Parallel()
	p, err := Compile(bigintColumn(0), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if i, ok := p.Column(); !ok || i != 0 {
		t.Fatalf("column %d, %v", i, ok)
	}
	if p.Type().Kind != expr.BigInt {
		t.Fatal(p.Type())
	}
}

// Evaluation allocates nothing once its vectors have grown.
func TestNoAllocations(t *testing.T) {
	b := intBatch(slices.Repeat([]int64{4, 0, -3}, 300)...)
	e := condition(expr.OpOr, condition(expr.OpIn, bigintColumn(0), number(4), number(9)),
		condition(expr.OpLt, bigint(expr.OpAdd, bigintColumn(0), number(1)), bigintColumn(0)))
	p, err := Compile(e, Env{})
	if err != nil {
		t.Fatal(err)
	}
	var sel []int32
	var out batch.Vector
	run := func() {
		if sel, err = p.Select(b, sel); err != nil {
			t.Fatal(err)
		}
		if err := p.Eval(b, &out); err != nil {
			t.Fatal(err)
		}
	}
	run()
	run()
	if n := testing.AllocsPerRun(10, run); n > 0 {
		t.Fatalf("%v allocations per batch", n)
	}
}
