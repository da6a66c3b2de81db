package metastore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"weir"
	"weir/checkpoint"
)

// Checkpoints lists a job's checkpoints and savepoints, newest first, those that f
// lets through; without acks.
func (s *Store) Checkpoints(ctx context.Context, job weir.JobID, f checkpoint.Filter) ([]checkpoint.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	w := filtered(job, f)
	if f.Before > 0 {
		w.add("id < ?", f.Before)
	}
	query := `SELECT ` + checkpointColumns + ` FROM checkpoints` + w.String() + ` ORDER BY id DESC` + w.limit(f.Limit)
	return list(ctx, s.read, "list checkpoints", scanCheckpoint, query, w.args...)
}

// filtered is what f lets through, its page aside.
func filtered(job weir.JobID, f checkpoint.Filter) *where {
	w := &where{}
	w.add("job = ?", job)
	if len(f.Status) > 0 {
		w.in("status", anys(f.Status))
	}
	if f.Type != "" {
		w.add("type = ?", f.Type)
	}
	if f.Attempt > 0 {
		w.add("attempt = ?", f.Attempt)
	}
	if len(f.Reason) > 0 {
		w.add("reason <> ''") // for the index, which leaves those out
		w.in("reason", anys(f.Reason))
	}
	if !f.Since.IsZero() {
		w.add("triggered_at >= ?", instant(f.Since))
	}
	if !f.Until.IsZero() {
		w.add("triggered_at < ?", instant(f.Until))
	}
	if f.MinDuration > 0 {
		w.add("completed_at IS NOT NULL")
		w.add("took_us >= ?", f.MinDuration.Microseconds())
	}
	return w
}

// CheckpointByID reads one with its per-subtask detail.
func (s *Store) CheckpointByID(ctx context.Context, job weir.JobID, id weir.CheckpointID) (checkpoint.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	r, err := scanDetailed(s.read.QueryRowContext(ctx, `SELECT `+checkpointColumns+`, acks FROM checkpoints WHERE job = $1 AND id = $2`, job, id))
	return r, wrap("read checkpoint", orNotFound(err, "checkpoint %d of job %s", id, job))
}

// summaryWithin bounds a summary, which looks at every row of a history.
const summaryWithin = time.Minute

// CheckpointSummary counts what f lets through of a job's history, its page aside, and
// measures those that completed.
func (s *Store) CheckpointSummary(ctx context.Context, job weir.JobID, f checkpoint.Filter) (checkpoint.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, max(summaryWithin, s.opt.Timeout))
	defer cancel()
	w := filtered(job, f)
	var sum checkpoint.Summary
	err := s.read.QueryRowContext(ctx, `SELECT COUNT(*), COUNT(CASE status WHEN 'pending' THEN 1 END), COUNT(CASE status WHEN 'completed' THEN 1 END),
		COUNT(CASE status WHEN 'failed' THEN 1 END), COUNT(CASE status WHEN 'aborted' THEN 1 END) FROM checkpoints`+w.String(), w.args...).
		Scan(&sum.Total, &sum.Pending, &sum.Completed, &sum.Failed, &sum.Aborted)
	for _, figure := range []struct {
		column string
		to     *checkpoint.Distribution
	}{{"took_us / 1000.0", &sum.Duration}, {"state_bytes", &sum.StateBytes}, {"new_bytes", &sum.NewBytes}} {
		if err == nil && sum.Completed > 0 {
			*figure.to, err = s.distribution(ctx, figure.column, w)
		}
	}
	return sum, wrap("sum checkpoints up", err)
}

// distribution ranks a figure of the completed checkpoints of w: a quantile is the
// first value whose rank is at least that share of their number.
func (s *Store) distribution(ctx context.Context, column string, w *where) (checkpoint.Distribution, error) {
	var d checkpoint.Distribution
	err := s.read.QueryRowContext(ctx, `WITH v AS (SELECT CAST(`+column+` AS DOUBLE PRECISION) AS value FROM checkpoints`+w.String()+` AND status = 'completed'),
		r AS (SELECT value, ROW_NUMBER() OVER (ORDER BY value) AS n FROM v),
		c AS (SELECT COUNT(*) AS total FROM v)
		SELECT COALESCE(MIN(value), 0), COALESCE(AVG(value), 0), COALESCE(MAX(value), 0),
			COALESCE(MIN(CASE WHEN n * 1000 >= total * 500 THEN value END), 0), COALESCE(MIN(CASE WHEN n * 1000 >= total * 900 THEN value END), 0),
			COALESCE(MIN(CASE WHEN n * 1000 >= total * 990 THEN value END), 0), COALESCE(MIN(CASE WHEN n * 1000 >= total * 999 THEN value END), 0)
		FROM r CROSS JOIN c`, w.args...).Scan(&d.Min, &d.Avg, &d.Max, &d.P50, &d.P90, &d.P99, &d.P999)
	return d, err
}

// thinBatch is how many rows one transaction of thinning changes.
const thinBatch = 500

