package metastore

import (
	"context"
	"database/sql"
	"time"

	"weir"
	"weir/checkpoint"
)

// givenUp is the condition of checkpoints whose objects are nobody's and may still be there.
const givenUp = `NOT c.collected AND (c.discarded OR c.status = 'failed' OR c.status = 'aborted')`

// A holding is what decides how many checkpoints a job keeps.
type holding struct {
	status  weir.Status
	options text
	ended   instant
	deleted bool
}

// keep is how many of its newest checkpoints the job keeps. Options that cannot be read
// keep the default: they were valid when the job was submitted.
func (h holding) keep() int {
	o, _ := checkpoint.ParseOptions([]byte(h.options))
	switch {
	case h.deleted:
		return 0
	case h.settled():
		return o.KeepAtEnd(h.status)
	}
	return max(1, o.NumRetained)
}

func (h holding) settled() bool { return h.status.Terminal() && !time.Time(h.ended).IsZero() }

// givesUpBase reports whether not even the base is kept.
func (h holding) givesUpBase() bool { return h.deleted || h.settled() && h.keep() == 0 }

// Subject reads a job, deleted or not, as its collection sees it.
func (s *Store) Subject(ctx context.Context, job weir.JobID) (checkpoint.Subject, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	out := checkpoint.Subject{Fence: weir.Fence{Job: job}}
	var h holding
	var failure *weir.Failure
	err := s.read.QueryRowContext(ctx, `SELECT attempt, attempt_tag, term, last_checkpoint, status, checkpoint, ended_at, deleted_at IS NOT NULL, failure
		FROM jobs WHERE id = $1`, job).
		Scan(&out.Fence.Attempt.Number, &out.Fence.Attempt.Tag, &out.Fence.Term, &out.LastCheckpoint, &h.status, &h.options, &h.ended, &h.deleted, doc(&failure))
	if err != nil {
		return out, wrap("read job", orNotFound(err, "job %s", job))
	}
	out.Keep, out.Deleted = h.keep(), h.deleted
	// One that was deleted will adopt nothing: what storage holds beyond its row holds it up.
	out.Behind = failure != nil && failure.Reason == checkpoint.ReasonMetastoreBack && !h.deleted
	return out, nil
}

// collectable selects what tells whether something of a job may have to be collected.
// ($1: attempts that ended until then, $2: jobs after it, $3: so many of them)
const collectable = `SELECT j.id, j.status, j.checkpoint, j.ended_at, j.deleted_at IS NOT NULL,
	j.deleted_at IS NOT NULL AND j.purged_at IS NULL
	OR EXISTS (SELECT 1 FROM checkpoints c WHERE c.job = j.id AND ` + givenUp + `)
	OR EXISTS (SELECT 1 FROM attempts a WHERE a.job = j.id AND NOT a.swept AND a.ended_at <= $1),
	(SELECT COUNT(*) FROM checkpoints c WHERE c.job = j.id AND c.status = 'completed' AND NOT c.discarded AND c.type = 'checkpoint')
	FROM jobs j WHERE j.id > $2 ORDER BY j.id LIMIT $3`

// Collectable lists jobs, by id after one, of which something may have to be collected:
// limit of them are looked at, next is the last of these, empty at the end. The folders
// of attempts are looked through linger after their end.
func (s *Store) Collectable(ctx context.Context, after weir.JobID, limit int, linger time.Duration) (ids []weir.JobID, next weir.JobID, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	over, err := s.before(ctx, linger)
	if err != nil {
		return nil, "", wrap("list jobs to collect", err)
	}
	rows, err := s.read.QueryContext(ctx, collectable, over, after, limit)
	if err != nil {
		return nil, "", wrap("list jobs to collect", err)
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		var h holding
		var marked bool
		var kept int
		if err := rows.Scan(&next, &h.status, &h.options, &h.ended, &h.deleted, &marked, &kept); err != nil {
			return nil, "", wrap("list jobs to collect", err)
		}
		if seen++; marked || kept > h.keep() && !(h.deleted && kept == 0) {
			ids = append(ids, next)
		}
	}
	if seen < limit {
		next = ""
	}
	return ids, next, wrap("list jobs to collect", rows.Err())
}

// before is the database's time, less a while.
func (s *Store) before(ctx context.Context, while time.Duration) (instant, error) {
	var at instant
	err := s.read.QueryRowContext(ctx, `SELECT now FROM weir_clock`).Scan(&at)
	return instant(time.Time(at).Add(-while)), err
}

// GivenUp lists what a job has given up and whose objects may still be there: limit
// checkpoints at most, oldest first, and attempts that ended linger ago.
func (s *Store) GivenUp(ctx context.Context, job weir.JobID, limit int, linger time.Duration) (checkpoint.GivenUp, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	var out checkpoint.GivenUp
	err := s.read.QueryRowContext(ctx, `SELECT deleted_at IS NOT NULL AND purged_at IS NULL FROM jobs WHERE id = $1`, job).Scan(&out.Job)
	if err != nil {
		return out, wrap("list given up", orNotFound(err, "job %s", job))
	}
	over, err := s.before(ctx, linger)
	if err != nil {
		return out, wrap("list given up", err)
	}
	out.Checkpoints, err = list(ctx, s.read, "list given up", scanCheckpoint,
		`SELECT `+checkpointColumns+` FROM checkpoints c WHERE c.job = $1 AND `+givenUp+` ORDER BY c.id LIMIT $2`, job, limit)
	if err != nil {
		return out, err
	}
	out.Attempts, err = list(ctx, s.read, "list given up", func(row interface{ Scan(...any) error }) (a weir.AttemptID, err error) {
		err = row.Scan(&a.Number, &a.Tag)
		return a, err
	}, `SELECT number, tag FROM attempts WHERE job = $1 AND NOT swept AND ended_at <= $2 ORDER BY number LIMIT $3`, job, over, limit)
	return out, err
}

// Collected records that the objects of what GivenUp listed are gone. With done.Job
// nothing of the job is left but its savepoints.
func (s *Store) Collected(ctx context.Context, job weir.JobID, done checkpoint.GivenUp) error {
	return wrap("record collection", s.transact(ctx, "", "", func(ctx context.Context, tx *sql.Tx) error {
		for _, r := range done.Checkpoints {
			if _, err := tx.ExecContext(ctx, `UPDATE checkpoints SET collected = $1 WHERE job = $2 AND id = $3 AND attempt_tag = $4`, true, job, r.ID, r.Attempt.Tag); err != nil {
				return err
			}
		}
		for _, a := range done.Attempts {
			if _, err := tx.ExecContext(ctx, `UPDATE attempts SET swept = $1 WHERE job = $2 AND number = $3 AND tag = $4`, true, job, a.Number, a.Tag); err != nil {
				return err
			}
		}
		if !done.Job {
			return nil
		}
		if _, err := tx.ExecContext(ctx, `UPDATE attempts SET swept = $1 WHERE job = $2`, true, job); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE jobs SET purged_at = `+now+` WHERE id = $1 AND deleted_at IS NOT NULL`, job)
		return err
	}))
}

// Unswept records that a task of an attempt that is over has stored something since: its
// folder is looked through again.
func (s *Store) Unswept(ctx context.Context, job weir.JobID, attempt weir.AttemptID) error {
	return wrap("record objects of an attempt that is over", s.transact(ctx, "", "", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE attempts SET swept = $1 WHERE job = $2 AND number = $3 AND tag = $4`, false, job, attempt.Number, attempt.Tag)
		return err
	}))
}
