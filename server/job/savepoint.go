package job

import "context"

// DeleteSavepoint deletes a savepoint; the objects that only it uses are collected. One
// that a job would start from, or that is being read, is weir.ErrConflict.
func (s *Service) DeleteSavepoint(ctx context.Context, name string) error {
	sp, err := s.deps.Store.DeleteSavepoint(ctx, name)
	if err == nil {
		s.clean.wake(sp.Job)
	}
	return err
}
