package source

import (
	"context"
	"errors"
	"strings"
	"testing"

	"weir/exec"
	"weir/planner/expr"
	"weir/planner/plan"
)

// threeValues is a table (a BIGINT, s STRING) of which a query reads s, then a.
func threeValues() exec.Setup {
	bigint, text := expr.Type{Kind: expr.BigInt}, expr.Type{Kind: expr.String}
	number := func(n int64) *expr.Expr {
		return &expr.Expr{Op: expr.OpLiteral, Type: bigint, Literal: &expr.Literal{Int: n}}
	}
	word := func(s string) *expr.Expr {
		return &expr.Expr{Op: expr.OpLiteral, Type: text, Literal: &expr.Literal{String: s}}
	}
	sum := &expr.Expr{Op: expr.OpAdd, Type: bigint, Args: []*expr.Expr{number(1), number(2)}, Text: "1 + 2"}
	a, s := plan.Column{Name: "a", Type: bigint}, plan.Column{Name: "s", Type: text}
	return exec.Setup{
		Parallelism: 1,
		Operator: plan.Operator{Kind: plan.Source, Schema: []plan.Column{s, a}, Source: &plan.SourceSpec{
			Table: plan.Table{Name: "values", Connector: "values", Columns: []plan.Column{a, s}}, Read: []int{1, 0}, Bounded: true,
			Values: [][]*expr.Expr{{number(1), word("x")}, {sum, word("")}, {{Op: expr.OpLiteral, Type: bigint}, {Op: expr.OpLiteral, Type: text}}},
		}},
	}
}

// drained emits all that a source has.
func drained(t *testing.T, s exec.Source) string {
	t.Helper()
	var out strings.Builder
	for {
		b, poll, _, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if b != nil {
			out.WriteString(b.String())
			b.Release()
		}
		if poll == exec.Done {
			return out.String()
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	const all = "+I x|1\n+I |3\n+I NULL|NULL\n"
	for parallelism := 1; parallelism <= 3; parallelism++ {
		var got string
		setup := threeValues()
		setup.Parallelism = parallelism
		for setup.Subtask = range parallelism {
			s, err := Open(context.Background(), setup)
			if err != nil {
				t.Fatal(err)
			}
			got += drained(t, s)
		}
		if got != all {
			t.Errorf("parallelism %d: %s", parallelism, got)
		}
	}
}

// TestValuesRestored: a snapshot before and behind the rows repeats and drops none.
func TestValuesRestored(t *testing.T) {
	t.Parallel()
	setup := threeValues()
	s, err := Open(context.Background(), setup)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+I x|1\n+I |3\n+I NULL|NULL\n", ""} {
		items, err := s.Snapshot(1)
		if err != nil {
			t.Fatal(err)
		}
		setup.List, setup.Restored = items, true
		again, err := Open(context.Background(), setup)
		if err != nil {
			t.Fatal(err)
		}
		if got := drained(t, again); got != want {
			t.Errorf("restored from %s: %q, want %q", items, got, want)
		}
		drained(t, s)
	}
}

// rejected collects rows at fault.
type rejected struct{ rows []string }

// Reject implements exec.Rejecter.
func (r *rejected) Reject(e *exec.RowError) error {
	r.rows = append(r.rows, e.Error())
	return nil
}

func TestValuesAtFault(t *testing.T) {
	t.Parallel()
	setup := threeValues()
	sum := setup.Operator.Source.Values[1][0]
	sum.Op, sum.Args[1].Literal.Int, sum.Text = expr.OpDiv, 0, "1 / 0"
	s, err := Open(context.Background(), setup)
	if err != nil {
		t.Fatal(err)
	}
	const want = "table values: row 1: column 1 / 0: division by zero"
	_, _, _, err = s.Next(context.Background())
	var row *exec.RowError
	if !errors.As(err, &row) || err.Error() != want {
		t.Errorf("a row at fault: %v", err)
	}
	var kept rejected
	setup.Rejects = &kept
	if s, err = Open(context.Background(), setup); err != nil {
		t.Fatal(err)
	}
	if got := drained(t, s); got != "+I x|1\n+I NULL|NULL\n" || len(kept.rows) != 1 || kept.rows[0] != want {
		t.Errorf("skipping: %s, rejected %q", got, kept.rows)
	}
}
