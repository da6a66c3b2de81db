package planner

import (
	"fmt"
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// call binds what is written as a function: an aggregate, a function of the table, or
// one of those that are other operations.
func (s *scope) call(e *sql.Call) *expr.Expr {
	name := strings.ToUpper(e.Name.Name)
	if name == "GROUPING" || name == "GROUPING_ID" {
		return s.grouping(e)
	}
	if a := expr.FindAggregate(name); a != nil {
		return s.aggregate(e, a)
	}
	f := expr.FindFunction(name)
	if len(e.Args) == 2 && isWord(e.Args[1]) { // FLOOR and CEIL of times
		if f = expr.FunctionOf("ceil_to"); name == "FLOOR" {
			f = expr.FunctionOf("floor_to")
		}
	}
	switch {
	case f == nil || isOperator(f):
		s.refuseFunction(e, name)
		return nil
	case e.Star || e.Distinct || e.Filter != nil:
		s.found.add(e, CodeQuery, "", "%s is no aggregate: it takes neither * nor DISTINCT nor FILTER", name)
		return nil
	case f.Special:
		return s.specialCall(e, f)
	}
	nodes := e.Args
	if len(nodes) > 0 && isWord(nodes[0]) && f.Name == "trim" {
		f, nodes = trimOf(e)
	}
	return s.function(e, f, nodes)
}

func isWord(e sql.Expr) bool {
	_, ok := e.(*sql.Word)
	return ok
}

// trimOf gives the function that TRIM(side characters FROM text) is, and its operands
// in the order of the function.
func trimOf(e *sql.Call) (*expr.Function, []sql.Expr) {
	name := map[string]string{"LEADING": "ltrim", "TRAILING": "rtrim"}[e.Args[0].(*sql.Word).Name]
	if name == "" {
		name = "trim"
	}
	nodes := slices.DeleteFunc(slices.Clone(e.Args[1:]), func(n sql.Expr) bool { return n == nil })
	slices.Reverse(nodes)
	return expr.FunctionOf(name), nodes
}

func (s *scope) specialCall(e *sql.Call, f *expr.Function) *expr.Expr {
	params := f.Signatures[0]
	if len(e.Args) != len(params.Params) && !(params.Variadic && len(e.Args) > 0) {
		s.wrongArguments(e, f, nil, nil)
		return nil
	}
	switch f.SQL {
	case "NULLIF":
		return s.nullIf(e)
	case "IF":
		return s.ifOf(e)
	case "MOD":
		return s.binary(&sql.Binary{Span: e.Span, Op: "%", OpPos: e.Start, X: e.Args[0], Y: e.Args[1]})
	}
	return s.coalesce(e)
}

// function binds a call of a function to the signature that its arguments fit best.
func (s *scope) function(e *sql.Call, f *expr.Function, nodes []sql.Expr) *expr.Expr {
	args, wrong := make([]*expr.Expr, len(nodes)), false
	for i, n := range nodes {
		if w, ok := n.(*sql.Word); ok {
			args[i] = stringLiteral(w.Name)
		} else if args[i] = s.expr(n); args[i] == nil {
			wrong = true
		}
	}
	if wrong {
		return nil
	}
	if f.Name == "floor_to" || f.Name == "ceil_to" {
		nodes, args = []sql.Expr{nodes[1], nodes[0]}, []*expr.Expr{args[1], args[0]}
	}
	if f.Name == "concat" || f.Name == "concat_ws" {
		s.asTexts(args)
	}
	sig := resolveCall(f, args)
	if sig == nil {
		s.wrongArguments(e, f, nodes, args)
		return nil
	}
	for i, a := range args {
		if k := paramKind(sig, i); unknown(a) && timeRank(expr.Type{Kind: k}) > 0 && len(f.Signatures) > 1 {
			s.found.add(nodes[i], CodeType, "say which: TIMESTAMP '…' or DATE '…'", "%s may be of several types here", a.SQL(nil))
			return nil
		}
	}
	return s.bindCall(e, f, sig, nodes, args)
}

// bindCall brings arguments to a signature's types, and checks those that are constants.
func (s *scope) bindCall(e sql.Expr, f *expr.Function, sig *expr.Signature, nodes []sql.Expr, args []*expr.Expr) *expr.Expr {
	args, nodes = slices.Clone(args), slices.Clone(nodes)
	if len(sig.Params) > 0 && sig.Params[0].Kind == expr.Null {
		if args, _ = s.meet(nil, nodes, args, doNotMeet); args == nil {
			return nil
		}
	}
	for i, a := range args {
		p := paramAt(sig, i)
		if p.Kind == expr.Null {
			continue
		}
		if p.Constant {
			if a = fold(a); !isLiteral(a) || isNull(a) {
				s.found.add(nodes[i], CodeType, "write it out", "the argument %s of %s has to be a constant", p.Name, f.SQL)
				return nil
			}
		}
		if args[i] = s.argument(nodes[i], a, p.Kind); args[i] == nil {
			return nil
		}
	}
	for _, d := range defaults(f, len(args)) {
		args, nodes = append(args, d), append(nodes, e)
	}
	call := &expr.Expr{Op: expr.OpCall, Func: f.Name, Args: args}
	if !s.checkCall(f, nodes, args) {
		return nil
	}
	call.Type = resultType(sig, args)
	if f.Errors != "" {
		call.Text = label(e)
	}
	if f.Zoned && (len(args) == 0 || slices.ContainsFunc(args, func(a *expr.Expr) bool { return a.Type.Kind == expr.TimestampLTZ })) {
		call.Zone = s.zone
	}
	return call
}

// argument brings an argument to a parameter's kind.
func (s *scope) argument(at sql.Expr, a *expr.Expr, k expr.Kind) *expr.Expr {
	t := a.Type
	if t.Kind != k {
		t = expr.Type{Kind: k, Precision: a.Type.Precision}
		if k == expr.Decimal {
			t = expr.DecimalType(0)
		}
		if timeRank(t) > 0 && timeRank(a.Type) == 0 {
			t.Precision = 6
		}
	}
	if unknown(a) && k != expr.String {
		return s.literalAs(at, a, t)
	}
	return convertIn(a, t, s.zone)
}

// defaults are the arguments that a call may leave out and its kernel gets.
func defaults(f *expr.Function, given int) []*expr.Expr {
	switch {
	case given == 1 && (f.Name == "trim" || f.Name == "ltrim" || f.Name == "rtrim"),
		given == 2 && (f.Name == "lpad" || f.Name == "rpad"):
		return []*expr.Expr{stringLiteral(" ")}
	case given == 2 && f.Name == "regexp_extract":
		return []*expr.Expr{intLiteral(0, expr.Type{Kind: expr.Int})}
	}
	return nil
}

func resultType(sig *expr.Signature, args []*expr.Expr) expr.Type {
	switch sig.Rule {
	case expr.Same:
		t := expr.Type{}
		for i, a := range args {
			if paramAt(sig, i).Constant {
				continue
			}
			if t.Kind == expr.Null {
				t = a.Type
			}
			t.Precision = max(t.Precision, a.Type.Precision)
		}
		return t
	case expr.Rounded:
		return expr.DecimalType(int(max(args[1].Literal.Int, 0)))
	case expr.Whole:
		return expr.DecimalType(0)
	case expr.Precise:
		return expr.Type{Kind: sig.Result.Kind, Precision: int(args[1].Literal.Int)}
	case expr.Extracted:
		switch args[0].Literal.String {
		case "SECOND", "EPOCH":
			return expr.DecimalType(6)
		case "MILLISECOND":
			return expr.DecimalType(3)
		}
		return expr.Type{Kind: expr.BigInt}
	}
	return sig.Result
}

func paramKind(sig *expr.Signature, i int) expr.Kind {
	if len(sig.Params) == 0 {
		return expr.Null
	}
	return paramAt(sig, i).Kind
}

func paramAt(sig *expr.Signature, i int) expr.Param {
	return sig.Params[min(i, len(sig.Params)-1)]
}

// resolveCall finds the signature that takes the arguments with the fewest conversions;
// of equally good ones the first, which for a string literal is one that takes a STRING,
// or else the last number.
func resolveCall(f *expr.Function, args []*expr.Expr) *expr.Signature {
	var best *expr.Signature
	least := 0
	for i := range f.Signatures {
		sig := &f.Signatures[i]
		if len(args) != len(sig.Params) && !(sig.Variadic && len(args) >= len(sig.Params)-1 && len(args) > 0) {
			continue
		}
		cost, ok := 0, true
		for j, a := range args {
			c := costOf(a, paramAt(sig, j).Kind)
			if cost += c; c < 0 {
				ok = false
				break
			}
		}
		if ok && (best == nil || cost < least) {
			best, least = sig, cost
		}
	}
	return best
}

// costOf counts the steps of widening that bring an argument to a kind; -1: it cannot be.
func costOf(a *expr.Expr, k expr.Kind) int {
	from, to := a.Type, expr.Type{Kind: k}
	const never = -1
	switch {
	case k == expr.Null || from.Kind == k || from.Kind == expr.Null:
		return 0
	case unknown(a) && timeRank(to) > 0:
		return 20 - timeRank(to)
	case unknown(a) && isInterval(to):
		return never
	case unknown(a):
		return 10 - rank(to)
	case rank(from) > 0 && rank(to) > rank(from):
		return rank(to) - rank(from)
	case timeRank(from) > 0 && timeRank(to) > timeRank(from):
		return timeRank(to) - timeRank(from)
	}
	return never
}

// wrongArguments says how a function is called; args is nil where their number is wrong.
func (s *scope) wrongArguments(e *sql.Call, f *expr.Function, nodes []sql.Expr, args []*expr.Expr) {
	types := make([]string, len(args))
	hint := ""
	for i, a := range args {
		types[i] = a.Type.String()
		if isWord(nodes[i]) {
			types[i] = nodes[i].(*sql.Word).Name
		}
		if params := f.Signatures[0].Params; len(params) > i && params[i].Kind == expr.String && a.Type.Kind != expr.String {
			hint = "CAST(… AS STRING) makes a string"
		}
	}
	if len(args) == 2 && args[0].Type.Kind == expr.Double && (f.Name == "round" || f.Name == "truncate") {
		hint = "round a DECIMAL: ROUND(CAST(x AS DECIMAL(38, 6)), 2)"
	}
	what := fmt.Sprintf("does not take (%s)", strings.Join(types, ", "))
	if args == nil {
		what = "does not take " + count(len(e.Args), "argument")
	}
	s.found.add(e, CodeType, hints("it is "+f.Usage(), hint), "%s %s", strings.ToUpper(e.Name.Name), what)
}
