package job

import (
	"context"
	"time"
)

// thinEvery is how often the holder of the lease thins the history.
const thinEvery = time.Hour

// thin keeps the history of checkpoints within its limits until ctx ends: at once, and
// then every hour.
func (s *Service) thin(ctx context.Context) {
	if s.opts.History.Detail == 0 && s.opts.History.Rows == 0 {
		return
	}
	ticker := time.NewTicker(thinEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		s.thinAll(ctx)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// thinAll thins batch by batch until nothing is left to do. What fails is tried again
// an hour later.
func (s *Service) thinAll(ctx context.Context) {
	details, rows := 0, 0
	for more := true; more && ctx.Err() == nil; {
		done, err := s.deps.Store.ThinHistory(ctx, s.opts.History)
		if err != nil {
			if ctx.Err() == nil {
				s.deps.Logger.Warn("history of checkpoints not thinned, tried again in an hour", "err", err)
			}
			break
		}
		details, rows, more = details+done.Details, rows+done.Rows, done.More
	}
	if details+rows > 0 {
		s.deps.Logger.Info("history of checkpoints thinned", "details", details, "rows", rows)
	}
}
