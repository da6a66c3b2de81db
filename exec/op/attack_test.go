package op_test

import (
	"math"
	"strings"
	"testing"

	"weir/exec"
	"weir/exec/batch"
	"weir/exec/exectest"
	"weir/planner/expr"
	"weir/planner/plan"
)

var (
	bigint  = expr.Type{Kind: expr.BigInt}
	double  = expr.Type{Kind: expr.Double}
	text    = expr.Type{Kind: expr.String}
	boolean = expr.Type{Kind: expr.Boolean}
)

func column(name string, t expr.Type) plan.Column { return plan.Column{Name: name, Type: t} }

// rows builds a batch; nil is NULL.
func rows(schema []plan.Column, values ...[]any) *batch.Batch {
	b := batch.New(exec.Layout(schema), len(values))
	for _, row := range values {
		for i, x := range row {
			v := &b.Columns[i]
			switch x := x.(type) {
			case nil:
				v.AppendNull()
			case bool:
				v.AppendBool(x)
			case int:
				v.AppendInt(int64(x))
			case float64:
				v.AppendFloat(x)
			case string:
				v.AppendString(x)
			case batch.Int128:
				v.AppendDecimal(x)
			}
		}
		b.EndRow(batch.Insert)
	}
	return b
}

func columns(e ...int) []int { return e }

// grouping is a local and a global aggregate over an input, or only a raw global one.
func grouping(input []plan.Column, keys []int, raw, final bool, aggs ...expr.Aggregate) []plan.Operator {
	var partial, out []plan.Column
	for _, k := range keys {
		partial, out = append(partial, input[k]), append(out, input[k])
	}
	global := append([]expr.Aggregate{}, aggs...)
	for i, a := range aggs {
		if !raw {
			global[i].Arg = len(partial)
		}
		for _, t := range a.Partial() {
			partial = append(partial, column(a.Text, t))
		}
		out = append(out, column(a.Text, a.Type))
	}
	g := plan.Operator{
		ID: "agg", Name: "global_aggregate", Kind: plan.GlobalAggregate, Schema: out,
		Aggregate: &plan.AggregateSpec{Keys: keys, Aggregates: global, Raw: raw, Final: final},
	}
	if raw {
		return []plan.Operator{g}
	}
	l := plan.Operator{
		ID: "local", Name: "local_aggregate", Kind: plan.LocalAggregate, Schema: partial,
		Aggregate: &plan.AggregateSpec{Keys: keys, Aggregates: aggs},
	}
	return []plan.Operator{l, g}
}

func countStar() expr.Aggregate {
	return expr.Aggregate{Func: expr.CountStar, Arg: -1, Type: bigint, Text: "count(*)"}
}

func count(arg int, t expr.Type) expr.Aggregate {
	return expr.Aggregate{Func: expr.Count, Arg: arg, Type: bigint, ArgType: t, Text: "count(v)"}
}

func sum(arg int, t, result expr.Type) expr.Aggregate {
	return expr.Aggregate{Func: expr.Sum, Arg: arg, Type: result, ArgType: t, Text: "sum(v)"}
}

func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

