package planner

import (
	"strings"

	"weir/planner/sql"
)

// refuseNew refuses the parts of a query that the parser reads and binding does not
// know; it reports whether there were any.
func refuseNew(q *sql.Query, found *problems) bool {
	before := len(found.list)
	no := func(at sql.Node, what string) { found.add(at, CodeUnsupported, "", "%s is not supported", what) }
	if len(q.With) > 0 {
		no(q.With[0].Name, "WITH (a common table expression)")
	}
	s, ok := q.Body.(*sql.Select)
	if !ok {
		no(q.Body, bodyName(q.Body))
		return true
	}
	if s.Distinct {
		no(head(s), "SELECT DISTINCT")
	}
	switch from := s.From.(type) {
	case nil:
		no(head(s), "SELECT without FROM")
	case *sql.TableRef:
		if len(from.Columns) > 0 {
			no(from.Columns[0], "a list of column aliases")
		}
	default:
		no(from, "a subquery in FROM")
	}
	for _, e := range s.GroupBy {
		switch e := e.(type) {
		case *sql.GroupingSets:
			no(e, e.Kind)
		case *sql.Row:
			no(e, "a row in GROUP BY")
		}
	}
	if s.Having != nil {
		no(s.Having, "HAVING")
	}
	return len(found.list) > before
}

func bodyName(b sql.Body) string {
	switch b.(type) {
	case *sql.Values:
		return "VALUES"
	case *sql.Union:
		return "UNION ALL"
	}
	return "a query in parentheses"
}

// nodeName names an expression that binding does not know.
func nodeName(e sql.Expr) string {
	switch e := e.(type) {
	case *sql.Cast:
		if e.Try {
			return "TRY_CAST"
		}
		return "CAST"
	case *sql.Case:
		return "CASE"
	case *sql.Between:
		return "BETWEEN"
	case *sql.Like:
		if e.Fold {
			return "ILIKE"
		}
		return "LIKE"
	case *sql.IsDistinct:
		return "IS DISTINCT FROM"
	case *sql.IsTruth:
		return "IS " + e.Value
	case *sql.TypedLit:
		return "the literal " + e.Type.String() + " '…'"
	case *sql.BytesLit:
		return "the literal X'…'"
	}
	return strings.TrimSuffix("the expression "+label(e), " ")
}
