package metastore

import (
	"context"
	"database/sql"
	"time"

	"weir"
	"weir/checkpoint"
)

// retained selects a job's kept checkpoints with what holds them: another job's base
// or a pin. ($1: the job)
const retained = `SELECT c.id, c.type, c.manifest, c.commits_open,
	EXISTS (SELECT 1 FROM jobs j WHERE j.base_job = c.job AND j.base_checkpoint = c.id AND j.id <> c.job AND j.deleted_at IS NULL)
	OR EXISTS (SELECT 1 FROM pins p WHERE p.job = c.job AND p.checkpoint = c.id AND p.expires_at > ` + now + `),
	EXISTS (SELECT 1 FROM checkpoints p WHERE p.job = c.job AND p.status = 'pending' AND p.reuses > 0 AND p.reuses <= c.id)
	FROM checkpoints c WHERE c.job = $1 AND c.status = 'completed' AND NOT c.discarded ORDER BY c.id DESC`

func scanRetained(row interface{ Scan(...any) error }) (checkpoint.Retained, error) {
	var r checkpoint.Retained
	err := row.Scan(&r.ID, &r.Type, &r.Manifest, &r.CommitsOpen, &r.Pinned, &r.Reused)
	return r, err
}

// Retained lists the job's completed checkpoints that are not discarded, newest
// first, with the base and pins marked, for collection. A job that has given up its
// base (deleted; CANCELED under delete_on_cancellation or none; FAILED under none) has none.
func (s *Store) Retained(ctx context.Context, job weir.JobID) ([]checkpoint.Retained, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, wrap("list retained", err)
	}
	defer tx.Rollback()
	kept, err := keptBase(ctx, tx, job)
	if err != nil {
		return nil, wrap("list retained", orNotFound(err, "job %s", job))
	}
	out, err := retainedIn(ctx, tx, job, kept)
	return out, wrap("list retained", err)
}

func retainedIn(ctx context.Context, tx *sql.Tx, job weir.JobID, kept weir.SnapshotRef) ([]checkpoint.Retained, error) {
	rows, err := tx.QueryContext(ctx, retained, job)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []checkpoint.Retained
	for rows.Next() {
		r, err := scanRetained(rows)
		if err != nil {
			return nil, err
		}
		r.Base = kept == weir.SnapshotRef{Job: job, Checkpoint: r.ID}
		out = append(out, r)
	}
	return out, rows.Err()
}

// keptBase is the base that a job still holds.
func keptBase(ctx context.Context, tx *sql.Tx, job weir.JobID) (weir.SnapshotRef, error) {
	var base weir.SnapshotRef
	var h holding
	err := tx.QueryRowContext(ctx, `SELECT base_job, base_checkpoint, status, checkpoint, ended_at, deleted_at IS NOT NULL FROM jobs WHERE id = $1`, job).
		Scan(&base.Job, &base.Checkpoint, &h.status, &h.options, &h.ended, &h.deleted)
	if err != nil || h.givesUpBase() {
		return weir.SnapshotRef{}, err
	}
	return base, nil
}

// DiscardCheckpoints marks checkpoints given up, unless one is the base, pinned, a
// savepoint, reused by a pending one or has open commits; it returns those it marked,
// now or before. Their objects may then be deleted. A base that its job has given up
// stops being one.
func (s *Store) DiscardCheckpoints(ctx context.Context, fence weir.Fence, ids []weir.CheckpointID) ([]weir.CheckpointID, error) {
	var out []weir.CheckpointID
	err := s.decide(ctx, "discard checkpoints", fence, func(ctx context.Context, tx *sql.Tx, j weir.Job) error {
		base, err := keptBase(ctx, tx, j.ID)
		if err != nil {
			return err
		}
		kept, err := retainedIn(ctx, tx, j.ID, base)
		if err != nil {
			return err
		}
		free := make(map[weir.CheckpointID]bool, len(kept))
		for _, r := range kept {
			free[r.ID] = r.Free()
		}
		for _, id := range ids {
			if ok, present := free[id]; present && !ok {
				continue
			}
			done, err := discard(ctx, tx, j, id)
			if err != nil {
				return err
			}
			if done {
				out = append(out, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// discard marks one completed checkpoint; false: there is none of that id.
func discard(ctx context.Context, tx *sql.Tx, j weir.Job, id weir.CheckpointID) (bool, error) {
	res, err := tx.ExecContext(ctx, `UPDATE checkpoints SET discarded = $1 WHERE job = $2 AND id = $3 AND status = 'completed'`, true, j.ID, id)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 0 {
		return false, err
	}
	if j.Base == (weir.SnapshotRef{Job: j.ID, Checkpoint: id}) {
		_, err = tx.ExecContext(ctx, `UPDATE jobs SET base_job = '', base_checkpoint = 0 WHERE id = $1`, j.ID)
	}
	return true, err
}

// Pin keeps a completed checkpoint of a job from collection for ttl by the
// database's clock, in the name of holder, which may pin it again for longer. One
// that was given up is weir.ErrConflict.
func (s *Store) Pin(ctx context.Context, ref weir.SnapshotRef, holder string, ttl time.Duration) error {
	return wrap("pin", s.transact(ctx, "", "", func(ctx context.Context, tx *sql.Tx) error {
		if err := checkBase(ctx, tx, ref); err != nil {
			return err
		}
		at, err := clock(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO pins (job, checkpoint, holder, expires_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (job, checkpoint, holder) DO UPDATE SET expires_at = excluded.expires_at`,
			ref.Job, ref.Checkpoint, holder, instant(at.Add(ttl)))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM pins WHERE job = $1 AND expires_at <= `+now, ref.Job)
		return err
	}))
}

// Unpin lets go what holder pinned.
func (s *Store) Unpin(ctx context.Context, ref weir.SnapshotRef, holder string) error {
	return wrap("unpin", s.transact(ctx, "", "", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM pins WHERE job = $1 AND checkpoint = $2 AND holder = $3`, ref.Job, ref.Checkpoint, holder)
		return err
	}))
}
