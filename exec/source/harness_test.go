package source

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/exec"
	"weir/exec/batch"
	"weir/planner/expr"
	"weir/planner/plan"
)

var (
	boolean   = expr.Type{Kind: expr.Boolean}
	integer   = expr.Type{Kind: expr.Int}
	bigint    = expr.Type{Kind: expr.BigInt}
	double    = expr.Type{Kind: expr.Double}
	text      = expr.Type{Kind: expr.String}
	timestamp = expr.Type{Kind: expr.TimestampLTZ, Precision: 6}
)

func col(name string, t expr.Type) plan.Column { return plan.Column{Name: name, Type: t} }

// behavior is the table of the examples.
func behavior(format, path string) plan.Table {
	return plan.Table{
		Name: "user_behavior", Connector: "filesystem", Format: format, Options: map[string]string{"path": path},
		Columns: []plan.Column{col("user_id", bigint), col("item_id", bigint), col("category_id", bigint), col("behavior", text), col("ts", bigint)},
	}
}

func reading(t plan.Table, columns ...int) *plan.SourceSpec {
	if columns == nil {
		for i := range t.Columns {
			columns = append(columns, i)
		}
	}
	return &plan.SourceSpec{Table: t, Read: columns, Bounded: true}
}

// A fatal is a test of any kind.
type fatal interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// window puts text into a buffer as a reader would.
func window(text string) []byte {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return append([]byte(text), make([]byte, pad)...)
}

// decodeAll decodes a whole text; rows are shown one a line.
func decodeAll(tb fatal, spec *plan.SourceSpec, body string) (string, *fault) {
	tb.Helper()
	r, err := newRows(spec)
	if err != nil {
		tb.Fatal(err)
	}
	var d decoder = newJSONDecoder(r)
	if spec.Table.Format == "csv" {
		o := options{values: spec.Table.Options}
		text := newCSVDecoder(spec, o.csv())
		text.noQuotes = !strings.Contains(body, `"`)
		d = text
	}
	return decodeWith(tb, spec, d, r, body)
}

// decodeWith is decodeAll with a decoder.
func decodeWith(tb fatal, spec *plan.SourceSpec, d decoder, r *rows, body string) (string, *fault) {
	tb.Helper()
	data := window(body)
	var out strings.Builder
	for p, end := 0, len(data)-pad; p < end; {
		r.begin(batch.Target)
		next, more, f := d.decode(r, data, p, end, 0)
		if f == nil && more && r.n == 0 {
			f = &fault{reason: "incomplete"}
		}
		if f != nil {
			return out.String(), f
		}
		p = next
		if b := r.finish("f"); b != nil {
			out.WriteString(show(b, spec))
			b.Release()
		}
	}
	return out.String(), nil
}

// show lists a batch's rows; texts are quoted, so that ” and NULL differ.
func show(b *batch.Batch, spec *plan.SourceSpec) string {
	var s strings.Builder
	for row := range b.Len {
		for i := range b.Columns {
			if i > 0 {
				s.WriteByte('|')
			}
			v := &b.Columns[i]
			switch {
			case v.Null(row):
				s.WriteString("NULL")
			case v.Physical == batch.Strings:
				fmt.Fprintf(&s, "%q", v.Str(row))
			case v.Physical == batch.Bools:
				fmt.Fprint(&s, v.Bools[row])
			case v.Physical == batch.Floats:
				fmt.Fprint(&s, v.Floats[row])
			case v.Physical == batch.Decimals:
				s.WriteString(v.Decimals[row].Decimal(spec.Table.Columns[spec.Read[i]].Type.Scale))
			case isTime(spec.Table.Columns[spec.Read[i]].Type):
				s.Write(exec.AppendText(nil, spec.Table.Columns[spec.Read[i]].Type, v, row))
			default:
				fmt.Fprint(&s, v.Ints[row])
			}
		}
		s.WriteByte('\n')
	}
	return s.String()
}

// folder writes files into a new folder and returns it.
func folder(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

func setupOf(spec *plan.SourceSpec, root string, subtask, parallelism int) exec.Setup {
	return exec.Setup{
		Operator: plan.Operator{ID: "src", Kind: plan.Source, Source: spec},
		Subtask:  subtask, Parallelism: parallelism, Files: []string{root},
	}
}

// drain reads a source to its end.
func drain(tb fatal, s exec.Source, spec *plan.SourceSpec) (string, error) {
	tb.Helper()
	var out strings.Builder
	for {
		b, p, _, err := s.Next(context.Background())
		if err != nil {
			return out.String(), err
		}
		if b != nil {
			out.WriteString(show(b, spec))
			b.Release()
		}
		if p == exec.Done {
			return out.String(), s.Close()
		}
	}
}

// snapshots gathers the state of sources as a task would.
func snapshots(tb fatal, sources ...exec.Source) []json.RawMessage {
	tb.Helper()
	var list []json.RawMessage
	for _, s := range sources {
		items, err := s.Snapshot(1)
		if err != nil {
			tb.Fatal(err)
		}
		for _, item := range items {
			list = append(list, bytes.Clone(item))
		}
	}
	return list
}
