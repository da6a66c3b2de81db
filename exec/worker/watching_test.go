package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"weir"
	"weir/exec"
	"weir/exec/deploy"
	"weir/exec/source"
)

// returned gives the question to the test, which answers it.
func (c *control) returned(ctx context.Context, body []byte) ([]byte, error) {
	var m deploy.Returned
	if err := deploy.Decode(body, &m); err != nil {
		return nil, err
	}
	select {
	case c.askedC <- m:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case over := <-c.overC:
		return deploy.Encode(over), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A watched is a worker whose watch the test winds.
type watched struct {
	*harness
	tickC chan time.Time
	mu    sync.Mutex
	at    time.Time
}

func startWatched(t *testing.T) *watched {
	t.Helper()
	return startWatchedWith(t, source.Open)
}

// startWatchedWith starts one whose sources are opened by open.
func startWatchedWith(t *testing.T, open func(context.Context, exec.Setup) (exec.Source, error)) *watched {
	t.Helper()
	x := &watched{tickC: make(chan time.Time), at: time.Now()}
	x.harness = startAt(t, open, func() time.Time {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.at
	}, x.tickC)
	x.look(0, true) // it has begun to look before time passes
	return x
}

// look moves the clock on and has the worker look twice, so that the first is dealt with.
func (x *watched) look(after time.Duration, connected bool) {
	x.c.note(func() { x.c.mu.away = !connected })
	x.mu.Lock()
	x.at = x.at.Add(after)
	x.mu.Unlock()
	x.tickC <- time.Time{}
	x.tickC <- time.Time{}
}

// cutOff lets a while pass without a connection, a second at a time.
func (x *watched) cutOff(d time.Duration) {
	for ; d > 0; d -= time.Second {
		x.look(time.Second, false)
	}
}

func (x *watched) rows(beat deploy.Heartbeat) int64 {
	var n int64
	for _, a := range beat.Attempts {
		for _, t := range a.Tasks {
			if t.Task.Chain == 0 {
				n += t.RowsIn
			}
		}
	}
	return n
}

// grows waits until the sources have read more.
func (x *watched) grows(what string) {
	x.t.Helper()
	first := int64(-1)
	x.until(what, func(_ []deploy.Report, beat deploy.Heartbeat) bool {
		n := x.rows(beat)
		if first < 0 {
			first = n
		}
		return n > first
	})
}

func (x *watched) running(beat deploy.Heartbeat) bool {
	return len(beat.Attempts) == 1 && len(beat.Attempts[0].Tasks) > 0
}

// TestCutOffGoesOn is R06 for a worker: away for a while, it goes on with what is current,
// but not before it was told.
func TestCutOffGoesOn(t *testing.T) {
	t.Parallel()
	x := startWatched(t)
	m := x.deployment(1, endless)
	x.must(deploy.KindDeploy, m)
	x.grows("rows")
	x.cutOff(6 * time.Second)
	x.c.note(func() { x.c.mu.away = false })
	x.tickC <- time.Time{}
	asked := <-x.c.askedC
	if len(asked.Attempts) != 1 || asked.Attempts[0] != (deploy.Held{Job: jobID, Attempt: m.Attempt}) {
		t.Errorf("asked %+v", asked)
	}
	x.c.overC <- deploy.Over{Header: deploy.Head()}
	x.grows("rows again")
}

// TestSleepDropsStale is a zombie: SIGSTOP past its replacement, then SIGCONT.
func TestSleepDropsStale(t *testing.T) {
	t.Parallel()
	x := startWatched(t)
	m := x.deployment(1, endless)
	x.must(deploy.KindDeploy, m)
	x.grows("rows")
	x.look(time.Hour, true)
	<-x.c.askedC
	x.c.overC <- deploy.Over{Header: deploy.Head(), Attempts: []deploy.Held{{Job: jobID, Attempt: m.Attempt}}}
	x.until("its end", func(_ []deploy.Report, beat deploy.Heartbeat) bool { return len(beat.Attempts) == 0 })
	if _, err := x.ask(deploy.KindTrigger, deploy.Trigger{Header: deploy.Head(), Tasks: []weir.TaskID{{}}}); err == nil {
		t.Error("it triggers a stale attempt")
	}
	m = x.deployment(2, endless) // it takes new ones
	x.must(deploy.KindDeploy, m)
	x.grows("rows of the next attempt")
}

// A task that hangs in an attempt that is over holds nobody up: other sources go on.
func TestStaleHangs(t *testing.T) {
	t.Parallel()
	inC, goneC := make(chan struct{}, 2), make(chan struct{})
	x := startWatchedWith(t, func(ctx context.Context, s exec.Setup) (exec.Source, error) {
		src, err := source.Open(ctx, s)
		if s.Attempt == at(1) {
			src = hung{src, inC, goneC}
		}
		return src, err
	})
	defer close(goneC)
	m := x.deployment(1, endless)
	x.must(deploy.KindDeploy, m)
	<-inC
	x.look(time.Hour, true)
	<-x.c.askedC
	x.c.overC <- deploy.Over{Header: deploy.Head(), Attempts: []deploy.Held{{Job: jobID, Attempt: m.Attempt}}}
	x.must(deploy.KindDeploy, x.deployment(2, endless))
	x.grows("rows of the next attempt")
}

// TestCutOffEnds: after a minute its attempts end, and the servers hear of it.
func TestCutOffEnds(t *testing.T) {
	t.Parallel()
	x := startWatched(t)
	m := x.deployment(1, endless)
	x.must(deploy.KindDeploy, m)
	x.until("it runs", func(_ []deploy.Report, beat deploy.Heartbeat) bool { return x.running(beat) })
	x.cutOff(62 * time.Second)
	x.until("its end", func(_ []deploy.Report, beat deploy.Heartbeat) bool { return len(beat.Attempts) == 0 })
	x.look(time.Second, true)
	asked := <-x.c.askedC
	if len(asked.Attempts) != 1 || asked.Attempts[0] != (deploy.Held{Job: jobID, Attempt: m.Attempt, Ended: true}) {
		t.Errorf("asked %+v", asked)
	}
	x.c.overC <- deploy.Over{Header: deploy.Head()}
	x.must(deploy.KindDeploy, x.deployment(2, endless))
	x.grows("rows of the next attempt")
}
