package server

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// JobMetrics are a job's figures as they stand now. Those of rows and of state are absent where no
// task of the attempt has told them.
type JobMetrics struct {
	Job              string   `json:"job"` // its id
	Name             string   `json:"name"`
	Status           string   `json:"status" enums:"CREATED,SCHEDULING,RUNNING,RESTARTING,STOPPING,STOPPED,CANCELED,FINISHED,FAILED"`
	Attempt          int64    `json:"attempt"`
	RowsIn           *int64   `json:"rows_in,omitempty"`       // read by sources since the attempt began
	RowsOut          *int64   `json:"rows_out,omitempty"`      // given to sinks and results
	RowsRejected     *int64   `json:"rows_rejected,omitempty"` // since the job began
	RowsInPerSecond  *float64 `json:"rows_in_per_second,omitempty"`
	RowsOutPerSecond *float64 `json:"rows_out_per_second,omitempty"` // like rows_in_per_second, of the last 5 seconds
	BytesIn          *int64   `json:"bytes_in,omitempty"`            // read by sources
	BytesInPerSecond *float64 `json:"bytes_in_per_second,omitempty"`
	StateBytes       *int64   `json:"state_bytes,omitempty"`     // in memory
	SpilledEntries   *int64   `json:"spilled_entries,omitempty"` // of the state, on disk only
	UploadBytes      *int64   `json:"upload_bytes,omitempty"`    // of changes that no completed checkpoint holds yet, in memory
	DeltaSeconds     *float64 `json:"delta_seconds,omitempty"`   // of a core, since the attempt began, that went into writing what changed of the state
	// By chain, in the order of the job's plan.
	Operators  []JobOperator `json:"operators"`
	Bottleneck *Bottleneck   `json:"bottleneck,omitempty"`
	// By edge, sender and receiver; none where no attempt runs.
	Channels []JobChannel `json:"channels"`
	// Workers that run tasks of the job and did not tell of their channels within 2 s: those
	// are not all here, or by their other end alone. Rows are what the tasks told last.
	Unanswered []string `json:"unanswered"`
} // @name JobMetrics

// A JobChannel is the way of rows from one task to another, both its ends together.
type JobChannel struct {
	Edge           int     `json:"edge"`               // its index in the edges of the job's plan
	From           string  `json:"from" example:"0/1"` // the sending task: chain/subtask; 0/*: all subtasks, as a worker has more than 1000 channels
	To             string  `json:"to" example:"1/0"`   // the receiving task
	Local          bool    `json:"local"`              // both tasks are on one worker
	QueuedBytes    int64   `json:"queued_bytes"`       // wait at either end
	UnackedBytes   int64   `json:"unacked_bytes"`      // given by the sending task and not acknowledged
	CreditBytes    int64   `json:"credit_bytes"`       // may still be sent
	BytesPerSecond float64 `json:"bytes_per_second"`   // taken by the receiving task, of late
	ResentFrames   int64   `json:"resent_frames"`      // sent again in this attempt
} // @name JobChannel

// getJobMetrics shows a job's figures.
//
//	@Summary		Show a job's rates and how the channels between its tasks fare
//	@Description	The workers are asked for the channels when this is read; what those that do not answer would have told is missing, and they are named.
//	@Tags			jobs
//	@Produce		json
//	@Param			job	path		string	true	"id or name"
//	@Success		200	{object}	JobMetrics
//	@Router			/v1/jobs/{job}/metrics [get]
func (s *Server) getJobMetrics(c echo.Context) error {
	j, err := s.jobOf(c, query(c))
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	channels, err := s.deps.Service.Channels(ctx, string(j.ID))
	if err != nil {
		return err
	}
	r, err := s.deps.Service.Rates(ctx, string(j.ID))
	if err != nil {
		return err
	}
	v := JobMetrics{
		Job: string(j.ID), Name: j.Name, Status: string(j.Status), Attempt: r.Attempt.Number, Channels: make([]JobChannel, len(channels.List)), Unanswered: []string{},
	}
	if r.Known() {
		v.RowsIn, v.RowsOut, v.RowsRejected = &r.RowsIn, &r.RowsOut, &r.RowsRejected
		v.RowsInPerSecond, v.RowsOutPerSecond = &r.RowsInPerSecond, &r.RowsOutPerSecond
		v.BytesIn, v.BytesInPerSecond = &r.BytesIn, &r.BytesInPerSecond
		v.StateBytes, v.SpilledEntries, v.UploadBytes, v.DeltaSeconds = &r.State.Bytes, &r.State.Spilled, &r.State.UploadBytes, &r.State.DeltaSeconds
	}
	p, err := viewJobPlan(j, r)
	if err != nil {
		return err
	}
	v.Operators, v.Bottleneck = []JobOperator{}, p.Bottleneck
	for _, chain := range p.Chains {
		v.Operators = append(v.Operators, chain.Operators...)
	}
	for i, ch := range channels.List {
		v.Channels[i] = JobChannel{
			Edge: ch.ID.Edge, From: taskText(ch.ID.From), To: taskText(ch.ID.To), Local: ch.Local, QueuedBytes: ch.QueuedBytes, UnackedBytes: ch.UnackedBytes,
			CreditBytes: ch.CreditBytes, BytesPerSecond: ch.BytesPerSecond, ResentFrames: int64(ch.Resent),
		}
	}
	for _, id := range channels.Unanswered {
		v.Unanswered = append(v.Unanswered, string(id))
	}
	return c.JSON(http.StatusOK, v)
}
