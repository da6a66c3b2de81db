package job

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weir"
	"weir/exec/deploy"
)

// noCheckpoints is a metastore that has none.
type noCheckpoints struct{ Checkpoints }

// leases is a metastore that has leases and no jobs.
type leases struct {
	Store
	mu   sync.Mutex
	now  func() time.Time
	held Lease
	away bool
	// holds are the contexts under which servers held it, one for each time.
	holds []context.Context
}

func (l *leases) AcquireLease(_ context.Context, shard int, holder string, ttl time.Duration) (Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.away:
		return Lease{}, context.DeadlineExceeded
	case l.held.Holder == holder:
		l.held.Expires = l.now().Add(ttl)
	case !l.now().Before(l.held.Expires):
		l.held = Lease{Shard: shard, Holder: holder, Term: l.held.Term + 1, Expires: l.now().Add(ttl)}
	}
	return l.held, nil
}

func (l *leases) ReleaseLease(_ context.Context, _ int, holder string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held.Holder == holder && !l.away {
		l.held.Expires = l.now()
	}
	return nil
}

// Collectable finds nothing to collect.
func (noCheckpoints) Collectable(context.Context, weir.JobID, int, time.Duration) ([]weir.JobID, weir.JobID, error) {
	return nil, "", nil
}

// Job finds none.
func (l *leases) Job(context.Context, string) (weir.Job, error) { return weir.Job{}, weir.ErrNotFound }

// Jobs notes under which context of holding the lease it was read.
func (l *leases) Jobs(ctx context.Context, _ weir.JobFilter) ([]weir.Job, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.holds) == 0 || l.holds[len(l.holds)-1] != ctx {
		l.holds = append(l.holds, ctx)
	}
	return nil, nil
}

// begun is how many times the jobs were begun, and whether what was begun at first, and at
// last, goes on.
func (l *leases) begun() (times int, first, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.holds)
	return n, l.holds[0].Err() == nil, l.holds[n-1].Err() == nil
}

func (l *leases) cut(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
}

// nobody is a control that no worker answers.
type nobody struct{}

func (nobody) Command(context.Context, weir.WorkerID, weir.CommandKey, []byte) ([]byte, error) {
	return nil, weir.ErrNotFound
}

func (nobody) Serve(ctx context.Context, _ weir.WorkerID, _ string, _ func(context.Context, string, []byte) ([]byte, error)) error {
	<-ctx.Done()
	return nil
}

func (nobody) Ping(context.Context, weir.WorkerID) (string, error) { return "", weir.ErrNotFound }
func (nobody) Ready() error                                        { return nil }
func (nobody) StableSince() time.Time                              { return epoch }
func (nobody) AbsentFor() time.Duration                            { return 110 * time.Millisecond }
func (nobody) MaxPayload() int                                     { return 0 }

func (nobody) ServeReports(ctx context.Context, _ func(context.Context, string, []byte) ([]byte, error)) error {
	<-ctx.Done()
	return nil
}

func (nobody) Heartbeats(ctx context.Context, _ func([]byte)) error {
	<-ctx.Done()
	return nil
}

// serve runs a server until stop is called.
func serve(t *testing.T, store Store, opts Options) (s *Service, stop func()) {
	t.Helper()
	return serveWith(t, store, nobody{}, opts)
}

// serveWith is serve with a control.
func serveWith(t *testing.T, store Store, control Control, opts Options) (s *Service, stop func()) {
	t.Helper()
	s = New(Deps{Store: store, Checkpoints: noCheckpoints{}, Control: control, Reports: nobody{}, Logger: slog.New(slog.DiscardHandler)}, opts)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return s, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// deaf hears no reports: it cannot listen for them.
type deaf struct{ nobody }

var errDeaf = errors.New("nobody listens")

func (deaf) ServeReports(context.Context, func(context.Context, string, []byte) ([]byte, error)) error {
	return errDeaf
}

// TestRunDeaf: a server that hears nothing any more ends with the reason, so that its process
// does too.
func TestRunDeaf(t *testing.T) {
	t.Parallel()
	s := New(Deps{Store: &leases{now: time.Now}, Checkpoints: noCheckpoints{}, Control: nobody{}, Reports: deaf{}, Logger: slog.New(slog.DiscardHandler)}, Options{})
	if err := s.Run(t.Context()); !errors.Is(err, errDeaf) {
		t.Errorf("it ended with %v", err)
	}
}

func (s *Service) holds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decidesLocked()
}

