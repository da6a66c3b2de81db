package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-playground/validator/v10"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"weir"
	"weir/checkpoint"
	"weir/server/job"
	"weir/web"
)

// A Service runs jobs and answers for them; job.Service is one.
type Service interface {
	Lifecycle
	Reads
	Snapshots
	Storage
}

// Lifecycle is what users ask of jobs.
type Lifecycle interface {
	Submit(ctx context.Context, spec job.Spec) (weir.Job, error)
	Stop(ctx context.Context, idOrName string, req job.StopRequest) (weir.Job, error)
	Cancel(ctx context.Context, idOrName string, abandonOutput bool) (weir.Job, error)
	Start(ctx context.Context, idOrName string, req job.StartRequest) (weir.Job, error)
	Restore(ctx context.Context, idOrName string, req job.StartRequest) (weir.Job, error)
	Delete(ctx context.Context, idOrName string, abandonOutput bool) error
}

// Reads is what is shown of jobs and workers.
type Reads interface {
	Get(ctx context.Context, idOrName string) (weir.Job, error)
	List(ctx context.Context, f weir.JobFilter) ([]weir.Job, error)
	Rates(ctx context.Context, idOrName string) (job.Rates, error)
	Channels(ctx context.Context, idOrName string) (job.Channels, error)
	Observe(ctx context.Context) (job.Observation, error)
	Results(ctx context.Context, idOrName string, q job.ResultQuery) (*job.ResultPage, error)
	Changes(ctx context.Context, idOrName, cursor string) (*job.ChangePage, error)
	Rejects(ctx context.Context, idOrName string, limit int, cursor string) (*job.RejectPage, error)
	Workers(ctx context.Context) ([]job.Worker, error)
}

// Snapshots is what users ask of checkpoints and savepoints.
type Snapshots interface {
	TriggerCheckpoint(ctx context.Context, idOrName string, wait time.Duration) (job.Triggered, error)
	TriggerSavepoint(ctx context.Context, idOrName, name string, wait time.Duration) (job.Triggered, error)
	CancelCheckpoint(ctx context.Context, idOrName string, id weir.CheckpointID) (checkpoint.Record, error)
	CheckpointProgress(ctx context.Context, id weir.JobID, checkpoint weir.CheckpointID) (job.Progress, error)
	DeleteSavepoint(ctx context.Context, name string) error
}

// Storage is what users ask of what lies in object storage.
type Storage interface {
	Adoptable(ctx context.Context, idOrName string) (weir.Job, []checkpoint.Candidate, error)
	Adopt(ctx context.Context, idOrName string, id weir.CheckpointID) (weir.Job, checkpoint.Candidate, error)
	CheckStorage(ctx context.Context, req job.StorageRequest) (*job.StorageReport, error)
}

// History is the part of the metastore that is shown as it is.
type History interface {
	Checkpoints(ctx context.Context, job weir.JobID, f checkpoint.Filter) ([]checkpoint.Record, error)
	CheckpointSummary(ctx context.Context, job weir.JobID, f checkpoint.Filter) (checkpoint.Summary, error)
	CheckpointByID(ctx context.Context, job weir.JobID, id weir.CheckpointID) (checkpoint.Record, error)
	Savepoints(ctx context.Context) ([]checkpoint.Savepoint, error)
	Savepoint(ctx context.Context, name string) (checkpoint.Savepoint, error)
	Events(ctx context.Context, job weir.JobID, after int64, limit int) ([]weir.Event, error)
	NewestEvents(ctx context.Context, job weir.JobID, before int64, limit int) ([]weir.Event, error)
	Attempts(ctx context.Context, job weir.JobID) ([]weir.Attempt, error)
}

// A Probe is a dependency whose health is shown.
type Probe struct {
	Name  string
	Check func(ctx context.Context) error
}

// Deps are what a Server works with; all are required.
type Deps struct {
	Service Service
	History History
	Tables  job.Tables
	Logger  *slog.Logger
}

// Options tune a Server; the zero value works.
type Options struct {
	Version string
	// CheckPath refuses paths that file tables may not use; nil: none is refused.
	CheckPath func(path string) error
	// Hosts are further names by which this server may be addressed, beside localhost
	// and IP addresses; "*" means any.
	Hosts []string
	// Probes are the dependencies that make the server ready.
	Probes []Probe
	// Poll is how often event streams look for news; 0: 150 ms.
	Poll time.Duration
	// Files is the dashboard; nil: package web's.
	Files fs.FS
}

// A Server is the HTTP API and the dashboard.
type Server struct {
	deps      Deps
	opts      Options
	validator *validator.Validate
	metrics   *metrics
	process   prometheus.Gatherer // this process's own figures
	handler   http.Handler
}

