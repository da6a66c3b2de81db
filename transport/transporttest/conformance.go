package transporttest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"weir"
	"weir/transport"
)

// Patience bounds every wait for something that has to happen.
const Patience = 30 * time.Second

// soon bounds the wait for something that must not happen.
const soon = 60 * time.Millisecond

// A Setup gives the networks of a sending and a receiving process, which run; for
// local channels they are one.
type Setup struct {
	Local bool
	Open  func(t *testing.T) (from, to *transport.Network)
}

// Run runs the suite.
func Run(t *testing.T, s Setup) {
	for name, test := range map[string]func(*testing.T, Setup){
		"order of all kinds":             testOrder,
		"sender first":                   testSenderFirst,
		"no credit, no Send":             testBackPressure,
		"held channel holds up no other": testHeld,
		"cancelled Send loses nothing":   testCancel,
		"released while sending":         testRelease,
		"closed for sending":             testClose,
		"ends are taken once":            testTaken,
		"attempts are apart":             testAttempts,
		"wide fan-in":                    testFanIn,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// A Line is one channel with both ends, opened in the given order.
type Line struct {
	Job     weir.JobID
	Attempt weir.AttemptID
	Out     weir.Outbound
	In      weir.Inbound
	WakeC   chan struct{}
}

// Channel is the channel that Open opens.
func Channel() weir.ChannelID {
	return weir.ChannelID{Edge: 1, From: weir.TaskID{Chain: 0, Subtask: 3}, To: weir.TaskID{Chain: 1, Subtask: 2}}
}

// Open opens a channel of a fresh attempt.
func Open(t testing.TB, from, to *transport.Network, local bool) *Line {
	t.Helper()
	l := &Line{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1), WakeC: make(chan struct{}, 1)}
	l.In = l.OpenIn(t, to, local)
	l.Out = l.OpenOut(t, from, local)
	return l
}

// OpenOut opens the sending end.
func (l *Line) OpenOut(t testing.TB, from *transport.Network, local bool) weir.Outbound {
	t.Helper()
	out, err := from.Outbound(l.Job, l.Attempt, Channel(), local, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// OpenIn opens the receiving end.
func (l *Line) OpenIn(t testing.TB, to *transport.Network, local bool) weir.Inbound {
	t.Helper()
	in, err := to.Inbound(l.Job, l.Attempt, Channel(), local, l.WakeC)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// FanIn names the channels from n tasks to one.
func FanIn(n int, to weir.TaskID) []weir.ChannelID {
	chs := make([]weir.ChannelID, n)
	for i := range chs {
		chs[i] = weir.ChannelID{From: weir.TaskID{Subtask: i}, To: to}
	}
	return chs
}

// OpenIns opens the receiving ends of the channels of one task.
func OpenIns(t testing.TB, to *transport.Network, job weir.JobID, attempt weir.AttemptID, chs []weir.ChannelID, local bool, wakeC chan<- struct{}) []weir.Inbound {
	t.Helper()
	ins := make([]weir.Inbound, len(chs))
	for i, ch := range chs {
		var err error
		if ins[i], err = to.Inbound(job, attempt, ch, local, wakeC); err != nil {
			t.Fatal(err)
		}
	}
	return ins
}

// Records is a frame of records that carries n in a payload of size bytes.
func Records(n, size int, local bool) weir.Frame {
	f := weir.Frame{Kind: weir.FrameRecords, Value: int64(n), Size: size}
	if local {
		f.Batch = n
		return f
	}
	f.Bytes = make([]byte, size)
	for i := range f.Bytes {
		f.Bytes[i] = byte(n + i)
	}
	return f
}

// Check fails the test unless f is what Records gives.
func Check(t testing.TB, f weir.Frame, n, size int, local bool) {
	t.Helper()
	if f.Kind != weir.FrameRecords || f.Value != int64(n) || f.Size != size {
		t.Fatalf("got %v value %d size %d, want records %d of %d", f.Kind, f.Value, f.Size, n, size)
	}
	if local && f.Batch != any(n) {
		t.Fatalf("frame %d carries batch %v", n, f.Batch)
	}
	for i, b := range f.Bytes {
		if b != byte(n+i) {
			t.Fatalf("frame %d: byte %d is %d", n, i, b)
		}
	}
}

// Next waits for the next frame.
func (l *Line) Next(t testing.TB) weir.Frame {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for {
		f, ok, err := l.In.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			return f
		}
		select {
		case <-l.WakeC:
		case <-ctx.Done():
			t.Fatal("no frame came")
		}
	}
}

// Send sends f, with a bound.
func (l *Line) Send(t testing.TB, f weir.Frame) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := l.Out.Send(ctx, f); err != nil {
		t.Fatalf("send: %v", err)
	}
}

// fill sends until a Send blocks and returns how many frames went out.
func (l *Line) fill(t *testing.T, first, size int, local bool) int {
	t.Helper()
	for n := 0; ; n++ {
		patience := soon
		if n == 0 {
			patience = Patience
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := l.Out.Send(ctx, Records(first+n, size, local))
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && n > 0 {
			return n
		}
		if err != nil {
			t.Fatalf("send %d: %v", n, err)
		}
		if n > 1000 {
			t.Fatal("Send never blocks")
		}
	}
}

func testOrder(t *testing.T, s Setup) {
	from, to := s.Open(t)
	l := Open(t, from, to, s.Local)
	frames := []weir.Frame{
		Records(0, 100, s.Local),
		{Kind: weir.FrameWatermark, Value: -5},
		Records(1, 40_000, s.Local),
		{Kind: weir.FrameIdle},
		{Kind: weir.FrameBarrier, Value: 17},
		{Kind: weir.FrameEnd},
		{Kind: weir.FrameBarrier, Value: 18},
		{Kind: weir.FrameClose},
	}
	for _, f := range frames {
		l.Send(t, f)
	}
	for i, want := range frames {
		got := l.Next(t)
		if got.Kind != want.Kind || got.Value != want.Value || got.Size != want.Size || string(got.Bytes) != string(want.Bytes) || got.Batch != want.Batch {
			t.Fatalf("frame %d: got %v %d, want %v %d", i, got.Kind, got.Value, want.Kind, want.Value)
		}
	}
	if f, more, err := l.In.Poll(); more || err != nil {
		t.Fatalf("one frame too many: %v, %v", f.Kind, err)
	}
}

func testSenderFirst(t *testing.T, s Setup) {
	from, to := s.Open(t)
	l := &Line{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1), WakeC: make(chan struct{}, 1)}
	l.Out = l.OpenOut(t, from, s.Local)
	sentC := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		sentC <- l.Out.Send(ctx, Records(0, 10, s.Local))
	}()
	l.In = l.OpenIn(t, to, s.Local)
	Check(t, l.Next(t), 0, 10, s.Local)
	if err := <-sentC; err != nil {
		t.Fatal(err)
	}
}

func testBackPressure(t *testing.T, s Setup) {
	from, to := s.Open(t)
	l := Open(t, from, to, s.Local)
	const size = 20_000
	sent := l.fill(t, 0, size, s.Local)
	if bytes := sent * size; bytes > 9<<20 {
		t.Fatalf("%d bytes were taken without a reader", bytes)
	}
	for n := range sent {
		Check(t, l.Next(t), n, size, s.Local)
	}
	l.Send(t, Records(sent, size, s.Local)) // reading has granted credit
	Check(t, l.Next(t), sent, size, s.Local)
}

func testHeld(t *testing.T, s Setup) {
	from, to := s.Open(t)
	held := &Line{Job: weir.NewJobID(), Attempt: weir.NewAttemptID(1), WakeC: make(chan struct{}, 1)}
	free := *held
	second := Channel()
	second.Edge++
	held.In = held.OpenIn(t, to, s.Local)
	var err error
	if free.In, err = to.Inbound(held.Job, held.Attempt, second, s.Local, held.WakeC); err != nil {
		t.Fatal(err)
	}
	held.Out = held.OpenOut(t, from, s.Local)
	if free.Out, err = from.Outbound(held.Job, held.Attempt, second, s.Local, nil); err != nil {
		t.Fatal(err)
	}
	const size = 20_000
	sent := held.fill(t, 0, size, s.Local)
	for n := range 200 {
		free.Send(t, Records(n, size, s.Local))
		Check(t, free.Next(t), n, size, s.Local)
	}
	for n := range sent {
		Check(t, held.Next(t), n, size, s.Local)
	}
}

func testCancel(t *testing.T, s Setup) {
	from, to := s.Open(t)
	l := Open(t, from, to, s.Local)
	const size = 50_000
	sent := l.fill(t, 0, size, s.Local) // its last Send was cancelled
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Out.Send(ended, Records(0, size, s.Local)); !errors.Is(err, context.Canceled) {
		t.Fatalf("ended context: %v", err)
	}
	for n := range sent {
		Check(t, l.Next(t), n, size, s.Local)
	}
	l.Send(t, Records(sent, size, s.Local))
	Check(t, l.Next(t), sent, size, s.Local)
}

func testRelease(t *testing.T, s Setup) {
	from, to := s.Open(t)
	l := Open(t, from, to, s.Local)
	l.fill(t, 0, 50_000, s.Local)
	blockedC := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		blockedC <- l.Out.Send(ctx, Records(0, 50_000, s.Local))
	}()
	from.Release(l.Job, l.Attempt)
	to.Release(l.Job, l.Attempt) // twice, where it is one network
	if err := <-blockedC; !errors.Is(err, weir.ErrStale) {
		t.Fatalf("blocked Send: %v", err)
	}
	if err := l.Out.Send(context.Background(), Records(0, 1, s.Local)); !errors.Is(err, weir.ErrStale) {
		t.Fatalf("later Send: %v", err)
	}
	if _, more, err := l.In.Poll(); more || err != nil {
		t.Fatal(err, "a frame of a released attempt")
	}
	if _, err := from.Outbound(l.Job, l.Attempt, Channel(), s.Local, nil); !errors.Is(err, weir.ErrStale) {
		t.Fatalf("opened again: %v", err)
	}
}

