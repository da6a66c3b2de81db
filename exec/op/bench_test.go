package op

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/expr"
	"weir/planner/plan"
)

// drop is the end of a benchmarked chain.
type drop struct{}

func (drop) Emit(b *batch.Batch) error {
	b.Release()
	return nil
}

// input makes full batches whose keys, whole numbers and texts, take so many values.
func benchInput(keys int) []*batch.Batch {
	schema := []plan.Column{{Type: expr.Type{Kind: expr.BigInt}}, {Type: expr.Type{Kind: expr.String}}, {Type: expr.Type{Kind: expr.BigInt}}}
	var list []*batch.Batch
	x := uint64(1)
	for range max(2*keys/batch.Target, 64) {
		b := batch.New(exec.Layout(schema), batch.Target)
		for range batch.Target {
			x = x*6364136223846793005 + 1442695040888963407
			k := int(x>>33) % keys
			b.Columns[0].AppendInt(int64(k))
			b.Columns[1].AppendString(fmt.Sprintf("key%d", k))
			b.Columns[2].AppendInt(int64(x >> 40))
			b.EndRow(batch.Insert)
		}
		list = append(list, b)
	}
	return list
}

// BenchmarkAggregate gives the cost per row of both phases, by kind and number of keys.
func BenchmarkAggregate(b *testing.B) {
	bigint, text, dec := expr.Type{Kind: expr.BigInt}, expr.Type{Kind: expr.String}, expr.DecimalType(0)
	kinds := map[int]expr.Type{0: bigint, 1: text}
	aggs := []expr.Aggregate{{Func: expr.CountStar, Arg: -1, Type: bigint}, {Func: expr.Sum, Arg: 2, Type: dec, ArgType: bigint}}
	for _, kind := range []plan.OperatorKind{plan.LocalAggregate, plan.GlobalAggregate} {
		for _, key := range [][]int{{0}, {1}, {0, 1}} {
			for _, keys := range []int{4, 10_000, 1_000_000} {
				b.Run(fmt.Sprintf("%s/%v/%d", kind, key, keys), func(b *testing.B) {
					var schema []plan.Column
					for _, k := range key {
						schema = append(schema, plan.Column{Type: kinds[k]})
					}
					schema = append(schema, plan.Column{Type: bigint}, plan.Column{Type: dec})
					o, err := Open(context.Background(), exec.Setup{
						Operator: plan.Operator{Kind: kind, Schema: schema, Aggregate: &plan.AggregateSpec{Keys: key, Aggregates: aggs, Raw: true}},
						State:    state.New(state.Options{MaxParallelism: weir.DefaultMaxParallelism}), Logger: slog.New(slog.DiscardHandler),
					})
					if err != nil {
						b.Fatal(err)
					}
					input := benchInput(keys)
					for _, in := range input { // fill the state
						if err := o.Process(in, drop{}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportAllocs()
					i := 0
					for b.Loop() {
						if err := o.Process(input[i%len(input)], drop{}); err != nil {
							b.Fatal(err)
						}
						i++
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch.Target, "ns/row")
				})
			}
		}
	}
}

// BenchmarkFunctions gives the cost per row of single aggregates, of whole numbers by
// 10,000 keys, in both phases; of values that are counted, and of rows taken back.
func BenchmarkFunctions(b *testing.B) {
	bigint, text := expr.Type{Kind: expr.BigInt}, expr.Type{Kind: expr.String}
	double, dec := expr.Type{Kind: expr.Double}, expr.DecimalType(0)
	for _, test := range []struct {
		name     string
		agg      expr.Aggregate
		kind     plan.OperatorKind
		changing bool
	}{
		{"local/min", expr.Aggregate{Func: expr.Min, Arg: 2, Type: bigint, ArgType: bigint}, plan.LocalAggregate, false},
		{"local/min text", expr.Aggregate{Func: expr.Min, Arg: 1, Type: text, ArgType: text}, plan.LocalAggregate, false},
		{"local/avg", expr.Aggregate{Func: expr.Avg, Arg: 2, Type: double, ArgType: bigint}, plan.LocalAggregate, false},
		{"local/approx", expr.Aggregate{Func: expr.ApproxCountDistinct, Arg: 2, Type: bigint, ArgType: bigint}, plan.LocalAggregate, false},
		{"global/min", expr.Aggregate{Func: expr.Min, Arg: 2, Type: bigint, ArgType: bigint}, plan.GlobalAggregate, false},
		{"global/min text", expr.Aggregate{Func: expr.Min, Arg: 1, Type: text, ArgType: text}, plan.GlobalAggregate, false},
		{"global/avg", expr.Aggregate{Func: expr.Avg, Arg: 2, Type: double, ArgType: bigint}, plan.GlobalAggregate, false},
		{"global/approx", expr.Aggregate{Func: expr.ApproxCountDistinct, Arg: 2, Type: bigint, ArgType: bigint}, plan.GlobalAggregate, false},
		{"global/count distinct", expr.Aggregate{Func: expr.Count, Distinct: true, Arg: 2, Type: bigint, ArgType: bigint}, plan.GlobalAggregate, false},
		{"changing/sum", expr.Aggregate{Func: expr.Sum, Arg: 2, Type: dec, ArgType: bigint}, plan.GlobalAggregate, true},
		{"changing/max", expr.Aggregate{Func: expr.Max, Arg: 2, Type: bigint, ArgType: bigint}, plan.GlobalAggregate, true},
	} {
		b.Run(test.name, func(b *testing.B) {
			schema := []plan.Column{{Type: bigint}}
			if test.kind == plan.GlobalAggregate {
				schema = append(schema, plan.Column{Type: test.agg.Type})
			} else {
				for _, t := range test.agg.Partial() {
					schema = append(schema, plan.Column{Type: t})
				}
			}
			o, err := Open(context.Background(), exec.Setup{
				Operator: plan.Operator{Kind: test.kind, Schema: schema, Aggregate: &plan.AggregateSpec{Keys: []int{0}, Aggregates: []expr.Aggregate{test.agg}, Raw: true, Changing: test.changing}},
				Input:    []plan.Column{{Type: bigint}, {Type: text}, {Type: bigint}},
				State:    state.New(state.Options{MaxParallelism: weir.DefaultMaxParallelism}), Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				b.Fatal(err)
			}
			input := benchInput(10_000)
			for _, in := range input { // fill the state
				if err := o.Process(in, drop{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				in := input[i%len(input)]
				if test.changing { // taken back, then there again
					in.Kinds = nil
					if i/len(input)%2 == 0 {
						in.Kinds = slices.Repeat([]batch.RowKind{batch.Delete}, in.Len)
					}
				}
				if err := o.Process(in, drop{}); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch.Target, "ns/row")
		})
	}
}

// BenchmarkPage reads pages of 10,000 rows of a table of 1 M on the task's loop.
func BenchmarkPage(b *testing.B) {
	for _, order := range [][]exec.Order{nil, {{Column: "k", Desc: true}}} {
		b.Run(fmt.Sprintf("order %v", order), func(b *testing.B) {
			r := openTestResult(b, 1)
			for from := range 1000 {
				rows := batch.New(exec.Layout(oneInt), 1000)
				for k := range 1000 {
					rows.Columns[0].AppendInt(int64(1000*from + k))
					rows.Columns[1].AppendString("abc")
					rows.EndRow(batch.Insert)
				}
				if err := r.Process(rows, nil); err != nil {
					b.Fatal(err)
				}
			}
			q := exec.Query{Limit: 10_000, OrderBy: order}
			b.ReportAllocs()
			for b.Loop() {
				page, err := r.Read(q)
				if err != nil || page.Total != 1_000_000 || len(page.Rows) != 10_000 {
					b.Fatal(len(page.Rows), err)
				}
				if q.After = nil; page.More {
					q.After = page.Rows[len(page.Rows)-1].Sort
				}
			}
		})
	}
}
