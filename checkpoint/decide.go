package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"weir"
)

// errForeign: another attempt's manifest lies where this one's belongs.
var errForeign = errors.New("the manifest of another attempt is there")

// ack takes in a task's ack; the last one completes the snapshot. One that comes while
// the tasks of an expired checkpoint are being asked still counts.
func (c *Coordinator) ack(now time.Time, a Ack) (AckAnswer, []Action) {
	if a.Job != c.fence.Job || a.Attempt != c.fence.Attempt {
		return AckStale, nil
	}
	i := slices.IndexFunc(c.pending, func(p *pending) bool { return p.record.ID == a.Checkpoint })
	if i < 0 {
		return c.lateAck(a)
	}
	p := c.pending[i]
	if p.phase == aborting { // its objects go once the abort is recorded: until then it may be complete
		p.late = append(p.late, c.ownObjects(a)...)
		return AckLate, nil
	}
	a.AckedAt = since(p.record.TriggeredAt, now)
	a.Timing.StartDelayMS = delayOf(a, p.record.TriggeredAt)
	answer := p.add(a, c.tasks)
	if answer != AckAccepted {
		return answer, nil
	}
	if a.Worker != "" {
		c.workers[a.Task] = a.Worker
	}
	switch {
	case a.Failure != nil:
		return answer, c.abort(now, p, StatusFailed, declined(a, c.tasks))
	case len(p.missing(c.tasks)) > 0:
		return answer, nil
	}
	p.phase, p.tries = writing, 1
	p.sum(c.tasks)
	p.record.Manifest = ManifestKey(c.fence.Job, p.record.ID)
	return answer, []Action{WriteManifest{Manifest: c.manifest(p)}}
}

// since stamps something of a checkpoint triggered here: by the time that went by and not by
// the time of day, which may have been set meanwhile. So what is measured between the stamps
// of a checkpoint is true, and never negative.
func since(triggered, now time.Time) time.Time { return triggered.Add(max(now.Sub(triggered), 0)) }

// delayOf is the start delay of an ack. Its worker compared its own time of day with the
// coordinator's, so it is bounded by what the checkpoint's age leaves room for.
func delayOf(a Ack, triggered time.Time) float64 {
	t := a.Timing
	room := millis(a.AckedAt.Sub(triggered)) - t.AlignmentMS - t.CutMS - t.UploadMS
	return max(min(t.StartDelayMS, room), 0)
}

// lateAck releases what a task uploaded for a checkpoint that was given up: it never
// brings the checkpoint back. Only objects that this attempt wrote for that very
// checkpoint go; those it merely names belong to others.
func (c *Coordinator) lateAck(a Ack) (AckAnswer, []Action) {
	if !slices.Contains(c.aborted, a.Checkpoint) {
		return AckUnknown, nil
	}
	return AckLate, drop(a.Checkpoint, c.ownObjects(a))
}

func drop(id weir.CheckpointID, keys []string) []Action {
	if len(keys) == 0 {
		return nil
	}
	return []Action{DropObjects{ID: id, Keys: keys}}
}

// ownObjects are those that an ack names and that were written for its checkpoint.
func (c *Coordinator) ownObjects(a Ack) (keys []string) {
	if a.Snapshot == nil {
		return nil
	}
	for _, key := range (&Manifest{Tasks: []TaskSnapshot{*a.Snapshot}}).Objects() {
		k, ok := parseKey(key)
		if ok && !k.Full && k.Job == c.fence.Job && k.Attempt == c.fence.Attempt && k.Checkpoint == a.Checkpoint {
			keys = append(keys, key)
		}
	}
	return keys
}

