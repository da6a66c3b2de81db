package planner

import (
	"fmt"
	"strings"
	"testing"
)

// showTree prints a bound statement, a relation's inputs below it; what is read by
// several nodes has a number and is shown once.
func showTree(s *statement) string {
	p := &boundPrinter{seen: map[relation]int{}, uses: map[relation]int{}}
	for _, t := range s.targets {
		p.count(t.rel)
	}
	if s.explain {
		p.b.WriteString("explain\n")
	}
	for _, t := range s.targets {
		name := "result"
		if t.sink != nil {
			name = "insert " + t.sink.Name + " " + connectorOf(t.sink.Table)
		}
		p.b.WriteString(name + "\n")
		p.show(t.rel, 1)
	}
	return p.b.String()
}

type boundPrinter struct {
	b    strings.Builder
	seen map[relation]int
	uses map[relation]int
}

func (p *boundPrinter) count(r relation) {
	if p.uses[r]++; p.uses[r] == 1 {
		for _, in := range r.inputs() {
			p.count(in)
		}
	}
}

func (p *boundPrinter) show(r relation, depth int) {
	line := func(format string, args ...any) {
		p.b.WriteString(strings.Repeat("  ", depth) + fmt.Sprintf(format, args...) + "\n")
	}
	mark := ""
	if p.uses[r] > 1 {
		if n, ok := p.seen[r]; ok {
			line("#%d", n)
			return
		}
		p.seen[r] = len(p.seen) + 1
		mark = fmt.Sprintf(" #%d", p.seen[r])
	}
	names := func(r relation) []string {
		var list []string
		for _, c := range r.columns() {
			list = append(list, c.name)
		}
		return list
	}
	switch r := r.(type) {
	case *scan:
		line("scan %s(%s) %s%s%s", r.table.Name, strings.Join(names(r), ", "), connectorOf(r.table.Table), when(r.table.bounded, ", bounded"), mark)
	case *values:
		line("values %s%s", columnsShown(r.cols), mark)
		for _, row := range r.rows {
			list := make([]string, len(row))
			for i, e := range row {
				list[i] = explainTyped(e, nil)
			}
			line("· (%s)", strings.Join(list, ", "))
		}
	case *filter:
		line("filter %s%s", explainTyped(r.predicate, names(r.input)), mark)
	case *project:
		line("project%s", mark)
		for i, e := range r.exprs {
			line("· %s = %s", columnsShown(r.cols[i:i+1]), explainTyped(e, names(r.input)))
		}
	case *aggregate:
		line("aggregate%s%s", when(r.sets != nil, fmt.Sprintf(" sets %v", r.sets)), mark)
		below := names(r.input)
		for i, k := range r.keys {
			line("· key %s %s%s", explainTyped(k, below), k.Type, when(r.cols[i].notNull, " NOT NULL"))
		}
		for i, a := range r.aggs {
			c := r.cols[len(r.cols)-len(r.aggs)+i]
			arg := ""
			if a.arg != nil {
				arg = " of " + explainTyped(a.arg, below)
			}
			line("· %s %s%s%s%s", a.text, a.typ, when(c.notNull, " NOT NULL"), when(a.distinct, " distinct"), arg)
		}
	case *union:
		line("union %s%s", columnsShown(r.cols), mark)
	}
	for _, in := range r.inputs() {
		p.show(in, depth+1)
	}
}

func columnsShown(cols []column) string {
	list := make([]string, len(cols))
	for i, c := range cols {
		list[i] = c.name + " " + c.typ.String() + when(c.notNull, " NOT NULL")
	}
	return strings.Join(list, ", ")
}

func showStatements(list []CatalogStatement) string {
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%d:%d %s %s%s%s: %s\n", s.Line, s.Column, s.Kind, s.Name, when(s.IfExists, " if exists"), when(s.IfNotExists, " if not exists"), s.SQL)
	}
	return b.String()
}

func showDefinition(t *Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n%s\n", map[bool]string{false: "table", true: "view"}[t.View], t.Name, t.SQL)
	for i := range t.Columns {
		fmt.Fprintf(&b, "column %s%s\n", columnsSQL(t.Columns[i:i+1]), when(t.Computed[i] != "", " AS "+t.Computed[i]))
	}
	return b.String()
}

// TestLongConstant: a constant is repeated for the rows of a batch, and so bounded.
func TestLongConstant(t *testing.T) {
	t.Parallel()
	ask := func(n int) error {
		_, err := Plan("SELECT '"+strings.Repeat("x", n)+"' AS x", nil, Options{})
		return err
	}
	if err := ask(64 << 10); err != nil {
		t.Errorf("64 KiB: %v", err)
	}
	if err := ask(64<<10 + 1); err == nil || !strings.Contains(err.Error(), "a constant text of 65537 bytes is too long") {
		t.Errorf("more: %v", err)
	}
}
