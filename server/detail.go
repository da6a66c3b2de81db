package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/checkpoint"
	"weir/planner/plan"
)

// A CheckpointDetail is a checkpoint with the time and size of each subtask's part.
type CheckpointDetail struct {
	Checkpoint
	Last      *CheckpointTask      `json:"last,omitempty"` // who acknowledged last
	Operators []CheckpointOperator `json:"operators"`      // empty while it is pending, and where it was thinned
	// Of a pending one: the tasks that have not acknowledged, as they say themselves.
	WaitingFor []CheckpointWaiting `json:"waiting_for,omitempty"`
	// Of a pending one: why waiting_for is not whole.
	WaitingUnknown string `json:"waiting_unknown,omitempty"`
} // @name CheckpointDetail

// A CheckpointTask names a subtask of an operator.
type CheckpointTask struct {
	Operator string `json:"operator"` // id of its chain, as in operators
	Name     string `json:"name"`
	Subtask  int    `json:"subtask"`
} // @name CheckpointTask

// A CheckpointOperator is a chain of operators, fused into one task per subtask.
type CheckpointOperator struct {
	ID       string              `json:"id"`
	Name     string              `json:"name"`
	Last     *CheckpointTask     `json:"last,omitempty"` // which of its subtasks acknowledged last
	Subtasks []CheckpointSubtask `json:"subtasks"`       // those that have acknowledged
} // @name CheckpointOperator

// A CheckpointSubtask is the part of one subtask.
type CheckpointSubtask struct {
	Index        int                `json:"index"`
	Worker       string             `json:"worker"`
	StartDelayMS float64            `json:"start_delay_ms"` // trigger to first barrier
	AlignmentMS  float64            `json:"alignment_ms"`   // first to last barrier
	CutMS        float64            `json:"cut_ms"`         // on the task's loop
	UploadMS     float64            `json:"upload_ms"`      // off it
	CommitMS     float64            `json:"commit_ms"`      // decision to visible output; 0: none, or not yet
	NewBytes     int64              `json:"new_bytes"`
	TotalBytes   int64              `json:"total_bytes"`
	AckedAt      *time.Time         `json:"acked_at,omitempty"`
	LastInput    *CheckpointTask    `json:"last_input,omitempty"` // whose barrier completed the alignment; absent for a source
	Failure      *CheckpointFailure `json:"failure,omitempty"`
} // @name CheckpointSubtask

// A CheckpointWaiting is a subtask that a pending checkpoint waits for.
type CheckpointWaiting struct {
	CheckpointTask
	Worker  string           `json:"worker,omitempty"`
	Stage   string           `json:"stage" enums:"waiting,aligning,cutting,uploading"`
	SinceMS float64          `json:"since_ms"`          // how long it has been at that stage
	Missing []CheckpointTask `json:"missing,omitempty"` // whose barriers have not come
	// BackPressured and Busy are shares, 0 to 1, of the last seconds.
	BackPressured float64 `json:"back_pressured"`
	Busy          float64 `json:"busy"`
	Doing         string  `json:"doing,omitempty"` // what takes long, where the task knows
} // @name CheckpointWaiting

// A detailView shows tasks by the chains of their job's graph.
type detailView struct{ graph plan.Graph }

// task names a task.
func (v detailView) task(t weir.TaskID) CheckpointTask {
	out := CheckpointTask{Subtask: t.Subtask}
	if t.Chain >= 0 && t.Chain < len(v.graph.Chains) {
		out.Operator, out.Name = chainName(v.graph.Chains[t.Chain])
	}
	return out
}

func (v detailView) optional(t *weir.TaskID) *CheckpointTask {
	if t == nil {
		return nil
	}
	out := v.task(*t)
	return &out
}

