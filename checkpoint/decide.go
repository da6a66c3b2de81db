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

// ack takes in a task's ack; the last one completes the snapshot.
func (c *Coordinator) ack(now time.Time, a Ack) (AckAnswer, []Action) {
	if a.Job != c.fence.Job || a.Attempt != c.fence.Attempt {
		return AckStale, nil
	}
	p := c.cur
	if p == nil || p.phase == beginning || p.record.ID != a.Checkpoint {
		return c.lateAck(a)
	}
	if p.phase == aborting {
		return AckLate, nil // its objects go once the abort is recorded, or by its next ack
	}
	answer := p.add(a, c.tasks)
	switch {
	case answer != AckAccepted:
		return answer, nil
	case a.Failure != nil:
		return answer, c.abort(now, StatusFailed, declined(a, c.tasks))
	case len(p.missing(c.tasks)) > 0:
		return answer, nil
	}
	p.phase, p.tries = writing, 1
	p.sum(c.tasks)
	p.record.Manifest = ManifestKey(c.fence.Job, p.record.ID)
	return answer, []Action{WriteManifest{Manifest: c.manifest(p)}}
}

// lateAck releases what a task uploaded for a checkpoint that was given up: it never
// brings the checkpoint back. Only objects that this attempt wrote for that very
// checkpoint go; those it merely names belong to others.
func (c *Coordinator) lateAck(a Ack) (AckAnswer, []Action) {
	if !slices.Contains(c.aborted, a.Checkpoint) {
		return AckUnknown, nil
	}
	var keys []string
	for _, key := range ackObjects(a) {
		k, ok := parseKey(key)
		if ok && !k.Full && k.Job == c.fence.Job && k.Attempt == c.fence.Attempt && k.Checkpoint == a.Checkpoint {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return AckLate, nil
	}
	return AckLate, []Action{DropObjects{ID: a.Checkpoint, Keys: keys}}
}

func ackObjects(a Ack) []string {
	if a.Snapshot == nil {
		return nil
	}
	return (&Manifest{Tasks: []TaskSnapshot{*a.Snapshot}}).Objects()
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

// in returns the pending checkpoint if it is id and in phase ph.
func (c *Coordinator) in(id weir.CheckpointID, ph phase) *pending {
	if c.cur == nil || c.cur.record.ID != id || c.cur.phase != ph {
		return nil
	}
	return c.cur
}

func (c *Coordinator) manifestWritten(now time.Time, e ManifestWritten) []Action {
	p := c.in(e.ID, writing)
	if p == nil {
		return nil
	}
	switch {
	case errors.Is(e.Err, errForeign):
		return c.behind(e.ID, fmt.Sprintf("storage holds checkpoint %d already: %v", e.ID, e.Err))
	case e.Err != nil && p.tries < maxTries:
		p.tries++
		p.retry, p.retryAt = WriteManifest{Manifest: c.manifest(p)}, now.Add(backoff)
		return nil
	case e.Err != nil:
		return c.abort(now, StatusFailed, &weir.Failure{
			Reason:  ReasonManifest,
			Message: fmt.Sprintf("manifest %s could not be written: %v", p.record.Manifest, e.Err),
		})
	}
	p.phase, p.tries = deciding, 1
	p.record.CompletedAt = now
	return []Action{c.decision(p)}
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
	return c.complete(now)
}

func (c *Coordinator) read(now time.Time, e Read) []Action {
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
		return c.complete(now)
	case e.Record.Status != StatusPending:
		p.record.Status, p.record.Failure, p.record.CompletedAt = e.Record.Status, e.Record.Failure, now
		return c.end(now)
	case p.tries < maxTries:
		p.tries++
		p.retry, p.retryAt = c.decision(p), now.Add(backoff)
		return nil
	}
	return c.abort(now, StatusFailed, &weir.Failure{
		Reason:  ReasonStore,
		Message: fmt.Sprintf("the decision could not be recorded: %v", p.undecided),
	})
}

// complete: the row says so.
func (c *Coordinator) complete(now time.Time) []Action {
	p := c.cur
	p.record.Status = StatusCompleted
	c.cur, c.failures = nil, 0
	if p.record.Type == TypeCheckpoint {
		c.pauseUntil = now.Add(c.opts.MinPause)
	}
	acts := []Action{Ended{Record: p.record}}
	if p.commits() {
		c.base = p.record.ID
	}
	if p.record.Type == TypeSavepoint {
		acts = append(acts, Tell{Kind: "savepoint", Message: fmt.Sprintf("savepoint %s completed as checkpoint %d", p.record.Savepoint, p.record.ID)})
	}
	if p.stop || p.record.Final {
		c.ending = &Ending{Checkpoint: p.record.ID, Stopped: p.stop}
		for _, q := range c.queue {
			acts = append(acts, Answer{Request: q.id, Err: fmt.Errorf("%w: the job is ending; its last checkpoint is taken", weir.ErrConflict)})
		}
		c.queue = nil
	}
	if p.record.CommitsOpen {
		var sinks []weir.TaskID
		for _, t := range c.tasks {
			if p.acks[t.ID].Snapshot.Commits {
				sinks = append(sinks, t.ID)
			}
		}
		acts = append(acts, c.pushCommit(now, &openCommit{id: p.record.ID, closes: []weir.CheckpointID{p.record.ID}, waiting: sinks})...)
	}
	return append(append(acts, Collect{}), c.settle()...)
}

// cancel gives the pending checkpoint up for its user.
func (c *Coordinator) cancel(now time.Time, e AskCancel) []Action {
	p := c.cur
	switch {
	case p == nil || p.record.ID != e.ID || e.ID == 0:
		return []Action{Answer{Request: e.Request, Err: fmt.Errorf("%w: checkpoint %d is not pending", weir.ErrConflict, e.ID)}}
	case p.phase != collecting:
		return []Action{Answer{Request: e.Request, Err: fmt.Errorf("%w: checkpoint %d is ending already", weir.ErrConflict, e.ID)}}
	}
	return append(c.abort(now, StatusAborted, &weir.Failure{Reason: ReasonCanceled, Message: "canceled by its user"}),
		Answer{Request: e.Request, ID: e.ID})
}

// abort gives the pending checkpoint up: its row first, the objects after.
func (c *Coordinator) abort(now time.Time, status Status, why *weir.Failure) []Action {
	p := c.cur
	p.sum(c.tasks)
	p.phase, p.retry = aborting, nil
	p.record.Status, p.record.Failure, p.record.CompletedAt = status, why, now
	p.record.Manifest, p.record.CommitsOpen = "", false
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
		return c.complete(now)
	}
	return c.end(now)
}

