package checkpoint_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/checkpoint/checkpointtest"
	"weir/planner/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var fence = weir.Fence{Job: "job_00000000000000000000000000000001", Attempt: weir.AttemptID{Number: 1, Tag: "aaaaaaaa"}, Term: 1}

func graph(sink bool) plan.Graph {
	last := plan.Operator{ID: "result_1", Name: "result", Kind: plan.Result}
	if sink {
		last = plan.Operator{ID: "sink_out", Name: "sink(out)", Kind: plan.Sink}
	}
	return plan.Graph{Version: 1, MaxParallelism: 8, Chains: []plan.Chain{
		{Operators: []plan.Operator{{ID: "source_in", Name: "source(in)", Kind: plan.Source}}},
		{Operators: []plan.Operator{{ID: "global_k", Name: "global_aggregate(k)", Kind: plan.GlobalAggregate}, last}},
	}}
}

// A rig is a runner with everything around it in memory. It lives in a synctest bubble.
type rig struct {
	t      *testing.T
	cfg    checkpoint.Config
	store  *checkpointtest.Store
	blobs  *blob.Memory
	faulty *blob.Faulty
	tasks  *checkpointtest.Tasks
	runner *checkpoint.Runner
	dirtyC chan struct{} // room for one: something was given up
	cancel context.CancelFunc
	endC   chan error

	mu struct {
		sync.Mutex
		fault  func(blob.Call) blob.Fault
		events []string
	}
}

func newRig(t *testing.T, sink bool, o checkpoint.Options) *rig {
	r := &rig{t: t, store: checkpointtest.NewStore(fence), blobs: blob.NewMemory(), dirtyC: make(chan struct{}, 1)}
	if o.NumRetained > 0 {
		r.store.Keep(o.NumRetained, false)
	}
	r.faulty = blob.NewFaulty(r.blobs, func(c blob.Call) blob.Fault {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.mu.fault == nil {
			return blob.Fault{}
		}
		return r.mu.fault(c)
	})
	r.cfg = checkpoint.Config{
		Fence: fence, Graph: graph(sink), Parallelism: 2, Options: o, Store: r.store, Blobs: r.faulty,
		Now: time.Now, Logger: slog.New(slog.DiscardHandler), OnEvent: func(_ context.Context, e weir.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.mu.events = append(r.mu.events, e.Kind+": "+e.Message)
		},
		Garbage: r.dirty,
	}
	r.tasks = &checkpointtest.Tasks{Fence: fence, List: checkpoint.TasksOf(r.cfg.Graph, 2), Blobs: r.blobs}
	r.cfg.Tasks = r.tasks
	go r.collect(t.Context())
	return r
}

func (r *rig) fault(f func(blob.Call) blob.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.fault = f
}

func (r *rig) start() {
	r.runner = checkpoint.NewRunner(r.cfg)
	r.tasks.Bind(r.runner)
	ctx, cancel := context.WithCancel(r.t.Context())
	r.cancel, r.endC = cancel, make(chan error, 1)
	go func() { r.endC <- r.runner.Run(ctx) }()
	r.dirty()
	synctest.Wait()
}

func (r *rig) dirty() {
	select {
	case r.dirtyC <- struct{}{}:
	default:
	}
}

// collect clears up what is given up, as the holder of the lease does.
func (r *rig) collect(ctx context.Context) {
	c := checkpoint.NewCollector(r.store, r.faulty, checkpoint.CollectOptions{Aside: 4})
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.dirtyC:
		case <-retry.C:
		}
		if more, err := c.Round(ctx, fence.Job); more || err != nil {
			retry.Reset(time.Second)
		}
	}
}

// begin begins a checkpoint on request.
func (r *rig) begin() weir.CheckpointID {
	r.t.Helper()
	id, _, err := r.runner.Checkpoint(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// ended is how a checkpoint ended, once it has.
func (r *rig) ended(id weir.CheckpointID) checkpoint.Record {
	r.t.Helper()
	rec, err := r.runner.Wait(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return rec
}

// end stops the runner and returns what Run did.
func (r *rig) end() error {
	r.cancel()
	err := <-r.endC
	synctest.Wait() // what it gave up is collected
	return err
}

// attempt hands the job to its next attempt, started from the base.
func (r *rig) attempt() {
	f := r.cfg.Fence
	f.Attempt = weir.AttemptID{Number: f.Attempt.Number + 1, Tag: "bbbbbbbb"}
	r.store.Own(f)
	base, last := r.store.Base()
	r.cfg.Fence, r.tasks.Fence = f, f
	r.cfg.Base, r.cfg.LastID = weir.SnapshotRef{Job: f.Job, Checkpoint: base}, last
	r.cfg.OpenCommits = nil
	for _, row := range r.store.Rows() {
		if row.CommitsOpen {
			r.cfg.OpenCommits = append(r.cfg.OpenCommits, row.ID)
		}
	}
}

func (r *rig) rows() []string {
	var list []string
	for _, row := range r.store.Rows() {
		s := fmt.Sprintf("%d %s %s", row.ID, row.Type, row.Status)
		if row.Failure != nil {
			s += " " + row.Failure.Reason
		}
		if row.Discarded {
			s += " discarded"
		}
		if row.CommitsOpen {
			s += " open"
		}
		list = append(list, s)
	}
	return list
}

func (r *rig) objects() (keys []string) {
	err := r.blobs.List(r.t.Context(), "", func(key string, _ int64) bool {
		keys = append(keys, strings.TrimPrefix(key, string(fence.Job)+"/"))
		return true
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return keys
}

func (r *rig) want(what string, got, want []string) {
	r.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// objectsOf are the keys that complete checkpoints of the rig's tasks leave.
func objectsOf(attempt string, ids ...int) []string {
	var keys []string
	for _, id := range ids {
		keys = append(keys, fmt.Sprintf("%d/manifest", id))
		for _, op := range []string{"global_k-0", "global_k-1", "source_in-0", "source_in-1"} {
			keys = append(keys, fmt.Sprintf("%s/%s/%d-0", attempt, op, id))
		}
	}
	slices.Sort(keys)
	return keys
}
