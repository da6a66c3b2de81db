package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint/blob"
	"weir/checkpoint/killpoint"
)

// roundRows is how many given-up checkpoints one round clears up.
const roundRows = 50

// A Subject is a job as its collection sees it.
type Subject struct {
	Fence          weir.Fence // of its row as it stands
	LastCheckpoint weir.CheckpointID
	Keep           int  // newest checkpoints that its retention keeps now
	Deleted        bool // but for its savepoints, and what is pinned
	Behind         bool // it failed as metastore_behind and was not adopted since
}

// GivenUp is what a job has given up and whose objects may still be there.
type GivenUp struct {
	Checkpoints []Record         // failed, aborted or discarded; without detail
	Attempts    []weir.AttemptID // over for a while, not looked through since
	Job         bool             // the job, deleted: all of it
}

// Empty reports whether nothing is given up.
func (g GivenUp) Empty() bool { return len(g.Checkpoints) == 0 && len(g.Attempts) == 0 && !g.Job }

// Rows is what collection needs of the metastore.
type Rows interface {
	// Subject reads a job, deleted or not.
	Subject(ctx context.Context, job weir.JobID) (Subject, error)
	// Retained lists the job's completed checkpoints that are not discarded, newest
	// first, with what holds them.
	Retained(ctx context.Context, job weir.JobID) ([]Retained, error)
	// DiscardCheckpoints marks checkpoints given up, unless something holds one (I9); it
	// returns those that are marked. Their objects may then be deleted.
	DiscardCheckpoints(ctx context.Context, fence weir.Fence, ids []weir.CheckpointID) ([]weir.CheckpointID, error)
	// GivenUp lists what the job has given up, oldest first: limit checkpoints at most,
	// and attempts that ended linger ago.
	GivenUp(ctx context.Context, job weir.JobID, limit int, linger time.Duration) (GivenUp, error)
	// Collected records that the objects of what GivenUp listed are gone.
	Collected(ctx context.Context, job weir.JobID, done GivenUp) error
}

// A BehindError says that storage holds what the metastore does not know: nothing of the
// job is deleted.
type BehindError struct {
	Job     weir.JobID
	Why     string
	Deleted bool // the job was: it adopts nothing any more
}

// Error gives the whole sentence.
func (e *BehindError) Error() string {
	if e.Deleted {
		return fmt.Sprintf("the metastore has gone back in time: %s; no object of %s, which was deleted, is deleted until weir storage check --job %[2]s --repair --unknown has removed what it does not know", e.Why, e.Job)
	}
	return fmt.Sprintf("the metastore has gone back in time: %s; no object of %s is deleted until a checkpoint was adopted", e.Why, e.Job)
}

// A Collector gives checkpoints up and deletes what nothing names any more (I9). Each
// round may be interrupted at any point: the rows are marked first, the objects go after,
// manifests last, and then the rows say that they are gone. An object that is gone
// already is deleted. It is not for concurrent use; several of them do no harm.
type Collector struct {
	rows  Rows
	blobs blob.Store
	opts  CollectOptions
	jobs  map[weir.JobID]*collected
}

// collected is what a Collector knows of a job.
type collected struct {
	surveyed bool
	last     weir.CheckpointID // at the last look
	attempt  int64
	objects  map[string][]string // of kept manifests, by their key
}

// CollectOptions tune a Collector; the zero value works.
type CollectOptions struct {
	// Aside is how many objects are deleted at a time; 0: one after the other.
	Aside int
	// Linger is how long after its end an attempt's folder is left alone: a worker that
	// was cut off may still be writing there.
	Linger time.Duration
}

// NewCollector returns a Collector of any number of jobs.
func NewCollector(rows Rows, blobs blob.Store, opts CollectOptions) *Collector {
	return &Collector{rows: rows, blobs: blobs, opts: opts, jobs: map[weir.JobID]*collected{}}
}

// Round lets a job's retention give up what it may and clears up one batch of what was
// given up. more: there may be more to do at once. The error is a *BehindError where
// nothing may be deleted, weir.ErrStale where the job has just changed hands, or attempt.
func (c *Collector) Round(ctx context.Context, job weir.JobID) (more bool, err error) {
	if more, err = c.round(ctx, job); err != nil {
		return more, fmt.Errorf("collect: %w", err)
	}
	return more, nil
}

