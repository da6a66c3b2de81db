package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/checkpoint"
	"weir/planner/plan"
)

// A Checkpoint is one entry of a job's history of checkpoints and savepoints.
type Checkpoint struct {
	ID          int64      `json:"id"`
	Attempt     int64      `json:"attempt"`
	Type        string     `json:"type" enums:"checkpoint,savepoint"`
	Status      string     `json:"status" enums:"pending,completed,failed,aborted"`
	Savepoint   string     `json:"savepoint,omitempty"` // its name
	Periodic    bool       `json:"periodic"`            // begun by the interval
	Final       bool       `json:"final"`               // the last one of a bounded job
	Discarded   bool       `json:"discarded"`           // given up: it cannot be restored
	CommitsOpen bool       `json:"commits_open"`        // sinks are still making its output visible
	TriggeredAt time.Time  `json:"triggered_at"`
	CompletedAt *time.Time `json:"completed_at,omitempty"` // when it ended, however
	DurationMS  float64    `json:"duration_ms"`
	StateBytes  int64      `json:"state_bytes"`
	NewBytes    int64      `json:"new_bytes"`
	Manifest    string     `json:"manifest,omitempty"` // key in object storage
	Failure     *Failure   `json:"failure,omitempty"`
} // @name Checkpoint

// A CheckpointDetail is a checkpoint with the time and size of each subtask's part.
type CheckpointDetail struct {
	Checkpoint
	Operators []CheckpointOperator `json:"operators"`
} // @name CheckpointDetail

// A CheckpointOperator is a chain of operators, fused into one task per subtask.
type CheckpointOperator struct {
	ID       string              `json:"id"`
	Name     string              `json:"name"`
	Subtasks []CheckpointSubtask `json:"subtasks"` // those that have acknowledged
} // @name CheckpointOperator

// A CheckpointSubtask is the part of one subtask.
type CheckpointSubtask struct {
	Index        int      `json:"index"`
	Worker       string   `json:"worker"`
	StartDelayMS float64  `json:"start_delay_ms"` // trigger to first barrier
	AlignmentMS  float64  `json:"alignment_ms"`   // first to last barrier
	CutMS        float64  `json:"cut_ms"`         // on the task's loop
	UploadMS     float64  `json:"upload_ms"`      // off it
	NewBytes     int64    `json:"new_bytes"`
	TotalBytes   int64    `json:"total_bytes"`
	Failure      *Failure `json:"failure,omitempty"`
} // @name CheckpointSubtask

func viewCheckpoint(r checkpoint.Record) Checkpoint {
	v := Checkpoint{
		ID: int64(r.ID), Attempt: r.Attempt.Number, Type: string(r.Type), Status: string(r.Status), Savepoint: r.Savepoint,
		Periodic: r.Periodic, Final: r.Final, Discarded: r.Discarded, CommitsOpen: r.CommitsOpen,
		TriggeredAt: r.TriggeredAt.UTC(), CompletedAt: optional(r.CompletedAt),
		StateBytes: r.StateBytes, NewBytes: r.NewBytes, Manifest: r.Manifest, Failure: viewFailure(r.Failure),
	}
	if !r.CompletedAt.IsZero() {
		v.DurationMS = millis(r.CompletedAt.Sub(r.TriggeredAt))
	}
	return v
}

func millis(d time.Duration) float64 { return float64(max(d, 0).Microseconds()) / 1000 }

// viewDetail groups the acks of a checkpoint by the chains of its job's graph.
func viewDetail(j weir.Job, r checkpoint.Record) (CheckpointDetail, error) {
	v := CheckpointDetail{Checkpoint: viewCheckpoint(r), Operators: []CheckpointOperator{}}
	var graph plan.Graph
	if err := json.Unmarshal(j.Plan, &graph); err != nil {
		return v, err
	}
	for i, chain := range graph.Chains {
		op := CheckpointOperator{Subtasks: []CheckpointSubtask{}}
		op.ID, op.Name = chainName(chain)
		for _, a := range r.Acks {
			if a.Task.Chain == i {
				op.Subtasks = append(op.Subtasks, CheckpointSubtask{
					Index: a.Task.Subtask, Worker: string(a.Worker), StartDelayMS: a.Timing.StartDelayMS, AlignmentMS: a.Timing.AlignmentMS,
					CutMS: a.Timing.CutMS, UploadMS: a.Timing.UploadMS, NewBytes: a.Timing.NewBytes, TotalBytes: a.Timing.TotalBytes, Failure: viewFailure(a.Failure),
				})
			}
		}
		if len(op.Subtasks) > 0 {
			slices.SortFunc(op.Subtasks, func(a, b CheckpointSubtask) int { return a.Index - b.Index })
			v.Operators = append(v.Operators, op)
		}
	}
	return v, nil
}

