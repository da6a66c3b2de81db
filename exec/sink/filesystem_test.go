package sink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/planner/plan"
)

func TestLifeOfASegment(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	out := filepath.Join(dir, "new", "out")
	s := open(t, setupOf(numbers("csv", out), dir, 1, 0, 1))
	if items := snapshot(t, s, 1); len(items) != 0 || s.Pending() || len(names(t, out)) != 0 {
		t.Errorf("an empty segment left %s, %v", items, names(t, out))
	}
	process(t, s, ints(1, 2))
	if got := names(t, out); len(got) > 1 || len(visible(t, out)) > 0 {
		t.Errorf("while it is written: %v", got)
	}
	items := snapshot(t, s, 2)
	state := `{"job":"job_0123456789abcdef0123456789abcdef","operator":"sink_out","subtask":0,"barrier":2,"temp":".weir-job_0123456789abcdef0123456789abcdef-sink_out-0-2-1-00000001","final":"part-0123456789ab-sink_out-0-2.csv","rows":2,"bytes":4,"checksum":"d0b42254"}`
	if len(items) != 1 || string(items[0]) != state {
		t.Errorf("state %s", items)
	}
	if got := names(t, out); !slices.Equal(got, []string{".weir-job_0123456789abcdef0123456789abcdef-sink_out-0-2-1-00000001"}) || !s.Pending() {
		t.Errorf("sealed: %v", got)
	}
	process(t, s, ints(3))
	commit(t, s, 1)
	if len(visible(t, out)) != 0 {
		t.Error("a segment was committed before its decision")
	}
	commit(t, s, 2)
	commit(t, s, 2)
	want := []string{".weir-job_0123456789abcdef0123456789abcdef-sink_out-0-done-2", "part-0123456789ab-sink_out-0-2.csv"}
	if got := names(t, out); !slices.Equal(got, want) || s.Pending() {
		t.Errorf("published: %v", got)
	}
	if got := read(t, filepath.Join(out, want[1])); got != "1\n2\n" {
		t.Errorf("content %q", got)
	}
	snapshot(t, s, 3)
	commit(t, s, 3)
	process(t, s, ints(4))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	want = []string{".weir-job_0123456789abcdef0123456789abcdef-sink_out-0-done-3", want[1], "part-0123456789ab-sink_out-0-3.csv"}
	if diff := cmp.Diff(want, names(t, out)); diff != "" {
		t.Errorf("closed: %s", diff)
	}
}

// A world is a job with one sink: what is durable, and the attempt that runs.
type world struct {
	t       *rapid.T
	dir     string
	table   plan.Table
	attempt int64
	sinks   []*filesystem
	next    int64             // the next row
	barrier weir.CheckpointID // the last one given out

	base     weir.CheckpointID // the last decision
	baseNext int64
	baseList []json.RawMessage
	seen     map[string]string // published files
	reader   string            // where readers move them
	taken    int
}

// start begins an attempt from the base.
func (w *world) start() {
	w.attempt++
	w.next = w.baseNext
	parallelism := rapid.IntRange(1, 4).Draw(w.t, "parallelism")
	w.sinks = nil
	for i := range parallelism {
		setup := setupOf(w.table, w.dir, w.attempt, i, parallelism)
		setup.Restored, setup.List = w.base > 0, w.baseList
		w.sinks = append(w.sinks, open(w.t, setup))
	}
}

