package sink

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/exec"
	"weir/exec/batch"
	"weir/planner/expr"
	"weir/planner/plan"
)

// sampler is a batch with a column of each type, and the table it is written to.
func sampler(format string) (plan.Table, *batch.Batch) {
	table := plan.Table{Name: "out", Format: format, Options: map[string]string{}, Columns: []plan.Column{
		col("ok", expr.Boolean), col("i", expr.Int), col("n", expr.BigInt), col("x", expr.Double),
		{Name: "d", Type: expr.DecimalType(2)},
		col(`say "k"`, expr.String),
		{Name: "ts", Type: expr.Type{Kind: expr.TimestampLTZ, Precision: 6}},
	}}
	kinds := []batch.Physical{batch.Bools, batch.Ints, batch.Ints, batch.Floats, batch.Decimals, batch.Strings, batch.Ints}
	b := batch.New(kinds, 8)
	add := func(ok bool, i, n int64, x float64, d int64, k string, ts int64) {
		c := b.Columns
		c[0].AppendBool(ok)
		c[1].AppendInt(i)
		c[2].AppendInt(n)
		c[3].AppendFloat(x)
		c[4].AppendDecimal(batch.Int128Of(d))
		c[5].AppendString(k)
		c[6].AppendInt(ts)
		b.EndRow(batch.Insert)
	}
	add(true, 1, math.MaxInt64, 0.1, 1250, "plain", 1511571600000000)
	add(false, -2147483648, math.MinInt64, 1e21, -5, "", 1511571600500000)
	add(true, 0, 9007199254740993, 100000, 0, "a,\"b\"\r\nc\\\t\x01é", -1)
	add(true, 0, 0, math.NaN(), 0, "\ufeffmark", -62135596800000000)
	add(true, 0, 0, math.Inf(1), 0, "x", 253402300799999999)
	add(true, 0, 0, math.Inf(-1), 0, " y ", 0)
	add(true, 0, 0, 1.5e-7, 0, "NULL", 951782400000001)
	for i := range b.Columns {
		b.Columns[i].AppendNull()
	}
	b.EndRow(batch.Insert)
	return table, b
}

func encode(t *testing.T, table plan.Table, b *batch.Batch) string {
	t.Helper()
	e, err := newEncoder(table)
	if err != nil {
		t.Fatal(err)
	}
	out := e.head(nil)
	for i := range b.Rows() {
		out = e.row(out, b, b.Row(i))
	}
	return string(out)
}

func TestJSONGolden(t *testing.T) {
	t.Parallel()
	table, b := sampler("json")
	want := `{"ok":true,"i":1,"n":9223372036854775807,"x":0.1,"d":12.50,"say \"k\"":"plain","ts":"2017-11-25T01:00:00Z"}
{"ok":false,"i":-2147483648,"n":-9223372036854775808,"x":1e+21,"d":-0.05,"say \"k\"":"","ts":"2017-11-25T01:00:00.5Z"}
{"ok":true,"i":0,"n":9007199254740993,"x":100000,"d":0.00,"say \"k\"":"a,\"b\"\r\nc\\\t\u0001é","ts":"1969-12-31T23:59:59.999999Z"}
{"ok":true,"i":0,"n":0,"x":"NaN","d":0.00,"say \"k\"":"` + "\ufeff" + `mark","ts":"0001-01-01T00:00:00Z"}
{"ok":true,"i":0,"n":0,"x":"Infinity","d":0.00,"say \"k\"":"x","ts":"9999-12-31T23:59:59.999999Z"}
{"ok":true,"i":0,"n":0,"x":"-Infinity","d":0.00,"say \"k\"":" y ","ts":"1970-01-01T00:00:00Z"}
{"ok":true,"i":0,"n":0,"x":1.5e-07,"d":0.00,"say \"k\"":"NULL","ts":"2000-02-29T00:00:00.000001Z"}
{"ok":null,"i":null,"n":null,"x":null,"d":null,"say \"k\"":null,"ts":null}
`
	got := encode(t, table, b)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for line := range strings.Lines(got) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

func TestCSVGolden(t *testing.T) {
	t.Parallel()
	table, b := sampler("csv")
	want := `true,1,9223372036854775807,0.1,12.50,plain,2017-11-25T01:00:00Z
false,-2147483648,-9223372036854775808,1e+21,-0.05,"",2017-11-25T01:00:00.5Z
true,0,9007199254740993,100000,0.00,"a,""b""` + "\r\nc\\\t\x01é" + `",1969-12-31T23:59:59.999999Z
true,0,0,NaN,0.00,"` + "\ufeff" + `mark",0001-01-01T00:00:00Z
true,0,0,Infinity,0.00,x,9999-12-31T23:59:59.999999Z
true,0,0,-Infinity,0.00, y ,1970-01-01T00:00:00Z
true,0,0,1.5e-07,0.00,NULL,2000-02-29T00:00:00.000001Z
,,,,,,
`
	if diff := cmp.Diff(want, encode(t, table, b)); diff != "" {
		t.Error(diff)
	}
	table.Options = map[string]string{"csv.delimiter": "-", "csv.header": "true", "csv.null": "NULL"}
	b.Sel = []int32{1, 6, 7}
	want = `ok-i-n-x-d-"say ""k"""-ts
false-"-2147483648"-"-9223372036854775808"-1e+21-"-0.05"--"2017-11-25T01:00:00.5Z"
true-0-0-"1.5e-07"-0.00-"NULL"-"2000-02-29T00:00:00.000001Z"
NULL-NULL-NULL-NULL-NULL-NULL-NULL
`
	if diff := cmp.Diff(want, encode(t, table, b)); diff != "" {
		t.Error(diff)
	}
}

// TestTexts: any text is read back by other readers.
func TestTexts(t *testing.T) {
	t.Parallel()
	e, err := newCSVEncoder(plan.Table{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		var back string
		if err := json.Unmarshal(exec.AppendJSONString(nil, []byte(text)), &back); err != nil || back != text {
			t.Fatalf("JSON %q: %q, %v", text, back, err)
		}
		record, err := csv.NewReader(strings.NewReader(string(e.appendField(nil, []byte(text))) + ",end\n")).Read()
		if text = strings.ReplaceAll(text, "\r\n", "\n"); err != nil || !slices.Equal(record, []string{text, "end"}) { // as that reader has it
			t.Fatalf("CSV %q: %q, %v", text, record, err)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	for _, format := range []string{"csv", "json"} {
		b.Run(format, func(b *testing.B) {
			table, rows := sampler(format)
			e, err := newEncoder(table)
			if err != nil {
				b.Fatal(err)
			}
			var buf []byte
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				buf = buf[:0]
				for row := range rows.Len {
					buf = e.row(buf, rows, row)
				}
				n += rows.Len
			}
			b.SetBytes(int64(len(buf)))
			b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
