package planner

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/exec/batch"
	"weir/exec/eval"
	"weir/planner/civil"
	"weir/planner/expr"
)

// TestBoundIsEvaluated: every expression that is bound has kernels, also folded; both
// give each row the same value, or fail it, and what is said not to fail does not.
func TestBoundIsEvaluated(t *testing.T) {
	t.Parallel()
	rows := generatedRows()
	rapid.Check(t, func(t *rapid.T) {
		g := sqlGenerator{t}
		text := g.any(rapid.IntRange(0, 3).Draw(t, "depth"))
		bound := bindText(t, text, rapid.SampledFrom([]string{"", "Europe/Berlin"}).Draw(t, "zone"))
		if bound == nil {
			return
		}
		folded := fold(bound)
		if folded.Type.Kind != bound.Type.Kind || folded.Type.Scale != bound.Type.Scale {
			t.Fatalf("%s: a %v folded to a %v", text, bound.Type, folded.Type)
		}
		never := notNull(bound, func(int) bool { return false })
		for i, row := range rows {
			want, failure := evaluated(t, text, bound, row)
			got, fails := evaluated(t, text, folded, row)
			switch {
			case (fails == nil) != (failure == nil) || got != want:
				t.Fatalf("%s, row %d: %q (%v) as bound, %q (%v) folded to %s", text, i, want, failure, got, fails, folded.SQL(generatedNames()))
			case failure != nil && !expr.CanFail(bound):
				t.Fatalf("%s, row %d, cannot fail, and does: %v", text, i, failure)
			case want == "NULL" && never:
				t.Fatalf("%s, row %d, is never NULL, and is", text, i)
			}
		}
	})
}

// generatedRows are batches of one row of the generated columns: ordinary values,
// extremes, NULLs.
func generatedRows() []*batch.Batch {
	var layout []batch.Physical
	for _, c := range generatedColumns() {
		layout = append(layout, eval.Physical(c.typ))
	}
	var rows []*batch.Batch
	for i := range 4 {
		b := batch.New(layout, 1)
		for c, col := range generatedColumns() {
			appendValue(&b.Columns[c], col.typ.Kind, i)
		}
		b.Len = 1
		rows = append(rows, b)
	}
	return rows
}

func appendValue(v *batch.Vector, k expr.Kind, row int) {
	if row == 3 {
		v.AppendNull()
		return
	}
	switch v.Physical {
	case batch.Ints:
		v.AppendInt(map[expr.Kind][3]int64{
			expr.Int: {5, -2147483648, 0}, expr.BigInt: {3, 9223372036854775807, 0},
			expr.Date: {17495, civil.MaxDays, 0}, expr.Timestamp: {1511571600123000, civil.MinMicros, 0}, expr.TimestampLTZ: {1511571600123000, civil.MaxMicros, 0},
			expr.Interval: {90061000000, -9223372036854775808, 0}, expr.MonthInterval: {14, -2147483648, 0},
		}[k][row])
	case batch.Floats:
		v.AppendFloat([]float64{2.5, -1e308, 0}[row])
	case batch.Bools:
		v.AppendBool(row == 0)
	case batch.Decimals:
		v.AppendDecimal(batch.Int128Of([]int64{155, -9999999999, 0}[row]))
	case batch.Strings:
		v.AppendString([]string{"a1,b", "2017-11-25 01:02:03", ""}[row])
	}
}

func evaluated(t *rapid.T, text string, e *expr.Expr, row *batch.Batch) (string, error) {
	program, err := eval.Compile(e, eval.Env{Now: func() time.Time { return time.UnixMicro(1511571600123456) }})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out := batch.Vector{Physical: eval.Physical(e.Type)}
	if err := program.Eval(row, &out); err != nil {
		return "", err
	}
	switch {
	case out.Null(0):
		return "NULL", nil
	case out.Physical == batch.Bools:
		return fmt.Sprint(out.Bools[0]), nil
	case out.Physical == batch.Ints:
		return fmt.Sprint(out.Ints[0]), nil
	case out.Physical == batch.Floats:
		return fmt.Sprint(out.Floats[0]), nil
	case out.Physical == batch.Decimals:
		return out.Decimals[0].Decimal(e.Type.Scale), nil
	}
	return string(out.Str(0)), nil
}
