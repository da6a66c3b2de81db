package transport_test

import (
	"context"
	"testing"
	"time"

	"weir"
	"weir/transport"
	"weir/transport/transporttest"
)

// TestR06ServerKilled: NATS dies without a word while frames flow both ways, and comes
// back on its port: at once, and after a pause in which more is sent than any buffer
// of the client library keeps.
func TestR06ServerKilled(t *testing.T) {
	t.Parallel()
	pauses, frames := []time.Duration{0, 300 * time.Millisecond}, 4000
	if long() {
		frames = 12_000 // about 40 MiB each way
		pauses = []time.Duration{time.Second, 0, 5 * time.Second, 0, 30 * time.Second}
	}
	for _, seed := range seeds(t, 2) {
		s, err := transport.StartServer(t.Context(), transport.ServerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		port := s.Port()
		b := openBroken(t, s)
		d, err := transporttest.OpenDuplex(b.from, b.to, false)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*transporttest.Patience)
		defer cancel()
		killC, doneC := make(chan struct{}, len(pauses)), make(chan struct{})
		go func() {
			defer close(doneC)
			for _, pause := range pauses {
				<-killC
				s.Stop()
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
				var err error
				if s, err = transport.StartServer(ctx, transport.ServerOptions{Port: port}); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		part := frames / (len(pauses) + 1)
		err = d.Run(ctx, transporttest.NewTraffic(seed, frames, 256<<10, false), func(n int) {
			if n%part == part-1 && n/part < len(pauses) {
				killC <- struct{}{}
			}
		})
		if err != nil {
			t.Fatalf("seed %d: %v\nfrom %+v\nto   %+v", seed, err, b.from.Stats(), b.to.Stats())
		}
		<-doneC
		s.Stop()
	}
}

// TestInterestLate: one end opens long before the other one, and the sender has sent by
// then all it may.
func TestInterestLate(t *testing.T) {
	t.Parallel()
	apart := 300 * time.Millisecond
	if long() {
		apart = 5 * time.Second
	}
	for _, first := range []string{"sender", "receiver"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			url := startServer(t).URL()
			from, to := network(t, url), network(t, url)
			l := &transporttest.Line{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1), WakeC: make(chan struct{}, 1)}
			tr := transporttest.NewTraffic(1, 1000, 64<<10, false)
			sentC := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), transporttest.Patience)
			defer cancel()
			if first == "receiver" {
				l.In = l.OpenIn(t, to, false)
				<-time.After(apart)
			}
			l.Out = l.OpenOut(t, from, false)
			go func() { sentC <- tr.Send(ctx, l.Out, nil) }()
			if first == "sender" {
				<-time.After(apart)
				l.In = l.OpenIn(t, to, false)
			}
			if err := tr.Receive(ctx, l.In, l.WakeC, nil); err != nil {
				t.Fatal(err)
			}
			if err := <-sentC; err != nil {
				t.Fatal(err)
			}
		})
	}
}
