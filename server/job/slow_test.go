package job

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/deploy"
	"weir/exec/exectest"
	"weir/exec/op"
	reading "weir/exec/source"
	"weir/planner"
	"weir/planner/plan"
)

// A slow operator takes a time for each batch.
type slow struct {
	exec.Operator
	takes time.Duration
}

func (s *slow) Process(b *batch.Batch, out exec.Collector) error {
	<-time.After(s.takes)
	return s.Operator.Process(b, out)
}

// A slowSource takes a time for each batch.
type slowSource struct {
	exec.Source
	takes time.Duration
}

func (s *slowSource) Next(ctx context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	<-time.After(s.takes)
	return s.Source.Next(ctx)
}

// TestSlow: of a job that runs, in which one part takes its time and nothing else any, that
// part is named, and what was counted is what was read.
func TestSlow(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	every := func(d time.Duration) [2]time.Duration { return [2]time.Duration{d, d} }
	for name, test := range map[string]struct {
		takes map[plan.OperatorKind][2]time.Duration // by subtask
		want  string
	}{
		"result":    {map[plan.OperatorKind][2]time.Duration{plan.Source: every(ms / 10), plan.Result: every(20 * ms)}, "result of 0"},
		"source":    {map[plan.OperatorKind][2]time.Duration{plan.Source: every(20 * ms)}, "source of 0"},
		"aggregate": {map[plan.OperatorKind][2]time.Duration{plan.Source: every(ms), plan.LocalAggregate: every(9 * ms)}, "local_aggregate of 0"},
		"skew":      {map[plan.OperatorKind][2]time.Duration{plan.Source: every(ms / 10), plan.GlobalAggregate: {0, 30 * ms}}, "global_aggregate of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, err := planner.Plan(`CREATE TABLE g (k BIGINT) WITH ('connector' = 'datagen', 'fields.k.kind' = 'sequence');
					SELECT k, COUNT(*) + 1 AS n FROM g GROUP BY k`, nil, planner.Options{})
				if err != nil {
					t.Fatal(err)
				}
				j := exectest.Start(t, exectest.Config{Graph: p.Graph, Parallelism: 2, Blobs: blob.NewMemory(), Openers: exec.Openers{
					Source: func(ctx context.Context, s exec.Setup) (exec.Source, error) {
						of, err := reading.Open(ctx, s)
						return &slowSource{of, test.takes[plan.Source][s.Subtask]}, err
					},
					Operator: func(ctx context.Context, s exec.Setup) (exec.Operator, error) {
						of, err := op.Open(ctx, s)
						if takes := test.takes[s.Operator.Kind][s.Subtask]; takes > 0 {
							of = &slow{of, takes}
						}
						return of, err
					},
				}})
				r := ratesFor(p.Graph)
				<-time.After(500 * ms)
				before := j.Stats()
				<-time.After(2 * time.Second)
				for i, s := range j.Stats() {
					now := tell(s)
					r.add(now).rate(tell(before[i]), now, 0)
				}
				r.Bottleneck = r.bottleneck(p.Graph)
				if r.Bottleneck == nil {
					t.Fatalf("nothing is slow: %+v", r.Chains)
				}
				kind := p.Graph.Chains[r.Bottleneck.Chain].Operators[r.Bottleneck.Operator].Kind
				if got := fmt.Sprintf("%s of %d", kind, r.Bottleneck.Subtask); got != test.want || r.Bottleneck.Busy < 0.7 {
					t.Errorf("%s, %.2f of its time, want %s: %+v", got, r.Bottleneck.Busy, test.want, r.Chains)
				}
				var read, passed int64
				for i, s := range j.Stats() {
					if s.Task.Chain == 0 {
						read += s.RowsIn - before[i].RowsIn
					}
				}
				first := r.Chains[0].Operators
				passed = first[1].RowsIn
				if off := math.Abs(first[0].RowsInPerSecond*2 - float64(read)); off > 0.01*float64(read) || read == 0 || r.Chains[0].RowsIn-passed > 2*batch.Target {
					t.Errorf("%v rows/s for 2 s, %d were read, %d passed on", first[0].RowsInPerSecond, read, passed)
				}
			})
		})
	}
}

// tell says of a task what its worker would.
func tell(s exec.Stats) deploy.TaskStats {
	t := deploy.TaskStats{Task: s.Task, RowsIn: s.RowsIn, RowsOut: s.RowsOut, Age: s.Age.Microseconds(), Waited: s.Waited.Microseconds(), Blocked: s.Blocked.Microseconds()}
	for _, o := range s.Operators {
		t.Operators = append(t.Operators, deploy.OperatorStats{RowsIn: o.RowsIn, BytesIn: o.BytesIn, Busy: o.Busy.Microseconds()})
	}
	return t
}