func testClose(t *testing.T, s Setup) {
	from, to := s.Open(t)
	l := Open(t, from, to, s.Local)
	l.Send(t, Records(0, 10, s.Local))
	l.Send(t, weir.Frame{Kind: weir.FrameClose})
	if err := l.Out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Out.Send(context.Background(), Records(1, 10, s.Local)); !errors.Is(err, weir.ErrConflict) {
		t.Fatalf("Send after Close: %v", err)
	}
	Check(t, l.Next(t), 0, 10, s.Local) // what was sent still arrives
	if f := l.Next(t); f.Kind != weir.FrameClose {
		t.Fatalf("got %v", f.Kind)
	}
}

func testTaken(t *testing.T, s Setup) {
	from, to := s.Open(t)
	l := Open(t, from, to, s.Local)
	if _, err := from.Outbound(l.Job, l.Attempt, Channel(), s.Local, nil); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("sending end: %v", err)
	}
	_, err := to.Inbound(l.Job, l.Attempt, Channel(), s.Local, l.WakeC)
	if !errors.Is(err, weir.ErrConflict) {
		t.Errorf("receiving end: %v", err)
	}
	_, err = to.Inbound(l.Job, l.Attempt, Channel(), s.Local, make(chan struct{}))
	if !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("wake-up channel without capacity: %v", err)
	}
}