// crash ends the attempt; its processes may be gone without a word.
func (w *world) crash() {
	for _, s := range w.sinks {
		if rapid.Bool().Draw(w.t, "orderly") {
			if err := s.Close(); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.start()
}

func (w *world) write() {
	for range rapid.IntRange(1, 5).Draw(w.t, "rows") {
		process(w.t, w.sinks[rapid.IntRange(0, len(w.sinks)-1).Draw(w.t, "subtask")], ints(w.next))
		w.next++
	}
}

// checkpoint takes the barrier to all subtasks, and decides unless it is aborted.
func (w *world) checkpoint(abort bool) {
	w.barrier++
	var list []json.RawMessage
	for _, s := range w.sinks {
		list = append(list, snapshot(w.t, s, w.barrier)...)
	}
	if !abort {
		w.base, w.baseNext, w.baseList = w.barrier, w.next, list
	}
}

// commit lets some of the subtasks commit, and one of those only a part of it.
func (w *world) commit() {
	for _, s := range w.sinks {
		switch rapid.IntRange(0, 4).Draw(w.t, "commit") {
		case 0:
		case 4: // it dies before it lets go of the sealed files
			sortSegments(s.segments)
			n := 0
			for ; n < len(s.segments) && s.segments[n].Barrier <= w.base; n++ {
				if err := s.folder.publish(&s.segments[n]); err != nil {
					w.t.Fatal(err)
				}
			}
			if _, err := s.folder.mark(s.segments[:n]); err != nil {
				w.t.Fatal(err)
			}
		case 1: // it dies between two steps
			for i := range s.segments {
				if s.segments[i].Barrier <= w.base && rapid.Bool().Draw(w.t, "publish") {
					if err := s.folder.publish(&s.segments[i]); err != nil {
						w.t.Fatal(err)
					}
				}
			}
		default:
			commit(w.t, s, w.base)
		}
	}
}

// take is a reader that moves published files away: those that are marked, or whose sealed
// file has gone.
func (w *world) take() {
	all := names(w.t, w.dir)
	for _, name := range visible(w.t, w.dir) {
		id := strings.Split(strings.TrimSuffix(name, ".csv"), "-") // … subtask, barrier
		subtask, barrier := id[len(id)-2], id[len(id)-1]
		prefix := ".weir-" + string(job) + "-sink_out-" + subtask
		sealed := slices.ContainsFunc(all, func(n string) bool { return strings.HasPrefix(n, prefix+"-"+barrier+"-") })
		if sealed && !slices.Contains(all, prefix+"-done-"+barrier) || !rapid.Bool().Draw(w.t, "take") {
			continue
		}
		w.taken++
		if err := os.Rename(filepath.Join(w.dir, name), filepath.Join(w.reader, fmt.Sprint(w.taken))); err != nil {
			w.t.Fatal(err)
		}
	}
}

// readable are the rows that readers have, or can get, in ascending order.
func (w *world) readable() []int64 {
	all := append(published(w.t, w.dir), published(w.t, w.reader)...)
	slices.Sort(all)
	return all
}

// check looks at the published files as a reader would: they never change, and hold
// rows of decided checkpoints, each once.
func (w *world) check() {
	for _, name := range visible(w.t, w.dir) {
		body := read(w.t, filepath.Join(w.dir, name))
		if was, ok := w.seen[name]; ok && was != body {
			w.t.Fatalf("%s changed from %q to %q", name, was, body)
		}
		w.seen[name] = body
	}
	all := w.readable()
	for i, n := range all {
		if n >= w.baseNext || i > 0 && all[i-1] == n {
			w.t.Fatalf("published %v although the base ends at row %d", all, w.baseNext)
		}
	}
}

func TestExactlyOnce(t *testing.T) {
	t.Parallel()
	base := tempDir(t)
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "out")
		if err != nil {
			t.Fatal(err)
		}
		reader, err := os.MkdirTemp(base, "reader")
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, dir: dir, table: numbers("csv", dir), seen: map[string]string{}, reader: reader}
		w.start()
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				w.write()
			case 2:
				w.checkpoint(false)
			case 3:
				w.checkpoint(true)
			case 4:
				w.commit()
			case 5:
				w.crash()
			case 6:
				w.take()
			}
			w.check()
		}
		w.checkpoint(false)
		for _, s := range w.sinks {
			commit(t, s, w.base)
		}
		w.check()
		var want []int64
		for i := range w.next {
			want = append(want, i)
		}
		if got := w.readable(); !slices.Equal(got, want) {
			t.Fatalf("published %v, want %v", got, want)
		}
		for _, s := range w.sinks {
			if s.Pending() {
				t.Fatal("a segment still waits")
			}
			s.Close()
		}
	})
}

