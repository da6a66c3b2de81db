package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/checkpoint/blob"
	weirexec "weir/exec"
	"weir/exec/exectest"
	"weir/exec/sink"
	"weir/exec/source"
	"weir/planner"
	"weir/planner/expr"
)

// An example is SQL on a page, with the block below it.
type example struct {
	line int
	sql  string
	kind string // "text": the answer; "error": the refusal; "": it can be planned
	want string
}

// examples reads the ```sql blocks of a page, each with a ```text or ```error block
// that follows at once.
func examples(page string) []example {
	var list []example
	var open *strings.Builder
	kind, before := "", ""
	for n, line := range strings.Split(page, "\n") {
		switch {
		case open == nil && strings.HasPrefix(line, "```"):
			open, kind = &strings.Builder{}, strings.TrimPrefix(line, "```")
			if kind == "sql" {
				list = append(list, example{line: n + 2})
			}
		case line == "```":
			last := len(list) - 1
			switch {
			case kind == "sql":
				list[last].sql = open.String()
			case before == "sql" && (kind == "text" || kind == "error"):
				list[last].kind, list[last].want = kind, open.String()
			}
			open, before = nil, kind
		case open != nil:
			open.WriteString(line + "\n")
		case strings.TrimSpace(line) != "":
			before = ""
		}
	}
	return list
}

// TestExamples runs the examples of docs/sql.md.
func TestExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("sql.md")
	if err != nil {
		t.Fatal(err)
	}
	list := examples(string(page))
	if len(list) < 5 {
		t.Fatalf("only %d examples found", len(list))
	}
	for _, e := range list {
		t.Run(fmt.Sprintf("line %d", e.line), func(t *testing.T) {
			t.Parallel()
			p, err := planner.Plan(e.sql, nil, planner.Options{})
			switch {
			case e.kind == "error" && err == nil:
				t.Fatalf("not refused:\n%s", e.sql)
			case e.kind == "error":
				var refused *planner.Error
				if !errors.As(err, &refused) || !strings.Contains(refused.Problems[0].Message, strings.TrimSpace(e.want)) {
					t.Errorf("want %sgot  %v", e.want, err)
				}
			case err != nil:
				t.Fatalf("%v\n%s", err, e.sql)
			case e.kind == "text":
				lines := strings.Split(strings.TrimSpace(e.want), "\n")
				slices.Sort(lines[1:])
				if diff := cmp.Diff(lines, answer(t, p)); diff != "" {
					t.Errorf("-page +Weir:\n%s", diff)
				}
			}
		})
	}
}

// TestFunctions runs the examples of the function tables.
func TestFunctions(t *testing.T) {
	t.Parallel()
	check := func(sql, want string) {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			p, err := planner.Plan(sql, nil, planner.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := answer(t, p); len(got) != 2 || got[1] != want {
				t.Errorf("got %q, documented as %q", got[1:], want)
			}
		})
	}
	for _, f := range expr.Functions() {
		if len(f.Examples) == 0 && !f.Volatile {
			t.Errorf("%s has no example", f.SQL)
		}
		for _, e := range f.Examples {
			check("SELECT CAST("+e.SQL+" AS STRING) AS v", e.Value)
		}
	}
	for _, a := range expr.AggregateFunctions() {
		if len(a.Examples) == 0 {
			t.Errorf("%s has no example", a.SQL)
		}
		for _, e := range a.Examples {
			check(e.SQL, e.Value)
		}
	}
}

// TestGenerated: the tables of the pages are those of the code.
func TestGenerated(t *testing.T) {
	t.Parallel()
	var pages []byte
	for _, name := range []string{"sql.md", "checkpoints.md"} {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page...)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./docs/gen", "-print")
	cmd.Dir = ".."
	want, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(pages)); diff != "" {
		t.Errorf("docs/ is not current: make generate\n%s", diff)
	}
}

