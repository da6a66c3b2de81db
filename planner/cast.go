package planner

import (
	"weir/planner/expr"
	"weir/planner/sql"
)

// cast binds CAST, TRY_CAST and ::. A literal is read here and now where it can be.
func (s *scope) cast(e *sql.Cast) *expr.Expr {
	t := bindType(e.Type, s.found)
	x := s.expr(e.X)
	if x == nil || t.Kind == expr.Null {
		return nil
	}
	op := expr.OpCast
	if e.Try {
		op = expr.OpTryCast
	}
	if isNull(x) {
		return nullLiteral(t)
	}
	if unknown(x) && t.Kind == expr.String { // from here on it is a STRING
		return &expr.Expr{Op: op, Type: t, Args: []*expr.Expr{x}}
	}
	if unknown(x) {
		lit, problem := castText(x.Literal.String, t, s.zone)
		if problem == "" {
			return lit
		}
		if !e.Try {
			s.found.add(e.X, CodeType, hints(literalHint(t), "TRY_CAST gives NULL instead"), "%s is no %s: %s", x.SQL(nil), t, problem)
			return nil
		}
	}
	if !castable(x.Type, t) {
		s.found.add(e, CodeType, castHint(x.Type, t), "%s cannot be cast to %s", articleOf(x.Type), t)
		return nil
	}
	if isLiteral(x) && t.Kind != expr.String {
		if lit := computeCast(x, t, s.zone); lit != nil {
			return lit
		}
	}
	cast := castTo(x, t, s.zone, op)
	if cast != x && cast.Text == "" {
		cast.Text = label(e)
	}
	return cast
}

// castTo makes a cast, in the time zone where that counts; nothing where e has the type.
func castTo(e *expr.Expr, t expr.Type, zone string, op expr.Op) *expr.Expr {
	switch {
	case isNull(e):
		return nullLiteral(t)
	case e.Type == t:
		return e
	}
	cast := &expr.Expr{Op: op, Type: t, Args: []*expr.Expr{e}, Text: e.Text}
	if (t.Kind == expr.TimestampLTZ) != (e.Type.Kind == expr.TimestampLTZ) {
		cast.Zone = zone
	}
	return cast
}

// castable reports whether values of one type can be made into another: what PostgreSQL
// can among these types.
func castable(from, to expr.Type) bool {
	switch {
	case from.Kind == to.Kind, from.Kind == expr.String, to.Kind == expr.String:
		return true
	case rank(from) > 0 && rank(to) > 0, timeRank(from) > 0 && timeRank(to) > 0:
		return true
	case from.Kind == expr.Boolean:
		return to.Kind == expr.Int
	}
	return from.Kind == expr.Int && to.Kind == expr.Boolean
}

func castHint(from, to expr.Type) string {
	switch {
	case from.Kind == expr.Boolean && rank(to) > 0:
		return "cast it to INT first"
	case rank(from) > 0 && to.Kind == expr.Boolean:
		return "compare it: x <> 0"
	case rank(from) > 0 && to.Kind == expr.Date:
		return "DATE '1970-01-01' + n is n days later; TO_TIMESTAMP_LTZ(n, 0) reads seconds"
	case rank(from) > 0 && timeRank(to) > 0:
		return "TO_TIMESTAMP_LTZ(n, 0) reads seconds, TO_TIMESTAMP_LTZ(n, 3) milliseconds"
	case timeRank(from) > 0 && rank(to) > 0, from.Kind == expr.Interval && rank(to) > 0:
		return "EXTRACT(EPOCH FROM x) gives seconds"
	case rank(from) > 0 && isInterval(to):
		return "multiply: n * INTERVAL '1' SECOND"
	case isInterval(from) && isInterval(to):
		return "months have no fixed length"
	}
	return ""
}
