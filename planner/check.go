package planner

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"weir/planner/civil"
	"weir/planner/expr"
	"weir/planner/sql"
)

// checkCall checks the constant arguments of a call, so that a wrong unit, pattern or
// path is told when the query is planned; units are brought to their one spelling.
func (s *scope) checkCall(f *expr.Function, nodes []sql.Expr, args []*expr.Expr) bool {
	text := func(i int) (string, bool) {
		a := fold(args[i])
		if !unknown(a) {
			return "", false
		}
		return a.Literal.String, true
	}
	switch f.Name {
	case "extract", "date_trunc", "floor_to", "ceil_to":
		return s.checkUnit(f, nodes[0], args)
	case "like", "ilike":
		return s.checkLike(nodes, text)
	case "regexp_extract", "regexp_replace":
		if p, ok := text(1); ok {
			return s.checkRegexp(nodes, args, p)
		}
	case "json_value":
		if p, ok := text(1); ok {
			if _, err := expr.ParsePath(p); err != nil {
				s.found.add(nodes[1], CodeType, "", "%v", err)
				return false
			}
		}
	case "date_format", "to_timestamp":
		if len(args) > 1 {
			if p, ok := text(1); ok {
				return s.checkPattern(f, nodes[1], p)
			}
		}
	case "to_timestamp_ltz", "round", "truncate":
		return len(args) < 2 || s.checkDigits(f, nodes[1], args[1].Literal.Int)
	}
	return true
}

// checkDigits checks a constant that says how many digits there are.
func (s *scope) checkDigits(f *expr.Function, at sql.Node, n int64) bool {
	switch {
	case f.Name == "to_timestamp_ltz" && n != 0 && n != 3 && n != 6:
		s.found.add(at, CodeType, "0 reads seconds, 3 milliseconds, 6 microseconds", "TO_TIMESTAMP_LTZ has no precision %d", n)
		return false
	case n < -maxDigits || n > maxDigits:
		s.found.add(at, CodeType, "", "a DECIMAL has 38 digits, and this asks for %d", n)
		return false
	}
	return true
}

func (s *scope) checkPattern(f *expr.Function, at sql.Node, pattern string) bool {
	p, err := civil.NewPattern(pattern)
	if err == nil && f.Name == "to_timestamp" {
		err = p.CanParse()
	}
	if err != nil {
		s.found.add(at, CodeType, "yyyy-MM-dd HH:mm:ss.SSS is a pattern", "%v", err)
		return false
	}
	return true
}

func (s *scope) checkLike(nodes []sql.Expr, text func(int) (string, bool)) bool {
	escape, constant := text(2)
	if !constant {
		return true
	}
	pattern, ok := text(1)
	at := nodes[1]
	if !ok || expr.CheckLike("", escape) != nil {
		pattern, at = "", nodes[2]
	}
	if err := expr.CheckLike(pattern, escape); err != nil {
		s.found.add(at, CodeType, "", "%v", err)
		return false
	}
	return true
}

func (s *scope) checkRegexp(nodes []sql.Expr, args []*expr.Expr, pattern string) bool {
	re, err := regexp.Compile(pattern)
	if err != nil {
		hint, reason := "the syntax is RE2's", err.Error()
		if e := (*syntax.Error)(nil); errors.As(err, &e) {
			reason = e.Code.String() + ": " + e.Expr
			if e.Code == syntax.ErrInvalidPerlOp {
				hint = "the syntax is RE2's, which looks neither ahead nor behind"
			}
		}
		s.found.add(nodes[1], CodeType, hint, "%s is no regular expression: %s", sql.QuoteString(pattern), reason)
		return false
	}
	if n := fold(args[2]); n.Type.Kind == expr.Int && isLiteral(n) && !isNull(n) && (n.Literal.Int < 0 || n.Literal.Int > int64(re.NumSubexp())) {
		s.found.add(nodes[2], CodeType, "0 is the whole match, 1 what the first parentheses match", "%s has no group %d", sql.QuoteString(pattern), n.Literal.Int)
		return false
	}
	return true
}

// Units that a type does not have: a DATE no time of day, an INTERVAL no calendar, and
// nothing can be cut to what is no length.
var (
	clockUnits    = []string{"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR"}
	calendarUnits = []string{"WEEK", "DOW", "ISODOW", "DOY", "ISOYEAR"}
	fieldUnits    = []string{"EPOCH", "DOW", "ISODOW", "DOY", "ISOYEAR"}
)

// checkUnit brings the unit of EXTRACT, DATE_TRUNC, FLOOR and CEIL to its one spelling.
func (s *scope) checkUnit(f *expr.Function, at sql.Node, args []*expr.Expr) bool {
	written := args[0].Literal.String
	unit, ok := unitOf(written)
	without := map[expr.Kind][]string{expr.Date: clockUnits, expr.Interval: calendarUnits}[args[1].Type.Kind]
	if f.Name != "extract" {
		without = append(slices.Clone(without), fieldUnits...)
	}
	units := slices.DeleteFunc(expr.Units(), func(u string) bool { return slices.Contains(without, u) })
	if !ok || !slices.Contains(units, unit) {
		what := "a " + kindText(args[1].Type)
		if args[1].Type.Kind == expr.Interval {
			what = "an INTERVAL"
		}
		s.found.add(at, CodeType, hints(suggestion(written, units), "the units are "+strings.Join(units, ", ")), "%s of %s knows no unit %s", f.SQL, what, strings.ToUpper(written))
		return false
	}
	args[0] = stringLiteral(unit)
	return true
}

func kindText(t expr.Type) string {
	name, _, _ := strings.Cut(t.String(), "(")
	return name
}

// unitOf knows the spellings of units that PostgreSQL does.
func unitOf(word string) (unit string, ok bool) {
	u := strings.ToUpper(trimSpace(word))
	short := map[string]string{
		"US": "MICROSECOND", "USEC": "MICROSECOND", "USECS": "MICROSECOND", "USECOND": "MICROSECOND", "USECONDS": "MICROSECOND",
		"MS": "MILLISECOND", "MSEC": "MILLISECOND", "MSECS": "MILLISECOND", "MSECOND": "MILLISECOND", "MSECONDS": "MILLISECOND",
		"S": "SECOND", "SEC": "SECOND", "SECS": "SECOND", "M": "MINUTE", "MIN": "MINUTE", "MINS": "MINUTE", "H": "HOUR", "HR": "HOUR", "HRS": "HOUR",
		"D": "DAY", "W": "WEEK", "MON": "MONTH", "MONS": "MONTH", "Q": "QUARTER", "QTR": "QUARTER", "Y": "YEAR", "YR": "YEAR", "YRS": "YEAR",
		"DEC": "DECADE", "DECS": "DECADE", "C": "CENTURY", "CENT": "CENTURY", "CENTURIES": "CENTURY", "MIL": "MILLENNIUM", "MILS": "MILLENNIUM", "MILLENNIA": "MILLENNIUM",
		"DAYOFWEEK": "DOW", "DAYOFYEAR": "DOY",
	}
	if full := short[u]; full != "" {
		return full, true
	}
	for _, name := range expr.Units() {
		if u == name || u == name+"S" {
			return name, true
		}
	}
	return "", false
}
