package source

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
	"weir/planner/plan"
)

// reference decodes one line as encoding/json sees it: what the three columns of
// fuzzTable hold, or false where the record is no good.
func reference(line []byte) (row string, ok bool) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil || fields == nil || !json.Valid(line) {
		return "", false
	}
	var out []string
	for _, c := range fuzzTable.Columns {
		value, ok := referenceValue(fields[c.Name], c)
		if !ok {
			return "", false
		}
		out = append(out, value)
	}
	return strings.Join(out, "|") + "\n", true
}

func referenceValue(v any, c plan.Column) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "NULL", true
	case string:
		return referenceText(v, c.Type)
	case json.Number:
		switch c.Type {
		case double:
			f, err := strconv.ParseFloat(v.String(), 64)
			return strconv.FormatFloat(f, 'g', -1, 64), err == nil
		case bigint:
			if mantissa, exponent, ok := strings.Cut(strings.ToLower(v.String()), "e"); ok && len(strings.TrimLeft(exponent, "+-0")) > 4 {
				zero := strings.Trim(mantissa, "-0.") == ""
				return "0", zero // slow to compute, and else no BIGINT
			}
			r, _ := new(big.Rat).SetString(v.String())
			return r.Num().String(), r.IsInt() && r.Num().IsInt64()
		}
	}
	return "", false
}

// referenceText reads a text as a value. That civil reads texts as PostgreSQL does is
// tested where it is.
func referenceText(s string, t expr.Type) (string, bool) {
	switch t.Kind {
	case expr.String:
		return strconv.Quote(s), true
	case expr.Double:
		return strings.Replace(s, "Infinity", "Inf", 1), s == "NaN" || s == "-Infinity"
	case expr.Bytes:
		b, err := base64.StdEncoding.Strict().DecodeString(s)
		return strconv.Quote(string(b)), err == nil
	case expr.Date, expr.Timestamp:
		v, problem := civil.Parse([]byte(s))
		if problem != "" || strings.TrimSpace(s) != s || v.Has(civil.Zoned) || v.Has(civil.Timed) && t.Kind == expr.Date {
			return "", false
		}
		if t.Kind == expr.Date {
			return string(civil.AppendDate(nil, v.Days)), true
		}
		return string(civil.AppendISO(nil, v.Micros)), true
	case expr.Interval:
		months, micros, problem := civil.ParseInterval([]byte(s))
		return string(civil.AppendInterval(nil, micros)), problem == "" && months == 0 && strings.TrimSpace(s) == s
	}
	return "", false
}

var fuzzTable = plan.Table{Name: "t", Format: "json", Columns: []plan.Column{
	col("k", text), col("n", bigint), col("x", double), col("b", bytesType), col("d", dateType), col("t", clockType), col("i", intervals),
}}

// compare checks one line against encoding/json.
func compare(tb fatal, line []byte) {
	got, f := decodeAll(tb, reading(fuzzTable), string(line))
	want, ok := reference(line)
	switch {
	case len(bytes.TrimLeft(line, " \t\r")) == 0:
		want, ok = "", true
	case bytes.Contains(line, []byte(`\u`)), !utf8.Valid(line), strings.Contains(string(line), "ſ"):
		return // encoding/json replaces what is no character
	case bytes.Count(line, []byte("{")) > maxDepth || bytes.Count(line, []byte("[")) > maxDepth:
		return
	case duplicates(line):
		return
	}
	if (f == nil) != ok {
		tb.Fatalf("%q: fault %v, encoding/json accepts it: %v", line, f, ok)
	}
	if f == nil && got != want {
		tb.Fatalf("%q: got %q, want %q", line, got, want)
	}
}

// duplicates reports whether a key may be there twice, or in another case, which
// encoding/json and this package see differently.
func duplicates(line []byte) bool {
	for _, c := range fuzzTable.Columns {
		if strings.Count(strings.ToLower(string(line)), strconv.Quote(c.Name)) > 1 {
			return true
		}
	}
	return false
}

