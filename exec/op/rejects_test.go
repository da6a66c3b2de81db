package op_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/exec"
	"weir/exec/batch"
	"weir/exec/exectest"
	"weir/exec/op"
	"weir/exec/state"
	"weir/planner/expr"
	"weir/planner/plan"
)

// rejected builds batches of rejected rows: table, path, line, offset, column, reason, raw.
func rejected(values ...[]any) *batch.Batch { return rows(plan.RejectColumns(), values...) }

func rejectsOperator(keep bool) plan.Operator {
	return plan.Operator{ID: "rejects", Name: "rejects", Kind: plan.Rejects, Schema: []plan.Column{}, Rejects: &plan.RejectsSpec{Keep: keep}}
}

// TestRejects: rows that are rejected are kept, in every way that an operator may be run.
func TestRejects(t *testing.T) {
	t.Parallel()
	b := rejected(
		[]any{"t", "b.json", 7, 90, "v", "not a BIGINT", `{"v":"x"}`},
		[]any{"t", "a.json", 2, 10, nil, "not a JSON object", "\xff{"},
		[]any{"s", nil, nil, nil, "1 / n", "division by zero", nil},
		[]any{"s", nil, nil, nil, "1 / n", "division by zero", nil},
	)
	for _, keep := range []bool{false, true} {
		want := []string{
			`{"table":"s","column":"1 / n","reason":"division by zero"}`,
			`{"table":"s","column":"1 / n","reason":"division by zero"}`,
			`{"table":"t","path":"a.json","line":2,"offset":10,"reason":"not a JSON object","raw_base64":"/3s="}`,
			`{"table":"t","path":"b.json","line":7,"offset":90,"column":"v","reason":"not a BIGINT","raw":"{\"v\":\"x\"}"}`,
		}
		if !keep { // equal ones are one of the first few
			want = want[1:]
		}
		exectest.Attack(t, exectest.Case{Chain: []plan.Operator{rejectsOperator(keep)}, Input: plan.RejectColumns(), Rows: b, Want: lines(want...)})
	}
}

