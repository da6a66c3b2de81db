package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir"
	"weir/checkpoint"
)

// A job is what the world knows of a job beside its row.
type job struct {
	id      weir.JobID
	current *attempt // the newest one
	names   int      // of savepoints
}

// newJob submits a job that starts from base.
func (w *world) newJob(id weir.JobID, base weir.SnapshotRef) {
	j := &jobRow{
		id: id, status: weir.StatusCreated, desired: weir.DesiredRunning, parallelism: 1 + w.rng.IntN(3),
		base: base, last: base.Checkpoint, rows: map[weir.CheckpointID]checkpoint.Record{},
		reuses: map[weir.CheckpointID]weir.CheckpointID{}, collected: map[weir.CheckpointID]bool{},
	}
	w.meta.jobs[id] = j
	w.jobs = append(w.jobs, &job{id: id})
	w.truth.starts(j)
}

func (w *world) job(id weir.JobID) *job {
	for _, j := range w.jobs {
		if j.id == id {
			return j
		}
	}
	panic("no job " + id)
}

func (w *world) finished(j *job) bool {
	r := w.meta.jobs[j.id]
	return r.status == weir.StatusFinished && r.desired == weir.DesiredRunning && r.then == nil
}

func (w *world) over() bool {
	for _, j := range w.jobs {
		if !w.finished(j) {
			return false
		}
	}
	return true
}

func (w *world) standing() string {
	var list []string
	for _, j := range w.jobs {
		r := w.meta.jobs[j.id]
		list = append(list, fmt.Sprintf("%s %s, desired %s, %s", j.id[34:], r.status, r.desired, r.failure))
	}
	return strings.Join(list, "; ")
}

// newServer starts a server, which takes over when the lease is free.
func (w *world) newServer() {
	p := newProcess(w, fmt.Sprintf("server %d", len(w.servers)))
	w.servers = append(w.servers, p)
	p.spawn(func(t *thread) {
		for driven := map[weir.JobID]int64{}; ; t.sleep(500*time.Millisecond + w.upTo(200*time.Millisecond)) {
			var term int64
			var ids []weir.JobID
			err := t.call("lease", "metastore", func() error {
				m := w.meta
				if m.holder != p && w.now.Before(m.expires) {
					return errors.New("another server holds it")
				}
				if m.holder != p {
					m.holder, m.term = p, m.term+1
				}
				m.expires, term, ids = w.now.Add(leaseFor), m.term, m.ids()
				return nil
			})
			if err != nil {
				continue
			}
			for _, id := range ids {
				if driven[id] != term {
					driven[id] = term
					p.spawn(func(t *thread) { w.drive(t, id, term) })
				}
			}
		}
	})
}

// drive runs a job, attempt after attempt, until a newer owner exists.
func (w *world) drive(t *thread, id weir.JobID, term int64) {
	for {
		var row jobRow
		err := conn{t}.do("look", func(m *metastore) error {
			row = *m.jobs[id]
			return nil
		})
		switch {
		case err != nil:
		case row.term > term:
			return
		case row.desired == weir.DesiredRunning && (row.status != weir.StatusFinished && row.status != weir.StatusFailed):
			w.runAttempt(t, row, term)
		case row.status.Terminal():
		default:
			w.endJob(t, row, term)
		}
		t.sleep(w.upTo(500 * time.Millisecond))
	}
}

// insist repeats a write until it is written or stale: then the row is looked at again.
func insist(t *thread, write func() error) {
	for {
		if err := write(); err == nil || errors.Is(err, weir.ErrStale) || errors.Is(err, weir.ErrConflict) {
			return
		}
		t.sleep(t.p.w.upTo(time.Second))
	}
}

// runAttempt runs one attempt.
func (w *world) runAttempt(t *thread, row jobRow, term int64) {
	c := conn{t}
	var j jobRow
	err := c.do("begin_attempt", func(m *metastore) (err error) {
		j, err = m.beginAttempt(row.id, row.attempt, term)
		return err
	})
	if err != nil {
		return // looked at again: it may have begun
	}
	a := &attempt{w: w, open: map[checkpoint.RequestID]bool{}, under: map[weir.CheckpointID]checkpoint.Type{}, server: t.p, fence: weir.Fence{Job: j.id, Attempt: j.attempt, Term: j.term}, parallelism: j.parallelism, base: j.base}
	a.before, w.job(j.id).current = w.job(j.id).current, a
	w.log("%s attempt %v of term %d at parallelism %d from %d", j.id[34:], j.attempt, term, a.parallelism, j.base.Checkpoint)
	plan, states, open, err := w.load(t, a)
	switch {
	case errors.Is(err, weir.ErrNotFound), errors.Is(err, weir.ErrInvalid):
		if !w.truth.gone[j.id] && w.truth.owner[j.id] == a.fence {
			w.fail("base %d cannot be restored (I8, I9): %v", j.base.Checkpoint, err)
		}
		insist(t, func() error {
			return c.fenced("status", a.fence, func(m *metastore, _ *jobRow) error { return m.setStatus(a.fence, weir.StatusFailed, "restore") })
		})
		return
	case err != nil:
		return
	}
	a.makeTasks(plan, states)
	a.start()
	a.coordinate(t, j.last, open)
	w.watch(t, a)
}

