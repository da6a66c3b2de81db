package plan

import (
	"errors"
	"strings"
	"testing"

	"weir"
	"weir/planner/expr"
)

func graph() *Graph {
	table := Table{Name: "t", Connector: "datagen", Columns: []Column{{Name: "a", Type: expr.Type{Kind: expr.Int}}}}
	count := []expr.Aggregate{{Func: expr.CountStar, Arg: -1, Type: expr.Type{Kind: expr.BigInt}, Text: "count(*)"}}
	merged := []expr.Aggregate{{Func: expr.CountStar, Arg: 1, Type: expr.Type{Kind: expr.BigInt}, Text: "count(*)"}}
	out := []Column{table.Columns[0], {Name: "n", Type: expr.Type{Kind: expr.BigInt}}}
	return &Graph{
		Version: Version, MaxParallelism: 8,
		Chains: []Chain{
			{Operators: []Operator{
				{ID: "source", Kind: Source, Schema: table.Columns, Source: &SourceSpec{Table: table, Read: []int{0}}},
				{ID: "local", Kind: LocalAggregate, Schema: out, Aggregate: &AggregateSpec{Keys: []int{0}, Aggregates: count}},
			}},
			{Operators: []Operator{
				{ID: "global", Kind: GlobalAggregate, Schema: out, Aggregate: &AggregateSpec{Keys: []int{0}, Aggregates: merged}},
				{ID: "result", Kind: Result, Schema: out, Result: &ResultSpec{Keys: []int{0}, Show: []int{0, 1}}},
			}},
		},
		Edges: []Edge{{From: 0, To: 1, Keys: []int{0}}},
	}
}

// TestValidate: each invariant is seen to be broken when it is.
func TestValidate(t *testing.T) {
	t.Parallel()
	if err := graph().Validate(); err != nil {
		t.Fatalf("a good graph: %v", err)
	}
	for want, spoil := range map[string]func(g *Graph){
		"version 9":              func(g *Graph) { g.Version = 9 },
		"goes from chain 0 to 0": func(g *Graph) { g.Edges[0].To = 0 },
		"goes from chain 0 to 2": func(g *Graph) { g.Edges[0].To = 2 },
		"column 2 of 2":          func(g *Graph) { g.Edges[0].Keys[0] = 2 },
		"used twice":             func(g *Graph) { g.Chains[1].Operators[0].ID = "source" },
		"no operators":           func(g *Graph) { g.Chains[1].Operators = nil },
		"without its spec":       func(g *Graph) { g.Chains[0].Operators[0].Source = nil },
		"reads 0 columns":        func(g *Graph) { g.Chains[0].Operators[0].Source.Read = nil },
		"reads column 5 of 2":    func(g *Graph) { g.Chains[1].Operators[0].Aggregate.Aggregates[0].Arg = 5 },
		"makes 1 columns":        func(g *Graph) { g.Chains[0].Operators[1].Aggregate.Aggregates = nil },
		"from chain 5 of 2":      func(g *Graph) { g.Edges[0].From = 5 },
		"rows of other columns": func(g *Graph) {
			other := []Column{g.Chains[1].Operators[0].Schema[0], {Name: "n", Type: expr.Type{Kind: expr.Int}}}
			g.Chains[1].Operators[0].Schema = other
			g.Edges = append(g.Edges, Edge{From: 0, To: 2}, Edge{From: 1, To: 2})
			g.Chains = append(g.Chains, Chain{Operators: []Operator{{ID: "r", Kind: Result, Result: &ResultSpec{}}}})
			g.Chains[1].Operators = g.Chains[1].Operators[:1]
		},
		"another number of subtasks": func(g *Graph) { g.Edges[0] = Edge{From: 0, To: 1, Forward: true}; g.Chains[1].Single = true },
		"two kinds":                  func(g *Graph) { g.Edges[0].Forward = true },
		"alone in a single chain":    func(g *Graph) { g.Edges[0] = Edge{From: 0, To: 1, Rejects: true} },
		"neither a source nor":       func(g *Graph) { g.Edges = nil },
		"is not the first": func(g *Graph) {
			g.Chains[1].Operators[1].Kind = Source
			g.Chains[1].Operators[1].Source = &SourceSpec{}
		},
		"row 0 of 1 columns has 0": func(g *Graph) { g.Chains[0].Operators[0].Source.Values = [][]*expr.Expr{{}} },
		"in two phases":            func(g *Graph) { g.Chains[1].Operators[0].Aggregate.Changing = true },
		"has 0 keys of 1":          func(g *Graph) { g.Chains[1].Operators[0].Aggregate.Always = [][]*expr.Expr{{}} },
		"which is no key": func(g *Graph) {
			op := &g.Chains[1].Operators[1]
			op.Kind, op.Expand, op.Schema = Expand, &ExpandSpec{Keys: []int{0}, Sets: [][]int{{1}}}, append(op.Schema[:2:2], Column{})
		},
		"on_row_error is":   func(g *Graph) { g.OnRowError = "stop" },
		"latency_target is": func(g *Graph) { g.LatencyTarget = "11s" },
		"column 7 of 2":     func(g *Graph) { g.Chains[1].Operators[1].Result.Show[1] = 7 },
	} {
		g := graph()
		spoil(g)
		if err := g.Validate(); err == nil || !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestSubtasks: a single chain has one subtask, whatever the parallelism.
func TestSubtasks(t *testing.T) {
	t.Parallel()
	if n := (Chain{}).Subtasks(3); n != 3 {
		t.Errorf("got %d subtasks", n)
	}
	if n := (Chain{Single: true}).Subtasks(3); n != 1 {
		t.Errorf("got %d subtasks of a single chain", n)
	}
}
