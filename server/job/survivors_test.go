package job_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"weir/exec/deploy"
)

// The tasks that a dead worker leaves behind end at once, though the metastore does not
// answer: they wait neither for the decision that is in hand, nor for the job's next status.
func TestSurvivorsEndAtOnce(t *testing.T) {
	t.Parallel()
	c, s := started(t)
	decidingC, goOnC := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(goOnC) })
	defer goOn()
	var first sync.Once
	hang := func() {
		first.Do(func() { close(decidingC) })
		<-goOnC
	}
	c.Deciding.Store(&hang)
	<-decidingC
	var told atomic.Bool
	watch := func(kind string) bool {
		told.Store(told.Load() || kind == deploy.KindStop)
		return false
	}
	c.Lose.Store(&watch)
	c.Kill("w2")
	c.Until("they are told to end", func(context.Context) bool { return told.Load() })
	c.Until("no task runs any more", func(ctx context.Context) bool {
		workers, err := s.Workers(ctx)
		return err == nil && len(workers) > 0 && workers[0].ID == "w1" && workers[0].Tasks == 0
	})
	c.Deciding.Store(nil)
	if j, err := s.Get(context.Background(), "counts"); err != nil || j.Attempt.Number != 1 {
		t.Errorf("attempt %v, %v: another one began before the coordinator had ended", j.Attempt, err)
	}
	goOn()
	if j := finished(t, c, s, "counts"); j.Attempt.Number < 2 {
		t.Errorf("attempt %v, want another one", j.Attempt)
	}
}
