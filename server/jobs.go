package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/checkpoint"
	"weir/planner"
	"weir/planner/plan"
	"weir/server/job"
)

// checkpointJSON and restartJSON pass through as they are; the document shows them as
// CheckpointOptions and RestartOptions.
type (
	checkpointJSON struct{ json.RawMessage }
	restartJSON    struct{ json.RawMessage }
)

// A JobRequest asks for a new job.
type JobRequest struct {
	// Made up when absent; [a-z0-9][a-z0-9_-]{0,62}, not job_….
	Name string `json:"name,omitempty" validate:"omitempty,jobname" example:"behaviors"`
	// A script: tables, settings, and one SELECT or INSERT.
	SQL string `json:"sql" validate:"required" example:"SELECT behavior, COUNT(*) AS n FROM user_behavior GROUP BY behavior"`
	// Subtasks per operator; 2 when absent.
	Parallelism int `json:"parallelism,omitempty" validate:"omitempty,min=1"`
	// Key groups: the highest parallelism the job can ever have; 1024 when absent.
	MaxParallelism int            `json:"max_parallelism,omitempty" validate:"omitempty,min=1,max=32768"`
	Checkpoint     checkpointJSON `json:"checkpoint,omitempty,omitzero"`
	Restart        restartJSON    `json:"restart,omitempty,omitzero"`
	// What becomes of a row at fault: it fails the job, is skipped and counted, or is kept too.
	OnRowError string `json:"on_row_error,omitempty" validate:"omitempty,oneof=fail skip keep" enums:"fail,skip,keep"`
	// How long rows wait for company while whoever reads them is busy: 0s (every batch goes at once), or 1ms to 10s; 50ms when absent.
	LatencyTarget string `json:"latency_target,omitempty" example:"50ms"`
	// savepoint:NAME or checkpoint:JOB/7.
	RestoreFrom          string `json:"restore_from,omitempty" example:"savepoint:before-release"`
	AllowDuplicateOutput bool   `json:"allow_duplicate_output,omitempty"`
} // @name JobRequest

// CheckpointOptions are a job's checkpoint options; durations are strings.
type CheckpointOptions struct {
	Interval          string `json:"interval,omitempty" example:"10s"`
	Mode              string `json:"mode,omitempty" example:"exactly_once"`
	Timeout           string `json:"timeout,omitempty" example:"10m0s"`
	MinPause          string `json:"min_pause,omitempty" example:"0s"`
	MaxConcurrent     int    `json:"max_concurrent,omitempty" example:"1"`
	Retention         string `json:"retention,omitempty" enums:"retain_on_cancellation,delete_on_cancellation,none"`
	NumRetained       int    `json:"num_retained,omitempty" example:"3"`
	TolerableFailures int    `json:"tolerable_failures,omitempty" example:"0"`
} // @name CheckpointOptions

// RestartOptions say what follows the failure of an attempt.
type RestartOptions struct {
	Strategy       string  `json:"strategy,omitempty" enums:"exponential_delay,fixed_delay,failure_rate,none"`
	InitialBackoff string  `json:"initial_backoff,omitempty" example:"100ms"`
	MaxBackoff     string  `json:"max_backoff,omitempty" example:"30s"`
	Multiplier     float64 `json:"multiplier,omitempty" example:"2"`
	ResetAfter     string  `json:"reset_after,omitempty" example:"10m0s"`
	Attempts       int     `json:"attempts,omitempty"`
	Delay          string  `json:"delay,omitempty"`
	Failures       int     `json:"failures,omitempty"`
	Interval       string  `json:"interval,omitempty"`
} // @name RestartOptions

// A Job is what a user submitted and where it stands.
type Job struct {
	ID               string         `json:"id" example:"job_0f8e7d6c5b4a39281706f5e4d3c2b1a0"`
	Name             string         `json:"name" example:"behaviors"`
	Status           string         `json:"status" enums:"CREATED,SCHEDULING,RUNNING,RESTARTING,STOPPING,STOPPED,CANCELED,FINISHED,FAILED"`
	Desired          string         `json:"desired" enums:"running,stopped,canceled"`
	Attempt          int64          `json:"attempt"`
	Base             string         `json:"base" example:"checkpoint:7"` // what the next attempt starts from
	RestoredFrom     string         `json:"restored_from" example:"nothing"`
	Parallelism      int            `json:"parallelism"`
	MaxParallelism   int            `json:"max_parallelism"`
	SQL              string         `json:"sql"`
	Checkpoint       checkpointJSON `json:"checkpoint"`
	Restart          restartJSON    `json:"restart"`
	OnRowError       string         `json:"on_row_error"`
	LatencyTarget    string         `json:"latency_target" example:"50ms"` // how long rows wait for company while whoever reads them is busy
	StopSavepoint    string         `json:"stop_savepoint,omitempty"`      // name of the savepoint that a stop takes
	Bounded          bool           `json:"bounded"`
	HasResult        bool           `json:"has_result"`
	RowsIn           *int64         `json:"rows_in,omitempty"` // of its newest attempt; absent: not known, as nobody tells (any more)
	RowsOut          *int64         `json:"rows_out,omitempty"`
	RowsInPerSecond  *float64       `json:"rows_in_per_second,omitempty"`  // of the last 5 seconds
	BytesInPerSecond *float64       `json:"bytes_in_per_second,omitempty"` // read by its sources, likewise
	Bottleneck       *Bottleneck    `json:"bottleneck,omitempty"`          // absent: nothing holds it up
	RowsRejected     *int64         `json:"rows_rejected,omitempty"`       // since the job began: see on_row_error
	CreatedAt        time.Time      `json:"created_at"`
	StartedAt        *time.Time     `json:"started_at,omitempty"`
	EndedAt          *time.Time     `json:"ended_at,omitempty"`
	LastCheckpoint   *Checkpoint    `json:"last_checkpoint,omitempty"` // the last completed one
	Failure          *Failure       `json:"failure,omitempty"`
} // @name Job

