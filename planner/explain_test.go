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
	switch e.Op {
	case expr.OpColumn:
		return e.SQL(columns)
	case expr.OpLiteral:
		return e.SQL(columns) + "::" + typ
	case expr.OpConvert:
		return args[0] + "→" + typ
	case expr.OpCast, expr.OpTryCast, expr.OpCase, expr.OpCoalesce:
		return string(e.Op) + "(" + strings.Join(args, ", ") + ")::" + typ
	case expr.OpCall:
		return e.Func + "(" + strings.Join(args, ", ") + ")::" + typ
	case expr.OpNeg, expr.OpNot, expr.OpIsNull, expr.OpIsNotNull:
		return "(" + string(e.Op) + " " + args[0] + ")"
	case expr.OpIn:
		return "(" + args[0] + " in " + strings.Join(args[1:], ", ") + ")"
	}
	return "(" + strings.Join(args, " "+string(e.Op)+" ") + ")" + when(e.Type.Kind == expr.Decimal, "::"+typ)
}
