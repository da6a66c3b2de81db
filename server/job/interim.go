package job

import (
	"context"

	"weir"
	"weir/checkpoint"
)

func (s *Service) submit(ctx context.Context, spec Spec) (weir.Job, error) {
	return weir.Job{}, ErrUnavailable
}
func (s *Service) stop(ctx context.Context, idOrName string, req StopRequest) (weir.Job, error) {
	return weir.Job{}, ErrUnavailable
}
func (s *Service) cancel(ctx context.Context, idOrName string, abandon bool) (weir.Job, error) {
	return weir.Job{}, ErrUnavailable
}
func (s *Service) start(ctx context.Context, idOrName string, req StartRequest) (weir.Job, error) {
	return weir.Job{}, ErrUnavailable
}
func (s *Service) restore(ctx context.Context, idOrName string, req StartRequest) (weir.Job, error) {
	return weir.Job{}, ErrUnavailable
}
func (s *Service) delete(ctx context.Context, idOrName string, abandon bool) error {
	return ErrUnavailable
}
func (s *Service) trigger(ctx context.Context, idOrName string, req triggerRequest) (checkpoint.Record, error) {
	return checkpoint.Record{}, ErrUnavailable
}
func (s *Service) workers(ctx context.Context) ([]Worker, error) { return nil, ErrUnavailable }
func (s *Service) rates(ctx context.Context, idOrName string) (Rates, error) {
	return Rates{}, ErrUnavailable
}
func (s *Service) results(ctx context.Context, idOrName string, q ResultQuery) (*ResultPage, error) {
	return nil, ErrUnavailable
}
func (s *Service) changes(ctx context.Context, idOrName, cursor string) (*ChangePage, error) {
	return nil, ErrUnavailable
}
