package source

import (
	"math"
	"time"
)

// A pacer holds a subtask to its share of a table's rows per second. It saves up at
// most one second's worth, so that a pause is never followed by a burst; and it
// grants rows in lots of a twentieth of a second, so that slow tables emit few
// batches rather than many rows one by one.
type pacer struct {
	rate   float64 // rows per second; 0: as fast as possible
	credit float64
	last   time.Time // zero: not yet asked
}

// grant returns how many rows, up to want, may be emitted now; or 0 and when to ask again.
func (p *pacer) grant(now time.Time, want int) (n int, until time.Time) {
	if p.rate <= 0 {
		return want, time.Time{}
	}
	lot := min(max(p.rate/20, 1), float64(want))
	if p.last.IsZero() {
		p.credit, p.last = lot, now
	}
	if gone := now.Sub(p.last).Seconds(); gone > 0 {
		p.credit = min(p.credit+gone*p.rate, max(p.rate, 1))
		p.last = now
	}
	if p.credit < lot {
		wait := math.Ceil((lot - p.credit) / p.rate * 1e9)
		return 0, now.Add(time.Duration(min(wait, 1e18)))
	}
	return int(min(p.credit, float64(want))), time.Time{}
}

// spend takes the rows that were emitted off the credit.
func (p *pacer) spend(n int) {
	if p.rate > 0 {
		p.credit -= float64(n)
	}
}
