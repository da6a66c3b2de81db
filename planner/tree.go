package planner

import (
	"weir/planner/expr"
	"weir/planner/sql"
)

// A relation is a node of the logical plan: rows with typed columns, made from those of
// its inputs. The binding phase builds the tree; rewriting copies what it changes.
//
//	scan, values ─▶ filter, project, expand ─▶ aggregate ─▶ … ─▶ union ─▶ … ─▶ target
//
// Expressions of a node read the columns of its input by their index. A node that is the
// input of several nodes is computed once, as a common table expression is that a query
// names twice; filters are not moved into it. So a view that is used twice is bound twice,
// over the same scan.
type relation interface {
	columns() []column
	inputs() []relation
}

// A column is one column of a relation.
type column struct {
	name    string
	typ     expr.Type
	notNull bool
}

// A scan reads a table: all of its physical columns, of which the rewriting phase
// leaves those that are needed. The same *scan may be the input of several nodes:
// then its rows are read once.
type scan struct {
	table *table
	read  []int // indexes of the table's columns
	cols  []column
}

func newScan(t *table, read []int) *scan {
	s := &scan{table: t, read: read, cols: make([]column, len(read))}
	for i, c := range read {
		s.cols[i] = column{t.Columns[c].Name, t.Columns[c].Type, t.Columns[c].NotNull}
	}
	return s
}

// A values is the rows of VALUES; without columns and with one row it is what SELECT
// without FROM reads.
type values struct {
	cols []column
	rows [][]*expr.Expr // of the columns' types, reading nothing
}

// A filter keeps the rows for which predicate, a BOOLEAN, is true.
type filter struct {
	input     relation
	predicate *expr.Expr
	// behind is left by the rewriting phase: the filter runs behind the exchange that
	// follows it, as it does without a rewrite.
	behind bool
}

// A project computes columns.
type project struct {
	input relation
	exprs []*expr.Expr
	cols  []column
}

// An aggregate groups its input: its columns are the keys, then the grouping set's
// number where there are sets, then the aggregates. SELECT DISTINCT is one without
// aggregates.
type aggregate struct {
	input relation
	keys  []*expr.Expr
	// sets lists, for GROUPING SETS, ROLLUP and CUBE, the keys (indexes) of each set; nil:
	// a plain GROUP BY. Then a column of type INT, the set's index, follows the keys, and
	// keys that are not in a row's set are NULL in it.
	sets [][]int
	aggs []call
	cols []column

	identity string // names its state; made from the tree as bound
	// What follows is left by the rewriting phase.
	final bool // each group is emitted once, at the end of the input
	split bool // in two phases, before and behind the exchange
}

// A call is one aggregate call of a grouping; FILTER is part of its argument: CASE WHEN
// condition THEN argument END, of COUNT(*) the count of CASE WHEN condition THEN TRUE END.
type call struct {
	fn       expr.AggFunc
	arg      *expr.Expr // over the aggregate's input; nil for COUNT(*)
	distinct bool
	typ      expr.Type // of the result
	text     string    // normalised: it names the state
}

// A union holds the rows of all its inputs, whose columns have the types of its own.
type union struct {
	from []relation
	cols []column
}

// A statement is a bound job: the relations that it writes and where to.
type statement struct {
	targets  []target
	settings Settings
	explain  bool // EXPLAIN: planned, not run
}

// A target is one INSERT, or the SELECT whose result is kept.
type target struct {
	rel  relation
	sink *table // nil: the result is kept
	at   sql.Node

	identity string // names the state of the result or the sink; made from the tree as bound
}

// relations lists what the targets are written from.
func (s *statement) relations() []relation {
	list := make([]relation, len(s.targets))
	for i, t := range s.targets {
		list[i] = t.rel
	}
	return list
}

// inputsFirst lists the nodes of trees, each once, after all of its inputs; leaves in the
// order of the text.
func inputsFirst(trees ...relation) []relation {
	var list []relation
	seen := map[relation]bool{}
	var walk func(r relation)
	walk = func(r relation) {
		if seen[r] {
			return
		}
		seen[r] = true
		for _, in := range r.inputs() {
			walk(in)
		}
		list = append(list, r)
	}
	for _, r := range trees {
		walk(r)
	}
	return list
}

func (s *scan) columns() []column      { return s.cols }
func (v *values) columns() []column    { return v.cols }
func (f *filter) columns() []column    { return f.input.columns() }
func (p *project) columns() []column   { return p.cols }
func (a *aggregate) columns() []column { return a.cols }
func (u *union) columns() []column     { return u.cols }

func (s *scan) inputs() []relation      { return nil }
func (v *values) inputs() []relation    { return nil }
func (f *filter) inputs() []relation    { return []relation{f.input} }
func (p *project) inputs() []relation   { return []relation{p.input} }
func (a *aggregate) inputs() []relation { return []relation{a.input} }
func (u *union) inputs() []relation     { return u.from }
