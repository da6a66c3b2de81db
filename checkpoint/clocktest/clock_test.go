package clocktest_test

import (
	"testing"
	"time"

	"weir/checkpoint/clocktest"
)

// TestClockStep: the time of day jumps, what was measured across the step does not (R10).
func TestClockStep(t *testing.T) {
	t.Parallel()
	var c clocktest.Clock
	for _, by := range []time.Duration{time.Hour, -time.Hour, 0} {
		before := c.Now()
		c.Step(by)
		after := c.Now()
		if took := after.Sub(before); took < 0 || took > time.Minute {
			t.Errorf("stepped to %v: %v went by", by, took)
		}
		if off := after.Round(0).Sub(time.Now().Round(0)) - by; off.Abs() > time.Minute {
			t.Errorf("stepped to %v: the time of day is %v", by, after)
		}
	}
}
