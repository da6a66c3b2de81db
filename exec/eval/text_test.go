package eval

import (
	"errors"
	"strings"
	"testing"

	"weir/exec/batch"
	"weir/planner/expr"
)

// rowFailure evaluates a constant expression for one row and returns its row error.
func rowFailure(t *testing.T, e *expr.Expr) string {
	t.Helper()
	p, err := Compile(e, Env{})
	if err != nil {
		t.Fatal(err)
	}
	var out batch.Vector
	var failed *RowError
	if err := p.Eval(intBatch(1), &out); !errors.As(err, &failed) {
		t.Fatalf("%s: %v", e.Text, err)
	}
	return failed.Error()
}

// What users read when a value cannot be computed.
func TestTextFailures(t *testing.T) {
	t.Parallel()
	long := text(strings.Repeat("x", 1000))
	for want, e := range map[string]*expr.Expr{
		`a string longer than 256 KiB in repeat`:                                                          callOf("repeat", expr.String, long, intConstant(2000)),
		`a string longer than 256 KiB in lpad`:                                                            callOf("lpad", expr.String, long, intConstant(1<<21), text("é")),
		`a string longer than 256 KiB in replace`:                                                         callOf("replace", expr.String, long, text("x"), text(strings.Repeat("y", 2000))),
		`negative substring length in substring`:                                                          callOf("substring", expr.String, long, intConstant(1), intConstant(-1)),
		`there is no piece 0 in split_part`:                                                               callOf("split_part", expr.String, long, text(","), intConstant(0)),
		`ESCAPE "ab" is longer than one character in like`:                                                callOf("like", expr.Boolean, long, text("x"), text("ab")),
		`the pattern "a!" ends in its escape character "!": write it twice to mean itself in ilike`:       callOf("ilike", expr.Boolean, long, text("a!"), text("!")),
		"\"(\" is no regular expression: missing closing ): `(` in regexp_extract":                        callOf("regexp_extract", expr.String, long, text("(")),
		"\"a**\" is no regular expression: invalid nested repetition operator: `**` in regexp_replace":    callOf("regexp_replace", expr.String, long, text("a**"), text("")),
		`a string longer than 256 KiB in regexp_replace`:                                                  callOf("regexp_replace", expr.String, long, text(""), text(strings.Repeat("y", 2000))),
		`"a.b" is not a path such as $.name[0]: expected $, the whole value at character 1 in json_value`: callOf("json_value", expr.String, text("{}"), text("a.b")),
	} {
		if got := rowFailure(t, e); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Functions that PostgreSQL has not: SPLIT_INDEX and REGEXP_EXTRACT are Flink's.
func TestFunctionsOfFlink(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e    *expr.Expr
		want string
	}{
		{callOf("split_index", expr.String, text("a,b,,c"), text(","), intConstant(0)), "'a'"},
		{callOf("split_index", expr.String, text("a,b,,c"), text(","), intConstant(2)), "''"},
		{callOf("split_index", expr.String, text("a,b,,c"), text(","), intConstant(3)), "'c'"},
		{callOf("split_index", expr.String, text("a,b,,c"), text(","), intConstant(4)), "NULL"},
		{callOf("split_index", expr.String, text("a,b,,c"), text(","), intConstant(-1)), "NULL"},
		{callOf("split_index", expr.String, text("a b"), text(""), intConstant(1)), "'b'"},
		{callOf("split_index", expr.String, text(""), text(","), intConstant(0)), "NULL"},
		{callOf("regexp_extract", expr.String, text("id=42;"), text("id=([0-9]+)"), intConstant(1)), "'42'"},
		{callOf("regexp_extract", expr.String, text("id=42;"), text("id=([0-9]+)")), "'id=42'"},
		{callOf("regexp_extract", expr.String, text("id=42;"), text("id=([0-9]+)"), intConstant(2)), "NULL"},
		{callOf("regexp_extract", expr.String, text("id=42;"), text("id=([0-9]+)"), intConstant(-1)), "NULL"},
		{callOf("regexp_extract", expr.String, text("ac"), text("a(b)?c"), intConstant(1)), "NULL"},
		{callOf("regexp_extract", expr.String, text("x"), text("[0-9]")), "NULL"},
		{callOf("regexp_extract", expr.String, text("日本語"), text("本.")), "'本語'"},
		{callOf("json_value", expr.String, text(`{"a": {"b c": [1, "x"]}}`), text("$.a['b c'][1]")), "'x'"},
		{callOf("json_value", expr.String, text(strings.Repeat("[", 1000)+strings.Repeat("]", 1000)), text("$.a")), "NULL"},
	} {
		p, err := Compile(c.e, Env{})
		if err != nil {
			t.Fatal(err)
		}
		var out batch.Vector
		if err := p.Eval(intBatch(1), &out); err != nil {
			t.Fatal(err)
		}
		if got := valueText(c.e.Type, &out, 0); got != c.want {
			t.Errorf("%s: %s, want %s", show(c.e), got, c.want)
		}
	}
}

// More patterns than are kept: each still counts for its own rows.
func TestManyPatterns(t *testing.T) {
	t.Parallel()
	b := batch.New([]batch.Physical{batch.Strings, batch.Strings}, 300)
	for i := range 300 {
		b.Columns[0].AppendString("abc")
		b.Columns[1].AppendString(string(rune('a'+i%100)) + "?b")
		b.EndRow(batch.Insert)
	}
	p, err := Compile(callOf("regexp_extract", expr.String, stringColumn(0), stringColumn(1)), Env{})
	if err != nil {
		t.Fatal(err)
	}
	b.Sel = []int32{}
	for i := range b.Len { // what is no pattern, such as {?b, is not selected
		if c := 'a' + i%100; c <= 'z' {
			b.Sel = append(b.Sel, int32(i))
		}
	}
	var out batch.Vector
	if err := p.Eval(b, &out); err != nil {
		t.Fatal(err)
	}
	for _, row := range b.Sel {
		want := "b"
		if row%100 == 0 {
			want = "ab"
		}
		if got := string(out.Str(int(row))); got != want {
			t.Fatalf("row %d: %q, want %q", row, got, want)
		}
	}
}

func FuzzLike(f *testing.F) {
	for _, c := range [][3]string{{"abc", "a%", `\`}, {"a_c", `a\_c`, `\`}, {"日本語", "_本%", "!"}, {"aaab", "%a_b", ""}, {"ab", "%%_", `\`}} {
		f.Add(c[0], c[1], c[2])
	}
	f.Fuzz(func(t *testing.T, s, pattern, escape string) {
		s, pattern, escape = strings.ToValidUTF8(s, "?"), strings.ToValidUTF8(pattern, "?"), strings.ToValidUTF8(escape, "?")
		for _, fold := range []bool{false, true} {
			name := "like"
			if fold {
				name = "ilike"
			}
			e := callOf(name, expr.Boolean, text(s), text(pattern), text(escape))
			p := &likePattern{fold: fold}
			p.set([]byte(pattern), []byte(escape))
			got := p.match([]byte(s))
			want, failed := referenceCall(e, []value{{s: s}, {s: pattern}, {s: escape}}, 0)
			if (p.problem != "") != (failed != nil) || failed == nil && got != want.b {
				t.Fatalf("%q %s %q escape %q: %v %q, want %v %v", s, name, pattern, escape, got, p.problem, want.b, failed)
			}
		}
	})
}

// JSON_VALUE agrees with a decoder that reads the whole text, except on numbers with
// exponents, which that keeps.
func FuzzJSONValue(f *testing.F) {
	for _, c := range [][2]string{{`{"a":{"b":[1,"x"]}}`, "$.a.b[1]"}, {`[{"a":1}]`, "$.a"}, {`{"a":"\u00e9\ud83d\ude42"}`, "$.a"}, {`{"a":1,"a":[2]}`, "$.a[0]"}, {" [ true , null ] ", "$[0]"}} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, data, path string) {
		data = strings.ToValidUTF8(data, "?")
		want, ok := referenceJSONValue([]value{{s: data}, {s: path}})
		p := &jsonPath{}
		p.set([]byte(path))
		if (p.problem == "") != ok {
			t.Fatalf("%q: %q", path, p.problem)
		}
		if !ok || strings.ContainsAny(data, "eE-") || strings.Contains(data, `\u`) {
			return // numbers are normalised; the decoder takes half a pair for a character
		}
		got, v := p.appendValue(nil, []byte(data))
		if (v == absent) != want.null || v == "" && string(got) != want.s {
			t.Fatalf("%s of %s: %q %q, want %+v", path, data, got, v, want)
		}
	})
}
