package sim

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/state"
)

const (
	maxGroups = 8
	keys      = 12
	maxSteps  = 400_000          // a run that takes more is stuck
	calmAfter = 25 * time.Second // of virtual time: no fault and no incident begins after it
	stuckAt   = 10 * time.Minute // of virtual time
	sealTime  = 15 * time.Millisecond
)

// A world is one simulated run: some jobs, whoever runs them, and what goes wrong.
type world struct {
	seed    uint64
	rng     *rand.Rand // timing and workload
	tape    *tape      // what goes wrong
	start   time.Time
	now     time.Time
	queue   timeline
	seq     int
	meta    *metastore
	blobs   *blob.Memory
	away    map[string]time.Time // until when the metastore, the object store are away
	options checkpoint.Options
	taste   *rand.Rand   // of the state
	inline  int          // up to which size state lies in the manifest
	limits  state.Limits // of each chain
	disk    *state.Disk  // nil: nothing is spilled
	budget  *state.Budget
	splits  [][]int // keys of each split's rows

	servers []*process // that ever lived; the last one is the newest
	workers []*process // one for each place
	jobs    []*job
	truth   *truth
	ended   bool // every job is finished
	broken  error
	trace   []string
	tally   Tally
}

// An occurrence is something that happens at a time, to a process or to nobody.
type occurrence struct {
	at    time.Time
	seq   int
	owner *process
	run   func()
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

// run simulates until every job is finished, or something broke.
func (w *world) run() {
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic: %v", p)
		}
		for _, p := range append(w.servers, w.workers...) {
			p.kill()
		}
		w.shut()
	}()
	w.begin()
	w.until(w.over)
	if w.broken == nil {
		w.checkEnd()
	}
	w.ended = true
	clear(w.away)
	w.until(w.collect())
	if w.broken == nil {
		w.checkLeaks()
	}
}

// shut closes the disk.
func (w *world) shut() {
	if w.disk == nil {
		return
	}
	if err := w.disk.Close(); err != nil {
		w.fail("%v", err)
	}
}

// until lets things happen until something is so.
func (w *world) until(so func() bool) {
	for steps := 0; w.broken == nil && !so(); steps++ {
		if steps > maxSteps || w.queue.Len() == 0 || w.now.Sub(w.start) > stuckAt {
			w.fail("stuck after %d steps: %s", steps, w.standing())
			return
		}
		next := heap.Pop(&w.queue).(occurrence)
		w.now = next.at
		switch {
		case next.owner == nil:
			next.run()
		case !next.owner.alive:
		case next.owner.asleepUntil.After(w.now):
			w.at(next.owner, next.owner.asleepUntil, next.run)
		default:
			next.run()
		}
	}
}

// collect lets a server clean up after all jobs, undisturbed, and reports when it has.
func (w *world) collect() func() bool {
	for _, p := range append(w.servers, w.workers...) {
		p.kill() // what they had in hand is over
	}
	done := false
	p := newProcess(w, "last server")
	w.servers = append(w.servers, p)
	p.spawn(func(t *thread) {
		for _, id := range w.meta.ids() {
			w.meta.everyAttempt(id)
			c := checkpoint.NewCollector(conn{t}, blobs{t}, checkpoint.CollectOptions{})
			for more := true; more; {
				var err error
				var behind *checkpoint.BehindError
				more, err = c.Round(context.Background(), id)
				if errors.As(err, &behind) && w.truth.wiped {
					break // it forgot what a finished job had done last
				}
				if err != nil {
					w.fail("collection of %s: %v", id, err)
				}
			}
		}
		done = true
	})
	return func() bool { return done }
}

func newWorld(seed uint64, t *tape) *world {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &world{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), tape: t, start: start, now: start,
		blobs: blob.NewMemory(), away: map[string]time.Time{}, tally: Tally{},
	}
	w.meta, w.truth = newMetastore(w), newTruth(w)
	w.options = checkpoint.Options{
		Interval: w.upTo(3 * time.Second), MinPause: max(0, w.upTo(time.Second)-500*time.Millisecond), Timeout: 2*time.Second + w.upTo(8*time.Second),
		MaxConcurrent: 1 + w.rng.IntN(3), NumRetained: 1 + w.rng.IntN(3), TolerableFailures: w.rng.IntN(4) * 3,
		Mode:      []checkpoint.Mode{checkpoint.ExactlyOnce, checkpoint.AtLeastOnce}[w.rng.IntN(8)/7],
		Retention: []checkpoint.Retention{checkpoint.RetainOnCancellation, checkpoint.DeleteOnCancellation, checkpoint.RetainNone}[w.rng.IntN(3)],
	}
	w.options.Interval /= time.Duration(t.often)
	if w.rng.IntN(8) == 0 {
		w.options.Interval = 0
	}
	for range 1 + w.rng.IntN(4) {
		var split []int
		for range w.rng.IntN(120) {
			split = append(split, w.rng.IntN(keys))
		}
		w.splits = append(w.splits, split)
	}
	w.tastes()
	return w
}

// tastes chooses how state is kept: small runs are merged soon, and where there is a disk,
// nothing stays in memory that may go.
func (w *world) tastes() {
	w.taste = rand.New(rand.NewPCG(w.seed, 3))
	w.inline = []int{0, 200, 300, state.InlineLimit}[w.taste.IntN(4)]
	w.limits = state.Limits{Deltas: 2 + w.taste.IntN(3), Merged: 2, Bytes: []int64{1, 800, 1 << 20}[w.taste.IntN(3)]}
	if w.taste.IntN(8) == 0 {
		disk, err := state.NewDisk("spilled", state.DiskOptions{FS: vfs.NewMem(), Cache: 1 << 20})
		if err != nil {
			w.fail("%v", err)
		}
		w.disk, w.budget = disk, state.NewBudget(1)
	}
}

// begin starts the first server, its workers, the job, and schedules what will happen.
func (w *world) begin() {
	for i := range 1 + w.rng.IntN(3) {
		w.workers = append(w.workers, newProcess(w, fmt.Sprintf("worker %d", i)))
	}
	w.newJob(weir.JobID(fmt.Sprintf("job_%032x", 1)), weir.SnapshotRef{})
	w.newServer()
	for _, i := range w.tape.incidents(w) {
		w.after(i.at, func() { w.happen(i) })
	}
	w.after(time.Second, w.mind)
	w.after(time.Second, w.backUp)
}

// backUp keeps copies of the metastore, which it may go back to.
func (w *world) backUp() {
	w.meta.backups = append(w.meta.backups, w.meta.clone())
	w.after(2*time.Second, w.backUp)
}

// calm reports whether nothing goes wrong any more, so that the jobs can end.
func (w *world) calm() bool { return w.ended || w.now.Sub(w.start) > calmAfter }

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rng.Int64N(int64(d))) }

// after lets run happen after a while, to nobody in particular.
func (w *world) after(d time.Duration, run func()) { w.at(nil, w.now.Add(d), run) }

func (w *world) at(owner *process, at time.Time, run func()) {
	w.seq++
	heap.Push(&w.queue, occurrence{at: at, seq: w.seq, owner: owner, run: run})
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
