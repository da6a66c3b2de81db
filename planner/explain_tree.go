package planner

import (
	"fmt"
	"strings"

	"weir/planner/expr"
	"weir/planner/plan"
)

// explainTree prints the logical plan for people, a node to a line, its inputs below it:
//
//	result
//	  project behavior, count(*) AS n
//	    aggregate by behavior: count(*)
//	      filter behavior IN ('buy', 'cart')
//	        scan user_behavior(user_id, behavior) filesystem csv, bounded
func explainTree(s *statement) string {
	p := &treePrinter{show: (*expr.Expr).SQL, seen: map[relation]bool{}, shared: sharedNodes(s)}
	return p.statement(s)
}

// A treePrinter prints statements; show prints an expression over names.
type treePrinter struct {
	b      strings.Builder
	show   func(e *expr.Expr, columns []string) string
	typed  bool // a line for every column that is computed, with its type
	seen   map[relation]bool
	shared map[relation]bool
}

func (p *treePrinter) statement(s *statement) string {
	for _, t := range s.targets {
		if t.sink != nil {
			p.line(0, "insert into %s %s", t.sink.Name, connectorOf(t.sink.Table))
		} else {
			p.line(0, "result")
		}
		p.relation(t.rel, 1)
	}
	return p.b.String()
}

func (p *treePrinter) line(depth int, format string, args ...any) {
	fmt.Fprintf(&p.b, strings.Repeat("  ", depth)+format+"\n", args...)
}

func (p *treePrinter) relation(r relation, depth int) {
	again := ""
	if p.shared[r] {
		if again = " (shared)"; p.seen[r] {
			again = " (see above)"
		}
	}
	var names []string
	if in := r.inputs(); len(in) > 0 {
		names = columnNamesOf(in[0].columns())
	}
	switch r := r.(type) {
	case *scan:
		p.line(depth, "scan %s(%s) %s%s%s", r.table.Name, namesOf(r.table.Columns, r.read), connectorOf(r.table.Table), when(r.table.bounded, ", bounded"), again)
	case *values:
		p.line(depth, "values %s of %s%s", count(len(r.rows), "row"), columns(len(r.cols)), again)
	case *filter:
		p.line(depth, "filter %s%s%s", p.show(r.predicate, names), when(r.behind, " (behind the exchange)"), again)
	case *project:
		p.project(r, depth, names, again)
	case *aggregate:
		p.aggregate(r, depth, names, again)
	case *union:
		p.line(depth, "union of %d%s", len(r.from), again)
	}
	if p.seen[r] {
		return
	}
	p.seen[r] = true
	for _, in := range r.inputs() {
		p.relation(in, depth+1)
	}
}

func (p *treePrinter) project(r *project, depth int, names []string, again string) {
	if p.typed {
		p.line(depth, "project%s", again)
		for i, e := range r.exprs {
			p.line(depth, "  : %s = %s", columnSQL(plan.Column{Name: r.cols[i].name, Type: e.Type, NotNull: r.cols[i].notNull}), p.show(e, names))
		}
		return
	}
	list := make([]string, len(r.exprs))
	for i, e := range r.exprs {
		list[i] = named(p.show(e, names), r.cols[i].name)
	}
	p.line(depth, "project %s%s", strings.Join(list, ", "), again)
}

func (p *treePrinter) aggregate(r *aggregate, depth int, names []string, again string) {
	head := "distinct"
	if len(r.aggs) > 0 || len(r.keys) == 0 {
		head = "aggregate"
	}
	keys := make([]string, len(r.keys))
	for i, k := range r.keys {
		if keys[i] = p.show(k, names); p.typed {
			keys[i] += " " + k.Type.String()
		}
	}
	if len(keys) > 0 {
		head += " by " + strings.Join(keys, ", ")
	}
	if r.sets != nil {
		sets := make([]string, len(r.sets))
		for i, set := range r.sets {
			sets[i] = "(" + strings.Join(picked(keys, set), ", ") + ")"
		}
		head += " sets " + strings.Join(sets, ", ")
	}
	aggs := make([]string, len(r.aggs))
	for i, a := range r.aggs {
		aggs[i] = a.text + when(p.typed, " "+a.typ.String())
	}
	head += when(len(aggs) > 0, ": "+strings.Join(aggs, ", "))
	p.line(depth, "%s%s%s%s", head, when(r.split, " (in two phases)"), when(r.final, " (final)"), again)
}

func namesOfColumns(cols []column) string { return strings.Join(columnNamesOf(cols), ", ") }

// count words a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