// A Failure says what failed, where and why.
type Failure struct {
	Reason   string `json:"reason" example:"worker_lost"`
	Operator string `json:"operator,omitempty"`
	Subtask  *int   `json:"subtask,omitempty"`
	Worker   string `json:"worker,omitempty"`
	Message  string `json:"message"`
} // @name Failure

func viewFailure(f *weir.Failure) *Failure {
	if f == nil {
		return nil
	}
	return &Failure{Reason: f.Reason, Operator: string(f.Operator), Subtask: f.Subtask, Worker: string(f.Worker), Message: f.Message}
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// A jobGraph is what the API tells of a job's plan.
type jobGraph struct {
	Bounded       bool            `json:"bounded"`
	Result        json.RawMessage `json:"result"`
	LatencyTarget string          `json:"latency_target"`
}

func graphOf(j weir.Job) (g jobGraph, err error) {
	err = json.Unmarshal(j.Plan, &g)
	return g, err
}

// keepsResult reports whether the job keeps a result that can be read.
func (g jobGraph) keepsResult() bool { return len(g.Result) > 0 && string(g.Result) != "null" }

// viewJob shows a job with its figures and its last checkpoint. A figure that cannot
// be had is left out: the row is what counts.
func (s *Server) viewJob(c echo.Context, j weir.Job) Job {
	ctx := c.Request().Context()
	graph, err := graphOf(j)
	if err != nil {
		s.deps.Logger.Warn("plan not read", "job", j.ID, "err", err)
	}
	v := Job{
		ID: string(j.ID), Name: j.Name, Status: string(j.Status), Desired: string(j.Desired), Attempt: j.Attempt.Number,
		Base: s.snapshotText(ctx, j.ID, j.Base), RestoredFrom: s.snapshotText(ctx, j.ID, j.RestoredFrom), Parallelism: j.Parallelism, MaxParallelism: j.MaxParallelism,
		SQL: j.SQL, Checkpoint: checkpointJSON{orObject(j.Checkpoint)}, Restart: restartJSON{orObject(j.Restart)}, OnRowError: j.OnRowError, StopSavepoint: j.StopSavepoint,
		LatencyTarget: cmp.Or(graph.LatencyTarget, plan.DefaultLatency.String()),
		Bounded:       graph.Bounded, HasResult: graph.keepsResult(),
		CreatedAt: j.CreatedAt.UTC(), StartedAt: optional(j.StartedAt), EndedAt: optional(j.EndedAt), Failure: viewFailure(j.Failure),
	}
	if rates, err := s.deps.Service.Rates(ctx, string(j.ID)); err == nil && rates.Known() {
		v.RowsIn, v.RowsOut, v.RowsRejected, v.RowsInPerSecond = &rates.RowsIn, &rates.RowsOut, &rates.RowsRejected, &rates.RowsInPerSecond
		v.BytesInPerSecond, v.Bottleneck = &rates.BytesInPerSecond, bottleneckOf(j, rates.Bottleneck)
	}
	if v.RowsRejected == nil && j.OnRowError == "fail" {
		v.RowsRejected = new(int64) // none ever is
	}
	last, err := s.deps.History.Checkpoints(ctx, j.ID, checkpoint.Filter{Status: []checkpoint.Status{checkpoint.StatusCompleted}, Limit: 1})
	if err == nil && len(last) > 0 {
		cp := viewCheckpoint(last[0])
		v.LastCheckpoint = &cp
	}
	return v
}

// snapshotText names a snapshot as users write it, seen from a job: a savepoint by its
// name.
func (s *Server) snapshotText(ctx context.Context, of weir.JobID, ref weir.SnapshotRef) string {
	if !ref.IsZero() {
		if r, err := s.deps.History.CheckpointByID(ctx, ref.Job, ref.Checkpoint); err == nil && r.Savepoint != "" {
			return "savepoint:" + r.Savepoint
		}
	}
	return refText(of, ref)
}

func orObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// createJob plans a script, records the job and lets it start.
//
//	@Summary		Create and start a job
//	@Description	What the request says and what the script SETs have to agree. With an Idempotency-Key the same request gives the same job.
//	@Tags			jobs
//	@Accept			json
//	@Produce		json
//	@Param			Idempotency-Key	header		string		false	"made up by the caller; at most 255 characters"
//	@Param			job				body		JobRequest	true	"the job"
//	@Success		201				{object}	Job
//	@Failure		default			{object}	Problem
//	@Header			201				{string}	Location	"the job"
//	@Router			/v1/jobs [post]
func (s *Server) createJob(c echo.Context) error {
	var req JobRequest
	if err := s.decode(c, query(c), &req); err != nil {
		return err
	}
	key := c.Request().Header.Get("Idempotency-Key")
	if len(key) > 255 {
		return refuse(http.StatusBadRequest, "", Fault{Field: "Idempotency-Key", Message: "is longer than 255 characters"})
	}
	if _, err := plan.CheckLatency(req.LatencyTarget); err != nil {
		return refuse(http.StatusUnprocessableEntity, "", Fault{Field: "latency_target", Message: err.Error()})
	}
	ctx := c.Request().Context()
	planned, err := planner.Plan(req.SQL, catalog{ctx, s.deps.Tables}, planner.Options{
		MaxParallelism: req.MaxParallelism, CheckPath: s.opts.CheckPath, OnRowError: req.OnRowError, LatencyTarget: req.LatencyTarget,
	})
	if err != nil {
		return err
	}
	if planned.Explain {
		return refuse(http.StatusUnprocessableEntity, "EXPLAIN does not run; POST /v1/plan shows what it asks for")
	}
	spec, err := specOf(&req, planned)
	if err != nil {
		return err
	}
	spec.IdempotencyKey = key
	j, err := s.deps.Service.Submit(ctx, spec)
	if err != nil {
		return err
	}
	if key != "" && (j.SQL != req.SQL || req.Name != "" && j.Name != req.Name) {
		return refuse(http.StatusUnprocessableEntity, "the Idempotency-Key was used for another job, "+j.Name+": use a new one")
	}
	c.Response().Header().Set("Location", "/v1/jobs/"+string(j.ID))
	return c.JSON(http.StatusCreated, s.viewJob(c, j))
}

// specOf joins what the request says with what its script SETs.
func specOf(req *JobRequest, planned *planner.Result) (spec job.Spec, err error) {
	spec = job.Spec{
		Name: req.Name, SQL: req.SQL, Graph: *planned.Graph, Parallelism: req.Parallelism, OnRowError: cmp.Or(req.OnRowError, planned.Settings["on_row_error"]),
		RestoreFrom: req.RestoreFrom, AllowDuplicateOutput: req.AllowDuplicateOutput,
	}
	if spec.Parallelism, err = joinNumber("parallelism", req.Parallelism, planned.Settings); err != nil {
		return spec, err
	}
	if _, err = joinNumber("max_parallelism", req.MaxParallelism, planned.Settings); err != nil { // the graph has it
		return spec, err
	}
	if spec.Checkpoint, err = joinOptions("checkpoint", planned.Settings.Section("checkpoint"), req.Checkpoint.RawMessage, sameCheckpoint); err != nil {
		return spec, err
	}
	spec.Restart = req.Restart.RawMessage
	if set := planned.Settings.Section("restart"); set != nil {
		if spec.Restart, err = joinOptions("restart", set, spec.Restart, sameRestart); err != nil {
			return spec, err
		}
	}
	return spec, nil
}

// joinNumber gives a number that the request and the script's SETs may both say; 0: none
// of them does.
func joinNumber(name string, said int, set planner.Settings) (int, error) {
	n, ok := set.Int(name)
	switch {
	case !ok:
		return said, nil
	case said != 0 && said != n:
		return 0, refuse(http.StatusUnprocessableEntity, "", Fault{Field: name, Message: fmt.Sprintf("is %d here and %d in the script's SET: say it once", said, n)})
	}
	return n, nil
}

// joinOptions joins what the script SETs of a section with what the request says; where
// both name an option they have to agree.
func joinOptions(section string, set, said json.RawMessage, same func(name string, a, b json.RawMessage) bool) (json.RawMessage, error) {
	if len(said) == 0 {
		return set, nil
	}
	both := map[string]json.RawMessage{}
	if len(set) > 0 {
		if err := json.Unmarshal(set, &both); err != nil {
			return nil, err
		}
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(said, &fields) != nil {
		return nil, refuse(http.StatusBadRequest, "", Fault{Field: section, Message: "is " + shown(string(said)) + ": give an object"})
	}
	var faults []Fault
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if old, ok := both[name]; ok && !same(name, old, fields[name]) {
			faults = append(faults, Fault{Field: section + "." + name, Message: "is " + string(fields[name]) + " here and " + string(old) + " in the script's SET: say it once"})
		}
		both[name] = fields[name]
	}
	if len(faults) > 0 {
		return nil, refuse(http.StatusUnprocessableEntity, "", faults...)
	}
	return json.Marshal(both)
}

// sameRestart reports whether two values of a restart option mean the same.
func sameRestart(_ string, a, b json.RawMessage) bool {
	var x, y string
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return string(a) == string(b) // numbers
	}
	d, errX := time.ParseDuration(x)
	e, errY := time.ParseDuration(y)
	return x == y || errX == nil && errY == nil && d == e
}

