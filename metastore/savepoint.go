package metastore

import (
	"context"
	"database/sql"

	"weir"
	"weir/checkpoint"
)

const savepointColumns = `name, job, job_name, checkpoint, status, manifest, state_bytes, triggered_at, completed_at, failure`

func scanSavepoint(row interface{ Scan(...any) error }) (checkpoint.Savepoint, error) {
	var p checkpoint.Savepoint
	err := row.Scan(&p.Name, &p.Job, &p.JobName, &p.Checkpoint, &p.Status, &p.Manifest, &p.StateBytes,
		(*instant)(&p.TriggeredAt), (*instant)(&p.CompletedAt), doc(&p.Failure))
	return p, err
}

// endSavepoint copies how a checkpoint ended to the savepoint that it is, if it is one.
func endSavepoint(ctx context.Context, tx *sql.Tx, job weir.JobID, id weir.CheckpointID) error {
	_, err := tx.ExecContext(ctx, `UPDATE savepoints SET (status, manifest, state_bytes, completed_at, failure) =
		(SELECT status, manifest, state_bytes, completed_at, failure FROM checkpoints WHERE job = $1 AND id = $2)
		WHERE job = $1 AND checkpoint = $2`, job, id)
	return err
}

// Savepoints lists savepoints, newest first.
func (s *Store) Savepoints(ctx context.Context) ([]checkpoint.Savepoint, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	return list(ctx, s.read, "list savepoints", scanSavepoint, `SELECT `+savepointColumns+` FROM savepoints ORDER BY triggered_at DESC, name`)
}

// Savepoint reads one by name.
func (s *Store) Savepoint(ctx context.Context, name string) (checkpoint.Savepoint, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	p, err := scanSavepoint(s.read.QueryRowContext(ctx, `SELECT `+savepointColumns+` FROM savepoints WHERE name = $1`, name))
	return p, wrap("read savepoint", orNotFound(err, "savepoint %q", name))
}

// DeleteSavepoint gives up a savepoint that nothing is based on (weir.ErrConflict
// otherwise) and returns it. Its name is free; its checkpoint's row stays, so that its
// objects are collected.
func (s *Store) DeleteSavepoint(ctx context.Context, name string) (checkpoint.Savepoint, error) {
	p, err := s.Savepoint(ctx, name)
	if err != nil {
		return p, wrap("delete savepoint", err)
	}
	token := newToken()
	err = s.transact(ctx, p.Job, token, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE jobs SET writes = substr($1 || writes, 1, 256) WHERE id = $2`, token, p.Job)
		if err != nil {
			return err
		}
		p, err = scanSavepoint(tx.QueryRowContext(ctx, `SELECT `+savepointColumns+` FROM savepoints WHERE name = $1 AND job = $2 AND checkpoint = $3`, name, p.Job, p.Checkpoint))
		if err != nil {
			return orNotFound(err, "savepoint %q", name)
		}
		if p.Status == checkpoint.StatusPending {
			return conflict("savepoint %q is being taken: wait until it has ended", name)
		}
		if err := refuseUsed(ctx, tx, p); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE checkpoints SET discarded = $1 WHERE job = $2 AND id = $3`, true, p.Job, p.Checkpoint); err != nil {
			return err
		}
		// The name of one that failed may be another job's by now.
		_, err = tx.ExecContext(ctx, `DELETE FROM savepoints WHERE name = $1 AND job = $2 AND checkpoint = $3`, name, p.Job, p.Checkpoint)
		return err
	})
	return p, wrap("delete savepoint", err)
}

// refuseUsed is weir.ErrConflict when a job is based on the savepoint, it is pinned, a
// pending checkpoint may name its objects, or its output is not committed yet.
func refuseUsed(ctx context.Context, tx *sql.Tx, p checkpoint.Savepoint) error {
	var user string
	err := tx.QueryRowContext(ctx, `SELECT COALESCE(MIN(name), '') FROM jobs WHERE base_job = $1 AND base_checkpoint = $2 AND deleted_at IS NULL`,
		p.Job, p.Checkpoint).Scan(&user)
	if err != nil {
		return err
	}
	if user != "" {
		return conflict("savepoint %q is what job %q would start from: let the job complete a checkpoint or delete it first", p.Name, user)
	}
	var pins, open, reused int
	err = tx.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM pins WHERE job = $1 AND checkpoint = $2 AND expires_at > `+now+`),
		(SELECT COUNT(*) FROM checkpoints WHERE job = $1 AND id = $2 AND commits_open),
		(SELECT COUNT(*) FROM checkpoints WHERE job = $1 AND reuses = $2 AND status = 'pending')`, p.Job, p.Checkpoint).Scan(&pins, &open, &reused)
	switch {
	case err != nil:
		return err
	case pins > 0:
		return conflict("savepoint %q is being read: try again later", p.Name)
	case open > 0:
		return conflict("savepoint %q has output that its job's sinks have not committed yet", p.Name)
	case reused > 0:
		return conflict("savepoint %q is what a checkpoint under way builds on: try again when that has ended", p.Name)
	}
	return nil
}
