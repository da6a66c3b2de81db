package metastore

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"

	"weir"
	"weir/migrations"
)

// openSQLite opens the file at path. One connection writes, so that writers queue
// in order instead of polling for the file's lock; readers see the last commit.
func openSQLite(path string, _ Options) (database, error) {
	path = strings.TrimPrefix(path, "//")
	if path == "" || path == ":memory:" {
		return database{}, fmt.Errorf("%w: metastore sqlite:PATH needs the path of a file", weir.ErrInvalid)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return database{}, fmt.Errorf("%w: metastore sqlite:%s: the folder %s does not exist", weir.ErrInvalid, path, filepath.Dir(path))
	}
	query := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "foreign_keys(1)", "synchronous(FULL)"}}
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
	writer, err := sqlite.NewConnector(dsn + "&_txlock=immediate")
	if err != nil {
		return database{}, fmt.Errorf("metastore sqlite:%s: %w", path, err)
	}
	reader, err := sqlite.NewConnector(dsn)
	if err != nil {
		return database{}, fmt.Errorf("metastore sqlite:%s: %w", path, err)
	}
	write, read := sql.OpenDB(preparing{writer}), sql.OpenDB(preparing{reader})
	write.SetMaxOpenConns(1)
	read.SetMaxOpenConns(4)
	return database{
		read: read, write: write, dialect: goose.DialectSQLite3, migrations: migrations.SQLite(), name: "sqlite:" + path,
	}, nil
}
