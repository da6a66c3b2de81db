package transport

import "time"

const (
	ratePeriod = 50 * time.Millisecond // of work, over which a rate is measured
	workMost   = time.Second           // a frame that took longer waited for something else: a held channel
)

// A window sizes the credit of one channel: CreditSpan of work at the rate at which its
// task was last seen to work the channel off, between a minimum and a maximum. Only time
// counts in which frames wait for the task: what it does with other channels meanwhile is
// time in which this one waits, so the windows of a task are CreditSpan of its work in all;
// and a pause of the sender is none. A window that was too small to measure by doubles.
type window struct {
	size     int // bytes
	min, max int
	span     time.Duration
	measured bool

	markAt time.Time // work is counted up to here
	work   time.Duration
	bytes  int // consumed in that time
}

func newWindow(l Limits) window {
	return window{size: min(l.MinCredit, l.MaxCredit), min: min(l.MinCredit, l.MaxCredit), max: l.MaxCredit, span: l.CreditSpan}
}

// share sets a new maximum, which may lie below the minimum and then replaces it. It
// makes the window of a task that has consumed nothing yet no larger.
func (w *window) share(limit, minimum int) {
	w.max, w.min = limit, min(minimum, limit)
	if w.measured {
		w.size = max(w.size, w.min)
	}
	w.size = min(w.size, w.max)
}

// arrive records that a frame came when none waited.
func (w *window) arrive(now time.Time) { w.markAt = now }

// consume records that the task took weight bytes.
func (w *window) consume(now time.Time, weight int) {
	w.work += min(now.Sub(w.markAt), workMost)
	w.markAt = now
	w.bytes += weight
	short := w.work < ratePeriod
	if short && w.bytes < 2*w.size {
		return
	}
	rate := float64(w.bytes) / max(w.work, time.Microsecond).Seconds()
	want := int(min(rate*w.span.Seconds(), float64(w.max)))
	if w.measured { // smoothed
		want = (want + w.size) / 2
	}
	if short { // of two windows: enough to grow by, not to shrink
		want = max(w.size, min(want, 2*w.size))
	}
	w.measured, w.work, w.bytes = true, 0, 0
	w.size = min(max(want, w.min), w.max)
}
