package planner

import (
	"strings"

	"weir/planner/sql"
)

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
