// Package clocktest steps a clock, for tests: as when somebody sets a machine's time while
// its processes run (case R10). The time of day jumps, the monotonic clock goes on.
package clocktest

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"
)

// A Clock is the machine's, stepped. Its zero value has not been.
type Clock struct {
	base, start time.Time // of a bubble's
	by          atomic.Int64
}

// InBubble makes the clock of a bubble of testing/synctest, where times have no monotonic
// reading: it lends them one from base, a time from outside.
func InBubble(base time.Time) *Clock { return &Clock{base: base, start: time.Now()} }

// Now is the time by the clock.
func (c *Clock) Now() time.Time {
	now := time.Now()
	if !c.start.IsZero() {
		now = c.base.Add(now.Sub(c.start))
	}
	return Stepped(now, time.Duration(c.by.Load()))
}

// Step sets the time of day so much ahead of the machine's, or behind it; whole seconds.
func (c *Clock) Step(by time.Duration) { c.by.Store(int64(by)) }

// secondBit is the lowest bit of the seconds in the first word of a time.Time that has a
// monotonic reading; its nanoseconds are below.
const secondBit = 30

// Stepped gives a time read from a clock whose time of day is set by whole seconds: its
// monotonic reading is that of t. Package time has no way to make one.
func Stepped(t time.Time, by time.Duration) time.Time {
	out := t
	*(*uint64)(unsafe.Pointer(&out)) += uint64(by/time.Second) << secondBit
	if wall := out.Round(0).Sub(t.Round(0)); out.Sub(t) != 0 || wall != by {
		panic(fmt.Sprintf("clocktest: %v stepped by %v is %v: no monotonic reading, or time.Time is laid out in another way", t, by, out))
	}
	return out
}
