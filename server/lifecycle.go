package server

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/server/job"
)

// A StopRequest asks for a stop with savepoint.
type StopRequest struct {
	// Of the savepoint; made up when absent.
	Name string `json:"name,omitempty" validate:"omitempty,snapshotname" example:"before-release"`
	// Not supported by this version: windows stay open in the savepoint.
	Drain bool `json:"drain,omitempty"`
} // @name StopRequest

// A CancelRequest asks for a job's end without a savepoint.
type CancelRequest struct {
	// Give up output that no sink has made visible yet.
	AbandonOutput bool `json:"abandon_output,omitempty"`
} // @name CancelRequest

// A StartRequest asks for another start of a job.
type StartRequest struct {
	// latest, nothing, checkpoint:7, checkpoint:JOB/7 or savepoint:NAME; latest when absent.
	From string `json:"from,omitempty" example:"latest"`
	// As it was when absent.
	Parallelism int `json:"parallelism,omitempty" validate:"omitempty,min=1"`
	// Start behind output that an append sink has made visible.
	AllowDuplicateOutput bool `json:"allow_duplicate_output,omitempty"`
	// Give up output that no sink has made visible yet.
	AbandonOutput bool `json:"abandon_output,omitempty"`
} // @name StartRequest

// answerJob answers a wish that the job's machine will follow.
func (s *Server) answerJob(c echo.Context, j weir.Job, err error) error {
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, s.viewJob(c, j))
}

// stopJob asks for a stop with savepoint.
//
//	@Summary		Stop a job with a savepoint
//	@Description	The job takes a savepoint, stop_savepoint, and ends as STOPPED. Where the savepoint fails, the job runs on.
//	@Tags			jobs
//	@Accept			json
//	@Produce		json
//	@Param			job		path		string		true	"id or name"
//	@Param			stop	body		StopRequest	false	"options"
//	@Success		202		{object}	Job
//	@Router			/v1/jobs/{job}/stop [post]
func (s *Server) stopJob(c echo.Context) error {
	var req StopRequest
	if err := s.decode(c, query(c), &req); err != nil {
		return err
	}
	j, err := s.deps.Service.Stop(c.Request().Context(), param(c, "job"), job.StopRequest{Drain: req.Drain, Name: req.Name})
	return s.answerJob(c, j, err)
}

// cancelJob asks for a job's end.
//
//	@Summary	End a job without a savepoint
//	@Tags		jobs
//	@Accept		json
//	@Produce	json
//	@Param		job		path		string			true	"id or name"
//	@Param		cancel	body		CancelRequest	false	"options"
//	@Success	202		{object}	Job
//	@Router		/v1/jobs/{job}/cancel [post]
func (s *Server) cancelJob(c echo.Context) error {
	var req CancelRequest
	if err := s.decode(c, query(c), &req); err != nil {
		return err
	}
	j, err := s.deps.Service.Cancel(c.Request().Context(), param(c, "job"), req.AbandonOutput)
	return s.answerJob(c, j, err)
}

// startJob starts a job that has ended.
//
//	@Summary	Start a job that has ended
//	@Tags		jobs
//	@Accept		json
//	@Produce	json
//	@Param		job		path		string			true	"id or name"
//	@Param		start	body		StartRequest	false	"options"
//	@Success	202		{object}	Job
//	@Router		/v1/jobs/{job}/start [post]
func (s *Server) startJob(c echo.Context) error {
	var req StartRequest
	if err := s.decode(c, query(c), &req); err != nil {
		return err
	}
	j, err := s.deps.Service.Start(c.Request().Context(), param(c, "job"), job.StartRequest(req))
	return s.answerJob(c, j, err)
}

// restoreJob takes a job back to a snapshot.
//
//	@Summary	Take a job back to a snapshot, ending what runs without a savepoint
//	@Tags		jobs
//	@Accept		json
//	@Produce	json
//	@Param		job		path		string			true	"id or name"
//	@Param		restore	body		StartRequest	false	"options"
//	@Success	202		{object}	Job
//	@Router		/v1/jobs/{job}/restore [post]
func (s *Server) restoreJob(c echo.Context) error {
	var req StartRequest
	if err := s.decode(c, query(c), &req); err != nil {
		return err
	}
	j, err := s.deps.Service.Restore(c.Request().Context(), param(c, "job"), job.StartRequest(req))
	return s.answerJob(c, j, err)
}

func join[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}
