package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/planner/plan"
)

// A worker is an operator, or the source, whose calls take known times.
type worker struct {
	takes func(call int) time.Duration
	flush time.Duration
	calls int
	rows  int // per batch; the source's

	took time.Duration
}

func (w *worker) work(d time.Duration) {
	<-time.After(d)
	w.took += d
}

func (w *worker) Next(context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	b := batch.New([]batch.Physical{batch.Ints, batch.Strings}, w.rows)
	for i := range w.rows {
		b.Columns[0].AppendInt(int64(i))
		b.Columns[1].AppendString("four")
		b.EndRow(batch.Insert)
	}
	w.calls++
	w.work(w.takes(w.calls))
	return b, exec.More, time.Time{}, nil
}

func (w *worker) Process(b *batch.Batch, out exec.Collector) error {
	w.calls++
	w.work(w.takes(w.calls))
	return out.Emit(b)
}

func (w *worker) Flush(exec.Collector) error { w.work(w.flush); return nil }
func (w *worker) End(exec.Collector) error   { return nil }
func (w *worker) Close() error               { return nil }
func (w *worker) Snapshot(weir.CheckpointID) ([]json.RawMessage, error) {
	return nil, nil
}

// TestMeter: what a task says of its operators is how long each has worked, whether all
// of its rounds are timed or few, and adds up to what the task has worked; rows and bytes are
// what passed.
func TestMeter(t *testing.T) {
	t.Parallel()
	const us, ms = time.Microsecond, time.Millisecond
	always := func(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }
	for name, test := range map[string]struct {
		source, first, last *worker
		off                 float64 // of the task's time, at most
	}{
		"long rounds":             {&worker{takes: always(2 * ms)}, &worker{takes: always(5 * ms)}, &worker{takes: always(ms)}, 0.001},
		"short rounds":            {&worker{takes: always(20 * us)}, &worker{takes: always(5 * us)}, &worker{takes: always(50 * us), flush: ms}, 0.02},
		"a block for a few":       {&worker{takes: func(n int) time.Duration { return 2*us + time.Duration(1-min(n%8, 1))*180*us }}, &worker{takes: always(20 * us)}, &worker{takes: always(4 * us)}, 0.06},
		"it is slow from a while": {&worker{takes: always(20 * us)}, &worker{takes: always(us)}, &worker{takes: func(n int) time.Duration { return time.Duration(1+n/10000*500) * 10 * us }}, 0.03},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				test.source.rows = 30
				task, stop := start(t, test.source, test.first, test.last)
				for range 5 {
					<-time.After(300*ms + 77*us)
					task.Stats()
				}
				stop()
				s := task.Stats()
				busy := s.Age - s.Waited - s.Blocked
				sum := time.Duration(0)
				for i, w := range []*worker{test.source, test.first, test.last} {
					o := s.Operators[i]
					sum += o.Busy
					if off := math.Abs((o.Busy - w.took).Seconds()); off > test.off*busy.Seconds() {
						t.Errorf("operator %d was at work for %v, says %v", i, w.took, o.Busy)
					}
				}
				if off := sum - busy; off > us || off < -us || busy < 1500*ms {
					t.Errorf("its operators have worked %v, it has %v", sum, busy)
				}
				passed, weigh := int64(30*test.last.calls), int64(8+4+4)
				read, first, last := s.Operators[0], s.Operators[1], s.Operators[2]
				if last.RowsIn != passed || last.BytesIn != passed*weigh || first.RowsOut != last.RowsIn || first.BytesOut != last.BytesIn ||
					read.RowsIn != s.RowsIn || read.BytesIn != s.BytesIn || read.RowsIn < passed || last.RowsOut != s.RowsOut || last.BytesOut != s.BytesOut {
					t.Errorf("of %d rows: %+v", passed, s.Operators)
				}
			})
		})
	}
}

// TestMeterWaits: who waits for room, or for rows, works not.
func TestMeterWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, checkpoint.ExactlyOnce, 1)
		defer l.stop()
		<-time.After(5 * time.Second)
		l.send(1, -1)
		l.send(0, 5, -1) // the row fills the channel behind, the barrier waits
		<-time.After(5 * time.Second)
		s := l.task.Stats()
		if o := s.Operators[0]; o.Busy > 10*time.Millisecond || s.Waited < 4900*time.Millisecond || s.Blocked < 4900*time.Millisecond {
			t.Errorf("busy %v, waited %v, blocked %v", o.Busy, s.Waited, s.Blocked)
		}
	})
}

// start runs a source task whose rows go over a channel that takes them all.
func start(t *testing.T, source, first, last *worker) (task *exec.Task, stop func()) {
	t.Helper()
	g := counting()
	schema := g.Chains[0].Operators[0].Schema
	g.Chains[0].Operators = append(g.Chains[0].Operators[:1], plan.Operator{ID: "first", Kind: plan.Filter, Schema: schema}, plan.Operator{ID: "last", Kind: plan.Filter, Schema: schema})
	d := &desk{begun: time.Now()}
	operators := map[weir.OperatorID]*worker{"first": first, "last": last}
	tasks, err := exec.Build(context.Background(), exec.BuildConfig{
		Job: "job_00000000000000000000000000000001", Worker: "w1", Graph: g, Parallelism: 2, Tasks: []weir.TaskID{{}},
		Network: d, Blobs: blob.NewMemory(), Reporter: &lab{t: t}, Logger: slog.New(slog.DiscardHandler),
		Openers: exec.Openers{
			Source:   func(context.Context, exec.Setup) (exec.Source, error) { return source, nil },
			Operator: func(_ context.Context, s exec.Setup) (exec.Operator, error) { return operators[s.Operator.ID], nil },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := tasks[0].Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
	})
	return tasks[0], func() { cancel(); running.Wait() }
}
