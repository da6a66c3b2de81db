package metastore

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
)

// A statement that is prepared already is used again, also after it failed, within itself,
// and after the schema has changed.
func TestPreparedStatements(t *testing.T) {
	t.Parallel()
	d, err := openSQLite(filepath.Join(t.TempDir(), "x.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	ctx := t.Context()
	exec := func(query string, args ...any) error {
		_, err := d.write.ExecContext(ctx, query, args...)
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(exec("CREATE TABLE t (k INT PRIMARY KEY); CREATE TABLE u (k INT)"))
	for i := range 3 {
		must(exec("INSERT INTO t VALUES ($1)", i))
		if err := exec("INSERT INTO t VALUES ($1)", i); !isUnique(err) {
			t.Errorf("a key twice: %v", err)
		}
	}
	const pairs = "SELECT k FROM t WHERE k >= $1 ORDER BY k"
	read := func(tx *sql.Tx, from int, each func(k int)) {
		rows, err := tx.QueryContext(ctx, pairs, from)
		must(err)
		defer rows.Close()
		for rows.Next() {
			var k int
			must(rows.Scan(&k))
			each(k)
		}
		must(rows.Err())
	}
	for range 3 {
		tx, err := d.write.BeginTx(ctx, nil)
		must(err)
		n := 0
		read(tx, 0, func(k int) { read(tx, k, func(int) { n++ }) })
		must(tx.Rollback())
		if n != 3+2+1 {
			t.Errorf("%d pairs", n)
		}
	}
	must(exec("ALTER TABLE t ADD COLUMN more INT DEFAULT 7"))
	must(exec("INSERT INTO t (k) VALUES ($1)", 3))
	var n, more int
	for range 2 {
		must(d.read.QueryRowContext(ctx, "SELECT COUNT(*), SUM(more) FROM t").Scan(&n, &more))
	}
	if n != 4 || more != 28 {
		t.Errorf("%d rows, %d", n, more)
	}
	prepared := func() (n int) {
		c, err := d.write.Conn(ctx)
		must(err)
		defer c.Close()
		must(c.Raw(func(c any) error { n = len(c.(*preparingConn).ready); return nil }))
		return n
	}
	if before := prepared(); before == 0 {
		t.Error("nothing is kept")
	} else if must(exec("INSERT INTO t (k) VALUES ($1)", 4)); prepared() != before {
		t.Error("a statement is kept twice")
	}
	for i := range 2 * maxStatements {
		must(exec("INSERT INTO u VALUES ($1) -- "+string(rune('a'+i)), i))
	}
	if n := prepared(); n > maxStatements {
		t.Errorf("%d statements are kept", n)
	}
}

// What is kept and what was given up are few among all checkpoints of a history without
// end: whoever looks for them takes the index of these.
func TestKeptAmongMany(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "weir.db")
	if _, err := Migrate(t.Context(), url, Options{}); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for query, want := range map[string]string{
		retained:    "c USING INDEX checkpoints_kept",
		collectable: "c USING INDEX checkpoints_kept",
		`SELECT ` + checkpointColumns + ` FROM checkpoints c WHERE c.job = $1 AND ` + givenUp + ` ORDER BY c.id LIMIT $2`: "c USING INDEX checkpoints_given_up",
	} {
		steps, err := list(t.Context(), s.read, "explain", func(row interface{ Scan(...any) error }) (step string, err error) {
			var skip any
			err = row.Scan(&skip, &skip, &skip, &step)
			return step, err
		}, "EXPLAIN QUERY PLAN "+query, "", "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(steps, "\n"); !strings.Contains(text, want) || strings.Contains(text, "checkpoints_status") || strings.Contains(text, "checkpoints_type") {
			t.Errorf("%s\n%s", query, text)
		}
	}
}