// manifest lists what the acks named.
func (c *Coordinator) manifest(p *pending) *Manifest {
	m := &Manifest{
		Version: ManifestVersion, Job: c.fence.Job, Checkpoint: p.record.ID, Attempt: c.fence.Attempt,
		Type: p.record.Type, Savepoint: p.record.Savepoint, Final: p.record.Final,
		Parallelism: c.parallelism, MaxParallelism: c.maxGroups, Operators: c.operators,
	}
	for _, t := range c.tasks {
		m.Tasks = append(m.Tasks, *p.acks[t.ID].Snapshot)
	}
	return m
}

// in returns the pending checkpoint id if it is in phase ph.
func (c *Coordinator) in(id weir.CheckpointID, ph phase) *pending {
	for _, p := range c.pending {
		if p.record.ID == id && p.phase == ph {
			return p
		}
	}
	return nil
}

func (c *Coordinator) manifestWritten(now time.Time, e ManifestWritten) []Action {
	p := c.in(e.ID, writing)
	if p == nil {
		p = c.in(e.ID, aborting)
	}
	if p == nil {
		return nil
	}
	switch {
	case errors.Is(e.Err, errForeign):
		return c.behind(e.ID, fmt.Sprintf("storage holds checkpoint %d already: %v", e.ID, e.Err))
	case p.phase == aborting:
		return []Action{WriteAbort{Record: p.record}}
	case e.Err != nil && p.tries < maxTries:
		p.tries++
		p.retry, p.retryAt = WriteManifest{Manifest: c.manifest(p)}, now.Add(backoff)
		return nil
	case e.Err != nil:
		p.phase = ready // nothing of it is under way
		return c.abort(now, p, StatusFailed, &weir.Failure{
			Reason:  ReasonManifest,
			Message: fmt.Sprintf("manifest %s could not be written: %v", p.record.Manifest, e.Err),
		})
	}
	p.phase, p.tries = ready, 1
	p.record.CompletedAt = since(p.record.TriggeredAt, now)
	p.record.Path = CriticalPath(p.record, c.tasks)
	return nil
}

// inDoubt reports whether a decision is in flight, or may have been recorded by a write
// whose outcome is not known.
func (c *Coordinator) inDoubt() bool {
	return c.has(func(p *pending) bool {
		return p.phase == deciding || p.phase == aborting && p.undecided != nil
	})
}

// decideNext makes the next decision: one at a time, so that they come in ascending
// order whatever becomes of their writes; a newer one does not wait for an older one that
// is not ready.
func (c *Coordinator) decideNext() []Action {
	i := slices.IndexFunc(c.pending, func(p *pending) bool { return p.phase == ready })
	if i < 0 || c.inDoubt() {
		return nil
	}
	c.pending[i].phase = deciding
	return []Action{c.decision(c.pending[i])}
}

// decision is the decision moment (I8). A savepoint moves the base only where the job
// stops with it.
func (c *Coordinator) decision(p *pending) Action {
	r := p.record
	r.Status = StatusCompleted
	return Decide{Record: r, Base: p.commits()}
}

// decided: an outcome that is unknown is read back, never guessed.
func (c *Coordinator) decided(now time.Time, e Decided) []Action {
	p := c.in(e.ID, deciding)
	switch {
	case p == nil:
		return nil
	case errors.Is(e.Err, weir.ErrStale):
		return c.giveUp()
	case e.Err != nil:
		p.undecided = e.Err
		return []Action{ReadBack{ID: e.ID}}
	}
	return c.complete(now, p)
}

func (c *Coordinator) read(now time.Time, e Read) []Action {
	if c.search.doubt != nil && c.search.doubt.id == e.ID {
		return c.doubted(now, e)
	}
	p := c.in(e.ID, deciding)
	switch {
	case p == nil:
		return nil
	case errors.Is(e.Err, weir.ErrStale):
		return c.giveUp()
	case errors.Is(e.Err, weir.ErrNotFound):
		return c.behind(e.ID, fmt.Sprintf("checkpoint %d is pending, but its row is gone", e.ID))
	case e.Err != nil:
		p.retry, p.retryAt = ReadBack{ID: e.ID}, now.Add(backoff)
		return nil
	case e.Record.Status == StatusCompleted:
		return c.complete(now, p)
	case e.Record.Status != StatusPending:
		p.record.Status, p.record.Failure, p.record.CompletedAt = e.Record.Status, e.Record.Failure, since(p.record.TriggeredAt, now)
		return c.end(now, p)
	case p.tries < maxTries:
		p.tries++
		p.retry, p.retryAt = c.decision(p), now.Add(backoff)
		return nil
	}
	return c.abort(now, p, StatusFailed, &weir.Failure{
		Reason:  ReasonStore,
		Message: fmt.Sprintf("the decision could not be recorded: %v", p.undecided),
	})
}

