package planner

import (
	"fmt"
	"strings"

	"weir/planner/expr"
)

// Types meet as in PostgreSQL: INT → BIGINT → DECIMAL → DOUBLE, NULL takes the type it
// meets, and a string literal is read as a time where it meets one. Nothing else
// converts by itself.

// rank orders the numeric types; 0 is no number.
func rank(t expr.Type) int {
	switch t.Kind {
	case expr.Int:
		return 1
	case expr.BigInt:
		return 2
	case expr.Decimal:
		return 3
	case expr.Double:
		return 4
	}
	return 0
}

// widest gives the type in which two numbers are computed.
func widest(a, b expr.Type) expr.Type {
	switch {
	case a.Kind == expr.Decimal && b.Kind == expr.Decimal:
		return expr.DecimalType(max(a.Scale, b.Scale))
	case rank(a) >= rank(b):
		return a
	}
	return b
}

// common gives the type in which expressions are compared with each other; ok is false
// where two of them, x and y, cannot be.
func common(list []*expr.Expr) (t expr.Type, x, y *expr.Expr, ok bool) {
	t, x = list[0].Type, list[0]
	for _, y := range list[1:] {
		switch {
		case y.Type.Kind == expr.Null:
		case t.Kind == expr.Null:
			t, x = y.Type, y
		case rank(t) > 0 && rank(y.Type) > 0:
			t = widest(t, y.Type)
		case t.Kind == expr.TimestampLTZ && timeLiteral(y), t.Kind == y.Type.Kind:
		case y.Type.Kind == expr.TimestampLTZ && timeLiteral(x):
			t, x = y.Type, y
		default:
			return t, x, y, false
		}
	}
	if t.Kind == expr.Null { // nothing but NULLs: any type will do
		t = expr.Type{Kind: expr.Boolean}
	}
	return t, nil, nil, true
}

// timeLiteral reports whether e is a string literal that can be read as a time.
func timeLiteral(e *expr.Expr) bool {
	if !isLiteral(e) || e.Literal == nil || e.Type.Kind != expr.String {
		return false
	}
	_, ok := parseTimestamp(e.Literal.String)
	return ok
}

// convert brings e to a type that it may take; literals are converted here and now.
func convert(e *expr.Expr, to expr.Type) *expr.Expr {
	if e.Type == to || e.Type.Kind == to.Kind && to.Kind != expr.Decimal {
		return e
	}
	if isLiteral(e) {
		if lit := convertLiteral(e, to); lit != nil {
			return lit
		}
	}
	return &expr.Expr{Op: expr.OpConvert, Type: to, Args: []*expr.Expr{e}, Text: e.Text}
}

func convertLiteral(e *expr.Expr, to expr.Type) *expr.Expr {
	if e.Literal == nil {
		return nullLiteral(to)
	}
	switch to.Kind {
	case expr.Int, expr.BigInt:
		return intLiteral(e.Literal.Int, to)
	case expr.Decimal:
		if d := literalDecimal(e).at(to.Scale); d.fits() {
			return decimalLiteral(d)
		}
		return nil // the conversion fails where it is computed
	case expr.Double:
		return doubleLiteral(literalDouble(e))
	case expr.TimestampLTZ:
		micros, _ := parseTimestamp(e.Literal.String) // the caller asked timeLiteral
		return intLiteral(micros, to)
	}
	return nil
}

// assignable reports whether a value of e may go into a sink's column of type to.
func assignable(e *expr.Expr, to expr.Type) bool {
	from := e.Type
	switch {
	case from.Kind == expr.Null, to.Kind == expr.TimestampLTZ && timeLiteral(e):
		return true
	case rank(from) > 0 && rank(to) > 0:
		return rank(from) < rank(to) || from.Kind == to.Kind && from.Scale <= to.Scale
	case from.Kind == expr.TimestampLTZ && to.Kind == from.Kind:
		return from.Precision <= to.Precision
	}
	return from.Kind == to.Kind
}

// notNull reports whether e is never NULL over input columns of which some are not.
func notNull(e *expr.Expr, column func(i int) bool) bool {
	switch e.Op {
	case expr.OpColumn:
		return column(e.Column)
	case expr.OpLiteral:
		return e.Literal != nil
	case expr.OpIsNull, expr.OpIsNotNull:
		return true
	}
	for _, a := range e.Args {
		if !notNull(a, column) {
			return false
		}
	}
	return true
}

// mismatch words the hint for two types that do not compare, where there is one.
func mismatch(x, y *expr.Expr) string {
	if x.Type.Kind != expr.String {
		x, y = y, x
	}
	if x.Type.Kind != expr.String {
		return ""
	}
	switch {
	case y.Type.Kind == expr.TimestampLTZ && isLiteral(x):
		return "write the time as '2017-11-25T00:00:00Z'"
	case rank(y.Type) > 0 && isLiteral(x):
		if _, ok := number(strings.TrimPrefix(x.Literal.String, "-")); ok && x.Literal.String != "" {
			return "write the number without quotes: " + x.Literal.String
		}
	case rank(y.Type) > 0 && isLiteral(y):
		return fmt.Sprintf("write the number as a string: '%s'", y.SQL(nil))
	case y.Type.Kind == expr.Boolean && isLiteral(x):
		return "write TRUE or FALSE without quotes"
	}
	return "declare both with one type; CAST is not supported"
}