func (c *Collector) round(ctx context.Context, job weir.JobID) (bool, error) {
	s, err := c.subject(ctx, job)
	if err != nil {
		return false, err
	}
	attempt := s.Fence.Attempt
	retained, err := c.rows.Retained(ctx, job)
	if err != nil {
		return false, err
	}
	if ids := Discards(retained, s.Keep); len(ids) > 0 {
		killpoint.Here("before-discard")
		_, err := c.rows.DiscardCheckpoints(ctx, s.Fence, ids)
		killpoint.Here("after-discard")
		if err != nil {
			return false, err
		}
	}
	given, err := c.rows.GivenUp(ctx, job, roundRows, c.opts.Linger)
	if err != nil || given.Empty() {
		return false, err
	}
	// Kept is what is kept now, after all that is given up was marked: what completes
	// later reuses objects of what is kept only.
	if retained, err = c.rows.Retained(ctx, job); err != nil {
		return false, err
	}
	read := c.jobs[job].objects // of what was kept until now
	holds, err := c.holds(ctx, job, retained)
	if err != nil {
		return false, err
	}
	// A metastore that went back since the round began keeps less than it did; and once a
	// checkpoint was adopted, which counts as an attempt, its numbers do not tell.
	if s, err = c.subject(ctx, job); err != nil {
		return false, err
	}
	if s.Fence.Attempt != attempt {
		return false, fmt.Errorf("attempt %v follows %v: %w", s.Fence.Attempt, attempt, weir.ErrStale)
	}
	done, err := c.clear(ctx, job, s, given, read, holds)
	// A deleted job is done with once nothing of it is kept but savepoints.
	done.Job = done.Job && !slices.ContainsFunc(retained, func(r Retained) bool { return r.Type == TypeCheckpoint })
	if !done.Empty() {
		err = errors.Join(err, c.rows.Collected(ctx, job, done))
	}
	if done.Job && err == nil {
		delete(c.jobs, job)
	}
	return err == nil && len(given.Checkpoints) == roundRows, err
}

// subject reads the job and makes sure that storage holds nothing newer than the
// metastore knows: the keys are listed once, the row is compared with what it was.
func (c *Collector) subject(ctx context.Context, job weir.JobID) (Subject, error) {
	known := c.jobs[job]
	if known == nil {
		known = &collected{objects: map[string][]string{}}
		c.jobs[job] = known
	}
	var found *Found
	if !known.surveyed {
		var err error
		if found, err = Find(ctx, c.blobs, job); err != nil {
			return Subject{}, err
		}
	}
	s, err := c.rows.Subject(ctx, job) // after the survey: ids are given out before objects are written
	switch {
	case err != nil:
		return s, err
	case s.Behind:
		known.surveyed = false
		return s, &BehindError{Job: job, Why: "the job failed as metastore_behind"}
	case s.LastCheckpoint < known.last || s.Fence.Attempt.Number < known.attempt:
		known.surveyed = false
		return s, &BehindError{Job: job, Why: fmt.Sprintf("checkpoint %d and attempt %d were the last ones, now it knows %d and %d",
			known.last, known.attempt, s.LastCheckpoint, s.Fence.Attempt.Number)}
	}
	if found != nil {
		if why := found.Behind(s.LastCheckpoint, s.Fence.Attempt); why != "" {
			return s, &BehindError{Job: job, Why: why, Deleted: s.Deleted}
		}
	}
	known.surveyed, known.last, known.attempt = true, s.LastCheckpoint, s.Fence.Attempt.Number
	return s, nil
}

// holds reads the manifests of what is kept, each once.
func (c *Collector) holds(ctx context.Context, job weir.JobID, retained []Retained) (*Holds, error) {
	known, now := c.jobs[job], map[string][]string{}
	h := &Holds{}
	for _, r := range retained {
		h.pending = h.pending || r.Reused
		objects, ok := known.objects[r.Manifest]
		if !ok {
			m, err := LoadManifest(ctx, c.blobs, r.Manifest)
			if errors.Is(err, weir.ErrNotFound) || errors.Is(err, weir.ErrInvalid) {
				h.KeepUnread(r) // deleted by hand, or damaged: it must not hold up all others
				continue
			}
			if err != nil {
				return nil, err
			}
			objects = m.Objects()
		}
		now[r.Manifest] = objects
		h.Keep(r.Manifest, objects)
	}
	known.objects = now
	return h, nil
}

