package server

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"weir/checkpoint"
)

// A SavepointRequest asks for a savepoint.
type SavepointRequest struct {
	// Made up when absent; unique in the cluster.
	Name string `json:"name,omitempty" validate:"omitempty,snapshotname" example:"before-release"`
} // @name SavepointRequest

// A Savepoint is a snapshot that its user owns; it outlives its job.
type Savepoint struct {
	Name        string             `json:"name"`
	Job         string             `json:"job"` // id of the job that took it
	JobName     string             `json:"job_name"`
	Checkpoint  int64              `json:"checkpoint"` // its number among the job's checkpoints
	Status      string             `json:"status" enums:"pending,completed,failed,aborted"`
	StateBytes  int64              `json:"state_bytes"`
	TriggeredAt time.Time          `json:"triggered_at"`
	CompletedAt *time.Time         `json:"completed_at,omitempty"`
	Manifest    string             `json:"manifest,omitempty"` // key in object storage
	Failure     *CheckpointFailure `json:"failure,omitempty"`
} // @name Savepoint

// A SavepointList lists savepoints, newest first.
type SavepointList struct {
	Savepoints []Savepoint `json:"savepoints"`
} // @name SavepointList

func viewSavepoint(p checkpoint.Savepoint) Savepoint {
	return Savepoint{
		Name: p.Name, Job: string(p.Job), JobName: p.JobName, Checkpoint: int64(p.Checkpoint), Status: string(p.Status), StateBytes: p.StateBytes,
		TriggeredAt: p.TriggeredAt.UTC(), CompletedAt: optional(p.CompletedAt), Manifest: p.Manifest, Failure: viewCheckpointFailure(p.Failure),
	}
}

// triggerSavepoint takes a savepoint.
//
//	@Summary		Take a savepoint
//	@Description	As a checkpoint; the answer's savepoint is its name. Savepoints run beside checkpoints, one after the other: request is started or queued.
//	@Tags			savepoints
//	@Accept			json
//	@Produce		json
//	@Param			job			path		string				true	"id or name"
//	@Param			wait		query		string				false	"how long to wait for its end, such as 30s"
//	@Param			savepoint	body		SavepointRequest	false	"options"
//	@Success		200			{object}	TriggeredCheckpoint
//	@Success		202			{object}	TriggeredCheckpoint
//	@Header			202			{string}	Location	"the savepoint"
//	@Router			/v1/jobs/{job}/savepoints [post]
func (s *Server) triggerSavepoint(c echo.Context) error {
	q := query(c)
	wait := q.duration("wait", maxWait)
	var req SavepointRequest
	if err := s.decode(c, q, &req); err != nil {
		return err
	}
	t, err := s.deps.Service.TriggerSavepoint(c.Request().Context(), param(c, "job"), req.Name, wait)
	return answerTrigger(c, t, err)
}

// listSavepoints lists all savepoints.
//
//	@Summary	List savepoints, newest first
//	@Tags		savepoints
//	@Produce	json
//	@Success	200	{object}	SavepointList
//	@Router		/v1/savepoints [get]
func (s *Server) listSavepoints(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	all, err := s.deps.History.Savepoints(c.Request().Context())
	if err != nil {
		return err
	}
	list := SavepointList{Savepoints: []Savepoint{}}
	for _, p := range all {
		list.Savepoints = append(list.Savepoints, viewSavepoint(p))
	}
	return c.JSON(http.StatusOK, list)
}

// getSavepoint shows a savepoint.
//
//	@Summary	Show a savepoint
//	@Tags		savepoints
//	@Produce	json
//	@Param		name	path		string	true	"name"
//	@Success	200		{object}	Savepoint
//	@Router		/v1/savepoints/{name} [get]
func (s *Server) getSavepoint(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	p, err := s.deps.History.Savepoint(c.Request().Context(), param(c, "name"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewSavepoint(p))
}

// deleteSavepoint deletes a savepoint.
//
//	@Summary	Delete a savepoint that no job would start from
//	@Tags		savepoints
//	@Param		name	path	string	true	"name"
//	@Success	204
//	@Router		/v1/savepoints/{name} [delete]
func (s *Server) deleteSavepoint(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	if err := s.deps.Service.DeleteSavepoint(c.Request().Context(), param(c, "name")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
