package job

import (
	"testing"
	"time"

	"weir"
	"weir/exec/deploy"
)

// TestRates: those of an attempt are taken over its own time, from its first heartbeat on
// and of the last seconds, not over that before it.
func TestRates(t *testing.T) {
	t.Parallel()
	r, now, attempt := newRegistry(), time.Now(), weir.AttemptID{Number: 1}
	for second, c := range []struct {
		rows int64 // -1: the attempt has not begun
		want float64
	}{{-1, 0}, {-1, 0}, {500, 0}, {1500, 1000}, {2500, 1000}, {2500, 2000. / 3}, {2500, 500}, {2500, 400}, {2500, 200}, {2500, 0}} {
		beat := deploy.Heartbeat{Worker: "w1", Incarnation: "a", Slots: 1}
		if c.rows >= 0 {
			beat.Attempts = []deploy.Running{{Job: "j", Attempt: attempt, Tasks: []deploy.TaskStats{{RowsIn: c.rows}}}}
		}
		r.heard(now.Add(time.Duration(second)*time.Second), beat)
		rates := Rates{Chains: make([]ChainRates, 1)}
		r.workers["w1"].addRates(now.Add(time.Duration(second)*time.Second), "j", attempt, &rates)
		if got := rates.Chains[0].RowsInPerSecond; got != c.want || rates.Known() != (c.rows >= 0) {
			t.Errorf("after %d s: %v rows/s, known %v; want %v", second, got, rates.Known(), c.want)
		}
	}
}
