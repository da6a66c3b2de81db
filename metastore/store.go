package metastore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pressly/goose/v3"

	"weir"
)

// Options bound how long the metastore waits; the zero value works.
type Options struct {
	// ConnectTimeout bounds Open and each new connection; 0: 5 s.
	ConnectTimeout time.Duration
	// Timeout bounds one operation; 0: 10 s.
	Timeout time.Duration
}

func (o Options) withDefaults() Options {
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 5*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return o
}

// A Store is the metastore on one database. It is safe for concurrent use.
type Store struct {
	read  *sql.DB
	write *sql.DB // the same as read on PostgreSQL; one connection on SQLite
	opt   Options
}

// A database is where a metastore lives, before its schema is looked at.
type database struct {
	read, write *sql.DB
	dialect     goose.Dialect
	migrations  fs.FS
	name        string // for messages: no password
}

func (d database) close() {
	d.read.Close()
	if d.write != d.read {
		d.write.Close()
	}
}

// Open connects to the metastore at url, postgres://… or sqlite:PATH, and checks
// that its schema is the one this program knows.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	o = o.withDefaults()
	db, err := connect(ctx, url, o)
	if err != nil {
		return nil, err
	}
	if err := checkSchema(ctx, db, o); err != nil {
		db.close()
		return nil, err
	}
	return &Store{read: db.read, write: db.write, opt: o}, nil
}

// maxMigrators bounds how many programs may migrate one SQLite file at a time: there is
// no lock for it, and who loses a race looks again.
const maxMigrators = 8

// Migrate brings the schema of the metastore at url up to date, creating it where
// there is none, and returns the names of the migrations it applied. Several at once
// wait for each other.
func Migrate(ctx context.Context, url string, o Options) ([]string, error) {
	o = o.withDefaults()
	db, err := connect(ctx, url, o)
	if err != nil {
		return nil, err
	}
	defer db.close()
	p, err := provider(db)
	if err != nil {
		return nil, err
	}
	done, err := p.Up(ctx)
	for tries := 0; err != nil && db.dialect == goose.DialectSQLite3 && tries < maxMigrators && ctx.Err() == nil; tries++ {
		done, err = p.Up(ctx) // another program may have been faster: its work is found now
	}
	if err != nil {
		return nil, fmt.Errorf("migrate %s: %w", db.name, oneLine(err))
	}
	var names []string
	for _, m := range done {
		names = append(names, m.Source.Path)
	}
	return names, nil
}

// Close closes the connections.
func (s *Store) Close() error {
	err := s.read.Close()
	if s.write != s.read {
		if werr := s.write.Close(); err == nil {
			err = werr
		}
	}
	return err
}

// Ping asks the database for a sign of life.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opt.ConnectTimeout)
	defer cancel()
	if err := s.read.PingContext(ctx); err != nil {
		return fmt.Errorf("metastore: %w", oneLine(err))
	}
	return nil
}

func connect(ctx context.Context, url string, o Options) (database, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	var db database
	var err error
	switch scheme {
	case "postgres", "postgresql":
		db, err = openPostgres(url, o)
	case "sqlite":
		db, err = openSQLite(rest, o)
	default:
		return database{}, fmt.Errorf("%w: the metastore's URL begins with neither postgres:// nor sqlite:, want postgres://USER@HOST/DATABASE or sqlite:PATH", weir.ErrInvalid)
	}
	if err != nil {
		return database{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.ConnectTimeout)
	defer cancel()
	if err := db.write.PingContext(ctx); err != nil {
		db.close()
		return database{}, fmt.Errorf("metastore %s cannot be opened: %w", db.name, oneLine(err))
	}
	return db, nil
}

func provider(db database) (*goose.Provider, error) {
	opts := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if db.dialect == goose.DialectPostgres {
		locker, err := newMigrationLock()
		if err != nil {
			return nil, fmt.Errorf("migrate %s: %w", db.name, err)
		}
		opts = append(opts, goose.WithSessionLocker(locker))
	}
	p, err := goose.NewProvider(db.dialect, db.write, db.migrations, opts...)
	if err != nil {
		return nil, fmt.Errorf("migrations of %s: %w", db.name, err)
	}
	return p, nil
}

// checkSchema compares versions without creating anything.
func checkSchema(ctx context.Context, db database, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	p, err := provider(db)
	if err != nil {
		return err
	}
	var have int64
	err = db.read.QueryRowContext(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&have)
	if err != nil && !isMissingTable(err) {
		return fmt.Errorf("metastore %s: schema version: %w", db.name, oneLine(err))
	}
	sources := p.ListSources()
	want := sources[len(sources)-1].Version
	switch {
	case have < want:
		return fmt.Errorf("%w: metastore %s has schema version %d and this weir needs %d: run weir migrate", weir.ErrInvalid, db.name, have, want)
	case have > want:
		return fmt.Errorf("%w: metastore %s has schema version %d, newer than the %d that this weir knows: use a newer weir", weir.ErrInvalid, db.name, have, want)
	}
	return nil
}
