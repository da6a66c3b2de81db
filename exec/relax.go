package exec

import (
	"context"
	"errors"

	"weir/exec/state"
)

// relax keeps the operators' state within its share of the worker's memory, between two
// batches. What has changed since the last barrier cannot be spilled before a run has been
// made of it: then the task cuts its state beside all checkpoints, and takes in no rows
// until that run is written. Triggers, reads and the end are answered meanwhile; barriers wait
// with the rows before them. tight: it is still so.
func (t *Task) relax() (tight bool, err error) {
	for _, n := range t.nodes {
		if n.setup.State == nil {
			continue
		}
		switch err := n.setup.State.Relax(); {
		case errors.Is(err, state.ErrDirty):
			tight = true
		case err != nil:
			return false, inOperator(n, &reasonError{ReasonSpill, err})
		}
	}
	if tight != t.stats.tight.Load() {
		t.stats.tight.Store(tight) // before the look at what is being written: its end wakes who is
	}
	if tight && !t.uploader.sealing() {
		t.cutAside(t.nodes...)
	}
	return tight, nil
}

// cutAside cuts the state of nodes between two barriers. The run belongs to the next
// snapshot, whichever that is.
func (t *Task) cutAside(nodes ...*node) {
	u := &upload{id: t.barrier + 1, aside: true, cutAt: t.now()}
	for _, n := range nodes {
		if n.setup.State != nil {
			u.cuts = append(u.cuts, &operatorCut{node: n, cut: n.setup.State.Cut()})
		}
	}
	t.uploader.put(u)
}

// relaxWithin is relax for one node behind one of its batches, while those before it may
// have more: their final rows, say. It waits where it has to.
func (t *Task) relaxWithin(ctx context.Context, n *node) error {
	for n.setup.State.Over() {
		switch err := n.setup.State.Relax(); {
		case err == nil:
			return nil
		case !errors.Is(err, state.ErrDirty):
			return &reasonError{ReasonSpill, err}
		}
		t.stats.tight.Store(true)
		if !t.uploader.sealing() {
			t.cutAside(n)
		}
		if err := t.uploader.sealed(ctx); err != nil {
			return err
		}
		t.stats.tight.Store(false)
	}
	return nil
}

// sealing reports whether runs are being made of cuts.
func (w *uploader) sealing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unsealedNow() != nil
}

// sealed waits until there is no cut of which no run has been made.
func (w *uploader) sealed(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sealC.Broadcast()
	})
	defer stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.unsealedNow() != nil && ctx.Err() == nil {
		w.sealC.Wait()
	}
	return ctx.Err()
}

// unsealedNow is the oldest upload whose cuts are no runs yet; nil: there is none. w.mu is
// held.
func (w *uploader) unsealedNow() *upload {
	for _, u := range w.mu.open {
		if !u.sealed {
			return u
		}
	}
	return nil
}

// fold merges runs of a node's chain that no checkpoint has stored for long. An error is a
// broken invariant, or the disk's.
func (w *uploader) fold(ctx context.Context, n *node, s state.Snapshot) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = w.task.panicked(p)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		n.folding = nil
		err = errors.Join(err, w.tidyShelf(n))
	}()
	pieces, err := w.mergeRuns(ctx, n, s, func(state.Piece) error { return nil })
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return inOperator(n, &reasonError{ReasonSpill, err})
	}
	return w.merged(n, s, pieces)
}

// mergeRuns merges the runs of a snapshot; what it makes is on the shelf, and given to each
// on its way there.
func (w *uploader) mergeRuns(ctx context.Context, n *node, s state.Snapshot, each func(state.Piece) error) (pieces []state.Piece, err error) {
	shelf := n.setup.State.Shelf()
	m := state.Merge{MaxParallelism: n.setup.MaxParallelism, Handles: s.Parts}
	err = m.Run(ctx, shelf.Over(w.blobs), func(p state.Piece) error {
		if err := each(p); err != nil {
			return err
		}
		p, err := shelf.Put(p)
		pieces = append(pieces, p)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, shelf.Drop(pieces))
	}
	return pieces, nil
}

// merged records what mergeRuns has made.
func (w *uploader) merged(n *node, s state.Snapshot, pieces []state.Piece) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !n.chain.Merged(s, pieces) {
		return n.setup.State.Shelf().Drop(pieces)
	}
	return w.tidyShelf(n)
}

// tidyShelf tells a node's shelf what is still needed of it; w.mu is held.
func (w *uploader) tidyShelf(n *node) error {
	files := n.chain.Files(nil)
	if n.folding != nil {
		files = n.folding.Files(files)
	}
	for _, u := range w.mu.open {
		for _, c := range u.cuts {
			if c.node == n {
				files = c.parts.Files(files)
			}
		}
	}
	if err := n.setup.State.Shelf().Tidy(n.chain.Held(), files); err != nil {
		return inOperator(n, &reasonError{ReasonSpill, err})
	}
	return nil
}
