package op_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/exec"
	"weir/exec/batch"
	"weir/exec/exectest"
	"weir/planner/expr"
	"weir/planner/plan"
)

var (
	money = expr.Type{Kind: expr.Decimal, Precision: 10, Scale: 2}
	// mixed has a column of every layout.
	mixed = []plan.Column{column("k", bigint), column("i", bigint), column("s", text), column("d", double), column("b", boolean), column("m", money)}
)

// The modes in which an aggregate may run.
const (
	twoPhases = "two phases"
	raw       = "raw"
	changing  = "changing"
)

// every lists all aggregates that a mode knows, over all columns that they take.
func every(mode string) []expr.Aggregate {
	list := []expr.Aggregate{countStar()}
	add := func(f expr.AggFunc, arg int, result expr.Type, distinct bool) {
		list = append(list, expr.Aggregate{Func: f, Arg: arg, Type: result, ArgType: mixed[arg].Type, Distinct: distinct, Text: fmt.Sprintf("%s(%s)", f, mixed[arg].Name)})
	}
	for arg := 1; arg < len(mixed); arg++ {
		add(expr.Count, arg, bigint, false)
		add(expr.Min, arg, mixed[arg].Type, false)
		add(expr.Max, arg, mixed[arg].Type, false)
		if mode != changing {
			add(expr.ApproxCountDistinct, arg, bigint, false)
		}
		if mode != twoPhases {
			add(expr.Count, arg, bigint, true)
		}
	}
	sums := map[int][2]expr.Type{1: {expr.DecimalType(0), double}, 3: {double, double}, 5: {expr.DecimalType(2), expr.DecimalType(6)}}
	for _, arg := range []int{1, 3, 5} {
		for _, distinct := range []bool{false, true} {
			if distinct && mode == twoPhases {
				continue
			}
			add(expr.Sum, arg, sums[arg][0], distinct)
			add(expr.Avg, arg, sums[arg][1], distinct)
		}
	}
	add(expr.BoolAnd, 4, boolean, false)
	add(expr.BoolOr, 4, boolean, false)
	return list
}

// A change is a row that comes or goes.
type change struct {
	kind batch.RowKind
	row  []any
}

// dealer draws numbers below n: of rapid, or of a seed.
type dealer func(n int) int

var pools = [][]any{
	{nil, 0, 1, math.MinInt64},
	{nil, 0, 1, -1, 7, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, 1 << 53, 1<<53 + 1},
	{nil, "", "a", "b", "ab", "a\x00", "123456789012345678", "123456789012345679", "ÿ"},
	{nil, 0.0, 1.5, -2.25, float64(1 << 40), math.NaN(), math.Inf(1), math.Inf(-1)},
	{nil, true, false},
	{nil, batch.Int128Of(0), batch.Int128Of(1), batch.Int128Of(-1), batch.Int128Of(9_999_999_999), batch.Int128Of(-9_999_999_999)},
}

// changelog makes changes, each of which takes back only what is there, and gives what is
// left.
func changelog(n int, mode string, deal dealer) (list []change, left [][]any) {
	for range n {
		if mode == changing && len(left) > 0 && deal(5) < 2 {
			i := deal(len(left))
			gone := left[i]
			left = slices.Delete(left, i, i+1)
			kind := batch.Delete
			if deal(2) == 0 {
				kind = batch.UpdateBefore
			}
			list = append(list, change{kind, gone})
			if deal(3) > 0 {
				continue
			}
		}
		row := make([]any, len(pools))
		for c, pool := range pools {
			row[c] = pool[deal(len(pool))]
		}
		kind := batch.Insert
		if mode == changing && deal(2) == 0 {
			kind = batch.UpdateAfter
		}
		list, left = append(list, change{kind, row}), append(left, row)
	}
	return list, left
}

