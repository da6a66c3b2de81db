package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"weir"
	"weir/transport"
	"weir/transport/transporttest"
)

const testWorker = weir.WorkerID("w-1")

func control(t testing.TB, url string) *transport.Control {
	t.Helper()
	c, err := transport.OpenControl(t.Context(), transport.Options{URL: url, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// background runs a blocking call until the returned function is called, or the test
// ends.
func background(t testing.TB, run func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	doneC := make(chan error, 1)
	go func() { doneC <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-doneC; err != nil {
			t.Errorf("background: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func serve(t testing.TB, c *transport.Control, incarnation string, h transport.Handler) (stop func()) {
	t.Helper()
	return background(t, func(ctx context.Context) error { return c.Serve(ctx, testWorker, incarnation, h) })
}

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), transporttest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func echo(_ context.Context, kind string, body []byte) ([]byte, error) {
	return json.Marshal(map[string]any{"kind": kind, "body": json.RawMessage(body)})
}

// observer is a plain NATS client.
func observer(t testing.TB, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func TestRequest(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	serve(t, control(t, url), "inc", echo)
	got, err := control(t, url).Request(bounded(t), testWorker, "deploy", []byte(`{"a":1}`))
	if err != nil || string(got) != `{"body":{"a":1},"kind":"deploy"}` {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestRequestErrors: a handler's error arrives with its text and its sentinel.
func TestRequestErrors(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	all := map[string]error{
		"invalid": weir.ErrInvalid, "not_found": weir.ErrNotFound, "conflict": weir.ErrConflict, "stale": weir.ErrStale,
	}
	serve(t, control(t, url), "inc", func(_ context.Context, kind string, _ []byte) ([]byte, error) {
		if kind == "plain" {
			return nil, errors.New("disk full")
		}
		return nil, fmt.Errorf("task 1/2: %w", all[kind])
	})
	c := control(t, url)
	for kind, want := range all {
		_, err := c.Request(bounded(t), testWorker, kind, nil)
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "worker w-1: "+kind+": task 1/2: ") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	_, err := c.Request(bounded(t), testWorker, "plain", nil)
	var remote *transport.RemoteError
	if !errors.As(err, &remote) || remote.Message != "disk full" || errors.Is(err, weir.ErrInvalid) {
		t.Errorf("plain: %v", err)
	}
}

// TestRequestRunsOnce: the handler works for longer than a try; the repetition joins
// it, and a late one gets the kept answer (T8).
func TestRequestRunsOnce(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	nc := observer(t, url)
	repeatedC := make(chan []byte, 1)
	var copies, runs atomic.Int64
	_, err := nc.Subscribe("weir.default.w.w-1.command.slow", func(m *nats.Msg) {
		if copies.Add(1) == 2 {
			repeatedC <- m.Data
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	lateC := make(chan []byte, 1)
	serve(t, control(t, url), "inc", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		runs.Add(1)
		select {
		case data := <-repeatedC:
			lateC <- data
		case <-ctx.Done():
		}
		return []byte(`"done"`), nil
	})
	got, err := control(t, url).Request(bounded(t), testWorker, "slow", nil)
	if err != nil || string(got) != `"done"` {
		t.Fatalf("got %s, %v", got, err)
	}
	late, err := nc.Request("weir.default.w.w-1.command.slow", <-lateC, transporttest.Patience)
	if err != nil || !strings.Contains(string(late.Data), `"body":"done"`) {
		t.Errorf("late repetition: %v", err)
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("ran %d times", n)
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	c := control(t, url)
	if _, err := c.Ping(bounded(t), testWorker); !errors.Is(err, weir.ErrNotFound) {
		t.Errorf("ping: %v", err)
	}
	if _, err := c.Request(bounded(t), testWorker, "deploy", nil); !errors.Is(err, weir.ErrNotFound) {
		t.Errorf("request: %v", err)
	}
	for _, bad := range []weir.WorkerID{"", "a.b", "a b", "*"} {
		if _, err := c.Request(bounded(t), bad, "deploy", nil); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("worker %q: %v", bad, err)
		}
	}
}

// TestLives: what is meant for one life of a worker reaches no other, although both
// listen under the worker's name.
func TestLives(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	answer := func(life string) transport.Handler {
		return func(context.Context, string, []byte) ([]byte, error) { return json.Marshal(life) }
	}
	c := control(t, url)
	serve(t, control(t, url), "old", answer("old"))
	stop := serve(t, control(t, url), "new", answer("new"))
	for range 10 {
		for _, life := range []string{"old", "new"} {
			got, err := c.Request(bounded(t), testWorker.Life(life), "deploy", nil)
			if want := strconv.Quote(life); err != nil || string(got) != want {
				t.Fatalf("got %s, %v, want %s", got, err, want)
			}
		}
	}
	stop()
	if _, err := c.Request(bounded(t), testWorker.Life("new"), "deploy", nil); !errors.Is(err, weir.ErrNotFound) {
		t.Errorf("a life that is over: %v", err)
	}
}

// TestSilence: somebody listens and does not answer.
func TestSilence(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	nc := observer(t, url)
	if _, err := nc.Subscribe("weir.default.w.>", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c := control(t, url)
	if _, err := c.Ping(ctx, testWorker); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ping: %v", err)
	}
	if _, err := c.Request(ctx, testWorker, "deploy", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("request: %v", err)
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	c, worker := control(t, url), control(t, url)
	blockC := make(chan struct{})
	stop := serve(t, worker, "first", func(context.Context, string, []byte) ([]byte, error) {
		<-blockC
		return nil, nil
	})
	busyC := make(chan error, 1)
	go func() {
		_, err := c.Request(bounded(t), testWorker, "slow", nil)
		busyC <- err
	}()
	pinged(t, c, "first") // while a handler is busy
	close(blockC)
	if err := <-busyC; err != nil {
		t.Error(err)
	}
	stop()
	serve(t, worker, "second", echo)
	pinged(t, c, "second")
}

// pinged waits until the worker has subscribed and checks its incarnation.
func pinged(t *testing.T, c *transport.Control, want string) {
	t.Helper()
	for ctx := bounded(t); ; {
		got, err := c.Ping(ctx, testWorker)
		if ctx.Err() == nil && (errors.Is(err, weir.ErrNotFound) || errors.Is(err, weir.ErrConflict) || errors.Is(err, context.DeadlineExceeded)) {
			continue // not yet, or not so soon on a busy machine
		}
		if err != nil || got != want {
			t.Fatalf("ping: %q, %v; want %q", got, err, want)
		}
		return
	}
}

func TestConnectionDown(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := transporttest.NewProxy(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())))
	serve(t, control(t, s.URL()), "inc", echo)
	c := control(t, p.URL())
	pinged(t, c, "inc")
	before := c.StableSince()
	if before.IsZero() || !c.Connected() {
		t.Error("not connected")
	}
	p.Refuse()
	for ctx := bounded(t); ; {
		if _, err := c.Ping(ctx, testWorker); errors.Is(err, weir.ErrConflict) {
			break
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	if !c.StableSince().IsZero() || c.Connected() {
		t.Error("connected")
	}
	if err := c.Heartbeat(t.Context(), nil); err == nil {
		t.Error("heartbeat without a connection")
	}
	doneC := make(chan error, 1)
	go func() {
		_, err := c.Request(bounded(t), testWorker, "deploy", []byte(`1`)) // waits
		doneC <- err
	}()
	p.Accept()
	if err := <-doneC; err != nil {
		t.Error(err)
	}
	if !c.StableSince().After(before) {
		t.Error("the connection came back and counts as stable since before")
	}
}

// TestReports: a report waits for a server; the one whom it concerns answers.
func TestReports(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	worker := control(t, url)
	type result struct {
		body []byte
		err  error
	}
	earlyC := make(chan result, 1)
	go func() {
		body, err := worker.Publish(bounded(t), "status", []byte(`"early"`))
		earlyC <- result{body, err}
	}()
	background(t, func(ctx context.Context) error {
		return control(t, url).ServeReports(ctx, func(context.Context, string, []byte) ([]byte, error) {
			return nil, fmt.Errorf("another server holds this job: %w", weir.ErrConflict)
		})
	})
	var tries atomic.Int64
	background(t, func(ctx context.Context) error {
		return control(t, url).ServeReports(ctx, func(ctx context.Context, kind string, body []byte) ([]byte, error) {
			switch kind {
			case "flaky":
				if tries.Add(1) == 1 {
					return nil, errors.New("the database is away")
				}
			case "old":
				return nil, fmt.Errorf("attempt 3: %w", weir.ErrStale)
			}
			return echo(ctx, kind, body)
		})
	})
	if r := <-earlyC; r.err != nil || string(r.body) != `{"body":"early","kind":"status"}` {
		t.Errorf("early: %s, %v", r.body, r.err)
	}
	if body, err := worker.Publish(bounded(t), "flaky", []byte(`2`)); err != nil || string(body) != `{"body":2,"kind":"flaky"}` {
		t.Errorf("flaky: %s, %v", body, err)
	}
	if _, err := worker.Publish(bounded(t), "old", nil); !errors.Is(err, weir.ErrStale) {
		t.Errorf("old: %v", err)
	}
}

func TestReportEndsWithContext(t *testing.T) {
	t.Parallel()
	c := control(t, startServer(t).URL())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Publish(ctx, "status", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestHeartbeats(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	beatC := make(chan string, 100)
	for range 2 { // every server hears it
		c := control(t, url)
		background(t, func(ctx context.Context) error {
			return c.Heartbeats(ctx, func(body []byte) { beatC <- string(body) })
		})
	}
	worker := control(t, url)
	ctx := bounded(t)
	for heard := 0; heard < 2; {
		if err := worker.Heartbeat(ctx, []byte(`{"slots":2}`)); err != nil {
			t.Fatal(err)
		}
		select {
		case beat := <-beatC:
			if beat != `{"slots":2}` {
				t.Fatalf("heard %s", beat)
			}
			heard++
		case <-ctx.Done():
			t.Fatal("nothing heard")
		case <-time.After(10 * time.Millisecond): // not subscribed yet
		}
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	big, _ := json.Marshal(strings.Repeat("x", 8<<20))
	serve(t, control(t, url), "inc", func(context.Context, string, []byte) ([]byte, error) { return big, nil })
	c := control(t, url)
	pinged(t, c, "inc")
	_, err := c.Request(bounded(t), testWorker, "deploy", big)
	if !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), "no object storage to leave it in") {
		t.Errorf("request: %v", err)
	}
	_, err = c.Request(bounded(t), testWorker, "read", nil)
	if !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), "no object storage to leave it in") {
		t.Errorf("answer: %v", err)
	}
	_, err = c.Request(bounded(t), testWorker, "read", []byte("no JSON"))
	if !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), "is not JSON") {
		t.Errorf("no JSON: %v", err)
	}
}

// TestWire pins what travels, byte for byte, and what other versions get.
func TestWire(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	serve(t, control(t, url), "0123456789abcdef", func(_ context.Context, kind string, body []byte) ([]byte, error) {
		if kind == "bad" {
			return nil, fmt.Errorf("no such task: %w", weir.ErrNotFound)
		}
		return body, nil
	})
	pinged(t, control(t, url), "0123456789abcdef")
	nc := observer(t, url)
	for _, c := range []struct{ subject, ask, want string }{
		{"ping", ``, `{"v":1,"worker":"w-1","incarnation":"0123456789abcdef"}`},
		{"command.x", `{"v":1,"id":"a","kind":"x","body":{"n":1}}`, `{"v":1,"id":"a","body":{"n":1}}`},
		{"life.0123456789abcdef.x", `{"v":1,"id":"b","kind":"x"}`, `{"v":1,"id":"b"}`},
		{"command.bad", `{"v":1,"id":"c","kind":"bad"}`, `{"v":1,"id":"c","error":{"is":"not_found","message":"no such task: not found"}}`},
		{"command.x", `{"v":2,"id":"d","kind":"x"}`, `{"v":1,"id":"d","error":{"is":"invalid","message":"invalid: control message of version 2, this program knows 1; run the same version of weir everywhere"}}`},
		{"command.read", `{"v":1,"id":"e","kind":"stop"}`, `{"v":1,"id":"e","error":{"is":"invalid","message":"invalid: a message of kind \"stop\" came as \"read\""}}`},
		{"command.x", `no JSON`, `{"v":1,"id":"","error":{"is":"invalid","message":"invalid: control message: invalid character 'o' in literal null (expecting 'u')"}}`},
	} {
		got, err := nc.Request("weir.default.w.w-1."+c.subject, []byte(c.ask), transporttest.Patience)
		if err != nil || string(got.Data) != c.want {
			t.Errorf("%s\n got %s, %v\nwant %s", c.ask, got.Data, err, c.want)
		}
	}
}

// TestServeEnds: Serve tells its handlers to end and waits for them.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	var ended atomic.Bool
	runningC := make(chan struct{})
	stop := serve(t, control(t, url), "inc", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		close(runningC)
		<-ctx.Done()
		ended.Store(true)
		return nil, ctx.Err()
	})
	c := control(t, url)
	doneC := make(chan error, 1)
	go func() {
		_, err := c.Request(bounded(t), testWorker, "run", nil)
		doneC <- err
	}()
	<-runningC
	stop()
	if !ended.Load() {
		t.Error("Serve returned before its handler")
	}
	if err := <-doneC; err == nil {
		t.Error("no error")
	}
}
