package sink

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/exec"
	"weir/exec/batch"
	"weir/exec/eval"
	"weir/exec/source"
	"weir/planner/civil"
	"weir/planner/expr"
	"weir/planner/plan"
)

// everyType lists the types that files hold.
var everyType = []expr.Type{
	{Kind: expr.Boolean},
	{Kind: expr.Int},
	{Kind: expr.BigInt},
	{Kind: expr.Double},
	{Kind: expr.Decimal, Precision: 38, Scale: 10},
	{Kind: expr.Decimal, Precision: 5, Scale: 5},
	expr.DecimalType(0),
	{Kind: expr.String},
	{Kind: expr.Bytes},
	{Kind: expr.Date},
	{Kind: expr.Timestamp, Precision: 6},
	{Kind: expr.TimestampLTZ, Precision: 6},
	{Kind: expr.Interval},
	{Kind: expr.MonthInterval},
}

// drawValue appends a value of a type, often an extreme one, or NULL.
func drawValue(t *rapid.T, v *batch.Vector, typ expr.Type) {
	if rapid.IntRange(0, 6).Draw(t, "null") == 0 {
		v.AppendNull()
		return
	}
	whole := func(low, high int64) int64 {
		return rapid.OneOf(rapid.Int64Range(low, high), rapid.SampledFrom([]int64{low, high, 0, min(high, 1<<53+1)})).Draw(t, "number")
	}
	switch typ.Kind {
	case expr.Boolean:
		v.AppendBool(rapid.Bool().Draw(t, "bool"))
	case expr.Int, expr.MonthInterval:
		v.AppendInt(whole(math.MinInt32, math.MaxInt32))
	case expr.BigInt, expr.Interval:
		v.AppendInt(whole(math.MinInt64, math.MaxInt64))
	case expr.Date:
		v.AppendInt(whole(civil.MinDays, civil.MaxDays))
	case expr.Timestamp, expr.TimestampLTZ:
		v.AppendInt(whole(civil.MinMicros, civil.MaxMicros))
	case expr.Double:
		v.AppendFloat(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 5e-324, math.MaxFloat64, 1 << 53, 0.1})).Draw(t, "double"))
	case expr.Decimal:
		above := batch.Pow10(typ.Precision)
		_, d, _ := batch.Int128{Lo: rapid.Uint64().Draw(t, "low"), Hi: rapid.Int64().Draw(t, "high")}.QuoRem(above)
		if rapid.IntRange(0, 3).Draw(t, "most") == 0 {
			d, _ = above.AddInt64(-1)
		}
		v.AppendDecimal(d)
	case expr.String:
		v.AppendString(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "NULL", "null", "\r", "\n", "a\r\nb", "\"", ",", "\ufeff", "é😀", "\x00", " x ", "NaN", "\\", `\"`})).Draw(t, "text"))
	case expr.Bytes:
		v.AppendBytes(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes"))
	}
}

// TestFilesReadBack: what a file holds is read as the rows that were written, bit by bit,
// and is written again the same.
func TestFilesReadBack(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom([]string{"json", "csv"}).Draw(t, "format")
		n++
		path := filepath.Join(dir, fmt.Sprint("f", n))
		table := plan.Table{Name: "t", Connector: "filesystem", Format: format, Options: map[string]string{"path": path}}
		if format == "csv" {
			table.Options["csv.delimiter"] = rapid.SampledFrom([]string{",", ";", `\t`, "-", " ", ":", "1"}).Draw(t, "delimiter")
			table.Options["csv.null"] = rapid.SampledFrom([]string{"", "NULL", "-", "0", "-1"}).Draw(t, "null")
			table.Options["csv.header"] = rapid.SampledFrom([]string{"true", "false"}).Draw(t, "header")
		}
		if strings.Contains(table.Options["csv.null"], cmp.Or(table.Options["csv.delimiter"], ",")) {
			table.Options["csv.null"] = "" // the one may not be in the other
		}
		var layout []batch.Physical
		for i, typ := range rapid.SliceOfN(rapid.SampledFrom(everyType), 2, 16).Draw(t, "types") {
			table.Columns = append(table.Columns, plan.Column{Name: fmt.Sprintf("c %d", i), Type: typ})
			layout = append(layout, eval.Physical(typ))
		}
		rows := batch.New(layout, 8)
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			for i, c := range table.Columns {
				drawValue(t, &rows.Columns[i], c.Type)
			}
			rows.EndRow(batch.Insert)
		}
		text := encodeAll(t, table, rows)
		if format == "json" {
			for line := range lines(text) {
				if !json.Valid(line) {
					t.Fatalf("no JSON: %s", line)
				}
			}
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		back := readBack(t, table, dir)
		if !rows.Equal(back) {
			t.Fatalf("%s\nis read as\n%s\nnot\n%s", text, back, rows)
		}
		if again := encodeAll(t, table, back); string(again) != string(text) {
			t.Fatalf("%s\nis written again as\n%s", text, again)
		}
	})
}

func encodeAll(t *rapid.T, table plan.Table, b *batch.Batch) []byte {
	e, err := newEncoder(table)
	if err != nil {
		t.Fatal(err)
	}
	out := e.head(nil)
	for i := range b.Len {
		out = e.row(out, b, i)
	}
	return out
}

func lines(text []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		from := 0
		for i, c := range text {
			if c == '\n' {
				if !yield(text[from:i]) {
					return
				}
				from = i + 1
			}
		}
	}
}

func readBack(t *rapid.T, table plan.Table, dir string) *batch.Batch {
	spec := &plan.SourceSpec{Table: table, Bounded: true}
	var layout []batch.Physical
	for i, c := range table.Columns {
		spec.Read = append(spec.Read, i)
		layout = append(layout, eval.Physical(c.Type))
	}
	s, err := source.Open(context.Background(), exec.Setup{
		Operator: plan.Operator{ID: "src", Kind: plan.Source, Source: spec}, Parallelism: 1, Files: []string{dir},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all := batch.New(layout, 8)
	for {
		b, poll, _, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if b != nil {
			for row := range b.Len {
				all.AppendRow(b, row)
			}
			b.Release()
		}
		if poll == exec.Done {
			return all
		}
	}
}
