package exec

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"weir/exec/state"
)

// unsealed waits for the oldest upload whose cuts are no runs yet; nil: none will come. Where ctx
// has ended, since something else of the uploader's has failed, the loop is still to hear of it.
func (w *uploader) unsealed(ctx context.Context) *upload {
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.moreC.Broadcast()
	})
	defer stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if u := w.unsealedNow(); u != nil {
			return u
		}
		if w.mu.ended || ctx.Err() != nil {
			return nil
		}
		w.moreC.Wait()
	}
}

// seal makes runs of an upload's cuts and durable what its sinks have written, and sees what its
// snapshot consists of. An error is a broken invariant, the disk's or a sink's, which cannot go
// on without what it has written.
func (w *uploader) seal(ctx context.Context, u *upload) (err error) {
	defer u.release()
	defer func() {
		if p := recover(); p != nil {
			err = w.task.panicked(p)
		}
		if err != nil && !u.aside {
			w.task.decline(u, err)
		}
	}()
	runs := make([][]state.Piece, len(u.cuts))
	if ctx.Err() == nil {
		if err = w.writeRuns(u, runs); err != nil {
			return err
		}
	}
	u.release() // before anybody hears of it
	if ctx.Err() == nil {
		if err = u.flush(w.task); err != nil {
			return err
		}
	}
	return w.add(u, runs)
}

// flush makes durable what the sinks have written.
func (u *upload) flush(t *Task) error {
	u.flushing.Store(true)
	defer u.flushing.Store(false)
	for _, s := range u.seals {
		if err := s.call(t); err != nil {
			return inOperator(s.node, fmt.Errorf("snapshot %d: %w", u.id, err))
		}
	}
	return nil
}

// call runs it; a panic is an error.
func (s operatorSeal) call(t *Task) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = t.panicked(p)
		}
	}()
	return s.run()
}

// writeRuns makes the runs of an upload's cuts, and counts what that takes of a core.
func (w *uploader) writeRuns(u *upload, runs [][]state.Piece) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := coreTime(w.task.now)
	for i, c := range u.cuts {
		if runs[i], err = c.cut.Write(c.node.setup.State.Shelf()); err != nil {
			return inOperator(c.node, &reasonError{ReasonSpill, err})
		}
	}
	w.task.stats.sealNS.Add(int64(coreTime(w.task.now) - began))
	return nil
}

// add adds the runs of an upload to their chains, and sees what its snapshot consists of.
func (w *uploader) add(u *upload, runs [][]state.Piece) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u.aside {
		for i, c := range u.cuts {
			c.node.chain.Add(u.id, runs[i], c.cut.Whole())
		}
		w.sealedNow(u)
		return w.tidyShelves(u)
	}
	for i, c := range u.cuts {
		chain := c.node.chain
		chain.Add(u.id, runs[i], c.cut.Whole())
		chain.Rebase(u.origin.base)
		c.parts = chain.Snapshot(u.origin.whole)
		u.timing.NewBytes += chain.Extra()
	}
	w.sealedNow(u)
	w.tell()
	return w.tidyShelves(u)
}

// sealedNow says that the cuts of an upload are runs; w.mu is held.
func (w *uploader) sealedNow(u *upload) {
	u.sealed = true
	if u.aside || u.givenUp.Load() {
		w.mu.open = slices.DeleteFunc(w.mu.open, func(other *upload) bool { return other == u })
	}
	w.sealC.Broadcast()
	if w.task.stats.tight.Load() {
		w.task.mail.wake()
	}
}

// tidyShelves does it for the nodes of an upload; w.mu is held.
func (w *uploader) tidyShelves(u *upload) (err error) {
	for _, c := range u.cuts {
		err = errors.Join(err, w.tidyShelf(c.node))
	}
	return err
}