// complete: the row says so. Older checkpoints that are not decided never will be.
func (c *Coordinator) complete(now time.Time, p *pending) []Action {
	c.remove(p)
	p.record.Status = StatusCompleted
	c.failed, c.failure, c.succeeded = 0, AttemptFailure{}, max(c.succeeded, p.record.ID)
	if p.record.Type == TypeCheckpoint {
		c.pauseUntil = now.Add(c.opts.MinPause)
	}
	acts := []Action{Ended{Record: p.record}}
	if p.record.Type == TypeSavepoint {
		acts = append(acts, Tell{Kind: "savepoint", Message: fmt.Sprintf("savepoint %s completed as checkpoint %d", p.record.Savepoint, p.record.ID)})
	}
	if p.commits() {
		c.base = p.record.ID
		acts = append(acts, c.supersede(now, p)...)
	}
	if p.stop || p.record.Final {
		c.ending = &Ending{Checkpoint: p.record.ID, Stopped: p.stop}
		acts = append(acts, c.refuseQueue()...)
	}
	if p.record.CommitsOpen {
		var sinks []weir.TaskID
		for _, t := range c.tasks {
			if p.acks[t.ID].Snapshot.Commits {
				sinks = append(sinks, t.ID)
			}
		}
		acts = append(acts, c.pushCommit(now, &openCommit{id: p.record.ID, decided: now, closes: []weir.CheckpointID{p.record.ID}, waiting: sinks})...)
	}
	return append(acts, Collect{})
}

// supersede gives up the checkpoints older than p: decided after it they would move
// the base back. A savepoint is no base, and goes on.
func (c *Coordinator) supersede(now time.Time, p *pending) []Action {
	var acts []Action
	for _, q := range c.pending {
		if q.record.ID < p.record.ID && q.record.Type == TypeCheckpoint && q.phase < deciding {
			acts = append(acts, c.abort(now, q, StatusAborted, &weir.Failure{
				Reason: ReasonSuperseded, Message: p.name() + " completed first",
			})...)
		}
	}
	return acts
}

// cancel gives a pending checkpoint up for its user.
func (c *Coordinator) cancel(now time.Time, e AskCancel) []Action {
	refuse := func(format string) []Action {
		return []Action{Answer{Request: e.Request, Err: fmt.Errorf("%w: "+format, weir.ErrConflict, e.ID)}}
	}
	switch {
	case c.wanted(e.ID):
	case c.has(func(p *pending) bool { return p.record.ID == e.ID }):
		return refuse("checkpoint %d is ending already")
	default:
		return refuse("checkpoint %d is not pending")
	}
	i := slices.IndexFunc(c.pending, func(p *pending) bool { return p.record.ID == e.ID })
	return append(c.abort(now, c.pending[i], StatusAborted, &weir.Failure{Reason: ReasonCanceled, Message: "canceled by its user"}),
		Answer{Request: e.Request, ID: e.ID})
}

// abort gives a pending checkpoint up: its row first, the objects after. A manifest that is
// being written is waited for: it would come behind the deletion.
func (c *Coordinator) abort(now time.Time, p *pending, status Status, why *weir.Failure) []Action {
	written := p.phase != writing || p.retry != nil
	p.sum(c.tasks)
	p.phase, p.retry = aborting, nil
	p.record.Status, p.record.Failure, p.record.CompletedAt = status, why, since(p.record.TriggeredAt, now)
	p.record.Manifest, p.record.CommitsOpen, p.record.Path = "", false, ""
	if !written {
		return nil
	}
	return []Action{WriteAbort{Record: p.record}}
}

