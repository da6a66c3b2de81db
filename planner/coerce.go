package planner

import (
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// Types meet as in PostgreSQL: INT → BIGINT → DECIMAL → DOUBLE, DATE → TIMESTAMP →
// TIMESTAMP_LTZ, NULL takes the type it meets, and a string literal is read as the type
// it meets. Nothing else converts by itself, columns of type STRING least of all.

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

// timeRank orders the types of dates and times; 0 is none.
func timeRank(t expr.Type) int {
	switch t.Kind {
	case expr.Date:
		return 1
	case expr.Timestamp:
		return 2
	case expr.TimestampLTZ:
		return 3
	}
	return 0
}

// unknown reports whether e is a string literal: it takes the type that it meets.
func unknown(e *expr.Expr) bool {
	return isLiteral(e) && e.Type.Kind == expr.String && e.Literal != nil
}

// widest gives the type in which two numbers are computed.
func widest(a, b expr.Type) expr.Type {
	if rank(a) < rank(b) {
		a, b = b, a
	}
	if a.Kind == expr.Decimal && a != b {
		return expr.DecimalType(max(a.Scale, b.Scale))
	}
	return a
}

// meeting gives the type in which two types meet.
func meeting(a, b expr.Type) (t expr.Type, ok bool) {
	switch {
	case b.Kind == expr.Null:
		return a, true
	case a.Kind == expr.Null:
		return b, true
	case rank(a) > 0 && rank(b) > 0:
		return widest(a, b), true
	case timeRank(a) > 0 && timeRank(b) > 0:
		if timeRank(a) < timeRank(b) {
			a, b = b, a
		}
		a.Precision = max(a.Precision, b.Precision)
		return a, true
	}
	return a, a.Kind == b.Kind
}

// common gives the type in which expressions meet; ok is false where the x-th and the
// y-th do not. String literals have no say where there is something else; of nothing
// but NULLs it is the type of NULL.
func common(list []*expr.Expr) (t expr.Type, x, y int, ok bool) {
	literal := false
	for i, e := range list {
		if unknown(e) {
			literal = true
			continue
		}
		met, ok := meeting(t, e.Type)
		if !ok {
			return t, x, i, false
		}
		if met.Kind != t.Kind {
			x = i
		}
		t = met
	}
	if t.Kind == expr.Null && literal {
		t.Kind = expr.String
	}
	return t, 0, 0, true
}

// meet brings expressions to their common type, STRING where all are NULL; it returns
// nil after saying why there is none. verb words that, as in "cannot be compared with";
// at is where: nil is the one that does not fit.
func (s *scope) meet(at sql.Node, nodes []sql.Expr, list []*expr.Expr, verb string) ([]*expr.Expr, expr.Type) {
	t, x, y, ok := common(list)
	if !ok {
		if at == nil {
			at = nodes[y]
		}
		s.found.add(at, CodeType, mismatch(list[x], list[y]), "%s %s %s", article(list[x]), verb, article(list[y]))
		return nil, t
	}
	if t.Kind == expr.Null {
		t.Kind = expr.String
	}
	met := make([]*expr.Expr, len(list))
	for i, e := range list {
		if met[i] = e; unknown(e) {
			if met[i] = s.literalAs(nodes[i], e, t); met[i] == nil {
				return nil, t
			}
		}
	}
	if t.Kind == expr.Decimal || timeRank(t) > 0 { // literals may have more digits
		t, _, _, _ = common(met)
	}
	for i, e := range met {
		met[i] = convertIn(e, t, s.zone)
	}
	return met, t
}

// literalAs reads a string literal as the type that it meets; it returns nil after saying
// what is wrong with it.
func (s *scope) literalAs(at sql.Node, e *expr.Expr, t expr.Type) *expr.Expr {
	read, problem := readLiteral(e.Literal.String, t, s.zone)
	if problem != "" {
		s.found.add(at, CodeType, literalHint(t), "%s is no %s: %s", e.SQL(nil), t, problem)
		return nil
	}
	return read
}

// literalHint shows how a literal of a type is written.
func literalHint(t expr.Type) string {
	switch t.Kind {
	case expr.Date:
		return "write a date as '2017-11-25'"
	case expr.Timestamp:
		return "write a time as '2017-11-25 01:02:03'"
	case expr.TimestampLTZ:
		return "write a time as '2017-11-25 01:02:03Z' or '2017-11-25 01:02:03+01:00'"
	case expr.Interval:
		return "write INTERVAL '1 02:03:04' DAY TO SECOND or '1 day 2 hours'"
	case expr.MonthInterval:
		return "write INTERVAL '1-2' YEAR TO MONTH or '1 year 2 months'"
	case expr.Boolean:
		return "write TRUE or FALSE"
	case expr.Bytes:
		return `write X'00ff' or '\x00ff'`
	}
	return ""
}

// convert brings e to a type that it may take; literals are converted here and now.
func convert(e *expr.Expr, to expr.Type) *expr.Expr { return convertIn(e, to, "") }

// convertIn is convert in a job's time zone. Decimals of one scale and times of one
// kind are alike already; where a DECIMAL may have too many digits they are counted.
func convertIn(e *expr.Expr, to expr.Type, zone string) *expr.Expr {
	narrow := to.Kind == expr.Decimal && to.Precision < maxDigits && !expr.Fits(e.Type, to)
	if e.Type.Kind == to.Kind && e.Type.Scale == to.Scale && !narrow {
		if isLiteral(e) && e.Type != to {
			e = &expr.Expr{Op: expr.OpLiteral, Type: to, Literal: e.Literal}
		}
		return e
	}
	if isLiteral(e) {
		if lit := convertLiteral(e, to, zone); lit != nil {
			return lit
		}
	}
	if narrow || timeRank(to) > 0 && timeRank(e.Type) > 0 {
		return castTo(e, to, zone, expr.OpCast)
	}
	return &expr.Expr{Op: expr.OpConvert, Type: to, Args: []*expr.Expr{e}, Text: e.Text}
}

// convertLiteral gives a literal as another type that it may take; nil where the
// conversion fails, which it then does where it is computed.
func convertLiteral(e *expr.Expr, to expr.Type, zone string) *expr.Expr {
	if e.Literal == nil {
		return nullLiteral(to)
	}
	if unknown(e) {
		lit, problem := castText(e.Literal.String, to, zone)
		if problem != "" {
			return nil
		}
		return lit
	}
	switch to.Kind {
	case expr.Int, expr.BigInt:
		return intLiteral(e.Literal.Int, to)
	case expr.Decimal:
		if d := literalDecimal(e).rounded(to.Scale); d.fitsIn(to) {
			return typedDecimal(d, to)
		}
	case expr.Double:
		return doubleLiteral(literalDouble(e))
	case expr.Timestamp, expr.TimestampLTZ:
		return convertTime(e, to, zone)
	}
	return nil
}

// assignable reports whether a value of e may go into a sink's column of type to.
func assignable(e *expr.Expr, to expr.Type) bool {
	from := e.Type
	switch {
	case from.Kind == expr.Null:
		return true
	case unknown(e) && to.Kind != expr.String:
		_, problem := castText(e.Literal.String, to, "")
		return problem == ""
	case rank(from) > 0 && rank(to) > 0:
		return rank(from) < rank(to) || from.Kind == to.Kind && from.Scale <= to.Scale
	case timeRank(from) > 0 && timeRank(to) > 0:
		few := from.Precision <= to.Precision || isLiteral(e) && fractionDigits(e.Literal.Int) <= to.Precision
		return timeRank(from) <= timeRank(to) && few
	}
	return from.Kind == to.Kind
}

// notNull reports whether e is never NULL over input columns of which some are not.
func notNull(e *expr.Expr, column func(i int) bool) bool {
	all := func(list []*expr.Expr) bool {
		for _, a := range list {
			if !notNull(a, column) {
				return false
			}
		}
		return true
	}
	switch e.Op {
	case expr.OpColumn:
		return column(e.Column)
	case expr.OpLiteral:
		return e.Literal != nil
	case expr.OpIsNull, expr.OpIsNotNull, expr.OpDistinct, expr.OpNotDistinct:
		return true
	case expr.OpCase:
		for i := 1; i < len(e.Args); i += 2 {
			if !notNull(e.Args[i], column) {
				return false
			}
		}
		return notNull(e.Args[len(e.Args)-1], column)
	case expr.OpCoalesce:
		return someNotNull(e.Args, column)
	case expr.OpTryCast:
		return false
	case expr.OpCall:
		return callNotNull(e, column, all)
	}
	return all(e.Args)
}

func someNotNull(list []*expr.Expr, column func(i int) bool) bool {
	for _, a := range list {
		if notNull(a, column) {
			return true
		}
	}
	return false
}

// callNotNull reports whether a function is never NULL: some are without a NULL argument.
func callNotNull(e *expr.Expr, column func(i int) bool, all func([]*expr.Expr) bool) bool {
	switch e.Func {
	case "concat":
		return true
	case "concat_ws":
		return notNull(e.Args[0], column)
	case "greatest", "least":
		return someNotNull(e.Args, column)
	case "split_index", "regexp_extract", "json_value":
		return false
	}
	return all(e.Args)
}

// mismatch words the hint for two types that do not meet, where there is one.
func mismatch(x, y *expr.Expr) string {
	if x.Type.Kind != expr.String {
		x, y = y, x
	}
	switch {
	case rank(y.Type) > 0 && isLiteral(y) && x.Type.Kind == expr.String:
		return "write the number as a string: '" + y.SQL(nil) + "'"
	case x.Type.Kind == expr.String:
		return "say which type is meant: CAST(… AS " + y.Type.String() + ") or CAST(… AS STRING)"
	}
	for _, pair := range [][2]*expr.Expr{{x, y}, {y, x}} {
		switch a, b := pair[0].Type, pair[1].Type; {
		case a.Kind == expr.Boolean && rank(b) > 0:
			return "a BOOLEAN is a condition of its own: write x or NOT x; CAST(x AS INT) makes 0 or 1 of it"
		case timeRank(a) > 0 && rank(b) > 0:
			return "TO_TIMESTAMP_LTZ(number, 0) is a time of seconds, EXTRACT(EPOCH FROM time) its number"
		}
	}
	return ""
}

// article names an expression's type in a sentence.
func article(e *expr.Expr) string {
	if isNull(e) && e.Type.Kind == expr.Null {
		return "NULL"
	}
	return articleOf(e.Type)
}

func articleOf(t expr.Type) string {
	text := t.String()
	if strings.HasPrefix(text, "INT") { // INT, INTERVAL …
		return "an " + text
	}
	return "a " + text
}
