package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/checkpoint/killpoint"
	"weir/exec/state"
)

const (
	// openUploads bounds the snapshots of a task that wait for storage. As many
	// checkpoints as may be pending, a savepoint and some that were given up unheard of
	// fit in; more means that storage hangs.
	openUploads = 24
	// uploadsAtOnce are stored at a time: a savepoint, or another slow one, does not hold
	// up the next checkpoint.
	uploadsAtOnce = 2
	// lastObject bounds how long an upload that was given up may go on with the object in
	// hand: storage that hangs is not to keep the next one's place.
	lastObject = 10 * time.Second
	// tidyTimeout bounds the deletion of what a snapshot that failed has stored.
	tidyTimeout = 5 * time.Second
	// leaveTimeout bounds it where the task's end waits, and with it the next attempt.
	leaveTimeout = 200 * time.Millisecond
)

// An upload is a snapshot on its way to storage.
type upload struct {
	id       weir.CheckpointID
	aside    bool // of no checkpoint: its runs belong to the next one, and nothing is stored
	origin   origin
	snapshot checkpoint.TaskSnapshot
	cuts     []*operatorCut
	timing   checkpoint.Timing
	cutAt    time.Time   // the end of the cut
	givenUp  atomic.Bool // nothing more is stored
	sealed   bool        // its cuts are runs of their chains. Guarded by the uploader's mu
	cancel   func()      // ends the call in hand; nil: not in hand. Likewise
	grace    *time.Timer // until then; likewise
	objects  atomic.Int64
	bytes    atomic.Int64 // stored, or read for it
}

// An operatorCut is what one generation changed in an operator's state, then what the
// operator's snapshot consists of.
type operatorCut struct {
	node  *node
	cut   *state.Cut
	parts state.Snapshot
}

func (u *upload) release() {
	for _, c := range u.cuts {
		c.cut.Release()
	}
}

// doing says what the upload is at.
func (u *upload) doing() string {
	n := u.objects.Load()
	if n == 0 {
		return "encoding what has changed in its state"
	}
	return fmt.Sprintf("storing object %d, %s so far", n, weight(u.bytes.Load()))
}

// weight gives a number of bytes as people read it.
func weight(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", (n+1<<10-1)>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// An uploader makes runs of cuts, in their order, stores snapshots off the loop, two at a
// time, the oldest first, and acknowledges each once its objects are durable (I7). What
// changed up to a barrier is a run whatever becomes of its checkpoint: later snapshots need
// it. Its goroutines belong to Run.
type uploader struct {
	task  *Task
	blobs blob.Store
	named func(weir.TaskID, []string) // nil: nobody asks
	moreC *sync.Cond                  // of mu: something below changed
	sealC *sync.Cond                  // of mu: a cut has become runs
	mu    struct {
		sync.Mutex
		open       []*upload // oldest first, until they are stored or dropped
		storing    int       // goroutines that do
		compacting bool
		turn       int                // of the node that comes first when the next compaction is chosen
		compact    context.CancelFunc // ends a compaction
		unnamed    []string           // objects of compactions that no snapshot has named so far
		ended      bool               // the loop has ended
		newest     weir.CheckpointID
		pending    []weir.CheckpointID // of those before newest
	}
}

func newUploader(t *Task, blobs blob.Store, named func(weir.TaskID, []string)) *uploader {
	w := &uploader{task: t, blobs: blobs, named: named}
	w.mu.compact = func() {}
	w.moreC, w.sealC = sync.NewCond(&w.mu.Mutex), sync.NewCond(&w.mu.Mutex)
	return w
}

// room says why there is none for another upload; nil: there is. The loop asks before it cuts.
func (w *uploader) room() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var oldest *upload
	n := 0
	for _, u := range w.mu.open {
		if u.aside {
			continue
		}
		if n++; oldest == nil {
			oldest = u
		}
	}
	if n < openUploads {
		return nil
	}
	return fmt.Errorf("%d snapshots of the task are still being stored, the oldest, of checkpoint %d, for %v (%s): storage is too slow or hangs",
		n, oldest.id, w.task.now().Sub(oldest.cutAt).Round(time.Second), oldest.doing())
}

// held is how many bytes of runs the task keeps.
func (w *uploader) held() (n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, node := range w.task.nodes {
		if node.chain != nil {
			n += node.chain.Held()
		}
	}
	return n
}

// put queues an upload, for which there is room.
func (w *uploader) put(u *upload) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !u.aside {
		w.task.tracker.reach(u.id, checkpoint.StageUploading, u.cutAt)
	}
	w.mu.open = append(w.mu.open, u)
	w.moreC.Signal()
}

