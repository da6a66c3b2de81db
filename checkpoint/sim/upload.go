package sim

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"weir"
	"weir/checkpoint"
	"weir/exec/state"
)

// uploadsAtOnce are stored at a time, as by a worker's tasks.
const uploadsAtOnce = 2

// An upload is a cut of a counter's state on its way to storage. One without a snapshot
// was taken between two barriers.
type upload struct {
	id      weir.CheckpointID
	base    weir.CheckpointID // whose objects it may name
	whole   bool
	cut     *state.Cut
	snap    *checkpoint.TaskSnapshot
	parts   state.Snapshot
	sealed  bool // its cut is a run of the chain
	taken   bool
	givenUp bool // nothing more is stored
	put     []string
}

// An uploads does for a counter what exec's uploader does for a task: it makes runs of cuts,
// in their order, stores snapshots, two at a time, and merges the chain beside that.
type uploads struct {
	k          *counter
	chain      *state.Chain
	open       []*upload // oldest first
	sealing    bool
	storing    int
	compacting bool
	fulls      int // objects of compactions so far
}

// add queues an upload.
func (q *uploads) add(u *upload) {
	q.open = append(q.open, u)
	if q.sealing {
		return
	}
	q.sealing = true
	q.k.p.spawn(func(t *thread) {
		defer func() { q.sealing = false }()
		for u := q.unsealed(); u != nil && !q.k.stopped; u = q.unsealed() {
			t.sleep(t.p.w.upTo(sealTime))
			q.seal(u)
			q.proceed()
		}
	})
}

func (q *uploads) unsealed() *upload {
	i := slices.IndexFunc(q.open, func(u *upload) bool { return !u.sealed })
	if i < 0 {
		return nil
	}
	return q.open[i]
}

// seal makes a run of a cut and sees what the snapshot consists of.
func (q *uploads) seal(u *upload) {
	run := u.cut.Run()
	q.chain.Add(u.id, run, u.cut.Whole())
	u.sealed = true
	if u.snap == nil {
		q.drop(u)
		return
	}
	q.chain.Rebase(u.base)
	if u.parts = q.chain.Snapshot(u.whole); u.givenUp {
		q.drop(u)
	}
}

func (q *uploads) drop(u *upload) {
	q.open = slices.DeleteFunc(q.open, func(o *upload) bool { return o == u })
}

// proceed stores what is ready, and merges what is to be merged.
func (q *uploads) proceed() {
	for ; q.storing < uploadsAtOnce && q.ready() != nil; q.storing++ {
		u := q.ready()
		u.taken = true
		q.k.p.spawn(func(t *thread) {
			defer func() { q.storing-- }()
			for ; u != nil && !q.k.stopped; u = q.ready() {
				u.taken = true
				q.store(t, u)
			}
		})
	}
	if q.compacting {
		return
	}
	if handles, whole := q.chain.Compaction(); len(handles) > 0 {
		q.compacting = true
		q.k.p.spawn(func(t *thread) {
			defer func() { q.compacting = false }()
			q.compact(t, handles, whole)
		})
	}
}

func (q *uploads) ready() *upload {
	i := slices.IndexFunc(q.open, func(u *upload) bool { return u.sealed && !u.taken })
	if i < 0 {
		return nil
	}
	return q.open[i]
}

// wanted tells which checkpoints before newest are still pending: others are given up.
func (q *uploads) wanted(newest weir.CheckpointID, pending []weir.CheckpointID) {
	for _, u := range slices.Clone(q.open) {
		if u.snap != nil && u.id < newest && !slices.Contains(pending, u.id) {
			u.givenUp = true
			if u.sealed && !u.taken {
				q.drop(u)
			}
		}
	}
}

// store stores one snapshot, and acknowledges or declines it.
func (q *uploads) store(t *thread, u *upload) {
	defer q.drop(u)
	handles, err := q.write(t, u)
	switch {
	case err == nil:
		u.snap.Operators[0].Keyed = handles
		q.k.ack(u.id, u.snap, nil)
		return
	case u.givenUp:
		t.p.w.saw("state: a snapshot is given up")
	default:
		q.k.a.unstored(u.id, err)
		q.k.ack(u.id, nil, &weir.Failure{Message: err.Error()})
	}
	for _, key := range u.put { // an abort does so too, but may have passed by
		_ = (blobs{t}).Delete(context.Background(), key)
	}
}

