package planner

import (
	"slices"

	"weir/planner/sql"
)

// A binder is the state of the binding phase.
type binder struct {
	names *names
	found *problems // of the text whose names are being bound: the script's, or a view's of the catalog
	zone  string
	scans map[*table]*scan
	// open lists the views that are being bound, outermost first: none may read itself.
	open     []*view
	defining []*sql.CTE
	read     int // tables, views and CTEs so far
	tooMany  bool
	warnings []string
}

// maxRead bounds how many tables, views and CTEs one job reads, each as often as it is
// named: views of views grow without end otherwise.
const maxRead = 1000

// bind gives every name of the program its meaning. It returns nil where too much is
// wrong to go on; found then says what.
func bind(prog *program, ns *names, settings Settings, found *problems) (*statement, []string) {
	b := &binder{names: ns, found: found, zone: settings["timezone"], scans: map[*table]*scan{}}
	b.checkViews()
	st := &statement{settings: settings, explain: prog.explain}
	switch job := prog.job.(type) {
	case *sql.Query:
		if q := b.query(job, nil); q != nil {
			if rel := b.finish(q); rel != nil {
				st.targets = []target{{rel: rel, at: job}}
				b.warnKeepsAll(rel)
			}
		}
	case *sql.Insert:
		st.targets = b.inserts([]*sql.Insert{job})
	case *sql.StatementSet:
		st.targets = b.inserts(job.Inserts)
	}
	if len(st.targets) == 0 || len(found.list) > 0 {
		return nil, b.warnings
	}
	return st, b.warnings
}

func (b *binder) warn(text string) {
	if !slices.Contains(b.warnings, text) {
		b.warnings = append(b.warnings, text)
	}
}

func (b *binder) warnKeepsAll(rel relation) {
	if t := unbounded(rel); t != nil && !changing(rel) {
		b.warn("the result keeps every row of the unbounded table " + t.Name + " and grows without end; GROUP BY or INSERT INTO keeps it small")
	}
}

// unbounded gives a table below rel that does not end, or nil.
func unbounded(rel relation) *table {
	var found *table
	eachScan(rel, func(s *scan) {
		if found == nil && !s.table.bounded {
			found = s.table
		}
	})
	return found
}

// eachScan calls f for every scan below rel, once for each, in the order of the text.
func eachScan(rel relation, f func(s *scan)) {
	for _, r := range inputsFirst(rel) {
		if s, ok := r.(*scan); ok {
			f(s)
		}
	}
}

func allColumns(t *table) []int {
	all := make([]int, len(t.Columns))
	for i := range all {
		all[i] = i
	}
	return all
}
