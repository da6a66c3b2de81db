package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"weir"
)

// An openCommit is a decided checkpoint whose segments sinks have still to make
// visible. They queue in barrier order: the next one's sinks are not notified before
// every earlier one is closed (I10).
type openCommit struct {
	id      weir.CheckpointID
	decided time.Time           // zero: by an earlier attempt
	took    []CommitTime        // by those that have confirmed
	closes  []weir.CheckpointID // the rows it closes; more than id after a restore
	waiting []weir.TaskID       // sink tasks that have not confirmed
	sent    bool
	closing bool
	retryAt time.Time // when waiting tasks are asked again, or the close is repeated
}

// pushCommit adds a decided checkpoint to the queue and starts it if it is alone.
func (c *Coordinator) pushCommit(now time.Time, o *openCommit) []Action {
	c.commits = append(c.commits, o)
	return c.commitHead(now)
}

// commitHead asks the sinks of the oldest open checkpoint, or closes it.
func (c *Coordinator) commitHead(now time.Time) []Action {
	if len(c.commits) == 0 {
		return nil
	}
	head := c.commits[0]
	if len(head.waiting) == 0 {
		if head.closing {
			return nil
		}
		head.closing, head.retryAt = true, time.Time{}
		return []Action{CloseCommits{ID: head.id, IDs: head.closes, Took: head.took}}
	}
	if head.sent && (head.retryAt.IsZero() || now.Before(head.retryAt)) {
		return nil
	}
	head.sent, head.retryAt = true, now.Add(commitAgain)
	return []Action{Notify{ID: head.id, Tasks: slices.Clone(head.waiting)}}
}

func (c *Coordinator) notified(now time.Time, e Notified) []Action {
	if e.Err == nil || len(c.commits) == 0 || c.commits[0].id != e.ID || c.commits[0].closing {
		return nil // it reached them after all, if they have confirmed
	}
	c.commits[0].retryAt = now.Add(backoff)
	return nil
}

// committed takes a sink's confirmation; one for a later checkpoint covers this one.
func (c *Coordinator) committed(now time.Time, e Committed) []Action {
	if len(c.commits) == 0 || e.ID < c.commits[0].id || c.commits[0].closing {
		return nil
	}
	head := c.commits[0]
	i := slices.Index(head.waiting, e.Task)
	if i < 0 {
		return nil
	}
	if e.Err != nil {
		head.retryAt = now.Add(backoff)
		return []Action{Tell{Kind: "commit", Message: fmt.Sprintf("%s could not commit checkpoint %d and tries again: %v", c.name(e.Task), head.id, e.Err)}}
	}
	head.waiting = slices.Delete(head.waiting, i, i+1)
	if !head.decided.IsZero() {
		head.took = append(head.took, CommitTime{Task: e.Task, MS: millis(now.Sub(head.decided))})
	}
	return c.commitHead(now)
}

func (c *Coordinator) commitsClosed(now time.Time, e CommitsClosed) []Action {
	if len(c.commits) == 0 || c.commits[0].id != e.ID {
		return nil
	}
	head := c.commits[0]
	switch {
	case errors.Is(e.Err, weir.ErrStale):
		return c.giveUp()
	case errors.Is(e.Err, weir.ErrNotFound):
		return c.behind(e.ID, fmt.Sprintf("checkpoint %d is complete, but its row is gone", e.ID))
	case e.Err != nil:
		head.closing, head.retryAt = false, now.Add(backoff)
		return nil
	}
	c.commits = c.commits[1:]
	return append([]Action{Collect{}}, c.commitHead(now)...)
}

// commitTick repeats what is due.
func (c *Coordinator) commitTick(now time.Time) []Action {
	if len(c.commits) == 0 || c.commits[0].retryAt.IsZero() || now.Before(c.commits[0].retryAt) {
		return nil
	}
	return c.commitHead(now)
}

// commitNext is when commitTick has something to do; zero: never.
func (c *Coordinator) commitNext() time.Time {
	if len(c.commits) == 0 {
		return time.Time{}
	}
	return c.commits[0].retryAt
}

// settle finishes once the last checkpoint's segments are committed, the savepoints
// beside it have ended and no row is left pending.
func (c *Coordinator) settle(now time.Time) []Action {
	if c.ending == nil || c.finished || c.opening != nil || len(c.pending) > 0 || len(c.commits) > 0 {
		return nil
	}
	if c.lost > 0 {
		return c.abortLost(now, c.lastID+weir.CheckpointID(c.lost)+1)
	}
	if len(c.strays) > 0 {
		return nil
	}
	c.finished = true
	return []Action{Finish{Ending: *c.ending}}
}

func (c *Coordinator) name(id weir.TaskID) string { return nameOf(c.tasks, id) }
