package worker

import "time"

// The bounds of a worker that is cut off from NATS (ARCHITECTURE §7).
const (
	watchEvery = 250 * time.Millisecond
	pauseAfter = 5 * time.Second  // cut off, or asleep, for longer: sources read nothing more
	endAfter   = 60 * time.Second // cut off for longer: attempts end
)

// A watchDo is what a watch wants done.
type watchDo uint8

const (
	doPause watchDo = iota // sources read nothing more
	doEnd                  // all attempts end
	doAsk                  // ask the servers which attempts are over; answered follows
	doGoOn                 // sources read again
)

func (d watchDo) String() string { return [...]string{"pause", "end", "ask", "go on"}[d] }

// says tells an operator what is done, and why.
func (d watchDo) says() string {
	switch d {
	case doPause:
		return "cut off from nats, or asleep, for too long: sources pause, since their work may be somebody else's by now"
	case doEnd:
		return "cut off from nats for so long that attempts end; their jobs begin again once a server is heard"
	case doAsk:
		return "nats is there: servers are asked which attempts are over"
	}
	return "sources go on"
}

// A watch is a worker's eye on itself: whether it was cut off, or asleep, for so long that
// somebody else may do its work by now. It is pure. All times are of one monotonic clock.
type watch struct {
	last   time.Time     // the tick before; zero: none
	cut    time.Duration // how long it has been cut off, awake
	paused bool
	ended  bool // the attempts of this absence
	asking bool // the answer is awaited
	again  bool // it was cut off or asleep again since the question: the answer may be old
}

// tick looks at the connection. A long gap between two ticks is our own sleep: it may have
// cost us our attempts as well, but tells nothing of the servers' time, so it ends none.
func (w *watch) tick(now time.Time, connected bool) []watchDo {
	var out []watchDo
	gap := time.Duration(0)
	if !w.last.IsZero() {
		gap = now.Sub(w.last)
	}
	w.last = now
	slept := gap > pauseAfter
	switch {
	case connected:
		w.cut, w.ended = 0, false
	case !slept:
		w.cut += gap
	}
	w.again = w.again || w.asking && (slept || !connected)
	if !w.paused && (slept || w.cut > pauseAfter) {
		w.paused = true
		out = append(out, doPause)
	}
	if !w.ended && w.cut > endAfter {
		w.ended = true
		out = append(out, doEnd)
	}
	if connected && w.paused && !w.asking {
		w.asking, w.again = true, false
		out = append(out, doAsk)
	}
	return out
}

// answered takes the end of a question in: what the servers called over has been ended, or
// nobody answered.
func (w *watch) answered(ok bool) []watchDo {
	w.asking = false
	if !ok || w.again || !w.paused {
		return nil // the next tick asks again
	}
	w.paused = false
	return []watchDo{doGoOn}
}
