package job

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// ErrUnavailable: no worker, or no holder of the lease, can be reached just now.
var ErrUnavailable = errors.New("unavailable")

// A Store is the metastore as this package needs it.
type Store interface {
	Jobs
	Attempts
	Leases
	Events
	History
}

// Deps are what a Service works with.
type Deps struct {
	Store       Store
	Checkpoints checkpoint.Store
	Blobs       blob.Store
	Logger      *slog.Logger
}

// A Service runs jobs and answers for them. Its methods may be called on any server;
// the jobs themselves are run by the one that holds the lease.
type Service struct {
	deps Deps
}

// New makes a Service; Run runs it.
func New(deps Deps) *Service { return &Service{deps: deps} }

// Run runs the service until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

type triggerRequest struct {
	Savepoint bool
	Name      string
	Wait      time.Duration
}
