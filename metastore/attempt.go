package metastore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"weir"
	"weir/checkpoint"
)

// BeginAttempt starts the next attempt of the job under lease term: one transaction
// changes the job's row WHERE its attempt is last and its term is not above term,
// gives it the attempt, status SCHEDULING and the term, ends the open attempt row and
// what checkpoints it left pending, and returns the job with the Base it must start from.
func (s *Store) BeginAttempt(ctx context.Context, job weir.JobID, last weir.AttemptID, term int64) (weir.Job, error) {
	token, next := newToken(), weir.NewAttemptID(last.Number+1)
	var out weir.Job
	err := s.transact(ctx, job, token, func(ctx context.Context, tx *sql.Tx) error {
		old, err := scanJob(tx.QueryRowContext(ctx, `UPDATE jobs SET writes = substr($1 || writes, 1, 256)
			WHERE id = $2 AND attempt = $3 AND attempt_tag = $4 AND term <= $5 AND deleted_at IS NULL RETURNING `+jobColumns,
			token, job, last.Number, last.Tag, term))
		if errors.Is(err, sql.ErrNoRows) {
			return stale(weir.Fence{Job: job, Attempt: last, Term: term})
		}
		if err != nil {
			return err
		}
		if !old.Status.CanBecome(weir.StatusScheduling) {
			return conflict("job %q is %s: no attempt can begin", old.Name, old.Status)
		}
		if err := endAttempt(ctx, tx, old, "superseded", nil); err != nil {
			return err
		}
		out, err = scanJob(tx.QueryRowContext(ctx, `UPDATE jobs SET attempt = $1, attempt_tag = $2, term = $3, status = 'SCHEDULING',
			restored_from_job = base_job, restored_from_checkpoint = base_checkpoint, started_at = `+now+`, ended_at = NULL
			WHERE id = $4 RETURNING `+jobColumns, next.Number, next.Tag, term, job))
		if err != nil {
			return err
		}
		return openAttempt(ctx, tx, old, out)
	})
	if err != nil {
		return weir.Job{}, wrap("begin attempt", err)
	}
	return out, nil
}

// openAttempt writes the row and the event of j's attempt.
func openAttempt(ctx context.Context, tx *sql.Tx, old, j weir.Job) error {
	_, err := tx.ExecContext(ctx, insert("attempts", "job, number, tag, term, parallelism, restored_from_job, restored_from_checkpoint, started_at, ended_by"),
		j.ID, j.Attempt.Number, j.Attempt.Tag, j.Term, j.Parallelism, j.RestoredFrom.Job, j.RestoredFrom.Checkpoint, instant(j.StartedAt), "")
	if err != nil {
		return err
	}
	from := "from nothing"
	if !j.RestoredFrom.IsZero() {
		from = fmt.Sprintf("from checkpoint %d", j.RestoredFrom.Checkpoint)
		if j.RestoredFrom.Job != j.ID {
			from += " of " + string(j.RestoredFrom.Job)
		}
	}
	data, err := json.Marshal(struct {
		From         weir.Status      `json:"from"`
		To           weir.Status      `json:"to"`
		Attempt      weir.AttemptID   `json:"attempt"`
		RestoredFrom weir.SnapshotRef `json:"restored_from"`
		Parallelism  int              `json:"parallelism"`
	}{old.Status, j.Status, j.Attempt, j.RestoredFrom, j.Parallelism})
	if err != nil {
		return err
	}
	return addEvent(ctx, tx, weir.Event{
		Job: j.ID, Kind: "attempt", Attempt: j.Attempt.Number, Data: data,
		Message: fmt.Sprintf("attempt %d begins %s at parallelism %d", j.Attempt.Number, from, j.Parallelism),
	})
}

// endAttempt ends j's attempt row, if it is open, and aborts what it left pending.
func endAttempt(ctx context.Context, tx *sql.Tx, j weir.Job, by string, failure *weir.Failure) error {
	_, err := tx.ExecContext(ctx, `UPDATE attempts SET ended_at = `+now+`, ended_by = $1, failure = $2
		WHERE job = $3 AND number = $4 AND ended_at IS NULL`, by, doc(&failure), j.ID, j.Attempt.Number)
	if err != nil {
		return err
	}
	why := &weir.Failure{Reason: checkpoint.ReasonAttemptEnded, Message: fmt.Sprintf("attempt %d ended before the checkpoint was complete", j.Attempt.Number)}
	if failure != nil {
		why.Operator, why.Subtask, why.Worker = failure.Operator, failure.Subtask, failure.Worker
		why.Message += ": " + failure.Message
	}
	return abortPending(ctx, tx, j.ID, why)
}

