package metastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir"
)

const jobColumns = `id, name, sql, plan, parallelism, max_parallelism, checkpoint, restart, on_row_error, shard,
	desired, status, attempt, attempt_tag, term, base_job, base_checkpoint, restored_from_job, restored_from_checkpoint,
	stop_savepoint, then_start, last_checkpoint, failure, created_at, started_at, ended_at`

func scanJob(row interface{ Scan(...any) error }) (weir.Job, error) {
	var j weir.Job
	err := row.Scan(&j.ID, &j.Name, &j.SQL, (*text)(&j.Plan), &j.Parallelism, &j.MaxParallelism,
		(*text)(&j.Checkpoint), (*text)(&j.Restart), &j.OnRowError, &j.Shard,
		&j.Desired, &j.Status, &j.Attempt.Number, &j.Attempt.Tag, &j.Term,
		&j.Base.Job, &j.Base.Checkpoint, &j.RestoredFrom.Job, &j.RestoredFrom.Checkpoint,
		&j.StopSavepoint, doc(&j.Then), &j.LastCheckpoint, doc(&j.Failure),
		(*instant)(&j.CreatedAt), (*instant)(&j.StartedAt), (*instant)(&j.EndedAt))
	return j, err
}

// CreateJob inserts j. A name in use by a job not deleted is weir.ErrConflict. With an
// idempotency key seen before, it inserts nothing and returns the job of then. A base
// that another job took must still be kept.
func (s *Store) CreateJob(ctx context.Context, j weir.Job, idempotencyKey string) (weir.Job, error) {
	var out weir.Job
	create := func() error {
		token := newToken()
		return s.transact(ctx, j.ID, token, func(ctx context.Context, tx *sql.Tx) (err error) {
			out, err = insertJob(ctx, tx, j, idempotencyKey, token)
			return err
		})
	}
	err := create()
	if errors.Is(err, errNotCommitted) {
		err = create() // an INSERT in doubt locks nothing that can be read back: this one waits for it
	}
	if err == nil || !isUnique(err) {
		return out, wrap("create job", err)
	}
	// The violated index may be any: who asks twice meets the id, the name and the key of his own job.
	query, arg := `SELECT `+jobColumns+` FROM jobs WHERE id = $1`, string(j.ID)
	if idempotencyKey != "" {
		query, arg = `SELECT `+jobColumns+` FROM jobs WHERE idempotency_key = $1`, idempotencyKey
	}
	if old, ferr := scanJob(s.read.QueryRowContext(ctx, query, arg)); ferr == nil {
		return old, nil
	}
	return weir.Job{}, wrap("create job", conflict("a job named %q exists already: choose another name or delete it", j.Name))
}

func insertJob(ctx context.Context, tx *sql.Tx, j weir.Job, key, token string) (weir.Job, error) {
	if key != "" {
		old, err := scanJob(tx.QueryRowContext(ctx, `SELECT `+jobColumns+` FROM jobs WHERE idempotency_key = $1`, key))
		if !errors.Is(err, sql.ErrNoRows) {
			return old, err
		}
	}
	if !j.Base.IsZero() {
		if err := checkBase(ctx, tx, j.Base); err != nil {
			return weir.Job{}, err
		}
		j.LastCheckpoint = max(j.LastCheckpoint, j.Base.Checkpoint)
	}
	_, err := tx.ExecContext(ctx, insert("jobs", jobColumns+", last_event, writes, idempotency_key"),
		j.ID, j.Name, j.SQL, text(j.Plan), j.Parallelism, j.MaxParallelism, text(j.Checkpoint), text(j.Restart), j.OnRowError, j.Shard,
		j.Desired, j.Status, j.Attempt.Number, j.Attempt.Tag, j.Term, j.Base.Job, j.Base.Checkpoint,
		j.RestoredFrom.Job, j.RestoredFrom.Checkpoint, j.StopSavepoint, doc(&j.Then), j.LastCheckpoint, doc(&j.Failure),
		instant(orNow(j.CreatedAt)), instant(j.StartedAt), instant(j.EndedAt), 0, token, sql.NullString{String: key, Valid: key != ""})
	if err != nil {
		return weir.Job{}, err
	}
	if err := addEvent(ctx, tx, weir.Event{Job: j.ID, Kind: "status", Message: string(j.Status)}); err != nil {
		return weir.Job{}, err
	}
	return scanJob(tx.QueryRowContext(ctx, `SELECT `+jobColumns+` FROM jobs WHERE id = $1`, j.ID))
}

