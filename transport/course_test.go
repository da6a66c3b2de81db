package transport

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// A course sends frames that are heavier than the window, with lighter ones between them,
// through a pair, and does harm at given messages, whatever those are: a probe, a frame,
// an ack or a grant. All else follows from its fields.
type course struct {
	*pair
	faults   map[int]string // by the number of the message that they strike
	lazy     bool           // the task takes frames when nothing else happens
	ackFirst bool           // acks come before data
	messages int            // so far
	lates    []lateness     // of the messages that are kept
}

// A lateness says before which message one that was kept arrives, and where.
type lateness struct {
	at   int
	side string
}

// courseFaults are what happens to a message, and to all under way.
var courseFaults = []string{"drop", "repeat", "swap", "late", "cut sender", "cut receiver", "cut both"}

// The last one but one is as heavy as all of a grown window.
var courseWeights = []int{100, 5000, 100, 5000, 5000, 399, 900, 100}

// courseMost bounds the time that any two faults cost.
const courseMost = time.Second

func newCourse(schedule int, faults map[int]string) *course {
	lim := Limits{MinCredit: 400, MaxCredit: 900, Message: 300, Collect: 100}
	return &course{pair: newPair(lim), faults: faults, lazy: schedule&1 != 0, ackFirst: schedule&2 != 0}
}

// run runs until all has arrived and is acknowledged, and says how many messages that took.
func (c *course) run() (int, error) {
	c.connection("both", true)
	for range 3000 {
		c.out.Reset()
		if next := int(c.sender.NextSeq()); next <= len(courseWeights) && c.sender.waiting == 0 {
			c.send(courseWeights[next-1])
		}
		if c.flush {
			c.flush = false
			c.toSender(Event{Kind: EvFlush})
		}
		switch {
		case len(c.queue) > 0 && !c.lazy:
			c.consume()
		case c.arrive():
		case len(c.queue) > 0:
			c.consume()
		case len(c.seen) == len(courseWeights) && c.sender.Drained():
			return c.messages, c.check()
		case !c.tick(c.start.Add(courseMost)):
			return 0, fmt.Errorf("after %v nothing has happened or will, in time\n%s", c.now.Sub(c.start), c.state())
		}
		if c.broken() != 0 {
			return 0, fmt.Errorf("broken: %v", c.broken())
		}
	}
	return 0, fmt.Errorf("the ends talk without end\n%s", c.state())
}

func (c *course) check() error {
	for i, f := range c.seen {
		if f.seq != uint64(i+1) {
			return fmt.Errorf("delivered %v", c.seen)
		}
	}
	return nil
}

// arrive lets the next message arrive, or what becomes of it.
func (c *course) arrive() bool {
	side := "data"
	if len(c.data) == 0 || c.ackFirst && len(c.acks) > 0 {
		side = "ack"
	}
	if side == "ack" && len(c.acks) == 0 {
		return false
	}
	n := c.messages
	c.messages++
	for len(c.lates) > 0 && n >= c.lates[0].at {
		c.late(c.lates[0].side)
		c.lates = c.lates[1:]
	}
	switch fault := c.faults[n]; fault {
	case "drop":
		c.tamper("drop", side)
		return true
	case "late":
		c.tamper("keep", side)
		c.lates = append(c.lates, lateness{n + 4, side})
		return true
	case "cut sender", "cut receiver", "cut both":
		c.cut(fault[len("cut "):])
		return true
	case "repeat", "swap":
		c.tamper(fault, side)
	}
	c.deliver(side)
	return true
}

// cut takes a connection away for a moment, with all that is under way then.
func (c *course) cut(who string) {
	c.connection(who, false)
	c.data, c.acks = nil, nil
	c.wait(60 * time.Millisecond)
	c.data, c.acks = nil, nil
	c.connection(who, true)
}

// TestGiantFramesEveryFault strikes every message of a course, and every two of them, with
// every kind of fault: nothing ever waits for what will not come.
func TestGiantFramesEveryFault(t *testing.T) {
	t.Parallel()
	apart := 1 // at most so many messages lie between two faults
	if os.Getenv("WEIR_LONG") != "" {
		apart = 1000
	}
	for schedule := range 4 {
		most, err := newCourse(schedule, nil).run()
		if err != nil {
			t.Fatalf("schedule %d: %v", schedule, err)
		}
		runs := 0
		for first := range most + 4 {
			for _, one := range courseFaults {
				for second := first; second <= min(most+4, first+apart); second++ {
					for _, other := range courseFaults {
						faults := map[int]string{first: one, second: other}
						if _, err := newCourse(schedule, faults).run(); err != nil {
							t.Fatalf("schedule %d, faults %v: %v", schedule, faults, err)
						}
						runs++
					}
				}
			}
		}
		t.Logf("schedule %d: %d messages, %d runs", schedule, most, runs)
	}
}

// TestGiantFramesLostThrice loses every three messages of a course.
func TestGiantFramesLostThrice(t *testing.T) {
	t.Parallel()
	apart := 2
	if os.Getenv("WEIR_LONG") != "" {
		apart = 1000
	}
	for schedule := range 4 {
		for a := range 60 {
			for b := a + 1; b <= min(60, a+apart); b++ {
				for c := b + 1; c <= min(60, b+apart); c++ {
					faults := map[int]string{a: "drop", b: "drop", c: "drop"}
					if _, err := newCourse(schedule, faults).run(); err != nil {
						t.Fatalf("schedule %d, lost %d, %d, %d: %v", schedule, a, b, c, err)
					}
				}
			}
		}
	}
}
