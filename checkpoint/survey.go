package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"weir"
)

// A search looks for what storage knows and the metastore does not. Nothing begins, and
// nothing is deleted, before it is done.
type search struct {
	done     bool
	again    time.Time // when storage is asked again; zero: an answer is awaited, or done
	told     bool      // the history says that storage fails
	doubt    *doubt    // the metastore is asked about what was found
	withheld []Action  // deletions that wait
}

// A doubt is what storage knows and we do not: the metastore is behind, or we are.
type doubt struct {
	id  weir.CheckpointID // whose row is read, under our fence
	why string
}

// surveyed: storage that knows a newer checkpoint than the metastore ever gave out, or
// an attempt that it never began, says that the metastore went back in time; unless it is
// us who are old, which reading a row under our fence tells.
func (c *Coordinator) surveyed(now time.Time, e Surveyed) []Action {
	s := &c.search
	if s.done || s.doubt != nil {
		return nil
	}
	switch {
	case e.Err != nil:
		s.again = now.Add(backoff)
		if s.told {
			return nil
		}
		s.told = true
		return []Action{Tell{Kind: "checkpoint", Message: fmt.Sprintf("no checkpoint begins until storage can be listed: %v", e.Err)}}
	case e.Newest > c.lastID:
		s.doubt = &doubt{e.Newest, fmt.Sprintf("storage holds checkpoint %d, but the last id given out is %d", e.Newest, c.lastID)}
	case e.Attempt != (weir.AttemptID{}):
		s.doubt = &doubt{c.lastID + 1, fmt.Sprintf("storage holds objects of attempt %v, but the newest attempt is %v", e.Attempt, c.fence.Attempt)}
	default:
		return c.searchDone()
	}
	return []Action{ReadBack{ID: s.doubt.id}}
}

// searchDone lets checkpoints begin and deletions go on.
func (c *Coordinator) searchDone() []Action {
	s := &c.search
	acts := slices.Concat(s.withheld, []Action{Collect{}})
	if s.told {
		acts = append(acts, Tell{Kind: "checkpoint", Message: "storage can be listed again: checkpoints begin"})
	}
	*s = search{done: true}
	return acts
}

// doubted takes what the metastore says of what storage holds.
func (c *Coordinator) doubted(now time.Time, e Read) []Action {
	s := &c.search
	d := s.doubt
	s.doubt = nil
	switch {
	case errors.Is(e.Err, weir.ErrStale):
		return c.giveUp()
	case errors.Is(e.Err, weir.ErrNotFound):
		return c.behind(d.id, d.why)
	case e.Err != nil:
		s.again = now.Add(backoff)
		return nil
	}
	c.lastID = max(c.lastID, d.id) // it knows it after all
	return c.searchDone()
}

func (c *Coordinator) searchTick(now time.Time) []Action {
	if c.search.again.IsZero() || now.Before(c.search.again) {
		return nil
	}
	c.search.again = time.Time{}
	return []Action{Survey{}}
}

// withhold keeps deletions back until the search is done.
func (c *Coordinator) withhold(acts []Action) []Action {
	if c.search.done {
		return acts
	}
	return slices.DeleteFunc(acts, func(a Action) bool {
		switch a.(type) {
		case DropObjects, Collect:
			c.search.withheld = append(c.search.withheld, a)
			return true
		}
		return false
	})
}

// lostBegin: nobody knows whether a row was inserted. It would have the next id: of a begin
// that was lost before this one, the abort was answered by there being none so far. It is aborted
// also where nothing else begins, since its savepoint's name would be taken until then, and
// nothing begins before the answer: an id that turns out to have been given out counts as
// known (I1), so that a metastore that gives it out again is found to have gone back.
func (c *Coordinator) lostBegin(now time.Time) {
	c.lost++
	c.strays = append(c.strays, c.lostRecord(now, c.lastID+1))
	c.strayAt = now.Add(backoff)
}

// unsettled reports whether the abort of a row that a lost begin may have left is not
// answered yet.
func (c *Coordinator) unsettled() bool {
	return slices.ContainsFunc(c.strays, func(r Record) bool { return r.ID > c.lastID })
}

func (c *Coordinator) lostRecord(now time.Time, id weir.CheckpointID) Record {
	return c.strayRecord(now, id, StatusFailed, ReasonStore, "its begin could not be confirmed")
}

// burn gives up a row whose id had been given out before, for all that is known (the
// collector may be about to delete what bears it), or one in the place of another. Who
// asked for it goes first in the queue.
func (c *Coordinator) burn(now time.Time, p *pending, id weir.CheckpointID) []Action {
	acts := c.abortLost(now, id)
	var back []request
	for _, a := range p.requests {
		back = append(back, request{id: a.Request, savepoint: p.record.Savepoint, stop: p.stop, waited: true})
	}
	c.queue, p.requests = append(back, c.queue...), nil
	p.record.ID, c.lastID, p.burnt = id, id, true
	c.pending = append(c.pending, p)
	why := "its id may have been given out before"
	if p.record.Periodic {
		c.due = now
	}
	if p.record.Periodic && c.missed != nil {
		why, c.missed = fmt.Sprintf("it could not begin when it was due: %v", c.missed), nil
	}
	return append(acts, c.abort(now, p, StatusFailed, &weir.Failure{Reason: ReasonStore, Message: why})...)
}

// miss notes that a periodic checkpoint could not begin when it was due: it is still due,
// once the metastore is back. again: so it was the last time.
func (c *Coordinator) miss(now time.Time, err error) (again bool) {
	again = c.missed != nil
	c.missed, c.due = err, now
	return again
}

// burns reports whether a checkpoint that has got this id is to be given up: for the id's
// sake, or in the place of one that was due while the metastore was away, so that the
// history says what failed and why. Another one begins at once.
func (c *Coordinator) burns(p *pending, id weir.CheckpointID) bool {
	return id > c.lastID && (id <= c.burnt || p.record.Periodic && c.missed != nil)
}

// abortLost ends the rows that begins of unknown outcome may have left: the ids just
// below next.
func (c *Coordinator) abortLost(now time.Time, next weir.CheckpointID) []Action {
	var acts []Action
	for id := max(c.lastID+1, next-weir.CheckpointID(c.lost)); id < next; id++ {
		r := c.lostRecord(now, id)
		c.strays = append(slices.DeleteFunc(c.strays, func(r Record) bool { return r.ID == id }), r)
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
		c.strayAt, c.burnt = now.Add(backoff), max(c.burnt, e.ID)
		return nil
	}
	if e.Err == nil && e.ID > c.lastID { // a lost begin had inserted it
		c.lost, c.lastID, c.missed = max(0, c.lost-int(e.ID-c.lastID)), e.ID, nil
	}
	known := len(c.strays)
	c.strays = slices.DeleteFunc(c.strays, func(r Record) bool { return r.ID == e.ID })
	if len(c.strays) == known || e.Status == StatusCompleted {
		return nil
	}
	return []Action{Collect{}}
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