// orNow stands in for a creation time that the caller does not care about.
func orNow(t time.Time) time.Time {
	if t.IsZero() {
		return time.Now()
	}
	return t
}

// checkBase makes sure, under its owner's row lock, that a snapshot may become
// somebody's base: complete and not given up.
func checkBase(ctx context.Context, tx *sql.Tx, ref weir.SnapshotRef) error {
	if err := lockJob(ctx, tx, ref.Job); err != nil {
		return err
	}
	var status string
	var discarded bool
	err := tx.QueryRowContext(ctx, `SELECT status, discarded FROM checkpoints WHERE job = $1 AND id = $2`,
		ref.Job, ref.Checkpoint).Scan(&status, &discarded)
	if err != nil {
		return orNotFound(err, "checkpoint %d of job %s", ref.Checkpoint, ref.Job)
	}
	if status != "completed" {
		return conflict("checkpoint %d of job %s is %s: only a completed one can be restored", ref.Checkpoint, ref.Job, status)
	}
	if discarded {
		return conflict("checkpoint %d of job %s was given up by retention", ref.Checkpoint, ref.Job)
	}
	return nil
}

// Job finds a job, not deleted, by id or by name.
func (s *Store) Job(ctx context.Context, idOrName string) (weir.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	j, err := scanJob(s.read.QueryRowContext(ctx, `SELECT `+jobColumns+` FROM jobs WHERE (id = $1 OR name = $1) AND deleted_at IS NULL`, idOrName))
	return j, wrap("read job", orNotFound(err, "job %q", idOrName))
}

// Jobs lists jobs, newest first.
func (s *Store) Jobs(ctx context.Context, f weir.JobFilter) ([]weir.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	var w where
	w.add("deleted_at IS NULL")
	if len(f.Status) > 0 {
		w.in("status", anys(f.Status))
	}
	if len(f.Desired) > 0 {
		w.in("desired", anys(f.Desired))
	}
	if f.Name != "" {
		w.add(`name LIKE ? ESCAPE '!'`, "%"+likeEscaper.Replace(strings.ToLower(f.Name))+"%")
	}
	if f.Unsettled {
		w.add("(status NOT IN ('STOPPED', 'CANCELED', 'FINISHED', 'FAILED') OR ended_at IS NULL)")
	}
	if f.IdempotencyKey != "" {
		w.add("idempotency_key = ?", f.IdempotencyKey)
	}
	if f.After != "" {
		w.add("(created_at, id) < (SELECT created_at, id FROM jobs WHERE id = ?)", f.After)
	}
	query := `SELECT ` + jobColumns + ` FROM jobs` + w.String() + ` ORDER BY created_at DESC, id DESC` + w.limit(f.Limit) + w.skip(f.Skip)
	jobs, err := list(ctx, s.read, "list jobs", scanJob, query, w.args...)
	if err != nil || len(jobs) > 0 || f.After == "" {
		return jobs, err
	}
	var known int
	err = s.read.QueryRowContext(ctx, `SELECT COUNT(*) FROM jobs WHERE id = $1`, f.After).Scan(&known)
	if err == nil && known == 0 {
		err = fmt.Errorf("%w: cursor %q is none that was given out: begin without one", weir.ErrInvalid, f.After)
	}
	return nil, wrap("list jobs", err)
}

// likeEscaper takes the meaning from what LIKE reads as wildcards.
var likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

