package sim

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/checkpoint/checkpointtest"
	"weir/planner/plan"
)

const (
	maxGroups = 8
	maxSteps  = 300_000 // a run that takes more is stuck
	job       = weir.JobID("job_0000000000000000000000000000beef")
)

var errLost = errors.New("connection lost")

// A row is one line of visible output: the n-th row of a key.
type row struct{ Key, N int }

// A segmentID is a segment's identity for ever: its writer's.
type segmentID struct {
	Subtask int
	Barrier weir.CheckpointID
}

// A world is one simulated run.
type world struct {
	rng     *rand.Rand
	faults  float64 // chance of each fault
	start   time.Time
	now     time.Time
	queue   timeline
	seq     int
	store   *checkpointtest.Store
	blobs   *blob.Memory
	faulty  *blob.Faulty
	options checkpoint.Options

	splits   [][]int // keys of each split's rows
	visible  map[segmentID][]row
	attempt  *attempt
	kills    int // left to happen
	finished bool
	broken   error
	trace    []string
}

// An occurrence is something that happens at a time.
type occurrence struct {
	at  time.Time
	seq int
	run func()
}

// A timeline is a heap of occurrences; equal times keep their order.
type timeline []occurrence

func (t timeline) Len() int { return len(t) }
func (t timeline) Less(i, j int) bool {
	if !t[i].at.Equal(t[j].at) {
		return t[i].at.Before(t[j].at)
	}
	return t[i].seq < t[j].seq
}
func (t timeline) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timeline) Push(x any)   { *t = append(*t, x.(occurrence)) }
func (t *timeline) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// Run simulates one job from its first row to its end and returns what it broke, with
// the trace in any case.
func Run(seed uint64) (trace []string, err error) {
	w := newWorld(seed)
	defer func() {
		if p := recover(); p != nil {
			trace, err = w.trace, fmt.Errorf("seed %d: panic: %v", seed, p)
		}
	}()
	w.begin()
	for steps := 0; !w.finished && w.broken == nil; steps++ {
		if steps > maxSteps || w.queue.Len() == 0 {
			w.fail("stuck after %d steps", steps)
			break
		}
		next := heap.Pop(&w.queue).(occurrence)
		w.now = next.at
		next.run()
	}
	if w.broken == nil {
		w.checkOutput()
	}
	if w.broken != nil {
		return w.trace, fmt.Errorf("seed %d: %w", seed, w.broken)
	}
	return w.trace, nil
}

func newWorld(seed uint64) *world {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), start: start, now: start, blobs: blob.NewMemory(), visible: map[segmentID][]row{}}
	w.faults = []float64{0, 0.02, 0.1}[w.rng.IntN(3)]
	w.kills = w.rng.IntN(6)
	w.faulty = blob.NewFaulty(w.blobs, func(c blob.Call) blob.Fault {
		if c.Verb == "Get" {
			return blob.Fault{} // a restore that cannot read only tries again
		}
		before, after := w.fault()
		return blob.Fault{Before: before, After: after}
	})
	w.options = checkpoint.Options{
		Interval: w.upTo(3 * time.Second), MinPause: w.upTo(time.Second) - 500*time.Millisecond, Timeout: 2*time.Second + w.upTo(8*time.Second),
		NumRetained: 1 + w.rng.IntN(3), TolerableFailures: w.rng.IntN(4) * 3,
	}
	w.options.MinPause = max(0, w.options.MinPause)
	for range 1 + w.rng.IntN(5) {
		var keys []int
		for range w.rng.IntN(200) {
			keys = append(keys, w.rng.IntN(12))
		}
		w.splits = append(w.splits, keys)
	}
	return w
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d))) }

// fault draws what happens to a call: nothing, an error instead of the work, or an
// error after it.
func (w *world) fault() (before, after error) {
	if w.rng.Float64() >= w.faults {
		return nil, nil
	}
	if w.rng.IntN(2) == 0 {
		return errLost, nil
	}
	return nil, errLost
}

// after lets run happen after a while.
func (w *world) after(d time.Duration, run func()) {
	w.seq++
	heap.Push(&w.queue, occurrence{at: w.now.Add(d), seq: w.seq, run: run})
}