// sameCheckpoint reports whether two values of a checkpoint option mean the same ("1s",
// "1000ms"). One that is wrong is not judged here: the options' own check names it.
func sameCheckpoint(name string, a, b json.RawMessage) bool {
	parse := func(v json.RawMessage) (checkpoint.Options, error) {
		object, err := json.Marshal(map[string]json.RawMessage{name: v})
		if err != nil {
			return checkpoint.Options{}, err
		}
		return checkpoint.ParseOptions(object)
	}
	x, errA := parse(a)
	y, errB := parse(b)
	return errA != nil || errB != nil || x == y
}

// A JobList is a page of jobs, newest first.
type JobList struct {
	Jobs []Job  `json:"jobs"`
	Next string `json:"next,omitempty"` // cursor of the next page; absent: this is the last
} // @name JobList

// listJobs lists jobs.
//
//	@Summary	List jobs, newest first
//	@Tags		jobs
//	@Produce	json
//	@Param		status	query		[]string	false	"only jobs of these statuses"	collectionFormat(csv)
//	@Param		name	query		string		false	"only jobs whose name has this part"
//	@Param		cursor	query		string		false	"next of the page before"
//	@Param		limit	query		int			false	"jobs per page"	default(100)	minimum(1)	maximum(1000)
//	@Success	200		{object}	JobList
//	@Router		/v1/jobs [get]
func (s *Server) listJobs(c echo.Context) error {
	q := query(c)
	f := weir.JobFilter{Name: q.text("name"), After: weir.JobID(q.text("cursor"))}
	limit := int(q.number("limit", 100, 1, 1000))
	for _, status := range q.list("status") {
		if !slices.Contains(weir.Statuses(), weir.Status(status)) {
			q.fault("status", "is "+quoted(status)+": give one of "+join(weir.Statuses()))
		}
		f.Status = append(f.Status, weir.Status(status))
	}
	if f.After != "" && !f.After.Valid() {
		q.fault("cursor", "is none that was given out")
	}
	if err := q.done(); err != nil {
		return err
	}
	f.Limit = limit + 1
	jobs, err := s.deps.Service.List(c.Request().Context(), f)
	if err != nil {
		return err
	}
	list := JobList{Jobs: []Job{}}
	if len(jobs) > limit {
		jobs = jobs[:limit]
		list.Next = string(jobs[limit-1].ID)
	}
	for _, j := range jobs {
		list.Jobs = append(list.Jobs, s.viewJob(c, j))
	}
	return c.JSON(http.StatusOK, list)
}

