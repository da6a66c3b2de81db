package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/checkpoint"
	"weir/server/job"
)

// A Checkpoint is one entry of a job's history of checkpoints and savepoints.
type Checkpoint struct {
	ID            int64              `json:"id"`
	Attempt       int64              `json:"attempt"`
	Type          string             `json:"type" enums:"checkpoint,savepoint"`
	Status        string             `json:"status" enums:"pending,completed,failed,aborted"`
	Savepoint     string             `json:"savepoint,omitempty"`       // its name
	Periodic      bool               `json:"periodic"`                  // begun by the interval
	Final         bool               `json:"final"`                     // the last one of a bounded job
	Discarded     bool               `json:"discarded"`                 // given up: it cannot be restored
	CommitsOpen   bool               `json:"commits_open"`              // sinks are still making its output visible
	OutputGivenUp bool               `json:"output_given_up,omitempty"` // what was not visible was given up with abandon_output
	TriggeredAt   time.Time          `json:"triggered_at"`
	CompletedAt   *time.Time         `json:"completed_at,omitempty"` // when it ended, however
	CommittedAt   *time.Time         `json:"committed_at,omitempty"` // when the last sink had made its output visible; absent: not yet, or there is none
	DurationMS    float64            `json:"duration_ms"`            // from trigger to end
	CommitMS      float64            `json:"commit_ms"`              // from its end to committed_at
	StateBytes    int64              `json:"state_bytes"`
	NewBytes      int64              `json:"new_bytes"`
	Manifest      string             `json:"manifest,omitempty"`      // key in object storage
	CriticalPath  string             `json:"critical_path,omitempty"` // one sentence: who was last, and where the time went
	Thinned       bool               `json:"thinned"`                 // the detail per subtask was given up by --history-detail
	Failure       *CheckpointFailure `json:"failure,omitempty"`
} // @name Checkpoint

// A CheckpointFailure says what ended a checkpoint, where and why.
type CheckpointFailure struct {
	Reason   string `json:"reason" example:"timeout"`
	Operator string `json:"operator,omitempty"`
	Subtask  *int   `json:"subtask,omitempty"`
	Worker   string `json:"worker,omitempty"`
	Message  string `json:"message"`
} // @name CheckpointFailure

// A TriggeredCheckpoint is a checkpoint or savepoint that was asked for.
type TriggeredCheckpoint struct {
	Checkpoint
	// started: it began at once; queued: it waited for its turn; joined: it shares the one
	// that an earlier request waited for.
	Request string `json:"request,omitempty" enums:"started,queued,joined"`
} // @name TriggeredCheckpoint

func viewCheckpoint(r checkpoint.Record) Checkpoint {
	v := Checkpoint{
		ID: int64(r.ID), Attempt: r.Attempt.Number, Type: string(r.Type), Status: string(r.Status), Savepoint: r.Savepoint,
		Periodic: r.Periodic, Final: r.Final, Discarded: r.Discarded, CommitsOpen: r.CommitsOpen, OutputGivenUp: r.OutputGivenUp,
		TriggeredAt: r.TriggeredAt.UTC(), CompletedAt: optional(r.CompletedAt), CommittedAt: optional(r.CommittedAt),
		StateBytes: r.StateBytes, NewBytes: r.NewBytes, Manifest: r.Manifest, CriticalPath: r.Path, Thinned: r.Thinned, Failure: viewCheckpointFailure(r.Failure),
	}
	if !r.CompletedAt.IsZero() {
		v.DurationMS = millis(r.CompletedAt.Sub(r.TriggeredAt))
	}
	if !r.CommittedAt.IsZero() {
		v.CommitMS = millis(r.CommittedAt.Sub(r.CompletedAt))
	}
	return v
}

func viewCheckpointFailure(f *weir.Failure) *CheckpointFailure {
	if f == nil {
		return nil
	}
	return &CheckpointFailure{Reason: f.Reason, Operator: string(f.Operator), Subtask: f.Subtask, Worker: string(f.Worker), Message: f.Message}
}

func millis(d time.Duration) float64 { return float64(max(d, 0).Microseconds()) / 1000 }

// maxWait bounds how long a request waits for a checkpoint.
const maxWait = 10 * time.Minute

// triggerCheckpoint takes a checkpoint now.
//
//	@Summary		Take a checkpoint now
//	@Description	Without wait the job must be RUNNING, and the answer is 202 at once. With wait the answer is 200 with the ended checkpoint, whatever its status, or 202 when the time ran out. request says whether it began at once (started), waited for its turn (queued), or shares the one that an earlier request waited for (joined).
//	@Tags			checkpoints
//	@Produce		json
//	@Param			job		path		string	true	"id or name"
//	@Param			wait	query		string	false	"how long to wait for its end, such as 30s"
//	@Success		200		{object}	TriggeredCheckpoint
//	@Success		202		{object}	TriggeredCheckpoint
//	@Header			202		{string}	Location	"the checkpoint"
//	@Router			/v1/jobs/{job}/checkpoints [post]
func (s *Server) triggerCheckpoint(c echo.Context) error {
	q := query(c)
	wait := q.duration("wait", maxWait)
	var req struct{}
	if err := s.decode(c, q, &req); err != nil {
		return err
	}
	t, err := s.deps.Service.TriggerCheckpoint(c.Request().Context(), param(c, "job"), wait)
	return answerTrigger(c, t, err)
}

// answerTrigger answers with a checkpoint as far as it came.
func answerTrigger(c echo.Context, t job.Triggered, err error) error {
	if err != nil {
		return err
	}
	r := t.Record
	v := TriggeredCheckpoint{Checkpoint: viewCheckpoint(r), Request: string(t.Turn)}
	location := "/v1/jobs/" + string(r.Job) + "/checkpoints/" + itoa(int64(r.ID))
	if r.Type == checkpoint.TypeSavepoint {
		location = "/v1/savepoints/" + r.Savepoint
	}
	c.Response().Header().Set("Location", location)
	if r.Status == checkpoint.StatusPending {
		return c.JSON(http.StatusAccepted, v)
	}
	return c.JSON(http.StatusOK, v)
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
