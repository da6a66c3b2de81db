package job

import (
	"context"
	"errors"

	"weir"
	"weir/checkpoint"
)

// DeleteSavepoint deletes a savepoint and the objects that only it uses. One that a job
// would start from is weir.ErrConflict.
func (s *Service) DeleteSavepoint(ctx context.Context, name string) error {
	sp, err := s.deps.Store.DeleteSavepoint(ctx, name)
	if err != nil || sp.Manifest == "" {
		return err
	}
	if err := s.deleteObjects(ctx, sp); err != nil {
		s.deps.Logger.Warn("savepoint deleted, some of its objects stay", "job", sp.Job, "cp", sp.Checkpoint, "err", err)
	}
	return nil
}

// deleteObjects deletes what a savepoint's manifest names and no kept one of its job
// does, then the manifest.
func (s *Service) deleteObjects(ctx context.Context, sp checkpoint.Savepoint) error {
	m, err := checkpoint.LoadManifest(ctx, s.deps.Blobs, sp.Manifest)
	if errors.Is(err, weir.ErrNotFound) {
		return nil // deleted by hand
	}
	if err != nil {
		return err
	}
	kept, err := s.keptManifests(ctx, sp.Job)
	for range 10 { // collection may have given one up, and deleted its manifest, meanwhile
		if !errors.Is(err, weir.ErrNotFound) {
			break
		}
		kept, err = s.keptManifests(ctx, sp.Job)
	}
	if err != nil {
		return err // it may name what we would delete
	}
	for _, key := range checkpoint.Garbage([]*checkpoint.Manifest{m}, kept) {
		if err := s.deps.Blobs.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// keptManifests reads the manifests of all that a job has not given up.
func (s *Service) keptManifests(ctx context.Context, job weir.JobID) ([]*checkpoint.Manifest, error) {
	retained, err := s.deps.Checkpoints.Retained(ctx, job)
	if err != nil {
		return nil, err
	}
	var kept []*checkpoint.Manifest
	for _, r := range retained {
		m, err := checkpoint.LoadManifest(ctx, s.deps.Blobs, r.Manifest)
		if err != nil {
			return nil, err
		}
		kept = append(kept, m)
	}
	return kept, nil
}
