package eval

import (
	"slices"
	"testing"

	"weir/exec/batch"
	"weir/planner/expr"
)

// What users read when a value cannot be cast.
func TestCastFailures(t *testing.T) {
	t.Parallel()
	kind := func(k expr.Kind) expr.Type { return expr.Type{Kind: k} }
	double := func(s string) *expr.Expr {
		return &expr.Expr{Op: expr.OpLiteral, Type: kind(expr.Double), Literal: &expr.Literal{Double: s}}
	}
	money := expr.Type{Kind: expr.Decimal, Precision: 5, Scale: 2}
	for _, c := range []struct {
		e    *expr.Expr
		want string
	}{
		{castOf(kind(expr.Int), text("abc")), `"abc" is not an INT in CAST`},
		{castOf(kind(expr.Int), text("3000000000")), `"3000000000" is out of range for INT in CAST`},
		{castOf(kind(expr.BigInt), text("")), `"" is not a BIGINT in CAST`},
		{castOf(kind(expr.Double), text("1e999")), `"1e999" is out of range for DOUBLE in CAST`},
		{castOf(money, text("1000")), `"1000" is out of range for DECIMAL(5, 2) in CAST`},
		{castOf(money, text("NaN")), `"NaN" is not a DECIMAL(5, 2) in CAST`},
		{castOf(money, double("NaN")), `NaN is not a DECIMAL(5, 2): a DECIMAL is a number in CAST`},
		{castOf(money, double("-1e30")), `-1e+30 is out of range for DECIMAL(5, 2) in CAST`},
		{castOf(kind(expr.Int), double("2147483647.5")), `2147483647.5 is out of range for INT in CAST`},
		{castOf(kind(expr.Int), number(-1<<40)), `-1099511627776 is out of range for INT in CAST`},
		{castOf(kind(expr.Boolean), text("maybe")), `"maybe" is not a BOOLEAN in CAST`},
		{castOf(kind(expr.Bytes), text(`\xabc`)), `"\\xabc" is not BYTES: the number of hexadecimal digits is odd in CAST`},
		{castOf(kind(expr.Bytes), text(`a\b`)), `"a\\b" is not BYTES: a backslash stands before another one, or before three octal digits in CAST`},
		{castOf(kind(expr.Date), text("2017-02-29")), `"2017-02-29" is not a DATE: there is no such day or time in CAST`},
		{castOf(kind(expr.Interval), text("1 year")), `"1 year" is not an INTERVAL DAY TO SECOND: it has years or months in CAST`},
		{castOf(kind(expr.MonthInterval), text("1 day")), `"1 day" is not an INTERVAL YEAR TO MONTH: it has days or a time in CAST`},
		{castOf(kind(expr.Int), text("0123456789012345678901234567890123456789012345678901234567é9x")), `"0123456789012345678901234567890123456789012345678901234567é"… is not an INT in CAST`},
	} {
		if got := rowFailure(t, c.e); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestCastRefusals(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]expr.Kind{{expr.Bytes, expr.Int}, {expr.Date, expr.Int}, {expr.Boolean, expr.Double}, {expr.Interval, expr.MonthInterval}, {expr.Double, expr.Boolean}} {
		arg := &expr.Expr{Op: expr.OpColumn, Type: expr.Type{Kind: pair[0]}}
		if _, err := Compile(castOf(expr.Type{Kind: pair[1]}, arg), Env{}); err == nil {
			t.Errorf("%v is cast to %v", expr.Type{Kind: pair[0]}, expr.Type{Kind: pair[1]})
		}
	}
	e := castOf(expr.Type{Kind: expr.Date}, text("2017-11-25"))
	e.Zone = "Nowhere/At All"
	if _, err := Compile(e, Env{}); err == nil {
		t.Error("a zone that is none")
	}
}

// A cast by a zone's clock: Berlin is an hour ahead in winter, two in summer.
func TestCastByZone(t *testing.T) {
	t.Parallel()
	ltz := expr.Type{Kind: expr.TimestampLTZ, Precision: 6}
	inBerlin := func(typ expr.Type, arg *expr.Expr) *expr.Expr {
		e := castOf(typ, arg)
		e.Zone = "Europe/Berlin"
		return e
	}
	for _, c := range []struct {
		e    *expr.Expr
		want string
	}{
		{inBerlin(expr.Type{Kind: expr.String}, inBerlin(ltz, text("2017-07-01 12:00"))), "'2017-07-01 12:00:00+02'"},
		{castOf(expr.Type{Kind: expr.String}, inBerlin(ltz, text("2017-07-01 12:00"))), "'2017-07-01 10:00:00+00'"},
		{inBerlin(expr.Type{Kind: expr.Timestamp, Precision: 6}, castOf(ltz, text("2017-11-25 23:30"))), "'2017-11-26 00:30:00'"},
		{inBerlin(expr.Type{Kind: expr.Date}, castOf(ltz, text("2017-11-25 23:30"))), "'2017-11-26'"},
	} {
		p, err := Compile(c.e, Env{})
		if err != nil {
			t.Fatal(err)
		}
		var out batch.Vector
		if err := p.Eval(intBatch(1), &out); err != nil {
			t.Fatal(err)
		}
		if got := valueText(c.e.Type, &out, 0); got != c.want {
			t.Errorf("%s: %s, want %s", show(c.e), got, c.want)
		}
	}
}

// TRY_CAST forgives its own failure, not that of what it casts.
func TestTryCast(t *testing.T) {
	t.Parallel()
	b := intBatch(0, 1, 1<<40)
	inverse := bigint(expr.OpDiv, number(1<<40), bigintColumn(0))
	e := &expr.Expr{Op: expr.OpTryCast, Type: expr.Type{Kind: expr.Int}, Args: []*expr.Expr{inverse}, Text: "TRY_CAST"}
	p, err := Compile(e, Env{})
	if err != nil {
		t.Fatal(err)
	}
	var out batch.Vector
	if err := p.Eval(b, &out); err == nil || err.Error() != "division by zero in /" {
		t.Fatal(err)
	}
	b.Sel = []int32{1, 2}
	if err := p.Eval(b, &out); err != nil || !out.Null(1) || out.Null(2) || out.Ints[2] != 1 || out.Ints[1] != 0 {
		t.Fatal(out, err)
	}
}

// CASE and COALESCE compute a value only for the rows that take it.
func TestValuesAreComputedWhereTheyAreTaken(t *testing.T) {
	t.Parallel()
	b := intBatch(0, 5, 0, 2)
	x, tenth := bigintColumn(0), bigint(expr.OpDiv, number(10), bigintColumn(0))
	guarded := bigint(expr.OpCase, condition(expr.OpNe, x, number(0)), tenth, number(-1))
	nullIfZero := bigint(expr.OpCase, condition(expr.OpEq, x, number(0)), &expr.Expr{Op: expr.OpLiteral, Type: x.Type}, x)
	lazy := bigint(expr.OpCoalesce, nullIfZero, bigint(expr.OpDiv, number(7), bigint(expr.OpAdd, x, number(1))), tenth)
	for _, c := range []struct {
		e    *expr.Expr
		want []int64
	}{
		{guarded, []int64{-1, 2, -1, 5}},
		{lazy, []int64{7, 5, 7, 2}},
	} {
		p, err := Compile(c.e, Env{})
		if err != nil {
			t.Fatal(err)
		}
		var out batch.Vector
		for range 2 {
			if err := p.Eval(b, &out); err != nil || !slices.Equal(out.Ints, c.want) {
				t.Fatal(out.Ints, err)
			}
		}
	}
	// As a condition too: WHERE CASE WHEN x <> 0 THEN 10 / x > 3 ELSE TRUE END.
	yes := &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.Boolean}, Literal: &expr.Literal{Bool: true}}
	p, err := Compile(condition(expr.OpCase, condition(expr.OpNe, x, number(0)), condition(expr.OpGt, tenth, number(3)), yes), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if sel, err := p.Select(b, nil); err != nil || !slices.Equal(sel, []int32{0, 2, 3}) {
		t.Fatal(sel, err)
	}
}

