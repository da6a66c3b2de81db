package transport_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"weir"
	"weir/transport"
	"weir/transport/transporttest"
)

// anew runs a network that a test can end, as its process would.
func anew(t *testing.T, url string) (n *transport.Network, end func()) {
	t.Helper()
	n, err := transport.OpenNetwork(t.Context(), transport.Options{URL: url, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	doneC := make(chan error, 1)
	go func() { doneC <- n.Run(ctx) }()
	ended := false
	end = func() {
		if !ended {
			ended = true
			cancel()
			if err := <-doneC; err != nil {
				t.Errorf("run: %v", err)
			}
		}
	}
	t.Cleanup(end)
	return n, end
}

// A report is where a sending end says that it is broken.
type report chan error

func (r report) await(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r:
		return err
	case <-time.After(transporttest.Patience):
		t.Fatal("nobody said that the channel is broken")
		return nil
	}
}

func openOut(t *testing.T, n *transport.Network, l *transporttest.Line) report {
	t.Helper()
	r := make(report, 1)
	out, err := n.Outbound(l.Job, l.Attempt, transporttest.Channel(), false, func(err error) { r <- err })
	if err != nil {
		t.Fatal(err)
	}
	l.Out = out
	return r
}

func wantBroken(t *testing.T, err error, text string) {
	t.Helper()
	if !errors.Is(err, weir.ErrBroken) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %q", err, text)
	}
}

// awaitBroken waits until the receiving end says that it is broken.
func awaitBroken(t *testing.T, l *transporttest.Line) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), transporttest.Patience)
	defer cancel()
	for {
		f, err := transporttest.Await(ctx, l.In, l.WakeC)
		if err != nil {
			return err
		}
		t.Logf("took %v %d", f.Kind, f.Value)
	}
}

// TestReceiverOpenedAnew: the receiving process dies and another one opens the same
// attempt's channel: both ends say so, a Send that waits is woken, and no frame comes.
func TestReceiverOpenedAnew(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	from := network(t, url)
	to, end := anew(t, url)
	l := &transporttest.Line{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1), WakeC: make(chan struct{}, 1)}
	l.In = l.OpenIn(t, to, false)
	r := openOut(t, from, l)
	for n := range 10 {
		l.Send(t, transporttest.Records(n, 1000, false))
		transporttest.Check(t, l.Next(t), n, 1000, false)
	}
	end()
	sentC := make(chan error, 1)
	go func() {
		for n := 10; ; n++ { // without a receiver credit ends soon
			if err := l.Out.Send(context.Background(), transporttest.Records(n, 50_000, false)); err != nil {
				sentC <- err
				return
			}
		}
	}()
	l.In = l.OpenIn(t, network(t, url), false)
	wantBroken(t, r.await(t), "channel 0/3>1/2#1: the receiving task 1/2 was opened anew")
	wantBroken(t, <-sentC, "the receiving task 1/2 was opened anew")
	wantBroken(t, awaitBroken(t, l), "channel 0/3>1/2#1: the sending task 0/3 knows another life of this end")
	if !l.Out.Idle() {
		t.Error("a broken channel lets rows wait for each other")
	}
}

// TestSenderOpenedAnew: the sending process dies and another one begins from the start.
func TestSenderOpenedAnew(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	to := network(t, url)
	from, end := anew(t, url)
	l := &transporttest.Line{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1), WakeC: make(chan struct{}, 1)}
	l.In = l.OpenIn(t, to, false)
	l.Out = l.OpenOut(t, from, false)
	l.Send(t, transporttest.Records(0, 1000, false))
	transporttest.Check(t, l.Next(t), 0, 1000, false)
	end()
	openOut(t, network(t, url), l)
	wantBroken(t, awaitBroken(t, l), "channel 0/3>1/2#1: the sending task 0/3 was opened anew")
}

// TestRunLate: a channel is opened before anybody runs the network. What became due is done
// as soon as somebody does: not when Run looks after 10 s without a reason to look sooner.
func TestRunLate(t *testing.T) {
	t.Parallel()
	n, err := transport.OpenNetwork(t.Context(), transport.Options{
		URL: startServer(t).URL(), Name: "test", Limits: transport.Limits{Silence: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := &transporttest.Line{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1)}
	r := openOut(t, n, l)
	sentC := make(chan error, 1)
	go func() { sentC <- l.Out.Send(t.Context(), transporttest.Records(0, 10, false)) }()
	ctx, cancel := context.WithCancel(t.Context())
	doneC := make(chan error, 1)
	go func() { doneC <- n.Run(ctx) }()
	select {
	case err := <-r:
		wantBroken(t, err, "has answered nothing for 1ms")
	case <-time.After(8 * time.Second):
		t.Error("nobody has looked")
		n.Release(l.Job, l.Attempt)
	}
	<-sentC
	cancel()
	if err := <-doneC; err != nil {
		t.Error(err)
	}
}

// TestSilentPeer: nobody answers a Send.
func TestSilentPeer(t *testing.T) {
	t.Parallel()
	n, err := transport.OpenNetwork(t.Context(), transport.Options{
		URL: startServer(t).URL(), Name: "test", Limits: transport.Limits{Silence: 300 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	doneC := make(chan error, 1)
	go func() { doneC <- n.Run(ctx) }()
	l := &transporttest.Line{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1)}
	r := openOut(t, n, l)
	wantBroken(t, l.Out.Send(t.Context(), transporttest.Records(0, 10, false)), "the receiving task 1/2 has answered nothing for 300ms")
	wantBroken(t, r.await(t), "has answered nothing for 300ms; the job goes on from its last checkpoint")
	cancel()
	if err := <-doneC; err != nil {
		t.Error(err)
	}
}