// testAttempts: two attempts of one job use the same channel at once.
func testAttempts(t *testing.T, s Setup) {
	from, to := s.Open(t)
	older := Open(t, from, to, s.Local)
	newer := &Line{Job: older.Job, Attempt: weir.NewAttemptID(2), WakeC: make(chan struct{}, 1)}
	newer.In = newer.OpenIn(t, to, s.Local)
	newer.Out = newer.OpenOut(t, from, s.Local)
	older.Send(t, Records(1, 10, s.Local))
	newer.Send(t, Records(2, 10, s.Local))
	Check(t, newer.Next(t), 2, 10, s.Local)
	Check(t, older.Next(t), 1, 10, s.Local)
	from.Release(older.Job, older.Attempt)
	to.Release(older.Job, older.Attempt)
	newer.Send(t, Records(3, 10, s.Local))
	Check(t, newer.Next(t), 3, 10, s.Local)
}

// testFanIn: many senders, one reader, one wake-up channel.
func testFanIn(t *testing.T, s Setup) {
	from, to := s.Open(t)
	const senders, frames, size = 16, 300, 3000
	job, attempt, wakeC := weir.NewJobID(), weir.NewAttemptID(1), make(chan struct{}, 1)
	chs := FanIn(senders, weir.TaskID{Chain: 1})
	ins := OpenIns(t, to, job, attempt, chs, s.Local, wakeC)
	errC := make(chan error, senders)
	for _, ch := range chs {
		go func() { errC <- sendAll(from, job, attempt, ch, s.Local, frames, size) }()
	}
	ReadAll(t, ins, wakeC, frames, size, s.Local)
	for range senders {
		if err := <-errC; err != nil {
			t.Fatal(err)
		}
	}
}

func sendAll(n *transport.Network, job weir.JobID, attempt weir.AttemptID, ch weir.ChannelID, local bool, frames, size int) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	out, err := n.Outbound(job, attempt, ch, local, nil)
	if err != nil {
		return err
	}
	for i := range frames {
		if err := out.Send(ctx, Records(i, size, local)); err != nil {
			return fmt.Errorf("%v: frame %d: %w", ch, i, err)
		}
	}
	return out.Close()
}

// ReadAll reads the frames 0 … frames-1 of every input, in order, each once.
func ReadAll(t testing.TB, ins []weir.Inbound, wakeC <-chan struct{}, frames, size int, local bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*Patience)
	defer cancel()
	next := make([]int, len(ins))
	for left := frames * len(ins); left > 0; {
		idle := true
		for i, in := range ins {
			f, ok, err := in.Poll()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				continue
			}
			idle = false
			Check(t, f, next[i], size, local)
			next[i]++
			left--
		}
		if !idle {
			continue
		}
		select {
		case <-wakeC:
		case <-ctx.Done():
			t.Fatalf("%d frames are missing; read %v", left, next)
		}
	}
}
