package planner

import (
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

var boolean = expr.Type{Kind: expr.Boolean}

func (s *scope) expr(e sql.Expr) *expr.Expr {
	if s.groups != nil {
		if i := s.groups.key(s, e); i >= 0 {
			return s.groups.column(i)
		}
	}
	switch e := e.(type) {
	case *sql.ColumnRef:
		return s.columnRef(e)
	case *sql.NumberLit, *sql.StringLit, *sql.BoolLit, *sql.NullLit, *sql.IntervalLit, *sql.TypedLit, *sql.BytesLit:
		return s.literal(e)
	case *sql.Unary:
		return s.unary(e)
	case *sql.Binary:
		return s.binary(e)
	case *sql.IsNull:
		return s.isNull(e)
	case *sql.IsDistinct:
		return s.isDistinct(e)
	case *sql.IsTruth:
		return s.isTruth(e)
	case *sql.In:
		return s.in(e)
	case *sql.Between:
		return s.between(e)
	case *sql.Like:
		return s.like(e)
	case *sql.Case:
		return s.caseOf(e)
	case *sql.Cast:
		return s.cast(e)
	case *sql.Call:
		return s.call(e)
	case *sql.Star:
		s.found.add(e, CodeQuery, "", "* stands in a select list only")
	case *sql.Row:
		s.found.add(e, CodeUnsupported, "compare the values one by one", "a row value (a, b) is not supported")
	case *sql.Word:
		s.found.add(e, CodeQuery, "", "%s stands where a value is expected", e.Name)
	default:
		s.found.add(e, CodeQuery, "", "this stands in GROUP BY only")
	}
	return nil
}

// exprs binds several expressions; it returns nil where one is wrong.
func (s *scope) exprs(nodes []sql.Expr) []*expr.Expr {
	list := make([]*expr.Expr, len(nodes))
	for i, n := range nodes {
		list[i] = s.expr(n)
	}
	if slices.Contains(list, nil) {
		return nil
	}
	return list
}

// maxText bounds a constant: it is laid out for each row of a batch.
const maxText = 64 << 10

// literal binds the nodes that are constants.
func (s *scope) literal(e sql.Expr) *expr.Expr {
	switch e := e.(type) {
	case *sql.NumberLit:
		return s.number(e, e.Text)
	case *sql.StringLit:
		if len(e.Value) > maxText {
			s.found.add(e, CodeUnsupported, "put it into a table, or make it of shorter ones", "a constant text of %d bytes is too long: at most 64 KiB", len(e.Value))
			return nil
		}
		return stringLiteral(e.Value)
	case *sql.BoolLit:
		return boolLiteral(e.Value)
	case *sql.IntervalLit:
		return s.interval(e)
	case *sql.TypedLit:
		t := bindType(e.Type, s.found)
		if t.Kind == expr.Null {
			return nil
		}
		lit, problem := castText(e.Value, t, s.zone)
		if problem != "" {
			s.found.add(e, CodeType, literalHint(t), "%s is no %s: %s", sql.QuoteString(e.Value), t, problem)
			return nil
		}
		return lit
	case *sql.BytesLit:
		lit, problem := hexLiteral(e.Value)
		if problem != "" {
			s.found.add(e, CodeType, literalHint(expr.Type{Kind: expr.Bytes}), "X'%s' is no BYTES: %s", e.Value, problem)
			return nil
		}
		return lit
	}
	return nullLiteral(expr.Type{Kind: expr.Null})
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
	interval := x.Type.Kind == expr.Interval || x.Type.Kind == expr.MonthInterval
	if rank(x.Type) == 0 && !interval {
		s.found.add(e.X, CodeType, "", "%s needs a number, and this is %s", e.Op, article(x))
		return nil
	}
	if e.Op == "+" {
		return x
	}
	neg := &expr.Expr{Op: expr.OpNeg, Type: x.Type, Args: []*expr.Expr{x}, Text: label(e)}
	if isLiteral(x) && !isNull(x) {
		if lit := computeNegative(neg, x); lit != nil {
			return lit
		}
	}
	return neg
}

func (s *scope) binary(e *sql.Binary) *expr.Expr {
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
	case "||":
		return s.concatOp(e, x, y)
	}
	return s.compare(expr.Op(e.Op), e, []sql.Expr{e.X, e.Y}, x, y)
}

