package metastore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"weir"
	"weir/checkpoint"
)

const checkpointColumns = `job, id, attempt, attempt_tag, type, status, periodic, triggered_at, completed_at,
	state_bytes, new_bytes, manifest, savepoint, commits_open, final, discarded, failure, committed_at, path, thinned, output_given_up`

func scanCheckpoint(row interface{ Scan(...any) error }) (checkpoint.Record, error) {
	return scanCheckpointAnd(row)
}

func scanCheckpointAnd(row interface{ Scan(...any) error }, more ...any) (checkpoint.Record, error) {
	var r checkpoint.Record
	err := row.Scan(append([]any{
		&r.Job, &r.ID, &r.Attempt.Number, &r.Attempt.Tag, &r.Type, &r.Status, &r.Periodic,
		(*instant)(&r.TriggeredAt), (*instant)(&r.CompletedAt), &r.StateBytes, &r.NewBytes, &r.Manifest, &r.Savepoint,
		&r.CommitsOpen, &r.Final, &r.Discarded, doc(&r.Failure),
		(*instant)(&r.CommittedAt), &r.Path, &r.Thinned, &r.OutputGivenUp,
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
// of one that failed or was aborted is free. A job whose row does not know id r.ID yet
// has gone back in time: nothing is inserted, and the error is weir.ErrNotFound.
func (s *Store) BeginCheckpoint(ctx context.Context, fence weir.Fence, r checkpoint.Record) (weir.CheckpointID, error) {
	var id weir.CheckpointID
	err := s.decide(ctx, "begin checkpoint", fence, func(ctx context.Context, tx *sql.Tx, j weir.Job) error {
		if j.LastCheckpoint < r.ID {
			return fmt.Errorf("%w: checkpoint %d of job %s, whose last id is %d", weir.ErrNotFound, r.ID, j.ID, j.LastCheckpoint)
		}
		err := tx.QueryRowContext(ctx, `UPDATE jobs SET last_checkpoint = last_checkpoint + 1 WHERE id = $1 RETURNING last_checkpoint`, j.ID).Scan(&id)
		if err != nil {
			return err
		}
		reuses := weir.CheckpointID(0)
		if j.Base.Job == j.ID {
			reuses = j.Base.Checkpoint
		}
		_, err = tx.ExecContext(ctx, insert("checkpoints", checkpointColumns+", reuses"), j.ID, id, fence.Attempt.Number, fence.Attempt.Tag,
			r.Type, checkpoint.StatusPending, r.Periodic, instant(orNow(r.TriggeredAt)), nil, 0, 0, "", r.Savepoint, false, r.Final, false, nil, nil, "", false, false, reuses)
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
// sizes, manifest, acks and CommitsOpen, and, when base is set, the job's base. Doing it
// again is no error; a base that is not newer than the job's own is weir.ErrConflict.
func (s *Store) CompleteCheckpoint(ctx context.Context, fence weir.Fence, r checkpoint.Record, base bool) error {
	acks, err := acksText(r.Acks)
	if err != nil {
		return wrap("complete checkpoint", err)
	}
	return s.decide(ctx, "complete checkpoint", fence, func(ctx context.Context, tx *sql.Tx, j weir.Job) error {
		status, triggered, err := checkpointStatus(ctx, tx, j.ID, r.ID, fence.Attempt)
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
			if j.Base.Job == j.ID && r.ID <= j.Base.Checkpoint {
				return conflict("checkpoint %d is older than what the job would start from, %d: a base never moves back", r.ID, j.Base.Checkpoint)
			}
			_, err := tx.ExecContext(ctx, `UPDATE jobs SET base_job = id, base_checkpoint = $1 WHERE id = $2`, r.ID, j.ID)
			if err != nil {
				return err
			}
		}
		end, err := endOf(ctx, tx, r.CompletedAt, triggered)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE checkpoints SET status = 'completed', completed_at = $1, took_us = $2, state_bytes = $3, new_bytes = $4,
			manifest = $5, commits_open = $6, final = $7, acks = $8, path = $9 WHERE job = $10 AND id = $11`,
			instant(end.at), end.took, r.StateBytes, r.NewBytes, r.Manifest, r.CommitsOpen, r.Final, acks, r.Path, j.ID, r.ID)
		if err != nil {
			return err
		}
		return endSavepoint(ctx, tx, j.ID, r.ID)
	})
}

// checkpointStatus reads where a checkpoint of attempt stands, and when it was triggered.
func checkpointStatus(ctx context.Context, tx *sql.Tx, job weir.JobID, id weir.CheckpointID, attempt weir.AttemptID) (checkpoint.Status, time.Time, error) {
	var status checkpoint.Status
	var of weir.AttemptID
	var triggered time.Time
	err := tx.QueryRowContext(ctx, `SELECT status, attempt, attempt_tag, triggered_at FROM checkpoints WHERE job = $1 AND id = $2`, job, id).
		Scan(&status, &of.Number, &of.Tag, (*instant)(&triggered))
	if err != nil {
		return "", triggered, orNotFound(err, "checkpoint %d of job %s", id, job)
	}
	if attempt != (weir.AttemptID{}) && of != attempt {
		return "", triggered, conflict("checkpoint %d belongs to attempt %v, not to %v", id, of, attempt)
	}
	return status, triggered, nil
}

// An ending is when a checkpoint ended and how many microseconds it took.
type ending struct {
	at   time.Time
	took int64
}

// endOf is the ending of a checkpoint at a time, by the database's clock where at is zero.
func endOf(ctx context.Context, tx *sql.Tx, at, triggered time.Time) (ending, error) {
	if at.IsZero() {
		var err error
		if at, err = clock(ctx, tx); err != nil {
			return ending{}, err
		}
	}
	if at = at.Truncate(time.Microsecond); at.Before(triggered) { // another clock's, or it was set back
		at = triggered
	}
	return ending{at, at.Sub(triggered).Microseconds()}, nil
}

// reason is that of a failure, if there is one.
func reason(f *weir.Failure) string {
	if f == nil {
		return ""
	}
	return f.Reason
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
		var triggered time.Time
		status, triggered, err = checkpointStatus(ctx, tx, j.ID, r.ID, weir.AttemptID{})
		if err != nil || status != checkpoint.StatusPending {
			return err
		}
		status = r.Status
		end, err := endOf(ctx, tx, r.CompletedAt, triggered)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE checkpoints SET status = $1, completed_at = $2, took_us = $3, failure = $4, reason = $5, acks = $6,
			state_bytes = $7, new_bytes = $8, path = $9 WHERE job = $10 AND id = $11`,
			r.Status, instant(end.at), end.took, doc(&r.Failure), reason(r.Failure), acks, r.StateBytes, r.NewBytes, r.Path, j.ID, r.ID)
		if err != nil {
			return err
		}
		return endSavepoint(ctx, tx, j.ID, r.ID)
	})
	return status, err
}

// abortPending aborts all pending checkpoints of a job. Their server's clock may be another
// than the database's: none took longer than its attempt has lasted by the latter.
func abortPending(ctx context.Context, tx *sql.Tx, job weir.JobID, why *weir.Failure) error {
	pending, err := list(ctx, tx, "list pending", scanPending, `SELECT id, triggered_at,
		(SELECT started_at FROM attempts a WHERE a.job = c.job AND a.number = c.attempt) FROM checkpoints c WHERE job = $1 AND status = 'pending'`, job)
	if err != nil {
		return err
	}
	at, err := clock(ctx, tx)
	if err != nil {
		return err
	}
	for _, p := range pending {
		last := at
		if lasted := at.Sub(p.began); !p.began.IsZero() && at.Sub(p.TriggeredAt) > lasted {
			last = p.TriggeredAt.Add(lasted)
		}
		end, err := endOf(ctx, tx, last, p.TriggeredAt)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE checkpoints SET status = 'aborted', completed_at = $1, took_us = $2, failure = $3, reason = $4 WHERE job = $5 AND id = $6`,
			instant(end.at), end.took, doc(&why), reason(why), job, p.ID)
		if err == nil {
			err = endSavepoint(ctx, tx, job, p.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A pendingRow is a pending checkpoint and when its attempt began, by the database's clock.
type pendingRow struct {
	checkpoint.Record
	began time.Time
}

func scanPending(row interface{ Scan(...any) error }) (pendingRow, error) {
	var r pendingRow
	err := row.Scan(&r.ID, (*instant)(&r.TriggeredAt), (*instant)(&r.began))
	return r, err
}

// CloseCommits records that every sink has confirmed the checkpoint's segments, and
// how long each took; took may be nil. Doing it again is no error.
func (s *Store) CloseCommits(ctx context.Context, fence weir.Fence, id weir.CheckpointID, took []checkpoint.CommitTime) error {
	return s.decide(ctx, "close commits", fence, func(ctx context.Context, tx *sql.Tx, j weir.Job) error {
		r, err := scanDetailed(tx.QueryRowContext(ctx, `SELECT `+checkpointColumns+`, acks FROM checkpoints WHERE job = $1 AND id = $2`, j.ID, id))
		if err != nil {
			return orNotFound(err, "checkpoint %d of job %s", id, j.ID)
		}
		if !r.CommitsOpen {
			return nil
		}
		for _, t := range took {
			for i := range r.Acks {
				if r.Acks[i].Task == t.Task {
					r.Acks[i].Timing.CommitMS = t.MS
				}
			}
		}
		acks, err := acksText(r.Acks)
		if err != nil {
			return err
		}
		at, err := clock(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE checkpoints SET commits_open = $1, committed_at = $2, acks = $3 WHERE job = $4 AND id = $5`,
			false, instant(committedAt(r, fence.Attempt, took, at)), acks, j.ID, id)
		return err
	})
}

// committedAt is when the last sink had confirmed a checkpoint: counted from its end where
// the attempt that took it measured that, else by the database's clock, which may have been
// set since.
func committedAt(r checkpoint.Record, attempt weir.AttemptID, took []checkpoint.CommitTime, now time.Time) time.Time {
	if r.Attempt == attempt && len(took) > 0 {
		last := slices.MaxFunc(took, func(a, b checkpoint.CommitTime) int { return cmp.Compare(a.MS, b.MS) })
		return r.CompletedAt.Add(time.Duration(last.MS * float64(time.Millisecond))).Truncate(time.Microsecond)
	}
	if now.Before(r.CompletedAt) {
		return r.CompletedAt
	}
	return now
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
