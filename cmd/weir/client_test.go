package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProblemText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a, ", 40)
	for _, c := range []struct{ name, sql, answer, want string }{
		{"no faults", "", `{"title":"Not Found","detail":"job \"x\" does not exist"}`, `job "x" does not exist`},
		{"a place", "SELECT 1\r\nFROM\tx\r\n", `{"errors":[{"line":2,"column":6,"message":"unknown table x","hint":"define it"}]}`, "line 2, column 6: unknown table x\n  FROM x\n       ^\n  hint: define it"},
		{"no text for a terminal", "SELECT '\x1b[31m' x", `{"errors":[{"line":1,"column":16,"message":"found x"}]}`, "line 1, column 16: found x\n  SELECT ' [31m' x\n                 ^"},
		{"a field", "SELECT 1", `{"errors":[{"field":"parallelism","message":"is 0"},{"field":"name","message":"is unknown"}]}`, "parallelism is 0\nname is unknown"},
		{"behind the end", "SELECT", `{"errors":[{"line":1,"column":7,"message":"expected an expression"}]}`, "line 1, column 7: expected an expression\n  SELECT\n        ^"},
		{"a long line", "SELECT " + long + "é, " + long + "FROM x", `{"errors":[{"line":1,"column":128,"message":"no é"}]}`, "line 1, column 128: no é\n  …" + long[50:] + "é, " + long[:47] + "…\n  " + strings.Repeat(" ", 71) + "^"},
	} {
		p := &problem{sql: c.sql}
		if err := json.Unmarshal([]byte(c.answer), p); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, p.Error()); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

func TestFinalLine(t *testing.T) {
	t.Parallel()
	began := time.Date(2017, 11, 25, 1, 0, 0, 0, time.UTC)
	ended := began.Add(2 * time.Second)
	rows := int64(1000)
	for _, c := range []struct {
		attempt int64
		rows    *int64
		want    string
	}{
		{1, &rows, "finished  1,000 rows in 2.000 s  500 rows/s\n"},
		{3, &rows, "finished  1,000 rows in 2.000 s  500 rows/s  since attempt 3 began\n"},
		{1, nil, "finished in 2.000 s\n"},
	} {
		var out strings.Builder
		p := &progress{out: &out}
		p.final(jobView{Status: "FINISHED", RowsIn: c.rows, Attempt: c.attempt, StartedAt: &began, EndedAt: &ended})
		if out.String() != c.want {
			t.Errorf("attempt %d: %q, want %q", c.attempt, out.String(), c.want)
		}
	}
}
