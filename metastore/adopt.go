package metastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"weir"
	"weir/checkpoint"
)

// Adopt makes a snapshot that lies in storage the base of its job, after the metastore has
// gone back in time: its row is written as storage tells it, numbers go on above all that
// storage holds, the failure is cleared, and the job can be started. Savepoints that it has
// forgotten are known again. weir.ErrConflict unless the job has failed as metastore_behind,
// or has ended and the snapshot is newer than any that it knows.
func (s *Store) Adopt(ctx context.Context, job weir.JobID, a checkpoint.Adoption) (weir.Job, error) {
	var out weir.Job
	err := s.locked(ctx, "adopt checkpoint", job, "", func(ctx context.Context, tx *sql.Tx, j weir.Job) (err error) {
		behind := j.Failure != nil && j.Failure.Reason == checkpoint.ReasonMetastoreBack
		switch {
		case !j.Status.Terminal() || j.EndedAt.IsZero():
			return conflict("job %q is %s: only a job that has ended can adopt a checkpoint", j.Name, j.Status)
		case !behind && a.Record.ID <= j.LastCheckpoint:
			return conflict("job %q is %s, and knows checkpoints up to %d: there is nothing to adopt; start it from one of them", j.Name, j.Status, j.LastCheckpoint)
		}
		if err := adoptRow(ctx, tx, j, a.Record); err != nil {
			return err
		}
		lost, err := adoptSavepoints(ctx, tx, j, a)
		if err != nil {
			return err
		}
		// What an earlier one had still to commit, this one holds too, or was committed before it.
		if _, err := tx.ExecContext(ctx, `UPDATE checkpoints SET commits_open = $1 WHERE job = $2 AND id < $3 AND commits_open`, false, j.ID, a.Record.ID); err != nil {
			return err
		}
		attempt, err := adoptAttempt(ctx, tx, j, a.Attempt)
		if err != nil {
			return err
		}
		out, err = scanJob(tx.QueryRowContext(ctx, `UPDATE jobs SET base_job = id, base_checkpoint = $1, last_checkpoint = $2, attempt = $3, attempt_tag = $4,
			failure = NULL WHERE id = $5 RETURNING `+jobColumns, a.Record.ID, max(j.LastCheckpoint, a.LastCheckpoint, a.Record.ID), attempt.Number, attempt.Tag, j.ID))
		if err != nil {
			return err
		}
		note := fmt.Sprintf("%s %d of attempt %v was adopted from storage: the job starts from it; its numbers go on from checkpoint %d and attempt %d",
			a.Record.Type, a.Record.ID, a.Record.Attempt, out.LastCheckpoint+1, attempt.Number+1)
		if a.Record.CommitsOpen {
			note += "; whether its output is visible is not known: the sinks commit it again, which changes nothing where it is"
		}
		return addEvent(ctx, tx, weir.Event{Job: j.ID, Kind: "checkpoint", Attempt: j.Attempt.Number, Message: note + lost})
	})
	return out, err
}

// adoptSavepoints makes the savepoints known again that the metastore has forgotten, else
// collection would delete what its user keeps. It says which it could not: their name is
// another one's by now.
func adoptSavepoints(ctx context.Context, tx *sql.Tx, j weir.Job, a checkpoint.Adoption) (lost string, err error) {
	for _, r := range a.Savepoints {
		if r.ID <= j.LastCheckpoint || r.ID == a.Record.ID {
			continue // it was known, and is what the metastore says it is
		}
		named, err := adoptName(ctx, tx, j, r)
		if err != nil {
			return "", err
		}
		if !named {
			lost += fmt.Sprintf("; savepoint %s of checkpoint %d is not kept: another one has its name", r.Savepoint, r.ID)
			continue
		}
		if err := insertAdopted(ctx, tx, j, r); err != nil {
			return "", err
		}
	}
	return lost, nil
}

