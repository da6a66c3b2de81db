package job

import (
	"slices"
	"testing"
	"time"

	"weir"
)

// P09: the first checkpoints of two hundred jobs that begin at once are spread out, always the
// same way, never later than after an interval and never sooner than half of it, or 30 s.
func TestP09FirstCheckpoints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ interval, most time.Duration }{
		{10 * time.Second, 5 * time.Second}, {time.Hour, spread}, {time.Millisecond, time.Millisecond / 2},
	} {
		var all []time.Duration
		for range 200 {
			id := weir.NewJobID()
			at := first(id, c.interval)
			if at > c.interval || at < c.interval-c.most || at != first(id, c.interval) {
				t.Fatalf("%v of an interval of %v", at, c.interval)
			}
			all = append(all, at)
		}
		slices.Sort(all)
		for i := range 5 {
			if width := all[40*i+39] - all[40*i]; width < c.most/20 {
				t.Errorf("interval %v: a fifth of the jobs begin theirs within %v", c.interval, width)
			}
		}
	}
	if at := first(weir.NewJobID(), 0); at != 0 {
		t.Errorf("%v without an interval", at)
	}
}
