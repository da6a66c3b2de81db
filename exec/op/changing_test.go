package op_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/exec/batch"
	"weir/exec/exectest"
	"weir/planner/expr"
	"weir/planner/plan"
)

// logOf makes a changelog of (k, v) out of lines like "+I 1 2"; a dash is NULL.
func logOf(text string) ([]plan.Column, *batch.Batch) {
	input := []plan.Column{column("k", bigint), column("v", bigint)}
	kinds := map[string]batch.RowKind{"+I": batch.Insert, "-U": batch.UpdateBefore, "+U": batch.UpdateAfter, "-D": batch.Delete}
	var values [][]any
	var list []batch.RowKind
	for _, line := range strings.Split(text, ",") {
		var row []any
		f := strings.Fields(line)
		for _, x := range f[1:] {
			if x == "-" {
				row = append(row, nil)
				continue
			}
			var n int
			if _, err := fmt.Sscan(x, &n); err != nil {
				panic(err)
			}
			row = append(row, n)
		}
		values, list = append(values, row), append(list, kinds[f[0]])
	}
	b := rows(input, values...)
	b.Kinds = list
	return input, b
}

// TestChangesOfGroups: what a batch of changes makes of groups; at most one change of each.
func TestChangesOfGroups(t *testing.T) {
	t.Parallel()
	distinct := count(1, bigint)
	distinct.Distinct = true
	least := expr.Aggregate{Func: expr.Min, Arg: 1, Type: bigint, ArgType: bigint, Text: "min(v)"}
	for _, test := range []struct {
		name, batches, want string
		keys                []int
		aggs                []expr.Aggregate
	}{
		{
			"an update within a group", "+I 1 5,+I 1 6 / -U 1 5,+U 1 7", "+I 1|2|11, / -U 1|2|11,+U 1|2|13,",
			columns(0),
			[]expr.Aggregate{countStar(), sum(1, bigint, bigint)},
		},
		{
			"from group to group", "+I 1 5,+I 2 5 / -U 1 5,+U 2 5", "+I 1|1,+I 2|1, / -D 1|1,-U 2|1,+U 2|2,",
			columns(0),
			[]expr.Aggregate{countStar()},
		},
		{
			"there and back", "+I 1 5 / -U 1 5,+U 2 5,-U 2 5,+U 1 5", "+I 1|1, / ",
			columns(0),
			[]expr.Aggregate{countStar()},
		},
		{
			"the last value goes, NULL stays", "+I 1 5,+I 1 - / -D 1 5 / -D 1 -", "+I 1|2|1|5|5, / -U 1|2|1|5|5,+U 1|1|0|NULL|NULL, / -D 1|1|0|NULL|NULL,",
			columns(0),
			[]expr.Aggregate{countStar(), distinct, sum(1, bigint, bigint), least},
		},
		{
			"without keys the group stays", "+I 1 5 / -D 1 5 / +I 1 6", "+I 1|5|5, / -U 1|5|5,+U 0|NULL|NULL, / -U 0|NULL|NULL,+U 1|6|6,",
			nil,
			[]expr.Aggregate{countStar(), sum(1, bigint, bigint), least},
		},
		{
			"one of equal values goes", "+I 1 5,+I 1 5 / -D 1 5", "+I 1|1|5, / ",
			columns(0),
			[]expr.Aggregate{distinct, least},
		},
		{
			"distinct rows", "+I 1 5,+I 1 6 / -D 1 5 / -D 1 6", "+I 1, /  / -D 1,",
			columns(0),
			nil,
		},
		{
			"a group that comes and goes", "+I 1 5,-D 1 5 / +I 1 4", " / +I 1|1,",
			columns(0),
			[]expr.Aggregate{countStar()},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			parts := strings.Split(test.batches, " / ")
			input, b := logOf(strings.Join(parts, ","))
			chain := grouping(input, test.keys, true, false, test.aggs...)
			chain[0].Aggregate.Changing = true
			var sizes []int
			for _, part := range parts {
				sizes = append(sizes, strings.Count(part, ",")+1)
			}
			got, err := exectest.Changes(exectest.Case{Chain: chain, Input: input, Rows: b}, sizes)
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(got, " / "); text != test.want {
				t.Errorf("got  %s\nwant %s", text, test.want)
			}
		})
	}
}

// TestTakenBackTooOften: a changelog that takes back what is not there is an error that
// says where, and no panic.
func TestTakenBackTooOften(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ log, want string }{
		{"+I 1 5,-D 1 5,-D 1 5", "global_aggregate: a -D of a row that the group does not hold"},
		{"-U 1 5", "global_aggregate: a -U of a row that the group does not hold"},
		{"+I 1 5,-D 1 6", "global_aggregate: a -D of a value that the group does not hold"},
		{"+I 1 -,-D 1 5", "sum(v): a row is taken back that was not there"},
	} {
		input, b := logOf(test.log)
		least := expr.Aggregate{Func: expr.Max, Arg: 1, Type: bigint, ArgType: bigint, Text: "max(v)"}
		aggs := []expr.Aggregate{least}
		if strings.HasPrefix(test.want, "sum") {
			aggs = []expr.Aggregate{sum(1, bigint, bigint)}
		}
		chain := grouping(input, columns(0), true, false, aggs...)
		chain[0].Aggregate.Changing = true
		for _, size := range []int{1, 3} {
			err := exectest.Failure(t, exectest.Case{Chain: chain, Input: input, Rows: b}, size)
			if err == nil || err.Error() != test.want {
				t.Errorf("%s, batches of %d: %v", test.log, size, err)
			}
		}
	}
}

