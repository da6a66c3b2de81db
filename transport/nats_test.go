package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir"
	"weir/transport"
	"weir/transport/transporttest"
)

func TestMain(m *testing.M) {
	if args := os.Getenv(asleepVar); args != "" {
		os.Exit(asleepMain(args))
	}
	goleak.VerifyTestMain(m)
}

func startServer(t testing.TB) *transport.Server {
	t.Helper()
	s, err := transport.StartServer(t.Context(), transport.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// network opens a network and runs it until the test ends.
func network(t testing.TB, url string) *transport.Network {
	t.Helper()
	return run(t, transport.Options{URL: url, Name: "test"})
}

func run(t testing.TB, opts transport.Options) *transport.Network {
	t.Helper()
	n, err := transport.OpenNetwork(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	doneC := make(chan error, 1)
	go func() { doneC <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-doneC; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return n
}

func TestConformanceLocal(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, transporttest.Setup{Local: true, Open: func(t *testing.T) (from, to *transport.Network) {
		n := network(t, "")
		return n, n
	}})
}

func TestConformanceNATS(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, transporttest.Setup{Open: func(t *testing.T) (from, to *transport.Network) {
		s := startServer(t)
		return network(t, s.URL()), network(t, s.URL())
	}})
}

// A broken is a server with a proxy before each of two networks.
type broken struct {
	fromProxy, toProxy *transporttest.Proxy
	from, to           *transport.Network
}

func openBroken(t *testing.T, s *transport.Server) broken {
	t.Helper()
	target := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port()))
	b := broken{fromProxy: transporttest.NewProxy(t, target), toProxy: transporttest.NewProxy(t, target)}
	b.from, b.to = network(t, b.fromProxy.URL()), network(t, b.toProxy.URL())
	return b
}

// stream sends frames on a line and calls fault after every hundredth one.
func stream(t *testing.T, b broken, frames, size int, fault func(n int)) {
	t.Helper()
	l := transporttest.Open(t, b.from, b.to, false)
	doneC := make(chan struct{})
	go func() {
		defer close(doneC)
		transporttest.ReadAll(t, []weir.Inbound{l.In}, l.WakeC, frames, size, false)
	}()
	for n := range frames {
		if n%100 == 99 {
			fault(n)
		}
		l.Send(t, transporttest.Records(n, size, false))
	}
	<-doneC
	if _, more, err := l.In.Poll(); more || err != nil {
		t.Errorf("one frame too many: %v", err)
	}
}

func TestConnectionsCut(t *testing.T) {
	t.Parallel()
	b := openBroken(t, startServer(t))
	const frames = 1000
	stream(t, b, frames, 5000, func(n int) {
		switch n / 100 % 3 {
		case 0:
			b.fromProxy.Cut()
		case 1:
			b.toProxy.Cut()
		case 2:
			b.fromProxy.Cut()
			b.toProxy.Cut()
		}
	})
	if got := b.from.Stats(); got.Sent != frames || b.to.Stats().Received != frames {
		t.Errorf("from %+v\nto %+v", got, b.to.Stats())
	}
}

// TestReceiverAway: the receiver is cut off, or its connection stalls, until the sender
// has used up its credit.
func TestReceiverAway(t *testing.T) {
	t.Parallel()
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		b := openBroken(t, startServer(t))
		away(t, b, b.toProxy.Refuse, b.toProxy.Accept)
		if b.from.Stats().Resent == 0 {
			t.Error("nothing was sent again, so nothing was lost: the test tests nothing")
		}
	})
	t.Run("stalled", func(t *testing.T) {
		t.Parallel()
		b := openBroken(t, startServer(t))
		away(t, b, b.toProxy.Stall, b.toProxy.Heal)
	})
}

func away(t *testing.T, b broken, leave, comeBack func()) {
	t.Helper()
	l := transporttest.Open(t, b.from, b.to, false)
	l.Send(t, transporttest.Records(0, 1000, false))
	leave()
	sent := 1
	for ; ; sent++ {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err := l.Out.Send(ctx, transporttest.Records(sent, 1000, false))
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if sent < 50 { // of 64 KiB
		t.Errorf("blocked after %d frames", sent)
	}
	comeBack()
	for n := range sent {
		transporttest.Check(t, l.Next(t), n, 1000, false)
	}
}

// TestServerRestart: NATS itself goes away and comes back on its port, several times.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	s, err := transport.StartServer(t.Context(), transport.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	port := s.Port()
	b := openBroken(t, s)
	stream(t, b, 500, 20_000, func(int) {
		s.Stop()
		if s, err = transport.StartServer(t.Context(), transport.ServerOptions{Port: port}); err != nil {
			t.Error(err)
		}
	})
	s.Stop()
}