// load reads what the attempt starts from.
func (w *world) load(t *thread, a *attempt) (*checkpoint.RestorePlan, []restoredCounts, []weir.CheckpointID, error) {
	plan := &checkpoint.RestorePlan{}
	var open []weir.CheckpointID
	if !a.base.IsZero() {
		m, err := checkpoint.LoadManifest(context.Background(), blobs{t}, checkpoint.ManifestKey(a.base.Job, a.base.Checkpoint))
		if err == nil {
			err = m.CheckObjects(context.Background(), blobs{t})
		}
		if err == nil {
			plan, err = checkpoint.Restore(m, graph(), a.parallelism)
		}
		if err == nil && m.Parallelism != a.parallelism {
			w.saw("attempt: at another parallelism")
		}
		if err != nil {
			return nil, nil, nil, err
		}
	}
	states, err := a.loadCounts(t, plan)
	if err != nil {
		return nil, nil, nil, err
	}
	kept, err := conn{t}.Retained(context.Background(), a.fence.Job)
	for _, k := range kept {
		if k.CommitsOpen {
			open = append([]weir.CheckpointID{k.ID}, open...)
		}
	}
	return plan, states, open, err
}

// watch waits for what ends an attempt and ends it.
func (w *world) watch(t *thread, a *attempt) {
	c := conn{t}
	status := func(to weir.Status, reason string) {
		a.stop()
		a.stale = true // its coordinator ends
		insist(t, func() error {
			return c.fenced("status", a.fence, func(m *metastore, _ *jobRow) error { return m.setStatus(a.fence, to, reason) })
		})
	}
	for {
		t.sleep(w.upTo(200 * time.Millisecond))
		switch {
		case a.stale:
			a.stop()
			return
		case a.failed != nil && a.failed.Reason == checkpoint.ReasonMetastoreBack:
			status(weir.StatusFailed, checkpoint.ReasonMetastoreBack)
			return
		case a.failed != nil:
			w.log("%s attempt %v failed: %s", a.fence.Job[34:], a.fence.Attempt, a.failed.Message)
			status(weir.StatusRestarting, a.failed.Reason)
			return
		case a.ending != nil && a.ending.Stopped:
			a.close()
			status(weir.StatusStopped, "")
			return
		case a.ending != nil:
			a.close()
			w.log("%s finished with %d", a.fence.Job[34:], a.ending.Checkpoint)
			status(weir.StatusFinished, "")
			return
		case a.lost():
			w.log("%s attempt %v lost a worker", a.fence.Job[34:], a.fence.Attempt)
			status(weir.StatusRestarting, "worker_lost")
			return
		}
		var wish jobRow
		err := c.do("wish", func(m *metastore) error {
			wish = *m.jobs[a.fence.Job]
			return nil
		})
		switch {
		case err != nil || wish.desired == weir.DesiredRunning:
		case wish.desired == weir.DesiredStopped && wish.stopName != "":
			w.save(t, a, wish.stopName)
		default:
			w.log("%s attempt %v is ended: %s", a.fence.Job[34:], a.fence.Attempt, wish.desired)
			status(weir.StatusStopping, "")
			return
		}
	}
}

// save takes the savepoint of a stop, once; when it cannot be taken the wish is taken back.
func (w *world) save(t *thread, a *attempt, name string) {
	if a.asked == 0 {
		a.asked = a.request()
		a.feed(checkpoint.AskSavepoint{Request: a.asked, Name: name, Stop: true})
		return
	}
	if !a.refused {
		return
	}
	a.asked, a.stopping, a.refused = 0, 0, false
	insist(t, func() error {
		return conn{t}.fenced("unwish", a.fence, func(_ *metastore, j *jobRow) error {
			if j.desired == weir.DesiredStopped && j.stopName == name {
				j.desired, j.stopName = weir.DesiredRunning, ""
			}
			return nil
		})
	})
}

// endJob ends a job that runs no more: what was decided is made visible first.
func (w *world) endJob(t *thread, row jobRow, term int64) {
	c := conn{t}
	f := weir.Fence{Job: row.id, Attempt: row.attempt, Term: row.term}
	if row.term != term {
		err := c.fenced("take_over", f, func(m *metastore, j *jobRow) error {
			j.term = term
			m.endAttempt(j)
			m.w.truth.owns(j)
			return nil
		})
		if err != nil {
			return
		}
		f.Term = term
	}
	if err := w.completeCommits(t, f); err != nil {
		return
	}
	to := weir.StatusStopped
	if row.desired == weir.DesiredCanceled {
		to = weir.StatusCanceled
	}
	insist(t, func() error {
		return c.fenced("status", f, func(m *metastore, j *jobRow) error {
			if j.desired == weir.DesiredRunning {
				return weir.ErrStale
			}
			return m.setStatus(f, to, "")
		})
	})
}

// completeCommits makes decided output visible whose attempt is over.
func (w *world) completeCommits(t *thread, f weir.Fence) error {
	kept, err := conn{t}.Retained(context.Background(), f.Job)
	if err != nil {
		return err
	}
	var open []checkpoint.Retained
	for _, k := range kept {
		if k.CommitsOpen {
			open = append(open, k)
		}
	}
	if len(open) == 0 {
		return nil
	}
	m, err := checkpoint.LoadManifest(context.Background(), blobs{t}, open[0].Manifest)
	if err != nil {
		return err
	}
	err = t.call("commit_only", "sink", func() error {
		w.truth.visible(&attempt{w: w, fence: f}, open[0].ID, segmentsOf(w, m))
		return nil
	})
	for i := len(open) - 1; i >= 0 && err == nil; i-- {
		err = conn{t}.CloseCommits(context.Background(), f, open[i].ID, nil)
	}
	return err
}
