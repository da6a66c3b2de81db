package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir"
	"weir/exec"
	"weir/planner/plan"
)

// sized opens a source with splits and blocks of other sizes than the constants.
func sized(tb fatal, spec *plan.SourceSpec, setup exec.Setup, size int64, block int) *filesystem {
	tb.Helper()
	s, err := newFilesystem(spec, setup.Files)
	if err != nil {
		tb.Fatal(err)
	}
	s.splitSize, s.reader.block = size, block
	s.rejects = setup.Rejects
	if err := s.start(context.Background(), setup); err != nil {
		tb.Fatal(err)
	}
	return s
}

// drawFile makes a file of records of any length, with line ends of all kinds; bad are
// those that have a fault, as a catcher notes them.
func drawFile(t *rapid.T, format string, quotes bool, next *int) (body string, rows, bad []string) {
	var s strings.Builder
	kind := format
	if quotes {
		kind = "quotes"
	}
	faulty := map[string][]string{
		"json": {"null", "{", `{"k":"a","n":"x"}`, `{"k":7}`, `{"k":"a"}{"k":"b"}`, `{"n":1,"k":"` + strings.Repeat("x", 200) + `","k":1}`},
		"csv":  {"a,b,c", "a", "a,x", strings.Repeat("x", 200) + ",1.5"},
		"quotes": {
			"\"a\nb\",x", "\"a\r\nb\",1,2", "\"a\"\"\nb\"", "a,x,\"\n\n" + strings.Repeat("x", 100) + "\"", // whole records
			`a"b,1`, `"a"b,1`, `"a,1`, "\"a\"\"b\"c,1", `1,"b`, // lines
		},
	}[kind]
	s.WriteString(rapid.SampledFrom([]string{"", "", "\ufeff"}).Draw(t, "mark"))
	n := rapid.IntRange(0, 12).Draw(t, "records")
	for i := range n {
		if rapid.IntRange(0, 4).Draw(t, "blank") == 0 {
			s.WriteString(rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "blank line"))
		}
		if rapid.IntRange(0, 3).Draw(t, "bad") == 0 {
			raw := rapid.SampledFrom(faulty).Draw(t, "fault")
			bad = append(bad, fmt.Sprintf("%d %q", s.Len(), raw))
			s.WriteString(raw)
			s.WriteString(rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end"))
		}
		k := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 7, 9, 60, 300}).Draw(t, "length")) + "é"
		*next++
		if format == "json" {
			fmt.Fprintf(&s, `{"k":"%s","n":%d}`, k, *next)
		} else if quotes {
			k += "\n"
			fmt.Fprintf(&s, `"%s",%d`, k, *next)
		} else {
			fmt.Fprintf(&s, `%s,%d`, k, *next)
		}
		rows = append(rows, fmt.Sprintf("%q|%d", k, *next))
		if i < n-1 || rapid.Bool().Draw(t, "last line feed") {
			s.WriteString(rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end"))
		}
	}
	return s.String(), rows, bad
}

// A catcher notes the records that are rejected.
type catcher struct{ got []string }

func (c *catcher) Reject(e *exec.RowError) error {
	c.got = append(c.got, fmt.Sprintf("%s %d %q", filepath.Base(e.Path), e.Offset, e.Raw))
	return nil
}

// TestSplits reads folders in splits of any size at any parallelism, restored at
// another one at any moment: every record comes exactly once, as a row or rejected.
func TestSplits(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "in")
		if err != nil {
			t.Fatal(err)
		}
		format := rapid.SampledFrom([]string{"json", "csv"}).Draw(t, "format")
		quotes := format == "csv" && rapid.IntRange(0, 2).Draw(t, "quotes") == 0
		var want, bad []string
		next := 0
		for i := range rapid.IntRange(1, 3).Draw(t, "files") {
			body, rows, faulty := drawFile(t, format, quotes, &next)
			want = append(want, rows...)
			for _, text := range faulty {
				bad = append(bad, fmt.Sprintf("f%d %s", i, text))
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		table := plan.Table{
			Name: "t", Connector: "filesystem", Format: format, Options: map[string]string{"path": dir},
			Columns: []plan.Column{col("k", text), col("n", bigint)},
		}
		var rejected catcher
		got := readSplits(t, reading(table), dir, &rejected, rapid.Int64Range(1, 400).Draw(t, "split size"))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("got %d records\n%s\nwant %d\n%s", len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
		}
		slices.Sort(bad)
		slices.Sort(rejected.got)
		if diff := cmp.Diff(bad, rejected.got); diff != "" {
			t.Fatalf("rejected: -want +got\n%s", diff)
		}
	})
}

