package job_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"weir"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// A split is a metastore that comes and goes for each of two servers by itself: it answers,
// fails at once, or lets a server hang, whose calls it carries out when it is back.
type split struct {
	mu   sync.Mutex
	away map[string]error
	hung map[string]chan struct{}
}

var errAway = errors.New("the metastore is away")

func (s *split) ask(ctx context.Context, server string) error {
	s.mu.Lock()
	err, hung := s.away[server], s.hung[server]
	s.mu.Unlock()
	if hung == nil {
		return err
	}
	select {
	case <-hung:
	case <-time.After(10 * time.Second): // as long as a call may take, and what it does comes late
	case <-ctx.Done():
	}
	return nil
}

func (s *split) set(server string, mode int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.hung[server]; c != nil {
		close(c)
	}
	delete(s.hung, server)
	delete(s.away, server)
	switch mode {
	case 1:
		s.away[server] = errAway
	case 2:
		s.hung[server] = make(chan struct{})
	}
}

// TestSplit: two servers whose metastore comes and goes, and who hang, each by itself, while
// users stop, start and save the job at either. Whatever they have decided, the answer is
// exact, nothing waits for ever, and what is kept in storage is whole.
func TestSplit(t *testing.T) {
	t.Parallel()
	seeds, steps, rate := 1, 40, "'20000'"
	if os.Getenv("WEIR_LONG") != "" {
		seeds, steps, rate = 6, 100, "'8000'"
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(6, uint64(seed)))
			c := jobtest.New(t)
			x := &split{away: map[string]error{}, hung: map[string]chan struct{}{}}
			ask := x.ask
			c.Metastore.Store(&ask)
			names := []string{"s1", "s2"}
			servers := []*job.Service{c.Server("s1"), c.Server("s2")}
			c.Worker("w1", 4)
			c.Worker("w2", 4)
			c.Heard(servers[0], 2)
			c.Heard(servers[1], 2)
			submit(t, c, servers[0], "counts", strings.Replace(counts, "'25000'", rate, 1))
			completed(t, c, "counts")
			ticker := time.NewTicker(150 * time.Millisecond)
			defer ticker.Stop()
			for range steps {
				<-ticker.C
				if rnd.IntN(4) == 0 {
					x.set(names[rnd.IntN(2)], rnd.IntN(3))
				}
				use(t, servers[rnd.IntN(2)], rnd)
			}
			x.set("s1", 0)
			x.set("s2", 0)
			c.Held.Store(false)
			c.Until("the job ends", func(ctx context.Context) bool {
				j, err := c.Store.Job(ctx, "counts")
				if err == nil && j.Status == weir.StatusStopped && !j.EndedAt.IsZero() {
					_, _ = servers[0].Start(ctx, "counts", job.StartRequest{}) // it says so when it cannot
				}
				return err == nil && (j.Status == weir.StatusFinished || j.Status == weir.StatusFailed)
			})
			j := finished(t, c, servers[1], "counts")
			t.Logf("attempts %d, terms %d", j.Attempt.Number, j.Term)
			report, err := servers[0].CheckStorage(t.Context(), job.StorageRequest{Deep: true})
			if err != nil || !report.Sound() {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}

// use does what a user may want of the job. What cannot be done says so soon.
func use(t *testing.T, s *job.Service, rnd *rand.Rand) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	switch rnd.IntN(12) {
	case 0:
		_, _ = s.TriggerCheckpoint(ctx, "counts", 0)
	case 1:
		_, _ = s.TriggerSavepoint(ctx, "counts", "", 0)
	case 2:
		_, _ = s.Stop(ctx, "counts", job.StopRequest{})
	case 3, 4, 5, 6:
		_, _ = s.Start(ctx, "counts", job.StartRequest{})
	}
}