// getJob shows a job.
//
//	@Summary	Show a job
//	@Tags		jobs
//	@Produce	json
//	@Param		job	path		string	true	"id or name"
//	@Success	200	{object}	Job
//	@Router		/v1/jobs/{job} [get]
func (s *Server) getJob(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	j, err := s.deps.Service.Get(c.Request().Context(), param(c, "job"))
	if err != nil {
		return err
	}
	v := s.viewJob(c, j)
	if (v.RowsRejected == nil || *v.RowsRejected == 0) && j.OnRowError != "fail" {
		v.RowsRejected = s.rejectedRows(c, j)
	}
	return c.JSON(http.StatusOK, v)
}

// deleteJob deletes a job that has ended.
//
//	@Summary	Delete a job that has ended, with its checkpoints; savepoints stay
//	@Tags		jobs
//	@Param		job				path	string	true	"id or name"
//	@Param		abandon_output	query	bool	false	"give up output that no sink has made visible yet"
//	@Success	204
//	@Router		/v1/jobs/{job} [delete]
func (s *Server) deleteJob(c echo.Context) error {
	q := query(c)
	abandon := q.flag("abandon_output")
	if err := q.done(); err != nil {
		return err
	}
	if err := s.deps.Service.Delete(c.Request().Context(), param(c, "job"), abandon); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