// TestResultOfFilteredChanges: a filter over a changing table makes +U without -U and -U
// without +U; the result holds the rows that are left, by key and by all columns.
func TestResultOfFilteredChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		table := map[int]int{}
		var log, left []string
		note := func(kind string, k, v int) { log = append(log, fmt.Sprintf("%s %d %d", kind, k, v)) }
		for range rapid.IntRange(1, 40).Draw(r, "changes") {
			k, v := rapid.IntRange(0, 3).Draw(r, "k"), rapid.IntRange(0, 5).Draw(r, "v")
			old, there := table[k]
			switch {
			case there && rapid.IntRange(0, 3).Draw(r, "delete") == 0:
				note("-D", k, old)
				delete(table, k)
				continue
			case there:
				note("-U", k, old)
				note("+U", k, v)
			default:
				note("+I", k, v)
			}
			table[k] = v
		}
		for k, v := range table {
			if v > 2 {
				left = append(left, fmt.Sprintf(`{"k":%d,"v":%d}`+"\n", k, v))
			}
		}
		input, b := logOf(strings.Join(log, ","))
		v := &expr.Expr{Op: expr.OpColumn, Type: bigint, Column: 1}
		two := &expr.Expr{Op: expr.OpLiteral, Type: bigint, Literal: &expr.Literal{Int: 2}}
		chain := []plan.Operator{
			{ID: "f", Name: "filter", Kind: plan.Filter, Schema: input, Filter: &plan.FilterSpec{Predicate: &expr.Expr{Op: expr.OpGt, Type: boolean, Args: []*expr.Expr{v, two}}}},
			{ID: "r", Name: "result", Kind: plan.Result, Schema: input, Result: &plan.ResultSpec{Keys: columns(0), Multiset: rapid.Bool().Draw(r, "multiset"), Show: columns(0, 1)}},
		}
		got, err := exectest.Feed(exectest.Case{Chain: chain, Input: input, Rows: b}, rapid.IntRange(1, 10).Draw(r, "size"), 0)
		if err != nil {
			r.Fatal(err)
		}
		if want := sorted(left); got != want {
			r.Fatalf("of %v\nwant\n%sgot\n%s", log, want, got)
		}
	})
}

func sorted(list []string) string {
	slices.Sort(list)
	return strings.Join(list, "")
}

// TestZeroOfSigns: MIN and MAX show -0 where there is no 0, whatever the order.
func TestZeroOfSigns(t *testing.T) {
	t.Parallel()
	input := []plan.Column{column("k", bigint), column("v", double)}
	minus := math.Copysign(0, -1)
	least := expr.Aggregate{Func: expr.Min, Arg: 1, Type: double, ArgType: double, Text: "min(v)"}
	most := expr.Aggregate{Func: expr.Max, Arg: 1, Type: double, ArgType: double, Text: "max(v)"}
	for _, raw := range []bool{false, true} {
		exectest.Attack(t, exectest.Case{
			Chain: grouping(input, columns(0), raw, false, least, most), Input: input, Keys: columns(0),
			Rows: rows(input, []any{1, minus}, []any{2, 0.0}, []any{2, minus}, []any{3, minus}, []any{3, 0.0}, []any{4, 0.0}),
			Want: lines("1|-0|-0", "2|-0|0", "3|-0|0", "4|0|0"),
		})
	}
}

// TestRefusedAggregates: what no plan says is refused, not computed wrongly.
func TestRefusedAggregates(t *testing.T) {
	t.Parallel()
	input := []plan.Column{column("k", bigint), column("v", text)}
	distinct := count(1, text)
	distinct.Distinct = true
	sketch := expr.Aggregate{Func: expr.ApproxCountDistinct, Arg: 1, Type: bigint, ArgType: text, Text: "approx_count_distinct(v)"}
	for _, test := range []struct {
		agg           expr.Aggregate
		raw, changing bool
		want          string
	}{
		{distinct, false, false, "a local aggregate knows only some of the values"},
		{sketch, true, true, `this version has no "approx_count_distinct" of STRING`},
		{sum(1, text, text), true, false, `this version has no "sum" of STRING`},
		{countStar(), false, true, "a local aggregate of rows that are taken back"},
	} {
		chain := grouping(input, columns(0), test.raw, false, test.agg)
		for i := range chain {
			chain[i].Aggregate.Changing = test.changing
		}
		_, err := exectest.Feed(exectest.Case{Chain: chain, Input: input, Rows: rows(input)}, 1, 0)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.agg.Text, err)
		}
	}
}

// TestChainOverChanges attacks a whole chain over changing rows: what a filter and a
// projection leave of them is grouped.
func TestChainOverChanges(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	list, left := changelog(120, changing, random.IntN)
	i := &expr.Expr{Op: expr.OpColumn, Type: bigint, Column: 1}
	project := make([]*expr.Expr, len(mixed))
	for c := range mixed {
		project[c] = &expr.Expr{Op: expr.OpColumn, Type: mixed[c].Type, Column: c}
	}
	chain := append([]plan.Operator{
		{ID: "f", Name: "filter", Kind: plan.Filter, Schema: mixed, Filter: &plan.FilterSpec{Predicate: &expr.Expr{
			Op: expr.OpGt, Type: boolean, Args: []*expr.Expr{i, {Op: expr.OpLiteral, Type: bigint, Literal: &expr.Literal{Int: 0}}},
		}}},
		{ID: "p", Name: "project", Kind: plan.Project, Schema: mixed, Project: &plan.ProjectSpec{Exprs: project}},
	}, aggregating(changing, columns(0), false)...)
	left = slices.DeleteFunc(left, func(row []any) bool { return row[1] == nil || row[1].(int) <= 0 })
	exectest.Attack(t, exectest.Case{
		Chain: chain, Input: mixed, Rows: batchOf(list), Keys: columns(0), Want: answer(left, columns(0), every(changing)),
	})
}
