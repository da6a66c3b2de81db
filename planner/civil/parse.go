package civil

import (
	"math"
	"strconv"
)

// A Problem says why a text has no value; empty: it has one.
type Problem string

// The problems of texts.
const (
	Malformed  Problem = "it has not that form"
	NoSuchTime Problem = "there is no such day or time"
	OutOfRange Problem = "years are 1 to 9999"
)

// A Text is a date and time that has been read. It has no more than four words, so that it is
// handed on in registers.
type Text struct {
	Days   int64 // the date as it is written
	Micros int64 // on the clock that the text is of, since 1970
	Offset int64 // how far that clock is ahead of UTC, in microseconds
	Parts  Parts
}

// Parts are what a text may have beside a date.
type Parts int

// The parts of texts.
const (
	Timed Parts = 1 << iota // a time of day
	Zoned                   // an offset
)

// Has reports whether the text has one of the parts.
func (t Text) Has(parts Parts) bool { return t.Parts&parts != 0 }

// ParseDate reads a DATE as PostgreSQL does; a time of day is passed over.
func ParseDate(text []byte) (days int64, problem Problem) {
	t, problem := Parse(text)
	return t.Days, problem
}

// ParseTimestamp reads a TIMESTAMP as PostgreSQL does, rounded to precision fractional
// digits; an offset is passed over.
func ParseTimestamp(text []byte, precision int) (micros int64, problem Problem) {
	t, problem := Parse(text)
	if problem != "" {
		return 0, problem
	}
	return ranged(Round(t.Micros, precision))
}

// ParseTimestampLTZ reads a TIMESTAMP_LTZ as PostgreSQL does, rounded to precision
// fractional digits; without an offset it is on the zone's clock.
func ParseTimestampLTZ(text []byte, precision int, zone *Zone) (micros int64, problem Problem) {
	t, problem := Parse(text)
	switch {
	case problem != "":
		return 0, problem
	case t.Has(Zoned):
		micros = t.Micros - t.Offset
	default:
		micros = zone.UTC(t.Micros)
	}
	return ranged(Round(micros, precision))
}

func ranged(micros int64) (int64, Problem) {
	if micros < MinMicros || micros > MaxMicros {
		return 0, OutOfRange
	}
	return micros, ""
}

// Parse reads a date, with or without a time of day and an offset from UTC:
//
//	2017-11-25   20171125   2017-1-5           a year of three digits or more
//	2017-11-25 01:00   2017-11-25T01:00:00.5   any number of fractional digits
//	… Z   … UTC   …+01   …-0830   …+05:30      with or without a blank
//
// Blanks around it do not count; 24:00 is the next day's begin, a second of 60 the next
// minute's. The fraction is rounded to six digits.
func Parse(text []byte) (Text, Problem) {
	if t, ok := usual(text); ok {
		return t, ""
	}
	return careful(text)
}

// careful is Parse for a text of any form.
func careful(text []byte) (t Text, problem Problem) {
	s := scanner{text: trimmed(text)}
	if problem = s.dateTime(&t); problem != "" {
		return t, problem
	}
	if s.at < len(s.text) {
		if t.Offset, problem = s.offset(); problem != "" {
			return t, problem
		}
		t.Parts |= Zoned
	}
	if t.Micros > MaxMicros {
		return t, OutOfRange
	}
	return t, ""
}

// dateTime reads a date and a time of day, if there is one.
func (s *scanner) dateTime(t *Text) (problem Problem) {
	if t.Days, problem = s.date(); problem != "" {
		return problem
	}
	t.Micros = t.Days * Day
	if c := s.peek(); (c == 'T' || c == 't' || c == ' ') && s.digitBehind() {
		inDay, problem := s.clock()
		if problem != "" {
			return problem
		}
		t.Micros += inDay
		t.Parts |= Timed
	}
	return ""
}

// A scanner reads a text from its front.
type scanner struct {
	text []byte
	at   int
}