func TestCaseRefusals(t *testing.T) {
	t.Parallel()
	yes := &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.Boolean}, Literal: &expr.Literal{Bool: true}}
	for name, e := range map[string]*expr.Expr{
		"no ELSE":               bigint(expr.OpCase, yes, number(1)),
		"a number as condition": bigint(expr.OpCase, number(1), number(1), number(1)),
		"a text among numbers":  bigint(expr.OpCase, yes, text("a"), number(1)),
		"nothing":               bigint(expr.OpCoalesce),
		"texts":                 bigint(expr.OpCoalesce, text("a")),
		"unlike":                condition(expr.OpDistinct, number(1), text("a")),
	} {
		if _, err := Compile(e, Env{}); err == nil {
			t.Errorf("%s compiles", name)
		}
	}
}

// What is constant is computed once, unless it fails: then only for rows that need it.
func TestConstants(t *testing.T) {
	t.Parallel()
	p, err := Compile(castOf(expr.Type{Kind: expr.Date}, text("1970-01-02")), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := p.root.(*constant); !ok || c.value.Ints[0] != 1 {
		t.Fatalf("%T", p.root)
	}
	broken := castOf(expr.Type{Kind: expr.BigInt}, text("x"))
	e := condition(expr.OpAnd, condition(expr.OpGt, bigintColumn(0), number(5)), condition(expr.OpEq, broken, number(1)))
	if p, err = Compile(e, Env{}); err != nil {
		t.Fatal(err)
	}
	if sel, err := p.Select(intBatch(1, 2), nil); err != nil || len(sel) != 0 {
		t.Fatal(sel, err)
	}
	if _, err := p.Select(intBatch(1, 7), nil); err == nil {
		t.Fatal("no failure")
	}
	// Constants in a list are one set, however they are written.
	day := castOf(expr.Type{Kind: expr.BigInt}, text("7"))
	if p, err = Compile(condition(expr.OpIn, bigintColumn(0), day, number(9)), Env{}); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.root.(*in); !ok {
		t.Fatalf("%T", p.root)
	}
}