// chainName names a chain by its first operator's id and all its operators' names.
func chainName(chain plan.Chain) (id, name string) {
	names := make([]string, len(chain.Operators))
	for i, op := range chain.Operators {
		names[i] = op.Name
	}
	if len(names) == 0 {
		return "", ""
	}
	return string(chain.Operators[0].ID), strings.Join(names, " ▸ ")
}

// maxWait bounds how long a request waits for a checkpoint.
const maxWait = 10 * time.Minute

// triggerCheckpoint takes a checkpoint now.
//
//	@Summary		Take a checkpoint now
//	@Description	Without wait the job must be RUNNING, and the answer is 202 at once. With wait the answer is 200 with the ended checkpoint, whatever its status, or 202 when the time ran out.
//	@Tags			checkpoints
//	@Produce		json
//	@Param			job		path		string	true	"id or name"
//	@Param			wait	query		string	false	"how long to wait for its end, such as 30s"
//	@Success		200		{object}	Checkpoint
//	@Success		202		{object}	Checkpoint
//	@Header			202		{string}	Location	"the checkpoint"
//	@Router			/v1/jobs/{job}/checkpoints [post]
func (s *Server) triggerCheckpoint(c echo.Context) error {
	q := query(c)
	wait := q.duration("wait", maxWait)
	var req struct{}
	if err := s.decode(c, q, &req); err != nil {
		return err
	}
	r, err := s.deps.Service.TriggerCheckpoint(c.Request().Context(), param(c, "job"), wait)
	return answerTrigger(c, r, err)
}

// answerTrigger answers with a checkpoint as far as it came.
func answerTrigger(c echo.Context, r checkpoint.Record, err error) error {
	if err != nil {
		return err
	}
	location := "/v1/jobs/" + string(r.Job) + "/checkpoints/" + itoa(int64(r.ID))
	if r.Type == checkpoint.TypeSavepoint {
		location = "/v1/savepoints/" + r.Savepoint
	}
	c.Response().Header().Set("Location", location)
	if r.Status == checkpoint.StatusPending {
		return c.JSON(http.StatusAccepted, viewCheckpoint(r))
	}
	return c.JSON(http.StatusOK, viewCheckpoint(r))
}

// A CheckpointList is a page of a job's history, newest first.
type CheckpointList struct {
	Checkpoints []Checkpoint `json:"checkpoints"`
	Next        string       `json:"next,omitempty"` // cursor of the next page; absent: this is the last
} // @name CheckpointList

// listCheckpoints lists a job's history.
//
//	@Summary	List a job's checkpoints and savepoints, newest first
//	@Tags		checkpoints
//	@Produce	json
//	@Param		job		path		string		true	"id or name"
//	@Param		status	query		[]string	false	"only those of these statuses"	collectionFormat(csv)
//	@Param		cursor	query		string		false	"next of the page before"
//	@Param		limit	query		int			false	"checkpoints per page"	default(50)	minimum(1)	maximum(1000)
//	@Success	200		{object}	CheckpointList
//	@Router		/v1/jobs/{job}/checkpoints [get]
func (s *Server) listCheckpoints(c echo.Context) error {
	q := query(c)
	limit := int(q.number("limit", 50, 1, 1000))
	before := q.number("cursor", 0, 1, 1<<62)
	all := []checkpoint.Status{checkpoint.StatusPending, checkpoint.StatusCompleted, checkpoint.StatusFailed, checkpoint.StatusAborted}
	var statuses []checkpoint.Status
	for _, status := range q.list("status") {
		if !slices.Contains(all, checkpoint.Status(status)) {
			q.fault("status", "is "+quoted(status)+": give one of "+join(all))
		}
		statuses = append(statuses, checkpoint.Status(status))
	}
	j, err := s.jobOf(c, q)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	records, err := s.deps.History.Checkpoints(ctx, j.ID, weir.CheckpointID(before), statuses, limit+1)
	if err != nil {
		return err
	}
	list := CheckpointList{Checkpoints: []Checkpoint{}}
	if len(records) > limit {
		records = records[:limit]
		list.Next = itoa(int64(records[limit-1].ID))
	}
	for _, r := range records {
		list.Checkpoints = append(list.Checkpoints, viewCheckpoint(r))
	}
	return c.JSON(http.StatusOK, list)
}