// TestMarkBeforeLongRecord: a snapshot is taken when only the mark of a file has been
// read, since its first record is longer than what was read at once.
func TestMarkBeforeLongRecord(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "\ufeff\"one\n" + strings.Repeat("x", 300) + "\",1\ntwo,2\n"})
	table := plan.Table{Name: "t", Connector: "filesystem", Format: "csv", Options: map[string]string{"path": dir}, Columns: []plan.Column{col("k", text), col("n", bigint)}}
	spec := reading(table)
	want := fmt.Sprintf("%q|1\n\"two\"|2\n", "one\n"+strings.Repeat("x", 300))
	for polls := range 5 {
		setup := setupOf(spec, dir, 0, 1)
		s := sized(t, spec, setup, splitSize, 64)
		var got string
		for range polls {
			b, _, _, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if b != nil {
				got += show(b, spec)
			}
		}
		setup.Restored, setup.List = true, snapshots(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		rest, err := drain(t, sized(t, spec, setup, splitSize, 64), spec)
		if err != nil || got+rest != want {
			t.Errorf("after %d polls: got %s, %v", polls, got+rest, err)
		}
	}
}

// readSplits reads all splits in turns at one parallelism, restores at another in the
// midst, and reads on.
func readSplits(t *rapid.T, spec *plan.SourceSpec, dir string, rejects exec.Rejecter, size int64) []string {
	block := rapid.SampledFrom([]int{64, 100, 1000, blockSize}).Draw(t, "block")
	var got []string
	open := func(parallelism int, restored bool, old []exec.Source) []exec.Source {
		var sources []exec.Source
		for i := range parallelism {
			setup := setupOf(spec, dir, i, parallelism)
			setup.Restored, setup.Rejects = restored, rejects
			if restored {
				setup.List = snapshots(t, old...)
			}
			sources = append(sources, sized(t, spec, setup, size, block))
		}
		return sources
	}
	sources := open(rapid.IntRange(1, 4).Draw(t, "parallelism"), false, nil)
	for range rapid.IntRange(0, 3).Draw(t, "restores") {
		for range rapid.IntRange(0, 20).Draw(t, "polls") {
			i := rapid.IntRange(0, len(sources)-1).Draw(t, "subtask")
			got = append(got, poll(t, sources[i], spec)...)
		}
		old := sources
		sources = open(rapid.IntRange(1, 4).Draw(t, "parallelism"), true, old)
		for _, s := range old {
			s.Close()
		}
	}
	for _, s := range sources {
		out, err := drain(t, s, spec)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })...)
	}
	return got
}

// poll asks a source once, for very few rows.
func poll(t *rapid.T, s exec.Source, spec *plan.SourceSpec) []string {
	f := s.(*filesystem)
	f.pace, f.bad = pacer{}, 0
	f.rows.begin(1)
	f.rows.limit = 1
	for f.at < len(f.splits) && f.splits[f.at].Done {
		f.at++
	}
	if f.at == len(f.splits) {
		return nil
	}
	b, err := f.read(context.Background(), &f.splits[f.at])
	if err != nil {
		t.Fatal(err)
	}
	if b == nil {
		return nil
	}
	return strings.FieldsFunc(show(b, spec), func(r rune) bool { return r == '\n' })
}

func TestSplitsOfLargeFile(t *testing.T) {
	t.Parallel()
	body := sample("json", 3000)
	dir := folder(t, map[string]string{"a.json": body})
	spec := reading(behavior("json", filepath.Join(dir, "a.json")))
	want, f := decodeAll(t, spec, body)
	if f != nil {
		t.Fatal(f.reason)
	}
	s := sized(t, spec, setupOf(spec, dir, 0, 1), 10_000, 4096)
	if len(s.splits) < 20 {
		t.Fatalf("only %d splits", len(s.splits))
	}
	got, err := drain(t, s, spec)
	if err != nil || got != want {
		t.Errorf("%v; the rows of one subtask differ from the file's", err)
	}
}

func TestChangedFiles(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "1\n2\n3\n", "b": "4\n5\n"})
	table := one("csv", bigint)
	table.Options = map[string]string{"path": dir}
	spec := reading(table)
	s := sized(t, spec, setupOf(spec, dir, 0, 1), 2, blockSize)
	if b, _, _, err := s.Next(context.Background()); err != nil || b == nil {
		t.Fatal(b, err)
	}
	state := snapshots(t, s)
	if got, err := drain(t, s, spec); err != nil || got != "2\n3\n4\n5\n" {
		t.Fatal(got, err)
	}
	finished := snapshots(t, s)
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("4\n5\n6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	setup := setupOf(spec, dir, 0, 1)
	setup.Restored, setup.List = true, state
	_, err := Open(context.Background(), setup)
	if !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), filepath.Join(dir, "b")+" has changed") {
		t.Errorf("a changed file: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if _, err = Open(context.Background(), setup); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a file that is gone: %v", err)
	}
	setup.List = finished
	done, err := Open(context.Background(), setup)
	if err != nil {
		t.Fatalf("nothing is left to read, and still: %v", err)
	}
	if got, err := drain(t, done, spec); got != "" || err != nil {
		t.Errorf("read %q again, %v", got, err)
	}
}

