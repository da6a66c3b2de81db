package transport

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAlarms compares the heap with a list: what is due rings, once and in order; Run
// sleeps until the next one, and whoever sets one that is due sooner says so.
func TestAlarms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var as alarms
		ends := make([]alarm, 6)
		due := map[*alarm]int64{} // those in the heap
		asleep := int64(0)        // until then; 0: Run is awake
		at := rapid.Int64Range(1, 50)
		for range 40 {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				a := &ends[rapid.IntRange(0, len(ends)-1).Draw(t, "end")]
				a.at = at.Draw(t, "at")
				due[a] = a.at
				if late := as.set(a); late != (a.at < asleep) {
					t.Fatalf("set to %d: %v, asleep until %d", a.at, late, asleep)
				}
			case 1:
				now := at.Draw(t, "now")
				asleep = 0
				want := 0
				for _, d := range due {
					if d <= now {
						want++
					}
				}
				rang := as.ring(now, nil)
				for _, a := range rang {
					if d, ok := due[a]; !ok || d > now {
						t.Fatalf("at %d rang what was due at %d, %v", now, d, ok)
					}
				}
				inOrder := slices.IsSortedFunc(rang, func(a, b *alarm) int { return int(due[a] - due[b]) })
				for _, a := range rang {
					delete(due, a)
				}
				if len(rang) != want || !inOrder {
					t.Fatalf("at %d: %d of %d rang, in order: %v", now, len(rang), want, inOrder)
				}
			case 2:
				soonest := at.Draw(t, "soonest")
				want := soonest + 20
				for _, d := range due {
					want = min(want, max(d, soonest))
				}
				if asleep = as.sleep(soonest, soonest+20); asleep != want {
					t.Fatalf("sleeps until %d, want %d", asleep, want)
				}
			}
		}
	})
}