// openRejects opens the operator on a store of its own.
func openRejects(t *testing.T, keep bool, store *state.Store) exec.Operator {
	t.Helper()
	o, err := op.Open(context.Background(), exec.Setup{
		Operator: rejectsOperator(keep), Input: plan.RejectColumns(), Parallelism: 1, State: store, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestRejectsInAnyOrder: which rows skip keeps, and in which order they are read, does
// not depend on the order in which they come.
func TestRejectsInAnyOrder(t *testing.T) {
	t.Parallel()
	const n = 250
	values := make([][]any, n)
	for i := range values {
		values[i] = []any{[]string{"s", "t"}[i%2], fmt.Sprintf("f%d", i/200), i + 1, 10 * i, "v", "wrong", "x"}
	}
	rapid.Check(t, func(rt *rapid.T) {
		keep := rapid.Bool().Draw(rt, "keep")
		o := openRejects(t, keep, state.New(state.Options{}))
		given := rapid.Permutation(values).Draw(rt, "order")
		for len(given) > 0 {
			k := rapid.IntRange(1, len(given)).Draw(rt, "batch")
			if err := o.Process(rejected(given[:k]...), nil); err != nil {
				rt.Fatal(err)
			}
			given = given[k:]
		}
		var got []string
		q := exec.Query{Limit: rapid.SampledFrom([]int{0, 7, 1000}).Draw(rt, "limit")}
		for more := true; more; {
			page, err := o.(exec.Reader).Read(q)
			if err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff([]exec.Count{{Table: "s", Rows: n / 2}, {Table: "t", Rows: n / 2}}, page.Counts); diff != "" || page.Total != n {
				rt.Fatalf("total %d, counts: -want +got\n%s", page.Total, diff)
			}
			for _, r := range page.Rows {
				got = append(got, string(r.JSON))
				q.After = r.Sort
			}
			more = page.More
		}
		var want []string
		for table, name := range []string{"s", "t"} {
			for i, kept := table, 0; i < n && (keep || kept < 100); i, kept = i+2, kept+1 {
				want = append(want, fmt.Sprintf(`{"table":%q,"path":"f%d","line":%d,"offset":%d,"column":"v","reason":"wrong","raw":"x"}`, name, i/200, i+1, 10*i))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("-want +got\n%s", diff)
		}
	})
}

// A catcher notes what is rejected.
type catcher struct{ got []string }

func (c *catcher) Reject(e *exec.RowError) error {
	c.got = append(c.got, fmt.Sprintf("%s@%d %s: %s", e.Path, e.Offset, e.Column, e.Reason))
	return nil
}

// A gatherer notes what is emitted.
type gatherer struct{ text string }

func (g *gatherer) Emit(b *batch.Batch) error {
	g.text += b.String()
	return nil
}

func ref(i int, t expr.Type) *expr.Expr { return &expr.Expr{Op: expr.OpColumn, Type: t, Column: i} }

func quotient(a, b int) *expr.Expr {
	return &expr.Expr{Op: expr.OpDiv, Type: bigint, Args: []*expr.Expr{ref(a, bigint), ref(b, bigint)}, Text: fmt.Sprintf("c%d / c%d", a, b)}
}

// sieving opens a filter or a projection of quotients.
func sieving(t fatal, project bool, rejects exec.Rejecter) exec.Operator {
	input := []plan.Column{column("c0", bigint), column("c1", bigint), column("c2", bigint)}
	o := plan.Operator{ID: "x", Name: "x", Kind: plan.Filter, Schema: input, Filter: &plan.FilterSpec{Predicate: &expr.Expr{
		Op: expr.OpGt, Type: boolean, Args: []*expr.Expr{quotient(0, 1), quotient(1, 2)}, Text: "c0 / c1 > c1 / c2",
	}}}
	if project {
		o.Kind, o.Filter = plan.Project, nil
		o.Schema = []plan.Column{column("k", bigint), column("p", bigint), column("q", bigint)}
		o.Project = &plan.ProjectSpec{Exprs: []*expr.Expr{ref(0, bigint), quotient(0, 1), quotient(1, 2)}}
	}
	opened, err := op.Open(context.Background(), exec.Setup{Operator: o, Input: input, Parallelism: 1, Rejects: rejects, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

type fatal interface{ Fatal(args ...any) }

// TestSieve: an operator rejects just the rows that fail by themselves, each once, and
// emits what it emits of the others.
func TestSieve(t *testing.T) {
	t.Parallel()
	input := []plan.Column{column("c0", bigint), column("c1", bigint), column("c2", bigint)}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom([]any{0, 0, 1, 2, 3, nil})
		n := rapid.IntRange(1, 40).Draw(t, "rows")
		values := make([][]any, n)
		origin := &batch.Origin{Table: "t", Path: "f", Offsets: make([]int64, n)}
		kinds := make([]batch.RowKind, n)
		var sel []int32
		for i := range values {
			values[i] = []any{value.Draw(t, "a"), value.Draw(t, "b"), value.Draw(t, "c")}
			origin.Offsets[i] = int64(i * 10)
			kinds[i] = rapid.SampledFrom([]batch.RowKind{batch.Insert, batch.UpdateBefore, batch.UpdateAfter, batch.Delete}).Draw(t, "kind")
			if rapid.IntRange(0, 3).Draw(t, "selected") > 0 {
				sel = append(sel, int32(i))
			}
		}
		located := rapid.Bool().Draw(t, "located")
		build := func(only []int32) *batch.Batch {
			b := rows(input, values...)
			if b.Kinds = kinds; located {
				b.Origin = origin
			}
			b.Select(append(b.SelMemory(), only...))
			return b
		}
		project := rapid.Bool().Draw(t, "project")
		var want, got gatherer
		var wanted, caught catcher
		for _, r := range sel {
			if err := sieving(t, project, &wanted).Process(build([]int32{r}), &want); err != nil {
				t.Fatal(err)
			}
		}
		if err := sieving(t, project, &caught).Process(build(sel), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.text, got.text); diff != "" {
			t.Fatalf("emitted: -want +got\n%s", diff)
		}
		if diff := cmp.Diff(wanted.got, caught.got); diff != "" {
			t.Fatalf("rejected: -want +got\n%s", diff)
		}
		var plus []string
		for _, r := range sel {
			if kinds[r] == batch.Insert || kinds[r] == batch.UpdateAfter {
				plus = append(plus, fmt.Sprintf("@%d ", origin.Offsets[r]))
			}
		}
		for _, line := range caught.got {
			if located && !slices.ContainsFunc(plus, func(at string) bool { return strings.Contains(line, at) }) {
				t.Fatalf("rejected: %s", line)
			}
		}
	})
}

// TestSieveIsQuick: a batch of nothing but rows at fault takes milliseconds.
func TestSieveIsQuick(t *testing.T) {
	t.Parallel()
	input := []plan.Column{column("c0", bigint), column("c1", bigint), column("c2", bigint)}
	values := make([][]any, batch.Target)
	for i := range values {
		values[i] = []any{i, 0, 0}
	}
	for _, project := range []bool{false, true} {
		var caught catcher
		o := sieving(t, project, &caught)
		began := time.Now()
		if err := o.Process(rows(input, values...), &gatherer{}); err != nil {
			t.Fatal(err)
		}
		t.Logf("project %v: %v", project, time.Since(began))
		if len(caught.got) != batch.Target {
			t.Errorf("%d rows were rejected", len(caught.got))
		}
	}
}
