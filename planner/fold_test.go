package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/exec/batch"
	"weir/exec/eval"
	"weir/planner"
	"weir/planner/expr"
	"weir/planner/plan"
)

// TestFoldAgreesWithEval: whatever fold does to an expression, a row gets the same
// value, or the same failure, as from the expression as it was bound.
func TestFoldAgreesWithEval(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := generator{t}
		text := g.boolean(4)
		if rapid.Bool().Draw(t, "number") {
			text = g.number(4)
		}
		bound, ok := outputOf(t, text, planner.Rewrites{NoFold: true})
		if !ok {
			return
		}
		folded, _ := outputOf(t, text, planner.Rewrites{})
		for _, row := range rows() {
			want, wantFails := valueOf(t, bound, row)
			got, fails := valueOf(t, folded, row)
			if fails != wantFails || got != want {
				t.Fatalf("%s over %v: %q (fails: %v) as bound, %q (fails: %v) folded", text, row, want, wantFails, got, fails)
			}
		}
	})
}

// A generator draws SQL expressions over a INT, b BIGINT, d DOUBLE and f BOOLEAN.
type generator struct{ t *rapid.T }

func (g generator) pick(from ...string) string { return rapid.SampledFrom(from).Draw(g.t, "pick") }

func (g generator) number(depth int) string {
	if depth == 0 || rapid.IntRange(0, 3).Draw(g.t, "leaf") == 0 {
		return g.pick("a", "b", "d", "0", "1", "2", "-7", "2147483647", "9223372036854775807", "1.5", "0.0", "-0.25", "1e300", "2.5e-1", "NULL")
	}
	if g.pick("neg", "op", "op", "op") == "neg" {
		return "-(" + g.number(depth-1) + ")"
	}
	return "(" + g.number(depth-1) + g.pick(" + ", " - ", " * ", " / ", " % ") + g.number(depth-1) + ")"
}

func (g generator) boolean(depth int) string {
	if depth == 0 {
		return g.pick("f", "TRUE", "FALSE", "NULL")
	}
	switch g.pick("logic", "logic", "compare", "in", "null", "not", "text") {
	case "logic":
		return "(" + g.boolean(depth-1) + g.pick(" AND ", " OR ") + g.boolean(depth-1) + ")"
	case "compare":
		return "(" + g.number(depth-1) + g.pick(" = ", " <> ", " < ", " <= ", " > ", " >= ") + g.number(depth-1) + ")"
	case "in":
		return "(" + g.number(depth-1) + g.pick(" IN (", " NOT IN (") + g.number(depth-1) + ", " + g.number(depth-1) + "))"
	case "null":
		return "(" + g.number(depth-1) + g.pick(" IS NULL", " IS NOT NULL") + ")"
	case "text":
		return "(" + g.pick("'a'", "'B'", "''", "NULL") + g.pick(" = ", " < ", " >= ") + g.pick("'a'", "'ab'", "''") + ")"
	}
	return "(NOT " + g.boolean(depth-1) + ")"
}

// outputOf plans a query for one expression and returns its project; ok is false where
// the binder refuses it.
func outputOf(t *rapid.T, text string, rewrites planner.Rewrites) (*expr.Expr, bool) {
	rewrites.NoReadColumns = true
	script := `CREATE TABLE t (a INT, b BIGINT, d DOUBLE, f BOOLEAN) WITH ('connector' = 'datagen'); SELECT ` + text + ` AS x FROM t`
	result, err := planner.Plan(script, nil, planner.Options{Rewrites: rewrites})
	if err != nil {
		if strings.Contains(err.Error(), "syntax") {
			t.Fatalf("%s: %v", text, err)
		}
		return nil, false
	}
	for _, op := range result.Graph.Chains[0].Operators {
		if op.Kind == plan.Project {
			return op.Project.Exprs[0], true
		}
	}
	t.Fatalf("%s: no projection", text)
	return nil, false
}

// rows are batches of one row: zeros, ones, extremes, NULLs.
func rows() []*batch.Batch {
	var list []*batch.Batch
	for _, v := range []int64{0, 1, -3, 2147483647} {
		list = append(list, row(v, v, float64(v)/2, v == 1, false))
	}
	return append(list, row(-2147483648, -9223372036854775808, -1e308, true, false), row(0, 0, 0, false, true))
}

func row(a, b int64, d float64, f, null bool) *batch.Batch {
	r := batch.New([]batch.Physical{batch.Ints, batch.Ints, batch.Floats, batch.Bools}, 1)
	r.Columns[0].AppendInt(a)
	r.Columns[1].AppendInt(b)
	r.Columns[2].AppendFloat(d)
	r.Columns[3].AppendBool(f)
	r.Len = 1
	if null {
		for i := range r.Columns {
			r.Columns[i].Reset()
			r.Columns[i].AppendNull()
		}
	}
	return r
}

func valueOf(t *rapid.T, e *expr.Expr, row *batch.Batch) (value string, fails bool) {
	program, err := eval.Compile(e, eval.Env{})
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	out := batch.Vector{Physical: eval.Physical(e.Type)}
	if err := program.Eval(row, &out); err != nil {
		return "", true
	}
	switch {
	case out.Null(0):
		return "NULL", false
	case out.Physical == batch.Bools:
		return fmt.Sprint(out.Bools[0]), false
	case out.Physical == batch.Ints:
		return fmt.Sprint(out.Ints[0]), false
	case out.Physical == batch.Floats:
		return fmt.Sprint(out.Floats[0]), false
	case out.Physical == batch.Decimals:
		return out.Decimals[0].Decimal(e.Type.Scale), false
	}
	return string(out.Str(0)), false
}
