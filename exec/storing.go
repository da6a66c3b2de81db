package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/checkpoint/killpoint"
	"weir/exec/state"
)

// storeAll stores uploads, the oldest first, until none is ready.
func (w *uploader) storeAll(ctx context.Context) error {
	for {
		u, call := w.take(ctx)
		if u == nil {
			return nil
		}
		if err := w.store(ctx, call, u); err != nil {
			return err
		}
	}
}

// take takes the oldest upload that nobody has in hand, and gives it a context; nil:
// there is none.
func (w *uploader) take(ctx context.Context) (*upload, context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range w.mu.open {
		if u.sealed && u.cancel == nil {
			ctx, u.cancel = context.WithCancel(ctx)
			return u, ctx
		}
	}
	w.mu.storing--
	return nil, nil
}

// done lets go of an upload.
func (w *uploader) done(u *upload) error {
	w.task.tracker.reach(u.id, checkpoint.StageDone, w.task.now())
	w.mu.Lock()
	defer w.mu.Unlock()
	u.cancel()
	if u.grace != nil {
		u.grace.Stop()
	}
	w.mu.open = slices.DeleteFunc(w.mu.open, func(other *upload) bool { return other == u })
	return w.tidyShelves(u)
}

// store stores one upload, by calls that have a context of their own, and acknowledges
// or declines it. An error is a broken invariant, or the disk's.
func (w *uploader) store(ctx, call context.Context, u *upload) (err error) {
	defer func() { err = errors.Join(err, w.done(u)) }()
	if ctx.Err() != nil {
		return nil
	}
	o := &objects{Store: w.blobs, upload: u}
	defer func() {
		if p := recover(); p != nil {
			err = w.task.panicked(p)
			w.task.decline(u, err)
		}
	}()
	killpoint.Here("before-upload")
	failed := w.write(call, u, o)
	switch {
	case ctx.Err() != nil: // nobody has heard of it, and who clears up after the attempt may have passed by
		w.tidy(context.WithoutCancel(ctx), o, leaveTimeout)
		return nil
	case failed == nil:
		killpoint.Here("after-upload")
		u.timing.UploadMS = milliseconds(w.task.now().Sub(u.cutAt))
		a := w.task.ack(u)
		a.Snapshot, a.Timing = &u.snapshot, u.timing
		w.task.reporter.Ack(a)
		return nil
	case u.givenUp.Load():
		w.task.logger.Info("snapshot not stored", "cp", u.id, "err", failed)
	default:
		w.task.logger.Warn("snapshot not stored", "cp", u.id, "err", failed)
		w.task.decline(u, failed)
	}
	w.tidy(ctx, o, tidyTimeout)
	if ofDisk(failed) { // what has changed is nowhere else: no later snapshot can have it
		return failed
	}
	return nil
}

// ofDisk reports whether the disk for what does not fit in memory is at fault.
func ofDisk(err error) bool {
	var disk *state.DiskError
	return errors.As(err, &disk)
}

// tidy deletes what was stored of a snapshot that will never be acknowledged. An abort
// does so too, but may have passed by before the last object.
func (w *uploader) tidy(ctx context.Context, o *objects, within time.Duration) {
	w.remove(ctx, o.keys, within)
}

// write stores the state of each operator, in the order of the chain, and adds the handles
// to u's snapshot.
func (w *uploader) write(ctx context.Context, u *upload, o *objects) error {
	for _, c := range u.cuts {
		stored, err := w.pieces(ctx, u, o, c)
		if err != nil {
			reason := ReasonUpload
			if ofDisk(err) {
				reason = ReasonSpill
			}
			return inOperator(c.node, &reasonError{reason, err})
		}
		handles := slices.Concat(c.parts.Kept, stored)
		for _, h := range stored {
			u.timing.NewBytes += h.Size
		}
		for _, h := range handles {
			u.timing.TotalBytes += h.Size
		}
		u.keyed(c.node, handles)
		w.mu.Lock()
		c.node.chain.Stored(u.id, handles)
		w.mu.unnamed = slices.DeleteFunc(w.mu.unnamed, func(key string) bool { return names(handles, key) })
		w.mu.Unlock()
	}
	return nil
}

func names(handles []checkpoint.Handle, key string) bool {
	return slices.ContainsFunc(handles, func(h checkpoint.Handle) bool { return h.Object == key })
}

// pieces stores what is new of an operator's snapshot.
func (w *uploader) pieces(ctx context.Context, u *upload, o *objects, c *operatorCut) (handles []checkpoint.Handle, err error) {
	put := func(p state.Piece) error {
		name := ""
		if p.Size() > state.InlineLimit || len(p.Data) == 0 {
			name = checkpoint.StateKey(w.task.job, w.task.attempt, c.node.setup.Operator.ID, c.node.setup.Subtask, u.id, len(handles))
			if err := w.putPiece(ctx, o, name, c.node, p); err != nil {
				return fmt.Errorf("store %s: %w", name, err)
			}
		}
		handles = append(handles, p.Handle(name, !c.parts.Whole))
		return nil
	}
	for _, p := range c.parts.Pieces {
		if err := put(p); err != nil {
			return nil, err
		}
	}
	if len(c.parts.Parts) == 0 {
		return handles, nil
	}
	if c.parts.Runs {
		merged, err := w.mergeRuns(ctx, c.node, c.parts, put)
		if err == nil {
			err = w.merged(c.node, c.parts, merged)
		}
		return handles, err
	}
	m := state.Merge{MaxParallelism: c.node.setup.MaxParallelism, Handles: c.parts.Parts, Whole: c.parts.Whole}
	return handles, m.Run(ctx, c.node.setup.State.Shelf().Over(w.blobs), put)
}

// putPiece stores a piece, wherever it lies.
func (w *uploader) putPiece(ctx context.Context, o *objects, name string, n *node, p state.Piece) error {
	data, err := n.setup.State.Shelf().Open(p)
	if err != nil {
		return err
	}
	defer func() { _ = data.Close() }() // it was read only
	return o.Put(ctx, name, data)
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

// errGivenUp ends the upload of a checkpoint that has ended otherwise.
var errGivenUp = errors.New("the checkpoint was given up")

// objects is the object store as one upload sees it: what is put is noted, and nothing
// more once the checkpoint has been given up.
type objects struct {
	blob.Store
	upload *upload
	keys   []string
}

// Put stores an object, unless nobody wants it any more.
func (o *objects) Put(ctx context.Context, key string, r io.Reader) error {
	if o.upload.givenUp.Load() {
		return errGivenUp
	}
	o.keys = append(o.keys, key)
	o.upload.objects.Add(1)
	return o.Store.Put(ctx, key, &counting{r, &o.upload.bytes})
}

// counting counts what is read through it.
type counting struct {
	r io.Reader
	n *atomic.Int64
}

// Read implements io.Reader.
func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
