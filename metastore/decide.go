package metastore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir"
)

// tokens is how many characters of tokens jobs.writes keeps: 16 of them.
const tokens = 16 * 16

// errNotCommitted: the connection was lost at COMMIT, and nothing was changed.
var errNotCommitted = errors.New("not committed")

// fence is the UPDATE that every deciding transaction begins with: it locks the
// job's row and leaves the transaction's token there, if the row is still ours.
const fence = `UPDATE jobs SET writes = substr($1 || writes, 1, 256)
	WHERE id = $2 AND attempt = $3 AND attempt_tag = $4 AND term = $5 RETURNING ` + jobColumns

// decide runs f in a transaction that begins with the fence; f gets the job as it
// stands under the lock. A newer owner makes it weir.ErrStale.
func (s *Store) decide(ctx context.Context, what string, f weir.Fence, do func(context.Context, *sql.Tx, weir.Job) error) error {
	return s.decideWith(ctx, what, f, "", do)
}

// decideWith is decide for an f that will also lock the row of another job, or of none:
// rows are locked in the order of their ids.
func (s *Store) decideWith(ctx context.Context, what string, f weir.Fence, also weir.JobID, do func(context.Context, *sql.Tx, weir.Job) error) error {
	token := newToken()
	err := s.transact(ctx, f.Job, token, func(ctx context.Context, tx *sql.Tx) error {
		if err := lockBefore(ctx, tx, also, f.Job); err != nil {
			return err
		}
		job, err := scanJob(tx.QueryRowContext(ctx, fence, token, f.Job, f.Attempt.Number, f.Attempt.Tag, f.Term))
		if errors.Is(err, sql.ErrNoRows) {
			return stale(f)
		}
		if err != nil {
			return err
		}
		return do(ctx, tx, job)
	})
	return wrap(what, err)
}

// locked runs f in a transaction that begins by locking the job's row, whoever owns
// it: for what users decide. f gets the job as it stands; a deleted one is not found.
// The row of another job that f will lock is also, or empty.
func (s *Store) locked(ctx context.Context, what string, id, also weir.JobID, do func(context.Context, *sql.Tx, weir.Job) error) error {
	token := newToken()
	err := s.transact(ctx, id, token, func(ctx context.Context, tx *sql.Tx) error {
		if err := lockBefore(ctx, tx, also, id); err != nil {
			return err
		}
		job, err := scanJob(tx.QueryRowContext(ctx, `UPDATE jobs SET writes = substr($1 || writes, 1, 256)
			WHERE id = $2 AND deleted_at IS NULL RETURNING `+jobColumns, token, id))
		if err != nil {
			return orNotFound(err, "job %s", id)
		}
		return do(ctx, tx, job)
	})
	return wrap(what, err)
}

// lockBefore takes the lock of another job's row that comes before that of id.
func lockBefore(ctx context.Context, tx *sql.Tx, also, id weir.JobID) error {
	if also == "" || also >= id {
		return nil
	}
	return lockJob(ctx, tx, also)
}

// lockJob takes the lock of a job's row, deleted or not, if there is one.
func lockJob(ctx context.Context, tx *sql.Tx, id weir.JobID) error {
	_, err := tx.ExecContext(ctx, `UPDATE jobs SET writes = writes WHERE id = $1`, id)
	return err
}

// transact runs f in one transaction. Its caller's cancellation does not cut it
// short. When the outcome of the commit is unknown and job is given, the outcome is
// read back from the job's row, in which f has left token.
func (s *Store) transact(ctx context.Context, job weir.JobID, token string, f func(context.Context, *sql.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opt.Timeout)
	defer cancel()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(ctx, tx); err != nil {
		tx.Rollback() // the first error is the one that counts
		return err
	}
	err = tx.Commit()
	if err == nil {
		return nil
	}
	if job == "" {
		return fmt.Errorf("commit, outcome unknown: %w", err)
	}
	return s.readBack(context.WithoutCancel(ctx), job, token, err)
}

// readBack finds out whether the transaction that left token in the job's row was
// committed after its commit gave lost. It asks until the database answers or
// Timeout is over.
func (s *Store) readBack(ctx context.Context, job weir.JobID, token string, lost error) error {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		var writes string
		err := s.write.QueryRowContext(ctx, `UPDATE jobs SET writes = writes WHERE id = $1 RETURNING writes`, job).Scan(&writes)
		switch {
		case err == nil && strings.Contains(writes, token):
			return nil
		case err == nil, errors.Is(err, sql.ErrNoRows):
			return fmt.Errorf("%w: %w", errNotCommitted, lost)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("commit, outcome unknown: %w", lost)
		}
	}
}

func newToken() string {
	b := make([]byte, tokens/32)
	rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}

// wrap names the operation in an error.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
