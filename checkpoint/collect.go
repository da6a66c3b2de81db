package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"weir"
	"weir/checkpoint/blob"
	"weir/checkpoint/killpoint"
)

// A Collector gives checkpoints up and deletes what nothing names any more (I9). Each
// method may be interrupted at any point and called again: the rows are marked first,
// an object that is gone is deleted, manifests go last. It is not for concurrent use.
type Collector struct {
	store  Store
	blobs  blob.Store
	fence  weir.Fence
	logger *slog.Logger

	manifests map[string]*Manifest // of kept checkpoints, by key
	left      []string             // to be deleted, not deleted yet
	doubtful  []*Manifest          // of checkpoints that may have been marked
}

// NewCollector returns the collector of one job.
func NewCollector(store Store, blobs blob.Store, fence weir.Fence, logger *slog.Logger) *Collector {
	return &Collector{store: store, blobs: blobs, fence: fence, logger: logger, manifests: map[string]*Manifest{}}
}

// Collect gives up all checkpoints but the newest keep ones, and what may not go.
func (c *Collector) Collect(ctx context.Context, keep int) error {
	retained, err := c.store.Retained(ctx, c.fence.Job)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	ids := Discards(retained, keep)
	if len(ids) == 0 && len(c.doubtful) == 0 {
		return c.delete(ctx, nil)
	}
	// Everything is read before anything is marked: while a kept manifest cannot be
	// read, nothing may go.
	loaded, err := c.loadAll(ctx, retained, ids)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	discarded, err := c.mark(ctx, ids, loaded)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	var kept []*Manifest
	for _, r := range retained {
		if m := loaded[r.ID]; slices.Contains(discarded, m) {
			delete(c.manifests, r.Manifest)
		} else {
			kept = append(kept, m)
		}
	}
	return c.delete(ctx, Garbage(discarded, kept))
}

func (c *Collector) loadAll(ctx context.Context, retained []Retained, ids []weir.CheckpointID) (map[weir.CheckpointID]*Manifest, error) {
	loaded := map[weir.CheckpointID]*Manifest{}
	for _, r := range retained {
		m, err := c.load(ctx, r.Manifest)
		if errors.Is(err, weir.ErrNotFound) && slices.Contains(ids, r.ID) {
			m, err = &Manifest{Job: c.fence.Job, Checkpoint: r.ID}, nil // cleaned up by hand
		}
		if err != nil {
			return nil, err
		}
		loaded[r.ID] = m
	}
	return loaded, nil
}

// mark gives ids up and returns the manifests of those that are, and of those that an
// earlier call had marked without hearing so.
func (c *Collector) mark(ctx context.Context, ids []weir.CheckpointID, loaded map[weir.CheckpointID]*Manifest) ([]*Manifest, error) {
	var discarded []*Manifest
	for _, m := range c.doubtful {
		row, err := c.store.Checkpoint(ctx, c.fence, m.Checkpoint)
		if err != nil {
			return nil, err
		}
		if row.Discarded {
			discarded = append(discarded, m)
		}
	}
	c.doubtful = nil
	if len(ids) == 0 {
		return discarded, nil
	}
	killpoint.Here("before-discard")
	marked, err := c.store.DiscardCheckpoints(ctx, c.fence, ids)
	killpoint.Here("after-discard")
	if err != nil {
		c.doubtful = discarded
		for _, id := range ids {
			c.doubtful = append(c.doubtful, loaded[id])
		}
		return nil, err
	}
	for _, id := range marked {
		discarded = append(discarded, loaded[id])
	}
	return discarded, nil
}

// load reads a manifest once.
func (c *Collector) load(ctx context.Context, key string) (*Manifest, error) {
	if m, ok := c.manifests[key]; ok {
		return m, nil
	}
	m, err := LoadManifest(ctx, c.blobs, key)
	if err == nil {
		c.manifests[key] = m
	}
	return m, err
}

// delete removes keys, and what earlier calls could not, in order; it goes on past
// failures and keeps what is left for the next call.
func (c *Collector) delete(ctx context.Context, keys []string) error {
	var errs []error
	var left []string
	for _, key := range append(c.left, keys...) {
		killpoint.Here("before-delete")
		if err := c.blobs.Delete(ctx, key); err != nil {
			left, errs = append(left, key), append(errs, err)
		}
		killpoint.Here("after-delete")
	}
	c.left = left
	if len(errs) > 0 {
		return fmt.Errorf("collect: %d objects stay for now: %w", len(errs), errs[0])
	}
	return nil
}

// kept loads the manifests of all that is not given up, but for those skip chooses.
func (c *Collector) kept(ctx context.Context, skip func(Retained) bool) ([]*Manifest, error) {
	retained, err := c.store.Retained(ctx, c.fence.Job)
	if err != nil {
		return nil, err
	}
	var kept []*Manifest
	for _, r := range retained {
		if skip(r) {
			continue
		}
		m, err := c.load(ctx, r.Manifest)
		if err != nil {
			return nil, err
		}
		kept = append(kept, m)
	}
	return kept, nil
}