// over is what retention may forget of: it ended, cannot be restored (any more) and has
// nothing left to commit.
const over = `completed_at IS NOT NULL AND (status <> 'completed' OR discarded) AND NOT commits_open`

// ThinHistory takes the detail from checkpoints that ended long ago, and forgets those
// that ended longer ago, by the database's clock, one batch of each. What can still be
// restored, what sinks have still to commit, and the newest rows of a job, as many as it
// retains checkpoints, stay as they are.
func (s *Store) ThinHistory(ctx context.Context, keep checkpoint.Thinning) (checkpoint.Thinned, error) {
	var done checkpoint.Thinned
	keep.Batch = cmp.Or(keep.Batch, thinBatch)
	if keep.Detail > 0 {
		n, err := s.thinDetail(ctx, keep.Detail, keep.Batch)
		if err != nil {
			return done, wrap("thin history", err)
		}
		done.Details, done.More = n, n == keep.Batch
	}
	if keep.Rows > 0 {
		n, err := s.forgetRows(ctx, keep.Rows, keep.Batch)
		if err != nil {
			return done, wrap("thin history", err)
		}
		done.Rows, done.More = n, done.More || n == keep.Batch
	}
	return done, nil
}

func (s *Store) thinDetail(ctx context.Context, age time.Duration, batch int) (n int, err error) {
	err = s.transact(ctx, "", "", func(ctx context.Context, tx *sql.Tx) error {
		at, err := clock(ctx, tx)
		if err != nil {
			return err
		}
		n, err = changed(tx.ExecContext(ctx, `UPDATE checkpoints SET acks = NULL, thinned = $1 WHERE (job, id) IN
			(SELECT job, id FROM checkpoints WHERE acks IS NOT NULL AND completed_at < $2 AND `+over+` ORDER BY completed_at LIMIT $3)`,
			true, instant(at.Add(-age)), batch))
		return err
	})
	return n, err
}

// forgetRows deletes up to batch rows, job by job.
func (s *Store) forgetRows(ctx context.Context, age time.Duration, batch int) (int, error) {
	lctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	jobs, err := list(lctx, s.read, "list jobs", scanHistory, `SELECT id, checkpoint FROM jobs ORDER BY id`)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, j := range jobs {
		if total == batch {
			break
		}
		n, err := s.forgetRowsOf(ctx, j, age, batch-total)
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// A history is a job as thinning sees it.
type history struct {
	job  weir.JobID
	keep int // how many rows stay in any case
}

func scanHistory(row interface{ Scan(...any) error }) (history, error) {
	var h history
	var options text
	if err := row.Scan(&h.job, &options); err != nil {
		return h, err
	}
	o, err := checkpoint.ParseOptions(json.RawMessage(options))
	if err != nil { // those of a later version: nothing of it is forgotten that a large number may mean
		o.NumRetained = 1000
	}
	h.keep = o.NumRetained
	return h, nil
}

// forgotten selects the rows of a job ($1) to forget: ended before $2, below the $3
// newest, at most $4. A savepoint that exists is not among them, whatever its row says.
const forgotten = `SELECT id FROM checkpoints c WHERE job = $1 AND completed_at < $2 AND ` + over + `
	AND id < (SELECT COALESCE(MIN(id), 0) FROM (SELECT id FROM checkpoints WHERE job = $1 ORDER BY id DESC LIMIT $3) AS newest)
	AND NOT EXISTS (SELECT 1 FROM savepoints p WHERE p.job = c.job AND p.checkpoint = c.id AND p.status IN ('pending', 'completed'))
	ORDER BY id LIMIT $4`

func (s *Store) forgetRowsOf(ctx context.Context, h history, age time.Duration, batch int) (n int, err error) {
	err = s.transact(ctx, "", "", func(ctx context.Context, tx *sql.Tx) error {
		at, err := clock(ctx, tx)
		if err != nil {
			return err
		}
		ids, err := list(ctx, tx, "list forgotten", scanID, forgotten, h.job, instant(at.Add(-age)), h.keep, batch)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := lockJob(ctx, tx, h.job); err != nil {
			return err
		}
		first, last := ids[0], ids[len(ids)-1]
		n, err = changed(tx.ExecContext(ctx, `DELETE FROM checkpoints WHERE job = $1 AND id >= $5 AND id <= $6 AND id IN (`+forgotten+`)`,
			h.job, instant(at.Add(-age)), h.keep, batch, first, last))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM savepoints WHERE job = $1 AND checkpoint >= $2 AND checkpoint <= $3 AND status IN ('failed', 'aborted')
			AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.job = savepoints.job AND c.id = savepoints.checkpoint)`, h.job, first, last)
		return err
	})
	return n, err
}

func scanID(row interface{ Scan(...any) error }) (weir.CheckpointID, error) {
	var id weir.CheckpointID
	err := row.Scan(&id)
	return id, err
}

// changed is how many rows a statement changed.
func changed(res sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}