func TestRestoredCommit(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	first := open(t, setupOf(numbers("csv", dir), dir, 1, 0, 1))
	process(t, first, ints(1))
	list := snapshot(t, first, 5)
	restore := func(attempt int64) *filesystem {
		setup := setupOf(numbers("csv", dir), dir, attempt, 0, 1)
		setup.Restored, setup.List = true, list
		return open(t, setup)
	}
	part := filepath.Join(dir, "part-0123456789ab-sink_out-0-5.csv")

	second := restore(2)
	commit(t, second, 4)
	if len(visible(t, dir)) != 0 {
		t.Fatal("committed too early")
	}
	commit(t, second, 5)
	commit(t, first, 5) // an attempt that does not know yet that it is over
	if got := read(t, part); got != "1\n" {
		t.Fatalf("got %q", got)
	}
	if err := os.Rename(part, filepath.Join(dir, "taken")); err != nil { // by a reader
		t.Fatal(err)
	}
	commit(t, restore(3), 5)
	if got := visible(t, dir); !slices.Equal(got, []string{"taken"}) {
		t.Errorf("a file that was taken away came back: %v", got)
	}
	if err := os.WriteFile(part, []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := restore(4).Commit(context.Background(), 5); !errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), part) {
		t.Errorf("a foreign file of that name: %v", err)
	}
	for _, name := range names(t, dir) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	last := restore(5)
	err := last.Commit(context.Background(), 5)
	if !errors.Is(err, weir.ErrNotFound) || !strings.Contains(err.Error(), "segment "+string(job)+"/sink_out/0/5") {
		t.Errorf("a lost segment: %v", err)
	}
	_, marker, _ := strings.Cut(fmt.Sprint(err), "make an empty file ")
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	commit(t, last, 5) // its user has given it up
}

// A sink that ends between its marker and letting go of the sealed file leaves both.
// Whoever restores the segment does not publish it again after a reader took it away.
func TestMarkedSegmentStaysAway(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	first := open(t, setupOf(numbers("csv", dir), dir, 1, 0, 1))
	process(t, first, ints(1))
	list := snapshot(t, first, 5)
	if err := first.folder.publish(&first.segments[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := first.folder.mark(first.segments); err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(dir, "part-0123456789ab-sink_out-0-5.csv")
	restore := func(attempt int64) *filesystem {
		setup := setupOf(numbers("csv", dir), dir, attempt, 0, 1)
		setup.Restored, setup.List = true, list
		return open(t, setup)
	}
	if err := os.Rename(part, filepath.Join(dir, "taken")); err != nil {
		t.Fatal(err)
	}
	second := restore(2)
	commit(t, second, 5)
	if got := visible(t, dir); !slices.Equal(got, []string{"taken"}) {
		t.Errorf("a file that was taken away came back: %v", got)
	}
	if second.Pending() || len(names(t, dir)) != 2 {
		t.Errorf("left: %v", names(t, dir))
	}
}

// Two segments of one writer that are published together, or by two subtasks after a
// restore: the higher marker does not stand for the lower one, neither where a sink ends
// before it has let go of the sealed files nor where the next one cleans up.
func TestMarkedSegmentsStayAway(t *testing.T) {
	t.Parallel()
	for _, parallelism := range []int{1, 2} {
		dir := tempDir(t)
		first := open(t, setupOf(numbers("csv", dir), dir, 1, 0, 1))
		process(t, first, ints(1))
		snapshot(t, first, 3)
		process(t, first, ints(2))
		list := snapshot(t, first, 5)
		restore := func(attempt int64) (sinks []*filesystem) {
			for i := range parallelism {
				setup := setupOf(numbers("csv", dir), dir, attempt, i, parallelism)
				setup.Restored, setup.List = true, list
				sinks = append(sinks, open(t, setup))
			}
			return sinks
		}
		second := restore(2)
		for _, s := range second[1:] {
			commit(t, s, 5)
		}
		for i := range second[0].segments {
			if err := second[0].folder.publish(&second[0].segments[i]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := second[0].folder.mark(second[0].segments); err != nil { // and dies
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "part-0123456789ab-sink_out-0-3.csv"), filepath.Join(dir, "taken")); err != nil {
			t.Fatal(err)
		}
		for _, s := range restore(3) {
			commit(t, s, 5)
		}
		if got := published(t, dir); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("parallelism %d: readers get %v, files %v", parallelism, got, names(t, dir))
		}
	}
}

// A job that starts from another one's snapshot and writes elsewhere is told so before it
// runs: the rows that the other one sealed are not there. It goes on once they are.
func TestSegmentOfAnotherFolder(t *testing.T) {
	t.Parallel()
	dir, other := tempDir(t), tempDir(t)
	first := open(t, setupOf(numbers("csv", dir), dir, 1, 0, 1))
	process(t, first, ints(1))
	setup := setupOf(numbers("csv", other), other, 1, 0, 1)
	setup.Job = "job_00000000000000000000000000000002"
	setup.Restored, setup.List = true, snapshot(t, first, 5)
	sealed := first.segments[0].Temp
	commit(t, first, 5)
	part := "part-0123456789ab-sink_out-0-5.csv"
	_, err := Open(context.Background(), setup)
	if !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), sealed) || !strings.Contains(err.Error(), other) {
		t.Fatalf("opened in another folder: %v", err)
	}
	same := setup
	same.Operator.Sink = &plan.SinkSpec{Table: numbers("csv", dir)}
	same.Files = []string{dir}
	commit(t, open(t, same), 5)
	if got := published(t, dir); !slices.Equal(got, []int64{1}) {
		t.Errorf("in the same folder: %v", got)
	}
	if err := os.WriteFile(filepath.Join(other, part), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := open(t, setup)
	process(t, second, ints(2))
	snapshot(t, second, 6)
	commit(t, second, 6)
	if got := published(t, other); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("once it is there: %v", got)
	}
}

