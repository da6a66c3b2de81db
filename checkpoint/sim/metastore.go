package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir"
	"weir/checkpoint"
)

// leaseFor is how long a lease lasts that is not renewed.
const leaseFor = 3 * time.Second

// A metastore is what decides. It is all in memory, each transaction happens at one
// moment, and the whole can go back to how it was.
type metastore struct {
	w       *world
	jobs    map[weir.JobID]*jobRow
	holder  *process
	term    int64
	expires time.Time
	backups []map[weir.JobID]*jobRow
}

// A jobRow is all that the metastore keeps of a job.
type jobRow struct {
	id          weir.JobID
	status      weir.Status
	desired     weir.Desired
	stopName    string     // of the savepoint that a stop takes; empty: a halt
	then        *thenStart // what follows a halt
	attempt     weir.AttemptID
	term        int64
	parallelism int
	base        weir.SnapshotRef
	last        weir.CheckpointID
	failure     string // its reason
	rows        map[weir.CheckpointID]checkpoint.Record
	reuses      map[weir.CheckpointID]weir.CheckpointID // the base when a row began
	collected   map[weir.CheckpointID]bool              // rows whose objects are gone
	over        []weir.AttemptID                        // whose folders were not looked through
}

type thenStart struct {
	base        weir.SnapshotRef
	parallelism int
}

func newMetastore(w *world) *metastore {
	return &metastore{w: w, jobs: map[weir.JobID]*jobRow{}}
}

func (m *metastore) clone() map[weir.JobID]*jobRow {
	jobs := map[weir.JobID]*jobRow{}
	for id, j := range m.jobs {
		c := *j
		c.rows, c.reuses, c.collected, c.over = maps.Clone(j.rows), maps.Clone(j.reuses), maps.Clone(j.collected), slices.Clone(j.over)
		jobs[id] = &c
	}
	return jobs
}

// ids are those of all jobs, in order.
func (m *metastore) ids() []weir.JobID { return slices.Sorted(maps.Keys(m.jobs)) }

// owned returns the job's row if the fence is that of its owner.
func (m *metastore) owned(f weir.Fence) (*jobRow, error) {
	j, ok := m.jobs[f.Job]
	if !ok {
		return nil, fmt.Errorf("job %s: %w", f.Job, weir.ErrNotFound)
	}
	if j.attempt != f.Attempt || j.term != f.Term {
		return nil, fmt.Errorf("attempt %v of term %d: %w", f.Attempt, f.Term, weir.ErrStale)
	}
	return j, nil
}

// beginAttempt starts the next attempt, from the row's base.
func (m *metastore) beginAttempt(id weir.JobID, last weir.AttemptID, term int64) (jobRow, error) {
	j := m.jobs[id]
	if j.attempt != last || j.term > term {
		return jobRow{}, weir.ErrStale
	}
	m.endAttempt(j)
	j.attempt = weir.AttemptID{Number: last.Number + 1, Tag: fmt.Sprintf("%08x", m.w.rng.Uint32())}
	if j.term != term && j.attempt.Number > 1 {
		m.w.saw("attempt: by a new server")
	}
	m.w.saw("attempt: from %s", map[bool]string{true: "nothing", false: "a snapshot"}[j.base.IsZero()])
	j.term, j.status, j.failure = term, weir.StatusScheduling, ""
	m.w.truth.owns(j)
	out := *j
	out.rows = nil
	return out, nil
}

// endAttempt aborts what the attempt left pending.
func (m *metastore) endAttempt(j *jobRow) {
	if j.attempt.Number > 0 && !slices.Contains(j.over, j.attempt) {
		j.over = append(j.over, j.attempt)
	}
	for id, r := range j.rows {
		if r.Status == checkpoint.StatusPending {
			r.Status, r.CompletedAt = checkpoint.StatusAborted, m.w.now
			r.Failure = &weir.Failure{Reason: checkpoint.ReasonAttemptEnded}
			j.rows[id] = r
		}
	}
}

