package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// ErrUnavailable says that no worker, or no holder of the lease, can be reached just now.
var ErrUnavailable = errors.New("unavailable")

// ErrFull says that the cluster has as many jobs as it takes.
var ErrFull = errors.New("too many jobs")

// A Store is the metastore as this package needs it.
type Store interface {
	Jobs
	Attempts
	Leases
	Events
	History
	Pins
	Storage
}

// A Control carries commands to workers and back (transport). Server is the name
// under which this server takes commands of others, as a worker does its own.
type Control interface {
	// Command has a worker run a command, once for its key, and returns its answer; a key
	// without a job asks anew. weir.ErrNotFound: nobody has answered under that name for a
	// while.
	Command(ctx context.Context, worker weir.WorkerID, key weir.CommandKey, body []byte) ([]byte, error)
	// Serve takes commands under a name until ctx ends.
	Serve(ctx context.Context, name weir.WorkerID, incarnation string, handler func(ctx context.Context, kind string, body []byte) ([]byte, error)) error
	// Ping asks a worker for its incarnation; weir.ErrNotFound: nobody listens there.
	Ping(ctx context.Context, worker weir.WorkerID) (incarnation string, err error)
	// Ready says why commands wait: NATS is away, or of no use; nil: they need not.
	Ready() error
	// StableSince is when our own connection came up, or the set of NATS servers last
	// changed; zero while it is down.
	StableSince() time.Time
	// AbsentFor is for how long nobody answers under the name of a worker that lives, at
	// most.
	AbsentFor() time.Duration
	// MaxPayload is the largest payload of a frame that NATS takes.
	MaxPayload() int
}

// Reports brings what workers say to this server (transport).
type Reports interface {
	// ServeReports calls handler with each report until ctx ends; one that answers
	// weir.ErrConflict is offered again.
	ServeReports(ctx context.Context, handler func(ctx context.Context, kind string, body []byte) ([]byte, error)) error
	// Heartbeats calls handle with each heartbeat until ctx ends.
	Heartbeats(ctx context.Context, handle func(body []byte)) error
}

// Deps are what a Service works with; all are required.
type Deps struct {
	Store       Store
	Checkpoints Checkpoints
	Blobs       blob.Store
	Control     Control
	Reports     Reports
	Logger      *slog.Logger
}

// Options tune a Service; the zero value works.
type Options struct {
	// LeaseTTL is how long the lease on the jobs outlives its holder; 0: 3 s.
	LeaseTTL time.Duration
	// Poll is how often the metastore is looked at for what other servers recorded; 0: 1 s.
	Poll time.Duration
	// Alone: no other server can live on this metastore, so that a lease that is still
	// held is that of a server that died: it need not expire.
	Alone bool
	// History says how long the history of checkpoints is kept; zero: for ever.
	History checkpoint.Thinning
	// CollectLinger is how long after an attempt's end its folder is left alone; 0: 1 m.
	CollectLinger time.Duration
	// MaxJobs is how many jobs may be there that have not ended; 0: 1000. Each costs memory
	// and work, also while it waits for slots.
	MaxJobs int
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// DefaultMaxJobs is Options.MaxJobs where it is not given.
const DefaultMaxJobs = 1000

func (o Options) withDefaults() Options {
	o.LeaseTTL = cmp.Or(o.LeaseTTL, 3*time.Second)
	o.Poll = cmp.Or(o.Poll, time.Second)
	o.MaxJobs = cmp.Or(o.MaxJobs, DefaultMaxJobs)
	o.CollectLinger = cmp.Or(o.CollectLinger, collectLinger)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// A Service runs jobs and answers for them. Its methods may be called on any server;
// the jobs themselves are run by the one that holds the lease.
type Service struct {
	deps  Deps
	opts  Options
	id    string // this server's incarnation: the lease's holder
	now   func() time.Time
	wakeC chan struct{} // room for one: the holder looks at the metastore
	clean *collector

	mu struct {
		sync.Mutex
		workers  *registry
		holder   string    // of the lease, as last heard; empty: nobody
		loaded   bool      // the lease is ours, or has lapsed, and we know every unsettled job
		until    time.Time // our lease ends; zero: we have none, or it has lapsed
		jobs     map[weir.JobID]*driver
		reserved map[weir.JobID]map[weir.WorkerID]int
		ended    map[weir.JobID]endedAttempt
		strays   map[stray]bool // that are being ended
		asked    map[*asked]bool
	}
}

// New makes a Service; Run runs it.
func New(deps Deps, opts Options) *Service {
	opts = opts.withDefaults()
	s := &Service{deps: deps, opts: opts, now: opts.Now, id: weir.NewIncarnation(), wakeC: make(chan struct{}, 1), clean: newCollector(deps, opts)}
	s.mu.workers, s.mu.jobs, s.mu.reserved = newRegistry(), map[weir.JobID]*driver{}, map[weir.JobID]map[weir.WorkerID]int{}
	s.mu.ended, s.mu.strays, s.mu.asked = map[weir.JobID]endedAttempt{}, map[stray]bool{}, map[*asked]bool{}
	return s
}

// shard is the one shard there is.
const shard = 0

// serverName is the name under which a server takes commands.
func serverName(id string) weir.WorkerID { return weir.WorkerID("server-" + id) }

// Run holds the lease when it is free, and then runs the jobs, until ctx ends, or with an
// error when it hears no commands or reports any more. Running tasks are not ended with it.
func (s *Service) Run(ctx context.Context) error {
	s.mu.Lock()
	s.mu.workers.joins(s.now())
	s.mu.Unlock()
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.deps.Reports.Heartbeats(gctx, s.heartbeat) })
	g.Go(func() error { return s.deps.Reports.ServeReports(gctx, s.report) })
	g.Go(func() error { return s.deps.Control.Serve(gctx, serverName(s.id), s.id, s.command) })
	g.Go(func() error { return s.watch(gctx) })
	g.Go(func() error { return s.lead(gctx) })
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run jobs: %w", err)
	}
	return nil
}

