package civil

import (
	"bytes"
	"fmt"
	"strings"
)

// A Pattern is a format of dates and times in Java's letters, as DATE_FORMAT and
// TO_TIMESTAMP take them:
//
//	yyyy, y  year; yy its last two digits (2000 to 2099)    MM, M  month; MMM Nov, MMMM November
//	dd, d    day of the month                               EEE, EEEE  Sat, Saturday
//	HH, H    hour 0 to 23; hh, h 1 to 12, with a            mm, m  minute    ss, s  second
//	S … SSSSSS  that many digits of the second's fraction   a  AM or PM
//
// 'text' in single quotes stands for itself, and so does all that is no letter; ” is a
// quote.
type Pattern struct {
	text  string
	parts []part
}

// A part is a field of a number of letters, or a text.
type part struct {
	letter byte // 0: text
	width  int
	text   string
}

// NewPattern reads a pattern.
func NewPattern(text string) (*Pattern, error) {
	p := &Pattern{text: text}
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\'':
			quoted, n, err := quoted(text[i:])
			if err != nil {
				return nil, err
			}
			p.literal(quoted)
			i += n
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			n := 1
			for i+n < len(text) && text[i+n] == c {
				n++
			}
			if err := checkField(c, n); err != nil {
				return nil, fmt.Errorf("pattern '%s': %w", text, err)
			}
			p.parts = append(p.parts, part{letter: c, width: n})
			i += n
		case strings.IndexByte("[]{}#", c) >= 0:
			return nil, fmt.Errorf("pattern '%s': %q is not supported: there are no optional sections; put it in single quotes to mean itself", text, c)
		default:
			p.literal(text[i : i+1])
			i++
		}
	}
	return p, nil
}

// literal appends a text that stands for itself.
func (p *Pattern) literal(text string) {
	if n := len(p.parts); n > 0 && p.parts[n-1].letter == 0 {
		p.parts[n-1].text += text
		return
	}
	p.parts = append(p.parts, part{text: text})
}

// quoted reads the text in quotes that s begins with, and its length with them.
func quoted(s string) (text string, n int, err error) {
	if strings.HasPrefix(s, "''") {
		return "'", 2, nil
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] != '\'':
		case i+1 < len(s) && s[i+1] == '\'':
			i++
		default:
			return strings.ReplaceAll(s[1:i], "''", "'"), i + 1, nil
		}
	}
	return "", 0, fmt.Errorf("pattern %s: a quote is not closed", s)
}

// checkField refuses letters that are not of a pattern, and more of them than there may be.
func checkField(letter byte, n int) error {
	most, known := map[byte]int{'y': 4, 'M': 4, 'd': 2, 'E': 4, 'H': 2, 'h': 2, 'm': 2, 's': 2, 'S': 6, 'a': 1}[letter]
	if !known {
		hint := "the letters are y M d E H h m s S a; put other text in single quotes"
		switch letter {
		case 'Y', 'u':
			hint = "write yyyy for the year"
		case 'D':
			hint = "write dd for the day of the month"
		case 'k', 'K':
			hint = "write HH or hh for the hour"
		case 'n':
			hint = "write SSSSSS for the fraction"
		}
		return fmt.Errorf("the letter %c is not supported: %s", letter, hint)
	}
	if n > most || letter == 'y' && n == 3 {
		return fmt.Errorf("%s is too long or has no meaning: write %s", strings.Repeat(string(letter), n), strings.Repeat(string(letter), most))
	}
	return nil
}

// CanParse says why texts cannot be read by the pattern, though they can be written.
func (p *Pattern) CanParse() error {
	seen := map[byte]bool{}
	for i, f := range p.parts {
		if f.letter != 0 && seen[f.letter] {
			return fmt.Errorf("pattern '%s': %c is there twice", p.text, f.letter)
		}
		seen[f.letter] = true
		variable := f.letter != 0 && f.width == 1 && f.letter != 'a' && f.letter != 'S'
		if variable && i+1 < len(p.parts) && p.parts[i+1].letter != 0 {
			return fmt.Errorf("pattern '%s': where %c ends is not clear; write it with two letters, or set it off from the next", p.text, f.letter)
		}
	}
	switch {
	case seen['h'] && !seen['a']:
		return fmt.Errorf("pattern '%s': hh needs an a (AM or PM); for 0 to 23 write HH", p.text)
	case seen['a'] && !seen['h']:
		return fmt.Errorf("pattern '%s': a needs the hour hh", p.text)
	case seen['h'] && seen['H']:
		return fmt.Errorf("pattern '%s': HH and hh exclude each other", p.text)
	}
	return nil
}

var (
	monthNames = [...]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	dayNames   = [...]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
)