func TestGrouping(t *testing.T) {
	t.Parallel()
	kv := []plan.Column{column("k", text), column("v", bigint)}
	ik := []plan.Column{column("k", bigint), column("v", bigint)}
	dk := []plan.Column{column("k", double), column("v", double)}
	nan, inf := math.NaN(), math.Inf(1)
	kvRows := rows(kv, []any{"a", 1}, []any{"a", nil}, []any{"a", 1}, []any{"b", nil}, []any{nil, 5}, []any{"b", nil}, []any{"", 2}, []any{nil, 6},
		[]any{"a long key", 1}, []any{"a long kex", 2}, []any{"a long key", 3})
	for _, test := range []struct {
		name  string
		input []plan.Column
		rows  *batch.Batch
		keys  []int
		aggs  []expr.Aggregate
		want  string
	}{
		{
			"counts by text", kv, kvRows, columns(0),
			[]expr.Aggregate{countStar(), count(1, bigint), sum(1, bigint, expr.DecimalType(0))},
			lines("NULL|2|2|11", "a long kex|1|1|2", "a long key|2|2|4", "a|3|2|2", "b|2|0|NULL", "|1|1|2"),
		},
		{
			"one group", kv, kvRows, nil,
			[]expr.Aggregate{countStar(), count(1, bigint), sum(1, bigint, expr.DecimalType(0))},
			lines("11|8|21"),
		},
		{"no aggregate", kv, kvRows, columns(0), nil, lines("", "NULL", "a", "a long kex", "a long key", "b")},
		{
			"S01: NULL is a group of its own", ik, rows(ik, []any{0, 1}, []any{nil, 1}, []any{7, 1}, []any{nil, 1}, []any{-1, 1}, []any{7, 1}),
			columns(0),
			[]expr.Aggregate{countStar()},
			lines("-1|1", "0|1", "7|2", "NULL|2"),
		},
		{
			"two keys", ik, rows(ik, []any{1, 2}, []any{2, 1}, []any{1, 2}, []any{1, nil}, []any{nil, 1}, []any{nil, nil}, []any{nil, nil}),
			columns(1, 0),
			[]expr.Aggregate{countStar()},
			lines("1|2|1", "1|NULL|1", "2|1|2", "NULL|1|1", "NULL|NULL|2"),
		},
		{
			"S11: -0 is 0 and NaN is NaN", dk, rows(dk, []any{math.Copysign(0, -1), 1.0}, []any{0.0, 2.0}, []any{nan, 1.0}, []any{nan, nan}, []any{1.0, inf}, []any{1.0, -inf}, []any{2.0, inf}, []any{2.0, 1.0}, []any{3.0, nil}),
			columns(0),
			[]expr.Aggregate{countStar(), sum(1, double, double)},
			lines("0|2|3", "1|2|NaN", "2|2|+Inf", "3|1|NULL", "NaN|2|NaN"),
		},
		{
			"compensated sums", dk, rows(dk, []any{1.0, 1e100}, []any{1.0, 1.0}, []any{1.0, -1e100}, []any{1.0, 0.25}),
			columns(0),
			[]expr.Aggregate{sum(1, double, double)},
			lines("1|1.25"),
		},
	} {
		for _, raw := range []bool{false, true} {
			for _, final := range []bool{false, true} {
				t.Run(test.name+map[bool]string{true: " raw"}[raw]+map[bool]string{true: " final"}[final], func(t *testing.T) {
					t.Parallel()
					exectest.Attack(t, exectest.Case{
						Chain: grouping(test.input, test.keys, raw, final, test.aggs...),
						Input: test.input, Rows: test.rows, Keys: test.keys, Want: test.want,
					})
				})
			}
		}
	}
}

// S03: without GROUP BY one group exists even without input.
func TestNoInput(t *testing.T) {
	t.Parallel()
	kv := []plan.Column{column("k", text), column("v", bigint)}
	for _, final := range []bool{false, true} {
		aggs := []expr.Aggregate{countStar(), sum(1, bigint, expr.DecimalType(0))}
		exectest.Attack(t, exectest.Case{Chain: grouping(kv, nil, false, final, aggs...), Input: kv, Rows: rows(kv), Want: "0|NULL\n"})
		if got := exectest.Answer(t, exectest.Case{Chain: grouping(kv, columns(0), false, final, aggs...), Input: kv, Rows: rows(kv)}); got != "" {
			t.Errorf("with GROUP BY no input gave %q", got)
		}
	}
}

func TestOverflowNamesTheAggregate(t *testing.T) {
	t.Parallel()
	dec := expr.Type{Kind: expr.Decimal, Precision: 38}
	top, _ := batch.Pow10(38).AddInt64(-1)
	for _, test := range []struct {
		name string
		typ  expr.Type
		res  expr.Type
		vals []any
		want string
	}{
		{"INT", expr.Type{Kind: expr.Int}, bigint, []any{math.MaxInt64, 1}, "column sum(v): the sum does not fit BIGINT"},
		{"DECIMAL", dec, expr.DecimalType(0), []any{top, batch.Int128Of(1)}, "column sum(v): the sum does not fit DECIMAL(38, 0)"},
		{"128 bits", dec, expr.DecimalType(0), []any{top, top}, "column sum(v): the sum does not fit 128 bits"},
	} {
		input := []plan.Column{column("k", bigint), column("v", test.typ)}
		b := rows(input, []any{1, test.vals[0]}, []any{1, test.vals[1]})
		for _, raw := range []bool{false, true} {
			for _, size := range []int{1, 2} { // the merge path, the row path
				err := exectest.Failure(t, exectest.Case{Chain: grouping(input, columns(0), raw, false, sum(1, test.typ, test.res)), Input: input, Rows: b}, size)
				if err == nil || err.Error() != test.want {
					t.Errorf("%s raw=%v size=%d: %v", test.name, raw, size, err)
				}
			}
		}
	}
}

