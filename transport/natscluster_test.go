package transport_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
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
	all := map[string][]int{"one after another": {0, 1, 2}}
	if long() {
		maps.Copy(all, map[string][]int{"the sender's": {0}, "the receiver's": {1}, "one that nobody uses": {2}})
	}
	for name, doomed := range all {
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
			frames := 3000
			if long() {
				frames = 6000
			}
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

// A judge asks a worker again and again, as a server does: a ping that was lost holds up
// no other one. It keeps for how long the worker was absent at most: nobody answered,
// while the judge's own connection was stable.
type judge struct {
	control *transport.Control

	mu struct {
		sync.Mutex
		absent  time.Time // since when nobody answers; zero: somebody does
		longest time.Duration
		late    time.Duration // by how much the judge itself came too late, at most
		answers int
		nobody  int
	}
}

// judgeEvery is the time between two questions.
const judgeEvery = 5 * time.Millisecond

func (j *judge) watch(ctx context.Context) {
	tick := time.NewTicker(judgeEvery)
	defer tick.Stop()
	var pings sync.WaitGroup
	defer pings.Wait()
	for last := time.Now(); ; {
		select {
		case <-tick.C:
			j.mu.Lock()
			j.mu.late = max(j.mu.late, time.Since(last)-judgeEvery)
			j.mu.Unlock()
			last = time.Now()
			pings.Go(func() { j.ask(ctx) })
		case <-ctx.Done():
			return
		}
	}
}

func (j *judge) ask(ctx context.Context) {
	asked := time.Now()
	_, err := j.control.Ping(ctx, testWorker)
	stable, now := j.control.StableSince(), time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil:
		j.mu.answers++
		if asked.After(j.mu.absent) { // else it was answered before
			j.mu.absent = time.Time{}
		}
	case !errors.Is(err, weir.ErrNotFound):
	case j.mu.absent.IsZero():
		j.mu.absent = now
		j.mu.nobody++
	case !stable.IsZero():
		j.mu.nobody++
		since := j.mu.absent
		if stable.After(since) {
			since = stable
		}
		j.mu.longest = max(j.mu.longest, now.Sub(since))
	}
}

// answers is how many pings were answered.
func (j *judge) answers() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.answers
}

// forget begins to measure anew; absence is what was measured.
func (j *judge) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.absent, j.mu.longest, j.mu.nobody, j.mu.late = time.Time{}, 0, 0, 0
}

// absence is what was measured, and whether the machine was so busy meanwhile that it says
// nothing of the worker.
func (j *judge) absence() (longest time.Duration, nobody int, busy bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.longest, j.mu.nobody, j.mu.late > 10*time.Millisecond
}

// TestClusterWorkerMoves: a worker whose NATS server died is at another one before a
// server, whose own connection saw nothing of it, takes it for dead. Far ones are 30 ms
// away, so that the worker needs four times that to be heard again. Of the moves while the
// machine had time for it more than half have to be quick. Where it never has, one has to be.
func TestClusterWorkerMoves(t *testing.T) {
	t.Parallel()
	least := 3
	if long() {
		least = 9
	}
	for name, delay := range map[string]time.Duration{"near": 0, "far": 30 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := transporttest.StartSecured(t, 3, transporttest.Secured{Unnamed: true})
			var proxies []string
			for i := range 2 {
				p := transporttest.NewProxy(t, strings.TrimPrefix(c.URL(i), "nats://"))
				p.Set(transporttest.Weather{Delay: delay})
				proxies = append(proxies, p.URL())
			}
			worker, err := transport.OpenControl(t.Context(), transport.Options{URL: strings.Join(proxies, ","), Name: "worker"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(worker.Close)
			serve(t, worker, "life", echo)
			j := &judge{control: control(t, c.URL(2))}
			pinged(t, j.control, "life")
			background(t, func(ctx context.Context) error { j.watch(ctx); return nil })
			var quiet, all []time.Duration
			bound := j.control.AbsentFor()
			for round := 0; round < 20 && (len(quiet) < least || slices.Min(all) >= bound); round++ {
				if round >= 2*least && slices.Min(all) < bound {
					break // it is busy all the time
				}
				took, busy := moves(t, c, j, round%2)
				if all = append(all, took); !busy {
					quiet = append(quiet, took)
				}
			}
			t.Logf("absent for %v; %v where the machine had time", all, quiet)
			slow := slices.DeleteFunc(slices.Clone(quiet), func(d time.Duration) bool { return d < bound })
			if slices.Min(all) >= bound || len(quiet) > 0 && 2*len(slow) >= len(quiet) {
				t.Errorf("absent for %v, %v: it counts as dead from %v on", all, quiet, bound)
			}
		})
	}
}

// moves stops the NATS server that a worker is at and says for how long a judge found
// nobody, and whether the machine was busy. The server is back then.
func moves(t *testing.T, c *transporttest.Cluster, j *judge, at int) (longest time.Duration, busy bool) {
	t.Helper()
	c.Move(t, "worker control", at)
	pinged(t, j.control, "life")
	j.forget()
	c.Stop(at)
	transporttest.Until(t, "the worker is elsewhere", func() bool { return c.Holder(t, "worker control") == 1-at })
	before := j.answers()
	transporttest.Until(t, "the worker answers", func() bool { return j.answers() > before+2 })
	longest, nobody, busy := j.absence()
	t.Logf("nobody answered %d pings over %v; busy: %v", nobody, longest, busy)
	c.Start(t, at)
	return longest, busy
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
	background(t, func(ctx context.Context) error { j.watch(ctx); return nil })
	transporttest.Until(t, "the worker is elsewhere", func() bool { return j.answers() > 0 })
	took := time.Since(began)
	t.Logf("elsewhere after %v", took)
	if took > 9*time.Second { // 3 s, where this machine is not busy
		t.Errorf("elsewhere after %v", took)
	}
}

// TestAbsentFor: one NATS server is heard of sooner than a cluster; on a busy machine, which
// takes long to make a connection, both a little later.
func TestAbsentFor(t *testing.T) {
	t.Parallel()
	one, several := startServer(t).URL(), transporttest.StartCluster(t, 2)
	for url, want := range map[string]time.Duration{
		one:             110 * time.Millisecond,
		several.URL(0):  250 * time.Millisecond,
		several.URLs():  250 * time.Millisecond,
		one + "," + one: 250 * time.Millisecond,
	} {
		if got := control(t, url).AbsentFor(); got < want || got > want+500*time.Millisecond {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
}
