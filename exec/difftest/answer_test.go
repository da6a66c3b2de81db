package difftest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/exectest"
	"weir/exec/sink"
	"weir/exec/source"
	"weir/planner"
	"weir/planner/expr"
)

// An answer is what a query gave: rows in a normal form, or the class of its error.
type answer struct {
	types []string
	rows  []string
	class string // "": rows; "refused": before it ran; "failed": by a value
	err   string
}

// postgres runs a query.
func postgres(ctx context.Context, conn *pgx.Conn, q query) (answer, error) {
	reader := conn.PgConn().ExecParams(ctx, q.p, nil, nil, nil, nil)
	fields := reader.FieldDescriptions()
	r := reader.Read()
	err := r.Err
	var refusal *pgconn.PgError
	switch {
	case errors.As(err, &refusal):
		return answer{class: classOf(refusal.Code), err: refusal.Code + " " + refusal.Message}, nil
	case err != nil:
		return answer{}, err
	}
	a := answer{}
	for _, f := range fields {
		a.types = append(a.types, typeOf(f.DataTypeOID))
	}
	for _, row := range r.Rows {
		var values []string
		for i, v := range row {
			if v == nil {
				values = append(values, "NULL")
				continue
			}
			values = append(values, normal(a.types[i], string(v), q.outputs[i].loose))
		}
		a.rows = append(a.rows, strings.Join(values, " | "))
	}
	slices.Sort(a.rows)
	return a, nil
}

// classOf tells a value's fault (SQLSTATE class 22) from a refusal.
func classOf(code string) string {
	if strings.HasPrefix(code, "22") {
		return "failed"
	}
	return "refused"
}

func typeOf(oid uint32) string {
	names := map[uint32]string{
		16: "boolean", 23: "integer", 20: "bigint", 701: "double precision", 1700: "numeric", 25: "text", 17: "bytea",
		1082: "date", 1114: "timestamp", 1184: "timestamptz", 1186: "interval",
	}
	if n, ok := names[oid]; ok {
		return n
	}
	return fmt.Sprintf("oid %d", oid)
}

// weirTypeOf names a type of Weir's as PostgreSQL does.
func weirTypeOf(t expr.Type) string {
	return map[expr.Kind]string{
		expr.Boolean: "boolean", expr.Int: "integer", expr.BigInt: "bigint", expr.Double: "double precision", expr.Decimal: "numeric", expr.String: "text",
		expr.Bytes: "bytea", expr.Date: "date", expr.Timestamp: "timestamp", expr.TimestampLTZ: "timestamptz", expr.Interval: "interval", expr.MonthInterval: "interval",
	}[t.Kind]
}

// normal gives one spelling to values that are the same.
func normal(typ, v string, loose bool) string {
	switch typ {
	case "boolean":
		return v[:1]
	case "double precision":
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return v
		}
		f += 0 // Weir shows -0 as 0
		if loose {
			return strconv.FormatFloat(f, 'g', 9, 64)
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	case "numeric":
		if strings.Contains(v, ".") {
			v = strings.TrimRight(strings.TrimRight(v, "0"), ".")
		}
		if v == "-0" {
			v = "0"
		}
	case "timestamptz":
		v = strings.TrimSuffix(strings.TrimSuffix(v, "+00"), "Z")
		fallthrough
	case "timestamp":
		v = strings.Replace(v, "T", " ", 1)
		if strings.Contains(v, ".") {
			v = strings.TrimRight(v, "0")
		}
	case "interval":
		return microseconds(v)
	case "text":
		return strconv.Quote(v)
	}
	return v
}

