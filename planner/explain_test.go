package planner

import (
	"fmt"
	"strings"

	"weir/planner/expr"
)

// explainQuery prints a query as bound, for scripts of tests.
func explainQuery(q *query) string {
	var b strings.Builder
	columns := q.source.columnNames()
	fmt.Fprintf(&b, "source %s(%s) %s%s\n", q.source.Name, strings.Join(columns, ", "), connectorOf(q.source.Table),
		when(q.source.bounded, ", bounded"))
	if q.where != nil {
		fmt.Fprintf(&b, "where %s\n", explainTyped(q.where, columns))
	}
	if q.grouped {
		names := make([]string, 0, len(q.keys)+len(q.aggs))
		for _, k := range q.keys {
			fmt.Fprintf(&b, "key %s %s\n", explainTyped(k, columns), k.Type)
			names = append(names, k.SQL(columns))
		}
		for _, a := range q.aggs {
			fmt.Fprintf(&b, "aggregate %s %s\n", a.text, a.typ)
			names = append(names, a.text)
		}
		columns = names
	}
	for _, o := range q.outputs {
		fmt.Fprintf(&b, "output %s %s%s = %s\n", o.name, o.e.Type, when(o.notNull, " NOT NULL"), explainTyped(o.e, columns))
	}
	if q.sink != nil {
		fmt.Fprintf(&b, "sink %s %s\n", q.sink.Name, connectorOf(q.sink.Table))
	}
	return b.String()
}

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
	switch e.Op {
	case expr.OpColumn:
		return e.SQL(columns)
	case expr.OpLiteral:
		return e.SQL(columns) + "::" + strings.ReplaceAll(e.Type.String(), " ", "")
	case expr.OpConvert:
		return args[0] + "→" + strings.ReplaceAll(e.Type.String(), " ", "")
	case expr.OpNeg, expr.OpNot, expr.OpIsNull, expr.OpIsNotNull:
		return "(" + string(e.Op) + " " + args[0] + ")"
	case expr.OpIn:
		return "(" + args[0] + " in " + strings.Join(args[1:], ", ") + ")"
	}
	return "(" + strings.Join(args, " "+string(e.Op)+" ") + ")" + when(e.Type.Kind == expr.Decimal, "::"+strings.ReplaceAll(e.Type.String(), " ", ""))
}
