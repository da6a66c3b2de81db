package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/exec"
	"weir/planner/expr"
	"weir/planner/plan"
)

// A reasoner notes why records are rejected, and how they begin.
type reasoner struct{ got []string }

func (r *reasoner) Reject(e *exec.RowError) error {
	raw := e.Raw
	if len(raw) > 30 {
		raw = fmt.Sprintf("%s… (%d)", raw[:30], len(raw))
	}
	r.got = append(r.got, fmt.Sprintf("%d %s|%s|%s", e.Offset, e.Column, e.Reason, raw))
	return nil
}

// rejecting reads a file of a table whose rejects are taken.
func rejecting(t *testing.T, format string, columns []plan.Column, body string) (rows string, rejected []string) {
	t.Helper()
	dir := folder(t, map[string]string{"a": body})
	spec := reading(plan.Table{Name: "t", Connector: "filesystem", Format: format, Options: map[string]string{"path": dir}, Columns: columns})
	setup := setupOf(spec, dir, 0, 1)
	var r reasoner
	setup.Rejects = &r
	s, err := Open(t.Context(), setup)
	if err != nil {
		t.Fatal(err)
	}
	if rows, err = drain(t, s, spec); err != nil {
		t.Fatal(err)
	}
	return rows, r.got
}

// TestRejectedRecords: reading goes on behind a record at fault.
func TestRejectedRecords(t *testing.T) {
	t.Parallel()
	const notObject = "|not a JSON object: expected a JSON object at byte 1, found "
	kn := []plan.Column{col("k", text), {Name: "n", Type: bigint, NotNull: true}}
	for _, c := range []struct {
		name, format, body, rows string
		rejected                 []string
	}{
		{
			"M13: lines that are no objects", "json",
			"{\"k\":\"a\",\"n\":1}\n\n   \nnull\n[]\n\"x\"\n{\"k\":\"a\",\"n\":1}zzz\n{\"k\":\"a\",\"n\":1}{\"k\":\"a\",\"n\":1}\n{\"k\":\"a\",\"n\":2}\n",
			"\"a\"|1\n\"a\"|2\n",
			[]string{
				`21 ` + notObject + `"null"|null`, `26 ` + notObject + `"[]"|[]`, `29 ` + notObject + `"\"x\""|"x"`,
				`33 |not a JSON object: expected the end of the line at byte 16, found "zzz"|{"k":"a","n":1}zzz`,
				`52 |not a JSON object: expected the end of the line at byte 16, found "{\"k\":\"a\",\"n\":1}"|{"k":"a","n":1}{"k":"a","n":1}`,
			},
		},
		{
			"NOT NULL, range, depth, text", "json",
			"{\"k\":\"a\"}\n{\"k\":\"b\",\"n\":1e30}\n{\"k\":\"c\xff\",\"n\":1}\n{\"x\":" + strings.Repeat("[", 600) + "\n{\"k\":\"\",\"n\":5}",
			"\"\"|5\n",
			[]string{
				`0 n|the field is missing, and the column is NOT NULL|{"k":"a"}`,
				`10 n|"1e30" is not a BIGINT: it is out of range|{"k":"b","n":1e30}`,
				"29 k|\"c\\xff\" is not valid UTF-8|{\"k\":\"c\xff\",\"n\":1}",
				`46 |not a JSON object: expected values that nest no deeper than 512 at byte 518, found "` + strings.Repeat("[", 64) + `"… (88 bytes)|{"x":[[[[[[[[[[[[[[[[[[[[[[[[[… (605)`,
			},
		},
		{
			"half a row leaves nothing behind", "json",
			"{\"k\":null,\"n\":\"x\"}\n{\"k\":\"a longer text\",\"n\":\"x\"}\n{\"k\":\"b\",\"n\":1}\n{\"n\":2}\n",
			"\"b\"|1\nNULL|2\n",
			[]string{`0 n|"x" is not a BIGINT: it is a text|{"k":null,"n":"x"}`, `19 n|"x" is not a BIGINT: it is a text|{"k":"a longer text","n":"x"}`},
		},
		{
			"a quote that is never closed costs its line", "csv", "a,1\n\"b,2\nc,3\n",
			"\"a\"|1\n\"c\"|3\n",
			[]string{"4 |not a CSV record: a quote is not closed|\"b,2"},
		},
		{
			"a whole record of many lines", "csv", "\"a\nb\",x\n,1\n\"c\nd\",2,3\ne,\n\"f\ng\",4\n",
			"NULL|1\n\"f\\ng\"|4\n",
			[]string{
				"0 n|\"x\" is not a BIGINT: it is not a number|\"a\nb\",x", "11 |row has 3 fields, table has 2|\"c\nd\",2,3",
				"21 n|the field is empty, and the column is NOT NULL|e,",
			},
		},
		{
			"wrong quotes behind another fault", "csv", "x,y,\"z\"\"\n\"a,1\nb,2\n",
			"\"b\"|2\n",
			[]string{"0 n|\"y\" is not a BIGINT: it is not a number|x,y,\"z\"\"", "9 |not a CSV record: a quote is not closed|\"a,1"},
		},
	} {
		rows, rejected := rejecting(t, c.format, kn, c.body)
		if diff := cmp.Diff(c.rows, rows); diff != "" {
			t.Errorf("%s: rows: -want +got\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.rejected, rejected); diff != "" {
			t.Errorf("%s: rejected: -want +got\n%s", c.name, diff)
		}
	}
}

// TestRejectTooLong: a record that no window holds is rejected up to its line's end.
func TestRejectTooLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxRecord*5/2)
	for format, body := range map[string]string{
		"json": "{\"n\":1}\n{\"k\":\"" + long + "\"}\n{\"n\":2}\n",
		"csv":  ",1\n" + long + ",3\n,2\n",
	} {
		rows, rejected := rejecting(t, format, []plan.Column{col("k", text), col("n", bigint)}, body)
		if rows != "NULL|1\nNULL|2\n" || len(rejected) != 1 || !strings.Contains(rejected[0], "|the record is longer than 16 MiB|") {
			t.Errorf("%s: rows %q, rejected %q", format, rows, rejected)
		}
	}
	line, lines := strings.Repeat("x", 1000)+",1\n", maxRecord/1000
	body := "\"" + strings.Repeat(line, lines) + ",1\n,2\n"
	rows, rejected := rejecting(t, "csv", []plan.Column{col("k", text), col("n", bigint)}, body)
	if n := strings.Count(rows, "\n"); n != lines+1 || len(rejected) != 1 || !strings.HasPrefix(rejected[0], "0 |") || !strings.HasSuffix(rejected[0], "x… (1003)") {
		t.Errorf("a quote open for 16 MiB: %d rows, rejected %.200q", n, rejected)
	}
	rows, rejected = rejecting(t, "json", []plan.Column{col("k", text)}, "{\"k\":\""+strings.Repeat("y", maxRowBytes+1)+"\"}\n{}\n")
	if rows != "NULL\n" || len(rejected) != 1 || !strings.Contains(rejected[0], "more than the 524288 that may travel") {
		t.Errorf("a long row: rows %q, rejected %q", rows, rejected)
	}
}

// BenchmarkReject reads a file of nothing but records at fault.
func BenchmarkReject(b *testing.B) {
	const n = 100_000
	for format, line := range map[string]string{"json": "{\"k\":1}\n", "csv": "a,b,c\n"} {
		b.Run(format, func(b *testing.B) {
			dir := folder(b, map[string]string{"a": strings.Repeat(line, n)})
			spec := reading(plan.Table{Name: "t", Connector: "filesystem", Format: format, Options: map[string]string{"path": dir}, Columns: []plan.Column{col("k", expr.Type{Kind: expr.String})}})
			for b.Loop() {
				setup := setupOf(spec, dir, 0, 1)
				var r counter
				setup.Rejects = &r
				s, err := Open(b.Context(), setup)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := drain(b, s, spec); err != nil || r != n {
					b.Fatal(err, r)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}

type counter int

func (c *counter) Reject(*exec.RowError) error {
	*c++
	return nil
}