// wanted tells which checkpoints before newest are still pending. Whatever else waits
// is dropped, and what is in hand ends with the object it is at.
func (w *uploader) wanted(newest weir.CheckpointID, pending []weir.CheckpointID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if newest < w.mu.newest {
		return // said late
	}
	w.mu.newest, w.mu.pending = newest, slices.Clone(pending)
	w.mu.open = slices.DeleteFunc(w.mu.open, func(u *upload) bool {
		switch {
		case u.aside || !w.gone(u.id) || u.givenUp.Swap(true):
			return false
		case u.cancel != nil:
			u.grace = time.AfterFunc(lastObject, u.cancel)
			return false
		}
		w.task.tracker.reach(u.id, checkpoint.StageDone, w.task.now())
		return u.sealed // otherwise once it is
	})
}

// gone reports whether a checkpoint has ended, so that nobody wants its snapshot; w.mu
// is held. The last trigger named all others: nothing that has ended begins again.
func (w *uploader) gone(id weir.CheckpointID) bool {
	return id < w.mu.newest && !slices.Contains(w.mu.pending, id)
}

// ended reports whether nobody wants the snapshot of a checkpoint any more.
func (w *uploader) ended(id weir.CheckpointID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone(id)
}

// doing says what the upload of a checkpoint is at.
func (w *uploader) doing(id weir.CheckpointID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var before []string
	for _, u := range w.mu.open {
		switch {
		case u.aside:
		case u.id != id:
			before = append(before, fmt.Sprintf("%d (%s)", u.id, u.doing()))
		case u.cancel != nil:
			return u.doing()
		default:
			return "waiting for the uploads of checkpoints " + strings.Join(before[:min(len(before), uploadsAtOnce)], " and ")
		}
	}
	return ""
}

// stop is called by the loop when it ends; what is queued is still stored.
func (w *uploader) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.ended = true
	w.mu.compact()
	w.moreC.Broadcast()
}

// run makes runs of cuts and has them stored until the loop has ended; after the end of ctx
// it only releases them.
func (w *uploader) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for {
			u := w.unsealed()
			if u == nil {
				return nil
			}
			if err := w.seal(ctx, u); err != nil {
				return err
			}
			w.proceed(ctx, g)
		}
	})
	err := g.Wait()
	if keys := w.unnamed(); len(keys) > 0 {
		w.remove(context.WithoutCancel(ctx), keys, leaveTimeout)
	}
	return err
}

// unnamed are the objects of compactions that no snapshot came to name.
func (w *uploader) unnamed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.unnamed
}

// remove deletes objects that nobody will name, as far as it gets.
func (w *uploader) remove(ctx context.Context, keys []string, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for _, key := range keys {
		if err := w.blobs.Delete(ctx, key); err != nil && ctx.Err() == nil {
			w.task.logger.Warn("object stays for now", "object", key, "err", err)
		}
	}
}

// unsealed waits for the oldest upload whose cuts are no runs yet; nil: none will come.
func (w *uploader) unsealed() *upload {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if u := w.unsealedNow(); u != nil {
			return u
		}
		if w.mu.ended {
			return nil
		}
		w.moreC.Wait()
	}
}

// seal makes runs of an upload's cuts and sees what its snapshot consists of. An error is
// a broken invariant.
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
		began := w.task.now()
		for i, c := range u.cuts {
			if runs[i], err = c.cut.Write(c.node.setup.State.Shelf()); err != nil {
				return inOperator(c.node, &reasonError{ReasonSpill, err})
			}
		}
		w.task.stats.sealNS.Add(int64(w.task.now().Sub(began)))
	}
	u.release() // before anybody hears of it
	return w.add(u, runs)
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

// tell says which objects the task's chains name; w.mu is held.
func (w *uploader) tell() {
	if w.named == nil {
		return
	}
	var objects []string
	for _, n := range w.task.nodes {
		if n.chain != nil {
			objects = n.chain.Objects(objects)
		}
	}
	w.named(w.task.id, objects)
}

// proceed starts what there is to do: goroutines that store, and one that compacts chains.
func (w *uploader) proceed(ctx context.Context, g *errgroup.Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ready := w.ready(); ready > 0 && w.mu.storing < uploadsAtOnce; ready-- {
		w.mu.storing++
		g.Go(func() error { return w.storeAll(ctx) })
	}
	if w.mu.compacting || w.mu.ended || ctx.Err() != nil {
		return
	}
	if c := w.due(); c != nil {
		w.mu.compacting = true
		own, cancel := context.WithCancel(ctx)
		w.mu.compact = cancel
		g.Go(func() error { return w.compactAll(own, c) })
	}
}

// ready is the number of uploads that may be taken; w.mu is held.
func (w *uploader) ready() (n int) {
	for _, u := range w.mu.open {
		if u.sealed && u.cancel == nil {
			n++
		}
	}
	return n
}

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
// or declines it. An error is a broken invariant.
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
	return nil
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
			return inOperator(c.node, &reasonError{ReasonUpload, err})
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
