package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weir/transport"
	"weir/transport/transporttest"
)

// TestRefusedSlowly: a server that refuses who connects is asked again a second later and not
// many times in it: somebody has to mend what is wrong.
func TestRefusedSlowly(t *testing.T) {
	t.Parallel()
	url, ns := guarded(t, server.Options{})
	c := control(t, url)
	ns.Shutdown()
	ns.WaitForShutdown()
	l, err := net.Listen("tcp", strings.TrimPrefix(url, "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	triedC := make(chan time.Time, 4)
	background(t, func(ctx context.Context) error {
		for range cap(triedC) {
			conn, err := l.Accept()
			if err != nil {
				return err
			}
			triedC <- time.Now()
			fmt.Fprint(conn, "INFO {\"max_payload\":1048576}\r\n")
			_, _ = bufio.NewReader(conn).ReadString('\n')
			fmt.Fprint(conn, "-ERR 'Authorization Violation'\r\n")
			conn.Close()
		}
		return nil
	})
	t.Cleanup(func() { l.Close() }) // before it is waited for
	t.Cleanup(c.Close)
	var last time.Time
	for n := range cap(triedC) {
		select {
		case at := <-triedC:
			if n == cap(triedC)-1 && at.Sub(last) < time.Second/2 {
				t.Errorf("tried again after %v", at.Sub(last))
			}
			last = at
		case <-time.After(transporttest.Patience):
			t.Fatal("it tries no more")
		}
	}
}

// TestForbiddenOnce: however often a connection on which a subscription is forbidden is lost,
// one try to hear again is to come, not one for each loss; and it offers itself to nobody
// meanwhile.
func TestForbiddenOnce(t *testing.T) {
	t.Parallel()
	none := &server.Permissions{Subscribe: &server.SubjectPermission{Allow: []string{"weir.default.i.>"}}}
	url, _ := guarded(t, server.Options{Users: []*server.User{{Username: "worker", Password: secret, Permissions: none}}})
	c, err := transport.OpenControl(t.Context(), transport.Options{URL: url, Name: "test", Security: transport.Security{User: "worker", Password: secret}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	serve(t, c, "life", echo)
	ctx := bounded(t)
	for range 10 {
		transporttest.Until(t, "it hears that it may not", func() bool { return transport.Plans(c) > 0 })
		before, began := transport.Reconnects(c), time.Now()
		if err := transport.Reconnect(c); err != nil {
			t.Fatal(err)
		}
		for transport.Reconnects(c) == before || transport.Plans(c) == 0 {
			err := c.Heartbeat(ctx, nil)
			if err == nil && time.Since(began) < transport.DeafLimit {
				t.Fatal("it offers itself before NATS has said that it still may not hear")
			}
			if ctx.Err() != nil {
				t.Fatal("NATS says nothing")
			}
		}
	}
	transporttest.Until(t, "one try is to come", func() bool { return transport.Plans(c) == 1 && c.Connected() })
}
