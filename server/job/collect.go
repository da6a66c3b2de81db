package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

const (
	collectEvery  = 10 * time.Second // a look at all jobs
	collectWithin = time.Minute      // one round of one job
	collectPage   = 500              // jobs that one look reads at a time
	collectRounds = 20               // of one job before others have their turn
	collectAside  = 8                // deletions under way at a time
	collectLinger = time.Minute      // after an attempt's end its folder is left alone
	collectAgain  = time.Second      // after the first failure
	collectRarely = 5 * time.Minute  // at last
)

// A collector deletes what jobs have given up: one for all jobs, run by the holder of the
// lease. It waits for nobody and nobody waits for it; what it cannot do it tries again.
type collector struct {
	store  Checkpoints
	events Events
	log    *slog.Logger
	now    func() time.Time
	linger time.Duration
	blobs  blob.Store
	wakeC  chan struct{} // room for one: dirty has news

	mu struct {
		sync.Mutex
		dirty map[weir.JobID]bool // something of them was given up just now
	}
	troubles map[weir.JobID]*trouble // of run's goroutine
}

// A trouble is a job whose clean-up failed.
type trouble struct {
	wait   time.Duration
	until  time.Time
	told   bool
	behind bool // storage knew more than the metastore
}

func newCollector(deps Deps, opts Options) *collector {
	c := &collector{store: deps.Checkpoints, events: deps.Store, log: deps.Logger, now: opts.Now, linger: opts.CollectLinger, blobs: deps.Blobs, wakeC: make(chan struct{}, 1)}
	c.mu.dirty, c.troubles = map[weir.JobID]bool{}, map[weir.JobID]*trouble{}
	return c
}

// wake has a job looked at now, if this server holds the lease.
func (c *collector) wake(job weir.JobID) {
	c.mu.Lock()
	c.mu.dirty[job] = true
	c.mu.Unlock()
	select {
	case c.wakeC <- struct{}{}:
	default:
	}
}

func (c *collector) take() []weir.JobID {
	c.mu.Lock()
	defer c.mu.Unlock()
	jobs := slices.Sorted(maps.Keys(c.mu.dirty))
	clear(c.mu.dirty)
	return jobs
}

// run collects until ctx ends. What storage holds is surveyed anew: another server may
// have been the holder, on another metastore.
func (c *collector) run(ctx context.Context) {
	rounds := checkpoint.NewCollector(c.store, c.blobs, checkpoint.CollectOptions{Aside: collectAside, Linger: c.linger})
	c.troubles = map[weir.JobID]*trouble{}
	look := time.NewTimer(0)
	retry := time.NewTimer(time.Hour)
	defer look.Stop()
	defer retry.Stop()
	for ctx.Err() == nil {
		var due []weir.JobID
		select {
		case <-ctx.Done():
			return
		case <-c.wakeC:
			due = c.take()
			c.forgive(due)
		case <-retry.C:
		case <-look.C:
			due = c.look(ctx)
			look.Reset(collectEvery)
		}
		for _, job := range c.due(due) {
			if ctx.Err() == nil {
				c.collect(ctx, rounds, job)
			}
		}
		retry.Reset(c.next())
	}
}

// forgive tries jobs again at once of which storage knew more than the metastore: since
// something was done for them, a checkpoint may have been adopted.
func (c *collector) forgive(jobs []weir.JobID) {
	for _, job := range jobs {
		if t := c.troubles[job]; t != nil && t.behind {
			t.until = c.now()
		}
	}
}

// look lists the jobs of which something may have to be collected.
func (c *collector) look(ctx context.Context) (jobs []weir.JobID) {
	for after := weir.JobID(""); ; {
		page, next, err := c.store.Collectable(ctx, after, collectPage, c.linger)
		if err != nil && ctx.Err() == nil {
			c.log.Warn("jobs to collect not read, tried again", "err", err)
		}
		if jobs = append(jobs, page...); err != nil || next == "" {
			return jobs
		}
		after = next
	}
}

// due leaves out the jobs in trouble whose time has not come, and adds those whose has.
func (c *collector) due(jobs []weir.JobID) []weir.JobID {
	now := c.now()
	for job, t := range c.troubles {
		if !now.Before(t.until) {
			jobs = append(jobs, job)
		}
	}
	slices.Sort(jobs)
	jobs = slices.Compact(jobs)
	return slices.DeleteFunc(jobs, func(job weir.JobID) bool {
		t := c.troubles[job]
		return t != nil && now.Before(t.until)
	})
}

// next is how long until a job in trouble is tried again.
func (c *collector) next() time.Duration {
	wait := time.Hour
	for _, t := range c.troubles {
		wait = min(wait, max(t.until.Sub(c.now()), time.Millisecond))
	}
	return wait
}

// collect clears up what one job has given up.
func (c *collector) collect(ctx context.Context, rounds *checkpoint.Collector, job weir.JobID) {
	for range collectRounds {
		rctx, cancel := context.WithTimeout(ctx, collectWithin)
		more, err := rounds.Round(rctx, job)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.fails(ctx, job, err)
			return
		}
		delete(c.troubles, job)
		if !more {
			return
		}
	}
	c.wake(job)
}

// fails puts a job's clean-up off, longer each time; its history says so once.
func (c *collector) fails(ctx context.Context, job weir.JobID, err error) {
	t := c.troubles[job]
	if t == nil {
		t = &trouble{}
		c.troubles[job] = t
	}
	t.wait = min(max(2*t.wait, collectAgain), collectRarely)
	message := fmt.Sprintf("objects that were given up are not deleted yet: %v; tried again until it succeeds", err)
	var behind *checkpoint.BehindError
	t.behind = errors.As(err, &behind)
	switch {
	case errors.Is(err, weir.ErrStale): // the next attempt has just begun
		t.wait = collectAgain
	case t.behind:
		t.wait, message = collectRarely, behind.Error()
	}
	t.until = c.now().Add(t.wait)
	if errors.Is(err, weir.ErrStale) || t.told {
		return
	}
	c.log.Warn("clean-up stopped, tried again", "job", job, "err", err)
	if err := c.events.AddEvent(ctx, weir.Event{Job: job, At: c.now(), Kind: "checkpoint", Message: message}); err != nil && ctx.Err() == nil {
		c.log.Warn("event not recorded", "job", job, "err", err)
		return
	}
	t.told = true
}
