package job

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/checkpoint"
)

// A thinStore answers ThinHistory from a list, and then with nothing to do.
type thinStore struct {
	Store
	began time.Time
	mu    struct {
		sync.Mutex
		answers []checkpoint.Thinned
		calls   []time.Duration // when, since began
		err     error
	}
}

// answer says what follows.
func (s *thinStore) answer(err error, answers ...checkpoint.Thinned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.err, s.mu.answers = err, answers
}

func (s *thinStore) calls() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.calls)
}

func (s *thinStore) ThinHistory(_ context.Context, keep checkpoint.Thinning) (checkpoint.Thinned, error) {
	if keep.Rows != 90*24*time.Hour || keep.Detail != time.Hour {
		return checkpoint.Thinned{}, errors.New("other limits")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.calls = append(s.mu.calls, time.Since(s.began))
	if s.mu.err != nil || len(s.mu.answers) == 0 {
		return checkpoint.Thinned{}, s.mu.err
	}
	a := s.mu.answers[0]
	s.mu.answers = s.mu.answers[1:]
	return a, nil
}

// The history is thinned at once, batch by batch, and then every hour; what fails waits
// for the next hour.
func TestThin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &thinStore{began: time.Now()}
		store.answer(nil, checkpoint.Thinned{Details: 5, More: true}, checkpoint.Thinned{Rows: 5, More: true}, checkpoint.Thinned{Details: 1})
		s := New(Deps{Store: store, Logger: slog.New(slog.DiscardHandler)}, Options{History: checkpoint.Thinning{Detail: time.Hour, Rows: 90 * 24 * time.Hour}})
		ctx, cancel := context.WithCancel(t.Context())
		doneC := make(chan struct{})
		go func() { defer close(doneC); s.thin(ctx) }()
		synctest.Wait()
		if calls := store.calls(); len(calls) != 3 {
			t.Fatalf("at start: %v", calls)
		}
		store.answer(errors.New("away"))
		after(t, 61*time.Minute)
		store.answer(nil, checkpoint.Thinned{Rows: 5, More: true})
		after(t, time.Hour)
		want := []time.Duration{0, 0, 0, time.Hour, 2 * time.Hour, 2 * time.Hour}
		if calls := store.calls(); !slices.Equal(calls, want) {
			t.Errorf("calls %v, want %v", calls, want)
		}
		cancel()
		<-doneC
	})
	New(Deps{}, Options{}).thin(t.Context()) // for ever: nothing to do
}

// after lets time pass in a bubble.
func after(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}
