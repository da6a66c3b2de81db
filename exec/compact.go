package exec

import (
	"bytes"
	"context"
	"fmt"

	"weir/checkpoint"
	"weir/exec/state"
)

// A compaction is handles of a node's chain that are to be merged, or runs of it.
type compaction struct {
	node    *node
	handles []checkpoint.Handle
	whole   bool
	runs    *state.Snapshot // nil: handles
}

// due chooses the next compaction; nil: there is none. The nodes have it in turn, so that
// one whose state changes all the time does not keep another one's from it. w.mu is held.
func (w *uploader) due() *compaction {
	for i := range w.task.nodes {
		at := (w.mu.turn + i) % len(w.task.nodes)
		n := w.task.nodes[at]
		if n.chain == nil {
			continue
		}
		if s, ok := n.chain.Fold(); ok {
			w.mu.turn, n.folding = at+1, &s
			return &compaction{node: n, runs: &s}
		}
		if handles, whole := n.chain.Compaction(); len(handles) > 0 {
			w.mu.turn = at + 1
			return &compaction{node: n, handles: handles, whole: whole}
		}
	}
	return nil
}

// compactAll carries out one compaction and those that are due after it. An error is a
// broken invariant, or the disk's.
func (w *uploader) compactAll(ctx context.Context, c *compaction) error {
	for {
		var err error
		if c.runs != nil {
			err = w.fold(ctx, c.node, *c.runs)
		} else {
			err = w.compact(ctx, c)
		}
		w.mu.Lock()
		if c = w.due(); c == nil || err != nil || ctx.Err() != nil {
			w.mu.compacting = false
			w.mu.compact()
			w.mu.Unlock()
			return err
		}
		w.mu.Unlock()
	}
}

// compact merges handles of a node's chain, beside everything else: the next snapshots name
// what it makes in their place. What fails, or comes too late, is tried again later.
func (w *uploader) compact(ctx context.Context, c *compaction) (err error) {
	n, handles := c.node, c.handles
	o := &fulls{w: w, node: n, delta: !c.whole}
	defer func() {
		if p := recover(); p != nil {
			err = w.task.panicked(p)
		}
	}()
	m := state.Merge{MaxParallelism: n.setup.MaxParallelism, Handles: handles, Whole: c.whole}
	failed := m.Run(ctx, w.blobs, func(p state.Piece) error { return o.put(ctx, p) })
	w.mu.Lock()
	used := failed == nil && n.chain.Compacted(handles, o.handles)
	if used {
		w.mu.unnamed = append(w.mu.unnamed, o.keys...)
		w.tell()
	} else if failed != nil {
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