func (w *world) log(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%9.3fs ", w.now.Sub(w.start).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
		w.log("BROKEN: %v", w.broken)
	}
}

func graph() plan.Graph {
	return plan.Graph{Version: plan.Version, MaxParallelism: maxGroups, Bounded: true, Chains: []plan.Chain{
		{Operators: []plan.Operator{{ID: "source", Name: "source", Kind: plan.Source}}},
		{Operators: []plan.Operator{{ID: "count", Name: "count", Kind: plan.GlobalAggregate}, {ID: "sink", Name: "sink", Kind: plan.Sink}}},
	}, Edges: []plan.Edge{{From: 0, To: 1, Keys: []int{0}}}}
}

// begin starts the first attempt, its killers and its users.
func (w *world) begin() {
	w.store = checkpointtest.NewStore(weir.Fence{Job: job})
	w.newAttempt()
	for range w.kills {
		w.after(w.upTo(12*time.Second), w.kill)
	}
	for range w.rng.IntN(6) {
		w.after(w.upTo(10*time.Second), func() { w.attempt.user() })
	}
}

// kill ends the current attempt at whatever it is doing. Its successor may begin before
// the dead one knows: until then it goes on as a zombie.
func (w *world) kill() {
	old := w.attempt
	if w.finished || old.ended {
		return
	}
	old.ended = true
	zombie := w.rng.IntN(2) == 0
	w.log("kill attempt %v, zombie %v", old.fence.Attempt, zombie)
	if zombie {
		w.after(w.upTo(5*time.Second), func() { old.dead = true })
	} else {
		old.dead = true
	}
	w.after(w.upTo(time.Second), w.newAttempt)
}

// newAttempt takes the job over and starts from its base.
func (w *world) newAttempt() {
	number := int64(1)
	if w.attempt != nil {
		number = w.attempt.fence.Attempt.Number + 1
	}
	fence := weir.Fence{Job: job, Attempt: weir.AttemptID{Number: number, Tag: fmt.Sprintf("%08x", w.rng.Uint32())}, Term: number}
	w.store.Own(fence)
	base, last := w.store.Base()
	a := newAttempt(w, fence, 1+w.rng.IntN(3))
	w.attempt = a
	w.log("attempt %v at parallelism %d from %d", fence.Attempt, a.parallelism, base)
	var m *checkpoint.Manifest
	if base != 0 {
		var err error
		if m, err = checkpoint.LoadManifest(context.Background(), w.blobs, checkpoint.ManifestKey(job, base)); err == nil {
			err = m.CheckObjects(context.Background(), w.blobs)
		}
		if err != nil {
			w.fail("base %d cannot be restored (I8, I9): %v", base, err)
			return
		}
	}
	a.begin(m, base, last)
}

// checkKept: everything that a kept manifest names is there (I9).
func (w *world) checkKept() {
	retained, err := w.store.Retained(context.Background(), job)
	if errors.Is(err, errLost) {
		return
	}
	for _, r := range retained {
		m, err := checkpoint.LoadManifest(context.Background(), w.blobs, r.Manifest)
		if err == nil {
			err = m.CheckObjects(context.Background(), w.blobs)
		}
		if err != nil {
			w.fail("kept checkpoint %d is damaged (I9): %v", r.ID, err)
		}
	}
}

// checkOutput compares what became visible with the reference.
func (w *world) checkOutput() {
	var want, got []row
	counts := map[int]int{}
	for _, keys := range w.splits {
		for _, key := range keys {
			counts[key]++
			want = append(want, row{key, counts[key]})
		}
	}
	for _, rows := range w.visible {
		got = append(got, rows...)
	}
	byKey := func(a, b row) int { return (a.Key-b.Key)*10000 + a.N - b.N }
	slices.SortFunc(want, byKey)
	slices.SortFunc(got, byKey)
	if !slices.Equal(want, got) {
		w.fail("output differs: %d rows visible, %d expected", len(got), len(want))
	}
	for _, r := range w.store.Rows() {
		if r.Status == checkpoint.StatusPending || r.CommitsOpen {
			w.fail("checkpoint %d is left %s, commits open %v", r.ID, r.Status, r.CommitsOpen)
		}
	}
}
