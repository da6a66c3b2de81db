package op

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/expr"
	"weir/planner/plan"
)

var (
	bigintType = expr.Type{Kind: expr.BigInt}
	textType   = expr.Type{Kind: expr.String}
	doubleType = expr.Type{Kind: expr.Double}
	boolType   = expr.Type{Kind: expr.Boolean}
	moneyType  = expr.Type{Kind: expr.Decimal, Precision: 20, Scale: 2}
	sumType    = expr.Type{Kind: expr.Decimal, Precision: 38, Scale: 2}
)

// groupedRows are the columns of the rows that the chains below count.
var groupedRows = []plan.Column{{Name: "k", Type: bigintType}, {Name: "s", Type: textType}, {Name: "d", Type: doubleType}, {Name: "f", Type: boolType}, {Name: "m", Type: moneyType}}

// A keeping is an aggregate and the result behind it.
type keeping struct {
	agg    *globalAgg
	result *result
	ops    []plan.Operator
}

// openKeeping opens both; groups: the result is read out of the aggregate's state.
func openKeeping(t *rapid.T, aggs []expr.Aggregate, keys []int, changing, groups bool, stores [2]keptStore, attempt int64) keeping {
	var schema []plan.Column
	for _, k := range keys {
		schema = append(schema, groupedRows[k])
	}
	for i, a := range aggs {
		schema = append(schema, plan.Column{Name: fmt.Sprint("a", i), Type: a.Type})
	}
	show := make([]int, len(schema))
	for i := range show {
		show[i] = len(show) - 1 - i
	}
	var shown []plan.Column
	for _, i := range show {
		shown = append(shown, schema[i])
	}
	var k keeping
	k.ops = []plan.Operator{
		{Kind: plan.GlobalAggregate, Schema: schema, Aggregate: &plan.AggregateSpec{Keys: keys, Aggregates: aggs, Raw: true, Changing: changing}},
		{Kind: plan.Result, Schema: shown, Result: &plan.ResultSpec{Keys: seq(len(keys)), Show: show, Groups: groups}},
	}
	input := groupedRows
	var opened []exec.Operator
	for i, o := range k.ops {
		setup := exec.Setup{Operator: o, Input: input, State: stores[i].Store, Parallelism: 1, MaxParallelism: 8, Logger: slog.New(slog.DiscardHandler)}
		setup.Attempt.Number = attempt
		op, err := Open(context.Background(), setup)
		must(t, err)
		if f, ok := op.(exec.Follower); ok {
			must(t, f.Follow(opened[i-1]))
		}
		opened = append(opened, op)
		input = o.Schema
	}
	k.agg, k.result = opened[0].(*globalAgg), opened[1].(*result)
	return k
}

