package planner

import (
	"strings"

	"weir/planner/civil"
	"weir/planner/expr"
	"weir/planner/sql"
)

// interval binds INTERVAL 'value' UNIT [TO UNIT].
func (s *scope) interval(e *sql.IntervalLit) *expr.Expr {
	kind, known := expr.Interval, true
	switch e.Unit {
	case "YEAR", "MONTH", "QUARTER":
		kind = expr.MonthInterval
	case "DAY", "HOUR", "MINUTE", "SECOND", "WEEK", "MILLISECOND", "MICROSECOND", "":
	default:
		known = false
	}
	if known && !intervalRange(e.Unit, e.To) {
		s.found.add(e, CodeType, "write YEAR TO MONTH, or two of DAY, HOUR, MINUTE and SECOND, the greater first", "there is no INTERVAL %s TO %s", e.Unit, e.To)
		return nil
	}
	if !known {
		s.found.add(e, CodeType, "the units are YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND", "an INTERVAL has no unit %s", e.Unit)
		return nil
	}
	months, micros, problem := civil.ParseInterval([]byte(intervalText(e)))
	text := string(problem)
	if problem == "" {
		last := e.To
		if last == "" {
			last = e.Unit
		}
		months, micros = cutInterval(last, months, micros)
		if e.Unit == "" && months != 0 {
			kind = expr.MonthInterval
		}
		var lit *expr.Expr
		if lit, text = intervalOf(kind, months, micros); text == "" {
			return lit
		}
	}
	hint := literalHint(expr.Type{Kind: kind})
	if strings.HasPrefix(text, "it holds") {
		hint = "add them one by one: ts + INTERVAL '1' MONTH + INTERVAL '2' DAY"
	}
	s.found.add(e, CodeType, hint, "%s is no interval: %s", sql.QuoteString(e.Value), text)
	return nil
}

// intervalRange reports whether an interval may go from one unit to another.
func intervalRange(unit, to string) bool {
	order := []string{"SECOND", "MINUTE", "HOUR", "DAY"}
	switch {
	case to == "":
		return true
	case unit == "YEAR":
		return to == "MONTH"
	}
	from, until := -1, -1
	for i, u := range order {
		if u == unit {
			from = i
		}
		if u == to {
			until = i
		}
	}
	return until >= 0 && until < from
}

// intervalText adds to a literal's value what its units say of it: of a bare number the
// unit, the last one of two; the hours that MINUTE TO SECOND lacks, and the minutes that
// DAY TO HOUR does.
func intervalText(e *sql.IntervalLit) string {
	value := trimSpace(e.Value)
	last := e.To
	if last == "" {
		last = e.Unit
	}
	fields := strings.Fields(value)
	switch {
	case e.Unit == "":
		return value
	case isNumber(value) && last == "QUARTER": // counted as months, three each
		return value + " month"
	case isNumber(value):
		return value + " " + strings.ToLower(last)
	case len(fields) == 2 && last == "HOUR" && isNumber(fields[0]) && isNumber(fields[1]):
		return value + ":00"
	case e.Unit == "MINUTE" && e.To == "SECOND" && strings.Count(value, ":") == 1:
		sign := value[:len(value)-len(strings.TrimLeft(value, "+-"))]
		return sign + "0:" + strings.TrimLeft(value, "+-")
	}
	return value
}

// cutInterval drops what is smaller than an interval's last unit, as PostgreSQL does.
func cutInterval(last string, months, micros int64) (int64, int64) {
	switch last {
	case "YEAR":
		return months - months%12, 0
	case "MONTH":
		return months, 0
	case "QUARTER":
		return months * 3, 0
	case "DAY":
		return months, micros - micros%civil.Day
	case "HOUR":
		return months, micros - micros%civil.Hour
	case "MINUTE":
		return months, micros - micros%civil.Minute
	}
	return months, micros
}
