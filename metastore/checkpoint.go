package metastore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"weir"
	"weir/checkpoint"
)

const checkpointColumns = `job, id, attempt, attempt_tag, type, status, periodic, triggered_at, completed_at,
	state_bytes, new_bytes, manifest, savepoint, commits_open, final, discarded, failure`

func scanCheckpoint(row interface{ Scan(...any) error }) (checkpoint.Record, error) {
	return scanCheckpointAnd(row)
}

func scanCheckpointAnd(row interface{ Scan(...any) error }, more ...any) (checkpoint.Record, error) {
	var r checkpoint.Record
	err := row.Scan(append([]any{
		&r.Job, &r.ID, &r.Attempt.Number, &r.Attempt.Tag, &r.Type, &r.Status, &r.Periodic,
		(*instant)(&r.TriggeredAt), (*instant)(&r.CompletedAt), &r.StateBytes, &r.NewBytes, &r.Manifest, &r.Savepoint,
		&r.CommitsOpen, &r.Final, &r.Discarded, doc(&r.Failure),
	}, more...)...)
	return r, err
}

// scanDetailed scans a row of checkpointColumns and acks.
func scanDetailed(row interface{ Scan(...any) error }) (checkpoint.Record, error) {
	var acks text
	r, err := scanCheckpointAnd(row, &acks)
	if err == nil && len(acks) > 0 {
		err = json.Unmarshal(acks, &r.Acks)
	}
	return r, err
}

// acksText is the per-subtask detail that is kept: acks without snapshots.
func acksText(acks []checkpoint.Ack) (text, error) {
	if len(acks) == 0 {
		return nil, nil
	}
	kept := make([]checkpoint.Ack, len(acks))
	for i, a := range acks {
		a.Snapshot = nil
		kept[i] = a
	}
	b, err := json.Marshal(kept)
	return text(b), err
}

// BeginCheckpoint gives out the job's next id, inserts r with it as pending and
// returns the id (I1). A savepoint's name already taken is weir.ErrConflict; the name
// of one that failed or was aborted is free.
func (s *Store) BeginCheckpoint(ctx context.Context, fence weir.Fence, r checkpoint.Record) (weir.CheckpointID, error) {
	var id weir.CheckpointID
	err := s.decide(ctx, "begin checkpoint", fence, func(ctx context.Context, tx *sql.Tx, j weir.Job) error {
		err := tx.QueryRowContext(ctx, `UPDATE jobs SET last_checkpoint = last_checkpoint + 1 WHERE id = $1 RETURNING last_checkpoint`, j.ID).Scan(&id)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, insert("checkpoints", checkpointColumns), j.ID, id, fence.Attempt.Number, fence.Attempt.Tag,
			r.Type, checkpoint.StatusPending, r.Periodic, instant(orNow(r.TriggeredAt)), nil, 0, 0, "", r.Savepoint, false, r.Final, false, nil)
		if err != nil || r.Type != checkpoint.TypeSavepoint {
			return err
		}
		return beginSavepoint(ctx, tx, j, id, r)
	})
	if err != nil {
		return 0, err
	}
	return id, nil
}