// getCheckpoint shows one checkpoint.
//
//	@Summary	Show a checkpoint, subtask by subtask
//	@Tags		checkpoints
//	@Produce	json
//	@Param		job	path		string	true	"id or name"
//	@Param		id	path		int		true	"number of the checkpoint"
//	@Success	200	{object}	CheckpointDetail
//	@Router		/v1/jobs/{job}/checkpoints/{id} [get]
func (s *Server) getCheckpoint(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	id, err := checkpointID(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	j, err := s.deps.Service.Get(ctx, param(c, "job"))
	if err != nil {
		return err
	}
	r, err := s.deps.History.CheckpointByID(ctx, j.ID, id)
	if err != nil {
		return err
	}
	detail, err := viewDetail(j, r)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, detail)
}

// checkpointID reads the number in the path.
func checkpointID(c echo.Context) (weir.CheckpointID, error) {
	id, err := strconv.ParseInt(param(c, "id"), 10, 64)
	if err != nil || id < 1 {
		return 0, refuse(http.StatusBadRequest, "checkpoints have numbers from 1, "+quoted(param(c, "id"))+" is none")
	}
	return weir.CheckpointID(id), nil
}

// cancelCheckpoint gives a pending checkpoint up.
//
//	@Summary		Cancel a pending checkpoint or savepoint
//	@Description	The answer is 200 with the aborted checkpoint, or 202 where its end takes long. One that is not pending stays as it is: 409.
//	@Tags			checkpoints
//	@Produce		json
//	@Param			job	path		string	true	"id or name"
//	@Param			id	path		int		true	"number of the checkpoint"
//	@Success		200	{object}	Checkpoint
//	@Success		202	{object}	Checkpoint
//	@Router			/v1/jobs/{job}/checkpoints/{id} [delete]
func (s *Server) cancelCheckpoint(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	id, err := checkpointID(c)
	if err != nil {
		return err
	}
	r, err := s.deps.Service.CancelCheckpoint(c.Request().Context(), param(c, "job"), id)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if r.Status == checkpoint.StatusPending {
		status = http.StatusAccepted
	}
	return c.JSON(status, viewCheckpoint(r))
}

// A CheckpointSummary counts a job's newest checkpoints and measures the completed ones.
type CheckpointSummary struct {
	Counts     CheckpointCounts `json:"counts"`
	DurationMS Distribution     `json:"duration_ms"`
	StateBytes Distribution     `json:"state_bytes"`
	NewBytes   Distribution     `json:"new_bytes"`
} // @name CheckpointSummary

// CheckpointCounts counts checkpoints and savepoints by status.
type CheckpointCounts struct {
	Total     int `json:"total"`
	Pending   int `json:"pending"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Aborted   int `json:"aborted"`
} // @name CheckpointCounts

// A Distribution says how a figure is distributed; all zero when there is none.
type Distribution struct {
	Min  float64 `json:"min"`
	Avg  float64 `json:"avg"`
	Max  float64 `json:"max"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
} // @name Distribution

// summaryOf is how many checkpoints, the newest ones, a summary is made of.
const summaryOf = 10000

// getCheckpointSummary sums a job's history up.
//
//	@Summary	Sum a job's checkpoints up (the newest 10000)
//	@Tags		checkpoints
//	@Produce	json
//	@Param		job	path		string	true	"id or name"
//	@Success	200	{object}	CheckpointSummary
//	@Router		/v1/jobs/{job}/checkpoints/summary [get]
func (s *Server) getCheckpointSummary(c echo.Context) error {
	j, err := s.jobOf(c, query(c))
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	records, err := s.deps.History.Checkpoints(ctx, j.ID, 0, nil, summaryOf)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, summarize(records))
}

func summarize(records []checkpoint.Record) CheckpointSummary {
	sum := CheckpointSummary{Counts: CheckpointCounts{Total: len(records)}}
	var durations, states, news []float64
	for _, r := range records {
		switch r.Status {
		case checkpoint.StatusPending:
			sum.Counts.Pending++
		case checkpoint.StatusFailed:
			sum.Counts.Failed++
		case checkpoint.StatusAborted:
			sum.Counts.Aborted++
		case checkpoint.StatusCompleted:
			sum.Counts.Completed++
			durations = append(durations, millis(r.CompletedAt.Sub(r.TriggeredAt)))
			states, news = append(states, float64(r.StateBytes)), append(news, float64(r.NewBytes))
		}
	}
	sum.DurationMS, sum.StateBytes, sum.NewBytes = distribution(durations), distribution(states), distribution(news)
	return sum
}

// distribution takes quantiles as the smallest value that so many are not above.
func distribution(values []float64) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	slices.Sort(values)
	total := 0.0
	for _, v := range values {
		total += v
	}
	at := func(perMille int) float64 { return values[max(0, (len(values)*perMille+999)/1000-1)] }
	return Distribution{
		Min: values[0], Avg: total / float64(len(values)), Max: values[len(values)-1],
		P50: at(500), P90: at(900), P99: at(990), P999: at(999),
	}
}
