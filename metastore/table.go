package metastore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"weir"
)

const tableColumns = `name, sql, columns, connector, created_at`

func scanTable(row interface{ Scan(...any) error }) (weir.Table, error) {
	var t weir.Table
	err := row.Scan(&t.Name, &t.SQL, (*text)(&t.Columns), &t.Connector, (*instant)(&t.CreatedAt))
	return t, err
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

// ChangeTables takes tables out of the catalog, by name, and then puts tables into it:
// all of it or nothing. seen is the catalog that the change was made for, as Tables gave
// it: one that is another by now is weir.ErrConflict.
func (s *Store) ChangeTables(ctx context.Context, seen []weir.Table, drop []string, create []weir.Table) error {
	return wrap("change the catalog", s.transact(ctx, "", "", func(ctx context.Context, tx *sql.Tx) error {
		if s.write == s.read { // PostgreSQL: a transaction of SQLite that writes is alone anyway
			if _, err := tx.ExecContext(ctx, `LOCK TABLE tables IN SHARE ROW EXCLUSIVE MODE`); err != nil {
				return err
			}
		}
		now, err := list(ctx, tx, "list tables", scanTable, `SELECT `+tableColumns+` FROM tables ORDER BY key`)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(seen, now, func(a, b weir.Table) bool { return a.Name == b.Name && a.SQL == b.SQL }) {
			return conflict("the catalog has just been changed by another request, and nothing of this one was carried out: try again")
		}
		for _, name := range drop {
			if _, err := tx.ExecContext(ctx, `DELETE FROM tables WHERE key = $1`, strings.ToLower(name)); err != nil {
				return err
			}
		}
		for _, t := range create {
			_, err := tx.ExecContext(ctx, insert("tables", tableColumns+", key"),
				t.Name, t.SQL, text(t.Columns), t.Connector, instant(orNow(t.CreatedAt)), strings.ToLower(t.Name))
			if isUnique(err) {
				return conflict("a table named %q exists already", t.Name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
}
