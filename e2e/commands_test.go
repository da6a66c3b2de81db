//go:build e2e

package e2e

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Wrong input and missing parts: one clear line, the right exit code, never a stack
// trace, never a hang.
func TestOneClearLine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	dir := t.TempDir()
	storage := "file://" + filepath.Join(dir, "objects")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	nowhere, metastore := freeAddress(t), "sqlite:"+filepath.Join(dir, "m.db")
	if _, errs, code := weir(t, dir, "", "migrate", "--metastore", metastore); code != 0 {
		t.Fatal(errs)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says string // a regular expression
	}{
		{"no such verb", []string{"jump"}, 2, `unknown command "jump"`},
		{"no such flag", []string{"up", "--jump"}, 2, `unknown flag: --jump`},
		{"an argument too few", []string{"job", "show"}, 2, `accepts 1 arg`},
		{"a taken port", []string{"up", "--data", filepath.Join(dir, "d1"), "--listen", taken.Addr().String()}, 1, regexp.QuoteMeta(taken.Addr().String()) + ` is in use`},
		{"a public address", []string{"up", "--data", filepath.Join(dir, "d2"), "--listen", "0.0.0.0:0"}, 1, `not a loopback address.*--insecure`},
		{"a folder that is a file", []string{"up", "--data", file, "--listen", "127.0.0.1:0"}, 1, `not a directory`},
		{"a missing files folder", []string{"up", "--data", filepath.Join(dir, "d3"), "--files", filepath.Join(dir, "none"), "--listen", "127.0.0.1:0"}, 1, `none: not a folder`},
		{"NATS away, server", []string{"server", "--metastore", metastore, "--nats", "nats://" + nowhere, "--storage", storage, "--listen", "127.0.0.1:0"}, 1, `(?i)nats.*` + regexp.QuoteMeta(nowhere)},
		{"NATS away, worker", []string{"worker", "--nats", "nats://" + nowhere, "--storage", storage, "--data", filepath.Join(dir, "w")}, 1, `(?i)nats.*` + regexp.QuoteMeta(nowhere)},
		{"no schema", []string{"server", "--metastore", "sqlite:" + filepath.Join(dir, "none.db"), "--nats", "nats://" + nowhere, "--storage", storage, "--listen", "127.0.0.1:0"}, 1, `weir migrate`},
		{"PostgreSQL away", []string{"migrate", "--metastore", "postgres://weir:S3cret@" + nowhere + "/weir"}, 1, `(?i)postgres.*` + regexp.QuoteMeta(nowhere)},
		{"a metastore of another kind", []string{"migrate", "--metastore", "mysql://x"}, 1, `neither postgres:// nor sqlite:`},
		{"storage of another kind", []string{"worker", "--nats", "nats://" + nowhere, "--storage", "ftp://x", "--data", filepath.Join(dir, "w")}, 1, `ftp`},
		{"no server", []string{"job", "list", "--server", "http://" + nowhere}, 1, `cannot reach the server at http://` + regexp.QuoteMeta(nowhere)},
		{"no script", []string{"run", filepath.Join(dir, "none.sql")}, 1, `none.sql: no such file`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, errs, code := weir(t, dir, "", c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if !regexp.MustCompile(c.says).MatchString(errs) {
				t.Errorf("says %q, want %s", errs, c.says)
			}
			for _, bad := range []string{"goroutine", "panic", ".go:", "S3cret"} {
				if strings.Contains(out+errs, bad) {
					t.Errorf("%q in the output:\n%s%s", bad, out, errs)
				}
			}
		})
	}
}