// batchOf makes a batch of changes.
func batchOf(list []change) *batch.Batch {
	var values [][]any
	for _, c := range list {
		values = append(values, c.row)
	}
	b := rows(mixed, values...)
	for i, c := range list {
		if c.kind != batch.Insert && b.Kinds == nil {
			b.Kinds = make([]batch.RowKind, len(list))
		}
		if b.Kinds != nil {
			b.Kinds[i] = c.kind
		}
	}
	return b
}

// compare orders values of one column as PostgreSQL does.
func compare(x, y any) int {
	switch x := x.(type) {
	case int:
		return cmp.Compare(x, y.(int))
	case string:
		return bytes.Compare([]byte(x), []byte(y.(string)))
	case float64:
		y := y.(float64)
		switch {
		case math.IsNaN(x) || math.IsNaN(y):
			return cmp.Compare(isNaN(x), isNaN(y))
		}
		return cmp.Compare(x, y)
	case bool:
		return cmp.Compare(isTrue(x), isTrue(y.(bool)))
	}
	return x.(batch.Int128).Cmp(y.(batch.Int128))
}

func isNaN(f float64) int { return isTrue(math.IsNaN(f)) }

func isTrue(b bool) int {
	if b {
		return 1
	}
	return 0
}

// naive computes an aggregate of rows by looking at all of them.
func naive(a expr.Aggregate, list [][]any) any {
	if a.Func == expr.CountStar {
		return len(list)
	}
	var values []any
	for _, row := range list {
		if row[a.Arg] != nil {
			values = append(values, row[a.Arg])
		}
	}
	slices.SortFunc(values, compare)
	if a.Distinct || a.Func == expr.ApproxCountDistinct {
		values = slices.CompactFunc(values, func(x, y any) bool { return compare(x, y) == 0 })
	}
	switch a.Func {
	case expr.Count, expr.ApproxCountDistinct:
		return len(values)
	}
	if len(values) == 0 {
		return nil
	}
	switch a.Func {
	case expr.Min, expr.BoolAnd:
		return values[0]
	case expr.Max, expr.BoolOr:
		return values[len(values)-1]
	}
	if a.ArgType.Kind == expr.Double {
		sum := 0.0
		for _, v := range values {
			sum += v.(float64)
		}
		if a.Func == expr.Avg {
			sum /= float64(len(values))
		}
		return sum
	}
	return naiveExact(a, values)
}

// naiveExact is SUM or AVG of exact numbers, by math/big.
func naiveExact(a expr.Aggregate, values []any) any {
	sum := new(big.Int)
	for _, v := range values {
		x, ok := v.(batch.Int128)
		if !ok {
			x = batch.Int128Of(int64(v.(int)))
		}
		digits, _ := new(big.Int).SetString(x.Decimal(0), 10)
		sum.Add(sum, digits)
	}
	n := big.NewInt(int64(len(values)))
	if a.Func == expr.Avg && a.Type.Kind == expr.Double {
		f, _ := new(big.Rat).SetFrac(sum, n).Float64()
		return f
	}
	if a.Func == expr.Avg { // scale 2 to 6, half away from zero
		negative := sum.Sign() < 0
		twice := sum.Abs(sum.Mul(sum, big.NewInt(20_000)))
		sum = twice.Div(twice.Add(twice, n), new(big.Int).Mul(n, big.NewInt(2)))
		if negative {
			sum.Neg(sum)
		}
	}
	x, err := batch.ParseDecimal(sum.String(), 0)
	if err != nil {
		panic(err)
	}
	return x
}

// answer groups rows by keys and computes the aggregates of each group; one line each.
func answer(list [][]any, keys []int, aggs []expr.Aggregate) string {
	groups := map[string][][]any{}
	if len(keys) == 0 {
		groups[""] = nil
	}
	b := rows(mixed, list...)
	for i, row := range list {
		key := string(batch.EncodeKey(nil, b, keys, i))
		groups[key] = append(groups[key], row)
	}
	var schema []plan.Column
	for _, k := range keys {
		schema = append(schema, mixed[k])
	}
	for _, a := range aggs {
		schema = append(schema, column("", a.Type))
	}
	var out [][]any
	for _, members := range groups {
		var row []any
		for _, k := range keys {
			row = append(row, members[0][k])
		}
		for _, a := range aggs {
			row = append(row, naive(a, members))
		}
		out = append(out, row)
	}
	text := strings.SplitAfter(rows(schema, out...).String(), "\n")
	for i := range text {
		text[i] = strings.TrimPrefix(text[i], "+I ")
	}
	slices.Sort(text)
	return strings.Join(text, "")
}

