package transport_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"weir/transport"
	"weir/transport/transporttest"
)

// A weather is a bad network: what holds all the time, and what strikes now and then.
type weather struct {
	name string
	all  transporttest.Weather
	// strike does harm to one or both of the proxies and returns how it ends, and when.
	strike  func(r *rand.Rand, ps []*transporttest.Proxy) (time.Duration, func())
	strikes int // while a stream runs
	frames  int // of that stream, both ways
	largest int
	rare    bool // another one is much like it: only with WEIR_LONG
}

// long reports whether the tests may take their time.
func long() bool { return os.Getenv("WEIR_LONG") != "" }

// seeds are those that a test runs with: WEIR_SEED, or from 1 on.
func seeds(t *testing.T, many int) []uint64 {
	if one, err := strconv.ParseUint(os.Getenv("WEIR_SEED"), 10, 64); err == nil {
		return []uint64{one}
	}
	if !long() {
		many = 1
	}
	var all []uint64
	for i := range many {
		all = append(all, uint64(i+1))
	}
	t.Logf("seeds 1 to %d; WEIR_SEED=n for one", many)
	return all
}

// holes stops ways of some proxies for a while; what was under way arrives late, or, if
// it ends with a cut, never.
func holes(least, most time.Duration, cut bool, ways func(r *rand.Rand, proxy int) []transporttest.Way) func(*rand.Rand, []*transporttest.Proxy) (time.Duration, func()) {
	return func(r *rand.Rand, ps []*transporttest.Proxy) (time.Duration, func()) {
		for i, p := range ps {
			if w := ways(r, i); len(w) > 0 {
				p.Set(transporttest.Weather{Hole: true}, w...)
			}
		}
		return least + time.Duration(r.Int64N(int64(most-least))), func() {
			for _, p := range ps {
				if cut {
					p.Cut()
				}
				p.Heal()
			}
		}
	}
}

// cut resets the connections of one side or of both.
func cut(r *rand.Rand, ps []*transporttest.Proxy) (time.Duration, func()) {
	which := r.IntN(3)
	if which != 1 {
		ps[0].Cut()
	}
	if which != 0 {
		ps[1].Cut()
	}
	return 0, func() {}
}

// refuse cuts one side off, or both, for a moment.
func refuse(r *rand.Rand, ps []*transporttest.Proxy) (time.Duration, func()) {
	p := ps[r.IntN(2)]
	p.Refuse()
	return time.Duration(20+r.IntN(200)) * time.Millisecond, p.Accept
}

func weathers() []weather {
	second := time.Second
	if !long() {
		second /= 5
	}
	both := func(r *rand.Rand, _ int) []transporttest.Way {
		return []transporttest.Way{transporttest.Up, transporttest.Down}
	}
	one := func(r *rand.Rand, proxy int) []transporttest.Way {
		if proxy == r.IntN(2) {
			return nil
		}
		return both(r, proxy)
	}
	// The way there: its data leave by the first proxy and come by the second one.
	data := func(_ *rand.Rand, proxy int) []transporttest.Way {
		return []transporttest.Way{[]transporttest.Way{transporttest.Up, transporttest.Down}[proxy]}
	}
	acks := func(_ *rand.Rand, proxy int) []transporttest.Way {
		return []transporttest.Way{[]transporttest.Way{transporttest.Down, transporttest.Up}[proxy]}
	}
	all := []weather{
		{name: "cuts", strike: cut, strikes: 20, frames: 10_000, largest: 256 << 10},
		{name: "away", strike: refuse, strikes: 5, frames: 3000, largest: 256 << 10},
		{name: "black hole", strike: holes(second, 2*second, false, one), strikes: 1, frames: 3000, largest: 256 << 10, rare: true},
		{name: "black hole, then cut", strike: holes(second/5, second, true, both), strikes: 2, frames: 3000, largest: 256 << 10},
		{name: "data late", strike: holes(second/5, second, false, data), strikes: 2, frames: 3000, largest: 64 << 10, rare: true},
		{name: "data lost", strike: holes(second/10, second/2, true, data), strikes: 3, frames: 3000, largest: 64 << 10},
		{name: "acks late", strike: holes(second/5, second, false, acks), strikes: 2, frames: 3000, largest: 64 << 10},
		{name: "acks lost", strike: holes(second/10, second/2, true, acks), strikes: 3, frames: 3000, largest: 64 << 10, rare: true},
		{name: "delay", all: transporttest.Weather{Delay: 50 * time.Millisecond, Jitter: 50 * time.Millisecond}, frames: 1000, largest: 8 << 10},
		{name: "throttle", all: transporttest.Weather{Rate: 1 << 20}, frames: 1000, largest: 8 << 10},
	}
	if long() {
		return all
	}
	all = slices.DeleteFunc(all, func(w weather) bool { return w.rare })
	for i := range all { // a third of everything
		all[i].strikes, all[i].frames = (all[i].strikes+2)/3, all[i].frames/3
	}
	return all
}

