package planner

import (
	"weir/planner/expr"
	"weir/planner/sql"
)

const doNotMeet = "has no common type with"

// caseOf binds both forms of CASE to conditions and values.
func (s *scope) caseOf(e *sql.Case) *expr.Expr {
	var operand *expr.Expr
	if e.Operand != nil {
		if operand = s.expr(e.Operand); operand == nil {
			return nil
		}
	}
	conditions := make([]*expr.Expr, len(e.Whens))
	var nodes []sql.Expr
	for i, w := range e.Whens {
		if operand == nil {
			conditions[i] = s.conditionOf(w.If, "WHEN")
		} else {
			conditions[i] = s.compare(expr.OpEq, w.If, []sql.Expr{e.Operand, w.If}, operand, s.expr(w.If))
		}
		nodes = append(nodes, w.Then)
	}
	if e.Else != nil {
		nodes = append(nodes, e.Else)
	}
	values := s.exprs(nodes)
	for _, c := range conditions {
		if c == nil || values == nil {
			return nil
		}
	}
	if e.Else == nil {
		nodes, values = append(nodes, e), append(values, nullLiteral(expr.Type{}))
	}
	values, t := s.meet(nil, nodes, values, doNotMeet)
	if values == nil {
		return nil
	}
	return makeCase(t, conditions, values)
}

// makeCase makes CASE of conditions and one value more.
func makeCase(t expr.Type, conditions, values []*expr.Expr) *expr.Expr {
	args := make([]*expr.Expr, 0, 2*len(conditions)+1)
	for i, c := range conditions {
		args = append(args, c, values[i])
	}
	return &expr.Expr{Op: expr.OpCase, Type: t, Args: append(args, values[len(conditions)])}
}

// coalesce binds COALESCE and IFNULL.
func (s *scope) coalesce(e *sql.Call) *expr.Expr {
	args := s.exprs(e.Args)
	if args == nil {
		return nil
	}
	args, t := s.meet(nil, e.Args, args, doNotMeet)
	if len(args) < 2 {
		if len(args) == 1 {
			return args[0]
		}
		return nil
	}
	return &expr.Expr{Op: expr.OpCoalesce, Type: t, Args: args}
}

// nullIf binds NULLIF(x, y) to CASE WHEN x = y THEN NULL ELSE x END. As in PostgreSQL the
// result has the type of x, but of a literal and of an integer beside a DECIMAL or a
// DOUBLE that in which it is compared.
func (s *scope) nullIf(e *sql.Call) *expr.Expr {
	args := s.exprs(e.Args)
	if args == nil {
		return nil
	}
	equal := s.compare(expr.OpEq, e, e.Args, args[0], args[1])
	if equal == nil {
		return nil
	}
	x := args[0]
	compared := equal.Args[0]
	if unknown(x) || x.Type.Kind == expr.Null || x.Type.Kind != compared.Type.Kind && rank(compared.Type) > rank(expr.Type{Kind: expr.BigInt}) {
		if x = compared; rank(args[0].Type) > 0 && x.Type.Kind == expr.Decimal { // without digits behind the point
			x = convert(args[0], expr.DecimalType(0))
		}
	}
	return makeCase(x.Type, []*expr.Expr{equal}, []*expr.Expr{nullLiteral(x.Type), x})
}

// ifOf binds IF(condition, x, y) to CASE.
func (s *scope) ifOf(e *sql.Call) *expr.Expr {
	condition := s.conditionOf(e.Args[0], "IF")
	values := s.exprs(e.Args[1:])
	if condition == nil || values == nil {
		return nil
	}
	values, t := s.meet(nil, e.Args[1:], values, doNotMeet)
	if values == nil {
		return nil
	}
	return makeCase(t, []*expr.Expr{condition}, values)
}
