package planner

import (
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// A visible is a column that a name can mean.
type visible struct {
	column
	table string // the name that may stand before the column's; empty: none may
}

// A scope binds expressions over the columns of one relation, or, where groups is set,
// over the keys and aggregates of a grouping of it. Its methods return nil after
// recording what is wrong; nil operands pass through silently.
type scope struct {
	found  *problems
	fields []visible // of the relation, by the index of its columns
	from   string    // the relation in a sentence: "table t"; empty: there is no FROM
	wild   bool      // what the columns are is not known: something is wrong, and reported
	items  []item    // of the select list, whose names other clauses do not see
	groups *grouping // nil: rows, not groups
	clause string    // where no aggregate may stand: "WHERE", "GROUP BY", "an aggregate"
	zone   string    // the job's time zone; empty: UTC
}

// visibleColumns gives the columns of a relation that is called alias in a query.
func visibleColumns(cols []column, alias string) []visible {
	list := make([]visible, len(cols))
	for i, c := range cols {
		list[i] = visible{c, alias}
	}
	return list
}

// names lists the names of the scope's columns, by their index.
func (s *scope) names() []string {
	list := make([]string, len(s.fields))
	for i, f := range s.fields {
		list[i] = f.name
	}
	return list
}

// lookup finds the column of that name, compared without case, or -1.
func (s *scope) lookup(name string) int {
	return slices.IndexFunc(s.fields, func(f visible) bool { return sameName(f.name, name) })
}

// resolve finds the column that a reference means, or -1 after saying why there is none.
func (s *scope) resolve(e *sql.ColumnRef) int {
	if s.wild || !s.checkQualifier(e.Table) {
		return -1
	}
	fits := func(f visible) bool {
		return sameName(f.name, e.Name.Name) && (e.Table == nil || sameName(f.table, e.Table.Name))
	}
	i := slices.IndexFunc(s.fields, fits)
	switch {
	case i < 0 && e.Table == nil && s.clause != "" && s.refuseAlias(e):
	case i < 0 && s.from == "":
		s.found.add(e, CodeName, s.meantString(e), "there is no column %s: the query has no FROM", e.Name.Name)
	case i < 0:
		names := s.names()
		s.found.add(e.Name, CodeName, hints(suggestion(e.Name.Name, names), s.meantString(e), "the columns are "+strings.Join(names, ", ")),
			"%s has no column %s", s.from, e.Name.Name)
	case slices.ContainsFunc(s.fields[i+1:], fits):
		s.found.add(e.Name, CodeName, "write the table's name before it", "the column %s is ambiguous", e.Name.Name)
		return -1
	}
	return i
}

// meantString gives a hint where a name in double quotes may be meant as a string.
func (s *scope) meantString(e *sql.ColumnRef) string {
	at := s.found.base + e.Name.Start
	if e.Table != nil || at >= len(s.found.src) || s.found.src[at] != '"' {
		return ""
	}
	return "double quotes make a name; a string is '" + strings.ReplaceAll(e.Name.Name, "'", "''") + "'"
}

// checkQualifier sees that q, which may be nil, names a table of the query.
func (s *scope) checkQualifier(q *sql.Ident) bool {
	if q == nil || s.wild || slices.ContainsFunc(s.fields, func(f visible) bool { return f.table != "" && sameName(f.table, q.Name) }) {
		return true
	}
	hint := ""
	if len(s.fields) > 0 && s.fields[0].table != "" {
		hint = "the table of this query is " + s.fields[0].table
	}
	s.found.add(q, CodeName, hint, "unknown table %s", q.Name)
	return false
}

// qualifiersFit reports whether the column references in e that name a table name one
// of the query's.
func (s *scope) qualifiersFit(e sql.Expr) bool {
	if ref, ok := e.(*sql.ColumnRef); ok {
		return ref.Table == nil || slices.ContainsFunc(s.fields, func(f visible) bool { return sameName(f.table, ref.Table.Name) })
	}
	return !slices.ContainsFunc(operands(e), func(x sql.Expr) bool { return !s.qualifiersFit(x) })
}

func (s *scope) columnRef(e *sql.ColumnRef) *expr.Expr {
	i := s.resolve(e)
	if i < 0 {
		return nil
	}
	col := s.fields[i]
	if s.groups != nil {
		if s.groups.wrong {
			return nil
		}
		s.found.add(e, CodeQuery, s.groupHint(e), "column %s is neither in GROUP BY nor in an aggregate", col.name)
		return nil
	}
	if col.typ.Kind == expr.Null {
		return nil // the table's definition is wrong and has been reported
	}
	return &expr.Expr{Op: expr.OpColumn, Type: col.typ, Column: i}
}

// refuseAlias refuses a name of the select list in a clause that does not see it.
func (s *scope) refuseAlias(e *sql.ColumnRef) bool {
	for _, it := range s.items {
		if it.alias == nil || !sameName(it.alias.Name, e.Name.Name) || s.clause != "WHERE" && s.clause != "HAVING" {
			continue
		}
		hint := "write its expression: " + sql.FormatExpr(it.node)
		if s.clause == "WHERE" && hasAggregate(it.node) {
			hint = "choose among the groups with HAVING " + sql.FormatExpr(it.node) + " …"
		}
		s.found.add(e, CodeName, hint, "%s is a name of the select list, which %s does not see", e.Name.Name, s.clause)
		return true
	}
	return false
}

// groupHint says what to write instead of a column that is not grouped by.
func (s *scope) groupHint(e *sql.ColumnRef) string {
	for _, it := range s.items {
		if s.clause == "HAVING" && e.Table == nil && it.alias != nil && sameName(it.alias.Name, e.Name.Name) {
			return "HAVING sees the column of that name, not the name of the select list: write " + sql.FormatExpr(it.node)
		}
	}
	return "add it to GROUP BY, or write MIN(" + sql.FormatExpr(e) + ")"
}
