package metastore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"weir"
)

// AddEvent appends e, numbering it.
func (s *Store) AddEvent(ctx context.Context, e weir.Event) error {
	token := newToken()
	return wrap("add event", s.transact(ctx, e.Job, token, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE jobs SET writes = substr($1 || writes, 1, 256) WHERE id = $2`, token, e.Job); err != nil {
			return err
		}
		return addEvent(ctx, tx, e)
	}))
}

func addEvent(ctx context.Context, tx *sql.Tx, e weir.Event) error {
	err := tx.QueryRowContext(ctx, `UPDATE jobs SET last_event = last_event + 1 WHERE id = $1 RETURNING last_event`, e.Job).Scan(&e.Seq)
	if err != nil {
		return orNotFound(err, "job %s", e.Job)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO events (job, seq, at, kind, attempt, message, data)
		VALUES ($1, $2, COALESCE($3, `+now+`), $4, $5, $6, $7)`,
		e.Job, e.Seq, instant(e.At), e.Kind, e.Attempt, e.Message, text(e.Data))
	return err
}

// statusEvent tells of a status and the failure behind it.
func statusEvent(ctx context.Context, tx *sql.Tx, j weir.Job, to weir.Status, failure *weir.Failure) error {
	message := string(to)
	if failure != nil {
		message = fmt.Sprintf("%s: %s", to, failure.Message)
	}
	data, err := json.Marshal(struct {
		From    weir.Status   `json:"from"`
		To      weir.Status   `json:"to"`
		Failure *weir.Failure `json:"failure,omitempty"`
	}{j.Status, to, failure})
	if err != nil {
		return err
	}
	return addEvent(ctx, tx, weir.Event{Job: j.ID, Kind: "status", Attempt: j.Attempt.Number, Message: message, Data: data})
}

// Events lists a job's events after seq, oldest first.
func (s *Store) Events(ctx context.Context, job weir.JobID, after int64, limit int) ([]weir.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	var w where
	w.add("job = ?", job)
	w.add("seq > ?", after)
	query := `SELECT job, seq, at, kind, attempt, message, data FROM events` + w.String() + ` ORDER BY seq` + w.limit(limit)
	return list(ctx, s.read, "list events", scanEvent, query, w.args...)
}

// NewestEvents lists a job's events before seq (0: from the newest), newest first.
func (s *Store) NewestEvents(ctx context.Context, job weir.JobID, before int64, limit int) ([]weir.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	var w where
	w.add("job = ?", job)
	if before > 0 {
		w.add("seq < ?", before)
	}
	query := `SELECT job, seq, at, kind, attempt, message, data FROM events` + w.String() + ` ORDER BY seq DESC` + w.limit(limit)
	return list(ctx, s.read, "list events", scanEvent, query, w.args...)
}

func scanEvent(row interface{ Scan(...any) error }) (weir.Event, error) {
	var e weir.Event
	err := row.Scan(&e.Job, &e.Seq, (*instant)(&e.At), &e.Kind, &e.Attempt, &e.Message, (*text)(&e.Data))
	return e, err
}
