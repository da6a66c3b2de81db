package exec

import (
	"bytes"
	"context"
	"fmt"

	"weir/checkpoint"
	"weir/exec/state"
)

// compact merges handles of a node's chain, beside everything else: the next snapshots name
// what it makes in their place. What fails, or comes too late, is tried again at a later
// checkpoint. An error is a broken invariant.
func (w *uploader) compact(ctx context.Context, n *node, handles []checkpoint.Handle, whole bool) (err error) {
	o := &fulls{w: w, node: n, delta: !whole}
	defer func() {
		if p := recover(); p != nil {
			err = w.task.panicked(p)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.mu.compacting = false
		w.mu.compact()
	}()
	m := state.Merge{MaxParallelism: n.setup.MaxParallelism, Handles: handles, Whole: whole}
	failed := m.Run(ctx, w.blobs, func(p state.Piece) error { return o.put(ctx, p) })
	w.mu.Lock()
	used := failed == nil && n.chain.Compacted(handles, o.handles)
	if used {
		w.mu.unnamed = append(w.mu.unnamed, o.keys...)
		w.tell()
	} else {
		n.chain.Postpone()
	}
	w.mu.Unlock()
	if used {
		return nil
	}
	if failed != nil && ctx.Err() == nil {
		w.task.logger.Info("state not compacted, tried again later", "op", n.setup.Operator.ID, "err", failed)
	}
	w.remove(context.WithoutCancel(ctx), o.keys, leaveTimeout) // what stays goes with the attempt
	return nil
}

// fulls stores the pieces of a compaction.
type fulls struct {
	w       *uploader
	node    *node
	delta   bool
	handles []checkpoint.Handle
	keys    []string
}

func (f *fulls) put(ctx context.Context, p state.Piece) error {
	name, task := "", f.w.task
	if len(p.Data) > state.InlineLimit {
		name = checkpoint.FullKey(task.job, task.attempt, f.node.setup.Operator.ID, f.node.setup.Subtask, f.node.fulls)
		f.node.fulls++
		f.keys = append(f.keys, name)
		if err := f.w.blobs.Put(ctx, name, bytes.NewReader(p.Data)); err != nil {
			return fmt.Errorf("store %s: %w", name, err)
		}
	}
	f.handles = append(f.handles, p.Handle(name, f.delta))
	return nil
}
