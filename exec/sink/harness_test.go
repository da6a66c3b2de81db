package sink

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/planner/expr"
	"weir/planner/plan"
)

const job = weir.JobID("job_0123456789abcdef0123456789abcdef")

func col(name string, k expr.Kind) plan.Column {
	return plan.Column{Name: name, Type: expr.Type{Kind: k}}
}

// numbers is a table with one column.
func numbers(format, path string) plan.Table {
	return plan.Table{Name: "out", Connector: "filesystem", Format: format, Options: map[string]string{"path": path}, Columns: []plan.Column{col("n", expr.BigInt)}}
}

func setupOf(table plan.Table, root string, attempt int64, subtask, parallelism int) exec.Setup {
	return exec.Setup{
		Job: job, Attempt: weir.AttemptID{Number: attempt, Tag: "0000000" + strconv.FormatInt(attempt%10, 10)},
		Operator: plan.Operator{ID: "sink_out", Kind: plan.Sink, Sink: &plan.SinkSpec{Table: table}},
		Subtask:  subtask, Parallelism: parallelism, Files: []string{root},
	}
}

// A fatal is a test of any kind.
type fatal interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func open(t fatal, setup exec.Setup) *filesystem {
	t.Helper()
	s, err := Open(context.Background(), setup)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*filesystem)
}

// ints makes a batch of one column.
func ints(values ...int64) *batch.Batch {
	b := batch.New([]batch.Physical{batch.Ints}, len(values))
	for _, v := range values {
		b.Columns[0].AppendInt(v)
		b.EndRow(batch.Insert)
	}
	return b
}

func process(t fatal, s exec.Operator, b *batch.Batch) {
	t.Helper()
	if err := s.Process(b, nil); err != nil {
		t.Fatal(err)
	}
}

func snapshot(t fatal, s *filesystem, id weir.CheckpointID) []json.RawMessage {
	t.Helper()
	items, err := s.Snapshot(id)
	if err != nil {
		t.Fatal(err)
	}
	if seal := s.Seal(); seal != nil {
		if err := seal(); err != nil {
			t.Fatal(err)
		}
	}
	return items
}

func commit(t fatal, s *filesystem, id weir.CheckpointID) {
	t.Helper()
	if err := s.Commit(context.Background(), id); err != nil {
		t.Fatal(err)
	}
}

// names lists a folder.
func names(t fatal, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// visible lists the published files of a folder.
func visible(t fatal, dir string) []string {
	t.Helper()
	return slices.DeleteFunc(names(t, dir), func(n string) bool { return strings.HasPrefix(n, ".") })
}

// published gathers the numbers in all published files, in ascending order.
func published(t fatal, dir string) []int64 {
	t.Helper()
	var all []int64
	for _, name := range visible(t, dir) {
		body := read(t, filepath.Join(dir, name))
		for line := range strings.Lines(body) {
			n, err := strconv.ParseInt(strings.TrimSuffix(line, "\n"), 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

func read(t fatal, path string) string {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
