package stage

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/op"
	"weir/exec/state"
	"weir/planner"
	"weir/planner/plan"
)

// tables define what queries read and write: rows and orders of a format.
const tables = `
CREATE TABLE rows (user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, ts BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '%[1]s/rows.%[2]s', 'format' = '%[2]s');
CREATE TABLE orders (price DECIMAL(12, 2), made TIMESTAMP(3), title STRING)
  WITH ('connector' = 'filesystem', 'path' = '%[1]s/orders.%[2]s', 'format' = '%[2]s');
CREATE TABLE written (user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, ts BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '%[1]s/written', 'format' = '%[2]s');
`

// A place is an operator of a graph.
type place struct {
	graph       *plan.Graph
	chain, node int
}

// plan plans a query of the tables.
func (s *site) plan(format, query string) *plan.Graph {
	s.Helper()
	p, err := planner.Plan(fmt.Sprintf(tables, s.dir, format)+query, nil, planner.Options{})
	s.must(err)
	return p.Graph
}

// operator finds the one of a kind.
func (s *site) operator(g *plan.Graph, kind plan.OperatorKind) place {
	s.Helper()
	for i, c := range g.Chains {
		if n := slices.IndexFunc(c.Operators, func(o plan.Operator) bool { return o.Kind == kind }); n >= 0 {
			return place{g, i, n}
		}
	}
	s.Fatalf("the plan has no %s: another query has to show this stage", kind)
	return place{}
}

// spec is the operator itself.
func (p place) spec() plan.Operator { return p.graph.Chains[p.chain].Operators[p.node] }

// input is the schema of what it reads.
func (p place) input() []plan.Column {
	if p.node > 0 {
		return p.graph.Chains[p.chain].Operators[p.node-1].Schema
	}
	return p.graph.Input(p.chain)
}

// reads lists the columns of the rows that it reads, by their names.
func (p place) reads(s *site) (columns []int) {
	s.Helper()
	for _, c := range p.input() {
		n := slices.Index(columnNames, c.Name)
		if n < 0 {
			s.Fatalf("%s reads %s, which the rows do not have", p.spec().Name, c.Name)
		}
		columns = append(columns, n)
	}
	return columns
}

// setup is what it is opened with, alone and with empty state.
func (p place) setup(s *site) exec.Setup {
	return exec.Setup{
		Job: "job_00000000000000000000000000000001", Attempt: weir.AttemptID{Number: 1, Tag: "00000001"},
		Operator: p.spec(), Input: p.input(), Parallelism: 1, MaxParallelism: weir.DefaultMaxParallelism,
		State: state.New(state.Options{MaxParallelism: weir.DefaultMaxParallelism, KeyGroups: weir.KeyGroupsOf(0, 1, weir.DefaultMaxParallelism)}),
		Now:   time.Now, Files: []string{s.dir}, Logger: slog.New(slog.DiscardHandler),
	}
}

func (p place) open(s *site) exec.Operator {
	s.Helper()
	o, err := op.Open(context.Background(), p.setup(s))
	s.must(err)
	return o
}

// An end is where rows go to.
type end struct {
	see func(b *batch.Batch) // nil: nobody looks
}

// Emit implements exec.Collector.
func (e *end) Emit(b *batch.Batch) error {
	if e.see != nil {
		e.see(b)
	}
	b.Release()
	return nil
}

// A link passes batches to an operator.
type link struct {
	op   exec.Operator
	next exec.Collector
}

// Emit implements exec.Collector.
func (l *link) Emit(b *batch.Batch) error { return l.op.Process(b, l.next) }
