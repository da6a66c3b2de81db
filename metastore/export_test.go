package metastore

import (
	"context"
	"database/sql"

	"weir"
	"weir/checkpoint"
)

// FillHistory gives a job n rows of history, made by the database: the figures are
// scattered, each tenth row is one that failed, and they are 10 s apart.
func (s *Store) FillHistory(ctx context.Context, job weir.JobID, n int, acks string) error {
	series := `SELECT n FROM generate_series(1, $1::BIGINT) AS g (n)`
	triggered := `TIMESTAMPTZ '2026-03-01T12:00:00Z' + n * INTERVAL '10 s'`
	ended := triggered + ` + (n * 7919 % 100003) * INTERVAL '1 microsecond'`
	if s.write != s.read {
		series = `WITH RECURSIVE g (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < $1) SELECT n FROM g`
		second := `strftime('%Y-%m-%dT%H:%M:%S', 1772366400 + n * 10, 'unixepoch') || '.'`
		triggered, ended = second+` || '000000Z'`, second+` || substr('000000' || (n * 7919 % 100003), -6) || 'Z'`
	}
	_, err := s.write.ExecContext(ctx, `INSERT INTO checkpoints (`+checkpointColumns+`, took_us, reason, acks, collected)
		SELECT $2, n, 1 + n / 1000, 'aaaaaaaa', 'checkpoint', CASE WHEN n % 10 = 0 THEN 'failed' ELSE 'completed' END, TRUE, `+triggered+`, `+ended+`,
		n * 104729 % 1000003, n % 5, '', '', FALSE, FALSE, TRUE,
		CASE WHEN n % 10 = 0 THEN '{"reason":"timeout","message":"late"}' END, NULL, '', FALSE, FALSE,
		n * 7919 % 100003, CASE WHEN n % 10 = 0 THEN 'timeout' ELSE '' END, $3, TRUE FROM (`+series+`) AS g`, n, job, acks)
	if err != nil {
		return err
	}
	_, err = s.write.ExecContext(ctx, `ANALYZE checkpoints`) // as it is where a history has grown
	return err
}

// Filled is row n of FillHistory as far as a summary sees it, and how many microseconds
// it took.
func Filled(n int64) (r checkpoint.Record, took int64) {
	r = checkpoint.Record{ID: weir.CheckpointID(n), Status: checkpoint.StatusCompleted, StateBytes: n * 104729 % 1000003, NewBytes: n % 5}
	if n%10 == 0 {
		r.Status = checkpoint.StatusFailed
	}
	return r, n * 7919 % 100003
}

// MigrateTo brings an empty database to an old version of the schema, and runs
// statements on it.
func MigrateTo(ctx context.Context, url string, version int64, statements ...string) error {
	db, err := connect(ctx, url, Options{}.withDefaults())
	if err != nil {
		return err
	}
	defer db.close()
	p, err := provider(db)
	if err != nil {
		return err
	}
	if _, err = p.UpTo(ctx, version); err != nil {
		return err
	}
	return execAll(ctx, db.write, statements)
}

// MigrateDown takes the newest migrations back, down to version.
func MigrateDown(ctx context.Context, url string, version int64) error {
	db, err := connect(ctx, url, Options{}.withDefaults())
	if err != nil {
		return err
	}
	defer db.close()
	p, err := provider(db)
	if err != nil {
		return err
	}
	_, err = p.DownTo(ctx, version)
	return err
}

func execAll(ctx context.Context, db *sql.DB, statements []string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