// open gives two networks, each behind a proxy of its own, in weather w.
func (w weather) open(t *testing.T) broken {
	b := openBroken(t, startServer(t))
	b.fromProxy.Set(w.all)
	b.toProxy.Set(w.all)
	return b
}

// A storm strikes when it is told to, in its own time, until it is stopped.
type storm struct {
	strikeC chan struct{} // capacity 1
	stopC   chan struct{}
	doneC   chan struct{}
	times   int // strikes so far
}

func (w weather) storm(seed uint64, ps ...*transporttest.Proxy) *storm {
	s := &storm{strikeC: make(chan struct{}, 1), stopC: make(chan struct{}), doneC: make(chan struct{})}
	r := rand.New(rand.NewPCG(seed, 99))
	go func() {
		defer close(s.doneC)
		for {
			select {
			case <-s.strikeC:
			case <-s.stopC:
				return
			}
			last, heal := w.strike(r, ps)
			s.times++
			select {
			case <-time.After(last):
			case <-s.stopC:
			}
			heal()
		}
	}()
	return s
}

func (s *storm) strike() {
	select {
	case s.strikeC <- struct{}{}:
	default: // one is raging
	}
}

func (s *storm) stop() {
	close(s.stopC)
	<-s.doneC
}

// TestWeather sends frames of all kinds and sizes both ways at once through every kind
// of bad network. What arrives is what was sent, in order, each once.
func TestWeather(t *testing.T) {
	t.Parallel()
	for _, w := range weathers() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range seeds(t, 10) {
				w.stream(t, seed)
			}
		})
	}
}

func (w weather) stream(t *testing.T, seed uint64) {
	t.Helper()
	b := w.open(t)
	d, err := transporttest.OpenDuplex(b.from, b.to, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*transporttest.Patience)
	defer cancel()
	var each func(int)
	if w.strike != nil {
		s := w.storm(seed, b.fromProxy, b.toProxy)
		defer s.stop()
		r := rand.New(rand.NewPCG(seed, 98))
		moments := map[int]bool{} // one in each of as many parts of the first half
		for part, size := 0, w.frames/2/w.strikes; part < w.strikes; part++ {
			moments[part*size+r.IntN(size)] = true
		}
		each = func(n int) {
			if moments[n] {
				s.strike()
			}
		}
	}
	if err := d.Run(ctx, transporttest.NewTraffic(seed, w.frames, w.largest, false), each); err != nil {
		t.Fatalf("seed %d: %v\nfrom %+v\n%+v\nto   %+v\n%+v", seed, err, b.from.Stats(), b.from.Channels(), b.to.Stats(), b.to.Channels())
	}
	for _, n := range []*transport.Network{b.from, b.to} { // weather loses; it damages nothing
		if s := n.Stats(); s.Damaged+s.Foreign+s.Beyond > 0 {
			t.Errorf("seed %d: %+v", seed, s)
		}
	}
	t.Logf("seed %d: from %+v to %+v", seed, b.from.Stats(), b.to.Stats())
	b.from.Release(d.Job, d.Attempt)
	b.to.Release(d.Job, d.Attempt)
}

// TestConformanceWeather runs the suite in weather that strikes at once and then again,
// ten times a second at most and ten times in all: a machine that takes longer than
// that to connect would get nowhere otherwise. Without WEIR_LONG it is cuts alone.
func TestConformanceWeather(t *testing.T) {
	t.Parallel()
	all := weathers()
	if !long() {
		all = all[:1]
	}
	for _, w := range all {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			transporttest.Run(t, transporttest.Setup{Open: func(t *testing.T) (from, to *transport.Network) {
				b := w.open(t)
				if w.strike != nil {
					w.rage(t, b)
				}
				return b.from, b.to
			}})
		})
	}
}

func (w weather) rage(t *testing.T, b broken) {
	s := w.storm(1, b.fromProxy, b.toProxy)
	stopC, doneC := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(doneC)
		s.strike()
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for range 9 {
			select {
			case <-tick.C:
				s.strike()
			case <-stopC:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stopC)
		<-doneC
		s.stop()
	})
}
