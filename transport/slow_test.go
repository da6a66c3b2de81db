package transport_test

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weir"
	"weir/transport"
	"weir/transport/transporttest"
)

// TestR07SlowConsumer: a NATS server that keeps little for a slow client cuts the
// receiver's connection off, at least once. That costs time and no frame.
func TestR07SlowConsumer(t *testing.T) {
	t.Parallel()
	ns := natsServer(t, server.Options{MaxPending: 256 << 10, MaxPayload: 64 << 10})
	p := transporttest.NewProxy(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(ns.Addr().(*net.TCPAddr).Port)))
	const channels, frames, size = 64, 17, 16 << 10
	limits := transport.Limits{MinCredit: 256 << 10}
	// Up to 256 KiB of each channel are under way at once, more than sockets hold.
	from := run(t, transport.Options{URL: ns.ClientURL(), Name: "test", Budget: 1 << 30, Limits: limits})
	to := run(t, transport.Options{URL: p.URL(), Name: "test", Budget: 1 << 30, Limits: limits})
	job, attempt, wakeC := weir.NewJobID(), weir.NewAttemptID(1), make(chan struct{}, 1)
	chs := transporttest.FanIn(channels, weir.TaskID{Chain: 1})
	ins := transporttest.OpenIns(t, to, job, attempt, chs, false, wakeC)
	p.Set(transporttest.Weather{Hole: true}, transporttest.Down) // acks leave, frames do not come
	errC := make(chan error, channels)
	for _, ch := range chs {
		go func() { errC <- sendFrames(t.Context(), from, job, attempt, ch, frames, size) }()
	}
	awaitCutOff(t, ns)
	p.Heal()
	if long() {
		p.Set(transporttest.Weather{Rate: 32 << 20}, transporttest.Down)
	}
	transporttest.ReadAll(t, ins, wakeC, frames, size, false)
	for range channels {
		if err := <-errC; err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d times cut off; %+v", ns.NumSlowConsumers(), from.Stats())
}

// awaitCutOff waits until the server has cut a client off for being slow.
func awaitCutOff(t *testing.T, ns *server.Server) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(transporttest.Patience)
	for ns.NumSlowConsumers() == 0 {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the server cut nobody off")
		}
	}
}

func sendFrames(ctx context.Context, n *transport.Network, job weir.JobID, attempt weir.AttemptID, ch weir.ChannelID, frames, size int) error {
	out, err := n.Outbound(job, attempt, ch, false, nil)
	if err != nil {
		return err
	}
	for i := range frames {
		if err := out.Send(ctx, transporttest.Records(i, size, false)); err != nil {
			return err
		}
	}
	return out.Close()
}

// TestR07ClientDrops: the client library itself drops what is beyond its pending limits,
// on both sides, frames and acks.
func TestR07ClientDrops(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	from, to := network(t, url), network(t, url)
	d, err := transporttest.OpenDuplex(from, to, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []*transport.Network{from, to} {
		if err := n.LimitPending(d.Job, d.Attempt, 2, 512<<10); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*transporttest.Patience)
	defer cancel()
	if err := d.Run(ctx, transporttest.NewTraffic(1, 1000, 32<<10, false), nil); err != nil {
		t.Fatalf("%v\nfrom %+v\nto   %+v", err, from.Stats(), to.Stats())
	}
	dropped := 0
	for _, n := range []*transport.Network{from, to} {
		one, err := n.DroppedPending(d.Job, d.Attempt)
		if err != nil {
			t.Fatal(err)
		}
		dropped += one
	}
	if dropped == 0 {
		t.Error("nothing was dropped: the test tests nothing")
	}
	t.Logf("%d messages dropped; from %+v to %+v", dropped, from.Stats(), to.Stats())
}

// TestVanishedWhileSending: the NATS server vanishes while so much is on its way to it that
// the sockets are full: that is noticed although nothing can be written, not even a ping,
// and costs no frame.
func TestVanishedWhileSending(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := transporttest.NewProxy(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())))
	const channels, frames, size = 32, 8, 64 << 10 // more than sockets hold
	opts := transport.Options{URL: p.URL(), Name: "test", Budget: 1 << 30, Limits: transport.Limits{MinCredit: 8 << 20}}
	from := run(t, opts)
	opts.URL = s.URL()
	to := run(t, opts)
	job, attempt, wakeC := weir.NewJobID(), weir.NewAttemptID(1), make(chan struct{}, 1)
	chs := transporttest.FanIn(channels, weir.TaskID{Chain: 1})
	ins := transporttest.OpenIns(t, to, job, attempt, chs, false, wakeC)
	sentC, vanishC, errC := make(chan struct{}), make(chan struct{}), make(chan error, channels)
	for _, ch := range chs {
		go func() { errC <- sendAround(t.Context(), from, job, attempt, ch, frames, size, sentC, vanishC) }()
	}
	for range channels {
		select {
		case <-sentC:
		case err := <-errC:
			t.Fatal(err)
		}
	}
	p.Set(transporttest.Weather{Hole: true})
	close(vanishC)
	gone := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for from.Connected() {
		<-tick.C
		if time.Since(gone) > transporttest.Patience {
			t.Fatal("nobody noticed that the server is gone")
		}
	}
	t.Logf("noticed after %v", time.Since(gone))
	p.Heal()
	transporttest.ReadAll(t, ins, wakeC, frames, size, false)
	for range channels {
		if err := <-errC; err != nil {
			t.Error(err)
		}
	}
}

// sendAround sends a frame, says so, and sends the others once told.
func sendAround(ctx context.Context, n *transport.Network, job weir.JobID, attempt weir.AttemptID, ch weir.ChannelID, frames, size int, sentC chan<- struct{}, goC <-chan struct{}) error {
	out, err := n.Outbound(job, attempt, ch, false, nil)
	if err != nil {
		return err
	}
	if err := out.Send(ctx, transporttest.Records(0, size, false)); err != nil {
		return err
	}
	sentC <- struct{}{}
	<-goC
	for i := 1; i < frames; i++ {
		if err := out.Send(ctx, transporttest.Records(i, size, false)); err != nil {
			return err
		}
	}
	return out.Close()
}
