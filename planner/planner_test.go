package planner

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir"
	"weir/planner/plan"
	"weir/planner/sql"
)

// A memoryCatalog is a Catalog of CREATE TABLE texts by name.
type memoryCatalog map[string]string

func (m memoryCatalog) TableNames() ([]string, error) {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names, nil
}

func (m memoryCatalog) TableSQL(name string) (string, error) {
	text, ok := m[name]
	if !ok {
		return "", fmt.Errorf("table %s: %w", name, weir.ErrNotFound)
	}
	return text, nil
}

// TestScripts runs testdata/{bind,rewrite,lower,refuse}. Commands:
//
//	table            a CREATE TABLE or CREATE VIEW that the following commands find in the catalog
//	bind             the query as bound
//	rewrite          the query before and after; without=… leaves rewrites out
//	lower [without]  the graph; ids prints the operators' ids too, json the graph itself
//	explain          all that there is to say of the plan
//	plan             settings, columns, tables and warnings
//	define           a CREATE TABLE or CREATE VIEW: what it defines
//	catalog          the statements of a script for the catalog
//	refuse           every problem with place, caret and hint
//	refuse-table     the same of Define
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		catalog := memoryCatalog{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "table" {
				table, err := Define(d.Input, catalog, Options{})
				if err != nil {
					return showProblems(err)
				}
				catalog[table.Name] = table.SQL
				return ""
			}
			return runScript(t, d, catalog)
		})
	})
}

func runScript(t *testing.T, d *datadriven.TestData, catalog Catalog) string {
	opts := Options{Rewrites: rewritesOf(d)}
	switch d.Cmd {
	case "bind", "rewrite":
		found := &problems{src: d.Input}
		q, _, err := bindScript(d.Input, catalog, opts, found)
		if err != nil {
			return showProblems(err)
		}
		if d.Cmd == "bind" {
			return showTree(q)
		}
		return showRewritten(q, opts.Rewrites)
	case "lower", "plan", "explain":
		result, err := Plan(d.Input, catalog, opts)
		if err != nil {
			return showProblems(err)
		}
		checkGraph(t, d, result.Graph)
		switch d.Cmd {
		case "plan":
			return showResult(result)
		case "explain":
			return blankLines(result.Text())
		}
		return showGraph(t, d, result.Graph)
	case "refuse":
		_, err := Plan(d.Input, catalog, opts)
		return showProblems(err)
	case "catalog":
		list, err := Statements(d.Input)
		if err != nil {
			return showProblems(err)
		}
		return showStatements(list)
	case "define":
		table, err := Define(d.Input, catalog, opts)
		if err != nil {
			return showProblems(err)
		}
		return showDefinition(table)
	case "refuse-table":
		_, err := Define(d.Input, catalog, opts)
		return showProblems(err)
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

// blankLines marks empty lines, at which an output ends in a script.
func blankLines(text string) string { return strings.ReplaceAll(text, "\n\n", "\n.\n") }

// showRewritten prints a statement before and after, and what was done.
func showRewritten(bound *statement, without Rewrites) string {
	identify(bound)
	before := explainTypedTree(bound)
	after, notes := rewrite(bound, without)
	out := before + "→\n" + explainTypedTree(after)
	for _, n := range notes {
		out += "note: " + n + "\n"
	}
	return out
}

func rewritesOf(d *datadriven.TestData) (r Rewrites) {
	for _, arg := range d.CmdArgs {
		if arg.Key != "without" {
			continue
		}
		for _, v := range arg.Vals {
			switch v {
			case "fold":
				r.NoFold = true
			case "merge":
				r.NoMerge = true
			case "push":
				r.NoPushDown = true
			case "columns":
				r.NoReadColumns = true
			case "filter":
				r.NoFilterBelow = true
			case "split":
				r.NoSplit = true
			}
		}
	}
	return r
}

// showProblems prints every problem, or the error that is none.
func showProblems(err error) string {
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, weir.ErrInvalid) {
		return fmt.Sprintf("accepted: %v\n", err)
	}
	var b strings.Builder
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "%d:%d %s: %s\n", p.Line, p.Column, p.Code, p.Message)
		for _, line := range strings.Split(p.Snippet, "\n") {
			b.WriteString(strings.TrimRight("  | "+line, " ") + "\n")
		}
		if p.Hint != "" {
			b.WriteString("  hint: " + p.Hint + "\n")
		}
	}
	return b.String()
}

