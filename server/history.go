package server

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/checkpoint"
)

// A CheckpointList is a page of a job's history, newest first.
type CheckpointList struct {
	Checkpoints []Checkpoint `json:"checkpoints"`
	Next        string       `json:"next,omitempty"` // cursor of the next page; absent: this is the last
} // @name CheckpointList

// longest bounds min_duration; a checkpoint's timeout is shorter by far.
const longest = 366 * 24 * time.Hour

// filter reads the parameters that choose from a history.
func (q *queryReader) filter() checkpoint.Filter {
	f := checkpoint.Filter{
		Status: oneOf(q, "status", []checkpoint.Status{checkpoint.StatusPending, checkpoint.StatusCompleted, checkpoint.StatusFailed, checkpoint.StatusAborted}),
		Reason: oneOf(q, "reason", checkpoint.Reasons()),
		Since:  q.moment("since"), Until: q.moment("until"),
		Attempt:     q.number("attempt", 0, 1, 1<<62),
		MinDuration: q.duration("min_duration", longest),
	}
	both := []checkpoint.Type{checkpoint.TypeCheckpoint, checkpoint.TypeSavepoint}
	if text := q.text("type"); text != "" {
		if f.Type = checkpoint.Type(text); !slices.Contains(both, f.Type) {
			q.fault("type", fmt.Sprintf("is %q: give one of %s", shown(text), join(both)))
		}
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		q.fault("until", fmt.Sprintf("is %s, not after since, %s", f.Until.Format(time.RFC3339Nano), f.Since.Format(time.RFC3339Nano)))
	}
	return f
}

// oneOf reads a list of values, each one of all.
func oneOf[T ~string](q *queryReader, name string, all []T) []T {
	var out []T
	for _, value := range q.list(name) {
		if !slices.Contains(all, T(value)) {
			q.fault(name, "is "+quoted(shown(value))+": give one of "+join(all))
		}
		out = append(out, T(value))
	}
	return out
}

// moment reads a time; absent, it is zero.
func (q *queryReader) moment(name string) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 1 {
		q.fault(name, fmt.Sprintf("is %q: give a time such as 2026-03-01T12:00:00Z (in a URL, + is written %%2B)", shown(text)))
		return time.Time{}
	}
	return t.UTC()
}

// listCheckpoints lists a job's history.
//
//	@Summary	List a job's checkpoints and savepoints, newest first
//	@Tags		checkpoints
//	@Produce	json
//	@Param		job				path		string		true	"id or name"
//	@Param		status			query		[]string	false	"only those of these statuses: pending, completed, failed, aborted"	collectionFormat(csv)
//	@Param		type			query		string		false	"only checkpoints, or only savepoints"	Enums(checkpoint, savepoint)
//	@Param		attempt			query		int			false	"only those of this attempt"	minimum(1)
//	@Param		reason			query		[]string	false	"only those that failed or were aborted for one of these reasons"	collectionFormat(csv)
//	@Param		since			query		string		false	"triggered at this time or later, such as 2026-03-01T12:00:00Z"
//	@Param		until			query		string		false	"triggered before this time"
//	@Param		min_duration	query		string		false	"only those that ended after this long or longer, such as 1.5s"
//	@Param		cursor			query		string		false	"next of the page before"
//	@Param		limit			query		int			false	"checkpoints per page"	default(50)	minimum(1)	maximum(1000)
//	@Success	200				{object}	CheckpointList
//	@Router		/v1/jobs/{job}/checkpoints [get]
func (s *Server) listCheckpoints(c echo.Context) error {
	q := query(c)
	f := q.filter()
	limit := int(q.number("limit", 50, 1, 1000))
	f.Before, f.Limit = weir.CheckpointID(q.number("cursor", 0, 1, 1<<62)), limit+1
	j, err := s.jobOf(c, q)
	if err != nil {
		return err
	}
	records, err := s.deps.History.Checkpoints(c.Request().Context(), j.ID, f)
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

// A CheckpointSummary counts the checkpoints of a history and measures the completed ones.
type CheckpointSummary struct {
	Counts     CheckpointCounts `json:"counts"`
	DurationMS Distribution     `json:"duration_ms"`
	StateBytes Distribution     `json:"state_bytes"`
	NewBytes   Distribution     `json:"new_bytes"`
} // @name CheckpointSummary

// CheckpointCounts counts checkpoints and savepoints by status.
type CheckpointCounts struct {
	Total     int64 `json:"total"`
	Pending   int64 `json:"pending"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Aborted   int64 `json:"aborted"`
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

// getCheckpointSummary sums a job's history up.
//
//	@Summary		Sum a job's checkpoints up
//	@Description	Over the whole history that there is, or what the filters let through. A percentile is the smallest value that so many are not above.
//	@Tags			checkpoints
//	@Produce		json
//	@Param			job				path		string		true	"id or name"
//	@Param			status			query		[]string	false	"only those of these statuses: pending, completed, failed, aborted"	collectionFormat(csv)
//	@Param			type			query		string		false	"only checkpoints, or only savepoints"	Enums(checkpoint, savepoint)
//	@Param			attempt			query		int			false	"only those of this attempt"	minimum(1)
//	@Param			reason			query		[]string	false	"only those that failed or were aborted for one of these reasons"	collectionFormat(csv)
//	@Param			since			query		string		false	"triggered at this time or later, such as 2026-03-01T12:00:00Z"
//	@Param			until			query		string		false	"triggered before this time"
//	@Param			min_duration	query		string		false	"only those that ended after this long or longer, such as 1.5s"
//	@Success		200				{object}	CheckpointSummary
//	@Router			/v1/jobs/{job}/checkpoints/summary [get]
func (s *Server) getCheckpointSummary(c echo.Context) error {
	q := query(c)
	f := q.filter()
	j, err := s.jobOf(c, q)
	if err != nil {
		return err
	}
	sum, err := s.deps.History.CheckpointSummary(c.Request().Context(), j.ID, f)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, CheckpointSummary{
		Counts:     CheckpointCounts{Total: sum.Total, Pending: sum.Pending, Completed: sum.Completed, Failed: sum.Failed, Aborted: sum.Aborted},
		DurationMS: Distribution(sum.Duration), StateBytes: Distribution(sum.StateBytes), NewBytes: Distribution(sum.NewBytes),
	})
}