// New makes a Server; Run serves it.
func New(deps Deps, opts Options) *Server {
	opts.Poll = cmp.Or(opts.Poll, 150*time.Millisecond)
	opts.Version = cmp.Or(opts.Version, "dev")
	if opts.Files == nil {
		opts.Files = web.Files()
	}
	s := &Server{deps: deps, opts: opts, validator: newValidator(), metrics: newMetrics(), process: processFigures()}
	e := echo.New()
	e.HTTPErrorHandler = s.fail
	s.routes(e)
	api, dashboard := http.Handler(e), s.dashboard()
	s.handler = s.recovering(s.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isAPI(r.URL.Path) {
			w.Header().Set("Cache-Control", "no-store") // what is shown is how things stand now
			api.ServeHTTP(w, r)
			return
		}
		dashboard.ServeHTTP(w, r)
	})))
	return s
}

// isAPI reports whether a path is, or looks like, a route of the table, rather than the
// dashboard's: what is wrong with it is said as a problem, not as a page.
func isAPI(urlPath string) bool {
	first, _, _ := strings.Cut(strings.TrimLeft(urlPath, "/"), "/")
	switch strings.ToLower(first) {
	case "v1", "healthz", "readyz", "metrics", "docs", "openapi.json":
		return true
	}
	return false
}

// routes is the whole API. What takes GET takes HEAD: net/http leaves the body out.
func (s *Server) routes(e *echo.Echo) {
	get := func(path string, h echo.HandlerFunc) {
		e.GET(path, h)
		e.HEAD(path, h)
	}
	e.POST("/v1/jobs", s.createJob)
	get("/v1/jobs", s.listJobs)
	get("/v1/jobs/:job", s.getJob)
	e.DELETE("/v1/jobs/:job", s.deleteJob)
	e.POST("/v1/jobs/:job/stop", s.stopJob)
	e.POST("/v1/jobs/:job/cancel", s.cancelJob)
	e.POST("/v1/jobs/:job/start", s.startJob)
	e.POST("/v1/jobs/:job/restore", s.restoreJob)
	get("/v1/jobs/:job/plan", s.getJobPlan)
	get("/v1/jobs/:job/events", s.listEvents)
	get("/v1/jobs/:job/attempts", s.listAttempts)
	get("/v1/jobs/:job/results", s.getResults)
	get("/v1/jobs/:job/rejects", s.getRejects)
	get("/v1/jobs/:job/metrics", s.getJobMetrics)

	e.POST("/v1/jobs/:job/checkpoints", s.triggerCheckpoint)
	get("/v1/jobs/:job/checkpoints", s.listCheckpoints)
	get("/v1/jobs/:job/checkpoints/summary", s.getCheckpointSummary)
	get("/v1/jobs/:job/checkpoints/:id", s.getCheckpoint)
	e.DELETE("/v1/jobs/:job/checkpoints/:id", s.cancelCheckpoint)
	e.POST("/v1/jobs/:job/savepoints", s.triggerSavepoint)
	get("/v1/savepoints", s.listSavepoints)
	get("/v1/savepoints/:name", s.getSavepoint)
	e.DELETE("/v1/savepoints/:name", s.deleteSavepoint)
	get("/v1/jobs/:job/adoptable", s.listAdoptable)
	e.POST("/v1/jobs/:job/adopt", s.adoptCheckpoint)
	get("/v1/storage/check", s.checkStorage)
	e.POST("/v1/storage/repair", s.repairStorage)

	e.POST("/v1/plan", s.plan)
	e.POST("/v1/sql", s.runSQL)
	e.POST("/v1/tables", s.createTable)
	get("/v1/tables", s.listTables)
	get("/v1/tables/:name", s.getTable)
	e.DELETE("/v1/tables/:name", s.dropTable)

	get("/v1/events", s.streamJobs)
	get("/v1/workers", s.listWorkers)
	get("/v1/cluster", s.getCluster)
	get("/healthz", s.getHealth)
	get("/readyz", s.getReady)
	get("/metrics", s.getMetrics)
	get("/openapi.json", s.getDocument)
	get("/docs", s.getDocs)
	get("/docs/:file", s.getDocsFile)
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// maxHeader bounds a request's line and headers. The cursor of a page of results holds the
// row that it is behind, more than once and in base 64 twice, and a row may be large.
const maxHeader = 4 << 20

// grace is how long requests may take once Run ends; event streams end at once.
const grace = 5 * time.Second

// Run serves on listener until ctx ends, and then lets open requests finish.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return context.WithValue(streams, streamsKey{}, ctx) },
		ErrorLog:          slog.NewLogLogger(s.deps.Logger.Handler(), slog.LevelDebug),
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", listener.Addr(), err)
		}
		return nil
	})
	g.Go(func() error {
		<-gctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if err := srv.Shutdown(end); err != nil {
			s.deps.Logger.Warn("requests were cut off", "err", errors.Join(err, srv.Close()))
		}
		return nil
	})
	return g.Wait()
}

// streamsKey is the context key under which a request finds the context that event
// streams end with.
type streamsKey struct{}

// streamContext ends with the request and with Run.
func streamContext(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	run, ok := ctx.Value(streamsKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	stop := context.AfterFunc(run, cancel)
	return ctx, func() { stop(); cancel() }
}
