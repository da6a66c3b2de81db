package op

import (
	"context"
	"fmt"

	"weir"
	"weir/exec"
	"weir/planner/plan"
)

// Open opens an operator of this package; it is the list of them.
func Open(_ context.Context, s exec.Setup) (exec.Operator, error) {
	switch s.Operator.Kind {
	case plan.Filter:
		return openFilter(s)
	case plan.Project:
		return openProject(s)
	case plan.LocalAggregate:
		return openLocalAgg(s)
	case plan.GlobalAggregate:
		return openGlobalAgg(s)
	case plan.Expand:
		return openExpand(s), nil
	case plan.Result:
		return openResult(s)
	case plan.Rejects:
		return openRejects(s)
	}
	return nil, fmt.Errorf("%w: this version has no operator of kind %q", weir.ErrInvalid, s.Operator.Kind)
}