// TestForeignAndDamaged: messages on the right subject that are not the channel's own.
func TestForeignAndDamaged(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	from, to := network(t, s.URL()), network(t, s.URL())
	nc := observer(t, s.URL())
	heard, err := nc.SubscribeSync("weir.default.d.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	older := transporttest.Open(t, from, to, false)
	older.Send(t, transporttest.Records(0, 10, false))
	older.Next(t)
	l := transporttest.Open(t, from, to, false)
	l.Send(t, transporttest.Records(0, 10, false)) // whoever polls it has subscribed
	l.Next(t)
	subject := fmt.Sprintf("weir.default.d.%s.%v.1_2.0_3", l.Job, l.Attempt)
	msg, err := heard.NextMsg(transporttest.Patience)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{msg.Data, []byte("no frame"), msg.Data[:20], nil} {
		if err := nc.Publish(subject, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		l.Send(t, transporttest.Records(n, 10, false))
		transporttest.Check(t, l.Next(t), n, 10, false)
	}
	if got := to.Stats(); got.Foreign != 1 || got.Damaged != 2 {
		t.Errorf("%+v", got)
	}
}

// TestSmallFramesAreNotLate: a barrier that waits for company does not wait for a timer,
// the shortest of which takes 20 ms.
func TestSmallFramesAreNotLate(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l := transporttest.Open(t, network(t, s.URL()), network(t, s.URL()), false)
	l.Send(t, weir.Frame{Kind: weir.FrameBarrier})
	l.Next(t)
	late := time.Now().Add(transporttest.Patience)
	for quick, all := 0, 0; quick < 10; all++ { // others may have waited for the processor
		began := time.Now()
		if began.After(late) {
			t.Fatalf("of %d barriers, one by one, %d took less than 10 ms", all, quick)
		}
		l.Send(t, weir.Frame{Kind: weir.FrameBarrier})
		l.Next(t)
		if time.Since(began) < 10*time.Millisecond {
			quick++
		}
	}
}

// TestInputsShare: the inputs of a task share a subscription, and it gets each frame once.
func TestInputsShare(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	from, to := network(t, s.URL()), network(t, s.URL())
	l := transporttest.Open(t, from, to, false)
	for edge := 2; edge < 6; edge++ {
		ch := transporttest.Channel()
		ch.Edge = edge
		if _, err := to.Inbound(l.Job, l.Attempt, ch, false, l.WakeC); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 100 {
		l.Send(t, transporttest.Records(n, 100, false))
		transporttest.Check(t, l.Next(t), n, 100, false)
	}
	if got := to.Stats(); got.Received != 100 || got.Repeats != 0 || got.Foreign != 0 {
		t.Errorf("%+v", got)
	}
}

func TestFrameTooLarge(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	n := network(t, s.URL())
	l := transporttest.Open(t, n, n, false)
	l.Send(t, transporttest.Records(0, n.MaxPayload(), false)) // the largest there is
	transporttest.Check(t, l.Next(t), 0, n.MaxPayload(), false)
	err := l.Out.Send(t.Context(), transporttest.Records(1, 10, true))
	if !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("batch that leaves the process: %v", err)
	}
	err = l.Out.Send(t.Context(), transporttest.Records(1, n.MaxPayload()+1, false))
	wantBroken(t, err, "frame 2 of 1048577 bytes is larger than the NATS server takes (max_payload is 1048576)")
}

func TestNoNATS(t *testing.T) {
	t.Parallel()
	n := network(t, "")
	_, err := n.Outbound(weir.NewJobID(), weir.NewAttemptID(1), transporttest.Channel(), false, nil)
	if !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("remote channel without NATS: %v", err)
	}
	_, err = transport.OpenNetwork(t.Context(), transport.Options{URL: "nats://me:secret@127.0.0.1:1", Name: "test"})
	if err == nil || !strings.Contains(err.Error(), "connect to NATS at nats://127.0.0.1:1: ") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

// TestSlowNATS: a server that is there and has no time yet is tried again, at the start too.
func TestSlowNATS(t *testing.T) {
	t.Parallel()
	p := transporttest.NewProxy(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(startServer(t).Port())))
	p.Stall()
	heal := time.AfterFunc(transport.ConnectTimeout*3/2, p.Heal) // the first try is over, the second one waits
	defer heal.Stop()
	c, err := transport.OpenControl(t.Context(), transport.Options{URL: p.URL(), Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestPasswordsAreNotShown: an error names where NATS was looked for, never as whom.
func TestPasswordsAreNotShown(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"nats://u:S3cr@127.0.0.1:1", "nats://u:S3cr%40t@127.0.0.1:1", "nats://S3cr@127.0.0.1:1", "u:S3cr@127.0.0.1:1", "nats://a@127.0.0.1:1, nats://u:S3cr@127.0.0.1:2",
		"nats://u:S3cr@127.0.0.1:bad", "nats://u:S3cr%zz@127.0.0.1:1", "nats://u:S3cr@[::1", "nats://u:S3cr x@127.0.0.1:1", "nats://u:S3@cr@127.0.0.1:1", "nats://u:S3c,r@127.0.0.1:1", "nats://127.0.0.1:1,nats://u:S3c,S3,S3@127.0.0.1:1",
	} {
		_, err := transport.OpenControl(t.Context(), transport.Options{URL: url, Name: "test"})
		if err == nil || strings.Contains(err.Error(), "S3") || !strings.Contains(err.Error(), "nats://") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestServerPortTaken(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	_, err := transport.StartServer(t.Context(), transport.ServerOptions{Port: s.Port()})
	if !errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), "cannot listen on 127.0.0.1:") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkNATS(b *testing.B)  { benchmark(b, false, 256, 4<<10, 64<<10, 255<<10) }
func BenchmarkLocal(b *testing.B) { benchmark(b, true, 64<<10) }

// BenchmarkLatency sends small frames one at a time: what a barrier costs per exchange.
func BenchmarkLatency(b *testing.B) {
	url := startServer(b).URL()
	l := transporttest.Open(b, network(b, url), network(b, url), false)
	for range b.N {
		l.Send(b, weir.Frame{Kind: weir.FrameBarrier})
		l.Next(b)
	}
}

func benchmark(b *testing.B, local bool, sizes ...int) {
	for _, size := range sizes {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			url := ""
			if !local {
				url = startServer(b).URL()
			}
			from := network(b, url)
			to := from
			if !local {
				to = network(b, url)
			}
			l := transporttest.Open(b, from, to, local)
			f := transporttest.Records(0, size, local)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			go func() {
				for range b.N {
					if err := l.Out.Send(context.Background(), f); err != nil {
						b.Error(err)
					}
				}
			}()
			for range b.N {
				l.Next(b)
			}
			b.ReportMetric(float64(from.Stats().Resent), "resent")
		})
	}
}
