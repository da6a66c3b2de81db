package planner

import (
	"weir/planner/expr"
	"weir/planner/sql"
)

func (s *scope) arithmetic(e *sql.Binary, x, y *expr.Expr) *expr.Expr {
	if timely(x) || timely(y) {
		return s.timeArithmetic(e, x, y)
	}
	if unknown(x) && unknown(y) {
		s.found.add(e, CodeType, "write numbers without quotes", "%s needs numbers, and these are STRINGs", e.Op)
		return nil
	}
	for i, a := range []*expr.Expr{x, y} {
		if a.Type.Kind != expr.Null && rank(a.Type) == 0 && !unknown(a) {
			s.found.add([]sql.Expr{e.X, e.Y}[i], CodeType, arithmeticHint(e.Op, a), "%s needs numbers, and this is %s", e.Op, article(a))
			return nil
		}
	}
	t, _, _, _ := common([]*expr.Expr{x, y}) // numbers and NULLs always meet
	if rank(t) == 0 {
		s.found.add(e, CodeType, "say which: CAST(NULL AS INT)", "the type of NULL %s NULL is unknown", e.Op)
		return nil
	}
	if e.Op == "%" && t.Kind == expr.Double {
		s.found.add(e, CodeType, "x - y * TRUNCATE(x / y) is the remainder", "%% is not defined for DOUBLE")
		return nil
	}
	nodes := []sql.Expr{e.X, e.Y}
	args := []*expr.Expr{x, y}
	for i, a := range args {
		if unknown(a) {
			if args[i] = s.literalAs(nodes[i], a, t); args[i] == nil {
				return nil
			}
		}
	}
	if t.Kind == expr.Decimal {
		t, _, _, _ = common(args)
		return s.decimalArithmetic(e, args[0], args[1], t)
	}
	return &expr.Expr{Op: expr.Op(e.Op), Type: t, Args: []*expr.Expr{convert(args[0], t), convert(args[1], t)}, Text: label(e)}
}

func arithmeticHint(op string, a *expr.Expr) string {
	switch {
	case a.Type.Kind == expr.String && op == "+":
		return "|| joins strings; CAST(… AS INT) makes a number of one"
	case a.Type.Kind == expr.String:
		return "CAST(… AS INT) makes a number of it"
	case a.Type.Kind == expr.Boolean:
		return "CAST(… AS INT) makes 0 or 1 of it"
	}
	return ""
}

// decimalArithmetic gives the result the scale that the operation needs: a product the
// sum of the scales, a quotient at least six digits.
func (s *scope) decimalArithmetic(e *sql.Binary, x, y *expr.Expr, t expr.Type) *expr.Expr {
	t = expr.DecimalType(t.Scale)
	left, right, result := t, t, t
	switch e.Op {
	case "*":
		left, right = expr.DecimalType(x.Type.Scale), expr.DecimalType(y.Type.Scale)
		result = expr.DecimalType(x.Type.Scale + y.Type.Scale)
	case "/":
		result = expr.DecimalType(max(t.Scale, 6))
	}
	if result.Scale > maxDigits {
		s.found.add(e, CodeType, "round one side first: CAST(… AS DECIMAL(38, 2)), or compute in DOUBLE", "the result would need %d digits behind the point, and a DECIMAL has 38 in all", result.Scale)
		return nil
	}
	return &expr.Expr{Op: expr.Op(e.Op), Type: result, Args: []*expr.Expr{convert(x, left), convert(y, right)}, Text: label(e)}
}

// timely reports whether e is a date, a time or an interval.
func timely(e *expr.Expr) bool {
	return timeRank(e.Type) > 0 || isInterval(e.Type)
}

func isInterval(t expr.Type) bool { return t.Kind == expr.Interval || t.Kind == expr.MonthInterval }

