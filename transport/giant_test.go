package transport_test

import (
	"testing"
	"time"

	"weir/transport/transporttest"
)

// TestGiantFrames sends frames of three windows, each of which goes alone, and cuts
// connections right before one goes, right behind it, and right behind what grants the
// next one. course_test.go has every position; here NATS and its client take part.
func TestGiantFrames(t *testing.T) {
	t.Parallel()
	b := openBroken(t, startServer(t))
	both := []*transporttest.Proxy{b.fromProxy, b.toProxy}
	faults := [][]*transporttest.Proxy{both[:1], both[1:], both}
	moments := []string{"before", "behind", "taken"}
	l := transporttest.Open(t, b.from, b.to, false)
	rounds, n := 1, 0
	if long() {
		rounds = 30
	}
	for range rounds {
		for _, cut := range faults {
			for _, late := range []bool{false, true} { // a moment later: something is under way
				for _, moment := range moments {
					giant(t, l, n, func(now string) {
						if now != moment {
							return
						}
						for _, p := range cut {
							p.Set(transporttest.Weather{Hole: late})
						}
						if late {
							<-time.After(5 * time.Millisecond)
						}
						for _, p := range cut {
							p.Cut()
							p.Heal()
						}
					})
					n++
				}
			}
		}
	}
	if b.from.Stats().Resent == 0 {
		t.Error("nothing was lost: the test tests nothing")
	}
	t.Logf("from %+v to %+v", b.from.Stats(), b.to.Stats())
}

// giant sends the n-th frame, with a small one behind it, and does harm on its way.
func giant(t *testing.T, l *transporttest.Line, n int, harm func(moment string)) {
	t.Helper()
	const size = 203_000
	harm("before")
	l.Send(t, transporttest.Records(2*n, size, false))
	harm("behind")
	transporttest.Check(t, l.Next(t), 2*n, size, false)
	harm("taken")
	l.Send(t, transporttest.Records(2*n+1, 10, false))
	transporttest.Check(t, l.Next(t), 2*n+1, 10, false)
}
