package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/batch"
	"weir/planner/expr"
	"weir/planner/plan"
	"weir/transport"
)

// near are few enough batches that they stay in the cache.
func near(s *site) []*batch.Batch { return s.rows()[:min(16, len(s.rows()))] }

// hashes make the hash of keys.
func hashes() (all []stage) {
	for _, h := range []struct {
		name string
		keys []int
	}{{"number", []int{user}}, {"text", []int{behavior}}, {"number and text", []int{user, behavior}}} {
		all = append(all, stage{h.name, func(s *site) *body {
			rows, into := near(s), make([]uint64, batch.Target)
			once := func() {
				for range passes {
					for _, b := range rows {
						batch.HashRows(b, h.keys, into)
					}
				}
			}
			return timed(passes*len(rows)*batch.Target, 0, once, func() {
				once()
				last, groups := rows[len(rows)-1], map[uint64]string{}
				for r := range last.Len { // equal keys, equal hashes; and no others here
					key := string(batch.EncodeKey(nil, last, h.keys, r))
					if had, ok := groups[into[r]]; ok && had != key {
						s.Fatalf("two keys have the hash %x", into[r])
					}
					groups[into[r]] = key
				}
			})
		}})
	}
	return all
}

// wires are what travels: a key and its partial count.
var wires = []struct {
	name    string
	columns []int
}{{"two numbers", []int{user, one}}, {"text and number", []int{behavior, one}}}

// partitions run a task that hands rows to others of the same process by their key.
func partitions() (all []stage) {
	all = append(all, stage{"two numbers to 1", func(s *site) *body { return routing(s, wires[0].columns, 1) }})
	for _, w := range wires {
		for _, targets := range []int{2, 8} {
			all = append(all, stage{fmt.Sprintf("%s to %d", w.name, targets), func(s *site) *body { return routing(s, w.columns, targets) }})
		}
	}
	return all
}

// routing runs a source's task with an edge by the first column. The source has its batches
// there: what counts is the task's loop and its output.
func routing(s *site, columns []int, targets int) *body {
	rows := s.rows()
	r, next := &router{}, inTurn(rows, columns)
	schema := make([]plan.Column, len(columns))
	for i, kind := range kindsOf(rows[0], columns) {
		schema[i].Type = expr.Type{Kind: expr.BigInt}
		if kind == batch.Strings {
			schema[i].Type = expr.Type{Kind: expr.String}
		}
	}
	c := exec.BuildConfig{
		Job: "job_00000000000000000000000000000001", Attempt: weir.AttemptID{Number: 1, Tag: "00000001"}, Worker: "w1",
		Graph: &plan.Graph{
			Version: plan.Version, MaxParallelism: weir.DefaultMaxParallelism, Bounded: true,
			Chains: []plan.Chain{{Operators: []plan.Operator{{ID: "rows", Kind: plan.Source, Schema: schema}}}, {}},
			Edges:  []plan.Edge{{From: 0, To: 1, Keys: []int{0}}},
		},
		Parallelism: targets, Tasks: []weir.TaskID{{}}, Network: r, Blobs: blob.NewMemory(), Reporter: r,
		Openers: exec.Openers{Source: func(context.Context, exec.Setup) (exec.Source, error) { return r, nil }},
		Logger:  slog.New(slog.DiscardHandler),
	}
	once := func() time.Duration {
		r.batches, r.given = next.take(len(rows), r.batches), 0
		began := processorTime()
		tasks, err := exec.Build(context.Background(), c)
		s.must(err)
		r.task = tasks[0]
		s.must(r.task.Run(context.Background()))
		return processorTime() - began
	}
	return &body{rows: len(rows) * batch.Target, once: once, check: func() {
		var sum uint64
		for _, b := range rows {
			sum += digest(b, columns)
		}
		r.see = func(to int, b *batch.Batch) {
			for i, h := range hashed(b, []int{0}) {
				if owner := weir.SubtaskOf(weir.KeyGroupOf(h, weir.DefaultMaxParallelism), targets, weir.DefaultMaxParallelism); owner != to {
					s.Fatalf("row %d went to %d, not to %d", i, to, owner)
				}
			}
			sum -= digest(b, upTo(len(columns)))
		}
		once()
		if r.see = nil; sum != 0 {
			s.Error("other rows came out than went in")
		}
	}}
}

// A router is all that a task has to do with: its source, its targets and who hears of it.
type router struct {
	batches []*batch.Batch
	given   int
	task    *exec.Task
	see     func(to int, b *batch.Batch) // nil: nobody looks
}

// Next implements exec.Source.
func (r *router) Next(context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	if r.given == len(r.batches) {
		return nil, exec.Done, time.Time{}, nil
	}
	r.given++
	return r.batches[r.given-1], exec.More, time.Time{}, nil
}

// Snapshot implements exec.Source.
func (r *router) Snapshot(weir.CheckpointID) ([]json.RawMessage, error) { return nil, nil }

// Close implements exec.Source.
func (r *router) Close() error { return nil }

// Inbound implements exec.Network.
func (r *router) Inbound(weir.ChannelID, chan<- struct{}) (weir.Inbound, error) { return nil, nil }

// Outbound implements exec.Network.
func (r *router) Outbound(id weir.ChannelID, _ func(error)) (weir.Outbound, bool, error) {
	return &receiver{r, id.To.Subtask}, true, nil
}

// Ack implements exec.Reporter.
func (r *router) Ack(checkpoint.Ack) {}

