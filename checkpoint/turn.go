package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"weir"
)

// A request waits to begin.
type request struct {
	id        RequestID
	savepoint string // empty: a checkpoint
	stop      bool
	waited    bool // it could not begin at once
}

// ask queues a request.
func (c *Coordinator) ask(r request) []Action {
	refuse := func(why string) []Action {
		return []Action{Answer{Request: r.id, Err: fmt.Errorf("%w: %s", weir.ErrConflict, why)}}
	}
	stopping := slices.ContainsFunc(c.queue, func(q request) bool { return q.stop }) || c.opening != nil && c.opening.stop ||
		c.has(func(p *pending) bool { return p.stop })
	switch {
	case c.ending != nil:
		return refuse("the job is ending; its last checkpoint is taken")
	case len(c.queue) >= maxRequests:
		return refuse(fmt.Sprintf("%d requests wait already", len(c.queue)))
	case r.stop && stopping:
		return refuse("a stop with savepoint is under way")
	}
	c.queue = append(c.queue, r)
	return nil
}

func (c *Coordinator) withdraw(e Withdraw) []Action {
	known := len(c.queue)
	c.queue = slices.DeleteFunc(c.queue, func(r request) bool { return r.id == e.Request })
	if len(c.queue) == known {
		return nil
	}
	return []Action{Answer{Request: e.Request, Err: fmt.Errorf("%w: withdrawn before it began", weir.ErrConflict)}}
}

// refuseQueue answers all that wait, once the last checkpoint is taken.
func (c *Coordinator) refuseQueue() []Action {
	var acts []Action
	for _, q := range c.queue {
		acts = append(acts, Answer{Request: q.id, Err: fmt.Errorf("%w: the job is ending; its last checkpoint is taken", weir.ErrConflict)})
	}
	c.queue = nil
	return acts
}

// An upcoming is what may begin next: the request at that place of the queue (-1: none
// of them), else the last checkpoint of a bounded job, else a periodic one.
type upcoming struct {
	request int
	final   bool
	at      time.Time // not before
}

// upcoming says whose turn it is: what users asked for, in order; then the last
// checkpoint of a job whose sources have all ended; then a periodic one. ok is false
// while nothing may begin before another event. Nothing begins while a decision is in
// doubt: so the base that a checkpoint builds on is known, and cannot have been given up.
func (c *Coordinator) upcoming() (u upcoming, ok bool) {
	if !c.search.done || c.opening != nil || c.ending != nil || c.inDoubt() || c.unsettled() {
		return u, false
	}
	room := c.room()
	saving := c.has(func(p *pending) bool { return p.record.Type == TypeSavepoint })
	i := slices.IndexFunc(c.queue, func(r request) bool { return r.savepoint != "" && !saving || r.savepoint == "" && room })
	switch {
	case i >= 0:
		return upcoming{request: i, at: c.holdUntil}, true
	case room && c.allEnded():
		return upcoming{request: -1, final: true, at: c.holdUntil}, true
	case room && !c.allEnded() && c.mayRepeat():
		return upcoming{request: -1, at: c.periodicAt()}, true
	}
	return u, false
}

// room reports whether one more checkpoint may be under way: none beside the last one
// of a bounded job, nor beside the savepoint that stops it.
func (c *Coordinator) room() bool {
	n := 0
	for _, p := range c.pending {
		if p.stop || p.record.Final {
			return false
		}
		if p.record.Type == TypeCheckpoint {
			n++
		}
	}
	return n < c.opts.MaxConcurrent
}

// mayRepeat reports whether periodic checkpoints go on: not while too many have commits
// open or a trigger cannot be delivered, and, with a minimum pause, not beside another
// checkpoint.
func (c *Coordinator) mayRepeat() bool {
	return !c.due.IsZero() && len(c.commits) < maxOpenCommits &&
		!c.has(func(p *pending) bool {
			return p.undelivered != nil || c.opts.MinPause > 0 && p.record.Type == TypeCheckpoint
		})
}

// periodicAt is when the next periodic checkpoint is due.
func (c *Coordinator) periodicAt() time.Time {
	at := c.due
	for _, t := range []time.Time{c.pauseUntil, c.holdUntil} {
		if t.After(at) {
			at = t
		}
	}
	return at
}

func (c *Coordinator) allEnded() bool {
	return !slices.ContainsFunc(c.tasks, func(t Task) bool { return t.Source && !c.ended[t.ID] })
}

func (c *Coordinator) has(is func(*pending) bool) bool { return slices.ContainsFunc(c.pending, is) }

// next begins what may begin.
func (c *Coordinator) next(now time.Time) []Action {
	u, ok := c.upcoming()
	if !ok || now.Before(u.at) {
		for i := range c.queue {
			c.queue[i].waited = true
		}
		return nil
	}
	r := Record{Job: c.fence.Job, Attempt: c.fence.Attempt, Type: TypeCheckpoint, Status: StatusPending, TriggeredAt: now}
	p := &pending{base: c.base} // what tasks store lies over it, and a savepoint is made of it
	switch {
	case u.request >= 0:
		p.requests, p.stop = c.take(u.request, &r)
	case u.final:
		r.Final = true
	default:
		r.Periodic = true
	}
	if r.Type == TypeCheckpoint && !c.due.IsZero() {
		c.due = now.Add(c.opts.Interval)
	}
	for i := range c.queue {
		c.queue[i].waited = true
	}
	p.record, c.opening = r, p
	return []Action{Begin{Record: r, After: c.lastID}}
}