func seq(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Emit hands what the aggregate puts out to the result.
func (k keeping) Emit(b *batch.Batch) error {
	if b.Rows() == 0 {
		b.Release()
		return nil
	}
	return k.result.Process(b, nil)
}

// readPages reads the whole table, a few rows a page.
func readPages(t *rapid.T, r exec.Reader, q exec.Query) (all []string, total int64) {
	for {
		page, err := r.Read(q)
		must(t, err)
		total = page.Total
		for _, row := range page.Rows {
			all = append(all, string(row.JSON))
		}
		if !page.More {
			return all, total
		}
		q.After = page.Rows[len(page.Rows)-1].Sort
	}
}

// A result that is read out of its groups shows what one that keeps its rows shows: in pages
// of any order, in changes to a reader that comes now and then, out of a snapshot, and after a
// restart from one.
func TestResultOfGroups(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		changing := rapid.Bool().Draw(t, "changing")
		keys := rapid.SampledFrom([][]int{{0}, {1}, {0, 1}, {2}, {3, 4}, {4}, {1, 2, 3}, {}}).Draw(t, "keys")
		aggs := rapid.SliceOfN(rapid.SampledFrom([]expr.Aggregate{
			{Func: expr.CountStar, Arg: -1, Type: bigintType, ArgType: bigintType, Text: "count(*)"},
			{Func: expr.Count, Arg: 1, Type: bigintType, ArgType: textType, Text: "count(s)"},
			{Func: expr.Count, Arg: 1, Type: bigintType, ArgType: textType, Distinct: true, Text: "count(distinct s)"},
			{Func: expr.Min, Arg: 1, Type: textType, ArgType: textType, Text: "min(s)"},
			{Func: expr.Max, Arg: 0, Type: bigintType, ArgType: bigintType, Text: "max(k)"},
			{Func: expr.Max, Arg: 2, Type: doubleType, ArgType: doubleType, Text: "max(d)"},
			{Func: expr.Min, Arg: 2, Type: doubleType, ArgType: doubleType, Text: "min(d)"},
			{Func: expr.Sum, Arg: 2, Type: doubleType, ArgType: doubleType, Text: "sum(d)"},
			{Func: expr.Sum, Arg: 0, Type: bigintType, ArgType: bigintType, Text: "sum(k)"},
			{Func: expr.Avg, Arg: 0, Type: doubleType, ArgType: bigintType, Text: "avg(k)"},
			{Func: expr.Sum, Arg: 4, Type: sumType, ArgType: moneyType, Text: "sum(m)"},
			{Func: expr.Avg, Arg: 4, Type: expr.Type{Kind: expr.Decimal, Precision: 38, Scale: 6}, ArgType: moneyType, Text: "avg(m)"},
			{Func: expr.BoolAnd, Arg: 3, Type: boolType, ArgType: boolType, Text: "bool_and(f)"},
			{Func: expr.Min, Arg: 4, Type: moneyType, ArgType: moneyType, Text: "min(m)"},
		}), 0, 3).Draw(t, "aggregates")
		if !changing && rapid.Bool().Draw(t, "sketch") {
			aggs = append(aggs, expr.Aggregate{Func: expr.ApproxCountDistinct, Arg: 0, Type: bigintType, ArgType: bigintType, Text: "approx"})
		}
		stores := func() [2]keptStore {
			return [2]keptStore{{Store: state.New(state.Options{MaxParallelism: 8})}, {Store: state.New(state.Options{MaxParallelism: 8})}}
		}
		of, plainOf := stores(), stores()
		attempt := int64(1)
		groups := openKeeping(t, aggs, keys, changing, true, of, attempt)
		plain := openKeeping(t, aggs, keys, changing, false, plainOf, attempt)
		patience := rapid.Uint64Range(0, 40).Draw(t, "patience")
		groups.result.log.most = patience
		followed, since := map[string]int{}, uint64(0)
		follow := func() {
			page, err := groups.result.Read(exec.Query{Changes: true, Since: since})
			must(t, err)
			if page.Full {
				clear(followed)
			}
			for _, row := range page.Rows {
				n := 1
				if row.Op == "-U" || row.Op == "-D" {
					n = -1
				}
				if followed[string(row.JSON)] += n; followed[string(row.JSON)] == 0 {
					delete(followed, string(row.JSON))
				}
			}
			since = page.Version
		}
		there := []*batch.Batch{}
		for range rapid.IntRange(1, 30).Draw(t, "batches") {
			b, c := batch.New(exec.Layout(groupedRows), 8), batch.New(exec.Layout(groupedRows), 8)
			for range rapid.IntRange(1, 8).Draw(t, "rows") {
				if changing && len(there) > 0 && rapid.Bool().Draw(t, "back") {
					i := rapid.IntRange(0, len(there)-1).Draw(t, "which")
					for _, to := range []*batch.Batch{b, c} {
						to.AppendRow(there[i], 0)
						if to.Kinds == nil {
							to.Kinds = make([]batch.RowKind, to.Len)
						}
						to.Kinds[to.Len-1] = batch.Delete
					}
					there = slices.Delete(there, i, i+1)
					continue
				}
				one := batch.New(exec.Layout(groupedRows), 1)
				one.Columns[0].AppendInt(rapid.Int64Range(0, 9).Draw(t, "k"))
				if rapid.IntRange(0, 5).Draw(t, "null") == 0 {
					one.Columns[1].AppendNull()
				} else {
					one.Columns[1].AppendString(rapid.SampledFrom([]string{"", "a", "b", "a text of more than fifteen bytes"}).Draw(t, "s"))
				}
				one.Columns[2].AppendFloat(rapid.SampledFrom([]float64{-2, -1, math.Copysign(0, -1), 0, 1, math.Inf(1), math.NaN()}).Draw(t, "d"))
				switch f := rapid.IntRange(0, 2).Draw(t, "f"); f {
				case 2:
					one.Columns[3].AppendNull()
				default:
					one.Columns[3].AppendBool(f == 1)
				}
				one.Columns[4].AppendDecimal(batch.Int128{Hi: rapid.Int64Range(-1, 1).Draw(t, "high"), Lo: rapid.Uint64Range(0, 2).Draw(t, "low")})
				one.EndRow(batch.Insert)
				there = append(there, one)
				b.AppendRow(one, 0)
				c.AppendRow(one, 0)
			}
			must(t, groups.agg.Process(b, groups))
			must(t, plain.agg.Process(c, plain))
			switch rapid.IntRange(0, 9).Draw(t, "then") {
			case 0, 1, 2:
				follow()
			case 3:
				attempt++
				of, plainOf = restored(t, &of), restored(t, &plainOf)
				groups = openKeeping(t, aggs, keys, changing, true, of, attempt)
				plain = openKeeping(t, aggs, keys, changing, false, plainOf, attempt)
				groups.result.log.most = patience
			}
		}
		follow()
		q := exec.Query{Limit: rapid.SampledFrom([]int{0, 1, 7}).Draw(t, "limit")}
		if rapid.Bool().Draw(t, "ordered") && len(keys)+len(aggs) > 0 {
			q.OrderBy = []exec.Order{{Column: rapid.SampledFrom(groups.ops[1].Schema).Draw(t, "by").Name, Desc: rapid.Bool().Draw(t, "down")}}
		}
		want, wantTotal := readPages(t, plain.result, q)
		stored, err := OpenStored(groups.ops[1], &groups.ops[0], groupedRows, restored(t, &of)[0].Store)
		must(t, err)
		for name, r := range map[string]exec.Reader{"the tasks": groups.result, "a snapshot": stored} {
			if got, total := readPages(t, r, q); !slices.Equal(got, want) || total != wantTotal {
				t.Fatalf("out of %s: %d rows %q, want %d rows %q", name, total, got, wantTotal, want)
			}
		}
		all := map[string]int{}
		for _, row := range want {
			all[row]++
		}
		if !maps.Equal(followed, all) {
			t.Fatalf("followed %v, want %v", followed, all)
		}
	})
}

