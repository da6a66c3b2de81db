package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/exec"
	"weir/planner/plan"
)

func TestFolderIsReadInOrder(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"b.csv": "2\n", "a.csv": "\ufeff1\n", "c.csv": "", "d.csv": "3\n\ufeff\n", ".weir-x": "9\n", ".hidden": "9\n", "e.txt": "4",
	})
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	table := one("csv", text)
	for path, want := range map[string]string{
		dir:                           "\"1\"\n\"2\"\n\"3\"\n\"\ufeff\"\n\"4\"\n",
		filepath.Join(dir, "*.csv"):   "\"1\"\n\"2\"\n\"3\"\n\"\ufeff\"\n",
		filepath.Join(dir, "[a-b]*"):  "\"1\"\n\"2\"\n",
		filepath.Join(dir, ".hidden"): "\"9\"\n",
	} {
		table.Options = map[string]string{"path": path}
		s, err := Open(context.Background(), setupOf(reading(table), dir, 0, 1))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got, err := drain(t, s, reading(table))
		if diff := cmp.Diff(want, strings.ReplaceAll(got, `\ufeff`, "\ufeff")); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", path, err, diff)
		}
	}
}

func TestPathsThatAreRefused(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "1\n"})
	outside := folder(t, map[string]string{"secret": "1\n"})
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	table := one("csv", bigint)
	for path, want := range map[string]error{
		filepath.Join(outside, "secret"):                           weir.ErrInvalid,
		filepath.Join(dir, "..", filepath.Base(outside), "secret"): weir.ErrInvalid,
		filepath.Join(dir, "link"):                                 weir.ErrInvalid,
		filepath.Join(dir, "l*"):                                   weir.ErrInvalid,
		filepath.Join(outside, "*"):                                weir.ErrInvalid,
		filepath.Join(outside, "no*"):                              weir.ErrInvalid,
		dir:                                                        weir.ErrInvalid,
		filepath.Join(dir, "nothing"):                              weir.ErrNotFound,
		filepath.Join(dir, "nothing*"):                             weir.ErrNotFound,
		"":                                                         weir.ErrInvalid,
		os.DevNull:                                                 weir.ErrInvalid,
	} {
		table.Options = map[string]string{"path": path}
		if _, err := Open(context.Background(), setupOf(reading(table), dir, 0, 1)); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
	table.Options = map[string]string{"path": filepath.Join(dir, "a")}
	setup := setupOf(reading(table), dir, 0, 1)
	setup.Files = nil
	if _, err := Open(context.Background(), setup); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("without roots: %v", err)
	}
}

func TestRowErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxRowBytes+1)
	columns := []plan.Column{col("n", bigint), col("k", text)}
	for name, c := range map[string]struct {
		format, body string
		want         exec.RowError
	}{
		"json":       {"json", "{\"n\":1}\n\n{\"n\":2}\r\n{\"n\":\"x\"}\n", exec.RowError{Line: 4, Offset: 18, Column: "n", Reason: `"x" is not a BIGINT: it is a text`}},
		"csv":        {"csv", "1,a\n2,\"b\nc\"\nx,d\n", exec.RowError{Line: 4, Offset: 12, Column: "n", Reason: `"x" is not a BIGINT: it is not a number`}},
		"arity":      {"csv", "1,a\n2\n", exec.RowError{Line: 2, Offset: 4, Reason: `row has 1 field, table has 2`}},
		"open quote": {"csv", "1,a\n2,\"b\n3,c\n", exec.RowError{Line: 2, Offset: 4, Reason: `not a CSV record: a quote is not closed`}},
		"a long row": {"csv", "1,a\n2," + long, exec.RowError{Line: 2, Offset: 4, Reason: `the row has 524289 bytes of text, more than the 524288 that may travel between workers`}},
	} {
		dir := folder(t, map[string]string{"f": c.body})
		path := filepath.Join(dir, "f")
		spec := reading(plan.Table{Name: "t", Connector: "filesystem", Format: c.format, Columns: columns, Options: map[string]string{"path": path}})
		s, err := Open(context.Background(), setupOf(spec, dir, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		c.want.Table, c.want.Path = "t", path
		_, err = drain(t, s, spec)
		var got *exec.RowError
		if !errors.As(err, &got) || *got != c.want {
			t.Errorf("%s: got %v, want %v", name, err, &c.want)
		}
		s.Close()
	}
}

func TestOriginLocatesRows(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f": "\ufeff1\n\n22\n333"})
	table := one("csv", bigint)
	table.Options = map[string]string{"path": filepath.Join(dir, "f")}
	s, err := Open(context.Background(), setupOf(reading(table), dir, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, _, _, err := s.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{3, 5, 6, 9}, b.Origin.Offsets); diff != "" || b.Origin.Table != "t" || b.Origin.Path != filepath.Join(dir, "f") {
		t.Errorf("origin %+v", b.Origin)
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	table := plan.Table{Name: "t", Connector: "filesystem", Format: "csv", Columns: []plan.Column{col("k", text), col("v", bigint)}}
	for body, want := range map[string]string{
		"k,v\na,1\nb,2":            "\"a\"|1\n\"b\"|2\n",
		"\ufeffK,V\r\na,1\r\n":     "\"a\"|1\n",
		"\ufeff\"k\",\"v\"\na,1\n": "\"a\"|1\n",
		"k,v":                      "",
		"":                         "",
		"v,k\n1,a\n":               `the header's field 1 is "v", but the table's column is k; name the columns as the header does, in its order`,
		"k,v,w\na,1\n":             "header: row has 3 fields, table has 2",
		"k\na,1\n":                 "header: row has 1 field, table has 2",
		"\"k":                      "not a CSV record: a quote is not closed",
		"\"k\"\"\",v\na,1\n":       `the header's field 1 is "k\"", but the table's column is k; name the columns as the header does, in its order`,
	} {
		dir := folder(t, map[string]string{"f": body})
		table.Options = map[string]string{"path": filepath.Join(dir, "f"), "csv.header": "true"}
		for _, size := range []int64{1, 5, splitSize} {
			got := ""
			for i := range 2 {
				s := sized(t, reading(table), setupOf(reading(table), dir, i, 2), size, 64)
				out, err := drain(t, s, reading(table))
				s.Close()
				var row *exec.RowError
				if errors.As(err, &row) {
					got = row.Reason
					break
				} else if err != nil {
					t.Fatal(err)
				}
				got += out
			}
			if sorted(got) != sorted(want) {
				t.Errorf("%q in splits of %d: got %q, want %q", body, size, got, want)
			}
		}
	}
}

func sorted(s string) string {
	l := strings.SplitAfter(s, "\n")
	if len(l) == 3 && l[0] > l[1] {
		l[0], l[1] = l[1], l[0]
	}
	return strings.Join(l, "")
}

func TestLongRecord(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxRecord+blockSize)
	for _, c := range []struct{ format, body string }{
		{"csv", "a," + long + "\nb,c\n"},
		{"csv", "a,\"" + strings.ReplaceAll(long, "xxx", "x\nx") + "\"\n"},
		{"json", `{"k":"a","x":"` + long + "\"}\n"},
	} {
		format, body := c.format, c.body
		table := one(format, text)
		table.Columns = append(table.Columns, col("x", text))
		dir := folder(t, map[string]string{"f": body})
		table.Options = map[string]string{"path": dir}
		s, err := Open(context.Background(), setupOf(reading(table, 0), dir, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		_, err = drain(t, s, reading(table, 0))
		var row *exec.RowError
		if !errors.As(err, &row) || row.Reason != "the record is longer than 16 MiB" || row.Line != 1 {
			t.Errorf("%s: got %v", format, err)
		}
		s.Close()
	}
}

func TestCanceledWhileReading(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f": sample("csv", 100_000)})
	table := behavior("csv", dir)
	s, err := Open(context.Background(), setupOf(reading(table), dir, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 100_000 {
		if _, _, _, err = s.Next(ctx); err != nil {
			break
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestIncompleteRecordLeavesNothing: a record that is not whole in the window must leave no trace in
// the batch that is handed over before it.
func TestIncompleteRecordLeavesNothing(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("a,b\n", 64) + ",\"" + strings.Repeat("\n", 300) + "\"\n"
	dir := folder(t, map[string]string{"f": body})
	table := plan.Table{Name: "t", Connector: "filesystem", Format: "csv", Columns: []plan.Column{col("a", text), col("b", text)}, Options: map[string]string{"path": dir}}
	s := sized(t, reading(table), setupOf(reading(table), dir, 0, 1), splitSize, 400)
	got, err := drain(t, s, reading(table))
	if err != nil || strings.Count(got, "\"a\"|\"b\"\n") != 64 || !strings.HasSuffix(got, "\nNULL|\""+strings.Repeat(`\n`, 300)+"\"\n") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestEmptyFileHasASplit, so that a snapshot tells a table of empty files from none.
func TestEmptyFileHasASplit(t *testing.T) {
	t.Parallel()
	splits := splitsOf([]input{{Path: "a"}, {Path: "b", Size: 21}}, 10)
	if len(splits) != 4 || splits[3] != (split{input: input{Path: "b", Size: 21}, Start: 20, End: 21, Position: 20}) {
		t.Errorf("%+v", splits)
	}
}
