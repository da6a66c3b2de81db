package exec

import (
	"weir/exec/batch"
	"weir/exec/eval"
	"weir/planner/plan"
)

// Layout returns the layouts of a schema's columns.
func Layout(schema []plan.Column) []batch.Physical {
	kinds := make([]batch.Physical, len(schema))
	for i, c := range schema {
		kinds[i] = eval.Physical(c.Type)
	}
	return kinds
}
