package eval

import (
	"fmt"

	"weir/planner/civil"
	"weir/planner/expr"
)

// A span is a unit to which times are cut: a number of months, of days, or a part of a
// day.
type span struct {
	months int
	days   int64 // 7: weeks, which begin on Monday
	micros int64
}

func spanOf(unit string) (span, bool) {
	s, ok := map[string]span{
		"MICROSECOND": {micros: 1}, "MILLISECOND": {micros: civil.Millisecond}, "SECOND": {micros: civil.Second},
		"MINUTE": {micros: civil.Minute}, "HOUR": {micros: civil.Hour}, "DAY": {days: 1}, "WEEK": {days: 7}, "MONTH": {months: 1},
		"QUARTER": {months: 3}, "YEAR": {months: 12}, "DECADE": {months: 120}, "CENTURY": {months: 1200}, "MILLENNIUM": {months: 12000},
	}[unit]
	return s, ok
}

// floorDay cuts a day to the span, which is one of days or months. Decades begin with
// the years that end in 0, centuries and millennia with those that end in 1.
func (s span) floorDay(days int64) int64 {
	switch s.days {
	case 7:
		return civil.Monday(days)
	case 1:
		return days
	}
	year, month, _ := civil.Date(days)
	switch s.months {
	case 1:
		return civil.Days(year, month, 1)
	case 3:
		return civil.Days(year, (month-1)/3*3+1, 1)
	case 12:
		return civil.Days(year, 1, 1)
	case 120:
		return civil.Days(year/10*10, 1, 1)
	}
	years := s.months / 12
	return civil.Days((year-1)/years*years+1, 1, 1)
}

// next returns the day on which the span after that of a first day begins.
func (s span) next(first int64) int64 {
	if s.days > 0 {
		return first + s.days
	}
	year, month, _ := civil.Date(first)
	month += s.months - 1
	return civil.Days(year+month/12, month%12+1, 1)
}

// compileTrunc makes DATE_TRUNC, FLOOR(… TO …) and CEIL(… TO …).
func compileTrunc(e *expr.Expr, args []node, _ Env) (node, error) {
	if len(args) != 2 || e.Type.Kind != e.Args[1].Type.Kind {
		return nil, fmt.Errorf("%s of %d operands giving %v", e.Func, len(args), e.Type)
	}
	unit, err := constantUnit(e.Args[0])
	if err != nil {
		return nil, err
	}
	s, ok := spanOf(unit)
	from := e.Args[1].Type
	if !ok || from.Kind == expr.Date && s.micros > 0 {
		return nil, fmt.Errorf("%s of a %v to %s", e.Func, from, unit)
	}
	zone, err := zoneOf(e, from)
	if err != nil {
		return nil, err
	}
	f := truncTime(s, zone, e.Func == "ceil_to")
	switch from.Kind {
	case expr.Date:
		f = truncDate(s, e.Func == "ceil_to")
	case expr.Timestamp, expr.TimestampLTZ:
	default:
		return nil, fmt.Errorf("%s of a %v to %s", e.Func, from, unit)
	}
	return newCall(e, args[1:], ofIntegers(f)), nil
}

// truncDate cuts days to the span, or brings them to the next one.
func truncDate(s span, ceil bool) func(days int64) (int64, verdict) {
	return func(days int64) (int64, verdict) {
		first := s.floorDay(days)
		if ceil && first != days {
			first = s.next(first)
		}
		return day(first)
	}
}

// truncTime does it for times, on the zone's clock.
func truncTime(s span, zone *civil.Zone, ceil bool) func(micros int64) (int64, verdict) {
	if s.micros > 0 {
		return func(micros int64) (int64, verdict) {
			local := zone.Local(micros)
			rest := local - civil.FloorDiv(local, s.micros)*s.micros
			if rest != 0 && ceil {
				rest -= s.micros
			}
			return moment(micros - rest)
		}
	}
	return func(micros int64) (int64, verdict) {
		days, inDay := civil.Split(zone.Local(micros))
		first := s.floorDay(days)
		if ceil && (first != days || inDay != 0) {
			first = s.next(first)
		}
		return moment(zone.UTC(first * civil.Day))
	}
}
