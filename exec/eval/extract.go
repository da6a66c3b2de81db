package eval

import (
	"fmt"

	"weir/exec/batch"
	"weir/planner/civil"
	"weir/planner/expr"
)

// compileField makes EXTRACT: of a date or time a field on the zone's clock, of an
// interval one of its days, hours, minutes and seconds.
func compileField(e *expr.Expr, args []node, _ Env) (node, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("%s of %d operands", e.Func, len(args))
	}
	unit, err := constantUnit(e.Args[0])
	if err != nil {
		return nil, err
	}
	from := e.Args[1].Type
	zone, err := zoneOf(e, from)
	if err != nil {
		return nil, err
	}
	fraction := unit == "SECOND" || unit == "EPOCH" || unit == "MILLISECOND"
	if want := map[bool]expr.Kind{true: expr.Decimal, false: expr.BigInt}[fraction]; e.Type.Kind != want {
		return nil, fmt.Errorf("%s of %s giving %v", e.Func, unit, e.Type)
	}
	field := fieldOf(unit, from.Kind, zone)
	if field == nil {
		return nil, fmt.Errorf("%s of %s from a %v", e.Func, unit, from)
	}
	args = args[1:]
	if !fraction {
		return newCall(e, args, ofIntegers(func(x int64) (int64, verdict) { return field(x), "" })), nil
	}
	exponent := e.Type.Scale - 6
	if unit == "MILLISECOND" { // field is in microseconds
		exponent = e.Type.Scale - 3
	}
	if exponent < 0 {
		return nil, fmt.Errorf("%s of %s giving %v", e.Func, unit, e.Type)
	}
	scale := batch.Pow10(exponent)
	return newCall(e, args, func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		in, overflow := args[0].Ints, overflowOf(e.Type)
		return fill(out, out.Decimals, rows, func(row int) (batch.Int128, verdict) {
			x, ok := scale.MulInt64(field(in[row]))
			if !ok {
				return x, overflow
			}
			return x, ""
		})
	}), nil
}

// fieldOf returns the function that takes a field out of a value; that of SECOND,
// MILLISECOND and EPOCH is in microseconds. nil: the type has no such field.
func fieldOf(unit string, kind expr.Kind, zone *civil.Zone) func(x int64) int64 {
	switch kind {
	case expr.Interval:
		return intervalField(unit)
	case expr.Date:
		if f := dateField(unit); f != nil {
			return f
		}
		if unit == "EPOCH" {
			return func(days int64) int64 { return days * civil.Day }
		}
		return nil
	case expr.Timestamp, expr.TimestampLTZ:
		if unit == "EPOCH" {
			return func(micros int64) int64 { return micros }
		}
		if f := clockField(unit); f != nil {
			return func(micros int64) int64 {
				_, inDay := civil.Split(zone.Local(micros))
				return f(inDay)
			}
		}
		if f := dateField(unit); f != nil {
			return func(micros int64) int64 {
				days, _ := civil.Split(zone.Local(micros))
				return f(days)
			}
		}
	}
	return nil
}

// clockField returns the function that takes a field out of a time of day.
func clockField(unit string) func(inDay int64) int64 {
	switch unit {
	case "HOUR":
		return func(t int64) int64 { return t / civil.Hour }
	case "MINUTE":
		return func(t int64) int64 { return t / civil.Minute % 60 }
	case "SECOND", "MILLISECOND", "MICROSECOND":
		return func(t int64) int64 { return t % civil.Minute }
	}
	return nil
}

// dateField returns the function that takes a field out of a date.
func dateField(unit string) func(days int64) int64 {
	switch unit {
	case "DOW":
		return func(days int64) int64 { return int64(civil.Weekday(days)) }
	case "ISODOW":
		return func(days int64) int64 { return int64(civil.Weekday(days)+6)%7 + 1 }
	case "DOY":
		return func(days int64) int64 {
			year, _, _ := civil.Date(days)
			return days - civil.Days(year, 1, 1) + 1
		}
	case "WEEK":
		return func(days int64) int64 {
			_, week := civil.Week(days)
			return int64(week)
		}
	case "ISOYEAR":
		return func(days int64) int64 {
			year, _ := civil.Week(days)
			return int64(counted(year))
		}
	}
	var part func(year, month, day int) int
	switch unit {
	case "DAY":
		part = func(_, _, day int) int { return day }
	case "MONTH":
		part = func(_, month, _ int) int { return month }
	case "QUARTER":
		part = func(_, month, _ int) int { return (month + 2) / 3 }
	case "YEAR":
		part = func(year, _, _ int) int { return counted(year) }
	case "DECADE":
		part = func(year, _, _ int) int { return year / 10 }
	case "CENTURY":
		part = func(year, _, _ int) int { return counted((year + 99) / 100) }
	case "MILLENNIUM":
		part = func(year, _, _ int) int { return counted((year + 999) / 1000) }
	default:
		return nil
	}
	return func(days int64) int64 { return int64(part(civil.Date(days))) }
}

// counted numbers a year, century or millennium: before the first one comes -1. (A
// zone's clock may show the year before 1.)
func counted(n int) int {
	if n < 1 {
		n--
	}
	return n
}

// intervalField takes a field out of an interval, all of which have its sign.
func intervalField(unit string) func(micros int64) int64 {
	switch unit {
	case "EPOCH":
		return func(t int64) int64 { return t }
	case "DAY":
		return func(t int64) int64 { return t / civil.Day }
	case "HOUR":
		return func(t int64) int64 { return t % civil.Day / civil.Hour }
	case "MINUTE":
		return func(t int64) int64 { return t % civil.Hour / civil.Minute }
	case "SECOND", "MILLISECOND", "MICROSECOND":
		return func(t int64) int64 { return t % civil.Minute }
	case "MONTH", "YEAR", "DECADE", "CENTURY", "MILLENNIUM":
		return func(int64) int64 { return 0 }
	case "QUARTER":
		return func(int64) int64 { return 1 }
	}
	return nil
}
