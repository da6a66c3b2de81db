package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
	"weir/exec/op"
	"weir/planner/plan"
)

// A desk is the network of one source task in a bubble: it notes when what goes to whom,
// and its readers are busy as the test says.
type desk struct {
	begun time.Time
	mu    struct {
		sync.Mutex
		log  []string
		busy map[weir.TaskID]bool
		wall map[weir.TaskID]chan struct{} // Send waits until it is closed
	}
}

func (d *desk) Inbound(weir.ChannelID, chan<- struct{}) (weir.Inbound, error) {
	return nil, weir.ErrNotFound
}

func (d *desk) Outbound(id weir.ChannelID, _ func(error)) (weir.Outbound, bool, error) {
	return &sending{d, id.To}, true, nil
}

type sending struct {
	desk *desk
	to   weir.TaskID
}

func (s *sending) Idle() bool {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	return !s.desk.mu.busy[s.to]
}

func (s *sending) Send(ctx context.Context, f weir.Frame) error {
	s.desk.mu.Lock()
	wall := s.desk.mu.wall[s.to]
	s.desk.mu.Unlock()
	if wall != nil {
		select {
		case <-wall:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	what := f.Kind.String()
	if b, ok := f.Batch.(*batch.Batch); ok {
		what = fmt.Sprintf("%d rows", b.Rows())
	}
	s.desk.mu.log = append(s.desk.mu.log, fmt.Sprintf("%v %v: %s", time.Since(s.desk.begun), s.to, what))
	return nil
}

func (s *sending) Close() error { return nil }

// set makes readers busy or not.
func (d *desk) set(busy bool, subtasks ...int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range subtasks {
		d.mu.busy[weir.TaskID{Chain: 1, Subtask: s}] = busy
	}
}

// A pulse is a source whose batches, of the numbers 0 to 29, come at given times; or one
// after another, each of which takes as long as work says.
type pulse struct {
	begun time.Time
	at    []time.Duration
	work  time.Duration
}

func (p *pulse) Next(context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	poll := exec.Wait
	switch {
	case p.work > 0 && time.Since(p.begun) < 119*time.Millisecond:
		<-time.After(p.work)
		poll = exec.More
	case p.work > 0 || len(p.at) == 0:
		return nil, exec.Wait, p.begun.Add(time.Hour), nil
	default:
		if next := p.begun.Add(p.at[0]); time.Now().Before(next) {
			return nil, exec.Wait, next, nil
		}
		p.at = p.at[1:]
	}
	columns := []plan.Column{{Name: "n", Type: bigint}, {Name: "s", Type: text}}
	b := batch.New(exec.Layout(columns), 30)
	for i := range 30 {
		b.Columns[0].AppendInt(int64(i))
		b.Columns[1].AppendString("")
		b.EndRow(batch.Insert)
	}
	return b, poll, time.Time{}, nil
}

func (*pulse) Snapshot(weir.CheckpointID) ([]json.RawMessage, error) { return nil, nil }
func (*pulse) Close() error                                          { return nil }

// run has the task work for d's time. Its rows go by key to the two subtasks of chain 1;
// with also, to the one of chain 2 too.
func (d *desk) run(t *testing.T, target string, p *pulse, aggregate, also bool, script func(task *exec.Task)) string {
	t.Helper()
	d.begun = time.Now()
	p.begun = d.begun
	d.mu.busy = map[weir.TaskID]bool{}
	d.mu.wall = map[weir.TaskID]chan struct{}{}
	g := counting()
	g.LatencyTarget = target
	if !aggregate {
		g.Chains[0].Operators = g.Chains[0].Operators[:1]
	}
	if also {
		g.Chains = append(g.Chains, plan.Chain{Operators: g.Chains[1].Operators, Single: true})
		g.Edges = append(g.Edges, plan.Edge{From: 0, To: 2})
	}
	tasks, err := exec.Build(context.Background(), exec.BuildConfig{
		Job: "job_00000000000000000000000000000001", Worker: "w1", Graph: g, Parallelism: 2, Tasks: []weir.TaskID{{}},
		Network: d, Blobs: blob.NewMemory(), Reporter: &lab{t: t}, Logger: slog.New(slog.DiscardHandler),
		Openers: exec.Openers{Source: func(context.Context, exec.Setup) (exec.Source, error) { return p, nil }, Operator: op.Open},
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
	script(tasks[0])
	<-time.After(time.Until(d.begun.Add(200 * time.Millisecond)))
	cancel()
	running.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.mu.log, "\n")
}

func at(ms ...float64) *pulse {
	p := &pulse{}
	for _, m := range ms {
		p.at = append(p.at, time.Duration(m*float64(time.Millisecond)))
	}
	return p
}

// TestFlush: when rows leave, by what the task and its readers have to do.
func TestFlush(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	after := func(d time.Duration, do func()) { <-time.After(d); do() }
	nothing := func(*desk, *exec.Task) {}
	for _, test := range []struct {
		name   string
		target string
		source *pulse
		rows   bool // no aggregate
		also   bool // a second edge
		script func(d *desk, task *exec.Task)
		want   []string
	}{
		{
			name: "at once while nobody has anything else to do", source: at(5, 20, 20.5), script: nothing,
			want: []string{
				"5ms 1/0: 16 rows", "5ms 1/1: 14 rows", "20ms 1/0: 16 rows", "20ms 1/1: 14 rows",
				"21ms 1/0: 16 rows", "21ms 1/1: 14 rows",
			},
		},
		{
			name: "partial aggregates wait for a busy reader and become one", source: at(5, 6, 7),
			script: func(d *desk, _ *exec.Task) { d.set(true, 1); after(20*ms, func() { d.set(false, 1) }) },
			want:   []string{"22ms 1/0: 16 rows", "22ms 1/1: 14 rows"},
		},
		{
			name: "up to the target", source: at(5, 30), script: func(d *desk, _ *exec.Task) { d.set(true, 0, 1) },
			want: []string{"55ms 1/0: 16 rows", "55ms 1/1: 14 rows"},
		},
		{
			name: "up to another target", target: "8ms", source: at(5, 30), script: func(d *desk, _ *exec.Task) { d.set(true, 0, 1) },
			want: []string{"13ms 1/0: 16 rows", "13ms 1/1: 14 rows", "38ms 1/0: 16 rows", "38ms 1/1: 14 rows"},
		},
		{
			name: "rows go to the quick reader, a slow one has company", rows: true, source: at(5, 10), script: func(d *desk, _ *exec.Task) { d.set(true, 0) },
			want: []string{"5ms 1/1: 14 rows", "10ms 1/1: 14 rows", "55ms 1/0: 32 rows"},
		},
		{
			name: "nobody waits for another one's credit", source: at(5), script: func(d *desk, _ *exec.Task) {
				wall := make(chan struct{})
				d.mu.Lock()
				d.mu.wall[weir.TaskID{Chain: 1}] = wall
				d.mu.Unlock()
				d.set(true, 0)
				after(90*ms, func() { close(wall) })
			},
			want: []string{"55ms 1/1: 14 rows", "90ms 1/0: 16 rows"},
		},
		{
			name: "no target, no wait", target: "0s", source: at(5, 5, 6), script: func(d *desk, _ *exec.Task) { d.set(true, 0, 1) },
			want: []string{"5ms 1/0: 16 rows", "5ms 1/1: 14 rows", "5ms 1/0: 16 rows", "5ms 1/1: 14 rows", "6ms 1/0: 16 rows", "6ms 1/1: 14 rows"},
		},
		{
			name: "a task without rest aggregates up to the target", source: &pulse{work: 2 * ms}, script: nothing,
			want: []string{"52ms 1/0: 16 rows", "52ms 1/1: 14 rows", "104ms 1/0: 16 rows", "104ms 1/1: 14 rows", "120ms 1/0: 16 rows", "120ms 1/1: 14 rows"},
		},
		{
			name: "partial aggregates lie before the barrier on every edge", source: at(5), also: true,
			script: func(d *desk, task *exec.Task) {
				d.set(true, 0, 1)
				after(8*ms, func() {
					if err := task.Trigger(checkpoint.Trigger{Checkpoint: 1}); err != nil {
						t.Error(err)
					}
				})
			},
			want: []string{"8ms 2/0: 30 rows", "8ms 1/0: 16 rows", "8ms 1/1: 14 rows", "8ms 1/0: barrier", "8ms 1/1: barrier", "8ms 2/0: barrier"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &desk{}
				got := d.run(t, test.target, test.source, !test.rows, test.also, func(task *exec.Task) { test.script(d, task) })
				if diff := cmp.Diff(strings.Join(test.want, "\n"), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}