// take removes the i-th request; all that wait for a checkpoint share one.
func (c *Coordinator) take(i int, r *Record) (answers []Answer, stop bool) {
	answer := func(q request) Answer {
		switch {
		case len(answers) > 0:
			return Answer{Request: q.id, Turn: TurnJoined}
		case q.waited:
			return Answer{Request: q.id, Turn: TurnQueued}
		}
		return Answer{Request: q.id, Turn: TurnStarted}
	}
	if first := c.queue[i]; first.savepoint != "" {
		c.queue = slices.Delete(c.queue, i, i+1)
		r.Type, r.Savepoint = TypeSavepoint, first.savepoint
		return []Answer{answer(first)}, first.stop
	}
	for _, q := range c.queue {
		if q.savepoint == "" {
			answers = append(answers, answer(q))
		}
	}
	c.queue = slices.DeleteFunc(c.queue, func(q request) bool { return q.savepoint == "" })
	return answers, false
}

// begun: the row is there, or is not, or nobody knows.
func (c *Coordinator) begun(now time.Time, e Begun) []Action {
	p := c.opening
	if p == nil {
		return nil
	}
	c.opening = nil
	if errors.Is(e.Err, weir.ErrStale) {
		return c.giveUp()
	}
	if e.Err == nil && c.burns(p, e.ID) {
		return c.burn(now, p, e.ID)
	}
	var acts []Action
	for _, a := range p.requests {
		a.ID, a.Err = e.ID, e.Err
		if e.Err != nil {
			a.Turn = ""
		}
		acts = append(acts, a)
	}
	p.requests = nil
	if errors.Is(e.Err, weir.ErrNotFound) {
		return append(acts, c.behind(c.lastID, fmt.Sprintf("it does not know checkpoint %d", c.lastID))...)
	}
	if e.Err != nil {
		if p.record.Savepoint != "" && (errors.Is(e.Err, weir.ErrConflict) || errors.Is(e.Err, weir.ErrInvalid)) {
			return acts // the request's own fault; nothing was inserted
		}
		c.holdUntil = now.Add(backoff)
		c.lostBegin(now)
		if p.record.Periodic && c.miss(now, e.Err) {
			return acts // told once
		}
		return append(acts, Tell{Kind: "checkpoint", Message: fmt.Sprintf("a %s could not begin: %v", p.record.Type, e.Err)})
	}
	if e.ID <= c.lastID {
		return append(acts, c.behind(e.ID, fmt.Sprintf("it gave out checkpoint id %d, which is not above %d", e.ID, c.lastID))...)
	}
	acts = append(acts, c.abortLost(now, e.ID)...)
	p.record.ID, c.lastID = e.ID, e.ID
	p.phase, p.acks, p.deadline = collecting, map[weir.TaskID]Ack{}, p.record.TriggeredAt.Add(c.opts.Timeout)
	c.pending = append(c.pending, p)
	c.triggers = append(c.triggers, SendTrigger{
		Trigger: Trigger{Job: c.fence.Job, Attempt: c.fence.Attempt, Checkpoint: e.ID, At: p.record.TriggeredAt, Base: p.base, Whole: p.record.Type == TypeSavepoint},
		Targets: tasksWhere(c.tasks, func(t Task) bool { return t.Source }),
	})
	return acts
}

// sendTrigger sends the oldest trigger that is not delivered, one at a time and in
// order, so that each source begins them in order. One whose checkpoint waits for acks no
// more gives way to a newer one.
func (c *Coordinator) sendTrigger(now time.Time) []Action {
	for len(c.triggers) > 1 && !c.wanted(c.triggers[0].Trigger.Checkpoint) {
		c.triggers, c.triggerSent, c.triggerAt = c.triggers[1:], false, time.Time{}
	}
	if len(c.triggers) == 0 || c.triggerSent || now.Before(c.triggerAt) {
		return nil
	}
	t := c.triggers[0]
	for _, p := range c.pending {
		if p.phase < aborting && p.record.ID <= t.Trigger.Checkpoint {
			t.Trigger.Pending = append(t.Trigger.Pending, p.record.ID)
		}
	}
	c.triggerSent, c.triggerAt = true, time.Time{}
	return []Action{t}
}

// wanted reports whether a checkpoint still waits for acks.
func (c *Coordinator) wanted(id weir.CheckpointID) bool {
	return c.in(id, collecting) != nil || c.in(id, asking) != nil
}

// triggered: a trigger that was not delivered is repeated, even after its checkpoint
// was given up: some sources may have sent the barrier, and channels held for it
// wait until the others send it, or a newer one.
func (c *Coordinator) triggered(now time.Time, e Triggered) []Action {
	if !c.triggerSent || len(c.triggers) == 0 || c.triggers[0].Trigger.Checkpoint != e.ID {
		return nil
	}
	c.triggerSent = false
	for _, p := range c.pending {
		if p.record.ID == e.ID {
			p.undelivered = e.Err
		}
	}
	if e.Err == nil {
		c.triggers = c.triggers[1:]
	} else {
		c.triggerAt = now.Add(backoff)
	}
	return nil
}
