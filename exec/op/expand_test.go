package op_test

import (
	"math"
	"slices"
	"testing"

	"weir/exec/batch"
	"weir/exec/exectest"
	"weir/planner/expr"
	"weir/planner/plan"
)

// rollup is GROUP BY ROLLUP (k, s), or the same in one phase over changing rows.
func rollup(changes, final bool) []plan.Operator {
	integer := expr.Type{Kind: expr.Int}
	input := []plan.Column{column("k", bigint), column("s", text), column("v", bigint)}
	expanded := append(slices.Clone(input), column("$set", integer))
	null := func(t expr.Type) *expr.Expr { return &expr.Expr{Op: expr.OpLiteral, Type: t} }
	chain := []plan.Operator{{
		ID: "expand", Name: "expand", Kind: plan.Expand, Schema: expanded,
		Expand: &plan.ExpandSpec{Keys: columns(0, 1), Sets: [][]int{{0, 1}, {0}, {}}},
	}}
	chain = append(chain, grouping(expanded, columns(0, 1, 3), changes, final, countStar(), count(2, bigint), sum(2, bigint, expr.DecimalType(0)))...)
	global := chain[len(chain)-1].Aggregate
	global.Changing = changes
	global.Always = [][]*expr.Expr{{null(bigint), null(text), {Op: expr.OpLiteral, Type: integer, Literal: &expr.Literal{Int: 2}}}}
	if !changes {
		global.Keys = columns(0, 1, 2)
	}
	return chain
}

// TestRollup: a key that is NULL and one that is not in the set are different groups, and
// the grand total is there without a row.
func TestRollup(t *testing.T) {
	t.Parallel()
	input := []plan.Column{column("k", bigint), column("s", text), column("v", bigint)}
	values := [][]any{{1, "a", 10}, {1, nil, 5}, {nil, "a", 1}, {1, "a", nil}, {2, "", 7}}
	kinds := []batch.RowKind{batch.Insert, batch.UpdateBefore, batch.UpdateAfter, batch.Delete, batch.Insert, batch.Insert, batch.UpdateBefore, batch.UpdateAfter}
	log := rows(input, []any{1, "a", 10}, []any{1, "a", 10}, []any{1, "a", 10}, []any{1, "a", 10}, []any{3, "c", 1}, []any{nil, nil, nil}, []any{nil, nil, nil}, []any{3, "c", 1})
	log.Kinds = kinds
	for _, changes := range []bool{false, true} {
		for _, final := range []bool{false, true} {
			chain := rollup(changes, final)
			attack := func(b *batch.Batch, want string) {
				t.Helper()
				exectest.Attack(t, exectest.Case{Chain: chain, Input: input, Rows: b, Want: want})
			}
			attack(rows(input, values...), lines("1|NULL|0|1|1|5", "1|NULL|1|3|2|15", "1|a|0|2|1|10", "2|NULL|1|1|1|7", "2||0|1|1|7",
				"NULL|NULL|1|1|1|1", "NULL|NULL|2|5|4|23", "NULL|a|0|1|1|1"))
			attack(rows(input), "NULL|NULL|2|0|0|NULL\n")
			if changes {
				attack(log, lines("3|NULL|1|2|2|2", "3|c|0|2|2|2", "NULL|NULL|2|2|2|2"))
				gone := rows(input, []any{1, "a", 10}, []any{1, "a", 10})
				gone.Kinds = []batch.RowKind{batch.Insert, batch.Delete}
				attack(gone, "NULL|NULL|2|0|0|NULL\n")
			}
		}
	}
}

// TestExpand: kinds and selections are kept, updates stay together.
func TestExpand(t *testing.T) {
	t.Parallel()
	input := []plan.Column{column("k", bigint), column("s", text), column("d", double), column("b", boolean), column("m", money)}
	b := rows(input, []any{1, "a", 0.5, true, batch.Int128Of(3)}, []any{1, "a", 0.5, true, batch.Int128Of(3)}, []any{2, nil, math.NaN(), false, nil})
	b.Kinds = []batch.RowKind{batch.Insert, batch.UpdateBefore, batch.UpdateAfter}
	chain := []plan.Operator{{
		ID: "expand", Name: "expand", Kind: plan.Expand, Schema: append(input[:5:5], column("$set", expr.Type{Kind: expr.Int})),
		Expand: &plan.ExpandSpec{Keys: columns(0, 1, 2, 3, 4), Sets: [][]int{{0, 1, 2, 3, 4}, {1, 4}, {}}},
	}}
	c := exectest.Case{Chain: chain, Input: input, Rows: b, Keys: columns(0), Want: lines("2|NULL|NaN|false|NULL|0", "NULL|NULL|NULL|NULL|NULL|1", "NULL|NULL|NULL|NULL|NULL|2")}
	exectest.Attack(t, c)
	b.Select(append(b.SelMemory(), 0))
	got, err := exectest.Feed(c, 2, 0)
	if want := lines("1|a|0.5|true|3|0", "NULL|NULL|NULL|NULL|NULL|2", "NULL|a|NULL|NULL|3|1"); err != nil || got != want {
		t.Errorf("of a selection: %s, %v", got, err)
	}
}
