package source

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/exec"
	"weir/exec/batch"
	"weir/planner/expr"
	"weir/planner/plan"
)

// TestTimes: a date or time is what readTime makes of its text, in rows of both formats, with
// the same rows before and behind it, between quotes or not; all else is a fault with its reason.
func TestTimes(t *testing.T) {
	t.Parallel()
	form := rapid.StringMatching(`(000[01]|20[0-9]{2}|9999)-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-5][0-9]:[0-6][0-9](\.[0-9]{0,9})?(Z|[+-][01][0-9]:[0-5][0-9])?)?[ xé]?`)
	rapid.Check(t, func(t *rapid.T) {
		typ := expr.Type{Kind: rapid.SampledFrom([]expr.Kind{expr.Date, expr.Timestamp, expr.TimestampLTZ}).Draw(t, "kind")}
		if typ.Kind != expr.Date {
			typ.Precision = rapid.IntRange(0, 6).Draw(t, "precision")
		}
		text, format := form.Draw(t, "text"), rapid.SampledFrom([]string{"json", "csv", "quoted csv"}).Draw(t, "format")
		table := plan.Table{Name: "t", Format: "csv", Columns: []plan.Column{col("k", typ), col("n", bigint)}, Options: map[string]string{}}
		const before = "2017-11-25"
		line, other := text+",7\n", before+",8\n"
		switch format {
		case "json":
			table.Format = "json"
			line, other = `{"k":"`+text+`","n":7}`+"\n", `{"k":"`+before+`","n":8}`+"\n"
		case "csv":
			table.Options["csv.null"] = rapid.SampledFrom([]string{"", text}).Draw(t, "null")
		default:
			line = `"` + text + `",7` + "\n"
		}
		shown := func(text string) (string, string) {
			n, why := readTime(typ, []byte(text))
			return string(exec.AppendText(nil, typ, &batch.Vector{Physical: batch.Ints, Ints: []int64{n}}, 0)), why
		}
		around, _ := shown(before)
		want, why := shown(text)
		if table.Options["csv.null"] == text {
			want, why = "NULL", ""
			if text == before {
				around = want
			}
		}
		got, f := decodeAll(t, reading(table), other+line+other)
		if why != "" && (f == nil || !strings.HasSuffix(f.reason, why) || f.column != "k") {
			t.Fatalf("%v, %s: got %q, %v, want the fault %q", typ, line, got, f, why)
		}
		if want = around + "|8\n" + want + "|7\n" + around + "|8\n"; why == "" && (f != nil || got != want) {
			t.Fatalf("%v, %s: got %q, %v, want %q", typ, line, got, f, want)
		}
	})
	if n, why := readTime(intervals, nil); why == "" {
		t.Errorf("no text is an interval of %d", n)
	}
}
