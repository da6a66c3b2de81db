package planner

import (
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// A grouping is the keys and aggregates of a query while its select list is bound.
// Its columns are the keys, then the set's number where there are sets, then the aggregates.
type grouping struct {
	rows  *scope // in which keys and arguments are bound
	nodes []sql.Expr
	keys  []*expr.Expr
	sets  [][]int // keys of each grouping set; nil: there is one, of all keys
	aggs  []call
	wrong bool // a key could not be bound: whether a column is one is not known
}

// key returns the index of the key that e is, or -1. Expressions are compared by
// their structure.
func (g *grouping) key(s *scope, e sql.Expr) int {
	return slices.IndexFunc(g.nodes, func(k sql.Expr) bool { return sameExpr(k, e) && s.qualifiersFit(e) })
}

// column gives the expression that reads column i of the grouping.
func (g *grouping) column(i int) *expr.Expr {
	if i < len(g.keys) {
		return &expr.Expr{Op: expr.OpColumn, Type: g.keys[i].Type, Column: i}
	}
	return &expr.Expr{Op: expr.OpColumn, Type: g.aggs[i-g.before()].typ, Column: i}
}

// add registers an aggregate, once for all that are equal, and returns its column.
func (g *grouping) add(a call) *expr.Expr {
	i := slices.IndexFunc(g.aggs, func(b call) bool {
		return a.fn == b.fn && a.distinct == b.distinct && a.text == b.text && a.typ == b.typ && (a.arg == nil || a.arg.Type == b.arg.Type)
	})
	if i < 0 {
		i = len(g.aggs)
		g.aggs = append(g.aggs, a)
	}
	return g.column(g.before() + i)
}

// before counts the columns before the aggregates.
func (g *grouping) before() int {
	if g.sets != nil {
		return len(g.keys) + 1
	}
	return len(g.keys)
}

// aggregate binds an aggregate call: its argument, in the scope of the rows, DISTINCT,
// and FILTER, which becomes a part of the argument.
func (s *scope) aggregate(e *sql.Call, f *expr.AggregateFunction) *expr.Expr {
	if !s.checkAggregate(e, f) {
		return nil
	}
	a := call{fn: expr.CountStar, typ: expr.Type{Kind: expr.BigInt}}
	operand := "*"
	rows := s.groups.rows
	if !e.Star {
		if a.arg = s.aggregateArgument(e, f); a.arg == nil {
			return nil
		}
		a.fn, a.typ = f.Name, aggregateType(f.Name, a.arg.Type)
		switch f.Name {
		case expr.Count, expr.Sum, expr.Avg: // it makes no difference to the others
			a.distinct = e.Distinct
		}
		operand = a.arg.SQL(rows.names())
		if a.distinct {
			operand = "DISTINCT " + operand
		}
	}
	a.text = string(f.Name) + "(" + operand + ")"
	if e.Filter != nil && !s.filter(e.Filter, &a) {
		return nil
	}
	return s.groups.add(a)
}

// checkAggregate sees that an aggregate may stand where it does, and has its argument.
func (s *scope) checkAggregate(e *sql.Call, f *expr.AggregateFunction) bool {
	name := strings.ToUpper(e.Name.Name)
	count := f.Name == expr.Count
	switch {
	case s.groups == nil:
		hint := map[string]string{
			"WHERE": "HAVING chooses among groups", "an aggregate": "aggregate in a subquery first: FROM (SELECT " + label(e) + " AS x …)",
		}[s.clause]
		s.found.add(e, CodeQuery, hint, "an aggregate (%s) cannot stand in %s", name, s.clause)
		return false
	case e.Star && !count, !e.Star && len(e.Args) != 1:
		hint := ""
		if count && !e.Distinct && len(e.Args) == 0 {
			hint = "COUNT(*) counts rows"
		}
		if count && e.Distinct && len(e.Args) > 1 {
			hint = "COUNT(*) over SELECT DISTINCT counts distinct rows: SELECT COUNT(*) FROM (SELECT DISTINCT a, b FROM t)"
		}
		s.found.add(e, CodeType, hint, "%s takes one argument", name)
		return false
	case e.Distinct && !f.Distinct:
		s.found.add(e, CodeType, "leave DISTINCT out: it counts distinct values", "%s takes no DISTINCT", name)
		return false
	}
	return true
}

// aggregateArgument binds the argument of an aggregate and checks its type.
func (s *scope) aggregateArgument(e *sql.Call, f *expr.AggregateFunction) *expr.Expr {
	arg := s.groups.rows.expr(e.Args[0])
	if arg == nil {
		return nil
	}
	if f.Name == expr.BoolAnd || f.Name == expr.BoolOr {
		if !s.condition(e.Args[0], arg, f.SQL) {
			return nil
		}
		return convert(arg, boolean)
	}
	if len(f.Kinds) == 0 || arg.Type.Kind == expr.Null && slices.Contains(f.Kinds, expr.String) {
		return typed(arg)
	}
	if !slices.Contains(f.Kinds, arg.Type.Kind) {
		what, hint := "a value with an order", "BOOL_AND is the least, BOOL_OR the greatest BOOLEAN"
		if !slices.Contains(f.Kinds, expr.String) {
			what, hint = "a number", ""
			if isInterval(arg.Type) {
				hint = f.SQL + "(EXTRACT(EPOCH FROM x)) is in seconds"
			}
		}
		s.found.add(e.Args[0], CodeType, hint, "%s needs %s, and this is %s", f.SQL, what, article(arg))
		return nil
	}
	return arg
}

// filter makes FILTER (WHERE …) a part of an aggregate's argument: what is NULL does not
// count.
func (s *scope) filter(e sql.Expr, a *call) bool {
	rows := *s.groups.rows
	rows.clause = "FILTER"
	condition := rows.conditionOf(e, "FILTER")
	if condition == nil {
		return false
	}
	a.text += " filter (where " + condition.SQL(rows.names()) + ")"
	if a.fn == expr.CountStar {
		a.fn, a.arg = expr.Count, boolLiteral(true)
	}
	t := a.arg.Type
	a.arg = makeCase(t, []*expr.Expr{condition}, []*expr.Expr{a.arg, nullLiteral(t)})
	return true
}

// aggregateType gives the type of an aggregate's result.
func aggregateType(f expr.AggFunc, arg expr.Type) expr.Type {
	switch f {
	case expr.Sum:
		return sumType(arg)
	case expr.Avg:
		if arg.Kind == expr.Decimal {
			return expr.DecimalType(max(arg.Scale, 6))
		}
		return expr.Type{Kind: expr.Double}
	case expr.Min, expr.Max:
		return arg
	case expr.BoolAnd, expr.BoolOr:
		return boolean
	}
	return expr.Type{Kind: expr.BigInt}
}

func sumType(t expr.Type) expr.Type {
	switch t.Kind {
	case expr.Int:
		return expr.Type{Kind: expr.BigInt}
	case expr.BigInt:
		return expr.DecimalType(0)
	case expr.Decimal:
		return expr.DecimalType(t.Scale)
	}
	return expr.Type{Kind: expr.Double}
}

// hasAggregate reports whether an aggregate stands in e.
func hasAggregate(e sql.Expr) bool {
	if c, ok := e.(*sql.Call); ok && expr.FindAggregate(c.Name.Name) != nil {
		return true
	}
	return slices.ContainsFunc(operands(e), hasAggregate)
}
