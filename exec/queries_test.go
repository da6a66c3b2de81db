package exec_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/exectest"

	"weir/exec/sink"
	"weir/exec/source"
	"weir/planner"
	"weir/planner/plan"
)

// TestQueries runs each testdata/queries/*.sql three ways, against one golden file:
// straight; at parallelism 2 with checkpoints, and stopped; resumed at 3. A script
// brings its input: "-- file NAME" begins a file, "--|" each line of it, "--:" one without
// its line feed. "-- on_row_error POLICY" adds the rejected rows to the answer, in order.
func TestQueries(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/queries/*.sql")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no queries: %v", err)
	}
	for _, path := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".sql"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			q := &query{golden: strings.TrimSuffix(path, ".sql") + ".golden", script: string(text)}
			q.test(t)
		})
	}
}

// A query is a script under test.
type query struct {
	script  string
	golden  string
	without planner.Rewrites
}

// switches are the rewrites left out, one at a time and then all; with WEIR_LONG every
// choice of them.
func switches() []planner.Rewrites {
	var list []planner.Rewrites
	for bits := 1; bits < 1<<6; bits++ {
		off := func(i int) bool { return bits>>i&1 == 1 }
		if os.Getenv("WEIR_LONG") != "" || bits&(bits-1) == 0 || bits == 1<<6-1 {
			list = append(list, planner.Rewrites{
				NoFold: off(0), NoMerge: off(1), NoPushDown: off(2), NoReadColumns: off(3), NoFilterBelow: off(4), NoSplit: off(5),
			})
		}
	}
	return list
}

// testRewrites runs every plan that the query has without some of the rewrites: the answer
// stays what it is. With WEIR_LONG each is stopped and resumed, too.
func (q *query) testRewrites(t *testing.T, planned *site) {
	t.Helper()
	seen := map[string]bool{encoded(t, planned.graph): true}
	for _, without := range switches() {
		plain := &query{script: q.script, golden: q.golden, without: without}
		graph, err := plain.plan(planned.dir)
		if err != nil {
			t.Fatal(err)
		}
		text := encoded(t, graph)
		if seen[text] {
			continue
		}
		seen[text] = true
		s, err := plain.site(t)
		if err != nil {
			t.Fatal(err)
		}
		job := exectest.Start(t, s.config(2, nil, &exectest.Stepper{}, 1<<30))
		plain.check(t, fmt.Sprintf("with %+v", without), plain.moved(t, s.finish(t, job)))
		if os.Getenv("WEIR_LONG") != "" {
			plain.testResumed(t, 1)
		}
	}
}

func encoded(t *testing.T, g *plan.Graph) string {
	t.Helper()
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// moved gives a failure the golden's name of the operator that fails: without a rewrite it
// is another one.
func (q *query) moved(t *testing.T, got string) string {
	t.Helper()
	at := place(got)
	if at < 0 || q.without == (planner.Rewrites{}) {
		return got
	}
	want, err := os.ReadFile(q.golden)
	if err != nil {
		t.Fatal(err)
	}
	return string(want[:max(place(string(want)), 0)]) + got[at:]
}

// place says where in a failure the operator's name ends and the table or column begins.
func place(failure string) int {
	if !strings.HasPrefix(failure, "failed: ") {
		return -1
	}
	if at := strings.Index(failure, ": table "); at >= 0 {
		return at
	}
	return strings.Index(failure, ": column ")
}

// A site is a folder with the script's input, its output, and its plan.
type site struct {
	dir   string
	graph *plan.Graph
	blobs blob.Store
}

func (q *query) test(t *testing.T) {
	straight, err := q.site(t)
	if err != nil {
		q.check(t, "refused", "refused: "+err.Error()+"\n")
		return
	}
	job := exectest.Start(t, straight.config(1, nil, &exectest.Stepper{}, 1<<30))
	q.check(t, "straight", straight.finish(t, job))
	q.testRewrites(t, straight)
	for _, steps := range []int{0, 1, 5} {
		q.testResumed(t, steps)
	}
}

// testResumed stops the query at parallelism 2, after so many batches, and resumes it at 3.
func (q *query) testResumed(t *testing.T, steps int) {
	t.Helper()
	s, err := q.site(t)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, failed := s.stopped(t, steps)
	if failed != "" {
		q.check(t, fmt.Sprintf("within %d batches, %+v", steps, q.without), q.moved(t, failed))
		return
	}
	c := s.config(3, snapshot, &exectest.Stepper{}, 1<<30)
	c.Encode, c.Attempt = true, 2
	q.check(t, fmt.Sprintf("resumed after %d batches, %+v", steps, q.without), q.moved(t, s.finish(t, exectest.Start(t, c))))
}

// stopped runs the job at parallelism 2 with a checkpoint after every batch, and kills
// it after so many of them; failed says that it failed by itself before.
func (s *site) stopped(t *testing.T, steps int) (snapshot *exectest.Snapshot, failed string) {
	t.Helper()
	stepper := &exectest.Stepper{}
	job := exectest.Start(t, s.config(2, nil, stepper, 0))
	snapshot, err := job.Checkpoint()
	for i := range steps {
		stepper.Allow(1)
		switch {
		case err != nil:
		case i == steps-1: // the last one is decided, and then nobody lives to commit it
			snapshot, err = job.Snapshot()
		default:
			snapshot, err = job.Checkpoint()
		}
	}
	if err != nil {
		return nil, s.failure(t, job, err)
	}
	stepper.Allow(3) // rows that are lost with the job, or of which one ends it
	job.Abandon()
	return snapshot, ""
}

// failure gives the message of a job that failed by a fault of its input.
func (s *site) failure(t *testing.T, job *exectest.Job, err error) string {
	t.Helper()
	failure, restart := job.Failure()
	if failure == nil || restart {
		t.Fatal(err)
	}
	return "failed: " + strings.ReplaceAll(failure.Message, s.dir, "${dir}") + "\n"
}

func (s *site) config(parallelism int, from *exectest.Snapshot, stepper *exectest.Stepper, allow int) exectest.Config {
	stepper.Allow(allow)
	return exectest.Config{
		Graph: s.graph, Parallelism: parallelism, From: from, Blobs: s.blobs, Files: []string{s.dir},
		Openers: exec.Openers{Source: stepper.Open(source.Open), Sink: sink.Open},
	}
}

// finish runs a job to its end and gives its answer.
func (s *site) finish(t *testing.T, job *exectest.Job) string {
	t.Helper()
	if _, err := job.Finish(); err != nil {
		return s.failure(t, job, err)
	}
	lines, err := s.answer(job)
	rejected, rejectErr := s.rejected(job)
	if err := errors.Join(err, rejectErr, job.Close()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return strings.Join(append(append(lines, rejected...), ""), "\n")
}

// rejected gives the counts of rejected rows, and the rows.
func (s *site) rejected(job *exectest.Job) ([]string, error) {
	if s.graph.OnRowError == "" {
		return nil, nil
	}
	page, err := job.Rejects()
	var lines []string
	for _, c := range page.Counts {
		lines = append(lines, fmt.Sprintf("rejected %d of %s", c.Rows, c.Table))
	}
	for _, r := range page.Rows {
		lines = append(lines, strings.ReplaceAll(string(r.JSON), s.dir, "${dir}"))
	}
	return lines, err
}

// answer gives the rows of the result, or the lines of the files below out.
func (s *site) answer(job *exectest.Job) ([]string, error) {
	var lines []string
	if s.graph.Result != nil {
		page, err := job.Read(exec.Query{})
		for _, r := range page.Rows {
			lines = append(lines, string(r.JSON))
		}
		return lines, err
	}
	err := filepath.WalkDir(filepath.Join(s.dir, "out"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") {
			return err
		}
		data, err := os.ReadFile(path)
		if text := strings.TrimSuffix(string(data), "\n"); text != "" {
			lines = append(lines, strings.Split(text, "\n")...)
		}
		return err
	})
	return lines, err
}

// site writes the script's files into a fresh folder and plans it there.
func (q *query) site(t *testing.T) (*site, error) {
	t.Helper()
	s := &site{dir: t.TempDir(), blobs: blob.NewMemory()}
	var name string
	files := map[string]string{}
	for _, line := range strings.Split(q.script, "\n") {
		if file, ok := strings.CutPrefix(line, "-- file "); ok {
			name = file
			files[name] = ""
		} else if text, ok := strings.CutPrefix(line, "--|"); ok {
			files[name] += text + "\n"
		} else if text, ok := strings.CutPrefix(line, "--:"); ok {
			files[name] += text
		}
	}
	for name, text := range files {
		path := filepath.Join(s.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	s.graph, err = q.plan(s.dir)
	return s, err
}

// plan plans the script over the files in dir.
func (q *query) plan(dir string) (*plan.Graph, error) {
	_, policy, _ := strings.Cut(q.script, "\n-- on_row_error ")
	policy, _, _ = strings.Cut(policy, "\n")
	p, err := planner.Plan(strings.ReplaceAll(q.script, "${dir}", dir), nil, planner.Options{MaxParallelism: 64, OnRowError: policy, Rewrites: q.without})
	if err != nil {
		return nil, err
	}
	return p.Graph, p.Graph.Validate()
}

// check compares with the golden file; the flag -rewrite (of package datadriven) writes it.
func (q *query) check(t *testing.T, how, got string) {
	t.Helper()
	if flag.Lookup("rewrite").Value.String() == "true" && (how == "straight" || how == "refused") {
		if err := os.WriteFile(q.golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(q.golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", how, diff)
	}
}
