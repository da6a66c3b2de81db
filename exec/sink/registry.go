package sink

import (
	"context"
	"fmt"

	"weir"
	"weir/exec"
)

// Open opens the subtask of a sink that setup names. Errors of the table's definition
// and of paths that may not be written are ErrInvalid.
func Open(ctx context.Context, setup exec.Setup) (exec.Operator, error) {
	spec := setup.Operator.Sink
	if spec == nil {
		return nil, fmt.Errorf("%w: operator %s is no sink", weir.ErrInvalid, setup.Operator.ID)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch spec.Table.Connector {
	case "filesystem":
		s, err := openFilesystem(setup)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", spec.Table.Name, err)
		}
		return s, nil
	case "blackhole":
		return &Blackhole{}, nil
	}
	return nil, fmt.Errorf("%w: table %s: nothing can be written to connector %q", weir.ErrInvalid, spec.Table.Name, spec.Table.Connector)
}
