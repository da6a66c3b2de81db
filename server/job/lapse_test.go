package job_test

import (
	"context"
	"sync/atomic"
	"testing"

	"weir"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// lapsing is a cluster with a job whose server cannot renew its lease any more, while all
// else that it asks of the metastore works: the fence alone keeps it from harm. The lease
// has lapsed once it has asked in vain for lapsed times, each a sixth of its time after the
// one before.
func lapsing(t *testing.T) (c *jobtest.Cluster, s *job.Service, vain *atomic.Int64) {
	t.Helper()
	c, s = started(t)
	vain = &atomic.Int64{}
	lose := func(server string) bool {
		if server == "s1" {
			vain.Add(1)
		}
		return server == "s1"
	}
	c.LoseLease.Store(&lose)
	return c, s, vain
}

const lapsed = 8

// TestLeaseKept is R05: a lease that has lapsed and that nobody took is its holder's again.
// The attempt goes on through it, with checkpoints where the metastore takes them, and
// every row is counted once.
func TestLeaseKept(t *testing.T) {
	t.Parallel()
	c, s, vain := lapsing(t)
	c.Until("the lease has lapsed", func(context.Context) bool { return vain.Load() >= lapsed })
	before, err := s.Get(context.Background(), "counts")
	if err != nil {
		t.Fatal(err)
	}
	c.Until("a checkpoint completes all the same", func(ctx context.Context) bool {
		j, err := s.Get(ctx, "counts")
		return err == nil && j.Base.Checkpoint > before.Base.Checkpoint
	})
	c.LoseLease.Store(nil)
	if j := finished(t, c, s, "counts"); j.Attempt.Number != 1 {
		t.Errorf("attempt %v, want the first to go on", j.Attempt)
	}
}

// Where another server takes the lease meanwhile it takes the job as well, in an attempt of
// its own. The one that had it goes on as long as it knows no better, and changes nothing.
func TestLeaseTaken(t *testing.T) {
	t.Parallel()
	c, s1, _ := lapsing(t)
	s2 := c.Server("s2")
	c.Until("another server runs the job", func(ctx context.Context) bool {
		j, err := s2.Get(ctx, "counts")
		return err == nil && j.Attempt.Number > 1 && (j.Status == weir.StatusRunning || j.Status == weir.StatusFinished)
	})
	c.LoseLease.Store(nil)
	if j := finished(t, c, s1, "counts"); j.Attempt.Number != 2 {
		t.Errorf("attempt %v, want the second to go on", j.Attempt)
	}
}