// TestNoStepFits: a record of the bytes that stand for "nothing is predicted" is a
// broken one; it was read without an end as rows of NULLs.
func TestNoStepFits(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 40; n++ {
		record := strings.Repeat("\xff", n)
		for _, body := range []string{record, record + "\n", "{}\n" + record + "\n{}\n", "{" + record, "{}" + record} {
			if rows, f := decodeAll(t, reading(fuzzTable), body); f == nil {
				t.Errorf("%d bytes in %q: read as %q", n, body, rows)
			}
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"k":"a","n":1,"x":2.5}`, `{"x":1e3,"n":-12.0,"k":"q\"\\"}`, ` { "y" : [ 1 , { } ] , "n" : null } `, `{"n":9223372036854775808}`, `{}`,
		`{"k":"é…","n":00}`, `{"k":"a"}x`, `[1]`, ``, `{"n":0.1e1,"x":-0}`, `{"n":0E00000}`, strings.Repeat("\xff", 16), `{"n":0e99999}`, `{"n":1e-99999}`, `{"n":12345678901234567}`,
		`{"b":"aGVsbG8=","d":"2017-11-25","t":"2017-11-25T01:00:00.5","i":"1 day 02:03:04.5"}`, `{"b":"AP\/+","t":"0001-01-01","i":"P1DT2H"}`, `{"x":"NaN"}`, `{"x":"-Infinity","d":"9999-12-31"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') < 0 {
			compare(t, line)
		}
	})
}

// TestJSONAgainstReference builds records of all kinds, some of them broken.
func TestJSONAgainstReference(t *testing.T) {
	t.Parallel()
	number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,19})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?`)
	quoted := rapid.StringMatching(`"([a-zé ]|\\["\\/bfnrt]){0,20}"`)
	atom := rapid.OneOf(number, quoted, rapid.SampledFrom([]string{"null", "true", "false", "[]", "{}", `[1,"a",{"b":null}]`, "nul", "01", `"`, ""}))
	blank := rapid.SampledFrom([]string{"", "", " ", "\t", "\r"})
	fitting := map[string]*rapid.Generator[string]{
		"k": quoted, "n": rapid.StringMatching(`-?[1-9][0-9]{0,17}`), "x": rapid.OneOf(number, rapid.SampledFrom([]string{`"NaN"`, `"-Infinity"`, `"Inf"`})),
		"b": rapid.StringMatching(`"([A-Za-z0-9+/]{4}){0,5}([A-Za-z0-9+/][AQgw]==)?"`), "d": rapid.StringMatching(`"(000[01]|[0-9]{4})-[01][0-9]-[0-3][0-9]"`),
		"t": rapid.StringMatching(`"[0-9]{4}-0[1-9]-[0-2][0-9][T ][01][0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,8})?)?Z?"`), "i": rapid.StringMatching(`"-?[0-9]{1,9} (day|days|mons)( -?[0-9]{2}:[0-9]{2})?"`),
	}
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.Permutation([]string{"k", "n", "x", "b", "d", "t", "i", "other", "q q"}).Draw(t, "keys")
		var s strings.Builder
		s.WriteString(blank.Draw(t, "w") + "{")
		for i, k := range keys[:rapid.IntRange(0, 9).Draw(t, "n")] {
			if i > 0 {
				s.WriteString(blank.Draw(t, "w") + ",")
			}
			s.WriteString(blank.Draw(t, "w") + strconv.Quote(k) + blank.Draw(t, "w") + ":" + blank.Draw(t, "w"))
			if g := fitting[k]; g != nil && rapid.IntRange(0, 3).Draw(t, "fits") > 0 {
				s.WriteString(g.Draw(t, "v"))
			} else {
				s.WriteString(atom.Draw(t, "v"))
			}
		}
		s.WriteString(blank.Draw(t, "w") + "}" + blank.Draw(t, "w"))
		compare(t, []byte(s.String()))
	})
}

// TestJSONBehindOthers: what stands between two values is remembered from record to
// record; a record is read alike behind any other one.
func TestJSONBehindOthers(t *testing.T) {
	t.Parallel()
	blank := rapid.SampledFrom([]string{"", "", " ", "\t", "\r", "  "})
	value := rapid.SampledFrom([]string{
		"1", "-12.5", "12.0", "1e3", "0", "-0", "00", "0.5", "1.", "1x", "1:2", "12?", "12345678", "123456789012345", "1234567890123456", "1234567890123.0", "12345678E0", "9223372036854775808", `"a"`, `"long enough to count"`, "null", "true", `[1]`, `{"k":1}`, "x",
	})
	record := rapid.Custom(func(t *rapid.T) string {
		var s strings.Builder
		s.WriteString(blank.Draw(t, "w") + "{")
		for i, k := range rapid.Permutation([]string{"k", "n", "x", "other"}).Draw(t, "keys")[:rapid.IntRange(0, 4).Draw(t, "n")] {
			if i > 0 {
				s.WriteString(blank.Draw(t, "w") + ",")
			}
			s.WriteString(blank.Draw(t, "w") + strconv.Quote(k) + blank.Draw(t, "w") + ":" + blank.Draw(t, "w") + value.Draw(t, "v"))
		}
		return s.String() + blank.Draw(t, "w") + "}" + blank.Draw(t, "w")
	})
	rapid.Check(t, func(t *rapid.T) {
		var body, rows string
		for _, line := range rapid.SliceOfN(record, 1, 6).Draw(t, "lines") {
			body += line + "\n"
			alone, fault := decodeAll(t, reading(fuzzTable), line)
			got, f := decodeAll(t, reading(fuzzTable), body)
			if (f == nil) != (fault == nil) || f != nil && f.reason != fault.reason {
				t.Fatalf("%q: fault %v, alone %v", body, f, fault)
			}
			if f != nil {
				return
			}
			if rows += alone; got != rows {
				t.Fatalf("%q:\n got %s\nwant %s", body, got, rows)
			}
		}
	})
}

