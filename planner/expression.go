package planner

import (
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

func (s *scope) expr(e sql.Expr) *expr.Expr {
	if s.groups != nil {
		if i := s.groups.key(s, e); i >= 0 {
			return s.groups.column(i)
		}
	}
	switch e := e.(type) {
	case *sql.ColumnRef:
		return s.columnRef(e)
	case *sql.NumberLit:
		return s.number(e, e.Text)
	case *sql.StringLit:
		return stringLiteral(e.Value)
	case *sql.BoolLit:
		return boolLiteral(e.Value)
	case *sql.NullLit:
		return nullLiteral(expr.Type{Kind: expr.Null})
	case *sql.Unary:
		return s.unary(e)
	case *sql.Binary:
		return s.binary(e)
	case *sql.IsNull:
		return s.isNull(e)
	case *sql.In:
		return s.in(e)
	case *sql.Call:
		return s.call(e)
	case *sql.IntervalLit:
		s.found.add(e, CodeUnsupported, "", "INTERVAL is not supported")
	case *sql.Star:
		s.found.add(e, CodeQuery, "", "* stands in a select list only")
	default:
		s.found.add(e, CodeUnsupported, "", "%s is not supported", nodeName(e))
	}
	return nil
}

func (s *scope) number(at sql.Node, text string) *expr.Expr {
	e, ok := number(text)
	if !ok {
		s.found.add(at, CodeType, "", "the number %s is out of range", text)
		return nil
	}
	return e
}

func (s *scope) unary(e *sql.Unary) *expr.Expr {
	if n, ok := e.X.(*sql.NumberLit); ok && e.Op == "-" {
		return s.number(e, "-"+n.Text)
	}
	x := s.expr(e.X)
	if x == nil {
		return nil
	}
	if e.Op == "NOT" {
		return s.logic(expr.OpNot, []sql.Expr{e.X}, x)
	}
	if x.Type.Kind == expr.Null || rank(x.Type) == 0 {
		s.found.add(e.X, CodeType, "", "%s needs a number, and this is %s", e.Op, article(x))
		return nil
	}
	if e.Op == "+" {
		return x
	}
	return &expr.Expr{Op: expr.OpNeg, Type: x.Type, Args: []*expr.Expr{x}, Text: label(e)}
}

func (s *scope) binary(e *sql.Binary) *expr.Expr {
	if e.Op == "||" {
		s.found.add(sql.Span{Start: e.OpPos, Stop: e.OpPos + len(e.Op)}, CodeUnsupported, "", "the operator || is not supported")
		return nil
	}
	x, y := s.expr(e.X), s.expr(e.Y)
	if x == nil || y == nil {
		return nil
	}
	switch e.Op {
	case "AND":
		return s.logic(expr.OpAnd, []sql.Expr{e.X, e.Y}, x, y)
	case "OR":
		return s.logic(expr.OpOr, []sql.Expr{e.X, e.Y}, x, y)
	case "+", "-", "*", "/", "%":
		return s.arithmetic(e, x, y)
	}
	t, a, b, ok := common([]*expr.Expr{x, y})
	if !ok {
		s.found.add(e, CodeType, mismatch(a, b), "%s cannot be compared with %s", article(x), article(y))
		return nil
	}
	return &expr.Expr{Op: expr.Op(e.Op), Type: expr.Type{Kind: expr.Boolean}, Args: []*expr.Expr{convert(x, t), convert(y, t)}}
}

// logic makes AND, OR or NOT of conditions.
func (s *scope) logic(op expr.Op, nodes []sql.Expr, args ...*expr.Expr) *expr.Expr {
	boolean := expr.Type{Kind: expr.Boolean}
	for i, a := range args {
		if !s.condition(nodes[i], a, strings.ToUpper(string(op))) {
			return nil
		}
		args[i] = convert(a, boolean)
	}
	return &expr.Expr{Op: op, Type: boolean, Args: args}
}

// condition sees that e is TRUE, FALSE or NULL.
func (s *scope) condition(at sql.Node, e *expr.Expr, where string) bool {
	if e.Type.Kind == expr.Boolean || e.Type.Kind == expr.Null {
		return true
	}
	hint := ""
	if rank(e.Type) > 0 {
		hint = "compare it, as in x <> 0"
	}
	s.found.add(at, CodeType, hint, "%s needs a condition, and this is %s", where, article(e))
	return false
}

func (s *scope) arithmetic(e *sql.Binary, x, y *expr.Expr) *expr.Expr {
	for i, a := range []*expr.Expr{x, y} {
		if a.Type.Kind != expr.Null && rank(a.Type) == 0 {
			s.found.add([]sql.Expr{e.X, e.Y}[i], CodeType, "", "%s needs numbers, and this is %s", e.Op, article(a))
			return nil
		}
	}
	t, _, _, _ := common([]*expr.Expr{x, y}) // numbers and NULLs always meet
	if t.Kind == expr.Boolean {
		s.found.add(e, CodeType, "", "the type of NULL %s NULL is unknown", e.Op)
		return nil
	}
	if e.Op == "%" && t.Kind == expr.Double {
		s.found.add(e, CodeType, "", "%% is not defined for DOUBLE")
		return nil
	}
	result := t
	if t.Kind == expr.Decimal {
		return s.decimalArithmetic(e, x, y, t)
	}
	return &expr.Expr{Op: expr.Op(e.Op), Type: result, Args: []*expr.Expr{convert(x, t), convert(y, t)}, Text: label(e)}
}

// decimalArithmetic gives the result the scale that the operation needs: a product the
// sum of the scales, a quotient at least six digits.
func (s *scope) decimalArithmetic(e *sql.Binary, x, y *expr.Expr, t expr.Type) *expr.Expr {
	left, right, result := t, t, t
	switch e.Op {
	case "*":
		left, right = expr.DecimalType(x.Type.Scale), expr.DecimalType(y.Type.Scale)
		result = expr.DecimalType(x.Type.Scale + y.Type.Scale)
	case "/":
		result = expr.DecimalType(max(t.Scale, 6))
	}
	if result.Scale > maxDigits {
		s.found.add(e, CodeType, "", "the result would need %d digits behind the point, and a DECIMAL has 38 in all", result.Scale)
		return nil
	}
	return &expr.Expr{Op: expr.Op(e.Op), Type: result, Args: []*expr.Expr{convert(x, left), convert(y, right)}, Text: label(e)}
}

func (s *scope) isNull(e *sql.IsNull) *expr.Expr {
	x := s.expr(e.X)
	if x == nil {
		return nil
	}
	op := expr.OpIsNull
	if e.Not {
		op = expr.OpIsNotNull
	}
	return &expr.Expr{Op: op, Type: expr.Type{Kind: expr.Boolean}, Args: []*expr.Expr{typed(x)}}
}

func (s *scope) in(e *sql.In) *expr.Expr {
	args := []*expr.Expr{s.expr(e.X)}
	for _, item := range e.List {
		args = append(args, s.expr(item))
	}
	if slices.Contains(args, nil) {
		return nil
	}
	for i, item := range args[1:] { // one by one, to say which does not fit
		if _, a, b, ok := common([]*expr.Expr{args[0], item}); !ok {
			s.found.add(e.List[i], CodeType, mismatch(a, b), "%s cannot be compared with %s", article(args[0]), article(item))
			return nil
		}
	}
	t, a, b, ok := common(args)
	if !ok {
		s.found.add(e, CodeType, mismatch(a, b), "%s cannot be compared with %s", article(a), article(b))
		return nil
	}
	for i := range args {
		args[i] = convert(args[i], t)
	}
	boolean := expr.Type{Kind: expr.Boolean}
	in := &expr.Expr{Op: expr.OpIn, Type: boolean, Args: args}
	if e.Not {
		return &expr.Expr{Op: expr.OpNot, Type: boolean, Args: []*expr.Expr{in}}
	}
	return in
}

// typed gives a bare NULL the type STRING, as PostgreSQL does where nothing says more.
func typed(e *expr.Expr) *expr.Expr {
	if e.Type.Kind == expr.Null {
		return convert(e, expr.Type{Kind: expr.String})
	}
	return e
}

// label is the text by which row errors name an expression.
func label(e sql.Expr) string {
	const limit = 80
	text := []rune(sql.FormatExpr(e))
	if len(text) > limit {
		return string(text[:limit]) + "…"
	}
	return string(text)
}

// article names an expression's type in a sentence.
func article(e *expr.Expr) string {
	switch {
	case isNull(e):
		return "NULL"
	case e.Type.Kind == expr.Int:
		return "an INT"
	}
	return "a " + e.Type.String()
}