// detail groups the acks of a checkpoint by chain.
func (v detailView) detail(r checkpoint.Record) CheckpointDetail {
	d := CheckpointDetail{Checkpoint: viewCheckpoint(r), Operators: []CheckpointOperator{}, Last: v.optional(last(r.Acks))}
	for i, chain := range v.graph.Chains {
		op := CheckpointOperator{Subtasks: []CheckpointSubtask{}}
		op.ID, op.Name = chainName(chain)
		var acks []checkpoint.Ack
		for _, a := range r.Acks {
			if a.Task.Chain == i {
				acks = append(acks, a)
				op.Subtasks = append(op.Subtasks, v.subtask(a))
			}
		}
		if len(acks) > 0 {
			op.Last = v.optional(last(acks))
			slices.SortFunc(op.Subtasks, func(a, b CheckpointSubtask) int { return a.Index - b.Index })
			d.Operators = append(d.Operators, op)
		}
	}
	return d
}

func (v detailView) subtask(a checkpoint.Ack) CheckpointSubtask {
	t := a.Timing
	s := CheckpointSubtask{
		Index: a.Task.Subtask, Worker: string(a.Worker), StartDelayMS: t.StartDelayMS, AlignmentMS: t.AlignmentMS, CutMS: t.CutMS, UploadMS: t.UploadMS,
		CommitMS: t.CommitMS, NewBytes: t.NewBytes, TotalBytes: t.TotalBytes, AckedAt: optional(a.AckedAt), LastInput: v.optional(t.LastInput),
	}
	if a.Failure != nil { // a task may say no more than what went wrong
		f := *a.Failure
		if f.Subtask == nil {
			f.Subtask = &a.Task.Subtask
		}
		if f.Operator == "" {
			f.Operator = weir.OperatorID(v.task(a.Task).Operator)
		}
		if f.Worker == "" {
			f.Worker = a.Worker
		}
		s.Failure = viewCheckpointFailure(&f)
	}
	return s
}

// last is the task that acknowledged last; nil: none did, or nobody knows when.
func last(acks []checkpoint.Ack) *weir.TaskID {
	var out *weir.TaskID
	var at time.Time
	for _, a := range acks {
		if a.AckedAt.After(at) {
			at, out = a.AckedAt, &a.Task
		}
	}
	return out
}

// waiting shows those tasks that have still to acknowledge.
func (v detailView) waiting(tasks []checkpoint.Progress) []CheckpointWaiting {
	var out []CheckpointWaiting
	for _, p := range tasks {
		if p.Stage == checkpoint.StageDone {
			continue
		}
		w := CheckpointWaiting{
			CheckpointTask: v.task(p.Task), Worker: string(p.Worker), Stage: string(p.Stage), SinceMS: p.SinceMS,
			BackPressured: p.BackPressured, Busy: p.Busy, Doing: p.Doing,
		}
		for _, m := range p.Missing {
			w.Missing = append(w.Missing, v.task(m))
		}
		out = append(out, w)
	}
	return out
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

// getCheckpoint shows one checkpoint.
//
//	@Summary		Show a checkpoint, subtask by subtask
//	@Description	Of a pending one, waiting_for says which subtasks have not acknowledged, how far they are, and whose barriers they miss.
//	@Tags			checkpoints
//	@Produce		json
//	@Param			job	path		string	true	"id or name"
//	@Param			id	path		int		true	"number of the checkpoint"
//	@Success		200	{object}	CheckpointDetail
//	@Router			/v1/jobs/{job}/checkpoints/{id} [get]
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
	var v detailView
	if err := json.Unmarshal(j.Plan, &v.graph); err != nil {
		return err
	}
	if r.Status != checkpoint.StatusPending {
		return c.JSON(http.StatusOK, v.detail(r))
	}
	progress, err := s.deps.Service.CheckpointProgress(ctx, j.ID, id)
	if err != nil {
		progress.Unknown = problemOf(err, http.MethodGet).Detail
	}
	if now, err := s.deps.History.CheckpointByID(ctx, j.ID, id); err == nil { // it may have ended meanwhile
		r = now
	}
	d := v.detail(r)
	if r.Status == checkpoint.StatusPending {
		d.WaitingFor, d.WaitingUnknown = v.waiting(progress.Tasks), progress.Unknown
	}
	return c.JSON(http.StatusOK, d)
}
