package job

import (
	"context"
	"errors"
	"fmt"

	"weir"
	"weir/checkpoint"
	"weir/planner/plan"
)

// A choice is a snapshot to start from; the zero one is nothing. Manifest is nil for
// what needs no check: nothing, and the job's own base.
type choice struct {
	Ref      weir.SnapshotRef
	Manifest *checkpoint.Manifest
}

// resolve finds the snapshot that from names for a job, and makes sure that it can be
// restored: completed, kept, and every object there.
func (s *Service) resolve(ctx context.Context, j weir.Job, from From) (choice, error) {
	switch {
	case from.Nothing:
		return choice{}, nil
	case from.Latest:
		c := choice{Ref: j.Base}
		if j.Base.IsZero() {
			return c, nil
		}
		return s.open(ctx, c)
	case from.Savepoint != "":
		return s.resolveSavepoint(ctx, from.Savepoint)
	}
	owner := j
	if from.Job != "" {
		var err error
		if owner, err = s.Get(ctx, from.Job); err != nil {
			return choice{}, fmt.Errorf("%s: %w", from, err)
		}
	}
	r, err := s.deps.Store.CheckpointByID(ctx, owner.ID, from.Checkpoint)
	if err != nil {
		return choice{}, fmt.Errorf("%s: %w", from, err)
	}
	if err := usable(from.String(), r.Status, r.Discarded, r.Failure); err != nil {
		return choice{}, err
	}
	return s.open(ctx, choice{Ref: weir.SnapshotRef{Job: owner.ID, Checkpoint: r.ID}})
}

func (s *Service) resolveSavepoint(ctx context.Context, name string) (choice, error) {
	sp, err := s.deps.Store.Savepoint(ctx, name)
	if err != nil {
		return choice{}, fmt.Errorf("savepoint:%s: %w", name, err)
	}
	if err := usable("savepoint:"+name, sp.Status, false, sp.Failure); err != nil {
		return choice{}, err
	}
	return s.open(ctx, choice{Ref: weir.SnapshotRef{Job: sp.Job, Checkpoint: sp.Checkpoint}})
}

func usable(what string, status checkpoint.Status, discarded bool, f *weir.Failure) error {
	switch {
	case discarded:
		return fmt.Errorf("%w: %s was deleted by its job's retention: choose a newer one", weir.ErrConflict, what)
	case status == checkpoint.StatusPending:
		return fmt.Errorf("%w: %s is not complete yet: wait for it or choose another", weir.ErrConflict, what)
	case status != checkpoint.StatusCompleted && f != nil:
		return fmt.Errorf("%w: %s is %s (%s) and cannot be restored: choose a completed one", weir.ErrConflict, what, status, f.Reason)
	case status != checkpoint.StatusCompleted:
		return fmt.Errorf("%w: %s is %s and cannot be restored: choose a completed one", weir.ErrConflict, what, status)
	}
	return nil
}

// manifest reads the manifest of a snapshot; one that another attempt wrote than that which
// took the snapshot, or that is another snapshot's, is weir.ErrInvalid.
func (s *Service) manifest(ctx context.Context, ref weir.SnapshotRef) (*checkpoint.Manifest, error) {
	m, err := checkpoint.LoadManifest(ctx, s.deps.Blobs, checkpoint.ManifestKey(ref.Job, ref.Checkpoint))
	if err != nil {
		return nil, storageAway(err)
	}
	row, err := s.deps.Store.CheckpointByID(ctx, ref.Job, ref.Checkpoint)
	if err != nil && !errors.Is(err, weir.ErrNotFound) { // without a row the manifest speaks for itself
		return nil, err
	}
	return m, m.Check(ref, row.Attempt)
}

// elsewhere says what to do where a snapshot's bytes are gone.
const elsewhere = "; bring it back from a copy of the storage, or start from another checkpoint or savepoint; weir storage check says what else is missing"

// open reads the manifest of a choice and looks for its objects.
func (s *Service) open(ctx context.Context, c choice) (choice, error) {
	m, err := s.manifest(ctx, c.Ref)
	if err == nil {
		err = storageAway(m.CheckObjects(ctx, s.deps.Blobs))
	}
	if gone(err) {
		// Not weir.ErrNotFound: the snapshot that was asked for is known, its bytes are gone.
		why := err.Error()
		if newer := s.behind(ctx, c.Ref.Job); newer != "" {
			why += "; " + checkpoint.BehindFailure(newer).Message
		} else {
			why += elsewhere
		}
		return choice{}, fmt.Errorf("%w: checkpoint %d of job %s cannot be restored: %s", weir.ErrConflict, c.Ref.Checkpoint, c.Ref.Job, why)
	}
	c.Manifest = m
	return c, err
}

// checkStart makes sure that a job may start from a choice: the snapshot's state has
// its operators in the job's graph, and no output is repeated that nobody can take back.
func (s *Service) checkStart(ctx context.Context, j weir.Job, parallelism int, c choice, allowDuplicates bool) error {
	g, err := decodeGraph(j)
	if err != nil {
		return err
	}
	if c.Manifest != nil {
		if _, err := checkpoint.Restore(c.Manifest, g, parallelism); err != nil {
			return fmt.Errorf("%w: %w", weir.ErrConflict, err)
		}
	}
	if allowDuplicates || c.Ref == j.Base && !j.Base.IsZero() {
		return nil
	}
	sink := appendSink(g)
	if sink == "" {
		return nil
	}
	owner := j
	if c.Ref.Job != "" && c.Ref.Job != j.ID {
		owner = weir.Job{ID: c.Ref.Job}
	}
	newest, err := s.newestCommitted(ctx, owner)
	if err != nil {
		return err
	}
	if newest > c.Ref.Checkpoint {
		return fmt.Errorf("%w: table %s holds the output of checkpoint %d of job %s already, and a start from %s would append rows of it again: start from a newer checkpoint, or allow it with allow_duplicate_output",
			weir.ErrConflict, sink, newest, owner.ID, describe(c.Ref))
	}
	return nil
}

func describe(ref weir.SnapshotRef) string {
	if ref.IsZero() {
		return "nothing"
	}
	return fmt.Sprintf("checkpoint %d", ref.Checkpoint)
}

// appendSink names the first table that the graph appends to; empty: none.
func appendSink(g plan.Graph) string {
	for _, chain := range g.Chains {
		for _, op := range chain.Operators {
			if op.Sink != nil && op.Sink.Table.Connector != "blackhole" {
				return op.Sink.Table.Name
			}
		}
	}
	return ""
}

// newestCommitted is the newest checkpoint whose output is visible: savepoints have
// none, but for one that a stop took, which is the base then.
func (s *Service) newestCommitted(ctx context.Context, j weir.Job) (weir.CheckpointID, error) {
	var newest weir.CheckpointID
	if j.Base.Job == j.ID {
		newest = j.Base.Checkpoint
	}
	for before := weir.CheckpointID(0); ; {
		page, err := s.deps.Store.Checkpoints(ctx, j.ID, checkpoint.Filter{Before: before, Status: []checkpoint.Status{checkpoint.StatusCompleted}, Limit: 100})
		if err != nil {
			return 0, err
		}
		for _, r := range page {
			if r.Type == checkpoint.TypeCheckpoint {
				return max(newest, r.ID), nil
			}
			before = r.ID
		}
		if len(page) < 100 {
			return newest, nil
		}
	}
}
