package exec_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/exectest"
	"weir/planner/plan"
)

// A lab is one task with two inputs, whose senders the test is; it lives in a bubble,
// so that everything has come to rest when Wait returns.
type lab struct {
	t    *testing.T
	task *exec.Task
	ins  []weir.Outbound
	seen *recorder
	stop func()
	mu   struct {
		sync.Mutex
		acks []checkpoint.Ack
	}
}

func (l *lab) Ack(a checkpoint.Ack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.acks = append(l.mu.acks, a)
}
func (*lab) Ended(weir.TaskID)                              {}
func (*lab) Committed(weir.TaskID, weir.CheckpointID)       {}
func (l *lab) Failed(_ weir.TaskID, f weir.Failure, _ bool) { l.t.Errorf("failed: %+v", f) }

// A recorder is an operator that notes the rows it is given, and passes them on.
type recorder struct {
	mu struct {
		sync.Mutex
		rows []int64
	}
}

func (r *recorder) Process(b *batch.Batch, out exec.Collector) error {
	r.mu.Lock()
	for i := range b.Rows() {
		r.mu.rows = append(r.mu.rows, b.Columns[0].Ints[b.Row(i)])
	}
	r.mu.Unlock()
	return out.Emit(b)
}
func (*recorder) Flush(exec.Collector) error { return nil }
func (*recorder) End(exec.Collector) error   { return nil }
func (*recorder) Close() error               { return nil }

// newLab starts the task; with behind, it sends what it gets to a channel of so many
// frames that nobody reads.
func newLab(t *testing.T, mode checkpoint.Mode, behind int) *lab {
	t.Helper()
	return newLabAt(t, nil, mode, behind)
}

// newLabAt is newLab by a clock.
func newLabAt(t *testing.T, now func() time.Time, mode checkpoint.Mode, behind int) *lab {
	t.Helper()
	l := &lab{t: t, seen: &recorder{}}
	g := counting()
	g.Chains[0].Operators = g.Chains[0].Operators[:1]
	schema := g.Chains[0].Operators[0].Schema
	op := plan.Operator{ID: "rec", Name: "recorder", Kind: plan.Filter, Schema: schema}
	g.Chains[1] = plan.Chain{Operators: []plan.Operator{op}}
	if behind > 0 {
		op.ID = "behind"
		g.Chains = append(g.Chains, plan.Chain{Operators: []plan.Operator{op}})
		g.Edges = append(g.Edges, plan.Edge{From: 1, To: 2, Forward: true})
	}
	network, task := exectest.NewNetwork(stdcmp.Or(behind, 8), false), weir.TaskID{Chain: 1}
	tasks, err := exec.Build(context.Background(), exec.BuildConfig{
		Job: "job_00000000000000000000000000000001", Worker: "w1", Graph: g, Parallelism: 2, Mode: mode, Tasks: []weir.TaskID{task},
		Network: network, Blobs: blob.NewMemory(), Reporter: l, Logger: slog.New(slog.DiscardHandler), Options: exec.Options{Now: now},
		Openers: exec.Openers{Operator: func(context.Context, exec.Setup) (exec.Operator, error) { return l.seen, nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	for from := range 2 {
		out, _, _ := network.Outbound(weir.ChannelID{Edge: 0, From: weir.TaskID{Subtask: from}, To: task}, nil)
		l.ins = append(l.ins, out)
	}
	if behind > 0 {
		to := weir.ChannelID{Edge: 1, From: task, To: weir.TaskID{Chain: 2}}
		if _, err := network.Inbound(to, make(chan struct{}, 1)); err != nil {
			t.Fatal(err)
		}
	}
	l.task = tasks[0]
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := l.task.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
	})
	l.stop = func() { cancel(); running.Wait() }
	return l
}

// send sends frames over channel ch: rows by their numbers, barriers as -checkpoint.
func (l *lab) send(ch int, numbers ...int64) {
	l.t.Helper()
	for _, n := range numbers {
		f := weir.Frame{Kind: weir.FrameBarrier, Value: -n}
		if n > 0 {
			columns := []plan.Column{{Name: "n", Type: bigint}, {Name: "s", Type: text}}
			b := batch.New(exec.Layout(columns), 1)
			b.Columns[0].AppendInt(n)
			b.Columns[1].AppendString("")
			b.EndRow(batch.Insert)
			f = weir.Frame{Kind: weir.FrameRecords, Batch: b}
		}
		if err := l.ins[ch].Send(context.Background(), f); err != nil {
			l.t.Fatal(err)
		}
	}
	synctest.Wait()
}

// expect compares the rows that were processed and the checkpoints acknowledged so far.
func (l *lab) expect(what string, rows []int64, acks ...weir.CheckpointID) {
	l.t.Helper()
	l.seen.mu.Lock()
	defer l.seen.mu.Unlock()
	if !slices.Equal(l.seen.mu.rows, rows) {
		l.t.Errorf("%s: processed %v, want %v", what, l.seen.mu.rows, rows)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var got []weir.CheckpointID
	for _, a := range l.mu.acks {
		got = append(got, a.Checkpoint)
	}
	if !slices.Equal(got, acks) {
		l.t.Errorf("%s: acknowledged %v, want %v", what, got, acks)
	}
}

// Exactly-once: what follows a barrier waits until the others have come, then is taken
// in its order.
func TestExactlyOnceHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", 0)
		defer l.stop()
		l.send(0, 1, -1, 2, 3, -2, 4)
		l.send(1, 11)
		l.expect("before the last barrier", []int64{1, 11})
		l.send(1, -1)
		l.expect("behind it", []int64{1, 11, 2, 3}, 1)
		l.send(1, 12, -2)
		l.expect("behind the next", []int64{1, 11, 2, 3, 12, 4}, 1, 2)
	})
}