// timeArithmetic binds + - * / where a date, a time or an interval takes part. The time
// or interval becomes the first operand of + and *.
func (s *scope) timeArithmetic(e *sql.Binary, x, y *expr.Expr) *expr.Expr {
	nx, ny := e.X, e.Y
	first := timeRank(x.Type) > 0 || isInterval(x.Type) && timeRank(y.Type) == 0
	if (e.Op == "+" || e.Op == "*") && !first {
		x, y, nx, ny = y, x, ny, nx
	}
	if y = s.timeOperand(e.Op, ny, x, y); y == nil {
		return nil
	}
	if x = s.timeOperand(e.Op, nx, y, x); x == nil {
		return nil
	}
	result, left, right, ok := timeResult(e.Op, x, y)
	if !ok {
		s.found.add(e, CodeType, timeHint(e.Op, x, y), "%s is not defined for %s and %s", e.Op, articleOf(x.Type), articleOf(y.Type))
		return nil
	}
	out := &expr.Expr{Op: expr.Op(e.Op), Type: result, Args: []*expr.Expr{convertIn(x, left, s.zone), convertIn(y, right, s.zone)}, Text: label(e)}
	if left.Kind == expr.TimestampLTZ && right.Kind == expr.MonthInterval {
		out.Zone = s.zone
	}
	return out
}

// timeOperand gives a NULL or a string literal beside a time or an interval its type:
// what is added to a time is an interval, what is subtracted a time, a factor a number.
func (s *scope) timeOperand(op string, at sql.Node, beside, e *expr.Expr) *expr.Expr {
	if !unknown(e) && e.Type.Kind != expr.Null {
		return e
	}
	t := beside.Type
	switch {
	case beside.Type.Kind == expr.Date && op == "+":
		s.found.add(at, CodeType, "write a number of days, or INTERVAL '1' DAY", "what is added to a DATE has no type here")
		return nil
	case timeRank(beside.Type) > 0 && op == "+":
		t = expr.Type{Kind: expr.Interval}
	case op == "*" || op == "/":
		t = expr.Type{Kind: expr.Double}
	}
	if unknown(e) {
		return s.literalAs(at, e, t)
	}
	return nullLiteral(t)
}

// timeResult gives the type of an operation on times, and those of its operands.
func timeResult(op string, x, y *expr.Expr) (result, left, right expr.Type, ok bool) {
	a, b := x.Type, y.Type
	days, bigint, double := expr.Type{Kind: expr.Int}, expr.Type{Kind: expr.BigInt}, expr.Type{Kind: expr.Double}
	interval := expr.Type{Kind: expr.Interval}
	sum := op == "+" || op == "-"
	switch {
	case sum && timeRank(a) > 0 && isInterval(b):
		if a.Kind == expr.Date {
			a = expr.Type{Kind: expr.Timestamp}
		}
		result = a
		result.Precision = max(a.Precision, intervalDigits(y))
		return result, a, b, true
	case sum && a.Kind == expr.Date && b.Kind == expr.Int:
		return a, a, b, true
	case op == "-" && a.Kind == expr.Date && b.Kind == expr.Date:
		return days, a, b, true
	case op == "-" && timeRank(a) > 0 && timeRank(b) > 0:
		t, _ := meeting(a, b)
		return interval, t, t, true
	case sum && isInterval(a) && a.Kind == b.Kind:
		return a, a, a, true
	case op == "*" && isInterval(a) && (b.Kind == expr.Int || b.Kind == expr.BigInt):
		return a, a, bigint, true
	case op == "/" && a.Kind == expr.Interval && (b.Kind == expr.Int || b.Kind == expr.BigInt):
		return a, a, bigint, true
	case (op == "*" || op == "/") && a.Kind == expr.Interval && rank(b) > 0:
		return a, a, double, true
	}
	return result, left, right, false
}

// intervalDigits is how many digits of a second an interval may add.
func intervalDigits(e *expr.Expr) int {
	switch {
	case e.Type.Kind == expr.MonthInterval || isNull(e):
		return 0
	case isLiteral(e):
		return fractionDigits(e.Literal.Int)
	}
	return 6
}

func timeHint(op string, x, y *expr.Expr) string {
	a, b := x.Type, y.Type
	switch {
	case timeRank(a) > 0 && b.Kind == expr.BigInt && a.Kind == expr.Date:
		return "a number of days is an INT: CAST(… AS INT)"
	case timeRank(a) > 0 && rank(b) > 0:
		return "add an interval: INTERVAL '1' DAY, or n * INTERVAL '1' SECOND"
	case timeRank(a) > 0 && timeRank(b) > 0:
		return "the difference of two times is time - time"
	case isInterval(a) && isInterval(b) && (op == "+" || op == "-"):
		return "months have no fixed length: add the two intervals to a time one by one"
	case a.Kind == expr.MonthInterval:
		return "months can be multiplied by whole numbers only"
	case op == "-" && isInterval(a) && timeRank(b) > 0:
		return "subtract the interval from the time"
	}
	return ""
}