// aggregating is the chain of a mode.
func aggregating(mode string, keys []int, final bool) []plan.Operator {
	chain := grouping(mixed, keys, mode != twoPhases, final, every(mode)...)
	chain[len(chain)-1].Aggregate.Changing = mode == changing
	return chain
}

// TestAggregatesProperty compares every aggregate in every mode with its recomputation from the rows
// that are left.
func TestAggregatesProperty(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{twoPhases, raw, changing} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) {
				keys := rapid.SampledFrom([][]int{{}, {0}, {2}, {4, 0}}).Draw(r, "keys")
				final := rapid.Bool().Draw(r, "final")
				list, left := changelog(rapid.IntRange(0, 60).Draw(r, "changes"), mode, func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "deal") })
				c := exectest.Case{Chain: aggregating(mode, keys, final), Input: mixed, Rows: batchOf(list), Keys: keys}
				got, err := exectest.Feed(c, rapid.IntRange(1, 20).Draw(r, "size"), rapid.IntRange(0, 3).Draw(r, "flush"))
				if err != nil {
					r.Fatal(err)
				}
				if want := answer(left, keys, every(mode)); got != want {
					r.Fatalf("keys %v over\n%vwant\n%s\ngot\n%s", keys, c.Rows, want, got)
				}
			})
		})
	}
}

// TestAggregatesAttacked attacks every aggregate in every mode.
func TestAggregatesAttacked(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{twoPhases, raw, changing} {
		for _, keys := range [][]int{nil, {0}, {2, 0}} {
			for _, final := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %v final=%v", mode, keys, final), func(t *testing.T) {
					t.Parallel()
					random := rand.New(rand.NewPCG(1, uint64(len(keys))))
					list, left := changelog(40, mode, random.IntN)
					exectest.Attack(t, exectest.Case{
						Chain: aggregating(mode, keys, final), Input: mixed, Rows: batchOf(list), Keys: keys, Want: answer(left, keys, every(mode)),
					})
				})
			}
		}
	}
}

// TestEveryAggregateIsListed: every aggregate of the language is among those that are
// attacked, in each mode that it has, with DISTINCT where it takes it, over a column of
// every layout that its arguments have.
func TestEveryAggregateIsListed(t *testing.T) {
	t.Parallel()
	idempotent := []expr.AggFunc{expr.Min, expr.Max, expr.BoolAnd, expr.BoolOr} // no plan says DISTINCT of them
	for _, f := range expr.AggregateFunctions() {
		f.Distinct = f.Distinct && !slices.Contains(idempotent, f.Name)
		for _, mode := range []string{twoPhases, raw, changing} {
			for _, distinct := range []bool{false, true} {
				if mode == changing && !f.Changing || distinct && (!f.Distinct || mode == twoPhases) {
					continue
				}
				there := map[batch.Physical]bool{}
				listed := false
				for _, a := range every(mode) {
					if a.Func == f.Name && a.Distinct == distinct {
						listed = true
						if a.Arg >= 0 {
							there[exec.Layout(mixed)[a.Arg]] = true
						}
					}
				}
				if !listed {
					t.Errorf("%s, distinct %v, is not attacked in the mode %s", f.Name, distinct, mode)
				}
				for _, k := range f.Kinds {
					if p := exec.Layout([]plan.Column{{Type: expr.Type{Kind: k}}})[0]; !there[p] {
						t.Errorf("%s, distinct %v, is not attacked over %v in the mode %s", f.Name, distinct, k, mode)
					}
				}
			}
		}
	}
}
