package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answers serves one answer for each path, and fails the test where a script other than
// the one wanted comes.
func answers(t *testing.T, script string, byPath map[string]string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got struct{ SQL string }
		if err == nil {
			err = json.Unmarshal(body, &got)
		}
		if err != nil || got.SQL != script {
			t.Errorf("%s %s: %s, %v", r.Method, r.URL.Path, body, err)
		}
		answer, ok := byPath[r.URL.Path]
		switch {
		case !ok:
			t.Errorf("%s %s is not wanted", r.Method, r.URL.Path)
		case strings.Contains(answer, `"status":409`):
			w.WriteHeader(http.StatusConflict)
		}
		io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestSQL(t *testing.T) {
	t.Parallel()
	const list = `{"statement":"SHOW TABLES","line":1,"columns":[{"name":"table","type":"STRING"},{"name":"format","type":"STRING"}],"rows":[{"table":"a","format":null},{"table":"b\u001b","format":"csv"}]}`
	const created = `{"statement":"CREATE TABLE","line":1,"columns":[],"rows":[],"message":"table a created"}`
	const plan = `{"statement":"EXPLAIN","line":1,"columns":[{"name":"plan","type":"STRING"}],"rows":[{"plan":"chain 0\n  source a\u001b\n"}]}`
	const described = `{"statement":"DESCRIBE","line":1,"columns":[{"name":"column","type":"STRING"},{"name":"nullable","type":"BOOLEAN"}],"rows":[{"column":"n","nullable":true}]}`
	for _, c := range []struct {
		name, script, answer string
		args                 []string
		code                 int
		stdout, stderr       string
	}{
		{name: "rows", script: "SHOW TABLES", answer: `{"results":[` + list + `]}`, stdout: "table  format\na      NULL\nb\\x1b  csv\n"},
		{
			name: "several", script: "CREATE …", answer: `{"results":[` + strings.Join([]string{created, created, list, created, plan, described}, ",") + `]}`,
			stdout: "table a created\ntable a created\n\ntable  format\na      NULL\nb\\x1b  csv\n\ntable a created\n\nchain 0\n  source a\\x1b\n\ncolumn  nullable\nn       true\n",
		},
		{name: "as JSON", script: "SHOW TABLES", args: []string{"-o", "json"}, answer: `{"results":[]}`, stdout: "{\n  \"results\": []\n}\n"},
		{
			name: "a refusal", script: "SHOW TABLES;\nCREATE TABLE a (n INT)", code: 1,
			answer: `{"status":409,"detail":"x","errors":[{"line":2,"column":14,"message":"table a exists already","hint":"DROP TABLE a first"}]}`,
			stderr: "weir: line 2, column 14: table a exists already\n  CREATE TABLE a (n INT)\n               ^\n  hint: DROP TABLE a first\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := answers(t, c.script, map[string]string{"/v1/sql": c.answer})
			file := filepath.Join(t.TempDir(), "a.sql")
			if err := os.WriteFile(file, []byte(c.script), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, given := range [][]string{{"-e", c.script}, {"-"}, {file}} {
				var stdout, stderr strings.Builder
				code := execute(t.Context(), append(append([]string{"sql", "--server", server}, given...), c.args...), strings.NewReader(c.script), &stdout, &stderr)
				if diff := cmp.Diff([]any{c.code, c.stdout, c.stderr}, []any{code, stdout.String(), stderr.String()}); diff != "" {
					t.Errorf("%v: -want +got\n%s", given, diff)
				}
			}
		})
	}
}

func TestSQLUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"sql"}, {"sql", "-e", "SHOW TABLES", "a.sql"}, {"sql", "a", "b"}} {
		var stderr strings.Builder
		if code := execute(t.Context(), args, strings.NewReader(""), io.Discard, &stderr); code != 2 {
			t.Errorf("%v: exit code %d: %s", args, code, stderr.String())
		}
	}
}

// TestRunExplain: what is to be explained is not submitted.
func TestRunExplain(t *testing.T) {
	t.Parallel()
	const script = "CREATE TABLE a (n INT) WITH ('connector' = 'datagen'); EXPLAIN SELECT n FROM a"
	server := answers(t, script, map[string]string{"/v1/plan": `{"text":"chain 0\n  source a\n","warnings":[]}`})
	for output, want := range map[string]string{"table": "chain 0\n  source a\n", "json": "{\n  \"text\": \"chain 0\\n  source a\\n\",\n  \"warnings\": []\n}\n"} {
		var stdout, stderr strings.Builder
		if code := execute(t.Context(), []string{"run", "-", "--server", server, "-o", output}, strings.NewReader(script), &stdout, &stderr); code != 0 || stdout.String() != want {
			t.Errorf("%d\n%s%s", code, stdout.String(), stderr.String())
		}
	}
}
