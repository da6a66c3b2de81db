package exec_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/exectest"
	"weir/exec/op"
	"weir/exec/state"
	"weir/planner/expr"
	"weir/planner/plan"
)

var (
	bigint = expr.Type{Kind: expr.BigInt}
	text   = expr.Type{Kind: expr.String}
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counting is the plan of SELECT n, text, COUNT(*) … GROUP BY n, text over numbers.
func counting() *plan.Graph {
	in := []plan.Column{{Name: "n", Type: bigint}, {Name: "s", Type: text}}
	out := append(append([]plan.Column{}, in...), plan.Column{Name: "c", Type: bigint})
	aggs := []expr.Aggregate{{Func: expr.CountStar, Arg: -1, Type: bigint, Text: "count(*)"}}
	global := []expr.Aggregate{{Func: expr.CountStar, Arg: 2, Type: bigint, Text: "count(*)"}}
	return &plan.Graph{
		Version: plan.Version, MaxParallelism: 32, Bounded: true, Result: out,
		Chains: []plan.Chain{
			{Operators: []plan.Operator{
				{ID: "src", Name: "source(numbers)", Kind: plan.Source, Schema: in, Source: &plan.SourceSpec{}},
				{ID: "local", Name: "local_aggregate(n)", Kind: plan.LocalAggregate, Schema: out, Aggregate: &plan.AggregateSpec{Keys: []int{0, 1}, Aggregates: aggs}},
			}},
			{Operators: []plan.Operator{
				{ID: "agg", Name: "global_aggregate(n)", Kind: plan.GlobalAggregate, Schema: out, Aggregate: &plan.AggregateSpec{Keys: []int{0, 1}, Aggregates: global}},
				{ID: "result", Name: "result", Kind: plan.Result, Schema: out, Result: &plan.ResultSpec{Keys: []int{0, 1}, Show: []int{0, 1, 2}}},
			}},
		},
		Edges: []plan.Edge{{From: 0, To: 1, Keys: []int{0, 1}}},
	}
}

func word(i int) string { return strings.Repeat("w", i%5) }

func config(n int) exectest.Config {
	return exectest.Config{
		Graph: counting(), Parallelism: 2, Blobs: blob.NewMemory(),
		Openers: exec.Openers{Source: exectest.Numbers(n, 64, word)},
	}
}

// finish gives the number of groups and the sum of their counts.
func finish(t *testing.T, j *exectest.Job) (groups, rows int) {
	t.Helper()
	if _, err := j.Finish(); err != nil {
		t.Fatal(err)
	}
	page, err := j.Read(exec.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Rows {
		if strings.HasSuffix(string(r.JSON), `"c":1}`) {
			rows++
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return len(page.Rows), rows
}

func TestRestoreAtAnyParallelism(t *testing.T) {
	t.Parallel()
	for _, encode := range []bool{false, true} {
		c := config(3000)
		c.Encode = encode
		stepper := &exectest.Stepper{}
		c.Openers.Source = stepper.Open(c.Openers.Source)
		moved(t, &c, stepper, 1, 2, 3, 1, 5, 4)
		if groups, rows := finish(t, exectest.Start(t, c)); groups != 3000 || rows != 3000 {
			t.Errorf("encode=%v: %d groups, %d of them counted once", encode, groups, rows)
		}
	}
}

// moved runs a job at one parallelism after the other, each killed after two checkpoints with so many
// steps before it, and leaves in c what goes on from the last one, without end to its steps.
func moved(t *testing.T, c *exectest.Config, stepper *exectest.Stepper, steps int, parallelism ...int) {
	t.Helper()
	for i, n := range parallelism {
		c.Parallelism, c.Attempt = n, int64(i+1)
		j := exectest.Start(t, *c)
		for range 2 {
			stepper.Allow(steps)
			s, err := j.Checkpoint()
			if err != nil {
				t.Fatal(err)
			}
			c.From = s
		}
		j.Kill()
	}
	stepper.Allow(1 << 30)
}

// A job restored from its final checkpoint repeats nothing and ends again.
func TestRestoredAsEnded(t *testing.T) {
	t.Parallel()
	c := config(100)
	c.Graph.Chains[1].Operators[0].Aggregate.Final = true
	j := exectest.Start(t, c)
	s, err := j.Finish()
	if err != nil {
		t.Fatal(err)
	}
	j.Kill()
	for _, n := range []int{1, 3} {
		c.From, c.Parallelism = s, n
		if groups, rows := finish(t, exectest.Start(t, c)); groups != 100 || rows != 100 {
			t.Errorf("parallelism %d: %d groups, %d of them counted once", n, groups, rows)
		}
	}
	for id, task := range s.Tasks {
		if !task.Ended {
			t.Errorf("task %v: the final snapshot does not say ended", id)
		}
	}
}

// broken is an operator that fails as it is told.
type broken struct {
	exec.Operator
	process func(b *batch.Batch) error
}

func (o *broken) Process(b *batch.Batch, out exec.Collector) error {
	if err := o.process(b); err != nil {
		return err
	}
	return o.Operator.Process(b, out)
}

// breaking opens operators, of which the one of kind does what process says.
func breaking(kind plan.OperatorKind, process func(b *batch.Batch) error) func(context.Context, exec.Setup) (exec.Operator, error) {
	return func(ctx context.Context, s exec.Setup) (exec.Operator, error) {
		o, err := op.Open(ctx, s)
		if err != nil || s.Operator.Kind != kind {
			return o, err
		}
		return &broken{o, process}, nil
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	zero := 0
	type outcome struct {
		Failure weir.Failure
		Restart bool
	}
	fail := func(reason, operator, message string, restart bool) outcome {
		return outcome{weir.Failure{Reason: reason, Operator: weir.OperatorID(operator), Subtask: &zero, Worker: "w1", Message: message}, restart}
	}
	for _, test := range []struct {
		name    string
		kind    plan.OperatorKind
		process func(b *batch.Batch) error
		want    outcome
	}{
		{
			"error", plan.GlobalAggregate, func(*batch.Batch) error { return errors.New("disk full") },
			fail("operator", "agg", "global_aggregate(n): disk full", true),
		},
		{
			"panic", plan.LocalAggregate, func(*batch.Batch) error { panic("index out of range") },
			fail("panic", "local", "local_aggregate(n): panic: index out of range", true),
		},
		{
			"row error", plan.Result, func(*batch.Batch) error {
				return &exec.RowError{Table: "s", Path: "a.csv", Line: 7, Column: "v", Reason: "no number"}
			},
			fail("row_error", "result", "result: table s: a.csv:7: column v: no number", false),
		},
		{
			"value error", plan.GlobalAggregate, func(*batch.Batch) error { return &exec.ValueError{Column: "sum(v)", Reason: "too large"} },
			fail("row_error", "agg", "global_aggregate(n): column sum(v): too large", false),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := config(10)
			c.Parallelism = 1
			c.Openers.Operator = breaking(test.kind, test.process)
			j := exectest.Start(t, c)
			if _, err := j.Finish(); err == nil {
				t.Fatal("the job did not fail")
			}
			f, restart := j.Failure()
			if diff := cmp.Diff(test.want, outcome{*f, restart}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A row that no frame can carry is refused by name, on local channels too.
func TestRowTooLarge(t *testing.T) {
	t.Parallel()
	for _, encode := range []bool{false, true} {
		c := config(10)
		c.Encode = encode
		c.Openers.Source = exectest.Numbers(10, 4, func(i int) string { return strings.Repeat("x", i*40_000) })
		j := exectest.Start(t, c)
		_, err := j.Finish()
		f, restart := j.Failure()
		if err == nil || f == nil || f.Reason != exec.ReasonRow || restart || !strings.Contains(f.Message, "more than the 261120 that a frame carries") {
			t.Errorf("encode=%v: %v, %+v restart=%v", encode, err, f, restart)
		}
	}
}

// Batches too large for a frame travel in several.
func TestLargeBatchesAreSplit(t *testing.T) {
	t.Parallel()
	for _, encode := range []bool{false, true} {
		c := config(150)
		c.Encode = encode
		c.Openers.Source = exectest.Numbers(150, 150, func(i int) string { return strings.Repeat("x", i*400) })
		if groups, rows := finish(t, exectest.Start(t, c)); groups != 150 || rows != 150 {
			t.Errorf("encode=%v: %d groups, %d of them counted once", encode, groups, rows)
		}
	}
}

// A snapshot that cannot be stored is declined, and the job goes on.
func TestUploadFails(t *testing.T) {
	t.Parallel()
	c := config(20_000)
	c.Blobs = blob.NewFaulty(blob.NewMemory(), blob.FailTimes(1, "Put", "", blob.Fault{Before: errors.New("storage is away")}))
	j := exectest.Start(t, c)
	_, err := j.Finish()
	if err == nil || !strings.Contains(err.Error(), "storage is away") || !strings.Contains(err.Error(), checkpoint.ReasonDeclined) {
		t.Fatalf("checkpoint: %v", err)
	}
	if groups, rows := finish(t, j); groups != 20_000 || rows != 20_000 {
		t.Errorf("%d groups, %d of them counted once", groups, rows)
	}
}

// A storage is one that breaks an invariant.
type storage struct{ blob.Store }

func (storage) Put(context.Context, string, io.Reader) error { panic("out of order") }

// A broken invariant off the loop fails the task, not the worker.
func TestUploadPanics(t *testing.T) {
	t.Parallel()
	c := config(20_000)
	c.Blobs = storage{blob.NewMemory()}
	j := exectest.Start(t, c)
	if _, err := j.Finish(); err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("checkpoint: %v", err)
	}
	waitFor(t, func() bool { f, _ := j.Failure(); return f != nil }) // who declines fails a moment later
	j.Abandon()
	if f, restart := j.Failure(); f == nil || f.Reason != exec.ReasonPanic || !restart {
		t.Errorf("failure: %+v, restart %v", f, restart)
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	c := config(50)
	j := exectest.Start(t, c)
	if _, err := j.Finish(); err != nil {
		t.Fatal(err)
	}
	var got []string
	q := exec.Query{Limit: 20, OrderBy: []exec.Order{{Column: "S", Desc: true}, {Column: "n"}}}
	for {
		page, err := j.Read(q)
		if err != nil || page.Total != 50 {
			t.Fatalf("total %d: %v", page.Total, err)
		}
		for _, r := range page.Rows {
			got = append(got, string(r.JSON))
		}
		if !page.More {
			break
		}
		q.After = page.Rows[len(page.Rows)-1].Sort
	}
	if len(got) != 50 || got[0] != `{"n":4,"s":"wwww","c":1}` || got[1] != `{"n":9,"s":"wwww","c":1}` || got[49] != `{"n":45,"s":"","c":1}` {
		t.Errorf("%d rows: %v", len(got), got)
	}
	if _, err := j.Read(exec.Query{OrderBy: []exec.Order{{Column: "x"}}}); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("order by a column that is not there: %v", err)
	}
	for _, s := range j.Stats() {
		if !s.Ended || s.RowsIn == 0 || len(s.Operators) != 2 || s.Busy+s.Idle+s.BackPressured < 0.99 {
			t.Errorf("stats %+v", s)
		}
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// A result is read from a snapshot as it was, whatever the job does since.
func TestReadSnapshot(t *testing.T) {
	t.Parallel()
	c := config(5000)
	c.Parallelism = 3
	j := exectest.Start(t, c)
	s, err := j.Finish()
	if err != nil {
		t.Fatal(err)
	}
	q := exec.Query{Limit: 100, OrderBy: []exec.Order{{Column: "n", Desc: true}}}
	live, err := j.Read(q)
	if err != nil {
		t.Fatal(err)
	}
	j.Kill()
	var handles []checkpoint.Handle
	for _, task := range s.Tasks {
		for _, o := range task.Operators {
			if o.Operator == "result" {
				handles = append(handles, o.Keyed...)
			}
		}
	}
	store := state.New(state.Options{MaxParallelism: c.Graph.MaxParallelism})
	if _, err := store.Restore(context.Background(), c.Blobs, handles); err != nil {
		t.Fatal(err)
	}
	chain := c.Graph.Chains[1].Operators
	stored, err := op.OpenStored(chain[1], nil, chain[0].Schema, store)
	if err != nil {
		t.Fatal(err)
	}
	page, err := stored.Read(q)
	if err != nil {
		t.Fatal(err)
	}
	live.Version = 0 // of the attempt
	if diff := cmp.Diff(live, page); diff != "" || len(page.Rows) != 100 || page.Total != 5000 {
		t.Errorf("(-live +snapshot):\n%s", diff)
	}
}

// S19: rows are never lost at the end of input, with checkpoints all the way.
func TestEndLosesNothing(t *testing.T) {
	t.Parallel()
	for range rounds() {
		for _, parallelism := range []int{1, 4} {
			c := config(10_007)
			c.Parallelism = parallelism
			c.Capacity = 1
			j := exectest.Start(t, c)
			for range 3 {
				if _, err := j.Checkpoint(); err != nil {
					t.Fatal(err)
				}
			}
			if groups, rows := finish(t, j); groups != 10_007 || rows != 10_007 {
				t.Fatalf("parallelism %d: %d groups, %d of them counted once", parallelism, groups, rows)
			}
		}
	}
}

// released is a network whose attempt is released while tasks send.
type released struct{ *exectest.Network }

func (n released) Outbound(weir.ChannelID, func(error)) (weir.Outbound, bool, error) {
	return n, true, nil
}

func (released) Send(context.Context, weir.Frame) error {
	return fmt.Errorf("its attempt was released: %w", weir.ErrStale)
}
func (released) Idle() bool   { return true }
func (released) Close() error { return nil }

func TestStaleEndsQuietly(t *testing.T) {
	t.Parallel()
	c := config(10)
	tasks, err := exec.Build(context.Background(), exec.BuildConfig{
		Job: "job_00000000000000000000000000000001", Graph: c.Graph, Parallelism: 1, Tasks: []weir.TaskID{{}}, Blobs: c.Blobs,
		Network: released{exectest.NewNetwork(1, false)}, Openers: exec.Openers{Source: c.Openers.Source, Operator: op.Open}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tasks[0].Run(context.Background()); !errors.Is(err, weir.ErrStale) {
		t.Errorf("run: %v", err)
	}
}
