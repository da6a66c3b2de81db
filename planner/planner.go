package planner

import (
	"fmt"
	"slices"
	"strings"

	"weir"
	"weir/planner/plan"
	"weir/planner/sql"
)

// Options are what a caller may choose; the zero value plans as users expect.
type Options struct {
	// MaxParallelism is the number of key groups; 0 is weir.DefaultMaxParallelism. The
	// script's SET 'max_parallelism' comes first.
	MaxParallelism int
	// CheckPath, if set, refuses the paths that file tables may not use.
	CheckPath func(path string) error
	// Rewrites leaves rewrites out, for tests.
	Rewrites Rewrites
}

// A Result is a planned script.
type Result struct {
	Graph    *plan.Graph
	Settings Settings
	// Columns are those of the kept result, or of the rows that a sink gets.
	Columns  []plan.Column
	Tables   []Table // in the order of their first use: the source, the sink
	Warnings []string
	// Logical is the logical plan as bound, a node to a line; Rewritten says what
	// rewriting changed in it.
	Logical   string
	Rewritten []string
}

// A Table is a table's definition: of a Result, as the plan uses it.
type Table struct {
	Name        string
	SQL         string // the CREATE TABLE, printed canonically
	Columns     []plan.Column
	Connector   string
	Format      string
	Options     map[string]string // without connector and format
	Bounded     bool              // as a source, it ends
	FromCatalog bool
}

// Plan turns a script into the graph that a job runs. Tables that the script does not
// define come from the catalog, which may be nil. An *Error, which wraps
// weir.ErrInvalid, says what is wrong with the script and where; any other error is
// the catalog's.
func Plan(text string, catalog Catalog, opts Options) (*Result, error) {
	found := &problems{src: text}
	q, result, err := bindScript(text, catalog, opts, found)
	if err != nil {
		return nil, err
	}
	groups := opts.MaxParallelism
	if n, ok := result.Settings.Int("max_parallelism"); ok {
		groups = n
	}
	if groups <= 0 {
		groups = weir.DefaultMaxParallelism
	}
	bound := q.statement(nil)
	bound.settings = result.Settings
	finishPlan(result, bound, opts.Rewrites, groups)
	return result, nil
}

// finishPlan runs the phases behind binding, which refuse nothing.
func finishPlan(result *Result, bound *statement, without Rewrites, maxParallelism int) {
	identify(bound)
	result.Logical = explainTree(bound)
	for _, t := range bound.targets {
		result.Columns = planColumns(t.rel.columns())
	}
	rewritten, notes := rewrite(bound, without)
	result.Rewritten = notes
	result.Graph = lower(rewritten, maxParallelism)
}

// bindScript runs the phases that can refuse a script.
func bindScript(text string, catalog Catalog, opts Options, found *problems) (*query, *Result, error) {
	prog := parse(text, found)
	result := &Result{Settings: bindSettings(prog.sets, found)}
	ts, err := bindTables(prog, catalog, opts.CheckPath, found)
	if err != nil {
		return nil, nil, err
	}
	if prog.job == nil {
		return nil, nil, found.err()
	}
	q, warnings := bind(prog, ts, found)
	if ts.failed != nil {
		return nil, nil, ts.failed
	}
	if err := found.err(); err != nil {
		return nil, nil, err
	}
	if q == nil {
		panic(fmt.Sprintf("planner: a query was refused without a reason: %s", text))
	}
	result.Warnings = warnings
	for _, t := range ts.used {
		result.Tables = append(result.Tables, t.definition())
	}
	slices.SortStableFunc(result.Tables, func(a, b Table) int { // the source first
		return strings.Compare(role(a, q), role(b, q))
	})
	return q, result, nil
}

// role orders the tables of a query.
func role(t Table, q *query) string {
	if t.Name == q.source.Name {
		return "1 source"
	}
	return "2 sink"
}

func (t *table) definition() Table {
	return Table{
		Name:        t.Name,
		SQL:         strings.TrimSuffix(sql.Format(&sql.Script{Statements: []sql.Statement{t.def}}), ";\n"),
		Columns:     t.Columns,
		Connector:   t.Connector,
		Format:      t.Format,
		Options:     t.Options,
		Bounded:     t.bounded,
		FromCatalog: t.fromCatalog,
	}
}

// ParseTable checks a text that is one CREATE TABLE, for the catalog. An *Error says
// what is wrong. Options.CheckPath applies.
func ParseTable(text string, opts Options) (*Table, error) {
	found := &problems{src: text}
	t := tableOf(text, found)
	if t != nil {
		ts := &tables{check: opts.CheckPath}
		ts.checkPath(t, t.optionNode("path"), found)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	definition := t.definition()
	return &definition, nil
}
