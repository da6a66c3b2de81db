package planner

import (
	"weir/planner/expr"
	"weir/planner/sql"
)

// text gives e as a STRING; BOOLEAN as t and f, which is how PostgreSQL's CONCAT has it.
func (s *scope) text(e *expr.Expr) *expr.Expr {
	t := expr.Type{Kind: expr.String}
	switch e.Type.Kind {
	case expr.String, expr.Null:
		return convert(e, t)
	case expr.Boolean:
		isNull := &expr.Expr{Op: expr.OpIsNull, Type: boolean, Args: []*expr.Expr{e}}
		return makeCase(t, []*expr.Expr{e, isNull}, []*expr.Expr{stringLiteral("t"), nullLiteral(t), stringLiteral("f")})
	}
	return castTo(e, t, s.zone, expr.OpCast)
}

func (s *scope) asTexts(args []*expr.Expr) {
	for i, a := range args {
		args[i] = s.text(a)
	}
}

// concatOp binds x || y: of two BYTES, or of two texts, one of which may be of any type.
func (s *scope) concatOp(e *sql.Binary, x, y *expr.Expr) *expr.Expr {
	f := expr.FunctionOf("concat_op")
	nodes, args := []sql.Expr{e.X, e.Y}, []*expr.Expr{x, y}
	text := func(a *expr.Expr) bool { return a.Type.Kind == expr.String || a.Type.Kind == expr.Null }
	bytes := func(a *expr.Expr) bool { return a.Type.Kind == expr.Bytes }
	switch {
	case bytes(x) && (bytes(y) || unknown(y) || isNull(y)), bytes(y) && (unknown(x) || isNull(x)):
		return s.bindCall(e, f, &f.Signatures[1], nodes, args)
	case text(x) || text(y):
		for i, a := range args {
			if !text(a) {
				args[i] = castTo(a, expr.Type{Kind: expr.String}, s.zone, expr.OpCast)
			}
		}
		return s.bindCall(e, f, &f.Signatures[0], nodes, args)
	}
	s.found.add(e, CodeType, "CAST one side AS STRING, or use CONCAT", "|| needs a STRING, and these are %s and %s", articleOf(x.Type), articleOf(y.Type))
	return nil
}

// like binds LIKE and ILIKE to the functions of the names.
func (s *scope) like(e *sql.Like) *expr.Expr {
	f := expr.FunctionOf("like")
	if e.Fold {
		f = expr.FunctionOf("ilike")
	}
	nodes := []sql.Expr{e.X, e.Pattern}
	if e.Escape != nil {
		nodes = append(nodes, e.Escape)
	}
	args := s.exprs(nodes)
	if args == nil {
		return nil
	}
	for i, a := range args {
		if a.Type.Kind != expr.String && a.Type.Kind != expr.Null {
			s.found.add(nodes[i], CodeType, "CAST(… AS STRING) makes a string", "%s needs STRINGs, and this is %s", f.SQL, article(a))
			return nil
		}
	}
	if e.Escape == nil {
		nodes, args = append(nodes, e), append(args, stringLiteral(`\`))
	}
	call := s.bindCall(e, f, &f.Signatures[0], nodes, args)
	if call == nil {
		return nil
	}
	return negated(e.Not, call)
}