// Ended implements exec.Reporter: the task may go.
func (r *router) Ended(weir.TaskID) { r.task.Close() }

// Committed implements exec.Reporter.
func (r *router) Committed(weir.TaskID, weir.CheckpointID) {}

// Failed implements exec.Reporter: Run says it too.
func (r *router) Failed(weir.TaskID, weir.Failure, bool) {}

// A receiver takes all rows at once, and never lacks any, so that its batches get full.
type receiver struct {
	r  *router
	to int
}

// Send implements weir.Outbound.
func (t *receiver) Send(_ context.Context, f weir.Frame) error {
	if b, ok := f.Batch.(*batch.Batch); ok {
		if t.r.see != nil {
			t.r.see(t.to, b)
		}
		b.Release()
	}
	return nil
}

// Idle implements weir.Outbound.
func (t *receiver) Idle() bool { return false }

// Close implements weir.Outbound.
func (t *receiver) Close() error { return nil }

// batchesOf copies columns of the near batches.
func batchesOf(s *site, columns []int) (all []*batch.Batch) {
	next := inTurn(near(s), columns)
	for range near(s) {
		all = append(all, next())
	}
	return all
}

// frames are the near batches in their wire form.
func frames(s *site, columns []int) (all [][]byte, size int) {
	for _, b := range batchesOf(s, columns) {
		all = append(all, batch.Append(nil, b))
		size += len(all[len(all)-1])
	}
	return all, size
}

// encodes make frames, one after the other in the same memory, as an output does.
func encodes() (all []stage) {
	for _, w := range wires {
		all = append(all, stage{w.name, func(s *site) *body {
			rows := batchesOf(s, w.columns)
			_, size := frames(s, w.columns)
			var data []byte
			once := func() {
				for _, b := range rows {
					data = batch.Append(data[:0], b)
				}
			}
			return timed(len(rows)*batch.Target, size, once, func() {
				once()
				back := &batch.Batch{}
				if s.must(batch.Decode(data, back)); !back.Equal(rows[len(rows)-1]) {
					s.Error("the frame holds other rows")
				}
			})
		}})
	}
	return all
}

// decodes make batches of frames, as a gate does.
func decodes() (all []stage) {
	for _, w := range wires {
		all = append(all, stage{w.name, func(s *site) *body {
			rows := batchesOf(s, w.columns)
			data, size := frames(s, w.columns)
			pool := batch.NewPool(batch.KindsOf(rows[0]), batch.Target)
			e := &end{}
			once := func() {
				for _, d := range data {
					b := pool.Get()
					s.must(batch.Decode(d, b))
					s.must(e.Emit(b))
				}
			}
			return timed(len(rows)*batch.Target, size, once, func() {
				n := 0
				e.see = func(b *batch.Batch) {
					if !b.Equal(rows[n]) {
						s.Errorf("frame %d holds other rows", n)
					}
					n++
				}
				once()
				if e.see = nil; n != len(rows) {
					s.Errorf("%d frames of %d", n, len(rows))
				}
			})
		}})
	}
	return all
}

// sends put frames of two numbers through a channel: within a process, and over NATS, whose
// server runs in this process too.
func sends() []stage {
	return []stage{
		{"within", func(s *site) *body { return sending(s, "") }},
		{"nats", func(s *site) *body {
			server, err := transport.StartServer(context.Background(), transport.ServerOptions{})
			s.must(err)
			s.Cleanup(server.Stop)
			return sending(s, server.URL())
		}},
	}
}

// sending sends frames on one goroutine and takes them on another.
func sending(s *site, url string) *body {
	ctx, local := context.Background(), url == ""
	job, attempt := weir.JobID("job_00000000000000000000000000000001"), weir.AttemptID{Number: 1, Tag: "00000001"}
	id := weir.ChannelID{To: weir.TaskID{Chain: 1}}
	n := s.network(url)
	out, err := n.Outbound(job, attempt, id, local, nil)
	s.must(err)
	wakeC := make(chan struct{}, 1)
	if !local {
		n = s.network(url)
	}
	in, err := n.Inbound(job, attempt, id, local, wakeC)
	s.must(err)
	data, size := frames(s, wires[0].columns)
	got := 0
	once := func() {
		sentC := make(chan error, 1)
		go func() { sentC <- sendAll(ctx, out, data) }()
		for waiting := passes * len(data); waiting > 0; {
			f, ok, err := in.Poll()
			if s.must(err); !ok {
				<-wakeC
				continue
			}
			got += len(f.Bytes)
			waiting--
		}
		s.must(<-sentC)
	}
	return timed(passes*len(data)*batch.Target, passes*size, once, func() {
		if once(); got != passes*size {
			s.Errorf("%d bytes of %d arrived", got, passes*size)
		}
	})
}

// sendAll sends the frames as often as batches pass.
func sendAll(ctx context.Context, out weir.Outbound, data [][]byte) error {
	for range passes {
		for _, d := range data {
			if err := out.Send(ctx, weir.Frame{Kind: weir.FrameRecords, Bytes: d, Size: len(d)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// network connects to a server, or to none, until the stage ends.
func (s *site) network(url string) *transport.Network {
	n, err := transport.OpenNetwork(context.Background(), transport.Options{URL: url, Name: "stage"})
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ranC := make(chan error, 1)
	go func() { ranC <- n.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		s.must(<-ranC)
	})
	return n
}
