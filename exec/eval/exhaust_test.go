package eval

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"weir/exec/batch"
	"weir/planner/expr"
)

// literals returns NULL and every test value of a type.
func literals(typ expr.Type) []*expr.Expr {
	list := []*expr.Expr{{Op: expr.OpLiteral, Type: typ}}
	add := func(l expr.Literal) {
		list = append(list, &expr.Expr{Op: expr.OpLiteral, Type: typ, Literal: &l})
	}
	switch typ.Kind {
	case expr.Boolean:
		add(expr.Literal{Bool: false})
		add(expr.Literal{Bool: true})
	case expr.Int:
		for _, n := range testInts {
			add(expr.Literal{Int: n})
		}
	case expr.BigInt:
		for _, n := range testBigInts {
			add(expr.Literal{Int: n})
		}
	case expr.Double:
		for _, f := range testDoubles {
			add(expr.Literal{Double: strconv.FormatFloat(f, 'g', -1, 64)})
		}
	case expr.Decimal:
		for _, d := range testDigits {
			add(expr.Literal{Decimal: d})
		}
	case expr.String:
		for _, s := range testStrings {
			add(expr.Literal{String: s})
		}
	case expr.Bytes:
		for _, s := range testBytes {
			add(expr.Literal{String: s})
		}
	case expr.Date:
		for _, n := range testDays {
			add(expr.Literal{Int: n})
		}
	case expr.Timestamp, expr.Interval:
		for _, n := range testTimes {
			add(expr.Literal{Int: n})
		}
	}
	return list
}

// pairs returns a batch with every pair of test values of a type in two columns.
func pairs(t *testing.T, typ expr.Type) *batch.Batch {
	values := literals(typ)
	b := batch.New([]batch.Physical{Physical(typ), Physical(typ)}, len(values)*len(values))
	put := func(v *batch.Vector, e *expr.Expr) {
		if e.Literal == nil {
			v.AppendNull()
		} else if err := appendLiteral(v, e); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range values {
		for _, y := range values {
			put(&b.Columns[0], x)
			put(&b.Columns[1], y)
			b.EndRow(batch.Insert)
		}
	}
	return b
}

// checkCondition compares Select and Eval with the reference for a condition that
// never fails.
func checkCondition(t *testing.T, e *expr.Expr, b *batch.Batch) {
	t.Helper()
	p, err := Compile(e, Env{})
	if err != nil {
		t.Fatal(err)
	}
	sel, err := p.Select(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out batch.Vector
	if err := p.Eval(b, &out); err != nil {
		t.Fatal(err)
	}
	values, _ := expectations(e, b, false)
	want := []int32{}
	for i, v := range values {
		if got := columnValue(&out, b.Row(i)); got != v {
			t.Fatalf("row %d of %s: %+v, want %+v", b.Row(i), show(e), got, v)
		}
		if !v.null && v.b {
			want = append(want, int32(b.Row(i)))
		}
	}
	if !slices.Equal(sel, want) {
		t.Fatalf("%s selects %v, want %v", show(e), sel, want)
	}
}

// Every comparison and IN, of every pair of awkward values, with columns and constants.
func TestComparisonsExhaustively(t *testing.T) {
	t.Parallel()
	for _, typ := range testTypes {
		b := pairs(t, typ)
		for _, sel := range [][]int32{nil, {0, 1, 3, int32(b.Len) - 1}} {
			b.Sel = sel
			x := &expr.Expr{Op: expr.OpColumn, Type: typ}
			y := &expr.Expr{Op: expr.OpColumn, Type: typ, Column: 1}
			for _, op := range []expr.Op{
				expr.OpEq, expr.OpNe, expr.OpLt, expr.OpLe, expr.OpGt, expr.OpGe,
				expr.OpDistinct, expr.OpNotDistinct,
			} {
				checkCondition(t, condition(op, x, y), b)
				checkCondition(t, condition(expr.OpNot, condition(op, x, y)), b)
				for _, c := range literals(typ) {
					checkCondition(t, condition(op, x, c), b)
					checkCondition(t, condition(op, c, x), b)
				}
			}
			list := literals(typ)
			for i := range list {
				in := condition(expr.OpIn, x, list[i], list[(i+2)%len(list)])
				checkCondition(t, in, b)
				checkCondition(t, condition(expr.OpNot, in), b)
			}
			checkCondition(t, condition(expr.OpIn, append([]*expr.Expr{x}, list[1:]...)...), b)
		}
	}
}

// Every arithmetic operation on every pair of awkward values, row by row.
func TestArithmeticExhaustively(t *testing.T) {
	t.Parallel()
	for _, typ := range testTypes {
		if !typ.Numeric() {
			continue
		}
		b := pairs(t, typ)
		x := &expr.Expr{Op: expr.OpColumn, Type: typ}
		y := &expr.Expr{Op: expr.OpColumn, Type: typ, Column: 1}
		for _, op := range []expr.Op{expr.OpAdd, expr.OpSub, expr.OpMul, expr.OpDiv, expr.OpMod, expr.OpNeg} {
			e := &expr.Expr{Op: op, Type: typ, Args: []*expr.Expr{x, y}, Text: "text"}
			if op == expr.OpNeg {
				e.Args = e.Args[:1]
			}
			p, err := Compile(e, Env{})
			if err != nil {
				t.Fatal(err)
			}
			var out batch.Vector
			for row := range b.Len {
				b.Sel = []int32{int32(row)}
				want, wantErr := reference(e, b, row, false)
				err := p.Eval(b, &out)
				if wantErr != nil {
					var failed *RowError
					if !errors.As(err, &failed) || *failed != *wantErr {
						t.Fatalf("row %d of %v %s: %v, want %v", row, typ, op, err, wantErr)
					}
					continue
				}
				if err != nil {
					t.Fatalf("row %d of %v %s: %v", row, typ, op, err)
				}
				if got := columnValue(&out, row); got.null != want.null || !got.null && order(typ.Kind, got, want) != 0 {
					t.Fatalf("row %d of %v %s: %+v, want %+v", row, typ, op, got, want)
				}
			}
		}
	}
}