func beginSavepoint(ctx context.Context, tx *sql.Tx, j weir.Job, id weir.CheckpointID, r checkpoint.Record) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM savepoints WHERE name = $1 AND status IN ('failed', 'aborted')`, r.Savepoint); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, insert("savepoints", savepointColumns), r.Savepoint, j.ID, j.Name, id,
		checkpoint.StatusPending, "", 0, instant(orNow(r.TriggeredAt)), nil, nil)
	if isUnique(err) {
		return conflict("a savepoint named %q exists already: choose another name or delete it", r.Savepoint)
	}
	return err
}

// CompleteCheckpoint is the decision moment (I8): r.ID becomes completed with r's
// sizes, manifest, acks and CommitsOpen, and, when base is set, the job's base.
// Doing it again is no error.
func (s *Store) CompleteCheckpoint(ctx context.Context, fence weir.Fence, r checkpoint.Record, base bool) error {
	acks, err := acksText(r.Acks)
	if err != nil {
		return wrap("complete checkpoint", err)
	}
	return s.decide(ctx, "complete checkpoint", fence, func(ctx context.Context, tx *sql.Tx, j weir.Job) error {
		status, err := checkpointStatus(ctx, tx, j.ID, r.ID, fence.Attempt)
		if err != nil {
			return err
		}
		switch status {
		case checkpoint.StatusPending:
		case checkpoint.StatusCompleted:
			return nil
		default:
			return conflict("checkpoint %d is %s: it cannot be completed", r.ID, status)
		}
		if base {
			_, err := tx.ExecContext(ctx, `UPDATE jobs SET base_job = id, base_checkpoint = $1 WHERE id = $2`, r.ID, j.ID)
			if err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `UPDATE checkpoints SET status = 'completed', completed_at = COALESCE($1, `+now+`), state_bytes = $2, new_bytes = $3,
			manifest = $4, commits_open = $5, final = $6, acks = $7 WHERE job = $8 AND id = $9`,
			instant(r.CompletedAt), r.StateBytes, r.NewBytes, r.Manifest, r.CommitsOpen, r.Final, acks, j.ID, r.ID)
		if err != nil {
			return err
		}
		return endSavepoint(ctx, tx, j.ID, r.ID)
	})
}

// checkpointStatus reads where a checkpoint of attempt stands.
func checkpointStatus(ctx context.Context, tx *sql.Tx, job weir.JobID, id weir.CheckpointID, attempt weir.AttemptID) (checkpoint.Status, error) {
	var status checkpoint.Status
	var of weir.AttemptID
	err := tx.QueryRowContext(ctx, `SELECT status, attempt, attempt_tag FROM checkpoints WHERE job = $1 AND id = $2`, job, id).Scan(&status, &of.Number, &of.Tag)
	if err != nil {
		return "", orNotFound(err, "checkpoint %d of job %s", id, job)
	}
	if attempt != (weir.AttemptID{}) && of != attempt {
		return "", conflict("checkpoint %d belongs to attempt %v, not to %v", id, of, attempt)
	}
	return status, nil
}

// AbortCheckpoint ends a pending checkpoint as r.Status (failed or aborted) with
// r.Failure and r.Acks; one that is not pending any more is left alone and its
// status returned.
func (s *Store) AbortCheckpoint(ctx context.Context, fence weir.Fence, r checkpoint.Record) (checkpoint.Status, error) {
	if r.Status != checkpoint.StatusFailed && r.Status != checkpoint.StatusAborted {
		return "", fmt.Errorf("%w: abort checkpoint %d as %q", weir.ErrInvalid, r.ID, r.Status)
	}
	acks, err := acksText(r.Acks)
	if err != nil {
		return "", wrap("abort checkpoint", err)
	}
	var status checkpoint.Status
	err = s.decide(ctx, "abort checkpoint", fence, func(ctx context.Context, tx *sql.Tx, j weir.Job) (err error) {
		status, err = checkpointStatus(ctx, tx, j.ID, r.ID, weir.AttemptID{})
		if err != nil || status != checkpoint.StatusPending {
			return err
		}
		status = r.Status
		_, err = tx.ExecContext(ctx, `UPDATE checkpoints SET status = $1, completed_at = COALESCE($2, `+now+`), failure = $3, acks = $4,
			state_bytes = $5, new_bytes = $6 WHERE job = $7 AND id = $8`,
			r.Status, instant(r.CompletedAt), doc(&r.Failure), acks, r.StateBytes, r.NewBytes, j.ID, r.ID)
		if err != nil {
			return err
		}
		return endSavepoint(ctx, tx, j.ID, r.ID)
	})
	return status, err
}

// abortPending aborts all pending checkpoints of a job.
func abortPending(ctx context.Context, tx *sql.Tx, job weir.JobID, why *weir.Failure) error {
	for _, table := range []string{"checkpoints", "savepoints"} {
		_, err := tx.ExecContext(ctx, `UPDATE `+table+` SET status = 'aborted', completed_at = `+now+`, failure = $1
			WHERE job = $2 AND status = 'pending'`, doc(&why), job)
		if err != nil {
			return err
		}
	}
	return nil
}

// CloseCommits records that every sink has confirmed the checkpoint's segments.
func (s *Store) CloseCommits(ctx context.Context, fence weir.Fence, id weir.CheckpointID, _ []checkpoint.CommitTime) error {
	return s.decide(ctx, "close commits", fence, func(ctx context.Context, tx *sql.Tx, j weir.Job) error {
		_, err := checkpointStatus(ctx, tx, j.ID, id, weir.AttemptID{})
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE checkpoints SET commits_open = $1 WHERE job = $2 AND id = $3`, false, j.ID, id)
		return err
	})
}

// Checkpoint reads one row under the lock of the job's row.
func (s *Store) Checkpoint(ctx context.Context, fence weir.Fence, id weir.CheckpointID) (checkpoint.Record, error) {
	var r checkpoint.Record
	err := s.decide(ctx, "read checkpoint", fence, func(ctx context.Context, tx *sql.Tx, j weir.Job) (err error) {
		r, err = scanDetailed(tx.QueryRowContext(ctx, `SELECT `+checkpointColumns+`, acks FROM checkpoints WHERE job = $1 AND id = $2`, j.ID, id))
		return orNotFound(err, "checkpoint %d of job %s", id, j.ID)
	})
	return r, err
}

// Checkpoints lists a job's checkpoints and savepoints, newest first, with ids below
// before (0: from the newest), by status when any is given; without acks.
func (s *Store) Checkpoints(ctx context.Context, job weir.JobID, before weir.CheckpointID, status []checkpoint.Status, limit int) ([]checkpoint.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	var w where
	w.add("job = ?", job)
	if before > 0 {
		w.add("id < ?", before)
	}
	if len(status) > 0 {
		w.in("status", anys(status))
	}
	query := `SELECT ` + checkpointColumns + ` FROM checkpoints` + w.String() + ` ORDER BY id DESC` + w.limit(limit)
	return list(ctx, s.read, "list checkpoints", scanCheckpoint, query, w.args...)
}

// CheckpointByID reads one with its per-subtask detail.
func (s *Store) CheckpointByID(ctx context.Context, job weir.JobID, id weir.CheckpointID) (checkpoint.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	r, err := scanDetailed(s.read.QueryRowContext(ctx, `SELECT `+checkpointColumns+`, acks FROM checkpoints WHERE job = $1 AND id = $2`, job, id))
	return r, wrap("read checkpoint", orNotFound(err, "checkpoint %d of job %s", id, job))
}