var errGivenUp = errors.New("the checkpoint was given up")

// write stores what is new of a snapshot and returns what it consists of.
func (q *uploads) write(t *thread, u *upload) ([]checkpoint.Handle, error) {
	w, kept := t.p.w, len(u.parts.Kept)
	handles := u.parts.Kept
	put := func(p state.Piece) error {
		name := ""
		if len(p.Data) > w.inline {
			if u.givenUp {
				return errGivenUp
			}
			name = checkpoint.StateKey(q.k.a.fence.Job, q.k.a.fence.Attempt, "count", q.k.id.Subtask, u.id, len(handles)-kept)
			u.put = append(u.put, name)
			if err := (blobs{t}).Put(context.Background(), name, bytes.NewReader(p.Data)); err != nil {
				return err
			}
		}
		handles = append(handles, p.Handle(name, !u.parts.Whole))
		return nil
	}
	for _, p := range u.parts.Pieces {
		if err := put(p); err != nil {
			return nil, err
		}
	}
	w.sawSnapshot(u)
	if len(u.parts.Parts) > 0 {
		var merged []state.Piece
		m := state.Merge{MaxParallelism: maxGroups, Handles: u.parts.Parts, Whole: u.parts.Whole && !u.parts.Runs}
		err := m.Run(context.Background(), blobs{t}, func(p state.Piece) error {
			merged = append(merged, p)
			return put(p)
		})
		if err != nil {
			return nil, err
		}
		if u.parts.Runs {
			q.chain.Merged(u.parts, merged)
		}
	}
	q.chain.Stored(u.id, handles)
	return handles, nil
}

// compact merges handles of the chain.
func (q *uploads) compact(t *thread, handles []checkpoint.Handle, whole bool) {
	a, w := q.k.a, t.p.w
	var made []checkpoint.Handle
	m := state.Merge{MaxParallelism: maxGroups, Handles: handles, Whole: whole}
	err := m.Run(context.Background(), blobs{t}, func(p state.Piece) error {
		name := ""
		if len(p.Data) > w.inline {
			name = checkpoint.FullKey(a.fence.Job, a.fence.Attempt, "count", q.k.id.Subtask, q.fulls)
			q.fulls++
			if err := (blobs{t}).Put(context.Background(), name, bytes.NewReader(p.Data)); err != nil {
				return err
			}
		}
		made = append(made, p.Handle(name, !whole))
		return nil
	})
	switch {
	case err != nil:
		w.saw("state: a merge fails")
		q.chain.Postpone()
	case q.chain.Compacted(handles, made):
		w.saw("state: %s merged", map[bool]string{true: "all", false: "some deltas"}[whole])
		return
	default:
		w.saw("state: a merge comes too late")
	}
	for _, h := range made {
		if h.Object != "" {
			_ = (blobs{t}).Delete(context.Background(), h.Object) // it goes with the attempt, at the latest
		}
	}
}

// unstored: storage that is away is no reason for damage: what a pending checkpoint may name
// is there (I9).
func (a *attempt) unstored(id weir.CheckpointID, err error) {
	if !errors.Is(err, weir.ErrNotFound) && !errors.Is(err, weir.ErrInvalid) {
		return
	}
	w, job := a.w, a.fence.Job
	if r := w.meta.jobs[job].rows[id]; r.Status == checkpoint.StatusPending && w.truth.owner[job] == a.fence && !w.truth.wiped {
		w.fail("checkpoint %d of %s cannot be stored (I9): %v", id, job, err)
	}
}

// foreign reports whether a handle names an object of another job, which may delete it.
func (a *attempt) foreign(h checkpoint.Handle) bool {
	return h.Object != "" && !strings.HasPrefix(h.Object, checkpoint.JobPrefix(a.fence.Job))
}

// sawSnapshot counts what snapshots consist of.
func (w *world) sawSnapshot(u *upload) {
	p := u.parts
	switch {
	case u.whole:
		w.saw("state: snapshot of a savepoint")
	case p.Whole:
		w.saw("state: snapshot over nothing")
	case len(p.Parts)+len(p.Pieces) == 0:
		w.saw("state: snapshot of what has not changed")
	case p.Runs:
		w.saw("state: snapshot of several runs")
	case len(p.Parts) > 0:
		w.saw("state: snapshot with an inline tail")
	default:
		w.saw("state: snapshot of one run")
	}
}