// clear deletes what was given up and returns what is gone altogether. read are the objects
// of manifests that were read before.
func (c *Collector) clear(ctx context.Context, job weir.JobID, s Subject, given GivenUp, read map[string][]string, holds *Holds) (done GivenUp, err error) {
	if given.Job {
		keys, err := listKeys(ctx, c.blobs, JobPrefix(job))
		if err == nil {
			err = c.delete(ctx, Purges(keys, s.LastCheckpoint, holds))
		}
		if err != nil {
			return done, err
		}
		return given, nil
	}
	listed := map[weir.AttemptID][]string{}
	var errs []error
	for _, r := range given.Checkpoints {
		var err error
		if named, ok := read[r.Manifest]; ok && r.Status == StatusCompleted {
			err = c.delete(ctx, Garbage(r, named, listed[r.Attempt], true, holds))
		} else {
			err = c.clearCheckpoint(ctx, r, listed, holds)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("checkpoint %d: %w", r.ID, err))
			continue
		}
		done.Checkpoints = append(done.Checkpoints, r)
	}
	if len(given.Attempts) > 0 {
		if err := c.clearAttempts(ctx, job, s, given.Attempts, holds); err != nil {
			return done, errors.Join(append(errs, err)...)
		}
		done.Attempts = given.Attempts
	}
	return done, errors.Join(errs...)
}

// clearAttempts deletes what attempts that are over wrote and nothing holds: also a
// manifest whose writing took longer than the clean-up of its checkpoint.
func (c *Collector) clearAttempts(ctx context.Context, job weir.JobID, s Subject, over []weir.AttemptID, holds *Holds) error {
	keys, err := listKeys(ctx, c.blobs, JobPrefix(job))
	if err != nil {
		return err
	}
	var left []string
	for _, attempt := range over {
		left = append(left, Leftovers(keys, attempt, s.LastCheckpoint, holds)...)
	}
	for _, key := range keys {
		k, ok := parseKey(key)
		if !ok || !k.Manifest || k.Checkpoint > s.LastCheckpoint || holds.Has(key) {
			continue
		}
		m, err := LoadManifest(ctx, c.blobs, key)
		switch {
		case errors.Is(err, weir.ErrNotFound), errors.Is(err, weir.ErrInvalid): // gone, or whose it is cannot be told
		case err != nil:
			return err
		case slices.Contains(over, m.Attempt):
			left = append(left, key)
		}
	}
	return c.delete(ctx, left)
}

// clearCheckpoint deletes the objects of one checkpoint. A completed one's are in its
// manifest; where that tells nothing, and for others, the attempt's are listed, and what full
// states were outlived goes too, unless one that is pending may be reading them.
func (c *Collector) clearCheckpoint(ctx context.Context, r Record, listed map[weir.AttemptID][]string, holds *Holds) error {
	m, err := LoadManifest(ctx, c.blobs, ManifestKey(r.Job, r.ID))
	if err != nil && !errors.Is(err, weir.ErrNotFound) && !errors.Is(err, weir.ErrInvalid) {
		return err
	}
	var named []string
	own := m != nil && m.Attempt == r.Attempt || r.Status == StatusCompleted
	if own && m != nil {
		named = m.Objects()
	}
	if _, ok := listed[r.Attempt]; !ok && (r.Status != StatusCompleted || m == nil) {
		if listed[r.Attempt], err = listKeys(ctx, c.blobs, AttemptPrefix(r.Job, r.Attempt)); err != nil {
			return err
		}
	}
	keys := Garbage(r, named, listed[r.Attempt], own, holds)
	if !holds.pending {
		keys = append(Outlived(listed[r.Attempt], holds), keys...)
	}
	return c.delete(ctx, keys)
}

// delete removes keys, several at a time, manifests after all else has gone; it goes on
// past failures.
func (c *Collector) delete(ctx context.Context, keys []string) error {
	first := slices.IndexFunc(keys, IsManifest)
	if first < 0 {
		first = len(keys)
	}
	if err := deleteAll(ctx, c.blobs, c.opts.Aside, keys[:first]); err != nil {
		return err
	}
	return deleteAll(ctx, c.blobs, c.opts.Aside, keys[first:])
}

// deleteAll deletes keys, aside of them at a time, and goes on past failures.
func deleteAll(ctx context.Context, blobs blob.Store, aside int, keys []string) error {
	failed := make([]error, len(keys))
	var g errgroup.Group
	g.SetLimit(max(1, aside))
	for i, key := range keys {
		do := func() error {
			killpoint.Here("before-delete")
			failed[i] = blobs.Delete(ctx, key)
			killpoint.Here("after-delete")
			return nil
		}
		if aside <= 1 {
			_ = do()
			continue
		}
		g.Go(do)
	}
	_ = g.Wait() // its errors are in failed
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d objects stay for now: %w", len(failed), len(keys), failed[0])
	}
	return nil
}