func showGraph(t *testing.T, d *datadriven.TestData, g *plan.Graph) string {
	if d.HasArg("json") {
		text, err := json.MarshalIndent(g, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n"
	}
	out := Explain(g)
	if d.HasArg("ids") {
		for _, c := range g.Chains {
			for _, op := range c.Operators {
				out += fmt.Sprintf("%s  %s\n", op.ID, op.Name)
			}
		}
	}
	return out
}

func showResult(r *Result) string {
	var b strings.Builder
	for _, k := range slices.Sorted(func(yield func(string) bool) {
		for k := range r.Settings {
			if !yield(k) {
				return
			}
		}
	}) {
		fmt.Fprintf(&b, "set %s = %s\n", k, r.Settings[k])
	}
	if section := r.Settings.Section("checkpoint"); section != nil {
		fmt.Fprintf(&b, "checkpoint %s\n", section)
	}
	fmt.Fprintf(&b, "columns %s\n", columnsSQL(r.Columns))
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "table %s %s catalog=%v bounded=%v", t.Name, t.Connector, t.FromCatalog, t.Bounded)
		for _, k := range slices.Sorted(mapKeys(t.Options)) {
			fmt.Fprintf(&b, " %s=%q", k, t.Options[k])
		}
		b.WriteString("\n")
	}
	for _, w := range r.Warnings {
		b.WriteString("warning: " + w + "\n")
	}
	fmt.Fprintf(&b, "max parallelism %d, bounded %v\n", r.Graph.MaxParallelism, r.Graph.Bounded)
	return b.String()
}

