package metastore

import (
	"context"
	"database/sql"
	"time"

	"weir"
)

// clock reads the database's clock.
func clock(ctx context.Context, tx *sql.Tx) (time.Time, error) {
	var at instant
	err := tx.QueryRowContext(ctx, `SELECT now FROM weir_clock`).Scan(&at)
	return time.Time(at), err
}

// AcquireLease takes or renews the shard's lease for ttl by the database's clock:
// the holder renews its term, another takes over after expiry with term+1, at the latest
// when ttl has passed, though the clock was set back; all servers use the same ttl. It
// returns the lease as it stands, whoever holds it. An outcome that is unknown is
// resolved by asking again.
func (s *Store) AcquireLease(ctx context.Context, shard int, holder string, ttl time.Duration) (weir.Lease, error) {
	l := weir.Lease{Shard: shard}
	err := s.transact(ctx, "", "", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO leases (shard, holder, term, expires_at) VALUES ($1, '', 0, `+now+`) ON CONFLICT (shard) DO NOTHING`, shard)
		if err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, `UPDATE leases SET shard = shard WHERE shard = $1 RETURNING holder, term, expires_at`, shard).
			Scan(&l.Holder, &l.Term, (*instant)(&l.Expires))
		if err != nil {
			return err
		}
		at, err := clock(ctx, tx) // after the lock: waiting for it counts
		if err != nil {
			return err
		}
		switch {
		case l.Holder == holder:
		case l.Expires.After(at.Add(max(ttl, 0))):
			// No holder has it for longer: the clock was set back. It is counted anew, or it
			// would outlive a dead holder by as much.
			l.Expires = at.Add(ttl).Truncate(time.Microsecond)
			_, err = tx.ExecContext(ctx, `UPDATE leases SET expires_at = $1 WHERE shard = $2`, instant(l.Expires), shard)
			return err
		case l.Expires.After(at):
			return nil
		default:
			l.Holder, l.Term = holder, l.Term+1
		}
		l.Expires = at.Add(ttl).Truncate(time.Microsecond)
		_, err = tx.ExecContext(ctx, `UPDATE leases SET holder = $1, term = $2, expires_at = $3 WHERE shard = $4`, l.Holder, l.Term, instant(l.Expires), shard)
		return err
	})
	return l, wrap("acquire lease", err)
}

// ReleaseLease lets the lease expire now if holder still has it.
func (s *Store) ReleaseLease(ctx context.Context, shard int, holder string) error {
	return wrap("release lease", s.transact(ctx, "", "", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE leases SET expires_at = `+now+` WHERE shard = $1 AND holder = $2`, shard, holder)
		return err
	}))
}
