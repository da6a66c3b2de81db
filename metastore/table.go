package metastore

import (
	"context"
	"database/sql"
	"strings"

	"weir"
)

const tableColumns = `name, sql, columns, connector, created_at`

func scanTable(row interface{ Scan(...any) error }) (weir.Table, error) {
	var t weir.Table
	err := row.Scan(&t.Name, &t.SQL, (*text)(&t.Columns), &t.Connector, (*instant)(&t.CreatedAt))
	return t, err
}

// CreateTable inserts t; a name in use, whatever its case, is weir.ErrConflict.
func (s *Store) CreateTable(ctx context.Context, t weir.Table) error {
	err := s.transact(ctx, "", "", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insert("tables", tableColumns+", key"),
			t.Name, t.SQL, text(t.Columns), t.Connector, instant(orNow(t.CreatedAt)), strings.ToLower(t.Name))
		return err
	})
	if isUnique(err) {
		err = conflict("a table named %q exists already: drop it or choose another name", t.Name)
	}
	return wrap("create table", err)
}

// TableByName finds a table, whatever the case of name.
func (s *Store) TableByName(ctx context.Context, name string) (weir.Table, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	t, err := scanTable(s.read.QueryRowContext(ctx, `SELECT `+tableColumns+` FROM tables WHERE key = $1`, strings.ToLower(name)))
	return t, wrap("read table", orNotFound(err, "table %q", name))
}

// Tables lists the catalog by name.
func (s *Store) Tables(ctx context.Context) ([]weir.Table, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	return list(ctx, s.read, "list tables", scanTable, `SELECT `+tableColumns+` FROM tables ORDER BY key`)
}

// DropTable removes a table; running jobs keep the definition they were planned with.
func (s *Store) DropTable(ctx context.Context, name string) error {
	return wrap("drop table", s.transact(ctx, "", "", func(ctx context.Context, tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `DELETE FROM tables WHERE key = $1`, strings.ToLower(name))
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return orNotFound(sql.ErrNoRows, "table %q", name)
	}))
}
