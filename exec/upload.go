package exec

import (
	"context"
	"fmt"
	"strings"

	"weir/checkpoint"
)

// write stores the cuts of u, in the order of the chain, and adds their handles to
// its snapshot.
func (w *uploader) write(ctx context.Context, u *upload) error {
	for _, c := range u.cuts {
		op := c.node.setup.Operator.ID
		first := checkpoint.StateKey(w.task.job, w.task.attempt, op, c.node.setup.Subtask, u.id, 0)
		handles, err := c.cut.Write(ctx, w.blobs, strings.TrimSuffix(first, "0"))
		if err != nil {
			return fmt.Errorf("store %s/%d: %w", op, c.node.setup.Subtask, err)
		}
		for _, h := range handles {
			u.timing.TotalBytes += h.Size
			u.timing.NewBytes += h.Size
		}
		u.keyed(c.node, handles)
	}
	return nil
}

// keyed adds an operator's handles, beside its list state if it has some.
func (u *upload) keyed(n *node, handles []checkpoint.Handle) {
	id := n.setup.Operator.ID
	for i := range u.snapshot.Operators {
		if u.snapshot.Operators[i].Operator == id {
			u.snapshot.Operators[i].Keyed = handles
			return
		}
	}
	u.snapshot.Operators = append(u.snapshot.Operators, checkpoint.OperatorSnapshot{Operator: id, Keyed: handles})
}
