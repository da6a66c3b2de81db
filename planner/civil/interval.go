package civil

import (
	"math"
	"strconv"
)

// The further problems of intervals.
const (
	NoInterval       Problem = "it is not like \"1 day 02:03:04.5\" or \"1 year 2 mons\""
	IntervalOverflow Problem = "it is out of range"
)

// An amount is what one unit of an interval stands for.
type amount struct {
	months, micros int64
}

// unitOf knows PostgreSQL's names of units, in lower case.
func unitOf(name string) (amount, bool) {
	switch name {
	case "us", "usec", "usecs", "usecond", "useconds", "microsecond", "microseconds", "microsec", "microsecs":
		return amount{micros: 1}, true
	case "ms", "msec", "msecs", "msecond", "mseconds", "millisecond", "milliseconds", "millisecon", "millisec", "millisecs":
		return amount{micros: Millisecond}, true
	case "", "s", "sec", "secs", "second", "seconds":
		return amount{micros: Second}, true
	case "m", "min", "mins", "minute", "minutes":
		return amount{micros: Minute}, true
	case "h", "hr", "hrs", "hour", "hours":
		return amount{micros: Hour}, true
	case "d", "day", "days":
		return amount{micros: Day}, true
	case "w", "week", "weeks":
		return amount{micros: 7 * Day}, true
	case "mon", "mons", "month", "months":
		return amount{months: 1}, true
	case "y", "yr", "yrs", "year", "years":
		return amount{months: 12}, true
	case "dec", "decs", "decade", "decades":
		return amount{months: 120}, true
	case "c", "cent", "century", "centuries":
		return amount{months: 1200}, true
	case "mil", "mils", "millennium", "millennia":
		return amount{months: 12000}, true
	}
	return amount{}, false
}

// An interval is a sum of amounts.
type interval struct {
	months, micros int64
	overflow       bool
	seen           [16]amount // those that were there already
	n              int
}

// once reports whether a unit was not there before.
func (v *interval) once(a amount) bool {
	if v.n == len(v.seen) {
		return false
	}
	for _, b := range v.seen[:v.n] {
		if a == b {
			return false
		}
	}
	v.seen[v.n] = a
	v.n++
	return true
}

func (v *interval) add(a amount, whole int64, fraction float64) {
	v.months = v.sum(v.months, a.months, whole)
	v.micros = v.sum(v.micros, a.micros, whole)
	if fraction != 0 {
		v.months = v.sum(v.months, 1, int64(math.RoundToEven(fraction*float64(a.months))))
		v.micros = v.sum(v.micros, 1, int64(math.RoundToEven(fraction*float64(a.micros))))
	}
}

// sum returns total + unit × n.
func (v *interval) sum(total, unit, n int64) int64 {
	product := unit * n
	if n != 0 && (product/n != unit || n == -1 && unit == math.MinInt64) {
		v.overflow = true
	}
	sum := total + product
	if (total^sum)&(product^sum) < 0 {
		v.overflow = true
	}
	return sum
}

// ParseInterval reads an interval in the forms that PostgreSQL prints and reads: "1
// day 02:03:04.5", "2 hours 30 mins", "1 year 2 mons", "1-2", "1 week ago", "P1DT2H".
// It is the sum of months and microseconds; a day is 24 hours.
func ParseInterval(text []byte) (months, micros int64, problem Problem) {
	s := scanner{text: trimmed(text)}
	var v interval
	if c := s.peek(); c == 'P' {
		problem = s.isoInterval(&v)
	} else {
		problem = s.interval(&v)
	}
	if problem == "" && (v.overflow || v.months != int64(int32(v.months))) {
		problem = IntervalOverflow
	}
	return v.months, v.micros, problem
}

// interval reads fields, each a number with a unit or a time, and "ago".
func (s *scanner) interval(v *interval) Problem {
	if s.at == len(s.text) {
		return NoInterval
	}
	bare := false // the last field had no unit
	for s.at < len(s.text) {
		if blank(s.peek()) {
			s.at++
			continue
		}
		if s.word() == "ago" {
			s.at += len("ago")
			if v.months == math.MinInt64 || v.micros == math.MinInt64 || s.at < len(s.text) {
				return NoInterval
			}
			v.months, v.micros = -v.months, -v.micros
			return ""
		}
		if bare && !s.clockAhead() {
			return NoInterval
		}
		var problem Problem
		if bare, problem = s.intervalField(v); problem != "" {
			return problem
		}
	}
	return ""
}

// clockAhead reports whether hours and minutes come next.
func (s *scanner) clockAhead() bool {
	for _, c := range s.text[s.at:] {
		if c == ':' {
			return true
		}
		if c-'0' >= 10 && c != '+' && c != '-' {
			return false
		}
	}
	return false
}

