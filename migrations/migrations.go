// Package migrations holds the metastore's schema, one folder of goose migrations
// per database. Both folders have the same versions and give the same tables and
// columns, so that one SQL text serves both; they differ in how a time is kept
// (timestamptz, or text of fixed width in UTC) and in the database's clock.
package migrations

import (
	"embed"
	"io/fs"
)

//go:embed postgres/*.sql sqlite/*.sql
var files embed.FS

// Postgres returns the migrations for PostgreSQL.
func Postgres() fs.FS { return folder("postgres") }

// SQLite returns the migrations for SQLite.
func SQLite() fs.FS { return folder("sqlite") }

func folder(name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic("migrations: " + err.Error()) // the folder is embedded
	}
	return sub
}
