package source

import (
	"context"
	"fmt"

	"weir"
	"weir/exec"
)

// Open opens the subtask of a source that setup names. It looks at the input, which
// may take a while, but reads no rows. Errors of the table's definition, and of files
// that may not be read or have changed, are ErrInvalid.
func Open(ctx context.Context, setup exec.Setup) (exec.Source, error) {
	spec := setup.Operator.Source
	if spec == nil {
		return nil, fmt.Errorf("%w: operator %s is no source", weir.ErrInvalid, setup.Operator.ID)
	}
	switch spec.Table.Connector {
	case "filesystem":
		return opened(openFilesystem(ctx, setup))
	case "values":
		return opened(openValues(setup))
	case "datagen":
		return opened(openDatagen(setup))
	}
	return nil, fmt.Errorf("%w: table %s: nothing can be read from connector %q", weir.ErrInvalid, spec.Table.Name, spec.Table.Connector)
}

// opened keeps a failed source from becoming a non-nil interface.
func opened[S exec.Source](s S, err error) (exec.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