// setStatus moves the job on; the end of a job may be the beginning of what follows it.
func (m *metastore) setStatus(f weir.Fence, to weir.Status, reason string) error {
	j, err := m.owned(f)
	if err != nil {
		return err
	}
	if j.status.Terminal() {
		return weir.ErrConflict // said again, by one who did not hear the answer
	}
	m.w.saw("job: becomes %s%s", to, map[bool]string{true: ", " + reason}[reason != ""])
	j.status, j.failure = to, reason
	if to == weir.StatusFinished {
		j.desired, j.then = weir.DesiredRunning, nil // what was wished meanwhile came too late
	}
	if to != weir.StatusRunning {
		m.endAttempt(j)
	}
	if !to.Terminal() {
		return nil
	}
	j.stopName = ""
	if j.desired == weir.DesiredRunning && to != weir.StatusFinished && to != weir.StatusFailed {
		m.w.fail("job %s ended as %s, but nobody wanted that", j.id, to)
	}
	if to == weir.StatusCanceled && m.w.options.Retention != checkpoint.RetainOnCancellation ||
		to == weir.StatusFailed && m.w.options.Retention == checkpoint.RetainNone {
		j.base = weir.SnapshotRef{}
	}
	for _, r := range j.rows {
		if r.CommitsOpen && to != weir.StatusFailed && !m.w.truth.gone[j.id] {
			m.w.fail("job %s is %s while commits of %d are open", j.id, to, r.ID)
		}
	}
	if j.then != nil && reason == "" {
		m.startFrom(j, j.then.base, j.then.parallelism)
	}
	j.then = nil
	return nil
}

// startFrom makes a job that has ended run again, from a snapshot that is kept.
func (m *metastore) startFrom(j *jobRow, base weir.SnapshotRef, parallelism int) {
	if !base.IsZero() && !m.kept(base) {
		return
	}
	j.desired, j.parallelism, j.base = weir.DesiredRunning, parallelism, base
	m.w.truth.starts(j)
}

// kept reports whether a snapshot is complete and not given up.
func (m *metastore) kept(ref weir.SnapshotRef) bool {
	j, ok := m.jobs[ref.Job]
	if !ok {
		return false
	}
	r, ok := j.rows[ref.Checkpoint]
	return ok && r.Status == checkpoint.StatusCompleted && !r.Discarded
}

// pinned reports whether another job would start from the snapshot.
func (m *metastore) pinned(ref weir.SnapshotRef) bool {
	for _, j := range m.jobs {
		if j.id != ref.Job && j.base == ref {
			return true
		}
	}
	return false
}

// retained lists what of a job is not given up, newest first.
func (m *metastore) retained(job weir.JobID) (list []checkpoint.Retained) {
	j := m.jobs[job]
	for id, r := range j.rows {
		if r.Status == checkpoint.StatusCompleted && !r.Discarded {
			ref := weir.SnapshotRef{Job: job, Checkpoint: id}
			list = append(list, checkpoint.Retained{
				ID: id, Type: r.Type, Manifest: r.Manifest, Base: j.base == ref, Pinned: m.pinned(ref), Reused: j.reused(id), CommitsOpen: r.CommitsOpen,
			})
		}
	}
	slices.SortFunc(list, func(a, b checkpoint.Retained) int { return cmp.Compare(b.ID, a.ID) })
	return list
}

// reused reports whether a pending checkpoint may name objects of another.
func (j *jobRow) reused(id weir.CheckpointID) bool {
	for p, base := range j.reuses {
		if base > 0 && base <= id && j.rows[p].Status == checkpoint.StatusPending {
			return true
		}
	}
	return false
}

// builtOn reports whether a pending checkpoint began while another was the base.
func (j *jobRow) builtOn(id weir.CheckpointID) bool {
	for p, base := range j.reuses {
		if base == id && j.rows[p].Status == checkpoint.StatusPending {
			return true
		}
	}
	return false
}