func trimmed(b []byte) []byte {
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && blank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func blank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// peek returns the next byte; 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// take passes over c, if it is next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// number reads digits: their value, which saturates, and how many there were.
func (s *scanner) number() (n, width int) {
	from := s.at
	for s.at < len(s.text) && s.text[s.at]-'0' < 10 {
		n = min(n*10+int(s.text[s.at]-'0'), 1e9)
		s.at++
	}
	return n, s.at - from
}

// digitBehind passes over a T or blanks, if a digit follows.
func (s *scanner) digitBehind() bool {
	p := s.at + 1
	for p < len(s.text) && blank(s.text[p]) {
		p++
	}
	if p == len(s.text) || s.text[p]-'0' >= 10 {
		return false
	}
	s.at = p
	return true
}

func (s *scanner) date() (days int64, problem Problem) {
	year, width := s.number()
	var month, day int
	switch {
	case width == 8 && s.peek() != '-':
		year, month, day = year/10000, year/100%100, year%100
	case width < 3 || !s.take('-'):
		return 0, Malformed
	default:
		var monthWidth, dayWidth int
		month, monthWidth = s.number()
		if !s.take('-') {
			return 0, Malformed
		}
		day, dayWidth = s.number()
		if monthWidth < 1 || monthWidth > 2 || dayWidth < 1 || dayWidth > 2 {
			return 0, Malformed
		}
	}
	if month < 1 || month > 12 || day < 1 || day > 28 && day > DaysIn(year, month) {
		return 0, NoSuchTime
	}
	if year < 1 || year > 9999 {
		return 0, OutOfRange
	}
	return Days(year, month, day), ""
}

// clock reads a time of day.
func (s *scanner) clock() (micros int64, problem Problem) {
	hour, w1 := s.number()
	if w1 > 2 || !s.take(':') {
		return 0, Malformed
	}
	minute, w2 := s.number()
	if w2 < 1 || w2 > 2 {
		return 0, Malformed
	}
	second, fraction := 0, int64(0)
	if s.take(':') {
		var w3 int
		if second, w3 = s.number(); w3 < 1 || w3 > 2 {
			return 0, Malformed
		}
		if s.take('.') {
			fraction = s.fraction()
		}
	}
	micros = int64(hour)*Hour + int64(minute)*Minute + int64(second)*Second + fraction
	if minute > 59 || second > 60 || micros > Day {
		return 0, NoSuchTime
	}
	return micros, ""
}

// fraction reads the digits behind a point, in microseconds. More than six are
// rounded as PostgreSQL does it, by way of a double.
func (s *scanner) fraction() int64 {
	from := s.at
	n, width := s.number()
	if width > 6 && width <= 9 { // both exact: one rounding, as ParseFloat has it
		unit := 10_000_000
		for range width - 7 {
			unit *= 10
		}
		return int64(math.RoundToEven(float64(n) / float64(unit) * Second))
	}
	if width > 6 {
		f, _ := strconv.ParseFloat(string(s.text[from-1:s.at]), 64)
		return int64(math.RoundToEven(f * Second))
	}
	for ; width < 6; width++ {
		n *= 10
	}
	return int64(n)
}

// offset reads the distance of a clock from UTC.
func (s *scanner) offset() (micros int64, problem Problem) {
	for blank(s.peek()) {
		s.at++
	}
	switch rest := s.text[s.at:]; {
	case len(rest) == 1 && rest[0]|0x20 == 'z',
		len(rest) == 3 && rest[0]|0x20 == 'u' && rest[1]|0x20 == 't' && rest[2]|0x20 == 'c':
		return 0, ""
	}
	negative := s.peek() == '-'
	if !negative && s.peek() != '+' {
		return 0, Malformed
	}
	s.at++
	hour, minute, second, problem := s.offsetClock()
	switch {
	case problem != "":
		return 0, problem
	case s.at < len(s.text):
		return 0, Malformed
	case hour > 15 || minute > 59 || second > 59:
		return 0, NoSuchTime
	}
	micros = int64(hour)*Hour + int64(minute)*Minute + int64(second)*Second
	if negative {
		micros = -micros
	}
	return micros, ""
}

// offsetClock reads the hours, minutes and seconds of an offset: "02", "0230", "02:30:15".
func (s *scanner) offsetClock() (hour, minute, second int, problem Problem) {
	hour, width := s.number()
	switch {
	case width == 4:
		hour, minute = hour/100, hour%100
	case width < 1 || width > 2:
		return 0, 0, 0, Malformed
	case s.take(':'):
		if minute, width = s.number(); width != 2 {
			return 0, 0, 0, Malformed
		}
		if s.take(':') {
			if second, width = s.number(); width != 2 {
				return 0, 0, 0, Malformed
			}
		}
	}
	return hour, minute, second, ""
}