// answer runs a job, which may read files, and gives its header and its rows, sorted.
func answer(t *testing.T, p *planner.Result, files ...string) []string {
	t.Helper()
	job := exectest.Start(t, exectest.Config{
		Graph: p.Graph, Parallelism: 2, Blobs: blob.NewMemory(), Files: files, Openers: weirexec.Openers{Source: source.Open, Sink: sink.Open},
	})
	if _, err := job.Finish(); err != nil {
		t.Fatal(err)
	}
	page, err := job.Read(weirexec.Query{})
	if err := errors.Join(err, job.Close()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range p.Columns {
		names = append(names, c.Name)
	}
	var lines []string
	for _, row := range page.Rows {
		lines = append(lines, line(t, names, row.JSON))
	}
	slices.Sort(lines)
	return append([]string{strings.Join(names, " | ")}, lines...)
}

func line(t *testing.T, names []string, row []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(row))
	d.UseNumber()
	fields := map[string]any{}
	if err := d.Decode(&fields); err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, n := range names {
		if fields[n] == nil {
			values = append(values, "NULL")
			continue
		}
		values = append(values, fmt.Sprint(fields[n]))
	}
	return strings.Join(values, " | ")
}

// TestSettings: the page names every setting, or its last part behind the group's first.
func TestSettings(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("sql.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Settings\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, err = planner.Plan("SET 'xyz' = '1'; SELECT 1", nil, planner.Options{})
	var refused *planner.Error
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimPrefix(refused.Problems[0].Hint, "the options are "), ", ")
	if len(names) < 10 {
		t.Fatalf("the refusal lists no settings: %s", refused.Problems[0].Hint)
	}
	for _, name := range names {
		_, last, _ := strings.Cut(name, ".")
		if !strings.Contains(section, "`"+name+"`") && !strings.Contains(section, "`."+last+"`") {
			t.Errorf("the page does not speak of the setting %s", name)
		}
	}
}

// block is the fenced block of a page behind <!-- mark -->.
func block(t *testing.T, page, mark string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "<!-- "+mark+" -->\n```")
	_, rest, open := strings.Cut(rest, "\n")
	text, _, closed := strings.Cut(rest, "\n```")
	if !ok || !open || !closed {
		t.Fatalf("the page has no block %s", mark)
	}
	return text
}

// TestTwoClicks: the story that docs/checkpoints.md tells has the right bytes, counts and
// answer.
func TestTwoClicks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("checkpoints.md")
	if err != nil {
		t.Fatal(err)
	}
	page, dir := string(text), t.TempDir()
	rows := map[string][]string{} // by file and byte
	for _, name := range []string{"a.csv", "b.csv"} {
		file := ""
		for _, line := range strings.Split(block(t, page, "data "+name), "\n") {
			at, row, _ := strings.Cut(strings.TrimSpace(line), "  ")
			if at != strconv.Itoa(len(file)) {
				t.Errorf("%s: %s begins at byte %d, the page says %s", name, row, len(file), at)
			}
			rows[name] = append(rows[name], at)
			file += row + "\n"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, entry, _ := strings.Cut(block(t, page, "manifest"), name+`"`)
		entry, _, _ = strings.Cut(entry, "}")
		if want := fmt.Sprintf(`"size":%d`, len(file)); !strings.Contains(entry, want) {
			t.Errorf("the manifest does not have %s of %s", want, name)
		}
		if want := fmt.Sprintf(`"position":%s`, rows[name][4]); !strings.Contains(entry, want) {
			t.Errorf("the manifest does not have %s of %s, where four rows end", want, name)
		}
	}
	sql := strings.NewReplacer("data/shop", dir, ", 'rows-per-second' = '2'", "").Replace(block(t, page, "job"))
	p, err := planner.Plan(sql, nil, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, line := range strings.Split(block(t, page, "answer"), "\n")[1:] {
		want = append(want, strings.Join(strings.Fields(line), " | "))
	}
	if diff := cmp.Diff(want, answer(t, p, dir)); diff != "" {
		t.Errorf("-page +Weir:\n%s", diff)
	}
}
