package exec_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/exectest"
	"weir/planner/plan"
)

// twoSources is counting over two tables.
func twoSources() *plan.Graph {
	g := counting()
	more := []plan.Operator{g.Chains[0].Operators[0], g.Chains[0].Operators[1]}
	more[0].ID, more[0].Name, more[1].ID = "src2", "source(more)", "local2"
	g.Chains = []plan.Chain{g.Chains[0], {Operators: more}, g.Chains[1]}
	g.Edges = []plan.Edge{{From: 0, To: 2, Keys: []int{0, 1}}, {From: 1, To: 2, Keys: []int{0, 1}}}
	return g
}

// opener opens each of two sources by itself.
type opener = func(context.Context, exec.Setup) (exec.Source, error)

func openEither(first, second opener) opener {
	return func(ctx context.Context, s exec.Setup) (exec.Source, error) {
		if s.Operator.ID == "src" {
			return first(ctx, s)
		}
		return second(ctx, s)
	}
}

// counted ends a job and gives the count of each key.
func counted(t *testing.T, j *exectest.Job) map[int]int {
	t.Helper()
	if _, err := j.Finish(); err != nil {
		t.Fatal(err)
	}
	page, err := j.Read(exec.Query{})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[int]int{}
	for _, r := range page.Rows {
		var row struct{ N, C int }
		if err := json.Unmarshal(r.JSON, &row); err != nil {
			t.Fatal(err)
		}
		counts[row.N] += row.C
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return counts
}

// TestC01FinishedSource: when one source has finished, checkpoints go on; restored from
// one, the finished source is not read again, and the totals are exact.
func TestC01FinishedSource(t *testing.T) {
	t.Parallel()
	const short, long = 600, 3000
	stepper := &exectest.Stepper{}
	c := exectest.Config{Graph: twoSources(), Parallelism: 2, Blobs: blob.NewMemory()}
	c.Openers.Source = openEither(exectest.Numbers(short, 64, word), stepper.Open(exectest.Numbers(long, 64, word)))
	j := exectest.Start(t, c)
	for after := 0; after < 3; { // checkpoints since the short one has finished
		stepper.Allow(1)
		s, err := j.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		if s.Tasks[weir.TaskID{Subtask: 0}].Ended && s.Tasks[weir.TaskID{Subtask: 1}].Ended {
			after++
		}
		c.From = s
	}
	stepper.Allow(2)
	j.Kill()
	want := map[int]int{}
	for n := range long {
		want[n] = 1
		if n < short {
			want[n] = 2
		}
	}
	stepper.Allow(1 << 30)
	for i, parallelism := range []int{2, 3, 1} {
		c.Parallelism, c.Attempt = parallelism, int64(i+2)
		j := exectest.Start(t, c)
		if diff := cmp.Diff(want, counted(t, j)); diff != "" {
			t.Errorf("parallelism %d (-want +got):\n%s", parallelism, diff)
		}
		for _, s := range j.Stats() {
			if s.Task.Chain == 0 && s.RowsIn > 0 {
				t.Errorf("task %v has read %d rows again", s.Task, s.RowsIn)
			}
		}
	}
}

// TestC02EmptyCheckpoints: two checkpoints without a row between, of a filter and of a
// GROUP BY, into each kind of sink: both complete and are small, and a job that is
// restored from the second gives the whole answer.
func TestC02EmptyCheckpoints(t *testing.T) {
	t.Parallel()
	const input = `-- file out/.none
-- file t.json
--|{"k":1}
--|{"k":2}
--|{"k":1}
CREATE TABLE t (k BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.json', 'format' = 'json');
CREATE TABLE hole (k BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE holes (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE file (k BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out', 'format' = 'csv');
CREATE TABLE files (k BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out', 'format' = 'csv');
`
	for _, test := range []struct{ query, want string }{
		{"SELECT k FROM t WHERE k = 1", "{\"k\":1}\n{\"k\":1}\n"},
		{"SELECT k, COUNT(*) AS n FROM t GROUP BY k", "{\"k\":1,\"n\":2}\n{\"k\":2,\"n\":1}\n"},
		{"INSERT INTO hole SELECT k FROM t WHERE k = 1", ""},
		{"INSERT INTO holes SELECT k, COUNT(*) AS n FROM t GROUP BY k", ""},
		{"INSERT INTO file SELECT k FROM t WHERE k = 1", "1\n1\n"},
		{"INSERT INTO files SELECT k, COUNT(*) AS n FROM t GROUP BY k", "1,2\n2,1\n"},
	} {
		t.Run(test.query, func(t *testing.T) {
			t.Parallel()
			s, err := (&query{script: input + test.query + ";"}).site(t)
			if err != nil {
				t.Fatal(err)
			}
			job := exectest.Start(t, s.config(2, nil, &exectest.Stepper{}, 0))
			var last *exectest.Snapshot
			for range 2 {
				if last, err = job.Checkpoint(); err != nil {
					t.Fatal(err)
				}
				size := int64(0)
				for _, a := range job.Acks(last.ID) {
					size += a.Timing.TotalBytes
				}
				if size > 1024 {
					t.Errorf("checkpoint %d of nothing takes %d bytes", last.ID, size)
				}
			}
			job.Kill()
			c := s.config(3, last, &exectest.Stepper{}, 1<<30)
			c.Attempt = 2
			if got := s.finish(t, exectest.Start(t, c)); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// An away is a source whose outside goes away after a batch, until it is back.
type away struct {
	exec.Source
	back    *atomic.Bool
	emitted bool
}

func (s *away) Next(ctx context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	if s.emitted && !s.back.Load() {
		return nil, exec.Wait, time.Now().Add(time.Millisecond), nil
	}
	s.emitted = true
	return s.Source.Next(ctx)
}

// TestC31SourceAway: while the outside of one source is away, checkpoints complete with
// its last position, and the other source goes on.
func TestC31SourceAway(t *testing.T) {
	t.Parallel()
	const n = 2000
	var back atomic.Bool
	stepper := &exectest.Stepper{}
	numbers := exectest.Numbers(n, 64, word)
	c := exectest.Config{Graph: twoSources(), Parallelism: 2, Blobs: blob.NewMemory()}
	c.Openers.Source = openEither(func(ctx context.Context, s exec.Setup) (exec.Source, error) {
		src, err := numbers(ctx, s)
		return &away{Source: src, back: &back}, err
	}, stepper.Open(numbers))
	j := exectest.Start(t, c)
	var before, read string
	for i := 0; i < 5; {
		stepper.Allow(1)
		s, err := j.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		position := func(chain int) (text string) {
			for subtask := range 2 {
				text += fmt.Sprintf("%s", s.Tasks[weir.TaskID{Chain: chain, Subtask: subtask}].Operators[0].List)
			}
			return text
		}
		if now := position(0); now != before {
			before, i = now, 0 // it has read its batch since
			continue
		}
		if now := position(1); now != read {
			read = now
			i++
		}
	}
	back.Store(true)
	stepper.Allow(1 << 30)
	want := map[int]int{}
	for i := range n {
		want[i] = 2
	}
	if diff := cmp.Diff(want, counted(t, j)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A topic is a table of four partitions that holds so many rows now and in all; row i is
// the i/4th of partition i mod 4 and has the key i mod 1000.
type topic struct {
	now atomic.Int64
	all int64
}

type partitions struct {
	topic *topic
	pool  *batch.Pool
	at    []partition
}

type partition struct {
	Partition int64 `json:"partition"`
	Offset    int64 `json:"offset"`
}

func (p *topic) open(_ context.Context, s exec.Setup) (exec.Source, error) {
	src := &partitions{topic: p, pool: batch.NewPool(exec.Layout(s.Operator.Schema), 100)}
	offsets := map[int64]int64{}
	for _, item := range s.List {
		var at partition
		if err := json.Unmarshal(item, &at); err != nil {
			return nil, err
		}
		if _, twice := offsets[at.Partition]; twice {
			return nil, fmt.Errorf("partition %d is there twice", at.Partition)
		}
		offsets[at.Partition] = at.Offset
	}
	for n := s.Subtask; n < 4; n += s.Parallelism {
		src.at = append(src.at, partition{int64(n), offsets[int64(n)]})
	}
	return src, nil
}

func (s *partitions) Next(context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	b, done, now := s.pool.Get(), true, s.topic.now.Load()
	for i := range s.at {
		for at := &s.at[i]; ; at.Offset++ {
			row := at.Offset*4 + at.Partition
			done = done && row >= s.topic.all
			if row >= now || b.Len == 100 {
				break
			}
			b.Columns[0].AppendInt(row % 1000)
			b.Columns[1].AppendString("")
			b.EndRow(batch.Insert)
		}
	}
	if b.Len > 0 {
		return b, exec.More, time.Time{}, nil
	}
	b.Release()
	if done {
		return nil, exec.Done, time.Time{}, nil
	}
	return nil, exec.Wait, time.Now().Add(time.Millisecond), nil
}

func (s *partitions) Snapshot(weir.CheckpointID) (items []json.RawMessage, err error) {
	for _, at := range s.at {
		item, err := json.Marshal(at)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func (*partitions) Close() error { return nil }

// TestC13Rescale: 1000 keys of ten rows each at parallelism 2, restored at 1, 3, 4 and 7,
// five more rows of each: every key counts 15, and no partition is read twice or skipped.
func TestC13Rescale(t *testing.T) {
	t.Parallel()
	rows := &topic{all: 15_000}
	rows.now.Store(10_000)
	c := exectest.Config{Graph: counting(), Parallelism: 2, Blobs: blob.NewMemory(), Openers: exec.Openers{Source: rows.open}}
	j := exectest.Start(t, c)
	for read := int64(0); read < 10_000; {
		s, err := j.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		read = 0
		for subtask := range 2 {
			for _, item := range s.Tasks[weir.TaskID{Subtask: subtask}].Operators[0].List {
				var at partition
				if err := json.Unmarshal(item, &at); err != nil {
					t.Fatal(err)
				}
				read += at.Offset
			}
		}
		c.From = s
	}
	j.Kill()
	rows.now.Store(rows.all)
	want := map[int]int{}
	for key := range 1000 {
		want[key] = 15
	}
	for i, parallelism := range []int{1, 3, 4, 7} {
		c.Parallelism, c.Attempt = parallelism, int64(i+2)
		if diff := cmp.Diff(want, counted(t, exectest.Start(t, c))); diff != "" {
			t.Errorf("parallelism %d (-want +got):\n%s", parallelism, diff)
		}
	}
}
