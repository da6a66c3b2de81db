package job

import (
	"context"
	"errors"
	"fmt"

	"weir"
	"weir/checkpoint"
)

// DeleteSavepoint deletes a savepoint that no job would start from, and its objects. What
// it shares with a kept checkpoint stays.
func (s *Service) DeleteSavepoint(ctx context.Context, name string) error {
	sp, err := s.deps.Store.Savepoint(ctx, name)
	if err != nil {
		return err
	}
	garbage, err := s.savepointObjects(ctx, sp)
	if err != nil {
		return err
	}
	gone, err := s.deps.Store.DeleteSavepoint(ctx, name)
	if err != nil {
		return err
	}
	if gone.Job != sp.Job || gone.Checkpoint != sp.Checkpoint {
		return fmt.Errorf("%w: savepoint %q was taken anew meanwhile", weir.ErrConflict, name)
	}
	for _, key := range garbage { // the manifest last
		if err := s.deps.Blobs.Delete(ctx, key); err != nil {
			return fmt.Errorf("savepoint %q is deleted; some of its objects stay: %w", name, err)
		}
	}
	return nil
}

// savepointObjects lists the objects that only the savepoint uses. Everything is read
// before anything goes.
func (s *Service) savepointObjects(ctx context.Context, sp checkpoint.Savepoint) ([]string, error) {
	if sp.Manifest == "" {
		return nil, nil // it failed: its attempt has cleaned up
	}
	own, err := checkpoint.LoadManifest(ctx, s.deps.Blobs, sp.Manifest)
	if errors.Is(err, weir.ErrNotFound) {
		return nil, nil // cleaned up by hand
	}
	if err != nil {
		return nil, fmt.Errorf("savepoint %q: %w", sp.Name, err)
	}
	retained, err := s.deps.Checkpoints.Retained(ctx, sp.Job)
	if err != nil {
		return nil, err
	}
	var kept []*checkpoint.Manifest
	for _, r := range retained {
		if r.ID == sp.Checkpoint {
			continue
		}
		m, err := checkpoint.LoadManifest(ctx, s.deps.Blobs, r.Manifest)
		if err != nil {
			return nil, fmt.Errorf("savepoint %q: checkpoint %d, whose objects it may share: %w", sp.Name, r.ID, err)
		}
		kept = append(kept, m)
	}
	return checkpoint.Garbage([]*checkpoint.Manifest{own}, kept), nil
}
