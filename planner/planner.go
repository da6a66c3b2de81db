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
	// OnRowError is "fail", "skip" or "keep", as the job's request says; empty: it does
	// not. A script that SETs another is refused.
	OnRowError string
	// LatencyTarget is a duration ("50ms") as the job's request says it; empty: it does not.
	LatencyTarget string
	// Rewrites leaves rewrites out, for tests.
	Rewrites Rewrites
}

// A Result is a planned script.
type Result struct {
	Graph    *plan.Graph
	Settings Settings
	// Columns are those of the kept result, or of the rows that the first sink gets.
	Columns []plan.Column
	// Explain: the script says EXPLAIN, and no job is made of it.
	Explain   bool
	Tables    []Table // tables and views, as the plan uses them: what is read, in the order of first use; then the sinks
	Warnings  []string
	Rewritten []string   // what rewriting changed in the logical plan
	State     []StateUse // what operators keep

	bound *statement
}

// Logical is the logical plan as bound, a node to a line.
func (r *Result) Logical() string { return explainTree(r.bound) }

// A Table is the definition of a table or view.
type Table struct {
	Name    string
	View    bool   // of a view the fields below Columns say nothing
	SQL     string // the CREATE TABLE or CREATE VIEW, printed canonically
	Columns []plan.Column
	// Computed holds, for each of Columns, the expression that computes it; empty: the
	// connector reads and writes it.
	Computed    []string
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
	return planScript(text, catalog, opts, &problems{src: text})
}

func planScript(text string, catalog Catalog, opts Options, found *problems) (*Result, error) {
	st, result, err := bindScript(text, catalog, opts, found)
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
	identify(st)
	rewritten, changed := rewrite(st, opts.Rewrites)
	graph, lowered := lower(rewritten, groups)
	result.Graph, result.Rewritten = graph, slices.Concat(changed, lowered)
	result.describe()
	return result, nil
}

// bindScript runs the phases that can refuse a script.
func bindScript(text string, catalog Catalog, opts Options, found *problems) (*statement, *Result, error) {
	prog := parse(text, found)
	settings := bindSettings(prog.sets, found)
	agreeOnRowError(settings, prog.sets, opts.OnRowError, found)
	agreeLatency(settings, prog.sets, opts.LatencyTarget, found)
	ns, err := bindNames(prog, catalog, opts, settings["timezone"], found)
	if err != nil {
		return nil, nil, err
	}
	st, warnings := bind(prog, ns, settings, found)
	if ns.failed != nil {
		return nil, nil, ns.failed
	}
	if err := found.err(); err != nil {
		return nil, nil, err
	}
	if st == nil {
		panic(fmt.Sprintf("planner: a query was refused without a reason: %s", text))
	}
	result := &Result{bound: st, Settings: settings, Explain: st.explain, Warnings: warnings, Tables: ns.tablesOf(st)}
	result.Columns = planColumns(st.targets[0].rel.columns())
	return st, result, nil
}

// tablesOf lists what a job uses.
func (ns *names) tablesOf(st *statement) []Table {
	var list []Table
	var used []*table
	add := func(t *table) {
		if !slices.Contains(used, t) {
			used = append(used, t)
			list = append(list, t.definition())
		}
	}
	for _, t := range st.targets {
		eachScan(t.rel, func(s *scan) { add(s.table) })
	}
	for _, v := range ns.views {
		list = append(list, v.definition())
	}
	for _, t := range st.targets {
		if t.sink != nil {
			add(t.sink)
		}
	}
	return list
}

func (t *table) definition() Table {
	def := *t.def
	def.IfNotExists = false
	d := Table{
		Name:        t.Name,
		SQL:         formatStatement(&def),
		Connector:   t.Connector,
		Format:      t.Format,
		Options:     t.Options,
		Bounded:     t.bounded,
		FromCatalog: t.fromCatalog,
	}
	for _, c := range t.all {
		d.Columns = append(d.Columns, plan.Column{Name: c.name, Type: c.typ, NotNull: c.notNull})
		computed := ""
		if c.computed != nil {
			computed = sql.FormatExpr(c.computed)
		}
		d.Computed = append(d.Computed, computed)
	}
	return d
}

func (v *view) definition() Table {
	def := *v.def
	def.IfNotExists = false
	return Table{Name: v.name, View: true, SQL: formatStatement(&def), Columns: v.columns, Computed: make([]string, len(v.columns)), FromCatalog: v.fromCatalog}
}

func formatStatement(s sql.Statement) string {
	return strings.TrimSuffix(sql.Format(&sql.Script{Statements: []sql.Statement{s}}), ";\n")
}

// Define checks a text that is one CREATE TABLE or CREATE VIEW, for the catalog that it
// will be part of, which may be nil; a view reads what that has. An *Error says what is
// wrong. Options.CheckPath applies.
func Define(text string, catalog Catalog, opts Options) (*Table, error) {
	return define(text, catalog, opts, &problems{src: text})
}

func define(text string, catalog Catalog, opts Options, found *problems) (*Table, error) {
	ns, err := bindNames(&program{}, catalog, opts, "", found)
	if err != nil {
		return nil, err
	}
	d := ns.definitionOf(text, found)
	var definition Table
	switch {
	case d == nil:
	case d.view != nil:
		ns.read = append(ns.read, d) // its own name means itself
		b := &binder{names: ns, found: found, scans: map[*table]*scan{}}
		if q := b.bindView(d.view, d.view.def.Name); q != nil {
			b.finishView(d.view, q)
		}
		definition = d.view.definition()
	default:
		ns.checkPath(d.table, d.table.optionNode("path"), found)
		definition = d.table.definition()
	}
	if ns.failed != nil {
		return nil, ns.failed
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	return &definition, nil
}
