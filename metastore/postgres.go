package metastore

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"weir"
	"weir/migrations"
)

func openPostgres(url string, o Options) (database, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return database{}, fmt.Errorf("%w: metastore: %w", weir.ErrInvalid, oneLine(err)) // pgx hides the password
	}
	config.ConnectTimeout = o.ConnectTimeout
	config.RuntimeParams["application_name"] = "weir"
	config.RuntimeParams["timezone"] = "UTC"
	// A process that sleeps in a transaction, or whose network is gone, holds a job's row:
	// the database lets go of it before those who wait for the row give up.
	config.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt((o.Timeout / 2).Milliseconds(), 10)
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(4)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return database{
		read: db, write: db, dialect: goose.DialectPostgres, migrations: migrations.Postgres(),
		name: fmt.Sprintf("postgres://%s/%s", net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), config.Database),
	}, nil
}

// newMigrationLock makes two programs that migrate one database wait for each other.
func newMigrationLock() (lock.SessionLocker, error) { return lock.NewPostgresSessionLocker() }
