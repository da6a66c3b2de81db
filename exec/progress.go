package exec

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"weir"
	"weir/checkpoint"
)

// Bounds of what a tracker remembers.
const (
	cutsKept    = 64 // checkpoints that were cut
	samplesKept = 16 // of the task's times
	sampleEvery = 500 * time.Millisecond
	recently    = 5 * time.Second // what shares of time tell of, at least
)

// A tracker is what a task tells of checkpoints under way. Its loop writes it at
// barriers, any goroutine may ask, also while the loop is held up.
type tracker struct {
	mu struct {
		sync.Mutex
		aligning []awaited
		next     []weir.TaskID // whose barriers any other checkpoint waits for
		cuts     []cutting     // ascending
		samples  []sample      // ascending
	}
}

// An awaited is a checkpoint and those whose barrier of it has not come.
type awaited struct {
	id    weir.CheckpointID
	since time.Time
	from  []weir.TaskID
}

// A cutting is the snapshot of a checkpoint, from the last barrier on.
type cutting struct {
	id    weir.CheckpointID
	stage checkpoint.Stage
	since time.Time // of the stage
}

// awaits notes whose barriers are missing.
func (k *tracker) awaits(g *gate) {
	aligning, next := g.awaited()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.aligning, k.mu.next = aligning, next
}

// reach notes the stage of a checkpoint whose barriers are all there.
func (k *tracker) reach(id weir.CheckpointID, stage checkpoint.Stage, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := cutting{id, stage, now}
	if i := slices.IndexFunc(k.mu.cuts, func(c cutting) bool { return c.id == id }); i >= 0 {
		k.mu.cuts[i] = c
		return
	}
	if k.mu.cuts = append(k.mu.cuts, c); len(k.mu.cuts) > cutsKept {
		k.mu.cuts = slices.Delete(k.mu.cuts, 0, 1)
	}
}

// stage says how far the task is with a checkpoint; newer is one that has overtaken it.
// How long it has waited for a first barrier is not known.
func (k *tracker) stage(id weir.CheckpointID) (stage checkpoint.Stage, since time.Time, missing []weir.TaskID, newer weir.CheckpointID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.mu.cuts {
		if c.id == id {
			return c.stage, c.since, nil, 0
		}
	}
	for _, a := range k.mu.aligning {
		if a.id == id {
			return checkpoint.StageAligning, a.since, slices.Clone(a.from), 0
		}
	}
	if n := len(k.mu.cuts); n > 0 && k.mu.cuts[n-1].id > id {
		newer = k.mu.cuts[n-1].id
	}
	return checkpoint.StageWaiting, time.Time{}, slices.Clone(k.mu.next), newer
}

// Progress says how far the task is with a checkpoint that is pending. It never waits
// for the task's loop.
func (t *Task) Progress(id weir.CheckpointID) checkpoint.Progress {
	p := checkpoint.Progress{Task: t.id, Worker: t.worker}
	p.Busy, p.BackPressured = t.recent()
	var since time.Time
	var newer weir.CheckpointID
	if p.Stage, since, p.Missing, newer = t.tracker.stage(id); !since.IsZero() {
		p.SinceMS = max(milliseconds(t.now().Sub(since)), 0)
	}
	switch {
	case newer != 0:
		p.Doing = fmt.Sprintf("none: the barrier of checkpoint %d came first", newer)
	case p.Stage == checkpoint.StageUploading:
		p.Doing = t.uploader.doing(id)
	case p.Stage == checkpoint.StageDone:
	case p.Stage == checkpoint.StageWaiting && t.source != nil:
		if p.Doing = t.stats.doing(); !t.mail.triggered(id) {
			p.Doing = "no trigger has come"
		} else if p.Doing == "" {
			p.Doing = "its trigger has come, and waits until the source returns from reading"
		}
	default:
		p.Doing = t.stats.doing()
	}
	return p
}

// A sample is how much of its time a task had waited at one moment.
type sample struct {
	at         time.Time
	idle, back time.Duration
}

// sample reads the times now, waits under way included.
func (t *Task) sample() sample {
	now := t.now()
	since := func(total int64, began *time.Time) time.Duration {
		if began != nil {
			total += int64(max(now.Sub(*began), 0))
		}
		return time.Duration(total)
	}
	c := &t.stats
	return sample{now, since(c.idleNS.Load(), c.idleSince.Load()), since(c.backNS.Load(), c.backSince.Load())}
}

// remember keeps a sample for recent.
func (k *tracker) remember(s sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.mu.samples)
	if n > 0 && s.at.Sub(k.mu.samples[n-1].at) < sampleEvery {
		return
	}
	if k.mu.samples = append(k.mu.samples, s); n == samplesKept {
		k.mu.samples = slices.Delete(k.mu.samples, 0, 1)
	}
}

// recent gives the shares of the last seconds, as far back as samples were taken: since
// the newest that is old enough, or else the oldest, or the start.
func (t *Task) recent() (busy, back float64) {
	start := t.stats.start.Load()
	if start == nil {
		return 0, 0
	}
	now := t.sample()
	then := sample{at: *start}
	k := &t.tracker
	k.mu.Lock()
	for i, s := range k.mu.samples {
		if i == 0 || now.at.Sub(s.at) >= recently {
			then = s
		}
	}
	k.mu.Unlock()
	_, busy, back = shares(then, now)
	return busy, back
}

// shares are those of the time between two samples.
func shares(then, now sample) (idle, busy, back float64) {
	life := float64(max(now.at.Sub(then.at), 1))
	idle = min(max(float64(now.idle-then.idle)/life, 0), 1)
	back = min(max(float64(now.back-then.back)/life, 0), 1-idle)
	return idle, 1 - idle - back, back
}
