package exectest

import (
	"slices"

	"weir/planner/expr"
	"weir/planner/plan"
)

// WithRejects gives a graph another on_row_error than fail: its chains that can find rows
// at fault reject them to one more chain.
func WithRejects(g *plan.Graph, policy string) *plan.Graph {
	out := *g
	out.OnRowError = policy
	out.Chains, out.Edges = slices.Clone(g.Chains), slices.Clone(g.Edges)
	to := len(g.Chains)
	for i, c := range g.Chains {
		if slices.ContainsFunc(c.Operators, rejectsRows) {
			out.Edges = append(out.Edges, plan.Edge{From: i, To: to, Keys: []int{}, Rejects: true})
		}
	}
	out.Chains = append(out.Chains, plan.Chain{Single: true, Operators: []plan.Operator{{
		ID: "rejects", Name: "rejects", Kind: plan.Rejects, Schema: []plan.Column{}, Rejects: &plan.RejectsSpec{Keep: policy == "keep"},
	}}})
	return &out
}

func rejectsRows(op plan.Operator) bool {
	computes := func(e *expr.Expr) bool { return e.Op != expr.OpColumn }
	return op.Kind == plan.Source || op.Kind == plan.Filter || op.Kind == plan.Project && slices.ContainsFunc(op.Project.Exprs, computes)
}
