package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"weir"
	"weir/transport"
	"weir/transport/transporttest"
)

const testJob = weir.JobID("job_000102030405060708090a0b0c0d0e0f")

func key(attempt int64, kind, id string) weir.CommandKey {
	return weir.CommandKey{Job: testJob, Attempt: weir.AttemptID{Number: attempt, Tag: "0a0b0c0d"}, Kind: kind, ID: id}
}

// A counter is a worker that counts what it runs, and answers with the count.
type counter struct {
	runs   atomic.Int64
	refuse atomic.Bool
	heard  atomic.Bool // the answer says that it was heard, not that it was done
}

func (c *counter) handle(context.Context, string, []byte) ([]byte, error) {
	n := c.runs.Add(1)
	if c.refuse.Load() {
		return []byte(`"refused"`), fmt.Errorf("not yet: %w", weir.ErrConflict)
	}
	if c.heard.Load() {
		return []byte(strconv.FormatInt(n, 10)), errors.New("heard")
	}
	return []byte(strconv.FormatInt(n, 10)), nil
}

func command(t *testing.T, c *transport.Control, k weir.CommandKey) string {
	t.Helper()
	got, err := c.Command(bounded(t), testWorker, k, []byte(`{}`))
	if err != nil {
		t.Errorf("%v: %v", k, err)
	}
	return string(got)
}

// TestCommandsAreKnown: a server that dies after it has sent a command is followed by
// another one, which sends it again as a message of its own.
func TestCommandsAreKnown(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	var w counter
	serve(t, control(t, url), "inc", w.handle)
	first, second := control(t, url), control(t, url)
	const anew = -1
	var counts []int64
	for _, step := range []struct {
		by   *transport.Control
		key  weir.CommandKey
		like int // the step that it is answered as; or anew
	}{
		{first, key(1, "deploy", ""), anew},
		{second, key(1, "deploy", ""), 0},
		{first, key(1, "trigger", "1"), anew},
		{first, key(1, "trigger", "2"), anew},
		{second, key(1, "trigger", "1"), 2},
		{second, key(1, "stop", ""), anew},
		{first, weir.CommandKey{Kind: "read"}, anew},
		{first, weir.CommandKey{Kind: "read"}, anew},
		{second, key(2, "deploy", ""), anew}, // a newer attempt: the answers of the older one go
		{first, key(1, "trigger", "1"), anew},
		{first, key(1, "trigger", "1"), anew}, // and are not kept again
		{first, key(2, "deploy", ""), 8},
	} {
		got := count(t, step.by, step.key)
		if step.like == anew && len(counts) > 0 && got <= slices.Max(counts) || step.like != anew && got != counts[step.like] {
			t.Errorf("step %d, %v: %d after %v", len(counts), step.key, got, counts)
		}
		counts = append(counts, got)
	}
}

// count has a counter run a command, once or, where it is not kept and the machine is
// busy, more often.
func count(t *testing.T, c *transport.Control, k weir.CommandKey) int64 {
	t.Helper()
	got := command(t, c, k)
	n, err := strconv.ParseInt(got, 10, 64)
	if err != nil {
		t.Errorf("%v: %s", k, got)
	}
	return n
}

// TestRefusalsAreNotKept: what was in the way may be gone the next time; and what was only
// heard is heard again.
func TestRefusalsAreNotKept(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	var w counter
	serve(t, control(t, url), "inc", w.handle)
	c := control(t, url)
	w.refuse.Store(true)
	if got := command(t, c, key(1, "trigger", "1")); got != `"refused"` {
		t.Errorf("got %s", got)
	}
	w.refuse.Store(false)
	last := count(t, c, key(1, "trigger", "1"))
	w.heard.Store(true)
	for range 2 {
		got := count(t, c, key(1, "commit", "1"))
		if got <= last {
			t.Errorf("heard: %d after %d", got, last)
		}
		last = got
	}
}