// compare makes a comparison of two expressions; at is where it stands.
func (s *scope) compare(op expr.Op, at sql.Node, nodes []sql.Expr, x, y *expr.Expr) *expr.Expr {
	if x == nil || y == nil {
		return nil
	}
	args, _ := s.meet(at, nodes, []*expr.Expr{x, y}, "cannot be compared with")
	if args == nil {
		return nil
	}
	return &expr.Expr{Op: op, Type: boolean, Args: args}
}

// logic makes AND, OR or NOT of conditions.
func (s *scope) logic(op expr.Op, nodes []sql.Expr, args ...*expr.Expr) *expr.Expr {
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
	switch {
	case e.Type.Kind == expr.Boolean || e.Type.Kind == expr.Null:
		return true
	case unknown(e):
		return s.literalAs(at, e, boolean) != nil
	}
	hint := ""
	if rank(e.Type) > 0 {
		hint = "compare it, as in x <> 0"
	}
	s.found.add(at, CodeType, hint, "%s needs a condition, and this is %s", where, article(e))
	return false
}

// conditionOf binds a condition.
func (s *scope) conditionOf(e sql.Expr, where string) *expr.Expr {
	x := s.expr(e)
	if x == nil || !s.condition(e, x, where) {
		return nil
	}
	return convert(x, boolean)
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
	return &expr.Expr{Op: op, Type: boolean, Args: []*expr.Expr{typed(x)}}
}

func (s *scope) isDistinct(e *sql.IsDistinct) *expr.Expr {
	op := expr.OpDistinct
	if e.Not {
		op = expr.OpNotDistinct
	}
	return s.compare(op, e, []sql.Expr{e.X, e.Y}, s.expr(e.X), s.expr(e.Y))
}

// isTruth binds IS TRUE and its like, which are never NULL, to comparisons that are not.
func (s *scope) isTruth(e *sql.IsTruth) *expr.Expr {
	x := s.conditionOf(e.X, "IS "+e.Value)
	if x == nil {
		return nil
	}
	is, not := expr.OpNotDistinct, expr.OpDistinct
	args := []*expr.Expr{x, boolLiteral(e.Value == "TRUE")}
	if e.Value == "UNKNOWN" {
		is, not, args = expr.OpIsNull, expr.OpIsNotNull, args[:1]
	}
	if e.Not {
		is = not
	}
	return &expr.Expr{Op: is, Type: boolean, Args: args}
}

func (s *scope) in(e *sql.In) *expr.Expr {
	nodes := append([]sql.Expr{e.X}, e.List...)
	args := s.exprs(nodes)
	if args == nil {
		return nil
	}
	for i, item := range args[1:] { // one by one, to say which does not fit
		if _, x, y, ok := common([]*expr.Expr{args[0], item}); !ok {
			pair := []*expr.Expr{args[0], item}
			s.found.add(e.List[i], CodeType, mismatch(pair[x], pair[y]), "%s cannot be compared with %s", article(args[0]), article(item))
			return nil
		}
	}
	if args, _ = s.meet(nil, nodes, args, "cannot be compared with"); args == nil {
		return nil
	}
	return negated(e.Not, &expr.Expr{Op: expr.OpIn, Type: boolean, Args: args})
}

func negated(not bool, e *expr.Expr) *expr.Expr {
	if !not {
		return e
	}
	return &expr.Expr{Op: expr.OpNot, Type: boolean, Args: []*expr.Expr{e}}
}

// between binds x BETWEEN low AND high to x >= low AND x <= high; each pair meets by
// itself, as in PostgreSQL.
func (s *scope) between(e *sql.Between) *expr.Expr {
	x, low, high := s.expr(e.X), s.expr(e.Low), s.expr(e.High)
	above := s.compare(expr.OpGe, e.Low, []sql.Expr{e.X, e.Low}, x, low)
	below := s.compare(expr.OpLe, e.High, []sql.Expr{e.X, e.High}, x, high)
	if above == nil || below == nil {
		return nil
	}
	return negated(e.Not, &expr.Expr{Op: expr.OpAnd, Type: boolean, Args: []*expr.Expr{above, below}})
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