func mapKeys(m map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// checkGraph sees that a graph keeps the invariants of plan and comes back from JSON
// as it was.
func checkGraph(t *testing.T, d *datadriven.TestData, g *plan.Graph) {
	t.Helper()
	if err := g.Validate(); err != nil {
		d.Fatalf(t, "%v", err)
	}
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	var back plan.Graph
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(g, &back, cmpopts.EquateEmpty()); diff != "" {
		d.Fatalf(t, "the graph does not survive JSON:\n%s", diff)
	}
}

// TestPlanIsDeterministic: a script gives the same bytes each time.
func TestPlanIsDeterministic(t *testing.T) {
	t.Parallel()
	text := `CREATE TABLE t (a INT, b DOUBLE, c STRING) WITH ('connector' = 'datagen', 'fields.a.min' = '1', 'fields.c.values' = 'x,y', 'seed' = '7');
	SELECT c, a + 1 AS d, SUM(b), COUNT(a), COUNT(*) FROM t WHERE a > 1 + 1 GROUP BY c, a + 1`
	var first []byte
	for range 20 {
		r, err := Plan(text, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(r.Graph)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		if string(got) != string(first) {
			t.Fatalf("another plan:\n%s\n%s", first, got)
		}
	}
}

// TestCatalogFailure: what is wrong with the catalog is not the user's mistake.
func TestCatalogFailure(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, c := range map[string]Catalog{"names": brokenCatalog{names: boom}, "table": brokenCatalog{table: boom}} {
		_, err := Plan("SELECT a FROM t", c, Options{})
		if !errors.Is(err, boom) || errors.Is(err, weir.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestStaleView: what is wrong with a view of the catalog is said at its name, and names it.
func TestStaleView(t *testing.T) {
	t.Parallel()
	catalog := memoryCatalog{
		"t": "CREATE TABLE t (a INT) WITH ('connector' = 'datagen')",
		"v": "CREATE VIEW v AS SELECT a, b FROM t", "w": "CREATE VIEW w AS SELECT a FROM v",
		"x": "CREATE VIEW x AS SELECT a FROM y", "y": "CREATE VIEW y AS SELECT a FROM x", "z": "CREATE VIEW z AS SELEC",
	}
	for text, want := range map[string]string{
		"SELECT a FROM v":  "line 1, column 15: view v of the catalog cannot be used: table t has no column b (the columns are a)",
		"SELECT a FROM w":  "line 1, column 15: view w of the catalog cannot be used: view v of the catalog cannot be used: table t has no column b (the columns are a)",
		"SELECT a FROM x":  "line 1, column 15: view x of the catalog cannot be used: view y of the catalog cannot be used: view x of the catalog cannot be used: the view x reads itself (x → y → x)",
		"SELECT a FROM z":  "line 1, column 15: view z of the catalog cannot be used: expected SELECT, VALUES or WITH, found SELEC (did you mean SELECT?)",
		"SELECT a FROM t2": "line 1, column 15: unknown table t2 (the tables are t, v, w, x, y, z)",
	} {
		if _, err := Plan(text, catalog, Options{}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// TestOnRowError: the job's request and the script have to agree.
func TestOnRowError(t *testing.T) {
	t.Parallel()
	const query = "SELECT 1"
	for _, c := range []struct{ set, said, want string }{
		{"", "", ""},
		{"", "fail", ""},
		{"", "keep", "keep"},
		{"skip", "", "skip"},
		{"skip", "skip", "skip"},
		{"", "never", ""},
		{"skip", "keep", "line 1, column 22: on_row_error is 'skip' here and 'keep' in the job's request (say it once)"},
	} {
		text := query
		if c.set != "" {
			text = "SET 'on_row_error' = '" + c.set + "'; " + query
		}
		var got string
		if r, err := Plan(text, nil, Options{OnRowError: c.said}); err != nil {
			got = err.Error()
		} else {
			got = r.Graph.OnRowError
		}
		if got != c.want {
			t.Errorf("SET %q, request %q: got %q, want %q", c.set, c.said, got, c.want)
		}
	}
}

type brokenCatalog struct{ names, table error }

func (b brokenCatalog) TableNames() ([]string, error)   { return []string{"t"}, b.names }
func (b brokenCatalog) TableSQL(string) (string, error) { return "", b.table }

// TestCheckPath: the caller may refuse paths, at their place in the text.
func TestCheckPath(t *testing.T) {
	t.Parallel()
	const def = "CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '/etc/x')"
	opts := Options{CheckPath: func(path string) error { return fmt.Errorf("path %s is outside --files", path) }}
	_, err := Define(def, nil, opts)
	want := "line 1, column 85: table t: path /etc/x is outside --files"
	if err == nil || err.Error() != want {
		t.Errorf("Define: %v", err)
	}
	if _, err = Plan(def+"; SELECT a FROM t", nil, opts); err == nil || err.Error() != want {
		t.Errorf("Plan: %v", err)
	}
	_, err = Plan("SELECT a FROM t", memoryCatalog{"t": def}, opts)
	if want := "line 1, column 15: table t: path /etc/x is outside --files"; err == nil || err.Error() != want {
		t.Errorf("Plan with the catalog: %v", err)
	}
}

// FuzzPlan: Plan never panics, and a plan keeps the invariants.
func FuzzPlan(f *testing.F) {
	catalog := memoryCatalog{
		"t": "CREATE TABLE t (a INT, b BIGINT, d DOUBLE, s STRING, f BOOLEAN, ts TIMESTAMP_LTZ(3), m DECIMAL(38, 2)) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json')",
		"o": "CREATE TABLE o (s STRING, n BIGINT) WITH ('connector' = 'blackhole')",
	}
	for _, seed := range []string{
		"SELECT s, COUNT(*) + 1 FROM t WHERE a IN (1, 2.5) AND NOT f GROUP BY s",
		"INSERT INTO o (n) SELECT SUM(a) FROM t", "SELECT *, -a / b % 3 * 1.5 FROM t WHERE ts > '2020-01-01'",
		"WITH x (p) AS (SELECT DISTINCT a FROM t), y AS (SELECT * FROM x WHERE p > 1) SELECT p, COUNT(*) FROM (SELECT * FROM x UNION ALL SELECT * FROM y) u GROUP BY p HAVING COUNT(*) > 1",
		"SELECT a, b, GROUPING(b, a), SUM(d) FROM t WHERE f GROUP BY ROLLUP (a, b), GROUPING SETS ((), s, CUBE (f, m))", "VALUES (1, 'a'), (2.5, NULL)", "SELECT 1 HAVING TRUE",
		"CREATE VIEW v (x) AS SELECT s FROM t UNION ALL SELECT x FROM w; CREATE VIEW w AS SELECT s AS x FROM t; EXECUTE STATEMENT SET BEGIN INSERT INTO o (s) SELECT x FROM v; INSERT INTO o SELECT x, COUNT(*) FROM w GROUP BY x; INSERT INTO o VALUES ('a', 1), (NULL, 2); END",
		"CREATE TABLE c (a INT, b AS a * 2, d AS a / 0) WITH ('connector' = 'datagen'); EXPLAIN SELECT b FROM c AS z (x) WHERE x = 1",
		"SET 'parallelism' = '3'; SELECT t.*, NULL FROM t x", "SELECT m * m / 0, d / 0 FROM t WHERE NULL OR a IS NULL",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, rewrites := range []Rewrites{{}, {NoFold: true, NoMerge: true, NoPushDown: true, NoReadColumns: true, NoFilterBelow: true, NoSplit: true}} {
			r, err := Plan(text, catalog, Options{Rewrites: rewrites})
			if err != nil {
				continue
			}
			if err := r.Graph.Validate(); err != nil {
				t.Fatal(err)
			}
			Explain(r.Graph)
		}
	})
}

func BenchmarkPlan(b *testing.B) {
	text := `CREATE TABLE t (user_id BIGINT, behavior STRING) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'json');
	SELECT behavior, COUNT(*) AS n FROM t WHERE behavior IN ('buy', 'cart') GROUP BY behavior`
	for b.Loop() {
		if _, err := Plan(text, nil, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSnippet: carets stand under what is meant, in long lines too.
func TestSnippet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, mark, want string }{
		{"SELECT é, b FROM t", "b", "SELECT é, b FROM t\n          ^"},
		{"a\n\tbcd e\nf", "bcd", "\tbcd e\n\t^^^"},
		{
			strings.Repeat("x", 100) + "MARK" + strings.Repeat("y", 100), "MARK",
			"…" + strings.Repeat("x", 60) + "MARK" + strings.Repeat("y", 56) + "…\n" + strings.Repeat(" ", 61) + "^^^^",
		},
	} {
		at := strings.Index(c.src, c.mark)
		if got := snippet(c.src, at, at+len(c.mark)); got != c.want {
			t.Errorf("snippet:\n%s\nwant:\n%s", got, c.want)
		}
	}
	if line, column := sql.Locate("é\né b", 6); line != 2 || column != 3 {
		t.Errorf("Locate: %d:%d", line, column)
	}
}
