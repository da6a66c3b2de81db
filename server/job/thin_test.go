package job

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"weir/checkpoint"
)

// A thinStore answers ThinHistory from a list, and then with nothing to do.
type thinStore struct {
	Store
	answers []checkpoint.Thinned
	calls   []time.Duration // when, since began
	began   time.Time
	err     error
}

func (s *thinStore) ThinHistory(_ context.Context, keep checkpoint.Thinning) (checkpoint.Thinned, error) {
	if keep.Rows != 90*24*time.Hour || keep.Detail != time.Hour {
		return checkpoint.Thinned{}, errors.New("other limits")
	}
	s.calls = append(s.calls, time.Since(s.began))
	if s.err != nil || len(s.answers) == 0 {
		return checkpoint.Thinned{}, s.err
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	return a, nil
}

// The history is thinned at once, batch by batch, and then every hour; what fails waits
// for the next hour.
func TestThin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &thinStore{began: time.Now(), answers: []checkpoint.Thinned{{Details: 5, More: true}, {Rows: 5, More: true}, {Details: 1}}}
		s := New(Deps{Store: store, Logger: slog.New(slog.DiscardHandler)}, Options{History: checkpoint.Thinning{Detail: time.Hour, Rows: 90 * 24 * time.Hour}})
		ctx, cancel := context.WithCancel(t.Context())
		doneC := make(chan struct{})
		go func() { defer close(doneC); s.thin(ctx) }()
		synctest.Wait()
		if len(store.calls) != 3 {
			t.Fatalf("at start: %v", store.calls)
		}
		store.err = errors.New("away")
		after(t, 61*time.Minute)
		store.err = nil
		store.answers = []checkpoint.Thinned{{Rows: 5, More: true}}
		after(t, time.Hour)
		want := []time.Duration{0, 0, 0, time.Hour, 2 * time.Hour, 2 * time.Hour}
		if len(store.calls) != len(want) {
			t.Fatalf("calls %v, want %v", store.calls, want)
		}
		for i, at := range want {
			if store.calls[i] != at {
				t.Errorf("calls %v, want %v", store.calls, want)
				break
			}
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
