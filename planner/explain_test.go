package planner

import (
	"strings"

	"weir/planner/expr"
)

// explainTypedTree prints a statement with the types of what it computes, for scripts of tests.
func explainTypedTree(s *statement) string {
	p := &treePrinter{show: explainTyped, typed: true, seen: map[relation]bool{}, shared: sharedNodes(s)}
	return p.statement(s)
}

// explainTyped prints an expression fully parenthesised and with its conversions.
func explainTyped(e *expr.Expr, columns []string) string {
	args := make([]string, len(e.Args))
	for i, a := range e.Args {
		args[i] = explainTyped(a, columns)
	}
	typ := strings.ReplaceAll(e.Type.String(), " ", "")
	zone := when(e.Zone != "", " "+e.Zone)
	switch e.Op {
	case expr.OpColumn:
		return e.SQL(columns)
	case expr.OpLiteral:
		return e.LiteralSQL() + "::" + typ
	case expr.OpConvert:
		return args[0] + "→" + typ
	case expr.OpNeg, expr.OpNot, expr.OpIsNull, expr.OpIsNotNull:
		return "(" + string(e.Op) + " " + args[0] + ")"
	case expr.OpIn:
		return "(" + args[0] + " in " + strings.Join(args[1:], ", ") + ")"
	case expr.OpCast, expr.OpTryCast:
		return string(e.Op) + "(" + args[0] + " as " + typ + zone + ")"
	case expr.OpCase, expr.OpCoalesce, expr.OpCall:
		name := string(e.Op)
		if e.Op == expr.OpCall {
			name = e.Func
		}
		return name + "(" + strings.Join(args, ", ") + zone + ")::" + typ
	}
	timely := e.Type.Kind == expr.Decimal || timeRank(e.Type) > 0 || isInterval(e.Type)
	return "(" + strings.Join(args, " "+string(e.Op)+" ") + zone + ")" + when(timely, "::"+typ)
}
