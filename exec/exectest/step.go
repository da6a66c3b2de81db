package exectest

import (
	"context"
	"sync"
	"time"

	"weir/exec"
	"weir/exec/batch"
)

// A Stepper holds sources back: each subtask emits at most as many batches as it was
// allowed, so that a test can stop a job in the middle of its input.
type Stepper struct {
	mu struct {
		sync.Mutex
		allowed int
	}
}

// Allow lets every subtask emit n more batches.
func (s *Stepper) Allow(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.allowed += n
}

func (s *Stepper) allowed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.allowed
}

// Open wraps the opening of sources.
func (s *Stepper) Open(open func(context.Context, exec.Setup) (exec.Source, error)) func(context.Context, exec.Setup) (exec.Source, error) {
	return func(ctx context.Context, setup exec.Setup) (exec.Source, error) {
		src, err := open(ctx, setup)
		if err != nil {
			return nil, err
		}
		return &stepped{Source: src, stepper: s}, nil
	}
}

type stepped struct {
	exec.Source
	stepper *Stepper
	emitted int
}

// Next implements exec.Source.
func (s *stepped) Next(ctx context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	if s.emitted >= s.stepper.allowed() {
		return nil, exec.Wait, time.Now().Add(time.Millisecond), nil
	}
	b, p, until, err := s.Source.Next(ctx)
	if b != nil {
		s.emitted++
	}
	return b, p, until, err
}
