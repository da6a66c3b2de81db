package expr

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTypeText: every type comes back from its SQL spelling, which is what is stored.
func TestTypeText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ  Type
		text string
	}{
		{Type{}, "NULL"},
		{Type{Kind: Boolean}, "BOOLEAN"},
		{Type{Kind: Int}, "INT"},
		{Type{Kind: BigInt}, "BIGINT"},
		{Type{Kind: Double}, "DOUBLE"},
		{DecimalType(2), "DECIMAL(38, 2)"},
		{DecimalType(0), "DECIMAL(38, 0)"},
		{Type{Kind: String}, "STRING"},
		{Type{Kind: TimestampLTZ, Precision: 3}, "TIMESTAMP_LTZ(3)"},
		{Type{Kind: TimestampLTZ}, "TIMESTAMP_LTZ(0)"},
	} {
		if got := c.typ.String(); got != c.text {
			t.Errorf("String: %q, want %q", got, c.text)
		}
		var back Type
		if err := back.UnmarshalText([]byte(c.text)); err != nil || back != c.typ {
			t.Errorf("UnmarshalText(%q): %v, %v", c.text, back, err)
		}
	}
	for _, text := range []string{"", "NUMBER", "DECIMAL(x, 0)", "int"} {
		if err := new(Type).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("UnmarshalText(%q) accepted", text)
		}
	}
}

func column(i int, k Kind) *Expr { return &Expr{Op: OpColumn, Type: Type{Kind: k}, Column: i} }

func op(o Op, args ...*Expr) *Expr { return &Expr{Op: o, Type: Type{Kind: BigInt}, Args: args} }

// TestSQL: parentheses stand where they matter and only there.
func TestSQL(t *testing.T) {
	t.Parallel()
	a, b := column(0, BigInt), column(1, BigInt)
	minus := &Expr{Op: OpLiteral, Type: Type{Kind: Int}, Literal: &Literal{Int: -1}}
	text := &Expr{Op: OpLiteral, Type: Type{Kind: String}, Literal: &Literal{String: "it's"}}
	for _, c := range []struct {
		e    *Expr
		want string
	}{
		{op(OpSub, a, op(OpSub, a, b)), `a - (a - "B b")`},
		{op(OpSub, op(OpSub, a, b), a), `a - "B b" - a`},
		{op(OpMul, op(OpAdd, a, minus), a), "(a + -1) * a"},
		{op(OpNeg, op(OpNeg, a)), "-(-a)"},
		{op(OpNeg, minus), "-(-1)"},
		{op(OpAnd, op(OpOr, a, b), op(OpNot, op(OpEq, a, text))), `(a OR "B b") AND NOT a = 'it''s'`},
		{op(OpEq, op(OpEq, a, b), op(OpIsNull, a)), `(a = "B b") = (a IS NULL)`},
		{op(OpIsNotNull, op(OpIn, a, minus, op(OpConvert, b))), `a IN (-1, "B b") IS NOT NULL`},
		{&Expr{Op: OpLiteral, Type: Type{Kind: Double}}, "CAST(NULL AS DOUBLE)"},
		{&Expr{Op: OpLiteral, Type: Type{Kind: TimestampLTZ, Precision: 6}, Literal: &Literal{Int: 1_511_571_600_000_001}}, "TIMESTAMP_LTZ '2017-11-25 01:00:00.000001Z'"},
	} {
		if got := c.e.SQL([]string{"a", "B b"}); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		stored, err := json.Marshal(c.e)
		if err != nil {
			t.Fatal(err)
		}
		var back Expr
		if err := json.Unmarshal(stored, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.e, &back); diff != "" {
			t.Errorf("JSON: %s", diff)
		}
	}
}

// TestPartial pins the columns in which partial aggregates travel.
func TestPartial(t *testing.T) {
	t.Parallel()
	d, n := Type{Kind: Double}, Type{Kind: BigInt}
	for _, c := range []struct {
		agg  Aggregate
		want []Type
	}{
		{Aggregate{Func: CountStar}, []Type{n}},
		{Aggregate{Func: Count, ArgType: d}, []Type{n}},
		{Aggregate{Func: Sum, ArgType: Type{Kind: Int}}, []Type{DecimalType(0)}},
		{Aggregate{Func: Sum, ArgType: DecimalType(2)}, []Type{DecimalType(2)}},
		{Aggregate{Func: Sum, ArgType: d}, []Type{d, d, n, n, n, n}},
	} {
		if diff := cmp.Diff(c.want, c.agg.Partial()); diff != "" {
			t.Errorf("%s: %s", c.agg.Func, diff)
		}
	}
}