func (c *Coordinator) abortDone(now time.Time, e Aborted) []Action {
	p := c.in(e.ID, aborting)
	switch {
	case p == nil:
		return c.strayDone(now, e)
	case errors.Is(e.Err, weir.ErrStale):
		return c.giveUp()
	case errors.Is(e.Err, weir.ErrNotFound):
		return c.behind(e.ID, fmt.Sprintf("checkpoint %d is pending, but its row is gone", e.ID))
	case e.Err != nil:
		p.retry, p.retryAt = WriteAbort{Record: p.record}, now.Add(backoff)
		return nil
	case e.Status == StatusCompleted: // an earlier decision had been recorded after all
		p.sum(c.tasks)
		p.record.Failure, p.record.Manifest = nil, ManifestKey(c.fence.Job, p.record.ID)
		p.record.Path = CriticalPath(p.record, c.tasks)
		return c.complete(now, p)
	}
	return c.end(now, p)
}

func (c *Coordinator) remove(p *pending) {
	c.pending = slices.DeleteFunc(c.pending, func(q *pending) bool { return q == p })
}

// end: the checkpoint is given up for good; its objects go and the failure counts.
func (c *Coordinator) end(now time.Time, p *pending) []Action {
	c.remove(p)
	c.aborted = append(c.aborted, p.record.ID)
	if len(c.aborted) > maxAborted {
		c.aborted = c.aborted[1:]
	}
	acts := append(drop(p.record.ID, p.late), Ended{Record: p.record}, Collect{}, Tell{Kind: string(p.record.Type), Message: ended(p)})
	if p.record.Final {
		c.holdUntil = now.Add(backoff)
	}
	if p.record.Status != StatusFailed || p.record.Type != TypeCheckpoint {
		return acts
	}
	return append(acts, c.count(p)...)
}

// ended says how a checkpoint that did not complete ended.
func ended(p *pending) string {
	why := ""
	if p.record.Failure != nil {
		why = ": " + p.record.Failure.Message
	}
	return fmt.Sprintf("%s %s%s", p.name(), p.record.Status, why)
}

// count counts a failure; the attempt fails with the first of too many in a row. One that
// was recorded only after a newer one had completed is not in the row that begins there, and
// one that did not begin failed nowhere.
func (c *Coordinator) count(p *pending) []Action {
	if p.burnt || p.record.ID < c.succeeded {
		return nil
	}
	f := AttemptFailure{Checkpoint: p.record.ID}
	if p.record.Failure != nil {
		f.Failure = *p.record.Failure
	}
	f.Failure.Message = ended(p)
	if c.failed++; c.failed == 1 {
		c.failure = f
	}
	if c.failed <= c.opts.TolerableFailures {
		return nil
	}
	c.stopped = true
	first := c.failure
	if same := first.Failure.Reason == f.Failure.Reason && first.Failure.Operator == f.Failure.Operator &&
		subtaskOf(first.Failure) == subtaskOf(f.Failure); same {
		if c.failed > 1 {
			f.Failure.Message += fmt.Sprintf(" (failure %d in a row, %d tolerated)", c.failed, c.opts.TolerableFailures)
		}
		return []Action{FailAttempt{Failure: f}}
	}
	first.Failure.Message += fmt.Sprintf(" (the first of %d failures in a row, %d tolerated; the last: %s)", c.failed, c.opts.TolerableFailures, f.Failure.Message)
	return []Action{FailAttempt{Failure: first}}
}

func subtaskOf(f weir.Failure) int {
	if f.Subtask == nil {
		return -1
	}
	return *f.Subtask
}
