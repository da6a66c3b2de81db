package exec_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"weir/checkpoint"
	"weir/checkpoint/clocktest"
)

// R10: the time of day is set while a task waits. What it says of its time is what was so.
func TestClockStepR10(t *testing.T) {
	t.Parallel()
	outside := time.Now()
	synctest.Test(t, func(t *testing.T) {
		clock := clocktest.InBubble(outside)
		l := newLabAt(t, clock.Now, "", 1)
		defer l.stop()
		check := func(what string, idle, back float64) {
			t.Helper()
			s := l.task.Stats()
			if math.Abs(s.Idle-idle) > 0.01 || math.Abs(s.BackPressured-back) > 0.01 || s.Busy > 0.01 {
				t.Errorf("%s: idle %.2f, back-pressured %.2f, busy %.2f", what, s.Idle, s.BackPressured, s.Busy)
			}
		}
		steps := []time.Duration{-time.Hour, time.Hour, 0}
		for _, by := range steps {
			<-time.After(5 * time.Second)
			clock.Step(by)
			<-time.After(5 * time.Second)
			check("it waits for rows", 1, 0)
		}
		l.send(1, -1)
		l.send(0, 5, -1) // the row fills the channel behind, the barrier waits
		for i, by := range steps {
			<-time.After(5 * time.Second)
			clock.Step(by)
			<-time.After(5 * time.Second)
			waited := float64(10 * (i + 1))
			check("it waits for room", 30/(30+waited), waited/(30+waited))
			p := l.task.Progress(1)
			if p.Stage != checkpoint.StageCutting || p.SinceMS != 1000*waited {
				t.Errorf("it is %s for %v ms, want cutting for %v s", p.Stage, p.SinceMS, waited)
			}
		}
	})
}