// intervalField reads one field; bare: it is a number of days without a unit, in front
// of a time.
func (s *scanner) intervalField(v *interval) (bare bool, problem Problem) {
	sign := s.sign()
	from := s.at
	whole, width := s.number()
	switch {
	case s.peek() == ':' && width > 0:
		s.at = from
		return false, s.intervalClock(v, sign)
	case s.peek() == '-' && width > 0:
		s.at++
		month, w := s.number()
		if w == 0 || month > 11 || s.word() != "" {
			return false, NoInterval
		}
		v.add(amount{months: 1}, sign*(int64(whole)*12+int64(month)), 0)
		return false, ""
	}
	fraction, ok := s.decimals(width)
	if !ok || whole >= 1e9 {
		return false, NoInterval
	}
	for blank(s.peek()) {
		s.at++
	}
	name := s.word()
	s.at += len(name)
	unit, ok := unitOf(name)
	if !ok || name == "ago" {
		return false, NoInterval
	}
	if name == "" && s.at < len(s.text) { // as in 1 02:03:04
		if !s.clockAhead() || fraction != 0 {
			return false, NoInterval
		}
		unit, bare = amount{micros: Day}, true
	}
	if !v.once(unit) {
		return false, NoInterval
	}
	v.add(unit, sign*int64(whole), float64(sign)*fraction)
	return bare, ""
}

func (s *scanner) sign() int64 {
	if s.take('-') {
		return -1
	}
	s.take('+')
	return 1
}

// decimals reads the digits behind a point, if there is one; there must be some, or
// digits before it.
func (s *scanner) decimals(width int) (fraction float64, ok bool) {
	from := s.at
	if !s.take('.') {
		return 0, width > 0
	}
	if _, w := s.number(); w == 0 {
		return 0, width > 0
	}
	fraction, _ = strconv.ParseFloat(string(s.text[from:s.at]), 64)
	return fraction, true
}

// word returns the letters that come next, in lower case.
func (s *scanner) word() string {
	var name [16]byte
	n := 0
	for s.at+n < len(s.text) && s.text[s.at+n]|0x20 >= 'a' && s.text[s.at+n]|0x20 <= 'z' && n < len(name) {
		name[n] = s.text[s.at+n] | 0x20
		n++
	}
	return string(name[:n])
}

// intervalClock reads hours, minutes, seconds: "02:03", "02:03:04.5", "100:00:00".
func (s *scanner) intervalClock(v *interval, sign int64) Problem {
	hours, _ := s.number()
	s.at++
	minutes, w := s.number()
	if w < 1 || w > 2 || hours >= 1e9 {
		return NoInterval
	}
	seconds, fraction := 0, int64(0)
	if s.take(':') {
		if seconds, w = s.number(); w < 1 || w > 2 {
			return NoInterval
		}
		if s.take('.') {
			fraction = s.fraction()
		}
	}
	if s.at < len(s.text) && !blank(s.peek()) {
		return NoInterval
	}
	if minutes > 59 || seconds > 60 {
		return IntervalOverflow
	}
	for _, unit := range [...]int64{Hour, Minute, Second} {
		if !v.once(amount{micros: unit}) {
			return NoInterval
		}
	}
	v.add(amount{micros: Hour}, sign*int64(hours), 0)
	v.add(amount{micros: 1}, sign*(int64(minutes)*Minute+int64(seconds)*Second+fraction), 0)
	return ""
}

// isoInterval reads the form of ISO 8601: "P1Y2M3DT4H5M6.7S".
func (s *scanner) isoInterval(v *interval) Problem {
	s.at++
	clock := false
	for s.at < len(s.text) {
		if !clock && s.take('T') {
			clock = true
			continue
		}
		sign := s.sign()
		whole, width := s.number()
		fraction, ok := s.decimals(width)
		if !ok || whole >= 1e9 {
			return NoInterval
		}
		unit, ok := isoUnit(s.peek(), clock)
		if !ok {
			return NoInterval
		}
		s.at++
		v.add(unit, sign*int64(whole), float64(sign)*fraction)
	}
	if s.at < 3 {
		return NoInterval
	}
	return ""
}

func isoUnit(c byte, clock bool) (amount, bool) {
	switch {
	case clock && c == 'H':
		return amount{micros: Hour}, true
	case clock && c == 'M':
		return amount{micros: Minute}, true
	case clock && c == 'S':
		return amount{micros: Second}, true
	case clock:
		return amount{}, false
	case c == 'Y':
		return amount{months: 12}, true
	case c == 'M':
		return amount{months: 1}, true
	case c == 'W':
		return amount{micros: 7 * Day}, true
	case c == 'D':
		return amount{micros: Day}, true
	}
	return amount{}, false
}
