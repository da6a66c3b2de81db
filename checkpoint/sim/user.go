package sim

import (
	"fmt"
	"slices"
	"time"

	"weir"
	"weir/checkpoint"
)

// died ends a process; another takes its place.
func (w *world) died(p *process) {
	if !p.alive {
		return
	}
	p.kill()
	if i := slices.Index(w.workers, p); i >= 0 {
		w.after(w.upTo(2*time.Second), func() { w.workers[i] = newProcess(w, p.name+"'") })
		return
	}
	if p == w.servers[len(w.servers)-1] {
		w.after(w.upTo(2*time.Second), w.newServer)
	}
}

// happen lets an incident happen.
func (w *world) happen(i incident) {
	if w.over() {
		return
	}
	j := w.jobs[int(i.pick)%len(w.jobs)]
	w.log("%s for %v, pick %d", i.kind, i.for_, i.pick)
	switch i.kind {
	case "kill-worker":
		w.saw("incident: %s", i.kind)
		w.died(w.workers[int(i.pick)%len(w.workers)])
	case "sleep-worker":
		p := w.workers[int(i.pick)%len(w.workers)]
		w.saw("incident: %s", i.kind)
		p.asleepUntil = w.now.Add(i.for_)
		if i.for_ > 3*time.Second { // it is taken for dead, and another takes its place
			at := int(i.pick) % len(w.workers)
			w.after(3*time.Second, func() {
				if w.workers[at] == p && p.alive {
					w.workers[at] = newProcess(w, p.name+"'")
					w.servers = append([]*process{p}, w.servers...) // killed with the rest at the end
				}
			})
		}
	case "kill-server":
		w.saw("incident: %s", i.kind)
		w.died(w.servers[len(w.servers)-1])
	case "sleep-server":
		w.saw("incident: %s", i.kind)
		w.servers[len(w.servers)-1].asleepUntil = w.now.Add(i.for_)
		w.newServer()
	case "metastore-away":
		w.saw("incident: %s", i.kind)
		w.away["metastore"] = w.now.Add(i.for_)
	case "storage-away":
		w.saw("incident: %s", i.kind)
		w.away["storage"] = w.now.Add(i.for_)
	case "call-away":
		w.saw("incident: %s", i.kind)
		w.away[calls[int(i.pick)%len(calls)]] = w.now.Add(i.for_)
	case "metastore-back":
		w.meta.goBack(int(i.pick))
	default:
		w.ask(i, j)
	}
}

// ask lets a user ask something of a job.
func (w *world) ask(i incident, j *job) {
	row := w.meta.jobs[j.id]
	if w.truth.gone[j.id] {
		return // first its operator has to mend it
	}
	running := row.desired == weir.DesiredRunning && !row.status.Terminal()
	a := j.current
	switch i.kind {
	case "checkpoint", "savepoint", "cancel-checkpoint":
		if a == nil || a.over() {
			return
		}
		if i.kind == "cancel-checkpoint" && len(a.under) == 0 && i.for_ > 0 { // its user waits for one to begin
			i.for_ -= 100 * time.Millisecond
			w.after(100*time.Millisecond, func() { w.ask(i, j) })
			return
		}
		w.saw("incident: %s", i.kind)
		switch i.kind {
		case "checkpoint":
			for range 1 + i.pick%3 {
				a.feed(checkpoint.AskCheckpoint{Request: a.request()})
			}
		case "savepoint":
			a.feed(checkpoint.AskSavepoint{Request: a.request(), Name: j.savepointName()})
		default:
			a.feed(checkpoint.AskCancel{Request: a.request(), ID: a.begun})
		}
	case "delete-savepoint":
		w.deleteSavepoint(j, i.pick)
	case "stop":
		if running {
			w.saw("incident: %s", i.kind)
			row.desired, row.stopName = weir.DesiredStopped, j.savepointName()
		}
	case "cancel":
		if running || row.desired == weir.DesiredStopped && !row.status.Terminal() {
			w.saw("incident: %s", i.kind)
			row.desired, row.stopName, row.then = weir.DesiredCanceled, "", nil
		}
	case "rescale", "rollback":
		base := row.base
		if i.kind == "rollback" {
			base = w.snapshot(j.id, i.pick)
		}
		if running {
			w.saw("incident: %s", i.kind)
			row.desired, row.stopName, row.then = weir.DesiredStopped, "", &thenStart{base, 1 + int(i.pick/7)%3}
			if i.kind == "rescale" {
				row.then = nil // started again from where it ends
			}
		}
	case "fork":
		if base := w.snapshot(j.id, i.pick); !base.IsZero() && len(w.jobs) < 3 && !w.truth.wiped {
			w.saw("incident: %s", i.kind)
			w.newJob(weir.JobID(fmt.Sprintf("job_%032x", len(w.jobs)+1)), base)
		}
	}
}

func (j *job) savepointName() string {
	j.names++
	return fmt.Sprintf("s%d", j.names)
}

// snapshot picks one of a job that is kept; none: nothing.
func (w *world) snapshot(id weir.JobID, pick uint64) weir.SnapshotRef {
	kept := w.meta.retained(id)
	if len(kept) == 0 {
		return weir.SnapshotRef{}
	}
	return weir.SnapshotRef{Job: id, Checkpoint: kept[int(pick/3)%len(kept)].ID}
}

func (w *world) deleteSavepoint(j *job, pick uint64) {
	row := w.meta.jobs[j.id]
	for _, r := range w.meta.retained(j.id) {
		if r.Type != checkpoint.TypeSavepoint || r.Base || r.Pinned || r.CommitsOpen || row.builtOn(r.ID) {
			continue
		}
		if pick%2 == 0 {
			pick++
			continue
		}
		w.saw("incident: delete-savepoint")
		record := row.rows[r.ID]
		record.Discarded = true
		w.truth.freed[weir.SnapshotRef{Job: j.id, Checkpoint: r.ID}] = true
		row.rows[r.ID] = record
		return
	}
}

// mind is the user who wants each job to finish, whatever became of it.
func (w *world) mind() {
	for _, j := range w.jobs {
		row := w.meta.jobs[j.id]
		switch {
		case !row.status.Terminal() || row.status == weir.StatusFinished:
		case row.status == weir.StatusFailed && w.truth.gone[j.id]:
			// Servers that lived through it are started anew first (docs/checkpoints.md): one may
			// be in the middle of deleting what it knew to be given up.
			for _, p := range slices.Clone(w.servers) {
				w.died(p)
			}
			w.adopt(row)
		default:
			w.meta.startFrom(row, row.base, 1+w.rng.IntN(3))
			if row.status == weir.StatusFailed {
				row.status = weir.StatusRestarting // what tells a job that failed from one that is to start again
			}
		}
	}
	if !w.over() {
		w.after(time.Second+w.upTo(2*time.Second), w.mind)
	}
}
