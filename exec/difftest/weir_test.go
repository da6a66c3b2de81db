package difftest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/exectest"
	"weir/exec/sink"
	"weir/exec/source"
	"weir/planner"
	"weir/planner/expr"
	"weir/planner/plan"
)

// A mode is how a query is asked of Weir; its answer must not depend on it.
type mode struct {
	rewrites planner.Rewrites // left out at the second run
	sink     bool             // INSERT INTO a folder, which only takes final rows
	view     bool             // the query stands in a view
	steps    int              // batches before the job is killed
}

func newMode(r *rand.Rand) mode {
	off := func() bool { return r.IntN(3) == 0 }
	return mode{
		rewrites: planner.Rewrites{NoFold: off(), NoMerge: off(), NoPushDown: off(), NoReadColumns: off(), NoFilterBelow: off(), NoSplit: off()},
		sink:     r.IntN(5) == 0, view: r.IntN(5) == 0, steps: 1 + r.IntN(4),
	}
}

// weirRun plans and runs queries over tables.
type weirRun struct {
	tb     testing.TB
	dir    string
	tables []*table
	zone   string // SET 'timezone'; empty: UTC
	runs   int
}

// write lays a table's rows into three files, so that a job has something to stop at.
func (w *weirRun) write(t *table) error {
	folder := filepath.Join(w.dir, t.name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	n := len(t.rows)
	for i, part := range []string{t.json(0, n/3), t.json(n/3, n/2), t.json(n/2, n)} {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("part-%d.json", i)), []byte(part), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// definitions is the script up to the query.
func (w *weirRun) definitions() string {
	var b strings.Builder
	for _, t := range w.tables {
		b.WriteString(t.weirTable(filepath.Join(w.dir, t.name)))
	}
	if w.zone != "" {
		b.WriteString("SET 'timezone' = '" + w.zone + "';\n")
	}
	return b.String()
}

// A planned query, and where its rows go.
type planned struct {
	query
	*planner.Result
	script string
	out    string // folder of the sink; empty: the result is kept
}

// plan plans a query; with a sink, for the columns that it gives.
func (w *weirRun) plan(q query, m mode, rewrites planner.Rewrites) (planned, error) {
	w.runs++
	p := planned{query: q, script: w.definitions()}
	text := q.w
	if m.view {
		p.script += "CREATE VIEW v AS " + text + ";\n"
		text = "SELECT * FROM v"
	}
	options := planner.Options{MaxParallelism: 16, Rewrites: rewrites}
	var err error
	if p.Result, err = planner.Plan(p.script+text, nil, options); err != nil || !m.sink || hasInterval(p.Columns) {
		p.script += text
		return p, err
	}
	var columns []string
	for _, c := range p.Columns {
		columns = append(columns, c.Name+" "+c.Type.String())
	}
	p.out = filepath.Join(w.dir, fmt.Sprintf("out-%d", w.runs))
	p.script += "CREATE TABLE out (" + strings.Join(columns, ", ") + ") WITH ('connector' = 'filesystem', 'path' = '" + p.out + "', 'format' = 'json');\nINSERT INTO out " + text
	columnsOf := p.Columns
	if p.Result, err = planner.Plan(p.script, nil, options); err == nil {
		p.Columns = columnsOf
	}
	return p, err
}

// hasInterval: a table has no column of that type.
func hasInterval(columns []plan.Column) bool {
	return slices.ContainsFunc(columns, func(c plan.Column) bool { return c.Type.Kind == expr.Interval || c.Type.Kind == expr.MonthInterval })
}

func (w *weirRun) config(p planned, parallelism int, blobs blob.Store, from *exectest.Snapshot, stepper *exectest.Stepper) exectest.Config {
	return exectest.Config{
		Graph: p.Graph, Parallelism: parallelism, Blobs: blobs, From: from, Files: []string{w.dir}, Encode: parallelism > 1,
		Openers: exec.Openers{Source: stepper.Open(source.Open), Sink: sink.Open},
	}
}

// reads reports whether the plan reads a column of a table.
func (p planned) reads(t *table, column string) bool {
	for _, chain := range p.Graph.Chains {
		s := chain.Operators[0].Source
		if s != nil && s.Table.Name == t.name && slices.ContainsFunc(s.Read, func(i int) bool { return s.Table.Columns[i].Name == column }) {
			return true
		}
	}
	return false
}

// run gives the answer of a query: at parallelism 1 straight, and with other rewrites at 2
// with checkpoints, killed after some batches and resumed at 3. The plan is the first one.
func (w *weirRun) run(q query, m mode) (straight, resumed answer, p planned) {
	p, err := w.plan(q, m, planner.Rewrites{})
	if err != nil {
		refused := answer{class: "refused", err: err.Error()}
		return refused, refused, p
	}
	free := &exectest.Stepper{}
	free.Allow(1 << 30)
	straight = w.finish(p, w.config(p, 1, blob.NewMemory(), nil, free))
	other, err := w.plan(q, m, m.rewrites)
	if err != nil {
		w.tb.Fatalf("%v with %+v\n%s", err, m.rewrites, p.script)
	}
	return straight, w.resumed(other, m, free), p
}

func (w *weirRun) resumed(p planned, m mode, free *exectest.Stepper) answer {
	blobs, stepper := blob.NewMemory(), &exectest.Stepper{}
	job := exectest.Start(w.tb, w.config(p, 2, blobs, nil, stepper))
	var snapshot *exectest.Snapshot
	var err error
	for i := 0; i <= m.steps && err == nil; i++ {
		stepper.Allow(min(i, 1))
		snapshot, err = job.Checkpoint()
	}
	if err != nil {
		return w.failure(p, job, err)
	}
	stepper.Allow(1)
	job.Abandon()
	c := w.config(p, 3, blobs, snapshot, free)
	c.Attempt = 2
	return w.finish(p, c)
}

// failure is the answer of a job that failed by a value.
func (w *weirRun) failure(p planned, job *exectest.Job, err error) answer {
	failure, restart := job.Failure()
	if failure == nil || restart {
		w.tb.Fatalf("%v %+v\n%s", err, failure, p.script)
	}
	return answer{class: "failed", err: failure.Message}
}

func (w *weirRun) finish(p planned, c exectest.Config) answer {
	job := exectest.Start(w.tb, c)
	defer job.Abandon()
	if _, err := job.Finish(); err != nil {
		return w.failure(p, job, err)
	}
	lines, err := w.lines(p, job)
	if err := errors.Join(err, job.Close()); err != nil {
		w.tb.Fatalf("read: %v", err)
	}
	a := answer{}
	for _, col := range p.Columns {
		a.types = append(a.types, weirTypeOf(col.Type))
	}
	for _, line := range lines {
		a.rows = append(a.rows, w.row(p, line))
	}
	slices.Sort(a.rows)
	return a
}

// lines gives the rows of the result, or of the sink's files, as JSON.
func (w *weirRun) lines(p planned, job *exectest.Job) (lines [][]byte, err error) {
	if p.out == "" {
		page, err := job.Read(exec.Query{})
		for _, r := range page.Rows {
			lines = append(lines, r.JSON)
		}
		return lines, err
	}
	err = filepath.WalkDir(p.out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") {
			return err
		}
		data, err := os.ReadFile(path)
		for line := range bytes.Lines(data) {
			lines = append(lines, bytes.TrimSpace(line))
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) { // there was no row
		err = nil
	}
	return lines, err
}

// row normalises one row of JSON.
func (w *weirRun) row(p planned, data []byte) string {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	fields := map[string]any{}
	if err := d.Decode(&fields); err != nil {
		w.tb.Fatalf("row %s: %v", data, err)
	}
	var values []string
	for i, col := range p.Columns {
		v, ok := fields[col.Name]
		switch {
		case !ok:
			values = append(values, "missing")
			continue
		case v == nil:
			values = append(values, "NULL")
			continue
		}
		text := fmt.Sprint(v)
		if col.Type.Kind == expr.Bytes {
			raw, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				w.tb.Fatalf("row %s: %v", data, err)
			}
			text = `\x` + hex.EncodeToString(raw)
		}
		values = append(values, normal(weirTypeOf(col.Type), text, p.outputs[i].loose))
	}
	return strings.Join(values, " | ")
}
