package source

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/exec"
	"weir/planner/plan"
)

// pairs is a CSV table of two columns.
func pairs(path string, options ...string) *plan.SourceSpec {
	table := plan.Table{
		Name: "t", Connector: "filesystem", Format: "csv", Options: map[string]string{"path": path},
		Columns: []plan.Column{col("k", text), col("n", bigint)},
	}
	for i := 0; i+1 < len(options); i += 2 {
		table.Options[options[i]] = options[i+1]
	}
	return reading(table)
}

// drawBytes makes a file of anything that means something in CSV, as the first quote stands
// anywhere, if at all: in the first record or behind many, near a cut or not.
func drawBytes(t *rapid.T, delimiter string) string {
	plain := rapid.SampledFrom([]string{"a" + delimiter + "1", "b" + delimiter + "22\r", "", "\r", "x", "1" + delimiter + "c", delimiter + "3", strings.Repeat("y", 70) + delimiter + "4"})
	quoted := rapid.SampledFrom([]string{
		`"a` + "\n" + `b"` + delimiter + "5", `"a""b"` + delimiter + "6", `""` + delimiter + `"7"`, `c` + delimiter + `"8"` + "\r", `"` + "\n\n\n" + `"` + delimiter + "9", `"` + strings.Repeat("z\n", 40) + `"` + delimiter + "10",
		`a"b` + delimiter + "1", `"a` + delimiter + "1", `1` + delimiter + `"b`, `"a"b` + delimiter + "1", `"`, `""`, `"""`, `a` + delimiter + `1` + delimiter + `"` + "\n" + `"`,
	})
	var s strings.Builder
	s.WriteString(rapid.SampledFrom([]string{"", "", "", "\ufeff"}).Draw(t, "mark"))
	for _, line := range rapid.SliceOfN(plain, 0, 12).Draw(t, "plain") {
		s.WriteString(line + "\n")
	}
	if rapid.IntRange(0, 3).Draw(t, "quotes") > 0 {
		for _, line := range rapid.SliceOfN(rapid.OneOf(plain, quoted), 0, 10).Draw(t, "lines") {
			s.WriteString(line + "\n")
		}
	}
	body := s.String()
	if rapid.Bool().Draw(t, "no last line feed") {
		body = strings.TrimSuffix(body, "\n")
	}
	return body
}

// openCuts says where a file is to be cut: each cut, and whether it holds.
func openCuts(body string, size int) (cuts []int, open []bool) {
	for at := size; at < len(body); at += size {
		first := len(body)
		if i := strings.IndexByte(body[at-1:], '\n'); i >= 0 {
			first = at + i
		}
		cuts, open = append(cuts, at), append(open, !strings.Contains(body[:first], `"`))
	}
	return cuts, open
}

// TestCuts reads files of any bytes in splits of any size at any parallelism, restored at
// another one at any moment, from snapshots of before cuts could be shut, too, and such as have
// forgotten what was known. Rows and rejected records are those of a file that is read as one,
// and the cuts that hold are those that the file alone says.
func TestCuts(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "in")
		if err != nil {
			t.Fatal(err)
		}
		delimiter := rapid.SampledFrom([]string{",", ",", ";", "7"}).Draw(t, "delimiter")
		header := rapid.IntRange(0, 3).Draw(t, "header") == 0
		size := rapid.IntRange(1, 120).Draw(t, "split size")
		bodies := map[string]string{}
		for i := range rapid.IntRange(1, 3).Draw(t, "files") {
			path := filepath.Join(dir, fmt.Sprintf("f%d", i))
			bodies[path] = drawBytes(t, delimiter)
			if header {
				names := rapid.SampledFrom([]string{"k;n\n", "K;n\r\n", "\"k\";n\n"}).Draw(t, "names")
				bodies[path] = strings.ReplaceAll(names, ";", delimiter) + strings.TrimPrefix(bodies[path], "\ufeff")
			}
			if err := os.WriteFile(path, []byte(bodies[path]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		spec := pairs(dir, "csv.delimiter", delimiter, "csv.header", fmt.Sprint(header))
		r := rounds{spec: spec, dir: dir, size: int64(size), block: rapid.SampledFrom([]int{64, 100, 1000}).Draw(t, "block")}

		var once catcher
		setup := setupOf(spec, dir, 0, 1)
		setup.Rejects = &once
		out, err := drain(t, sized(t, spec, setup, splitSize, blockSize), spec)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })

		old := rapid.IntRange(0, 3).Draw(t, "an old snapshot") == 0
		var items []json.RawMessage
		if old {
			items = itemsOfBefore(t, bodies, int64(size))
		}
		got, last := r.read(t, items)
		slices.Sort(want)
		slices.Sort(got)
		slices.Sort(once.got)
		slices.Sort(r.rejected.got)
		if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
			t.Fatalf("rows: -whole +cut\n%s", diff)
		}
		if diff := cmp.Diff(strings.Join(once.got, "\n"), strings.Join(r.rejected.got, "\n")); diff != "" {
			t.Fatalf("rejected: -whole +cut\n%s", diff)
		}
		if !old {
			checkCuts(t, bodies, size, last)
		}
	})
}