// At-least-once holds nothing, whatever is missing.
func TestAtLeastOnceNeverHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, checkpoint.AtLeastOnce, 0)
		defer l.stop()
		l.send(0, 1, -1, 2, 3, -2, 4)
		l.expect("before any other barrier", []int64{1, 2, 3, 4})
		l.send(1, 11, -1, 12)
		l.expect("after the first", []int64{1, 2, 3, 4, 11, 12}, 1)
		l.send(1, -2)
		l.expect("after the second", []int64{1, 2, 3, 4, 11, 12}, 1, 2)
	})
}

// An ack says where the time went and whose barrier was the last.
func TestTiming(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", 0)
		defer l.stop()
		begun := time.Now()
		barrier := func(ch int, after time.Duration) {
			<-time.After(after)
			f := weir.Frame{Kind: weir.FrameBarrier, Value: 1}
			f.Bytes = make([]byte, 17)
			for i, us := 7, uint64(begun.UnixMicro()); i >= 0; i, us = i-1, us>>8 {
				f.Bytes[i] = byte(us)
			}
			if err := l.ins[ch].Send(context.Background(), f); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		barrier(1, 300*time.Millisecond)
		barrier(0, 2*time.Second)
		want := checkpoint.Timing{StartDelayMS: 300, AlignmentMS: 2000, LastInput: &weir.TaskID{Chain: 0, Subtask: 0}}
		if diff := cmp.Diff(want, l.mu.acks[0].Timing); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Progress: which barriers are missing, and what a task is at that cannot answer itself.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", 1)
		defer l.stop()
		check := func(id weir.CheckpointID, want string) {
			t.Helper()
			p := l.task.Progress(id)
			got := fmt.Sprintf("%s for %.0fs missing %v busy %.2f back-pressured %.2f %s", p.Stage, p.SinceMS/1000, p.Missing, p.Busy, p.BackPressured, p.Doing)
			if got = strings.TrimSpace(got); got != want {
				t.Errorf("checkpoint %d: %s\nwant %s", id, got, want)
			}
		}
		second := func(n int) {
			for range n {
				<-time.After(time.Second)
				l.task.Stats()
			}
		}
		second(2)
		check(1, "waiting for 0s missing [0/0 0/1] busy 0.00 back-pressured 0.00")
		l.send(1, -1)
		check(1, "aligning for 0s missing [0/0] busy 0.00 back-pressured 0.00")
		check(2, "waiting for 0s missing [0/0 0/1] busy 0.00 back-pressured 0.00")
		l.send(0, 5, -1) // the row fills the channel behind, the barrier waits
		second(30)
		check(1, "cutting for 30s missing [] busy 0.00 back-pressured 1.00 waiting for room in the channel to task 2/0")
		check(2, "waiting for 0s missing [0/0 0/1] busy 0.00 back-pressured 1.00 waiting for room in the channel to task 2/0")
	})
}

// A newer barrier abandons an alignment, which says so.
func TestProgressOfAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "", 0)
		defer l.stop()
		l.send(0, -1)
		l.send(1, -2)
		l.send(0, -2)
		l.expect("of the newer one", nil, 2)
		if p := l.task.Progress(1); p.Stage != checkpoint.StageWaiting || p.Doing != "none: the barrier of checkpoint 2 came first" {
			t.Errorf("%+v", p)
		}
		if p := l.task.Progress(2); p.Stage != checkpoint.StageDone {
			t.Errorf("%+v", p)
		}
	})
}
