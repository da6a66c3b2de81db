package transport_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir"
	"weir/transport"
	"weir/transport/transporttest"
)

// named opens a network under a name and runs it until the test ends.
func named(t *testing.T, c *transporttest.Cluster, name string, at int) *transport.Network {
	t.Helper()
	n := run(t, transport.Options{URL: c.URLs(), Name: name})
	c.Move(t, name+" data", at)
	return n
}

// TestClusterServerDies: sender and receiver are at different NATS servers of a cluster
// and one of these, or the third, or each in turn, dies in mid-stream and comes back.
func TestClusterServerDies(t *testing.T) {
	t.Parallel()
	for name, doomed := range map[string][]int{
		"the sender's": {0}, "the receiver's": {1}, "one that nobody uses": {2}, "one after another": {0, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := transporttest.StartCluster(t, 3)
			a, b := named(t, c, "a", 0), named(t, c, "b", 1)
			d, err := transporttest.OpenDuplex(a, b, false)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*transporttest.Patience)
			defer cancel()
			// Whoever is killed next is so after the one before has come back, and while
			// frames flow.
			const frames = 6000
			part := frames / (len(doomed) + 1)
			killC, doneC := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(doneC)
				for _, i := range doomed {
					select {
					case <-killC:
					case <-ctx.Done():
						return
					}
					c.Stop(i)
					c.Start(t, i)
				}
			}()
			err = d.Run(ctx, transporttest.NewTraffic(1, frames, 100<<10, false), func(n int) {
				if n%part == part-1 && n/part < len(doomed) {
					select {
					case killC <- struct{}{}:
					case <-ctx.Done():
					}
				}
			})
			if err != nil {
				t.Errorf("%v\na %+v\nb %+v", err, a.Stats(), b.Stats())
			}
			<-doneC
		})
	}
}

// A judge asks a worker again and again, as a server does, and keeps for how long it was
// absent at most: nobody answered, while its own connection was stable.
type judge struct {
	control *transport.Control
	longest atomic.Int64 // nanoseconds
	answers atomic.Int64
	absent  time.Time
}

func (j *judge) watch(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			j.ask(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (j *judge) ask(ctx context.Context) {
	_, err := j.control.Ping(ctx, testWorker)
	stable, now := j.control.StableSince(), time.Now()
	switch {
	case err == nil:
		j.answers.Add(1)
		j.absent = time.Time{}
	case !errors.Is(err, weir.ErrNotFound):
		j.absent = time.Time{}
	case j.absent.IsZero():
		j.absent = now
	case !stable.IsZero():
		since := j.absent
		if stable.After(since) {
			since = stable
		}
		j.longest.Store(max(j.longest.Load(), int64(now.Sub(since))))
	}
}

// TestClusterWorkerMoves: a worker whose NATS server died is at another one before a
// server, whose own connection saw nothing of it, takes it for dead.
func TestClusterWorkerMoves(t *testing.T) {
	t.Parallel()
	c := transporttest.StartCluster(t, 3)
	open := func(name string) *transport.Control {
		ctl, err := transport.OpenControl(t.Context(), transport.Options{URL: c.URLs(), Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ctl.Close)
		return ctl
	}
	serve(t, open("worker"), "life", echo)
	j := &judge{control: open("judge")}
	c.Move(t, "judge control", 2)
	pinged(t, j.control, "life")
	background(t, func(ctx context.Context) error { j.watch(ctx); return nil })
	var took []time.Duration
	for round := range 6 {
		at := round % 2
		c.Move(t, "worker control", at)
		pinged(t, j.control, "life")
		j.longest.Store(0)
		c.Stop(at)
		transporttest.Until(t, "the worker is elsewhere", func() bool {
			now := c.Holder(t, "worker control")
			return now >= 0 && now != at
		})
		before := j.answers.Load()
		transporttest.Until(t, "the worker answers", func() bool { return j.answers.Load() > before+5 })
		took = append(took, time.Duration(j.longest.Load()))
		c.Start(t, at)
	}
	slices.Sort(took)
	t.Logf("absent for %v", took)
	if bound := j.control.AbsentFor(); took[len(took)/2] >= bound { // a machine that is busy elsewhere may delay one
		t.Errorf("absent for %v: it counts as dead from %v on", took, bound)
	}
}

// TestClusterServerVanishes: the host of a worker's NATS server is gone without a word, so
// no connection breaks; the worker is elsewhere before its silence (5 s) is its death.
func TestClusterServerVanishes(t *testing.T) {
	t.Parallel()
	c := transporttest.StartCluster(t, 2)
	p := transporttest.NewProxy(t, strings.TrimPrefix(c.URL(0), "nats://"))
	worker, err := transport.OpenControl(t.Context(), transport.Options{URL: p.URL(), Name: "worker"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(worker.Close)
	serve(t, worker, "life", echo)
	j := &judge{control: control(t, c.URL(1))}
	pinged(t, j.control, "life")
	p.Set(transporttest.Weather{Hole: true})
	began := time.Now()
	transporttest.Until(t, "the worker is elsewhere", func() bool {
		j.ask(t.Context())
		return j.answers.Load() > 0
	})
	took := time.Since(began)
	t.Logf("elsewhere after %v", took)
	if took > 9*time.Second { // 3 s and a ping, where this machine is not busy
		t.Errorf("elsewhere after %v", took)
	}
}

// TestAbsentFor: one NATS server is heard of sooner than a cluster.
func TestAbsentFor(t *testing.T) {
	t.Parallel()
	one, several := startServer(t).URL(), transporttest.StartCluster(t, 2)
	for url, want := range map[string]time.Duration{
		one:             110 * time.Millisecond,
		several.URL(0):  250 * time.Millisecond,
		several.URLs():  250 * time.Millisecond,
		one + "," + one: 250 * time.Millisecond,
	} {
		if got := control(t, url).AbsentFor(); got != want {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
}