func TestFileChangesWhileRead(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "1\n2\n"})
	table := one("csv", bigint)
	table.Options = map[string]string{"path": dir}
	spec := reading(table)
	s := sized(t, spec, setupOf(spec, dir, 0, 1), 100, blockSize)
	if err := s.open(&s.splits[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("1\n2\n3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := s.Next(context.Background()); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// TestFileIsCutWhileRead: what is read of a file that has been cut or overwritten is no row at
// fault, nor a bad disk: the file has changed.
func TestFileIsCutWhileRead(t *testing.T) {
	t.Parallel()
	const line = "1234567\n"
	body := strings.Repeat(line, 1000)
	for name, now := range map[string]string{"cut": body[:4004], "overwritten": strings.Repeat("not one\n", 1000)[:7996]} {
		dir := folder(t, map[string]string{"a": body})
		table := one("csv", bigint)
		table.Options = map[string]string{"path": dir}
		spec := reading(table)
		s := sized(t, spec, setupOf(spec, dir, 0, 1), 100_000, 64)
		if b, _, _, err := s.Next(context.Background()); err != nil || b == nil {
			t.Fatal(b, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := drain(t, s, spec)
		want := fmt.Sprintf("a has changed since the job began to read it (8000 bytes then, %d now)", len(now))
		if !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRestoredSplitsAreShared(t *testing.T) {
	t.Parallel()
	var old filesystem
	for i := range int64(8) {
		old.splits = append(old.splits, split{input: input{Path: "f", Size: 80}, Start: i * 10, End: i*10 + 10, Position: i * 10, Done: i%2 == 0})
	}
	all, err := restoredSplits(snapshots(t, &old))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if own := share(all, i, 4); len(own) != 2 || own[0].Done || !own[1].Done {
			t.Errorf("subtask %d of 4 got %+v", i, own)
		}
	}
	old.splits[3].Mtime = 7
	if _, err := restoredSplits(snapshots(t, &old)); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("two versions of a file: %v", err)
	}
}

// A file appears while the subtasks open one after the other: all of them go by the same
// files, so that none is read twice or by nobody.
func TestSubtasksAgreeOnFiles(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"b": "1\n", "c": "2\n", "d": "3\n"})
	table := plan.Table{Name: "t", Connector: "filesystem", Format: "csv", Options: map[string]string{"path": dir}, Columns: []plan.Column{col("n", bigint)}}
	agreed := map[string][]byte{}
	var read string
	for i := range 2 {
		setup := setupOf(reading(table), dir, i, 2)
		setup.Agree = func(_ context.Context, name string, mine []byte) ([]byte, error) {
			if agreed[name] == nil {
				agreed[name] = mine
			}
			return agreed[name], nil
		}
		s, err := Open(t.Context(), setup)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := drain(t, s, setup.Operator.Source)
		if err != nil {
			t.Fatal(err)
		}
		read += rows
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte("4\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if read != "1\n3\n2\n" {
		t.Errorf("read %q", read)
	}
}

func TestStateForm(t *testing.T) {
	t.Parallel()
	s := filesystem{splits: []split{
		{input: input{Path: "in/a.csv", Size: 40 << 20, Mtime: 1511544070000000001}, Start: 32 << 20, End: 40 << 20, Position: 33 << 20},
		{input: input{Path: "in/b.csv", Size: 5}, End: 5, Position: 5, Done: true},
	}}
	want := `{"path":"in/a.csv","size":41943040,"mtime":1511544070000000001,"start":33554432,"end":41943040,"position":34603008}
{"path":"in/b.csv","size":5,"mtime":0,"start":0,"end":5,"position":5,"done":true}
`
	var got strings.Builder
	for _, item := range snapshots(t, &s) {
		fmt.Fprintf(&got, "%s\n", item)
	}
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
	d := datagen{stripes: []stripe{{Split: 3, Next: 134144}}}
	if got := string(snapshots(t, &d)[0]); got != `{"split":3,"next":134144}` {
		t.Errorf("got %s", got)
	}
}
