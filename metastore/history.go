package metastore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
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
// measures those that completed. Their figures are read and sorted here: of a million
// rows that takes a second or two and 24 MB. The databases are not faster: PostgreSQL's
// percentile_disc takes as long within a quarter, SQLite has nothing like it, and ranking
// by window functions takes 12 s and 28 s.
func (s *Store) CheckpointSummary(ctx context.Context, job weir.JobID, f checkpoint.Filter) (checkpoint.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, max(summaryWithin, s.opt.Timeout))
	defer cancel()
	w := filtered(job, f)
	var sum checkpoint.Summary
	err := s.read.QueryRowContext(ctx, `SELECT COUNT(*), COUNT(CASE status WHEN 'pending' THEN 1 END), COUNT(CASE status WHEN 'completed' THEN 1 END),
		COUNT(CASE status WHEN 'failed' THEN 1 END), COUNT(CASE status WHEN 'aborted' THEN 1 END) FROM checkpoints`+w.String(), w.args...).
		Scan(&sum.Total, &sum.Pending, &sum.Completed, &sum.Failed, &sum.Aborted)
	if err != nil || sum.Completed == 0 {
		return sum, wrap("sum checkpoints up", err)
	}
	rows, err := s.read.QueryContext(ctx, `SELECT took_us, state_bytes, new_bytes FROM checkpoints`+w.String()+` AND status = 'completed'`, w.args...)
	if err != nil {
		return sum, wrap("sum checkpoints up", err)
	}
	defer rows.Close()
	took, state, fresh := make([]int64, 0, sum.Completed), make([]int64, 0, sum.Completed), make([]int64, 0, sum.Completed)
	for rows.Next() {
		var t, s, n int64
		if err := rows.Scan(&t, &s, &n); err != nil {
			return sum, wrap("sum checkpoints up", err)
		}
		took, state, fresh = append(took, t), append(state, s), append(fresh, n)
	}
	sum.Duration, sum.StateBytes, sum.NewBytes = distribution(took, 1000), distribution(state, 1), distribution(fresh, 1)
	return sum, wrap("sum checkpoints up", rows.Err())
}

// distribution measures values, which it sorts, in units of so many.
func distribution(values []int64, unit float64) checkpoint.Distribution {
	n := len(values)
	if n == 0 {
		return checkpoint.Distribution{}
	}
	slices.Sort(values)
	total := 0.0
	for _, v := range values {
		total += float64(v)
	}
	at := func(perMille int) float64 { return float64(values[max(0, (n*perMille+999)/1000-1)]) / unit }
	return checkpoint.Distribution{
		Min: at(0), Avg: total / float64(n) / unit, Max: at(1000),
		P50: at(500), P90: at(900), P99: at(990), P999: at(999),
	}
}

// thinBatch is how many rows one transaction of thinning changes.
const thinBatch = 500

// over is what retention may forget of: it ended, cannot be restored (any more) and has
// nothing left to commit.
const over = `completed_at IS NOT NULL AND (status <> 'completed' OR discarded) AND NOT commits_open`

// ThinHistory takes the detail from checkpoints that ended long ago, and forgets those
// that ended longer ago and whose objects are gone, by the database's clock, one batch of
// each. What can still be restored, and what sinks have still to commit, stays as it is;
// the newest rows of a job, as many as it retains checkpoints, lose no more than detail.
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
		refs, err := list(ctx, tx, "list detail", scanRef, `SELECT job, id FROM checkpoints WHERE acks IS NOT NULL AND completed_at < $1 AND `+over+`
			ORDER BY completed_at LIMIT $2`, instant(at.Add(-age)), batch)
		if err != nil {
			return err
		}
		ids := map[weir.JobID][]any{}
		for _, ref := range refs {
			ids[ref.Job] = append(ids[ref.Job], ref.Checkpoint)
		}
		for _, job := range slices.Sorted(maps.Keys(ids)) {
			w := &where{}
			w.add("job = ?", job)
			w.in("id", ids[job])
			done, err := changed(tx.ExecContext(ctx, `UPDATE checkpoints SET acks = NULL, thinned = TRUE`+w.String()+` AND `+over, w.args...))
			if err != nil {
				return err
			}
			n += done
		}
		return nil
	})
	return n, err
}

func scanRef(row interface{ Scan(...any) error }) (weir.SnapshotRef, error) {
	var r weir.SnapshotRef
	err := row.Scan(&r.Job, &r.Checkpoint)
	return r, err
}

// forgetRows deletes up to batch rows, job by job.
func (s *Store) forgetRows(ctx context.Context, age time.Duration, batch int) (int, error) {
	lctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	jobs, err := list(lctx, s.read, "list jobs", scanHistory, `SELECT id, checkpoint, purged_at IS NOT NULL FROM jobs ORDER BY id`)
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
	job    weir.JobID
	keep   int  // how many rows stay in any case
	purged bool // its objects are gone, whatever its rows say
}

func scanHistory(row interface{ Scan(...any) error }) (history, error) {
	var h history
	var options text
	if err := row.Scan(&h.job, &options, &h.purged); err != nil {
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
// newest, their objects gone ($5: all of the job's are), at most $4. A savepoint that
// exists is not among them, whatever its row says, nor one whose output was given up: other
// snapshots may hold the same segments.
// What ended before a time was triggered before it: for the index.
const forgotten = `SELECT id FROM checkpoints c WHERE job = $1 AND triggered_at < $2 AND completed_at < $2 AND ` + over + ` AND (collected OR $5)
	AND NOT output_given_up AND id < (SELECT COALESCE(MIN(id), 0) FROM (SELECT id FROM checkpoints WHERE job = $1 ORDER BY id DESC LIMIT $3) AS newest)
	AND NOT EXISTS (SELECT 1 FROM savepoints p WHERE p.job = c.job AND p.checkpoint = c.id AND p.status IN ('pending', 'completed'))
	ORDER BY triggered_at LIMIT $4`

func (s *Store) forgetRowsOf(ctx context.Context, h history, age time.Duration, batch int) (n int, err error) {
	err = s.transact(ctx, "", "", func(ctx context.Context, tx *sql.Tx) error {
		at, err := clock(ctx, tx)
		if err != nil {
			return err
		}
		ids, err := list(ctx, tx, "list forgotten", scanID, forgotten, h.job, instant(at.Add(-age)), h.keep, batch, h.purged)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := lockJob(ctx, tx, h.job); err != nil {
			return err
		}
		w := &where{}
		w.add("job = ?", h.job)
		w.in("id", ids)
		if n, err = changed(tx.ExecContext(ctx, `DELETE FROM checkpoints`+w.String()+` AND `+over, w.args...)); err != nil {
			return err
		}
		w = &where{}
		w.add("job = ?", h.job)
		w.in("checkpoint", ids)
		_, err = tx.ExecContext(ctx, `DELETE FROM savepoints`+w.String()+` AND status IN ('failed', 'aborted')`, w.args...)
		return err
	})
	return n, err
}

func scanID(row interface{ Scan(...any) error }) (any, error) {
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
