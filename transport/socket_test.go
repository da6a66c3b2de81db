package transport_test

import (
	"sync/atomic"
	"testing"

	"weir/transport"
	"weir/transport/transporttest"
)

// TestFullSocket: a subscription is to be written to a socket that takes nothing for a while,
// and has room again then. It is made all the same.
func TestFullSocket(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	worker := control(t, url)
	var full atomic.Bool // the next write fails
	if err := transport.DialFull(worker, &full); err != nil {
		t.Fatal(err)
	}
	transporttest.Until(t, "it has such a socket", func() bool { return transport.Reconnects(worker) == 1 && worker.Connected() })
	full.Store(true)
	serve(t, worker, "life", echo)
	pinged(t, control(t, url), "life")
	if full.Load() || transport.Reconnects(worker) != 2 {
		t.Errorf("connected %d times anew: the test tests nothing", transport.Reconnects(worker))
	}
}
