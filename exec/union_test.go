package exec_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/exectest"
	"weir/planner/expr"
	"weir/planner/plan"
)

// united is the plan of a scan that is read twice, once through a filter, and a union
// of both behind it, counted; with aggregate false the union's rows are kept as they are.
//
//	0 scan ─┬────────forward────────▶ 2 local_aggregate ─hash─▶ 3 global_aggregate ▸ result
//	        └─forward─▶ 1 filter ─forward─▶ 2
func united(aggregate bool) *plan.Graph {
	g := counting()
	scan, local, global := g.Chains[0].Operators[0], g.Chains[0].Operators[1], g.Chains[1].Operators
	n := &expr.Expr{Op: expr.OpColumn, Type: bigint, Column: 0}
	filter := plan.Operator{
		ID: "filter", Name: "filter", Kind: plan.Filter, Schema: scan.Schema,
		Filter: &plan.FilterSpec{Predicate: &expr.Expr{Op: expr.OpIsNotNull, Type: expr.Type{Kind: expr.Boolean}, Args: []*expr.Expr{n}}},
	}
	g.Chains = []plan.Chain{{Operators: []plan.Operator{scan}}, {Operators: []plan.Operator{filter}}}
	if aggregate {
		g.Chains = append(g.Chains, plan.Chain{Operators: []plan.Operator{local}}, plan.Chain{Operators: global})
		g.Edges = []plan.Edge{{From: 0, To: 1, Forward: true}, {From: 0, To: 2, Forward: true}, {From: 1, To: 2, Forward: true}, {From: 2, To: 3, Keys: []int{0, 1}}}
		return g
	}
	result := global[1]
	result.Schema, result.Result = scan.Schema, &plan.ResultSpec{Multiset: true, Show: []int{0, 1}}
	g.Chains, g.Result = append(g.Chains, plan.Chain{Operators: []plan.Operator{result}}), scan.Schema
	g.Edges = []plan.Edge{{From: 0, To: 1, Forward: true}, {From: 0, To: 2, Keys: []int{0, 1}}, {From: 1, To: 2, Keys: []int{0, 1}}}
	return g
}

// TestUnion: a shared scan and a union over forward edges give every row twice, whatever
// the parallelism and however often the job is restored.
func TestUnion(t *testing.T) {
	t.Parallel()
	const n = 2000
	for _, aggregate := range []bool{true, false} {
		for _, encode := range []bool{true, false} {
			t.Run(fmt.Sprintf("aggregate=%v encode=%v", aggregate, encode), func(t *testing.T) {
				t.Parallel()
				stepper := &exectest.Stepper{}
				c := exectest.Config{
					Graph: united(aggregate), Blobs: blob.NewMemory(), Encode: encode, Capacity: 1,
					Openers: exec.Openers{Source: stepper.Open(exectest.Numbers(n, 64, word))},
				}
				moved(t, &c, stepper, 1, 1, 2, 3, 2)
				j := exectest.Start(t, c)
				if _, err := j.Finish(); err != nil {
					t.Fatal(err)
				}
				page, err := j.Read(exec.Query{})
				if err != nil {
					t.Fatal(err)
				}
				checkTwice(t, page, n, aggregate)
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func checkTwice(t *testing.T, page exec.Page, n int, counted bool) {
	t.Helper()
	var got, want []string
	for _, r := range page.Rows {
		got = append(got, string(r.JSON))
	}
	for i := range n {
		row := fmt.Sprintf(`{"n":%d,"s":%q`, i, word(i))
		if counted {
			want = append(want, row+`,"c":2}`)
		} else {
			want = append(want, row+"}", row+"}")
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d rows, not the %d of the numbers taken twice: %s …", len(got), len(want), strings.Join(got[:min(len(got), 5)], " "))
	}
}

// A forward edge between chains that have not as many subtasks, or with keys, is refused.
func TestForwardRefused(t *testing.T) {
	t.Parallel()
	for _, spoil := range []func(g *plan.Graph){
		func(g *plan.Graph) { g.Chains[1].Single = true },
		func(g *plan.Graph) { g.Edges[0].Keys = []int{0} },
	} {
		c := config(10)
		c.Graph = united(true)
		spoil(c.Graph)
		if _, err := exectest.Open(t, c); err == nil || !strings.Contains(err.Error(), "from chain 0 to 1 goes forward") {
			t.Errorf("built: %v", err)
		}
	}
}

// TestRowsOut: a chain puts a row out once, over however many edges it goes.
func TestRowsOut(t *testing.T) {
	t.Parallel()
	const n = 100
	c := exectest.Config{Graph: united(true), Parallelism: 2, Blobs: blob.NewMemory(), Openers: exec.Openers{Source: exectest.Numbers(n, 64, word)}}
	j := exectest.Start(t, c)
	if _, err := j.Finish(); err != nil {
		t.Fatal(err)
	}
	out := map[int]int64{}
	for _, s := range j.Stats() {
		out[s.Task.Chain] += s.RowsOut
	}
	if out[0] != n || out[1] != n {
		t.Errorf("the scan put %d rows out, the filter %d, not %d each", out[0], out[1], n)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
