package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/planner/expr"
	"weir/planner/plan"
)

func TestCSVRecords(t *testing.T) {
	t.Parallel()
	table := plan.Table{Name: "t", Format: "csv", Columns: []plan.Column{
		col("n", bigint), col("k", text), {Name: "x", Type: double, NotNull: true}, col("ok", boolean), col("at", timestamp),
	}}
	for _, c := range []struct{ name, options, body, want string }{
		{"plain", "", "1,a,2.5,true,2017-11-25T01:00:00Z\n2,b,3,F,", "1|\"a\"|2.5|true|2017-11-25T01:00:00Z\n2|\"b\"|3|false|NULL\n"},
		{"mixed line ends", "", "1,a,2,,\r\n1,a,2,t,2017-11-25 01:00\r\n\r\n\n3,a,0,,\"\"\"\"", `at: "\"" is not a TIMESTAMP_LTZ(6): ` + ltzForm},
		{"empty and quoted empty", "", ",,1,,\n,\"\",1,,", "NULL|NULL|1|NULL|NULL\nNULL|\"\"|1|NULL|NULL\n"},
		{"quotes", "", "\"7\",\"a,\"\"b\"\"\r\nc\",\"1\",\"true\",\n", "7|\"a,\\\"b\\\"\\r\\nc\"|1|true|NULL\n"},
		{"spaces and a carriage return inside", "", "1, a \rb ,1,,\n", "1|\" a \\rb \"|1|NULL|NULL\n"},
		{"numbers", "", "007,a,Infinity,,\n+5,b,-0,,\n1e3,c,NaN,,\n12.0,d,1e-400,,", "7|\"a\"|+Inf|NULL|NULL\n5|\"b\"|-0|NULL|NULL\n1000|\"c\"|NaN|NULL|NULL\n12|\"d\"|0|NULL|NULL\n"},
		{"delimiter and null", ";NULL", "1;NULL;2;NULL;\n", `at: "" is not a TIMESTAMP_LTZ(6): ` + ltzForm},
		{"null text", ";NULL", "1;NULL;2;NULL;NULL\nNULL;;2;NULL;NULL\n1;\"NULL\";2;\"t\";NULL", "1|NULL|2|NULL|NULL\nNULL|\"\"|2|NULL|NULL\n1|\"NULL\"|2|true|NULL\n"},
		{"a blank number", "", " 1,a,1,,", `n: " 1" is not a BIGINT: it is not a number`},
		{"a fraction", "", "1.5,a,1,,", `n: "1.5" is not a BIGINT: it has a fraction`},
		{"a long text", "", strings.Repeat("x", 99) + ",a,1,,", `n: "` + strings.Repeat("x", 64) + `"… (99 bytes) is not a BIGINT: it is not a number`},
		{"NOT NULL", "", "1,a,,,", "x: the field is empty, and the column is NOT NULL"},
		{"a truth value", "", "1,a,1,yes,", `ok: "yes" is not a BOOLEAN: it is not true or false`},
		{"beyond a double", "", "1,a,1e400,,", `x: "1e400" is not a DOUBLE: it is out of range`},
		{"too few", "", "1,a,2\n", ": row has 3 fields, table has 5"},
		{"one", "", "1\r\n", ": row has 1 field, table has 5"},
		{"too many", "", "1,\"a,\nb\",2,,,,x\n", ": row has 7 fields, table has 5"},
		{"a stray quote", "", "1,a\"b,2,,", `: not a CSV record: field 2 has a quote inside a field that does not begin with one; put the field in quotes and double those within: "a\"b,2,,"`},
		{"behind a quote", "", "1,\"a\"b,2,,", `: not a CSV record: field 2 goes on after its closing quote; double the quotes within it: "\"a\"b,2,,"`},
		{"an open quote", "", "1,\"a,2,,\n", ": incomplete"},
		{"invalid UTF-8", "", "1,\xff,2,,", `k: "\xff" is not valid UTF-8`},
	} {
		table.Options = map[string]string{}
		if c.options != "" {
			table.Options = map[string]string{"csv.delimiter": c.options[:1], "csv.null": c.options[1:]}
		}
		got, f := decodeAll(t, reading(table), c.body)
		if f != nil {
			got = f.column + ": " + f.reason
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// TestCSVUnread: columns that the query does not read never fail a row, records do.
func TestCSVUnread(t *testing.T) {
	t.Parallel()
	spec := reading(behavior("csv", ""), 3, 0)
	got, f := decodeAll(t, spec, "1,x,\"y\nz\",pv,\xff\n2,,,\"cart\",\n")
	if want := "\"pv\"|1\n\"cart\"|2\n"; f != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, f, want)
	}
	for _, bad := range []string{"1,2,3,pv\n", "1,2\"2\",3,pv,5\n", "1,2,3,pv,5,6\n"} {
		if _, f := decodeAll(t, spec, bad); f == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestCSVOneColumn: an empty line of a table of one column is a record, as in
// PostgreSQL's COPY; the sink writes NULL so.
func TestCSVOneColumn(t *testing.T) {
	t.Parallel()
	table := plan.Table{Name: "t", Format: "csv", Columns: []plan.Column{col("k", text)}}
	for _, c := range []struct{ null, body, want string }{
		{"", "a\n\n\"\"\r\n\r\nb", "\"a\"\nNULL\n\"\"\nNULL\n\"b\"\n"},
		{"NULL", "\nNULL\n\"NULL\"\n", "\"\"\nNULL\n\"NULL\"\n"},
		{"", "\n", "NULL\n"},
		{"", "", ""},
	} {
		table.Options = map[string]string{"csv.null": c.null}
		got, f := decodeAll(t, reading(table), c.body)
		if f != nil || got != c.want {
			t.Errorf("%q: got %q, %v; want %q", c.body, got, f, c.want)
		}
		got, f = decodeAll(t, reading(table, []int{}...), c.body)
		if rows := strings.Count(c.want, "\n"); f != nil || strings.Count(got, "\n") != rows {
			t.Errorf("%q: counts %q, %v; want %d", c.body, got, f, rows)
		}
	}
}

// TestCSVSubset: what a record gives, and whether it is one, does not depend on which
// columns are read.
func TestCSVSubset(t *testing.T) {
	t.Parallel()
	table := plan.Table{Name: "t", Format: "csv"}
	for i := range 7 {
		table.Columns = append(table.Columns, col(string(rune('a'+i)), text))
	}
	field := rapid.OneOf(rapid.StringMatching(`[a-d0-9]{0,12}`), rapid.StringMatching(`"([a-d,\n]|""){0,12}"`), rapid.SampledFrom([]string{"\r", `a"`, `"a`, "x,y"}))
	rapid.Check(t, func(t *rapid.T) {
		var body strings.Builder
		for range rapid.IntRange(1, 3).Draw(t, "records") {
			fields := rapid.SliceOfN(field, 6, 7).Draw(t, "fields")
			body.WriteString(strings.Join(fields, ",") + rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end"))
		}
		all, f := decodeAll(t, reading(table), body.String())
		var want strings.Builder
		subset := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6}).Draw(t, "columns")[:rapid.IntRange(1, 7).Draw(t, "n")]
		for row := range strings.Lines(all) {
			values := strings.Split(strings.TrimSuffix(row, "\n"), "|")
			for i, c := range subset {
				want.WriteString([]string{"|", ""}[max(1-i, 0)] + values[c])
			}
			want.WriteByte('\n')
		}
		got, f2 := decodeAll(t, reading(table, subset...), body.String())
		if got != want.String() || (f == nil) != (f2 == nil) || f != nil && *f != *f2 {
			t.Fatalf("%q, columns %v: got %q, %v; all: %q, %v", body.String(), subset, got, f2, all, f)
		}
	})
}

// TestCSVWithoutQuotes: records without quotes are read column by column, and are what they are
// when read one by one.
func TestCSVWithoutQuotes(t *testing.T) {
	t.Parallel()
	field := rapid.OneOf(
		rapid.StringMatching(`[0-9]{0,20}`), rapid.StringMatching(`-?[0-9]{1,9}`), rapid.SampledFrom([]string{"", "NULL", "0", "-1", "2147483648", "1e3", "12.0", "\r", "1\r", "x", "é", "\xff", "2017-11-25"}),
		rapid.StringMatching(`[a-zé ]{0,12}`), rapid.StringMatching(`[a-z]{30,70}`),
	)
	types := []expr.Type{integer, bigint, text, bytesType, dateType, double}
	rapid.Check(t, func(t *rapid.T) {
		o := csvOptions{
			delimiter: rapid.SampledFrom([]byte(",,,;\t|7- ")).Draw(t, "delimiter"),
			null:      rapid.SampledFrom([]string{"", "", "NULL", "0", "-1", "x"}).Draw(t, "null"),
		}
		table := plan.Table{Name: "t", Format: "csv"}
		for i := range rapid.IntRange(1, 6).Draw(t, "columns") {
			c := col(string(rune('a'+i)), rapid.SampledFrom(types).Draw(t, "type"))
			c.NotNull = rapid.IntRange(0, 5).Draw(t, "not null") == 0
			table.Columns = append(table.Columns, c)
		}
		n := len(table.Columns)
		spec := reading(table, rapid.Permutation(reading(table).Read).Draw(t, "order")[:rapid.IntRange(0, n).Draw(t, "read")]...)
		var body strings.Builder
		for range rapid.IntRange(0, 40).Draw(t, "records") {
			fields := make([]string, max(n+rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 1}).Draw(t, "more"), 1))
			for i := range fields {
				if i < n && table.Columns[i].Type.Kind == bigint.Kind && rapid.IntRange(0, 9).Draw(t, "fits") > 0 {
					fields[i] = rapid.StringMatching(`[0-9]{1,18}`).Draw(t, "number")
				} else if i < n && table.Columns[i].Type == text {
					fields[i] = rapid.StringMatching(`[a-zé ]{0,12}`).Draw(t, "text")
				} else {
					fields[i] = field.Draw(t, "field")
				}
			}
			body.WriteString(strings.Join(fields, string(o.delimiter)) + rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, "end"))
			if rapid.IntRange(0, 19).Draw(t, "blank") == 0 {
				body.WriteString(rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "blank line"))
			}
		}
		results := [2]string{}
		for i, noQuotes := range []bool{false, true} {
			r, err := newRows(spec)
			if err != nil {
				t.Fatal(err)
			}
			d := newCSVDecoder(spec, o)
			d.noQuotes = noQuotes
			rows, f := decodeWith(t, spec, d, r, body.String()+strings.Repeat("\r\n", 50*min(n-1, 1))) // room behind, which the fast path needs
			if f != nil {
				rows = fmt.Sprintf("%s%s: %s", rows, f.column, f.reason)
			}
			results[i] = rows
		}
		if diff := cmp.Diff(results[0], results[1]); diff != "" {
			t.Fatalf("%q: -one by one +by column\n%s", body.String(), diff)
		}
	})
}

// TestCSVNumericNull: a text that is a number is NULL where csv.null says so.
func TestCSVNumericNull(t *testing.T) {
	t.Parallel()
	for null, want := range map[string]string{"0": "NULL\n-1\n7\n", "-1": "0\nNULL\n7\n", "7": "0\n-1\nNULL\n"} {
		table := one("csv", bigint)
		table.Options = map[string]string{"csv.null": null}
		if got, f := decodeAll(t, reading(table), "0\n-1\n7\n"); f != nil || got != want {
			t.Errorf("csv.null %s: got %q, %v, want %q", null, got, f, want)
		}
	}
}
