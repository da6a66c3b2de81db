package op_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/op"
	"weir/exec/state"
	"weir/planner"
	"weir/planner/expr"
	"weir/planner/plan"
)

// TestPlannedStateSize: what a plan says of the size of state is what the operator takes,
// within 20 %. It measures the heap, so it runs alone.
func TestPlannedStateSize(t *testing.T) { //nolint:paralleltest // it measures the heap
	const table = "CREATE TABLE t (a BIGINT, b BIGINT, d DOUBLE, m DECIMAL(38, 2), s STRING) WITH ('connector' = 'datagen');"
	for _, query := range []string{
		"SELECT a, COUNT(*) FROM t GROUP BY a",
		"SELECT s, COUNT(*) FROM t GROUP BY s",
		"SELECT a, b, SUM(d), AVG(b), MIN(m), BOOL_OR(b > 1) FROM t GROUP BY a, b",
		"SELECT m, SUM(b), MAX(d) FROM t GROUP BY m",
		"SELECT a, MAX(s) FROM t GROUP BY a",
		"SELECT DISTINCT s, a FROM t",
	} {
		p, err := planner.Plan(table+query, nil, planner.Options{Rewrites: planner.Rewrites{NoSplit: true}})
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range p.State {
			if got := measured(t, p.Graph, u.Operator); math.Abs(got/float64(u.Bytes)-1) > 0.2 {
				t.Errorf("%s\n%s takes %.0f bytes an entry, and the plan says %d", query, u.Operator, got, u.Bytes)
			}
		}
	}
}

// measured gives the bytes of heap for an entry of an operator's state.
func measured(t *testing.T, g *plan.Graph, id weir.OperatorID) float64 {
	t.Helper()
	const entries = 75_000 // the segments of the index are then 57 % full
	for i, c := range g.Chains {
		input := g.Input(i)
		for _, o := range c.Operators {
			if o.ID != id {
				input = o.Schema
				continue
			}
			all := weir.KeyGroupsOf(0, 1, g.MaxParallelism)
			store := state.New(state.Options{MaxParallelism: g.MaxParallelism, KeyGroups: all})
			opened, err := op.Open(t.Context(), exec.Setup{Operator: o, Input: input, Parallelism: 1, MaxParallelism: g.MaxParallelism, State: store})
			if err != nil {
				t.Fatal(err)
			}
			before := heap()
			for from := 0; from < entries; from += batch.Target {
				if err := opened.Process(numbered(input, from, min(batch.Target, entries-from)), dropped{}); err != nil {
					t.Fatal(err)
				}
			}
			took := heap() - before
			runtime.KeepAlive(opened)
			return float64(took) / entries
		}
	}
	t.Fatalf("no operator %s", id)
	return 0
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// numbered makes rows all of whose columns say the row's number.
func numbered(schema []plan.Column, from, n int) *batch.Batch {
	b := batch.New(exec.Layout(schema), n)
	for row := from; row < from+n; row++ {
		for i, c := range schema {
			v := &b.Columns[i]
			switch c.Type.Kind {
			case expr.Boolean:
				v.AppendBool(row%2 == 0)
			case expr.Double:
				v.AppendFloat(float64(row))
			case expr.Decimal:
				v.AppendDecimal(batch.Int128Of(int64(row)))
			case expr.String:
				v.AppendString(fmt.Sprintf("sixteen%09d", row))
			default:
				v.AppendInt(int64(row))
			}
		}
		b.EndRow(batch.Insert)
	}
	return b
}

// dropped takes what an operator emits.
type dropped struct{}

func (dropped) Emit(b *batch.Batch) error { b.Release(); return nil }
