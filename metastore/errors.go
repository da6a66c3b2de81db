package metastore

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"weir"
)

// isUnique reports whether err is a violated unique index or primary key.
func isUnique(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "23505"
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return false
}

// isMissingTable reports whether err is a table that does not exist.
func isMissingTable(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "42P01"
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return strings.Contains(lite.Error(), "no such table")
	}
	return false
}

// orNotFound turns a missing row into weir.ErrNotFound with what was looked for.
func orNotFound(err error, format string, args ...any) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: %s", weir.ErrNotFound, fmt.Sprintf(format, args...))
	}
	return err
}

func conflict(format string, args ...any) error {
	return fmt.Errorf("%w: %s", weir.ErrConflict, fmt.Sprintf(format, args...))
}

func stale(f weir.Fence) error {
	return fmt.Errorf("%w: job %s, attempt %v, term %d", weir.ErrStale, f.Job, f.Attempt, f.Term)
}

// A flatError shows err on one line.
type flatError struct{ err error }

func oneLine(err error) error { return flatError{err} }

func (e flatError) Error() string { return strings.Join(strings.Fields(e.err.Error()), " ") }
func (e flatError) Unwrap() error { return e.err }