// wake has the holder, if it is this server, look at the metastore now.
func (s *Service) wake() {
	select {
	case s.wakeC <- struct{}{}:
	default:
	}
}

// A leaseAnswer is the outcome of asking for the lease.
type leaseAnswer struct {
	askedAt time.Time
	lease   *Lease
}

// lead drives the lease machine: it asks for the lease, runs hold until it is lost, and
// lets it go at the end.
func (s *Service) lead(ctx context.Context) error {
	m := newLeaseMachine(s.id, s.opts.LeaseTTL)
	answerC := make(chan leaseAnswer, 1)
	var g errgroup.Group
	var holding sync.Mutex // one hold ends before the next begins
	letGo := func() {}
	timer := time.NewTimer(0)
	defer timer.Stop()
	apply := func(do leaseDo) {
		switch {
		case do.Lapsed:
			s.deps.Logger.Warn("lease lapsed: nothing is decided until the metastore says whose it is; tasks run on", "server", s.id)
		case do.Kept:
			s.deps.Logger.Info("lease kept: nobody held it meanwhile", "server", s.id, "term", m.term)
		case do.Lost:
			s.deps.Logger.Warn("lease lost: another server holds it, or has held it", "server", s.id)
			letGo()
		}
		if do.Gained != 0 {
			var hctx context.Context
			hctx, letGo = context.WithCancel(ctx)
			g.Go(func() error { return s.hold(hctx, &holding, do.Gained) })
		}
		if do.Ask {
			g.Go(func() error { return s.askLease(ctx, answerC) })
		}
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case a := <-answerC:
			apply(m.answered(s.now(), a.askedAt, a.lease))
		case <-timer.C:
		}
		apply(m.step(s.now()))
		s.leased(m)
		if next := m.next(); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(next.Sub(s.now()), time.Millisecond))
		}
	}
	letGo()
	err := g.Wait()
	if m.term != 0 {
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := s.deps.Store.ReleaseLease(rctx, shard, s.id); err != nil {
			s.deps.Logger.Warn("lease not released, it will expire", "err", err)
		}
	}
	return err
}

// leased notes until when we may decide.
func (s *Service) leased(m *leaseMachine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.until = m.until; !m.decides() {
		s.mu.until = time.Time{}
	}
}

// askLease asks for the lease once and says how it stands.
func (s *Service) askLease(ctx context.Context, answerC chan<- leaseAnswer) error {
	a := leaseAnswer{askedAt: s.now()}
	lease, err := s.deps.Store.AcquireLease(ctx, shard, s.id, s.opts.LeaseTTL)
	if err == nil && s.opts.Alone && lease.Holder != s.id {
		if err = s.deps.Store.ReleaseLease(ctx, shard, lease.Holder); err == nil {
			lease, err = s.deps.Store.AcquireLease(ctx, shard, s.id, s.opts.LeaseTTL)
		}
	}
	if err == nil {
		a.lease = &lease
	} else if ctx.Err() == nil {
		s.deps.Logger.Warn("lease not renewed", "err", err)
	}
	s.mu.Lock()
	if a.lease != nil {
		s.mu.holder = a.lease.Holder
	}
	s.mu.Unlock()
	answerC <- a // has room: one question is open at a time
	return nil
}

