package transport_test

import (
	"context"
	"errors"
	"strings"
	"testing"

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