// TestNumbers compares the number scanners with math/big.
func TestNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`-?[0-9]{1,21}(\.[0-9]{1,6})?(e[+-]?[0-9]{1,2})?`).Draw(t, "number")
		n, ok := parseNumeral([]byte(s))
		if !ok {
			t.Fatalf("%s is not taken apart", s)
		}
		r, _ := new(big.Rat).SetString(s)
		d, fit := n.decimal(0)
		switch digits := new(big.Int).Abs(r.Num()).String(); {
		case fit == batch.Exact && r.IsInt() && d.Decimal(0) == r.Num().String():
		case fit == batch.Inexact && !r.IsInt():
		case fit == batch.TooLarge && r.IsInt() && len(digits) > batch.MaxPrecision:
		default:
			t.Fatalf("%s: got %s, %d", s, d.Decimal(0), fit)
		}
		if v, end, ok := scanInt(window(s+","), 0, false); ok && (end != len(s) || big.NewInt(v).String() != r.Num().String()) {
			t.Fatalf("%s: scanned %d up to %d", s, v, end)
		}
	})
	if v, _, ok := scanInt(window("-999999999999999999,"), 0, true); !ok || v != -999999999999999999 {
		t.Error(v, ok)
	}
	if f, ok := parseFloat([]byte("1e-400")); !ok || f != 0 {
		t.Error(f, ok)
	}
	if f, ok := special("-Infinity"); !ok || !math.IsInf(f, -1) {
		t.Error(f, ok)
	}
}

// TestCSVAgainstReference writes records with encoding/csv and reads them back.
func TestCSVAgainstReference(t *testing.T) {
	t.Parallel()
	table := plan.Table{Name: "t", Format: "csv", Columns: []plan.Column{col("a", text), col("b", text), col("c", text)}}
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.StringMatching(`[a-c",\n é]{0,12}`)
		records := rapid.SliceOfN(rapid.SliceOfN(field, 3, 3), 0, 8).Draw(t, "records")
		var body bytes.Buffer
		w := csv.NewWriter(&body)
		w.UseCRLF = false
		if err := w.WriteAll(records); err != nil {
			t.Fatal(err)
		}
		in := body.String()
		if rapid.Bool().Draw(t, "no last line feed") {
			in = strings.TrimSuffix(in, "\n")
		}
		got, f := decodeAll(t, reading(table), in)
		if f != nil {
			t.Fatalf("%q: %v", in, f)
		}
		var want strings.Builder
		for _, r := range records {
			for i, v := range r {
				if i > 0 {
					want.WriteByte('|')
				}
				if v == "" {
					want.WriteString("NULL")
				} else {
					want.WriteString(strconv.Quote(v))
				}
			}
			want.WriteByte('\n')
		}
		if !reflect.DeepEqual(got, want.String()) {
			t.Fatalf("%q: got\n%swant\n%s", in, got, want.String())
		}
	})
}

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"1,a,2\n", "\"1\",\"a\"\"b\",\"\"\r\n", "1,\"a\nb\",", "a\"b,c,d", ",,", "\"", "1,2\n", "1,2,3,4"} {
		f.Add([]byte(seed))
	}
	f.Add([]byte("1,a,2,aGVsbG8=,2017-11-25,2017-11-25 01:00:00.5,1 day 02:03:04.5\n,,,,,,\n1,\"\",1,\"\",,,"))
	table := plan.Table{Name: "t", Format: "csv", Columns: []plan.Column{
		col("n", bigint), col("s", text), col("x", double), col("b", bytesType), col("d", dateType), col("t", clockType), col("i", intervals),
	}}
	f.Fuzz(func(t *testing.T, body []byte) {
		all, f := decodeAll(t, reading(table), string(body))
		few, f2 := decodeAll(t, reading(table, []int{1}...), string(body))
		if f == nil && f2 != nil {
			t.Fatalf("%q: reading one column fails (%v), reading all does not", body, f2.reason)
		}
		if f == nil && strings.Count(all, "\n") != strings.Count(few, "\n") {
			t.Fatalf("%q: %q and %q", body, all, few)
		}
	})
}
