package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"weir"
	"weir/transport"
	"weir/transport/transporttest"
)

// TestTinyMaxPayload: a NATS server that takes next to nothing is refused at the start.
func TestTinyMaxPayload(t *testing.T) {
	t.Parallel()
	for most, fits := range map[int]bool{4 << 10: false, 5 << 10: true} {
		ns, err := transport.StartServer(t.Context(), transport.ServerOptions{MaxPayload: most})
		if err != nil {
			t.Fatal(err)
		}
		defer ns.Stop()
		c, err := transport.OpenControl(t.Context(), transport.Options{URL: ns.URL(), Name: "t"})
		if err == nil {
			c.Close()
		}
		switch {
		case fits && err != nil:
			t.Error(err)
		case !fits && (!errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), "the max_payload of the NATS server at "+ns.URL()+" is 4096 bytes, and weir needs at least 4")):
			t.Errorf("max_payload %d: %v", most, err)
		}
	}
}

// TestMaxPayloadLowered: NATS comes back with a max_payload that is smaller than the
// messages that frames were collected in, though not than frames: they go in smaller ones.
func TestMaxPayloadLowered(t *testing.T) {
	t.Parallel()
	s, err := transport.StartServer(t.Context(), transport.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Stop() }()
	b := openBroken(t, s)
	d, err := transporttest.OpenDuplex(b.from, b.to, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), transporttest.Patience)
	defer cancel()
	const frames = 4000
	killC, doneC := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(doneC)
		select {
		case <-killC:
		case <-ctx.Done():
			return
		}
		port := s.Port()
		s.Stop()
		again, err := transport.StartServer(ctx, transport.ServerOptions{Port: port, MaxPayload: 6 << 10})
		if err != nil {
			t.Error(err)
			return
		}
		s = again
	}()
	err = d.Run(ctx, transporttest.NewTraffic(1, frames, 4<<10, false), func(n int) {
		if n == frames/2 {
			killC <- struct{}{}
		}
	})
	cancel()
	<-doneC
	if err != nil {
		t.Fatalf("%v\nfrom %+v\nto   %+v", err, b.from.Stats(), b.to.Stats())
	}
}

// TestSmallServerIsLeft: a client whose NATS server comes back with a max_payload that is of
// no use waits, says so, and goes on by itself where the limit is raised, which NATS tells
// nobody of.
func TestSmallServerIsLeft(t *testing.T) {
	t.Parallel()
	url, ns := guarded(t, server.Options{})
	port := ns.Addr().(*net.TCPAddr).Port
	d := newDiary(t)
	c, err := transport.OpenControl(t.Context(), transport.Options{URL: url, Name: "test", Log: d.log()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	serve(t, c, "life", echo)
	ns.Shutdown()
	ns.WaitForShutdown()
	_, ns = guarded(t, server.Options{Port: port, MaxPayload: 600})
	transporttest.Until(t, "it finds the server of no use", func() bool {
		err := c.Ready()
		return err != nil && strings.Contains(err.Error(), "is 600 bytes, and weir needs at least 4")
	})
	if c.Connected() || !c.StableSince().IsZero() {
		t.Error("it takes the connection for one")
	}
	if err := c.Heartbeat(t.Context(), []byte(strconv.Quote(strings.Repeat("x", 2000)))); err == nil {
		t.Error("a heartbeat was sent")
	}
	if _, err := c.Ping(t.Context(), testWorker); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("ping: %v", err)
	}
	ctx, answered := bounded(t), make(chan error, 1)
	go func() {
		_, err := c.Request(ctx, testWorker, "waits", []byte(`"x"`))
		answered <- err
	}()
	if err := ns.ReloadOptions(&server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true, MaxPayload: 1 << 20, AuthTimeout: transporttest.Patience.Seconds()}); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("the request that waited: %v", err)
	}
	transporttest.Until(t, "that is said", func() bool { return strings.Contains(d.String(), "nats connection is back") })
	for what, times := range map[string]int{"nats connection lost": 1, "nats is of no use": 1, "nats connection is back": 1} {
		if n := strings.Count(d.String(), what); n != times {
			t.Errorf("%q is said %d times\n%s", what, n, d)
		}
	}
}

// TestSmallServerInCluster: of several servers the ones of no use are passed over.
func TestSmallServerInCluster(t *testing.T) {
	t.Parallel()
	url, ns := guarded(t, server.Options{})
	small, _ := guarded(t, server.Options{MaxPayload: 1 << 10})
	good, _ := guarded(t, server.Options{})
	// The one that it is connected to ends; which of the others comes next is left to chance.
	for range 4 {
		port := ns.Addr().(*net.TCPAddr).Port
		c, err := transport.OpenControl(t.Context(), transport.Options{URL: url + "," + small + "," + good, Name: "test"})
		if errors.Is(err, weir.ErrInvalid) { // the small one was first
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		serve(t, c, "life", echo)
		ns.Shutdown()
		ns.WaitForShutdown()
		transporttest.Until(t, "a server of use is found", func() bool {
			_, err := c.Ping(bounded(t), testWorker)
			return err == nil
		})
		c.Close()
		_, ns = guarded(t, server.Options{Port: port})
	}
}

// TestMaxPayloadBelowFrame: NATS comes back with a max_payload that is smaller than a frame
// that has to be sent again: the channel is broken, for the job to begin again with smaller
// ones.
func TestMaxPayloadBelowFrame(t *testing.T) {
	t.Parallel()
	s, err := transport.StartServer(t.Context(), transport.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Stop() }()
	b := openBroken(t, s)
	l := &transporttest.Line{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1), WakeC: make(chan struct{}, 1)}
	l.In = l.OpenIn(t, b.to, false)
	r := openOut(t, b.from, l)
	l.Send(t, transporttest.Records(0, 100, false))
	transporttest.Check(t, l.Next(t), 0, 100, false)
	transporttest.Until(t, "the frame was taken", l.Out.Idle) // so that the next one may go alone
	b.toProxy.Refuse()
	l.Send(t, transporttest.Records(1, 200_000, false)) // alone, and heard by nobody
	port := s.Port()
	s.Stop()
	if s, err = transport.StartServer(t.Context(), transport.ServerOptions{Port: port, MaxPayload: 64 << 10}); err != nil {
		t.Fatal(err)
	}
	b.toProxy.Accept()
	const want = "channel 0/3>1/2#1: frame 2 of 200084 bytes is larger than the NATS server takes (max_payload is 65536); the job goes on from its last checkpoint"
	wantBroken(t, r.await(t), want)
	wantBroken(t, l.Out.Send(t.Context(), transporttest.Records(2, 10, false)), want)
}