// Append appends a time in the pattern.
func (p *Pattern) Append(dst []byte, micros int64) []byte {
	days, inDay := Split(micros)
	year, month, day := Date(days)
	hour := int(inDay / Hour)
	for i := range p.parts {
		switch f := &p.parts[i]; f.letter {
		case 0:
			dst = append(dst, f.text...)
		case 'y':
			if f.width == 2 {
				dst = digits(dst, year%100, 2)
			} else {
				dst = digits(dst, year, f.width)
			}
		case 'M':
			if f.width > 2 {
				dst = appendName(dst, monthNames[month-1], f.width)
			} else {
				dst = digits(dst, month, f.width)
			}
		case 'd':
			dst = digits(dst, day, f.width)
		case 'E':
			dst = appendName(dst, dayNames[Weekday(days)], f.width)
		case 'H':
			dst = digits(dst, hour, f.width)
		case 'h':
			dst = digits(dst, (hour+11)%12+1, f.width)
		case 'a':
			dst = append(dst, "AP"[hour/12], 'M')
		case 'm':
			dst = digits(dst, int(inDay/Minute%60), f.width)
		case 's':
			dst = digits(dst, int(inDay/Second%60), f.width)
		case 'S':
			unit := int64(Second)
			for range f.width {
				unit /= 10
			}
			dst = digits(dst, int(inDay%Second/unit), f.width)
		}
	}
	return dst
}

// appendName appends a name, or its first three letters.
func appendName(dst []byte, name string, width int) []byte {
	if width < 4 {
		name = name[:3]
	}
	return append(dst, name...)
}

// Parse reads a text in the pattern. What the pattern does not have is that of
// 1970-01-01 00:00:00.
func (p *Pattern) Parse(text []byte) (micros int64, problem Problem) {
	s := scanner{text: text}
	v := fields{year: 1970, month: 1, day: 1, weekday: -1}
	for i := range p.parts {
		if !s.part(&p.parts[i], &v) {
			return 0, Malformed
		}
	}
	if s.at < len(text) {
		return 0, Malformed
	}
	return v.micros()
}

// fields are what a text in a pattern says.
type fields struct {
	year, month, day, weekday     int
	hour, minute, second, micros6 int
	clock12, afternoon            bool
}

// part reads one part of a pattern.
func (s *scanner) part(f *part, v *fields) bool {
	switch {
	case f.letter == 0:
		ok := bytes.HasPrefix(s.text[s.at:], []byte(f.text))
		s.at += len(f.text)
		return ok
	case f.letter == 'a':
		index, ok := s.name([]string{"AM", "PM"}, 4)
		v.afternoon = index == 1
		return ok
	case f.letter == 'E':
		var ok bool
		v.weekday, ok = s.name(dayNames[:], f.width)
		return ok
	case f.letter == 'M' && f.width > 2:
		index, ok := s.name(monthNames[:], f.width)
		v.month = index + 1
		return ok
	}
	n, width := s.fieldDigits(f)
	if width < f.width {
		return false
	}
	v.set(f, n, width)
	return true
}

// fieldDigits reads the digits of a field, as many as its letters, or as it may have where
// it has one letter.
func (s *scanner) fieldDigits(f *part) (n, width int) {
	most := f.width
	if most == 1 && f.letter != 'S' {
		if most = 2; f.letter == 'y' {
			most = 4
		}
	}
	for ; width < most && s.peek()-'0' < 10; width++ {
		n = n*10 + int(s.peek()-'0')
		s.at++
	}
	return n, width
}

// set keeps the number of a field, which has so many digits.
func (v *fields) set(f *part, n, width int) {
	switch f.letter {
	case 'y':
		if v.year = n; f.width == 2 {
			v.year += 2000
		}
	case 'M':
		v.month = n
	case 'd':
		v.day = n
	case 'H':
		v.hour = n
	case 'h':
		v.hour, v.clock12 = n, true
	case 'm':
		v.minute = n
	case 's':
		v.second = n
	case 'S':
		for ; width < 6; width++ {
			n *= 10
		}
		v.micros6 = n
	}
}

// name reads one of some names, in any case, or with less than four letters their first three.
func (s *scanner) name(names []string, width int) (index int, ok bool) {
	for i, name := range names {
		if width < 4 {
			name = name[:3]
		}
		if rest := s.text[s.at:]; len(rest) >= len(name) && strings.EqualFold(string(rest[:len(name)]), name) {
			s.at += len(name)
			return i, true
		}
	}
	return 0, false
}

func (v *fields) micros() (int64, Problem) {
	if v.clock12 {
		if v.hour < 1 || v.hour > 12 {
			return 0, NoSuchTime
		}
		if v.hour %= 12; v.afternoon {
			v.hour += 12
		}
	}
	if v.year < 1 {
		return 0, OutOfRange
	}
	if v.month < 1 || v.month > 12 || v.day < 1 || v.day > DaysIn(v.year, v.month) || v.hour > 23 || v.minute > 59 || v.second > 59 {
		return 0, NoSuchTime
	}
	days := Days(v.year, v.month, v.day)
	if v.weekday >= 0 && v.weekday != Weekday(days) {
		return 0, NoSuchTime
	}
	return days*Day + int64(v.hour)*Hour + int64(v.minute)*Minute + int64(v.second)*Second + int64(v.micros6), ""
}
