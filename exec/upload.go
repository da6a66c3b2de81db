package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
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
	seals    []operatorSeal
	timing   checkpoint.Timing
	cutAt    time.Time   // the end of the cut
	givenUp  atomic.Bool // nothing more is stored
	sealed   bool        // its cuts are runs of their chains. Guarded by the uploader's mu
	cancel   func()      // ends the call in hand; nil: not in hand. Likewise
	grace    *time.Timer // until then; likewise
	flushing atomic.Bool // its seals are at work
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

// An operatorSeal is what an operator has left to do for the snapshot.
type operatorSeal struct {
	node *node
	run  func() error
}

func (u *upload) release() {
	for _, c := range u.cuts {
		c.cut.Release()
	}
}

// doing says what the upload is at.
func (u *upload) doing() string {
	n := u.objects.Load()
	if u.flushing.Load() {
		return "making durable what its sinks have written"
	}
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
		case u.cancel != nil || u == w.unsealedNow():
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
			u := w.unsealed(ctx)
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