// SetDesired records the user's wish if the job's status is one of from; else
// weir.ErrConflict. A start also sets parallelism and base, and clears the failure
// and the end of the last attempt. A stop's Then is carried out when the job ends
// (SetStatus), unless another wish has come by then.
func (s *Store) SetDesired(ctx context.Context, id weir.JobID, from []weir.Status, wish weir.Wish) (weir.Job, error) {
	var out weir.Job
	err := s.locked(ctx, "set desired", id, owner(wish.Base), func(ctx context.Context, tx *sql.Tx, j weir.Job) (err error) {
		if !slices.Contains(from, j.Status) {
			return conflict("job %q is %s: it must be %s", j.Name, j.Status, statusList(from))
		}
		if f := wish.Fence; wish.TakesBack != "" && (j.Attempt != f.Attempt || j.Term != f.Term) {
			return stale(f)
		}
		if wish.TakesBack != "" && (j.Desired != weir.DesiredStopped || j.StopSavepoint != wish.TakesBack) {
			return conflict("job %q is not being stopped with savepoint %q any more", j.Name, wish.TakesBack)
		}
		if j.Status.Terminal() && wish.Then != nil { // it has ended: nothing to wait for
			wish = weir.Wish{Desired: weir.DesiredRunning, Parallelism: wish.Then.Parallelism, Base: wish.Then.Base}
		}
		if err := rebase(ctx, tx, &j, wish.Base); err != nil {
			return err
		}
		if wish.Parallelism > 0 {
			j.Parallelism = wish.Parallelism
		}
		ended := "ended_at"
		if j.Status.Terminal() && wish.Desired == weir.DesiredRunning {
			j.Failure, ended = nil, "NULL"
		} else if j.Status.Terminal() { // it may have waited for a start
			ended = "COALESCE(ended_at, " + now + ")"
		}
		out, err = scanJob(tx.QueryRowContext(ctx, `UPDATE jobs SET desired = $1, stop_savepoint = $2, parallelism = $3, base_job = $4,
			base_checkpoint = $5, last_checkpoint = $6, failure = $7, then_start = $8, ended_at = `+ended+` WHERE id = $9 RETURNING `+jobColumns,
			wish.Desired, wish.Savepoint, j.Parallelism, j.Base.Job, j.Base.Checkpoint, j.LastCheckpoint, doc(&j.Failure), doc(&wish.Then), id))
		return err
	})
	return out, err
}

// rebase gives j the base that a start names; nil keeps it.
func rebase(ctx context.Context, tx *sql.Tx, j *weir.Job, base *weir.SnapshotRef) error {
	if base == nil {
		return nil
	}
	if !base.IsZero() {
		if err := checkBase(ctx, tx, *base); err != nil {
			return err
		}
	}
	j.Base, j.LastCheckpoint = *base, max(j.LastCheckpoint, base.Checkpoint)
	return nil
}

// thenStart carries out the start that follows the end just recorded. Where its
// snapshot was given up meanwhile the job stays as it is, and its history says so.
func thenStart(ctx context.Context, tx *sql.Tx, j weir.Job) error {
	then := *j.Then
	err := rebase(ctx, tx, &j, then.Base)
	if errors.Is(err, weir.ErrNotFound) || errors.Is(err, weir.ErrConflict) {
		note := fmt.Sprintf("the restore was given up: %v: start the job from another one", err)
		if _, err := tx.ExecContext(ctx, `UPDATE jobs SET then_start = NULL WHERE id = $1`, j.ID); err != nil {
			return err
		}
		return addEvent(ctx, tx, weir.Event{Job: j.ID, Kind: "status", Attempt: j.Attempt.Number, Message: note})
	}
	if err != nil {
		return err
	}
	if then.Parallelism > 0 {
		j.Parallelism = then.Parallelism
	}
	_, err = tx.ExecContext(ctx, `UPDATE jobs SET desired = $1, parallelism = $2, base_job = $3, base_checkpoint = $4, last_checkpoint = $5,
		failure = NULL, then_start = NULL, ended_at = NULL WHERE id = $6`,
		weir.DesiredRunning, j.Parallelism, j.Base.Job, j.Base.Checkpoint, j.LastCheckpoint, j.ID)
	return err
}

// DeleteJob marks a terminal job deleted (weir.ErrConflict otherwise): its name is
// free again and its rows stay until its objects are gone.
func (s *Store) DeleteJob(ctx context.Context, id weir.JobID) error {
	return s.locked(ctx, "delete job", id, "", func(ctx context.Context, tx *sql.Tx, j weir.Job) error {
		if !j.Status.Terminal() {
			return conflict("job %q is %s: stop or cancel it first", j.Name, j.Status)
		}
		if j.EndedAt.IsZero() {
			return conflict("job %q is being started: stop or cancel it first", j.Name)
		}
		var open int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM checkpoints WHERE job = $1 AND commits_open`, id).Scan(&open); err != nil {
			return err
		}
		if open > 0 {
			return conflict("job %q has output that its sinks have not committed yet", j.Name)
		}
		_, err := tx.ExecContext(ctx, `UPDATE jobs SET deleted_at = `+now+` WHERE id = $1`, id)
		return err
	})
}

// owner is the job whose snapshot a wish names, if any.
func owner(ref *weir.SnapshotRef) weir.JobID {
	if ref == nil {
		return ""
	}
	return ref.Job
}

func statusList(list []weir.Status) string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// A querier is a database, or a transaction in it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// list runs a query and scans its rows.
func list[T any](ctx context.Context, q querier, what string, scan func(interface{ Scan(...any) error }) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		out = append(out, v)
	}
	return out, wrap(what, rows.Err())
}
