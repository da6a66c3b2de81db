package eval

import (
	"fmt"
	"sort"
	"testing"

	"weir/exec/batch"
	"weir/planner/expr"
)

// textBatch has texts, numbers as text, JSON, integers, doubles and decimals.
func textBatch() *batch.Batch {
	b := batch.New([]batch.Physical{batch.Strings, batch.Strings, batch.Strings, batch.Ints, batch.Floats, batch.Decimals}, batch.Target)
	for i := range batch.Target {
		b.Columns[0].AppendString([]string{"a page of the shop", "Buy now, Pay later", "cart", "Müllers Öl", "https://shop.example/item/17"}[i*31%5])
		b.Columns[1].AppendString(fmt.Sprint(i * 7919))
		b.Columns[2].AppendString(fmt.Sprintf(`{"user": {"id": %d, "name": "someone"}, "tags": ["x", "y"], "a": {"b": "value %d"}}`, i, i))
		b.Columns[3].AppendInt(int64(i*7919) % 1000)
		b.Columns[4].AppendFloat(float64(i*7919) / 64)
		b.Columns[5].AppendDecimal(batch.Int128Of(int64(i) * 12345))
		b.EndRow(batch.Insert)
	}
	return b
}

func intConstant(n int64) *expr.Expr {
	return &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.Int}, Literal: &expr.Literal{Int: n}}
}

func castOf(typ expr.Type, arg *expr.Expr) *expr.Expr {
	return &expr.Expr{Op: expr.OpCast, Type: typ, Args: []*expr.Expr{arg}, Text: "CAST"}
}

// benchExprs are expressions over textBatch that allocate nothing per row.
func benchExprs() map[string]*expr.Expr {
	column := func(i int, typ expr.Type) *expr.Expr { return &expr.Expr{Op: expr.OpColumn, Type: typ, Column: i} }
	s, digits, json := stringColumn(0), stringColumn(1), stringColumn(2)
	n := bigintColumn(3)
	money := expr.Type{Kind: expr.Decimal, Precision: 20, Scale: 2}
	text3 := func(name string, a, b *expr.Expr) *expr.Expr { return callOf(name, expr.Boolean, s, a, b) }
	return map[string]*expr.Expr{
		"lower":              callOf("lower", expr.String, s),
		"char_length":        callOf("char_length", expr.Int, s),
		"trim":               callOf("trim", expr.String, s),
		"substring":          callOf("substring", expr.String, s, intConstant(3), intConstant(5)),
		"replace":            callOf("replace", expr.String, s, text("a"), text("--")),
		"position":           callOf("position", expr.Int, text("shop"), s),
		"split_part":         callOf("split_part", expr.String, s, text(" "), intConstant(2)),
		"concat_op":          callOf("concat_op", expr.String, s, digits),
		"concat":             callOf("concat", expr.String, s, text("-"), digits),
		"lpad":               callOf("lpad", expr.String, digits, intConstant(12), text("0")),
		"like prefix":        text3("like", text("https:%"), text(`\`)),
		"like contains":      text3("like", text("%shop%"), text(`\`)),
		"like parts":         text3("like", text("%s_op%/%7"), text(`\`)),
		"like from data":     text3("like", digits, text(`\`)),
		"ilike contains":     text3("ilike", text("%PAY%"), text(`\`)),
		"json_value":         callOf("json_value", expr.String, json, text("$.a.b")),
		"text to BIGINT":     castOf(expr.Type{Kind: expr.BigInt}, digits),
		"text to DOUBLE":     castOf(expr.Type{Kind: expr.Double}, digits),
		"text to DECIMAL":    castOf(money, digits),
		"BIGINT to text":     castOf(expr.Type{Kind: expr.String}, n),
		"DOUBLE to text":     castOf(expr.Type{Kind: expr.String}, column(4, expr.Type{Kind: expr.Double})),
		"DECIMAL to text":    castOf(expr.Type{Kind: expr.String}, column(5, money)),
		"DOUBLE to DECIMAL":  castOf(money, column(4, expr.Type{Kind: expr.Double})),
		"DOUBLE to BIGINT":   castOf(expr.Type{Kind: expr.BigInt}, column(4, expr.Type{Kind: expr.Double})),
		"BIGINT to INT":      castOf(expr.Type{Kind: expr.Int}, n),
		"case of texts":      {Op: expr.OpCase, Type: expr.Type{Kind: expr.String}, Args: []*expr.Expr{condition(expr.OpLt, n, number(300)), s, condition(expr.OpLt, n, number(600)), text("between"), digits}},
		"case of BIGINT":     {Op: expr.OpCase, Type: expr.Type{Kind: expr.BigInt}, Args: []*expr.Expr{condition(expr.OpLt, n, number(300)), number(1), condition(expr.OpLt, n, number(600)), n, number(3)}},
		"coalesce of BIGINT": {Op: expr.OpCoalesce, Type: expr.Type{Kind: expr.BigInt}, Args: []*expr.Expr{n, number(3)}},
	}
}

func BenchmarkCall(b *testing.B) {
	rows := textBatch()
	exprs := benchExprs()
	exprs["regexp_extract"] = callOf("regexp_extract", expr.String, stringColumn(0), text("item/([0-9]+)"), intConstant(1))
	exprs["regexp_replace"] = callOf("regexp_replace", expr.String, stringColumn(0), text("[aeiou]"), text("*"))
	names := []string{}
	for name := range exprs {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			p, err := Compile(exprs[name], Env{})
			if err != nil {
				b.Fatal(err)
			}
			var out batch.Vector
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Eval(rows, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch.Target, "ns/row")
		})
	}
}

func TestCallsAllocateNothing(t *testing.T) {
	rows := textBatch()
	for name, e := range benchExprs() {
		p, err := Compile(e, Env{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var out batch.Vector
		run := func() {
			if err := p.Eval(rows, &out); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 { // both vectors grow
			run()
		}
		if n := testing.AllocsPerRun(5, run); n > 0 {
			t.Errorf("%s: %v allocations per batch", name, n)
		}
	}
}