func TestLocalTableOverflowsItsBound(t *testing.T) {
	t.Parallel()
	input := []plan.Column{column("k", bigint), column("s", text)}
	b := batch.New(exec.Layout(input), 0)
	for i := range 50_000 {
		k := i % 40_000
		b.Columns[0].AppendInt(int64(k))
		b.Columns[1].AppendString(strings.Repeat("x", k%3) + "key")
		b.EndRow(batch.Insert)
	}
	for _, keys := range [][]int{{0}, {1}, {0, 1}} {
		c := exectest.Case{Chain: grouping(input, keys, false, false, countStar()), Input: input, Rows: b, Keys: keys}
		raw := c
		raw.Chain = grouping(input, keys, true, true, countStar())
		if exectest.Answer(t, c) != exectest.Answer(t, raw) {
			t.Errorf("keys %v: two phases differ from one", keys)
		}
	}
}

func TestResult(t *testing.T) {
	t.Parallel()
	input := []plan.Column{column("k", text), column("n", bigint), column("d", double)}
	b := rows(input, []any{"a", 1, 0.5}, []any{"b", 1, nil}, []any{"a", 1, 0.5}, []any{"a", 2, 0.5}, []any{"c", 3, math.NaN()}, []any{nil, 4, 1e21}, []any{"c", 3, math.NaN()})
	b.Kinds = []batch.RowKind{batch.Insert, batch.Insert, batch.UpdateBefore, batch.UpdateAfter, batch.Insert, batch.Insert, batch.Delete}
	keyed := plan.Operator{
		ID: "r", Name: "result", Kind: plan.Result, Result: &plan.ResultSpec{Keys: columns(0), Show: columns(1, 2)},
		Schema: []plan.Column{input[1], input[2]},
	}
	exectest.Attack(t, exectest.Case{
		Chain: []plan.Operator{keyed}, Input: input, Rows: b, Keys: columns(0),
		Want: lines(`{"n":1,"d":null}`, `{"n":2,"d":0.5}`, `{"n":4,"d":1e+21}`),
	})
	multi := keyed
	multi.Result = &plan.ResultSpec{Multiset: true, Show: columns(0, 1)}
	multi.Schema = input[:2]
	exectest.Attack(t, exectest.Case{
		Chain: []plan.Operator{multi}, Input: input, Rows: b, Keys: columns(0, 1, 2),
		Want: lines(`{"k":"a","n":2}`, `{"k":"b","n":1}`, `{"k":null,"n":4}`),
	})
}

func TestFilterAndProject(t *testing.T) {
	t.Parallel()
	input := []plan.Column{column("k", text), column("v", bigint)}
	k := &expr.Expr{Op: expr.OpColumn, Type: text, Column: 0}
	v := &expr.Expr{Op: expr.OpColumn, Type: bigint, Column: 1}
	one := &expr.Expr{Op: expr.OpLiteral, Type: bigint, Literal: &expr.Literal{Int: 1}}
	chain := []plan.Operator{
		{ID: "f", Kind: plan.Filter, Schema: input, Filter: &plan.FilterSpec{Predicate: &expr.Expr{Op: expr.OpGt, Type: boolean, Args: []*expr.Expr{v, one}}}},
		{ID: "f2", Kind: plan.Filter, Schema: input, Filter: &plan.FilterSpec{Predicate: &expr.Expr{Op: expr.OpIsNotNull, Type: boolean, Args: []*expr.Expr{k}}}},
		{
			ID: "p", Kind: plan.Project, Schema: []plan.Column{column("v", bigint), column("k", text), column("w", bigint), column("v2", bigint)},
			Project: &plan.ProjectSpec{Exprs: []*expr.Expr{v, k, {Op: expr.OpAdd, Type: bigint, Args: []*expr.Expr{v, one}, Text: "v + 1"}, v}},
		},
	}
	b := rows(input, []any{"a", 1}, []any{"b", 2}, []any{nil, 3}, []any{"c", nil}, []any{"d", 5}, []any{"a", 6})
	exectest.Attack(t, exectest.Case{Chain: chain, Input: input, Rows: b, Keys: columns(0), Want: lines("2|b|3|2", "5|d|6|5", "6|a|7|6")})
	over := rows(input, []any{"a", math.MaxInt64})
	err := exectest.Failure(t, exectest.Case{Chain: chain, Input: input, Rows: over}, 1)
	if err == nil || err.Error() != "column v + 1: BIGINT overflow" {
		t.Errorf("overflow: %v", err)
	}
	over.Origin = &batch.Origin{Table: "s", Path: "s.csv", Offsets: []int64{77}}
	err = exectest.Failure(t, exectest.Case{Chain: chain, Input: input, Rows: over}, 1)
	if err == nil || err.Error() != "table s: s.csv: column v + 1: BIGINT overflow" {
		t.Errorf("overflow: %v", err)
	}
}