// TestSumsOfGroupsOverflow: a sum that leaves its type fails with the batch by which it does, also
// where nobody asks for the groups, and one that comes back within the batch does not.
func TestSumsOfGroupsOverflow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		aggs := []expr.Aggregate{
			{Func: expr.Sum, Arg: 0, Type: bigintType, ArgType: bigintType, Text: "sum(k)"},
			{Func: expr.Sum, Arg: 4, Type: expr.Type{Kind: expr.Decimal, Precision: 22, Scale: 2}, ArgType: moneyType, Text: "sum(m)"},
		}
		changing := rapid.Bool().Draw(t, "changing")
		stores := func() [2]keptStore {
			return [2]keptStore{{Store: state.New(state.Options{MaxParallelism: 8})}, {Store: state.New(state.Options{MaxParallelism: 8})}}
		}
		var errs [2]error
		both := [2]keeping{openKeeping(t, aggs, []int{1}, changing, true, stores(), 1), openKeeping(t, aggs, []int{1}, changing, false, stores(), 1)}
		both[0].result.log.most = 0 // nobody asks
		for range 20 {
			b, c := batch.New(exec.Layout(groupedRows), 4), batch.New(exec.Layout(groupedRows), 4)
			for range rapid.IntRange(1, 3).Draw(t, "rows") {
				k := rapid.SampledFrom([]int64{1, -1, math.MaxInt64 / 3, math.MinInt64 / 3, math.MaxInt64, math.MinInt64}).Draw(t, "k")
				m := rapid.SampledFrom([]int64{0, 1, -1, 600, -600}).Draw(t, "m")
				text := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "s")
				for _, to := range []*batch.Batch{b, c} {
					to.Columns[0].AppendInt(k)
					to.Columns[1].AppendString(text)
					to.Columns[2].AppendFloat(0)
					to.Columns[3].AppendBool(true)
					d, _ := batch.Pow10(19).MulInt64(m)
					to.Columns[4].AppendDecimal(d)
					to.EndRow(batch.Insert)
				}
			}
			for i, to := range []*batch.Batch{b, c} {
				errs[i] = both[i].agg.Process(to, both[i])
			}
			if fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
				t.Fatalf("a result of groups: %v, one of its own rows: %v", errs[0], errs[1])
			}
			if errs[0] != nil {
				return
			}
		}
	})
}

// A keptStore is a store and what lies in its snapshots so far.
type keptStore struct {
	*state.Store
	handles []checkpoint.Handle
}

// restored are what snapshots of the stores give.
func restored(t *rapid.T, of *[2]keptStore) (fresh [2]keptStore) {
	for i := range of {
		s := &of[i]
		cut := s.Cut()
		run := cut.Run()
		if cut.Whole() {
			s.handles = nil
		}
		for _, p := range run {
			s.handles = append(s.handles, p.Handle("", len(s.handles) > 0))
		}
		fresh[i] = keptStore{state.New(state.Options{MaxParallelism: 8}), slices.Clone(s.handles)}
		_, err := fresh[i].Restore(context.Background(), blob.NewMemory(), s.handles)
		must(t, err)
	}
	return fresh
}