// microseconds reads PostgreSQL's text of an interval of days and seconds: "1 day
// -00:00:01.5" and "23:59:58.5" are one size, and equal on both sides.
func microseconds(v string) string {
	var total int64
	fields := strings.Fields(v)
	for i := 0; i < len(fields); i++ {
		if n, err := strconv.ParseInt(fields[i], 10, 64); err == nil && i+1 < len(fields) && strings.HasPrefix(fields[i+1], "day") {
			total += n * 86_400_000_000
			i++
			continue
		}
		clock, negative := strings.CutPrefix(fields[i], "-")
		var hours, minutes int64
		var seconds float64
		if n, err := fmt.Sscanf(strings.ReplaceAll(clock, ":", " "), "%d %d %f", &hours, &minutes, &seconds); n != 3 || err != nil {
			return v
		}
		micros := (hours*60+minutes)*60_000_000 + int64(seconds*1e6+0.5)
		if negative {
			micros = -micros
		}
		total += micros
	}
	return fmt.Sprint(total, " µs")
}

// weirRun plans and runs a script in a way, and gives its answer.
type weirRun struct {
	tb     testing.TB
	dir    string
	tables []*table
}

func (w *weirRun) script(q query) string {
	var b strings.Builder
	for _, t := range w.tables {
		b.WriteString(t.weirTable(filepath.Join(w.dir, t.name)))
	}
	return b.String() + q.w
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

func (w *weirRun) config(p *planner.Result, parallelism int, blobs blob.Store, from *exectest.Snapshot, stepper *exectest.Stepper) exectest.Config {
	return exectest.Config{
		Graph: p.Graph, Parallelism: parallelism, Blobs: blobs, From: from, Files: []string{w.dir}, Encode: parallelism > 1,
		Openers: exec.Openers{Source: stepper.Open(source.Open), Sink: sink.Open},
	}
}

// run gives the answer of a query: at parallelism 1 straight, at 2 with checkpoints
// and killed after steps batches, then resumed at 3.
func (w *weirRun) run(q query, steps int) (straight, resumed answer) {
	p, err := planner.Plan(w.script(q), nil, planner.Options{MaxParallelism: 16})
	if err != nil {
		refused := answer{class: "refused", err: err.Error()}
		return refused, refused
	}
	free := &exectest.Stepper{}
	free.Allow(1 << 30)
	straight = w.finish(q, p, w.config(p, 1, blob.NewMemory(), nil, free))
	blobs, stepper := blob.NewMemory(), &exectest.Stepper{}
	job := exectest.Start(w.tb, w.config(p, 2, blobs, nil, stepper))
	var snapshot *exectest.Snapshot
	for i := 0; i <= steps && err == nil; i++ {
		stepper.Allow(min(i, 1))
		snapshot, err = job.Checkpoint()
	}
	if err != nil {
		failure, restart := job.Failure()
		if failure == nil || restart {
			w.tb.Fatalf("checkpoint: %v\n%s", err, w.script(q))
		}
		return straight, answer{class: "failed", err: failure.Message}
	}
	stepper.Allow(1)
	job.Abandon()
	c := w.config(p, 3, blobs, snapshot, free)
	c.Attempt = 2
	return straight, w.finish(q, p, c)
}

func (w *weirRun) finish(q query, p *planner.Result, c exectest.Config) answer {
	job := exectest.Start(w.tb, c)
	defer job.Abandon()
	if _, err := job.Finish(); err != nil {
		failure, restart := job.Failure()
		if failure == nil || restart {
			w.tb.Fatalf("finish: %v %+v\n%s", err, failure, w.script(q))
		}
		return answer{class: "failed", err: failure.Message}
	}
	page, err := job.Read(exec.Query{})
	if err == nil {
		err = job.Close()
	}
	if err != nil {
		w.tb.Fatalf("read: %v", err)
	}
	a := answer{}
	for _, col := range p.Columns {
		a.types = append(a.types, weirTypeOf(col.Type))
	}
	for _, row := range page.Rows {
		a.rows = append(a.rows, w.row(q, p, row.JSON))
	}
	slices.Sort(a.rows)
	return a
}

// row normalises one row of JSON.
func (w *weirRun) row(q query, p *planner.Result, data []byte) string {
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
		values = append(values, normal(weirTypeOf(col.Type), text, i < len(q.outputs) && q.outputs[i].loose))
	}
	return strings.Join(values, " | ")
}
