package op_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/exec/batch"
	"weir/exec/exectest"
	"weir/planner/expr"
	"weir/planner/plan"
)

// TestGroupingProperty compares both phases with a map, on random rows, NULLs,
// selections, keys and batch sizes.
func TestGroupingProperty(t *testing.T) {
	t.Parallel()
	input := []plan.Column{column("i", bigint), column("s", text), column("d", double), column("b", boolean), column("v", bigint)}
	aggs := []expr.Aggregate{countStar(), count(4, bigint), sum(4, bigint, expr.DecimalType(0))}
	rapid.Check(t, func(r *rapid.T) {
		keys := rapid.SampledFrom([][]int{{}, {0}, {1}, {2}, {3}, {0, 1}, {3, 2, 1}}).Draw(r, "keys")
		b := randomRows(r, input)
		chain := grouping(input, keys, rapid.Bool().Draw(r, "raw"), rapid.Bool().Draw(r, "final"), aggs...)
		c := exectest.Case{Chain: chain, Input: input, Rows: b, Keys: keys}
		got, err := exectest.Feed(c, rapid.IntRange(1, 20).Draw(r, "size"), rapid.IntRange(0, 3).Draw(r, "flush"))
		if err != nil {
			r.Fatal(err)
		}
		if want := reference(b, keys); got != want {
			r.Fatalf("keys %v over\n%vwant\n%s\ngot\n%s", keys, b, want, got)
		}
	})
}

func randomRows(r *rapid.T, input []plan.Column) *batch.Batch {
	var values [][]any
	for range rapid.IntRange(0, 60).Draw(r, "rows") {
		row := []any{
			rapid.SampledFrom([]any{nil, 0, 1, -1, math.MaxInt64}).Draw(r, "i"),
			rapid.SampledFrom([]any{nil, "", "a", "12345678", "123456789", "12345678\x00", "\x00"}).Draw(r, "s"),
			rapid.SampledFrom([]any{nil, 0.0, math.Copysign(0, -1), 1.5, math.NaN(), math.Inf(-1)}).Draw(r, "d"),
			rapid.SampledFrom([]any{nil, false, true}).Draw(r, "b"),
			rapid.SampledFrom([]any{nil, 1, math.MaxInt64, math.MinInt64}).Draw(r, "v"),
		}
		values = append(values, row)
	}
	b := rows(input, values...)
	if rapid.Bool().Draw(r, "select") {
		sel := b.SelMemory()
		for i := range b.Len {
			if rapid.Bool().Draw(r, "selected") {
				sel = append(sel, int32(i))
			}
		}
		b.Select(append([]int32{}, sel...))
	}
	return b
}

// reference groups with a map and adds in decimal digits.
func reference(b *batch.Batch, keys []int) string {
	type group struct {
		key         string
		rows, count int
		sum         batch.Int128
	}
	groups := map[string]*group{}
	if len(keys) == 0 {
		groups[""] = &group{}
	}
	for i := range b.Rows() {
		row := b.Row(i)
		key := string(batch.EncodeKey(nil, b, keys, row))
		g := groups[key]
		if g == nil {
			one := batch.New(nil, 0)
			for _, k := range keys {
				v := batch.Vector{Physical: b.Columns[k].Physical}
				v.AppendFrom(&b.Columns[k], row)
				if v.Physical == batch.Floats {
					v.Floats[0] += 0 // -0 shows as 0
				}
				one.Columns = append(one.Columns, v)
			}
			one.EndRow(batch.Insert)
			g = &group{key: strings.TrimSuffix(strings.TrimPrefix(one.String(), "+I "), "\n") + "|"}
			groups[key] = g
		}
		g.rows++
		if v := &b.Columns[4]; !v.Null(row) {
			g.count++
			g.sum, _ = g.sum.AddInt64(v.Ints[row])
		}
	}
	var list []string
	for _, g := range groups {
		total := "NULL"
		if g.count > 0 {
			total = g.sum.Decimal(0)
		}
		list = append(list, fmt.Sprintf("%s%d|%d|%s\n", g.key, g.rows, g.count, total))
	}
	slices.Sort(list)
	return strings.Join(list, "")
}