// hold runs the jobs of the shard under a term until ctx ends: one driver for each job
// that is not settled.
func (s *Service) hold(ctx context.Context, holding *sync.Mutex, term int64) error {
	holding.Lock()
	defer holding.Unlock()
	s.deps.Logger.Info("lease gained", "server", s.id, "term", term)
	var g errgroup.Group
	g.Go(func() error { s.thin(ctx); return nil })
	g.Go(func() error { s.clean.run(ctx); return nil })
	ticker := time.NewTicker(s.opts.Poll)
	defer ticker.Stop()
	for ctx.Err() == nil {
		s.look(ctx, &g, term)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		case <-s.wakeC:
		}
	}
	s.mu.Lock()
	s.mu.loaded = false
	s.mu.Unlock()
	return g.Wait()
}

// look reads the unsettled jobs: those without a driver get one, the others' drivers
// hear of the row.
func (s *Service) look(ctx context.Context, g *errgroup.Group, term int64) {
	readAt := s.now()
	jobs, err := s.deps.Store.Jobs(ctx, weir.JobFilter{Unsettled: true})
	if err != nil {
		if ctx.Err() == nil {
			s.deps.Logger.Warn("jobs not read, tried again", "err", err)
		}
		return
	}
	for _, j := range jobs {
		s.mu.Lock()
		d := s.mu.jobs[j.ID]
		begin := d == nil && !settled(j) && j.Term <= term
		if begin {
			d = newDriver(s, j, term)
			s.mu.jobs[j.ID] = d
		}
		s.mu.Unlock()
		switch {
		case begin:
			g.Go(func() error { s.drive(ctx, d); return nil })
		case d != nil:
			d.post(evWished{Job: j, ReadAt: readAt})
		}
	}
	s.mu.Lock()
	s.mu.loaded = ctx.Err() == nil
	s.mu.Unlock()
	s.endStrays(ctx, g)
}

// drive runs one job's driver to its end. If that was not the job's, the next look
// begins a new one from the row.
func (s *Service) drive(ctx context.Context, d *driver) {
	log := s.deps.Logger.With("job", d.id)
	err := d.run(ctx)
	s.mu.Lock()
	delete(s.mu.jobs, d.id)
	delete(s.mu.reserved, d.id)
	s.mu.Unlock()
	switch {
	case ctx.Err() != nil, err == nil:
	case errors.Is(err, weir.ErrStale):
		log.Info("a newer owner of the job exists")
	default:
		log.Error("job could not be driven, tried again", "err", err)
	}
	s.broadcast(evSlots{})
	if err == nil {
		s.wake() // it may be one that is to be started again
	}
}

// broadcast tells every driver.
func (s *Service) broadcast(ev event) {
	s.mu.Lock()
	drivers := make([]*driver, 0, len(s.mu.jobs))
	for _, d := range s.mu.jobs {
		drivers = append(drivers, d)
	}
	s.mu.Unlock()
	for _, d := range drivers { // their order does not matter: each decides for itself
		d.post(ev)
	}
}

// endStrays has workers end attempts that they run and that are over: a worker that
// was cut off knows nothing of it.
func (s *Service) endStrays(ctx context.Context, g *errgroup.Group) {
	for _, st := range s.strays() {
		g.Go(func() error { s.endStray(ctx, st); return nil })
	}
}

// watchEvery is how often the registry looks at the clock.
const watchEvery = 20 * time.Millisecond

// watch judges workers: it drives the registry's pings and tells the jobs of deaths.
func (s *Service) watch(ctx context.Context) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var pings errgroup.Group
	var told time.Time // up to which moment, when workers had settled
	last := s.now()
	for {
		select {
		case <-ctx.Done():
			return pings.Wait()
		case <-ticker.C:
		}
		now := s.now()
		s.mu.Lock()
		if now.Sub(last) > silentFor {
			s.mu.workers.woke(now)
		}
		last = now
		ping, dead := s.mu.workers.tick(now, s.deps.Control.StableSince(), s.deps.Control.AbsentFor())
		settled := s.mu.workers.settled()
		s.mu.Unlock()
		s.mourn(dead)
		for _, id := range ping {
			pings.Go(func() error { s.ping(ctx, id); return nil })
		}
		if settled.After(told) && !now.Before(settled) {
			told = settled
			s.broadcast(evSlots{}) // jobs that waited for workers to be heard
		}
	}
}