// TestLead: an orderly end hands the lease over at once, a silent one after its time;
// a server that cannot renew stops deciding before another can begin.
func TestLead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leases{now: time.Now}
		s1, stop1 := serve(t, store, Options{})
		time.Sleep(10 * time.Millisecond)
		s2, stop2 := serve(t, store, Options{})
		time.Sleep(5 * time.Second)
		if !s1.holds() || s2.holds() {
			t.Fatalf("holders: %v, %v; want the first server", s1.holds(), s2.holds())
		}
		stop1()
		time.Sleep(1100 * time.Millisecond)
		if !s2.holds() {
			t.Fatal("the lease was let go, and nobody took it within a second")
		}
		s3, stop3 := serve(t, store, Options{})
		time.Sleep(time.Second)
		store.cut(true)
		time.Sleep(3 * time.Second)
		if s2.holds() {
			t.Error("a server that could not renew for the lease's time still decides")
		}
		store.cut(false)
		time.Sleep(3 * time.Second)
		if s2.holds() == s3.holds() {
			t.Errorf("holders: %v, %v; want one of them", s2.holds(), s3.holds())
		}
		stop2()
		stop3()
	})
}

// R05: a metastore that is away for longer than the lease lasts, and that nobody took the
// lease at meanwhile, ends nothing: its holder decides nothing until it is back, and then
// goes on with what it runs.
func TestLeadThroughSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leases{now: time.Now}
		s, stop := serve(t, store, Options{})
		time.Sleep(time.Second)
		store.cut(true)
		time.Sleep(time.Minute)
		if s.holds() {
			t.Error("a server that could not renew for the lease's time still decides")
		}
		store.cut(false)
		time.Sleep(time.Second)
		if !s.holds() {
			t.Error("the metastore is back, and its lease was not taken again")
		}
		if n, first, _ := store.begun(); n != 1 || !first {
			t.Errorf("the jobs were begun %d times, want once and for all", n)
		}
		stop()
	})
}

// Where somebody held the lease meanwhile, and be it for a moment, whatever ran is begun anew.
func TestLeadTakenInSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leases{now: time.Now}
		s, stop := serve(t, store, Options{})
		time.Sleep(time.Second)
		store.cut(true)
		time.Sleep(5 * time.Second)
		store.mu.Lock()
		store.held = Lease{Holder: "other", Term: store.held.Term + 1, Expires: time.Now()}
		store.mu.Unlock()
		store.cut(false)
		time.Sleep(time.Second)
		if n, first, last := store.begun(); !s.holds() || n != 2 || first || !last {
			t.Errorf("holds %v, the jobs were begun %d times, want twice", s.holds(), n)
		}
		stop()
	})
}

// A server that was stopped for longer than it takes to judge everybody dead (SIGSTOP, then
// SIGCONT) looks at its clock before it reads what workers said meanwhile: none is dead for it.
func TestServerAsleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
		s, stop := serve(t, &leases{now: now}, Options{Now: now})
		for _, id := range []weir.WorkerID{"w1", "w2"} {
			s.heartbeat(deploy.Encode(deploy.Heartbeat{Header: deploy.Head(), Worker: id, Incarnation: "a", Slots: 1}))
		}
		time.Sleep(50 * time.Millisecond)
		slept.Store(int64(2 * time.Minute))
		time.Sleep(50 * time.Millisecond)
		s.mu.Lock()
		living := len(s.mu.workers.alive())
		s.mu.Unlock()
		if living != 2 {
			t.Errorf("%d of 2 workers live", living)
		}
		stop()
	})
}

// A server that is alone on its metastore does not wait for the lease of a dead one.
func TestLeadAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leases{now: time.Now, held: Lease{Holder: "dead", Term: 4, Expires: time.Now().Add(time.Hour)}}
		s, stop := serve(t, store, Options{Alone: true})
		time.Sleep(10 * time.Millisecond)
		if !s.holds() || store.held.Term != 5 {
			t.Errorf("holds %v, lease %+v", s.holds(), store.held)
		}
		stop()
	})
}