// itemsOfBefore is the state that was when a file was cut everywhere, or, with a quote
// anywhere, nowhere.
func itemsOfBefore(t *rapid.T, bodies map[string]string, size int64) (items []json.RawMessage) {
	for path, body := range bodies {
		files, err := inputs([]string{filepath.Dir(path)}, []string{path}, false)
		if err != nil {
			t.Fatal(err)
		}
		step := size
		if strings.Contains(body, `"`) {
			step = max(files[0].Size, 1)
		}
		for start := int64(0); start == 0 || start < files[0].Size; start += step {
			items = append(items, fmt.Appendf(nil, `{"path":%q,"size":%d,"mtime":%d,"start":%d,"end":%d,"position":%d}`,
				path, files[0].Size, files[0].Mtime, start, min(start+step, files[0].Size), start))
		}
	}
	return items
}

// checkCuts compares the splits in the end with what the files alone say.
func checkCuts(t *rapid.T, bodies map[string]string, size int, splits []split) {
	for path, body := range bodies {
		cuts, open := openCuts(body, size)
		for _, s := range splits {
			if s.Path != path {
				continue
			}
			k := int(s.Start) / size // its own cut is the one before, its next is this
			end := min(int(s.Start)+size, len(body))
			if k < len(cuts) && !open[k] && (k == 0 || open[k-1]) {
				end = len(body)
			}
			mark := strings.HasPrefix(body, "\ufeff") && k == 0 && end <= 4 // a first record behind the mark
			if !mark && s.End != int64(end) || !s.Done {
				t.Fatalf("file %q in splits of %d: split %d is %+v, wants to end at %d; cuts %v open %v", body, size, k, s, end, cuts, open)
			}
			if k > 0 && !open[k-1] && s.Position != s.Start {
				t.Fatalf("file %q: split %d has been read: %+v", body, k, s)
			}
		}
	}
}

// rounds reads a table again and again from snapshots.
type rounds struct {
	spec     *plan.SourceSpec
	dir      string
	size     int64
	block    int
	rejected catcher
}

func (r *rounds) open(t *rapid.T, restored bool, items []json.RawMessage) []exec.Source {
	parallelism := rapid.IntRange(1, 4).Draw(t, "parallelism")
	var sources []exec.Source
	for i := range parallelism {
		setup := setupOf(r.spec, r.dir, i, parallelism)
		setup.Restored, setup.List, setup.Rejects = restored, items, &r.rejected
		sources = append(sources, sized(t, r.spec, setup, r.size, r.block))
	}
	return sources
}

// read reads everything, with restores in the midst; it returns the rows and the splits as
// they are in the end.
func (r *rounds) read(t *rapid.T, items []json.RawMessage) (got []string, last []split) {
	sources := r.open(t, items != nil, items)
	for range rapid.IntRange(0, 4).Draw(t, "restores") {
		for range rapid.IntRange(0, 20).Draw(t, "polls") {
			got = append(got, poll(t, sources[rapid.IntRange(0, len(sources)-1).Draw(t, "subtask")], r.spec)...)
		}
		items := snapshots(t, sources...)
		for i := range items {
			if rapid.IntRange(0, 3).Draw(t, "forget") == 0 {
				items[i] = forget(t, items[i])
			}
		}
		for _, s := range sources {
			s.Close()
		}
		sources = r.open(t, true, items)
	}
	for _, s := range sources {
		out, err := drain(t, s, r.spec)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })...)
		last = append(last, s.(*filesystem).splits...)
	}
	return got, last
}