func (c *Collector) list(ctx context.Context, prefix string) (keys []string, err error) {
	err = c.blobs.List(ctx, prefix, func(key string, _ int64) bool {
		keys = append(keys, key)
		return true
	})
	return keys, err
}

// Survey lists the job's objects and returns the newest checkpoint that has a
// manifest, 0: none, and what Sweep needs.
func (c *Collector) Survey(ctx context.Context) (newest weir.CheckpointID, keys []string, err error) {
	keys, err = c.list(ctx, JobPrefix(c.fence.Job))
	if err != nil {
		return 0, nil, fmt.Errorf("survey: %w", err)
	}
	for _, key := range keys {
		if k, ok := parseKey(key); ok && k.Manifest {
			newest = max(newest, k.Checkpoint)
		}
	}
	return newest, keys, nil
}

// Sweep deletes, of the keys that Survey found, what interrupted aborts and clean-ups
// left behind.
func (c *Collector) Sweep(ctx context.Context, keys []string) error {
	kept, err := c.kept(ctx, func(Retained) bool { return false })
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	rows := map[weir.CheckpointID]Record{}
	for _, m := range kept {
		rows[m.Checkpoint] = Record{Status: StatusCompleted}
	}
	for _, key := range keys {
		k, ok := parseKey(key)
		if _, known := rows[k.Checkpoint]; !ok || known || k.Full || k.Agreed {
			continue
		}
		row, err := c.store.Checkpoint(ctx, c.fence, k.Checkpoint)
		if err != nil && !errors.Is(err, weir.ErrNotFound) {
			return fmt.Errorf("sweep: %w", err)
		}
		rows[k.Checkpoint] = row // without a status where there is none
	}
	leftovers := append(c.agreed(keys), Leftovers(keys, rows, kept)...)
	leftovers = slices.DeleteFunc(leftovers, func(key string) bool {
		k, _ := parseKey(key)
		return k.Manifest && !c.wrote(ctx, key, rows[k.Checkpoint].Attempt)
	})
	return c.delete(ctx, leftovers)
}

// agreed lists what the tasks of older attempts went by.
func (c *Collector) agreed(keys []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		k, ok := parseKey(key)
		return !ok || !k.Agreed || k.Job != c.fence.Job || k.Attempt.Number >= c.fence.Attempt.Number
	})
}

// wrote reports whether the manifest at key is that attempt's, as far as can be told.
func (c *Collector) wrote(ctx context.Context, key string, attempt weir.AttemptID) bool {
	m, err := LoadManifest(ctx, c.blobs, key)
	return err == nil && m.Attempt == attempt
}

// Drop deletes what the fence's attempt wrote for an aborted checkpoint: keys, or, when
// nil, all of it and its manifest.
func (c *Collector) Drop(ctx context.Context, id weir.CheckpointID, keys []string) error {
	if keys == nil {
		all, err := c.list(ctx, AttemptPrefix(c.fence.Job, c.fence.Attempt))
		if err != nil {
			return fmt.Errorf("drop checkpoint %d: %w", id, err)
		}
		for _, key := range all {
			if k, ok := parseKey(key); ok && !k.Full && k.Checkpoint == id {
				keys = append(keys, key)
			}
		}
		if manifest := ManifestKey(c.fence.Job, id); c.wrote(ctx, manifest, c.fence.Attempt) {
			keys = append(keys, manifest)
		}
	}
	return c.delete(ctx, keys)
}

// Forget deletes the objects of a snapshot that its user gave up, a savepoint, but for
// those that a kept manifest names. The row is marked before.
func (c *Collector) Forget(ctx context.Context, manifest string) error {
	m, err := LoadManifest(ctx, c.blobs, manifest)
	if errors.Is(err, weir.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	kept, err := c.kept(ctx, func(r Retained) bool { return r.ID == m.Checkpoint })
	if err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	return c.delete(ctx, Garbage([]*Manifest{m}, kept))
}

// Purge deletes all objects of a job that is being deleted, but for its savepoints and
// what is pinned: these outlive it.
func (c *Collector) Purge(ctx context.Context) error {
	kept, err := c.kept(ctx, func(r Retained) bool { return r.Type != TypeSavepoint && !r.Pinned })
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	used := objectSet(kept)
	for _, m := range kept {
		used[ManifestKey(m.Job, m.Checkpoint)] = true
	}
	keys, err := c.list(ctx, JobPrefix(c.fence.Job))
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return used[key] })
	slices.SortStableFunc(keys, func(a, b string) int { // manifests last
		return boolInt(strings.HasSuffix(a, "/manifest")) - boolInt(strings.HasSuffix(b, "/manifest"))
	})
	return c.delete(ctx, keys)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
