package transport

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestOneAtATime: a message of a connection that nats.go has closed for good may still be at
// work when the next connection brings another one, which waits for it.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	s, err := StartServer(t.Context(), ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	l, err := connect(t.Context(), Options{URL: s.URL(), Name: "test", Log: slog.New(slog.DiscardHandler)}, roleData)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	var inside atomic.Int32
	inC, goOnC := make(chan struct{}, 2), make(chan struct{})
	sub, err := l.subscribe("a", func(*nats.Msg) {
		if inside.Add(1) > 1 {
			t.Error("two at a time")
		}
		inC <- struct{}{}
		<-goOnC
		inside.Add(-1)
	}, -1)
	if err != nil {
		t.Fatal(err)
	}
	say := func() {
		if err := l.nc().Publish("a", nil); err != nil {
			t.Error(err)
		}
	}
	say()
	<-inC
	old := l.nc()
	old.Close()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for said := false; ; <-tick.C {
		l.subs.Lock()
		on, nc := sub.on, l.nc()
		l.subs.Unlock()
		if nc == old {
			continue
		}
		if !said {
			said = true
			say()
		}
		if n, err := on.Delivered(); err == nil && n > 0 {
			break
		}
	}
	close(goOnC)
	<-inC
}