// TestCommandsJoin: the same command of two servers at a time runs once, and both are
// answered.
func TestCommandsJoin(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	nc := observer(t, url)
	var runs atomic.Int64
	bothC := make(chan struct{})
	ids := map[string]bool{}
	_, err := nc.Subscribe("weir.default.w.w-1.command.*", func(m *nats.Msg) {
		var msg struct{ ID string }
		if json.Unmarshal(m.Data, &msg) == nil && !ids[msg.ID] {
			if ids[msg.ID] = true; len(ids) == 2 {
				close(bothC)
			}
		}
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	serve(t, control(t, url), "inc", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		runs.Add(1)
		select {
		case <-bothC:
		case <-ctx.Done():
		}
		return []byte(`"done"`), nil
	})
	answerC := make(chan string, 2)
	for range 2 {
		c := control(t, url)
		go func() {
			got, err := c.Command(bounded(t), testWorker, key(1, "commit_only", "7"), nil)
			answerC <- fmt.Sprint(string(got), err)
		}()
	}
	for range 2 {
		if got := <-answerC; got != `"done"<nil>` {
			t.Errorf("got %s", got)
		}
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("ran %d times", n)
	}
}

// TestNobodyWaits: a read ends with its asker's patience; a command with a key goes on
// to its end, and its answer is there for who asks again. What waited for its turn until
// its asker had gone is not begun.
func TestNobodyWaits(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	begunC, endedC, goOnC := make(chan struct{}, 100), make(chan string, 100), make(chan struct{})
	nc := observer(t, url)
	var begun atomic.Int64
	serve(t, control(t, url), "inc", func(ctx context.Context, kind string, _ []byte) ([]byte, error) {
		switch kind {
		case "read":
			<-ctx.Done()
			endedC <- fmt.Sprint(context.Cause(ctx))
			return nil, ctx.Err()
		case "late":
			begun.Add(1)
		case "later": // a busy machine may have taken it after its asker had gone
		default:
			begunC <- struct{}{}
			<-goOnC
			endedC <- fmt.Sprint(ctx.Err())
		}
		return []byte(`1`), nil
	})
	c := control(t, url)
	pinged(t, c, "inc")
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	if _, err := c.Request(short(), testWorker, "read", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	if got := <-endedC; got != "context deadline exceeded" {
		t.Errorf("the read's context: %s", got)
	}
	if _, err := c.Command(short(), testWorker, key(1, "stop", ""), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop: %v", err)
	}
	// All places are taken, so that what comes next waits for its turn.
	for i := range 63 {
		go c.Command(bounded(t), testWorker, key(1, "stop", strconv.Itoa(i)), nil)
	}
	for range 64 {
		<-begunC
	}
	if _, err := c.Request(short(), testWorker, "later", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("what has no place: %v", err)
	}
	// A millisecond from when the worker takes it, which is before it answers what comes next.
	const commands = "weir.default.w.w-1.command."
	if err := nc.Publish(commands+"late", []byte(`{"v":1,"id":"a","kind":"late","wait_ms":1}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.RequestWithContext(bounded(t), commands+"x", []byte(`{"v":2,"id":"b","kind":"x"}`)); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * time.Millisecond)
	close(goOnC)
	for range 64 {
		if got := <-endedC; got != "<nil>" {
			t.Errorf("the stop's context: %s", got)
		}
	}
	if got := command(t, c, key(1, "stop", "")); got != "1" {
		t.Errorf("asked again: %s", got)
	}
	if n := begun.Load(); n != 0 {
		t.Errorf("what nobody waited for was begun")
	}
}

// TestWaitTravels: a message says how long its sender waits, and each repetition how long
// from then on; a clock is in none of them (R10).
func TestWaitTravels(t *testing.T) {
	t.Parallel()
	url := startServer(t).URL()
	nc := observer(t, url)
	waitC := make(chan int64, 100)
	_, err := nc.Subscribe("weir.default.w.w-1.command.*", func(m *nats.Msg) {
		var msg struct {
			Wait int64 `json:"wait_ms"`
		}
		if err := json.Unmarshal(m.Data, &msg); err == nil {
			waitC <- msg.Wait
		}
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), transporttest.Patience)
	defer cancel()
	c, doneC := control(t, url), make(chan error, 1)
	go func() {
		_, err := c.Request(ctx, testWorker, "read", nil)
		doneC <- err
	}()
	first, second := <-waitC, <-waitC
	if most := transporttest.Patience.Milliseconds(); first > most || second > first-400 || second < 1 {
		t.Errorf("waits %d ms, then %d ms", first, second)
	}
	cancel()
	if err := <-doneC; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestCutOffAsks: what a cut takes away is sent again as soon as the connection is back,
// and runs once.
func TestCutOffAsks(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := transporttest.NewProxy(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())))
	inC, goOnC := make(chan struct{}, 10), make(chan struct{})
	var runs atomic.Int64
	serve(t, control(t, s.URL()), "inc", func(context.Context, string, []byte) ([]byte, error) {
		runs.Add(1)
		inC <- struct{}{}
		<-goOnC
		return []byte(`1`), nil
	})
	c := control(t, p.URL())
	pinged(t, control(t, s.URL()), "inc")
	doneC := make(chan error, 1)
	go func() {
		_, err := c.Command(bounded(t), testWorker, key(1, "deploy", ""), nil)
		doneC <- err
	}()
	<-inC
	p.Refuse()
	close(goOnC) // the answer is lost
	p.Accept()
	if err := <-doneC; err != nil || runs.Load() != 1 {
		t.Errorf("%v, ran %d times", err, runs.Load())
	}
}

// TestLargeHeartbeat: a heartbeat of a thousand tasks arrives as it was, however little a
// message may carry.
func TestLargeHeartbeat(t *testing.T) {
	t.Parallel()
	s, err := transport.StartServer(t.Context(), transport.ServerOptions{MaxPayload: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	var tasks []string
	for i := range 1000 {
		tasks = append(tasks, fmt.Sprintf(`{"task":{"chain":%d,"subtask":%d},"rows_in":%d,"rows_out":0,"busy":0.5,"blocked":0}`, i%10, i/10, i*1000))
	}
	beat := `{"tasks":[` + strings.Join(tasks, ",") + `]}`
	beatC := make(chan string, 1000)
	heard := control(t, s.URL())
	background(t, func(ctx context.Context) error {
		return heard.Heartbeats(ctx, func(body []byte) { beatC <- string(body) })
	})
	ctx := bounded(t)
	one, other := control(t, s.URL()), control(t, s.URL())
	for n := 0; n < 4; {
		for _, c := range []*transport.Control{one, other} { // their parts mix
			if err := c.Heartbeat(ctx, []byte(beat)); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case got := <-beatC:
			if got != beat {
				t.Fatalf("heard %d bytes, sent %d", len(got), len(beat))
			}
			n++
		case <-ctx.Done():
			t.Fatal("nothing heard")
		case <-time.After(10 * time.Millisecond): // not subscribed yet
		}
	}
}

// TestHandlerPanics: what panics is refused, and the process lives on.
func TestHandlerPanics(t *testing.T) {
	t.Parallel()
	c := control(t, startServer(t).URL())
	serve(t, c, "inc", func(_ context.Context, kind string, _ []byte) ([]byte, error) {
		if kind == "read" {
			panic("index out of range")
		}
		return []byte(`1`), nil
	})
	if _, err := c.Command(bounded(t), testWorker, weir.CommandKey{Kind: "read"}, nil); err == nil || !strings.Contains(err.Error(), "read failed: index out of range") {
		t.Errorf("%v", err)
	}
	if got := command(t, c, key(1, "stop", "")); got != "1" {
		t.Errorf("then %s", got)
	}
}