// end: the checkpoint is given up for good; its objects go and the failure counts.
func (c *Coordinator) end(now time.Time) []Action {
	p := c.cur
	c.cur = nil
	c.aborted = append(c.aborted, p.record.ID)
	if len(c.aborted) > maxAborted {
		c.aborted = c.aborted[1:]
	}
	kind, name, why := "checkpoint", fmt.Sprintf("checkpoint %d", p.record.ID), ""
	if p.record.Type == TypeSavepoint {
		kind, name = "savepoint", fmt.Sprintf("savepoint %s (checkpoint %d)", p.record.Savepoint, p.record.ID)
	}
	if p.record.Failure != nil {
		why = ": " + p.record.Failure.Message
	}
	message := fmt.Sprintf("%s %s%s", name, p.record.Status, why)
	acts := []Action{Ended{Record: p.record}, DropObjects{ID: p.record.ID}, Tell{Kind: kind, Message: message}}
	if p.record.Final {
		c.holdUntil = now.Add(backoff)
	}
	if p.record.Status != StatusFailed || p.record.Type != TypeCheckpoint {
		return acts
	}
	c.failures++
	if c.failures <= c.opts.TolerableFailures {
		return acts
	}
	c.stopped = true
	f := AttemptFailure{Checkpoint: p.record.ID}
	if p.record.Failure != nil {
		f.Failure = *p.record.Failure
	}
	f.Failure.Message = message
	if c.failures > 1 {
		f.Failure.Message += fmt.Sprintf(" (failure %d in a row, %d tolerated)", c.failures, c.opts.TolerableFailures)
	}
	return append(acts, FailAttempt{Failure: f})
}

// abortLost ends the rows that begins of unknown outcome may have left: the ids just
// below the one that is known now.
func (c *Coordinator) abortLost(now time.Time, id weir.CheckpointID) []Action {
	var acts []Action
	for stray := max(c.lastID+1, id-weir.CheckpointID(c.lost)); stray < id; stray++ {
		r := c.strayRecord(now, stray, StatusFailed, ReasonStore, "its begin could not be confirmed")
		c.strays = append(c.strays, r)
		acts = append(acts, WriteAbort{Record: r})
	}
	c.lost = 0
	return acts
}

func (c *Coordinator) strayRecord(now time.Time, id weir.CheckpointID, status Status, reason, message string) Record {
	return Record{
		Job: c.fence.Job, ID: id, Attempt: c.fence.Attempt, Type: TypeCheckpoint, Status: status, CompletedAt: now,
		Failure: &weir.Failure{Reason: reason, Message: message},
	}
}

func (c *Coordinator) strayDone(now time.Time, e Aborted) []Action {
	switch {
	case errors.Is(e.Err, weir.ErrStale):
		return c.giveUp()
	case e.Err != nil && !errors.Is(e.Err, weir.ErrNotFound):
		c.strayAt = now.Add(backoff)
		return nil
	}
	known := len(c.strays)
	c.strays = slices.DeleteFunc(c.strays, func(r Record) bool { return r.ID == e.ID })
	if len(c.strays) == known || e.Status == StatusCompleted {
		return c.settle()
	}
	return append([]Action{DropObjects{ID: e.ID}}, c.settle()...)
}

func (c *Coordinator) strayTick(now time.Time) []Action {
	if c.strayAt.IsZero() || now.Before(c.strayAt) {
		return nil
	}
	c.strayAt = time.Time{}
	var acts []Action
	for _, r := range c.strays {
		acts = append(acts, WriteAbort{Record: r})
	}
	return acts
}
