package op_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"weir/exec/exectest"
	"weir/planner/expr"
	"weir/planner/plan"
)

// TestPassingThrough: where grouping makes few groups of many rows, the local aggregate
// lets rows pass as groups of one; the answer is that of one phase, for every aggregate.
func TestPassingThrough(t *testing.T) {
	t.Parallel()
	least := expr.Aggregate{Func: expr.Min, Arg: 2, Type: text, ArgType: text, Text: "min(s)"}
	type passing struct {
		name       string
		keys       []int
		rows, size int
		aggs       []expr.Aggregate
	}
	tests := []passing{
		{"small batches", columns(0), 18_000, 100, every(twoPhases)},
		{"two keys, large batches", columns(2, 0), 20_000, 1024, every(twoPhases)},
	}
	if os.Getenv("WEIR_LONG") != "" { // more rows than pass before grouping is tried again
		tests = append(tests, passing{"and grouped again", columns(0), 700_000, 1000, []expr.Aggregate{countStar(), least}})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(5, 6))
			list := make([]change, test.rows)
			for i := range list {
				row := make([]any, len(pools))
				for c, pool := range pools {
					row[c] = pool[random.IntN(len(pool))]
				}
				row[0] = i
				if i%16 == 0 { // some keys come again
					row[0] = random.IntN(test.rows)
				}
				list[i].row = row
			}
			b := batchOf(list)
			want := exectest.Answer(t, exectest.Case{Chain: grouping(mixed, test.keys, true, true, test.aggs...), Input: mixed, Rows: b, Keys: test.keys})
			got, err := exectest.Feed(exectest.Case{Chain: grouping(mixed, test.keys, false, true, test.aggs...), Input: mixed, Rows: b, Keys: test.keys}, test.size, 0)
			if err != nil || got != want {
				t.Errorf("two phases differ from one: %v", err)
			}
		})
	}
}

// TestAlwaysOnItsOwner: a group that exists without rows is put out by the subtask that its
// key belongs to, and by no other, however often their number changes.
func TestAlwaysOnItsOwner(t *testing.T) {
	t.Parallel()
	for _, changes := range []bool{false, true} {
		for _, final := range []bool{false, true} {
			chain := rollup(changes, final)
			input, chain := chain[0].Schema, chain[1:]
			var expanded [][]any
			for _, row := range [][]any{{1, "a", 10}, {1, nil, 5}, {nil, "a", 1}, {2, "", 7}} {
				expanded = append(expanded, append(row[:3:3], 0), []any{row[0], nil, row[2], 1}, []any{nil, nil, row[2], 2})
			}
			c := exectest.Case{Chain: chain, Input: input, Keys: columns(0, 1, 3), Rows: rows(input, expanded...), Want: lines(
				"1|NULL|0|1|1|5", "1|NULL|1|2|2|15", "1|a|0|1|1|10", "2|NULL|1|1|1|7", "2||0|1|1|7", "NULL|NULL|1|1|1|1", "NULL|NULL|2|4|4|23", "NULL|a|0|1|1|1")}
			exectest.Attack(t, c)
			c.Rows, c.Want = rows(input), "NULL|NULL|2|0|0|NULL\n"
			exectest.Attack(t, c)
			c.Rows, c.Want = rows(input, []any{7, "x", 1, 0}), lines("7|x|0|1|1|1", "NULL|NULL|2|0|0|NULL")
			exectest.Attack(t, c)
		}
	}
}

// TestMultisetTakesBack: of equal rows one goes at a time.
func TestMultisetTakesBack(t *testing.T) {
	t.Parallel()
	input, b := logOf("+I 1 5,+I 1 5,+I 1 5,-D 1 5,+I 2 -,+I 2 -,-U 2 -,+U 2 7,-D 1 5,-D 2 -")
	o := plan.Operator{ID: "r", Name: "result", Kind: plan.Result, Schema: input, Result: &plan.ResultSpec{Multiset: true, Show: columns(0, 1)}}
	exectest.Attack(t, exectest.Case{
		Chain: []plan.Operator{o}, Input: input, Rows: b, Keys: columns(0, 1), Want: lines(`{"k":1,"v":5}`, `{"k":2,"v":7}`),
	})
}

// TestLocalTableIsFull: NULL, an empty text and a repeated key come when the table of the
// local aggregate is just full, by its number of groups and by the bytes of their keys.
func TestLocalTableIsFull(t *testing.T) {
	t.Parallel()
	input := []plan.Column{column("i", bigint), column("s", text)}
	for _, test := range []struct {
		groups int
		key    string
	}{{16 << 10, "%d"}, {1100, "%01000d"}, {3, "%0600000d"}} {
		var list [][]any
		for i := range test.groups {
			list = append(list, []any{i, fmt.Sprintf(test.key, i)})
		}
		list = append(list, []any{nil, nil}, []any{0, ""}, []any{nil, nil}, []any{0, fmt.Sprintf(test.key, 0)}, []any{test.groups, "x"}, []any{nil, "x"})
		b := rows(input, list...)
		for _, keys := range [][]int{{0}, {1}, {0, 1}} {
			c := exectest.Case{Chain: grouping(input, keys, true, true, countStar()), Input: input, Rows: b, Keys: keys}
			want := exectest.Answer(t, c)
			c.Chain = grouping(input, keys, false, true, countStar())
			for _, size := range []int{1000, len(list)} {
				if got, err := exectest.Feed(c, size, 0); err != nil || got != want {
					t.Errorf("%d groups, keys %v, batches of %d: two phases differ from one: %v", test.groups, keys, size, err)
				}
			}
		}
	}
}