// everyAttempt has the folders of all attempts that are over looked through again: a
// worker may have woken up, and stored something, long after they were.
func (m *metastore) everyAttempt(id weir.JobID) {
	j := m.jobs[id]
	j.over = nil
	for _, row := range slices.Sorted(maps.Keys(j.rows)) { // one may have left no more than a manifest
		if a := j.rows[row].Attempt; !slices.Contains(j.over, a) {
			j.over = append(j.over, a)
		}
	}
	_ = m.w.blobs.List(context.Background(), checkpoint.JobPrefix(id), func(key string, _ int64) bool {
		a, err := weir.ParseAttemptID(strings.Split(key, "/")[1])
		if err == nil && !slices.Contains(j.over, a) {
			j.over = append(j.over, a)
		}
		return true
	})
}

// A conn is the metastore as a caller reaches it.
type conn struct{ caller }

func (c conn) do(point string, work func(m *metastore) error) error {
	return c.call(point, "metastore", func() error { return work(c.world().meta) })
}

// fenced does work on the row of the fence's job, if it is still its owner's.
func (c conn) fenced(point string, f weir.Fence, work func(m *metastore, j *jobRow) error) error {
	return c.do(point, func(m *metastore) error {
		j, err := m.owned(f)
		if err != nil {
			return err
		}
		return work(m, j)
	})
}

// BeginCheckpoint implements checkpoint.Store.
func (c conn) BeginCheckpoint(_ context.Context, f weir.Fence, r checkpoint.Record) (id weir.CheckpointID, err error) {
	err = c.fenced("begin", f, func(m *metastore, j *jobRow) error {
		if j.last < r.ID {
			return weir.ErrNotFound
		}
		j.last++
		id = j.last
		r.Job, r.ID, r.Attempt, r.Status = f.Job, id, f.Attempt, checkpoint.StatusPending
		j.rows[id], j.reuses[id] = r, 0
		if j.base.Job == j.id {
			j.reuses[id] = j.base.Checkpoint
		}
		m.w.truth.begun(j, id)
		return nil
	})
	if err != nil {
		id = 0
	}
	return id, err
}

// CompleteCheckpoint implements checkpoint.Store.
func (c conn) CompleteCheckpoint(_ context.Context, f weir.Fence, r checkpoint.Record, base bool) error {
	return c.fenced("decide", f, func(m *metastore, j *jobRow) error {
		old, ok := j.rows[r.ID]
		switch {
		case !ok:
			return weir.ErrNotFound
		case old.Attempt != f.Attempt:
			return weir.ErrConflict
		case old.Status == checkpoint.StatusCompleted:
			return nil
		case old.Status != checkpoint.StatusPending:
			return fmt.Errorf("checkpoint %d is %s: %w", r.ID, old.Status, weir.ErrConflict)
		}
		r.Status = checkpoint.StatusCompleted
		j.rows[r.ID] = r
		m.w.truth.decided(j, r, base)
		if base {
			j.base = weir.SnapshotRef{Job: j.id, Checkpoint: r.ID}
		}
		return nil
	})
}

// AbortCheckpoint implements checkpoint.Store.
func (c conn) AbortCheckpoint(_ context.Context, f weir.Fence, r checkpoint.Record) (status checkpoint.Status, err error) {
	err = c.fenced("abort", f, func(m *metastore, j *jobRow) error {
		m.w.truth.abortedAs(r)
		old, ok := j.rows[r.ID]
		if !ok {
			return weir.ErrNotFound
		}
		if old.Status == checkpoint.StatusPending {
			old.Status, old.Failure, old.Acks, old.CompletedAt = r.Status, r.Failure, r.Acks, r.CompletedAt
			j.rows[r.ID] = old
		}
		status = old.Status
		return nil
	})
	return status, err
}

