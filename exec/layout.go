package exec

import (
	"weir/exec/batch"
	"weir/planner/expr"
	"weir/planner/plan"
)

// PhysicalOf returns how values of a SQL type lie in a vector.
func PhysicalOf(t expr.Type) batch.Physical {
	switch t.Kind {
	case expr.Boolean:
		return batch.Bools
	case expr.Double:
		return batch.Floats
	case expr.Decimal:
		return batch.Decimals
	case expr.String:
		return batch.Strings
	default:
		return batch.Ints
	}
}

// Layout returns the layouts of a schema's columns.
func Layout(schema []plan.Column) []batch.Physical {
	kinds := make([]batch.Physical, len(schema))
	for i, c := range schema {
		kinds[i] = PhysicalOf(c.Type)
	}
	return kinds
}