func TestDamagedSegment(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	s := open(t, setupOf(numbers("csv", dir), dir, 1, 0, 1))
	process(t, s, ints(1, 2, 3))
	snapshot(t, s, 1)
	if err := os.Truncate(filepath.Join(dir, s.segments[0].Temp), 3); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(context.Background(), 1); err == nil || !strings.Contains(err.Error(), "3 bytes instead of 6") {
		t.Errorf("got %v", err)
	}
	if len(visible(t, dir)) != 0 {
		t.Error("it was published all the same")
	}
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	prefix := ".weir-" + string(job) + "-sink_out-"
	old := time.Now().Add(-8 * 24 * time.Hour)
	files := map[string]bool{ // whether it stays
		prefix + "0-open-1-00000001":                            false,
		prefix + "3-open-2-00000002":                            false,
		prefix + "1-open-3-00000003":                            true,  // of this attempt
		prefix + "1-open-4-00000004":                            true,  // of a newer one
		prefix + "0-7-2-00000002":                               true,  // a savepoint may name it
		prefix + "1-7-2-00000002":                               true,  // restored
		prefix + "2-7-2-00000002":                               false, // old
		prefix + "0-done-5":                                     false,
		prefix + "0-done-16":                                    true,
		prefix + "1-done-5":                                     true,
		".weir-job_ffff-sink_out-0-open-1-00000001":             true,
		".weir-" + string(job) + "-sink_out2-0-open-1-00000001": true,
		"part-0123456789ab-sink_out-0-1.csv":                    true,
		"data":                                                  true,
	}
	for name := range files {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{prefix + "2-7-2-00000002", prefix + "1-7-2-00000002"} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	setup := setupOf(numbers("csv", dir), dir, 3, 1, 2)
	setup.List = []json.RawMessage{fmt.Appendf(nil, `{"temp":"%s","final":"part-x"}`, prefix+"1-7-2-00000002")}
	open(t, setup)
	if got := len(names(t, dir)); got != len(files) {
		t.Errorf("subtask 1 removed %d files", len(files)-got)
	}
	setup.Subtask = 0
	open(t, setup)
	left := names(t, dir)
	for name, stays := range files {
		if slices.Contains(left, name) != stays {
			t.Errorf("%s is there: %v, want %v", name, !stays, stays)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	outside := tempDir(t)
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for path, format := range map[string]string{
		outside: "csv", filepath.Join(dir, "link"): "csv", filepath.Join(dir, "link", "deep"): "csv", filepath.Join(dir, "..", "x"): "csv",
		filepath.Join(dir, "file"): "csv", "": "csv", dir: "parquet",
	} {
		if _, err := Open(context.Background(), setupOf(numbers(format, path), dir, 1, 0, 1)); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if len(names(t, outside)) != 0 {
		t.Error("something was made outside the roots")
	}
	table := numbers("csv", dir)
	for option, value := range map[string]string{"csv.delimiter": "ab", "csv.null": "a,b"} {
		table.Options = map[string]string{"path": dir, option: value}
		if _, err := Open(context.Background(), setupOf(table, dir, 1, 0, 1)); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("%s: %v", option, err)
		}
	}
	setup := setupOf(numbers("csv", dir), dir, 1, 0, 1)
	setup.List = []json.RawMessage{[]byte(`{"temp":"../x","final":"y"}`)}
	if _, err := Open(context.Background(), setup); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("a name with a folder: %v", err)
	}
	s := open(t, setupOf(numbers("csv", dir), dir, 1, 0, 1))
	b := ints(1)
	b.Kinds = []batch.RowKind{batch.UpdateAfter}
	if err := s.Process(b, nil); err == nil || !strings.Contains(err.Error(), "+U") {
		t.Errorf("a change: %v", err)
	}
}

func TestLongSegment(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	s := open(t, setupOf(numbers("json", dir), dir, 1, 0, 1))
	var want strings.Builder
	for i := range int64(50_000) {
		process(t, s, ints(i))
		fmt.Fprintf(&want, "{\"n\":%d}\n", i)
	}
	snapshot(t, s, 9)
	commit(t, s, 9)
	if got := read(t, filepath.Join(dir, "part-0123456789ab-sink_out-0-9.json")); got != want.String() {
		t.Errorf("%d bytes differ from %d", len(got), want.Len())
	}
}

func TestBlackhole(t *testing.T) {
	t.Parallel()
	table := plan.Table{Name: "out", Connector: "blackhole"}
	s, err := Open(context.Background(), setupOf(table, "", 1, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	b := ints(1, 2, 3)
	b.Kinds, b.Sel = []batch.RowKind{batch.UpdateBefore, batch.UpdateAfter, batch.Delete}, []int32{0, 2}
	process(t, s, b)
	if got := s.(*Blackhole).Rows(); got != 2 {
		t.Errorf("%d rows", got)
	}
	if _, ok := s.(exec.Snapshotter); ok {
		t.Error("it has state")
	}
	if err := errors.Join(s.Flush(nil), s.End(nil), s.Close()); err != nil {
		t.Error(err)
	}
	table.Connector = "datagen"
	if _, err := Open(context.Background(), setupOf(table, "", 1, 0, 1)); !errors.Is(err, weir.ErrInvalid) {
		t.Errorf("datagen: %v", err)
	}
}

func TestNamesStayShort(t *testing.T) {
	t.Parallel()
	w := writer{job: job, operator: weir.OperatorID(strings.Repeat("x", 500)), attempt: weir.AttemptID{Number: 1, Tag: "00000001"}, format: "csv"}
	s := w.seal(1<<62, 1, 1, 1)
	if len(s.Temp) > 200 || len(s.Final) > 200 {
		t.Error(len(s.Temp), len(s.Final))
	}
	w.operator += "y"
	if other := w.seal(1<<62, 1, 1, 1); other.Final == s.Final {
		t.Error("two operators share a name")
	}
}
