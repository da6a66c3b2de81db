package transport

import "time"

const (
	ratePeriod = 50 * time.Millisecond // the rate is measured over at least this
	rateIdle   = time.Second           // a longer pause with nothing to consume is no measurement
)

// A window sizes the credit of one channel: CreditSpan of work at the rate at which
// its task was last seen to consume, between a minimum and a maximum. It starts at
// the minimum; where the window itself was what limited the rate, it doubles and
// more with each measurement.
type window struct {
	size     int // bytes
	min, max int
	span     time.Duration
	rate     float64 // bytes per second, smoothed; 0: not measured yet
	since    time.Time
	last     time.Time
	bytes    int
}

func newWindow(l Limits) window {
	return window{size: min(l.MinCredit, l.MaxCredit), min: min(l.MinCredit, l.MaxCredit), max: l.MaxCredit, span: l.CreditSpan}
}

// share sets a new maximum, which may lie below the minimum and then replaces it. It
// makes the window of a task that has consumed nothing yet no larger.
func (w *window) share(limit, minimum int) {
	w.max, w.min = limit, min(minimum, limit)
	if w.rate > 0 {
		w.size = max(w.size, w.min)
	}
	w.size = min(w.size, w.max)
}

// consume records that the task took weight bytes; idle says that nothing is left.
func (w *window) consume(now time.Time, weight int, idle bool) {
	if w.since.IsZero() {
		w.since, w.last = now, now
	}
	w.bytes += weight
	elapsed := now.Sub(w.since)
	if idle && now.Sub(w.last) > rateIdle {
		w.since, w.bytes, elapsed = now, 0, 0
	}
	w.last = now
	if elapsed < ratePeriod {
		return
	}
	rate := float64(w.bytes) / elapsed.Seconds()
	if w.rate > 0 {
		rate = (rate + w.rate) / 2
	}
	w.rate, w.since, w.bytes = rate, now, 0
	w.size = min(max(int(rate*w.span.Seconds()), w.min), w.max)
}
