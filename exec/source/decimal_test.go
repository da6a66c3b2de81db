package source

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/exec/batch"
	"weir/planner/expr"
	"weir/planner/plan"
)

// TestDecimals: what is read fast as a decimal is what batch.ParseDecimal makes of it, in rows
// of both formats, with the same rows before and behind it; all else is a fault.
func TestDecimals(t *testing.T) {
	t.Parallel()
	number := rapid.OneOf(
		rapid.StringMatching(`-?[0-9]{1,20}(\.[0-9]{1,12})?`),
		rapid.StringMatching(`[-+]?0{0,3}[0-9]{0,9}\.?0{0,9}[0-9]{0,4}([eE][-+]?[0-9]{1,2})?`),
	)
	grammar := map[string]*regexp.Regexp{
		"json": regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`),
		"csv":  regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`),
	}
	rapid.Check(t, func(t *rapid.T) {
		typ := expr.Type{Kind: expr.Decimal, Precision: rapid.IntRange(1, batch.MaxPrecision).Draw(t, "precision")}
		typ.Scale = rapid.IntRange(0, min(typ.Precision, 20)).Draw(t, "scale")
		text, format := number.Draw(t, "number"), rapid.SampledFrom([]string{"json", "csv"}).Draw(t, "format")
		delimiter := rapid.SampledFrom([]string{",", ";", ".", "-", "5"}).Draw(t, "delimiter")
		if format == "csv" && strings.Contains(text, delimiter) {
			return
		}
		table := plan.Table{Name: "t", Format: format, Columns: []plan.Column{col("k", typ), col("n", bigint)}, Options: map[string]string{"csv.delimiter": delimiter}}
		line, other := `{"k":`+text+`,"n":7}`, `{"k":0,"n":8}`
		if format == "csv" {
			line, other = text+delimiter+"7", "0"+delimiter+"8"
		}
		around := batch.Int128{}.Decimal(typ.Scale) + "|8\n"
		want := "fault"
		if text == "" && format == "csv" {
			want = around + "NULL|7\n" + around
		} else if d, err := batch.ParseDecimal(text, typ.Scale); err == nil && grammar[format].MatchString(text) && d.Fits(typ.Precision) {
			want = around + d.Decimal(typ.Scale) + "|7\n" + around
		}
		got, f := decodeAll(t, reading(table), other+"\n"+line+"\n"+other+"\n")
		if f != nil {
			got = "fault"
		}
		if got != want {
			t.Fatalf("%v, %s: got %q, %v, want %q", typ, line, got, f, want)
		}
	})
}