// adoptRow writes the row of an adopted snapshot, in place of what the metastore held
// under its number.
func adoptRow(ctx context.Context, tx *sql.Tx, j weir.Job, r checkpoint.Record) error {
	if r.Type == checkpoint.TypeSavepoint {
		named, err := adoptName(ctx, tx, j, r)
		if err != nil {
			return err
		}
		if !named { // another one has its name: this one is kept as a checkpoint is
			r.Type, r.Savepoint = checkpoint.TypeCheckpoint, ""
		}
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM checkpoints WHERE job = $1 AND id = $2`, j.ID, r.ID); err != nil {
		return err
	}
	return insertAdopted(ctx, tx, j, r)
}

func insertAdopted(ctx context.Context, tx *sql.Tx, j weir.Job, r checkpoint.Record) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO checkpoints (job, id, attempt, attempt_tag, type, status, periodic, triggered_at, completed_at,
		state_bytes, new_bytes, manifest, savepoint, commits_open, final, discarded)
		VALUES ($1, $2, $3, $4, $5, 'completed', $6, `+now+`, `+now+`, $7, 0, $8, $9, $10, $11, $6)`,
		j.ID, r.ID, r.Attempt.Number, r.Attempt.Tag, r.Type, false, r.StateBytes, r.Manifest, r.Savepoint, r.CommitsOpen, r.Final)
	return err
}

// adoptName gives an adopted savepoint its name back; false: it is another one's by now.
func adoptName(ctx context.Context, tx *sql.Tx, j weir.Job, r checkpoint.Record) (bool, error) {
	_, err := tx.ExecContext(ctx, `DELETE FROM savepoints WHERE name = $1 AND status IN ('failed', 'aborted') OR job = $2 AND checkpoint = $3`, r.Savepoint, j.ID, r.ID)
	if err != nil {
		return false, err
	}
	var holder string
	err = tx.QueryRowContext(ctx, `SELECT job FROM savepoints WHERE name = $1`, r.Savepoint).Scan(&holder)
	if !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO savepoints (name, job, job_name, checkpoint, status, manifest, state_bytes, triggered_at, completed_at)
		VALUES ($1, $2, $3, $4, 'completed', $5, $6, `+now+`, `+now+`)`, r.Savepoint, j.ID, j.Name, r.ID, r.Manifest, r.StateBytes)
	return err == nil, err
}

// adoptAttempt makes a job's attempts go on above those found; its history has a row that
// stands for what it has forgotten.
func adoptAttempt(ctx context.Context, tx *sql.Tx, j weir.Job, highest int64) (weir.AttemptID, error) {
	if highest < j.Attempt.Number {
		return j.Attempt, nil
	}
	next := weir.NewAttemptID(highest + 1)
	_, err := tx.ExecContext(ctx, `INSERT INTO attempts (job, number, tag, term, parallelism, restored_from_job, restored_from_checkpoint, started_at, ended_at, ended_by)
		VALUES ($1, $2, $3, $4, $5, $6, 0, `+now+`, `+now+`, 'adopted')`, j.ID, next.Number, next.Tag, j.Term, j.Parallelism, "")
	return next, err
}

// Inventory reads what the metastore knows of a job's objects, deleted or not.
func (s *Store) Inventory(ctx context.Context, job weir.JobID) (checkpoint.Inventory, error) {
	inv := checkpoint.Inventory{Names: map[weir.CheckpointID]string{}}
	var err error
	if inv.Subject, err = s.Subject(ctx, job); err != nil {
		return inv, err
	}
	// What is given up is read first: what is given up in between is among the retained.
	if inv.GivenUp, err = s.GivenUp(ctx, job, 1<<20, 0); err != nil {
		return inv, err
	}
	if inv.Retained, err = s.Retained(ctx, job); err != nil {
		return inv, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	var open int
	if err := s.read.QueryRowContext(ctx, `SELECT COUNT(*) FROM attempts WHERE job = $1 AND ended_at IS NULL`, job).Scan(&open); err != nil {
		return inv, wrap("read inventory", err)
	}
	inv.Running = open > 0
	names, err := list(ctx, s.read, "read inventory", scanSavepoint, `SELECT `+savepointColumns+` FROM savepoints WHERE job = $1`, job)
	for _, p := range names {
		inv.Names[p.Checkpoint] = p.Name
	}
	return inv, err
}

// JobIDs lists all jobs that the metastore has rows of, deleted ones too.
func (s *Store) JobIDs(ctx context.Context) ([]weir.JobID, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	return list(ctx, s.read, "list job ids", func(row interface{ Scan(...any) error }) (id weir.JobID, err error) {
		err = row.Scan(&id)
		return id, err
	}, `SELECT id FROM jobs ORDER BY id`)
}