// forget takes what is known of quotes out of an item, as it was before.
func forget(t *rapid.T, item json.RawMessage) json.RawMessage {
	var s split
	if err := json.Unmarshal(item, &s); err != nil {
		t.Fatal(err)
	}
	s.Clean = 0
	out, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFirstRowOfHugeFile: the first row is there before the file has been looked through, and
// a file that begins with a quote is never looked through but by who reads it.
func TestFirstRowOfHugeFile(t *testing.T) {
	t.Parallel()
	for body, splits := range map[string]int{strings.Repeat("a,1\n", 100_000): 1, "\"a\",1\n" + strings.Repeat("a,1\n", 100_000): 0} {
		path := filepath.Join(folder(t, map[string]string{"f": body}), "f")
		if err := os.Truncate(path, 64<<30); err != nil { // a hole, but it would take a minute to read
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		spec := pairs(path)
		first, err := Open(ctx, setupOf(spec, filepath.Dir(path), 0, 2))
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		if b, _, _, err := first.Next(ctx); err != nil || b == nil {
			t.Fatalf("first batch: %v, %v", b, err)
		}
		second, err := Open(ctx, setupOf(spec, filepath.Dir(path), 1, 2))
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		f := second.(*filesystem)
		for calls := 0; !f.reader.entered && !f.splits[0].Done; calls++ {
			clean := f.reader.clean
			if _, _, _, err := f.Next(ctx); err != nil {
				t.Fatal(err)
			}
			if looked := f.reader.clean - clean; looked > lookBlocks*blockSize && clean < splitSize-1-lookBlocks*blockSize || calls > splitSize/blockSize {
				t.Fatalf("call %d of Next looks through [%d, %d)", calls, clean, f.reader.clean)
			}
		}
		undone := slices.IndexFunc(f.splits, func(s split) bool { return !s.Done })
		if (undone >= 0) != (splits > 0) {
			t.Errorf("%.10q: the first split left is %d of %d", body, undone, len(f.splits))
		}
	}
}

// TestCleanIsRemembered: a restored job does not look through again what was looked through.
func TestCleanIsRemembered(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": strings.Repeat("a,1\n", 5000)})
	spec := pairs(dir)
	s := sized(t, spec, setupOf(spec, dir, 1, 2), 10_000, 256)
	for range 3 {
		if b, _, _, err := s.Next(t.Context()); err != nil || b != nil {
			t.Fatal(b, err)
		}
	}
	if c := s.splits[0].Clean; c != 3*lookBlocks*256 {
		t.Fatalf("free of quotes up to %d", c)
	}
	setup := setupOf(spec, dir, 0, 3)
	setup.Restored, setup.List = true, snapshots(t, s, sized(t, spec, setupOf(spec, dir, 0, 2), 10_000, 256))
	for i := range 3 {
		setup.Subtask, setup.Parallelism = i, 3
		for _, sp := range sized(t, spec, setup, 10_000, 256).splits {
			if sp.Clean != 3*lookBlocks*256 {
				t.Errorf("subtask %d: %+v", i, sp)
			}
		}
	}
}

// TestPaceOfShutCuts: who reads a file on behind a shut cut takes over the share of the pace of
// those who were to.
func TestPaceOfShutCuts(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("a,1\n", 25) + "\"b\",1\n" + strings.Repeat("a,1\n", 100)
	dir := folder(t, map[string]string{"a": body})
	spec := pairs(dir)
	spec.RowsPerSecond = 100
	rates := 0.0
	for i := range 3 {
		s := sized(t, spec, setupOf(spec, dir, i, 3), 50, blockSize)
		before := s.pace.rate
		now := time.Unix(1, 0)
		s.now = func() time.Time { now = now.Add(time.Second); return now }
		if _, err := drain(t, s, spec); err != nil {
			t.Fatal(err)
		}
		if before < 25 || before > 40 {
			t.Errorf("subtask %d began with a pace of %v", i, before)
		}
		rates += s.pace.rate
	}
	if rates < 99.9 || rates > 100.1 {
		t.Errorf("a pace of %v in all", rates)
	}
}