// SetStatus moves the job to a status, with the failure that caused it (nil clears
// it), and records the attempt's times and an event in the same transaction. A job
// that ends while a restore waits for that is to be started again. A
// transition that Status.CanBecome forbids is weir.ErrConflict, and so is
// SCHEDULING, which only BeginAttempt gives.
func (s *Store) SetStatus(ctx context.Context, fence weir.Fence, to weir.Status, failure *weir.Failure) error {
	for {
		also, err := s.startsFrom(ctx, fence.Job, to)
		if err == nil {
			err = s.setStatus(ctx, fence, to, failure, also)
		}
		if !errors.Is(err, errOtherStart) {
			return err
		}
	}
}

// errOtherStart: what a job starts from once it has ended was changed just now.
var errOtherStart = errors.New("another start was asked for")

// startsFrom is the job whose row the end of a job will lock, if any.
func (s *Store) startsFrom(ctx context.Context, job weir.JobID, to weir.Status) (weir.JobID, error) {
	if !to.Terminal() {
		return "", nil
	}
	j, err := s.Job(ctx, string(job))
	switch {
	case errors.Is(err, weir.ErrNotFound): // the fence will say so
		return "", nil
	case err != nil:
		return "", wrap("set status", err)
	}
	return thenOwner(j), nil
}

// thenOwner is the job whose snapshot the start that follows j's end names, if any.
func thenOwner(j weir.Job) weir.JobID {
	if j.Then == nil {
		return ""
	}
	return owner(j.Then.Base)
}

func (s *Store) setStatus(ctx context.Context, fence weir.Fence, to weir.Status, failure *weir.Failure, also weir.JobID) error {
	return s.decideWith(ctx, "set status", fence, also, func(ctx context.Context, tx *sql.Tx, j weir.Job) error {
		if to.Terminal() && thenOwner(j) != also {
			return errOtherStart
		}
		if !j.Status.CanBecome(to) || to == weir.StatusScheduling {
			return conflict("job %q is %s: it cannot become %s", j.Name, j.Status, to)
		}
		ended := ""
		if to.Terminal() {
			ended = ", stop_savepoint = '', ended_at = " + now
		}
		_, err := tx.ExecContext(ctx, `UPDATE jobs SET status = $1, failure = $2`+ended+` WHERE id = $3`, to, doc(&failure), j.ID)
		if err != nil {
			return err
		}
		switch {
		case to == weir.StatusRunning:
			_, err = tx.ExecContext(ctx, `UPDATE attempts SET running_at = COALESCE(running_at, `+now+`) WHERE job = $1 AND number = $2`, j.ID, j.Attempt.Number)
		case to == weir.StatusRestarting, to.Terminal():
			by := string(to)
			if failure != nil {
				by = failure.Reason
			}
			err = endAttempt(ctx, tx, j, by, failure)
		}
		if err != nil {
			return err
		}
		err = statusEvent(ctx, tx, j, to, failure)
		if err == nil && to.Terminal() && j.Then != nil {
			err = thenStart(ctx, tx, j)
		}
		return err
	})
}

// TakeOver raises the term on the job's row to that of a new lease holder, keeping
// the attempt, so that the old holder's writes are stale.
func (s *Store) TakeOver(ctx context.Context, fence weir.Fence, term int64) (weir.Job, error) {
	var out weir.Job
	err := s.decide(ctx, "take over", fence, func(ctx context.Context, tx *sql.Tx, j weir.Job) (err error) {
		if term < j.Term {
			return stale(weir.Fence{Job: j.ID, Attempt: j.Attempt, Term: term})
		}
		out, err = scanJob(tx.QueryRowContext(ctx, `UPDATE jobs SET term = $1 WHERE id = $2 RETURNING `+jobColumns, term, j.ID))
		return err
	})
	return out, err
}

// Attempts lists a job's attempts, newest first.
func (s *Store) Attempts(ctx context.Context, job weir.JobID) ([]weir.Attempt, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	return list(ctx, s.read, "list attempts", scanAttempt, `SELECT job, number, tag, term, parallelism, restored_from_job, restored_from_checkpoint,
		started_at, running_at, ended_at, ended_by, failure FROM attempts WHERE job = $1 ORDER BY number DESC`, job)
}

func scanAttempt(row interface{ Scan(...any) error }) (weir.Attempt, error) {
	var a weir.Attempt
	err := row.Scan(&a.Job, &a.ID.Number, &a.ID.Tag, &a.Term, &a.Parallelism, &a.RestoredFrom.Job, &a.RestoredFrom.Checkpoint,
		(*instant)(&a.StartedAt), (*instant)(&a.RunningAt), (*instant)(&a.EndedAt), &a.EndedBy, doc(&a.Failure))
	return a, err
}
