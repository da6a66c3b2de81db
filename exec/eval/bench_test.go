package eval

import (
	"testing"

	"weir/exec/batch"
	"weir/planner/expr"
)

func benchBatch() *batch.Batch {
	b := batch.New([]batch.Physical{batch.Ints, batch.Strings}, batch.Target)
	for i := range batch.Target {
		b.Columns[0].AppendInt(int64(i*7919) % 1000)
		b.Columns[1].AppendString([]string{"pv", "buy", "pv", "pv", "cart", "fav", "pv"}[i*31%7])
		b.EndRow(batch.Insert)
	}
	return b
}

func BenchmarkSelect(b *testing.B) {
	rows := benchBatch()
	text := func(s string) *expr.Expr {
		return &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.String}, Literal: &expr.Literal{String: s}}
	}
	behavior := &expr.Expr{Op: expr.OpColumn, Type: expr.Type{Kind: expr.String}, Column: 1}
	for name, e := range map[string]*expr.Expr{
		"int less":        condition(expr.OpLt, bigintColumn(0), number(500)),
		"string equal":    condition(expr.OpEq, behavior, text("buy")),
		"string in":       condition(expr.OpIn, behavior, text("buy"), text("cart")),
		"string in, long": condition(expr.OpIn, behavior, text("a longer string"), text("cart")),
		"and": condition(expr.OpAnd, condition(expr.OpEq, behavior, text("buy")),
			condition(expr.OpGe, bigintColumn(0), number(500))),
		"computed": condition(expr.OpGt, bigint(expr.OpMul, bigintColumn(0), number(3)), bigintColumn(0)),
	} {
		b.Run(name, func(b *testing.B) {
			p, err := Compile(e, Env{})
			if err != nil {
				b.Fatal(err)
			}
			var sel []int32
			b.ReportAllocs()
			for b.Loop() {
				if sel, err = p.Select(rows, sel); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch.Target, "ns/row")
		})
	}
}

func BenchmarkEval(b *testing.B) {
	rows := benchBatch()
	for name, e := range map[string]*expr.Expr{
		"add":    bigint(expr.OpAdd, bigintColumn(0), number(1)),
		"mul":    bigint(expr.OpMul, bigintColumn(0), bigintColumn(0)),
		"divide": bigint(expr.OpDiv, bigintColumn(0), number(7)),
	} {
		b.Run(name, func(b *testing.B) {
			p, err := Compile(e, Env{})
			if err != nil {
				b.Fatal(err)
			}
			var out batch.Vector
			for b.Loop() {
				if err := p.Eval(rows, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch.Target, "ns/row")
		})
	}
}