// lower reloads a NATS server with a smaller max_payload.
func lower(t *testing.T, ns *server.Server, opts server.Options, most int32) {
	t.Helper()
	opts.Host, opts.NoSigs, opts.MaxPayload = "127.0.0.1", true, most
	opts.Port = ns.Addr().(*net.TCPAddr).Port
	if err := ns.ReloadOptions(&opts); err != nil {
		t.Fatal(err)
	}
}

// TestMaxPayloadToldOf: NATS tells of a lower max_payload while the connection stays.
func TestMaxPayloadToldOf(t *testing.T) {
	t.Parallel()
	cluster := server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: server.RANDOM_PORT}
	ns := natsServer(t, server.Options{Cluster: cluster, MaxPayload: 1 << 20})
	n := network(t, ns.ClientURL())
	l := &transporttest.Line{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1), WakeC: make(chan struct{}, 1)}
	l.In = l.OpenIn(t, n, false)
	r := openOut(t, n, l)
	l.Send(t, transporttest.Records(0, 100, false))
	transporttest.Check(t, l.Next(t), 0, 100, false)
	cluster.Port = ns.ClusterAddr().Port
	lower(t, ns, server.Options{Cluster: cluster}, 64<<10)
	natsServer(t, server.Options{
		Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: server.RANDOM_PORT},
		Routes:  server.RoutesFromStr(fmt.Sprintf("nats://127.0.0.1:%d", cluster.Port)),
	})
	transporttest.Until(t, "the client is told", func() bool { return transport.ToldPayload(n) == 64<<10 })
	if err := l.Out.Send(t.Context(), transporttest.Records(1, 200_000, false)); err != nil {
		t.Fatal(err)
	}
	wantBroken(t, r.await(t), "frame 2 of 200084 bytes is larger than the NATS server takes (max_payload is 65536)")
}

// TestMaxPayloadReloaded: NATS takes less without telling, and closes connections for what is
// larger; after that nats.go does not come back. There are other connections then, which hear
// what those before have heard.
func TestMaxPayloadReloaded(t *testing.T) {
	t.Parallel()
	url, ns := guarded(t, server.Options{MaxPayload: 1 << 20})
	d := newDiary(t)
	opts := transport.Options{URL: url, Name: "t", Log: d.log()}
	n := run(t, opts)
	c, err := transport.OpenControl(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	serve(t, c, "life", echo)
	background(t, func(ctx context.Context) error { return c.ServeReports(ctx, echo) })
	beatC := make(chan string, 1000)
	background(t, func(ctx context.Context) error {
		return c.Heartbeats(ctx, func(body []byte) { beatC <- string(body) })
	})
	l := &transporttest.Line{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1), WakeC: make(chan struct{}, 1)}
	l.In = l.OpenIn(t, n, false)
	r := openOut(t, n, l)
	l.Send(t, transporttest.Records(0, 100, false))
	transporttest.Check(t, l.Next(t), 0, 100, false)
	lower(t, ns, server.Options{AuthTimeout: transporttest.Patience.Seconds(), NoLog: true}, 64<<10)

	if err := l.Out.Send(t.Context(), transporttest.Records(1, 200_000, false)); err != nil {
		t.Fatal(err)
	}
	wantBroken(t, r.await(t), "frame 2 of 200084 bytes is larger than the NATS server takes (max_payload is 65536)")
	next := transporttest.Open(t, n, n, false)
	next.Send(t, transporttest.Records(0, 100, false))
	transporttest.Check(t, next.Next(t), 0, 100, false)

	_, err = c.Publish(bounded(t), "large", []byte(`"`+strings.Repeat("x", 200_000)+`"`))
	if !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), "larger than the NATS server takes (65536)") {
		t.Errorf("a report of 200,000 bytes: %v", err)
	}
	other := control(t, url)
	pinged(t, other, "life")
	if got, err := other.Publish(bounded(t), "small", []byte(`1`)); err != nil || string(got) != `{"body":1,"kind":"small"}` {
		t.Errorf("a small report: %s, %v", got, err)
	}
	if err := other.Heartbeat(t.Context(), []byte(`1`)); err != nil || <-beatC != "1" {
		t.Errorf("heartbeat: %v", err)
	}
	for _, conn := range []string{"data", "control"} {
		// Not the reason: the reset may overtake the server's own words.
		if want := `msg="nats connection lost" conn=` + conn; strings.Count(d.String(), want) != 1 {
			t.Errorf("not once: %s\n%s", want, d)
		}
	}
}
