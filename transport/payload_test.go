package transport_test

import (
	"context"
	"errors"
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
