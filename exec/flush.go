package exec

import (
	"context"
	"time"
)

// A task holds rows back in two places: operators that aggregate before the exchange, and
// a buffer for each target. A full buffer goes at once and everything before a barrier.
// Else it depends on whether the task, and whoever reads its rows, has something else to do:
//
//	task   reader  goes
//	rests  rests   at once; when that was a moment ago, after leastPause
//	rests  busy    when the reader rests, looked for less and less often; all at the latency target
//	busy   rests   what is in buffers every busyLook, partial aggregates at the latency target
//	busy   busy    at the latency target
//
// So a lonely row waits for nothing; at full load aggregates are as partial, and frames as
// small, as the target asks. Partial aggregates go when no reader is busy: they shrink while
// they wait. Nobody waits for a slow reader's credit before the quick ones have theirs. There
// is one timer for a task, and its clock is read once for each batch.
const (
	leastPause = time.Millisecond
	mostPause  = 16 * time.Millisecond
	busyLook   = 5 * time.Millisecond
)

// A held is what a task holds back; the zero value: nothing.
type held struct {
	any    bool
	since  time.Time     // when the first batch of it had come through; zero: it has not
	lookAt time.Time     // when a task that rests looks again who of its readers does; zero: soon
	pause  time.Duration // between its last two looks
}

// came notes that something comes in that may stay: who rests may have it soon.
func (h *held) came() { h.any, h.lookAt, h.pause = true, time.Time{}, 0 }

// flushBusy follows each batch: it bounds how long a busy task keeps rows back.
func (t *Task) flushBusy() error {
	now := t.now()
	switch {
	case !t.held.any:
	case t.latency == 0:
		return t.flushNow(now)
	case t.held.since.IsZero():
		t.held.since = now
	case now.Sub(t.held.since) >= t.latency:
		return t.flushNow(now)
	case now.Sub(t.lookedAt) >= busyLook:
		t.lookedAt = now
		return t.outputs.flushIdle()
	}
	return nil
}

func (t *Task) flushNow(now time.Time) error {
	t.held, t.lookedAt = held{}, now
	return t.flush()
}

// flushResting lets go what a task that rests holds back, and returns until when it may
// keep the remainder; zero: there is none, or the inputs have to be looked at again.
func (t *Task) flushResting(now time.Time) (until time.Time, err error) {
	h := &t.held
	if h.since.IsZero() {
		h.since = now
	}
	if h.lookAt.IsZero() {
		h.lookAt = t.lookedAt.Add(leastPause)
	}
	due := h.since.Add(t.latency)
	if !now.Before(due) {
		return time.Time{}, t.flushNow(now)
	}
	if !now.Before(h.lookAt) {
		if t.outputs.idle() {
			return time.Time{}, t.flushNow(now)
		}
		if err := t.outputs.flushIdle(); err != nil {
			return time.Time{}, err
		}
		h.pause = min(max(2*h.pause, leastPause), mostPause)
		t.lookedAt, h.lookAt = now, now.Add(h.pause)
	}
	if h.lookAt.Before(due) {
		due = h.lookAt
	}
	return due, nil
}

// idle waits for the mailbox, an input or the time until (zero: none). A task that holds
// rows back lets them go first, or waits no longer than it may keep them.
func (t *Task) idle(ctx context.Context, until time.Time) error {
	now := t.now()
	if t.held.any {
		due, err := t.flushResting(now)
		if err != nil || due.IsZero() {
			return err
		}
		if until.IsZero() || due.Before(until) {
			until = due
		}
	}
	var timeC <-chan time.Time
	if !until.IsZero() {
		if !now.Before(until) {
			return nil
		}
		t.timer.Reset(until.Sub(now))
		timeC = t.timer.C
	}
	t.meter.rest()
	t.stats.idleSince.Store(&now)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.mail.wakeC:
	case <-timeC:
	}
	t.stats.idleSince.Store(nil)
	t.stats.idleNS.Add(int64(t.now().Sub(now)))
	return nil
}