// CloseCommits implements checkpoint.Store.
func (c conn) CloseCommits(_ context.Context, f weir.Fence, id weir.CheckpointID, _ []checkpoint.CommitTime) error {
	return c.fenced("close", f, func(m *metastore, j *jobRow) error {
		r, ok := j.rows[id]
		if !ok {
			return weir.ErrNotFound
		}
		r.CommitsOpen = false
		j.rows[id] = r
		m.w.truth.closed(j, id)
		return nil
	})
}

// Checkpoint implements checkpoint.Store.
func (c conn) Checkpoint(_ context.Context, f weir.Fence, id weir.CheckpointID) (r checkpoint.Record, err error) {
	err = c.fenced("read", f, func(_ *metastore, j *jobRow) error {
		var ok bool
		if r, ok = j.rows[id]; !ok {
			return weir.ErrNotFound
		}
		return nil
	})
	return r, err
}

// Retained implements checkpoint.Rows.
func (c conn) Retained(_ context.Context, job weir.JobID) (list []checkpoint.Retained, err error) {
	err = c.do("retained", func(m *metastore) error {
		list = m.retained(job)
		return nil
	})
	return list, err
}

// DiscardCheckpoints implements checkpoint.Rows.
func (c conn) DiscardCheckpoints(_ context.Context, f weir.Fence, ids []weir.CheckpointID) (marked []weir.CheckpointID, err error) {
	err = c.fenced("discard", f, func(m *metastore, j *jobRow) error {
		for _, k := range m.retained(j.id) {
			if r := j.rows[k.ID]; k.Free() && slices.Contains(ids, k.ID) {
				r.Discarded = true
				m.w.truth.freed[weir.SnapshotRef{Job: j.id, Checkpoint: k.ID}] = true
				j.rows[k.ID] = r
				marked = append(marked, k.ID)
			}
		}
		return nil
	})
	if err != nil {
		marked = nil
	}
	return marked, err
}

// Subject implements checkpoint.Rows.
func (c conn) Subject(_ context.Context, job weir.JobID) (s checkpoint.Subject, err error) {
	err = c.do("subject", func(m *metastore) error {
		j := m.jobs[job]
		s = checkpoint.Subject{
			Fence: weir.Fence{Job: job, Attempt: j.attempt, Term: j.term}, LastCheckpoint: j.last,
			Keep: m.w.options.NumRetained, Behind: j.failure == checkpoint.ReasonMetastoreBack,
		}
		return nil
	})
	return s, err
}

// GivenUp implements checkpoint.Rows.
func (c conn) GivenUp(_ context.Context, job weir.JobID, limit int, _ time.Duration) (g checkpoint.GivenUp, err error) {
	err = c.do("given_up", func(m *metastore) error {
		j := m.jobs[job]
		g.Attempts = slices.Clone(j.over)
		for _, id := range slices.Sorted(maps.Keys(j.rows)) {
			r := j.rows[id]
			if len(g.Checkpoints) < limit && !j.collected[id] && (r.Discarded || r.Status == checkpoint.StatusFailed || r.Status == checkpoint.StatusAborted) {
				g.Checkpoints = append(g.Checkpoints, r)
			}
		}
		return nil
	})
	return g, err
}

// Collected implements checkpoint.Rows.
func (c conn) Collected(_ context.Context, job weir.JobID, done checkpoint.GivenUp) error {
	return c.do("collected", func(m *metastore) error {
		j := m.jobs[job]
		for _, r := range done.Checkpoints {
			if j.rows[r.ID].Attempt == r.Attempt {
				j.collected[r.ID] = true
			}
		}
		j.over = slices.DeleteFunc(slices.Clone(j.over), func(a weir.AttemptID) bool { return a != j.attempt && slices.Contains(done.Attempts, a) })
		return nil
	})
}

var (
	_ checkpoint.Store = conn{}
	_ checkpoint.Rows  = conn{}
)