// weir run alone: a bounded count prints its table and exits 0; faults of the SQL and
// of a row are shown where they are.
func TestRunAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rows := "1,10,100,pv,1511658000\n2,11,100,buy,1511658001\n3,12,101,cart,1511658002\n4,13,101,pv,1511658003\n"
	if err := os.WriteFile(filepath.Join(dir, "b.csv"), []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.csv"), []byte(rows+"five,14,102,fav,1511658004\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	table := func(path string) string {
		return "CREATE TABLE b (user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, t BIGINT)\n" +
			"WITH ('connector' = 'filesystem', 'path' = '" + path + "', 'format' = 'csv');\n"
	}
	for _, c := range []struct {
		name, sql string
		args      []string
		code      int
		stdout    string
		says      []string
	}{
		{
			name: "a table", sql: table("b.csv") + "SELECT behavior, COUNT(*) AS n FROM b WHERE behavior <> 'cart' GROUP BY behavior",
			stdout: "behavior  n\nbuy       1\npv        2\n",
		},
		{
			name: "rows as JSON", sql: table("b.csv") + "SELECT SUM(user_id) AS s, COUNT(*) AS n FROM b", args: []string{"-o", "json"},
			stdout: `{"s":10,"n":4}` + "\n",
		},
		{name: "a syntax error", sql: table("b.csv") + "SELECT behavior COUNT(*) FROM b", code: 1, says: []string{"line 3, column", "^"}},
		{name: "an unknown column", sql: table("b.csv") + "SELECT behavor FROM b", code: 1, says: []string{"line 3, column 8", "behavor", "       ^", "hint: ", "behavior"}},
		{name: "an unknown table", sql: table("b.csv") + "SELECT 1 AS one FROM c", code: 1, says: []string{"line 3", "c"}},
		{name: "an unsupported clause", sql: table("b.csv") + "SELECT behavior FROM b ORDER BY behavior", code: 1, says: []string{"line 3, column 24", "ORDER BY"}},
		{name: "a bad row", sql: table("bad.csv") + "SELECT SUM(user_id) AS s FROM b", code: 1, says: []string{"bad.csv:5", "user_id", "five"}},
		{name: "a column not read never fails", sql: table("bad.csv") + "SELECT COUNT(*) AS n FROM b", stdout: "n\n5\n"},
		{name: "the script's parallelism", sql: "SET 'parallelism' = '5';" + table("b.csv") + "SELECT COUNT(*) AS n FROM b", stdout: "n\n4\n", says: []string{"finished  4 rows in "}},
		{name: "an option that is too small", sql: "SET 'checkpoint.timeout' = '0';" + table("b.csv") + "SELECT COUNT(*) AS n FROM b", code: 1, says: []string{"line 1, column 28: SET 'checkpoint.timeout'"}},
		{name: "outside the roots", sql: table("/etc/passwd") + "SELECT COUNT(*) AS n FROM b", args: []string{"--files", "."}, code: 1, says: []string{"/etc/passwd", "--files"}},
		{name: "a script for the catalog", sql: "SHOW TABLES", code: 1, says: []string{"line 1, column 1: SHOW TABLES is no part of a job", "hint: weir sql"}},
		{name: "a missing file", sql: table("none.csv") + "SELECT COUNT(*) AS n FROM b", code: 1, says: []string{"none.csv"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, errs, code := weir(t, dir, c.sql, append([]string{"run", "-"}, c.args...)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d\n%s%s", code, c.code, out, errs)
			}
			if out != c.stdout {
				t.Errorf("prints\n%s\nwant\n%s", out, c.stdout)
			}
			for _, s := range c.says {
				if !strings.Contains(errs, s) {
					t.Errorf("%q not in\n%s", s, errs)
				}
			}
			if strings.Contains(errs, "goroutine ") {
				t.Errorf("a stack trace:\n%s", errs)
			}
		})
	}
}

// weir sql makes what later jobs read; EXPLAIN runs nothing.
func TestCatalogBySQL(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), freeAddress(t)
	start(t, "up", dir, "up", "--data", filepath.Join(dir, "data"), "--listen", address)
	script := "CREATE TABLE five (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '5', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1');\n" +
		"CREATE VIEW odd AS SELECT n FROM five WHERE n % 2 = 1;\nSHOW VIEWS; DESCRIBE odd"
	until(t, 30*time.Second, "the server answers", func() bool {
		_, _, code := weir(t, dir, "", "sql", "-e", "SHOW TABLES", "--server", address)
		return code == 0
	})
	for _, c := range []struct {
		stdin  string
		args   []string
		code   int
		stdout string
		says   string
	}{
		{script, []string{"sql", "-"}, 0, "table five created\nview odd created\n\nview  columns\nodd   n BIGINT\n\ncolumn  type    nullable  computed\nn       BIGINT  true      NULL\n", ""},
		{"SELECT COUNT(*) AS c FROM odd", []string{"run", "-"}, 0, "c\n3\n", ""},
		{script, []string{"sql", "-"}, 1, "", "line 1, column 14: table five exists already\n  CREATE TABLE five"},
		{"DROP TABLE five", []string{"sql", "-"}, 1, "", "the view odd reads five"},
		{"", []string{"table", "drop", "five"}, 1, "", "the view odd reads five"},
		{"DROP TABLE five; DROP VIEW odd; SHOW TABLES", []string{"sql", "-"}, 0, "table five dropped\nview odd dropped\n\ntable  connector  format\n", ""},
	} {
		out, errs, code := weir(t, dir, c.stdin, append(c.args, "--server", address)...)
		if code != c.code || out != c.stdout || !strings.Contains(errs, c.says) {
			t.Errorf("%s %q: exit code %d\n%s%s", c.args, c.stdin, code, out, errs)
		}
	}
	out, errs, code := weir(t, dir, "EXPLAIN SELECT COUNT(*) AS n FROM (VALUES (1)) AS t (x)", "run", "-")
	if code != 0 || !strings.Contains(out, "source values() 1 row") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}
