package eval

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// maxJSONDepth is how deep values may nest.
const maxJSONDepth = 512

// A jsonScan passes over JSON and says whether it is well-formed.
type jsonScan struct {
	data []byte
	at   int
}

// peek returns the next byte; 0 at the end.
func (s *jsonScan) peek() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

func (s *jsonScan) space() {
	for s.at < len(s.data) && s.data[s.at] <= ' ' {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// closes takes the closing bracket of an empty value.
func (s *jsonScan) closes(bracket byte) bool {
	if s.space(); s.peek() != bracket {
		return false
	}
	s.at++
	return true
}

// next takes what follows an element: a comma, or the closing bracket.
func (s *jsonScan) next(bracket byte) (more, ok bool) {
	s.space()
	c := s.peek()
	s.at++
	if c == ',' {
		s.space()
		return true, true
	}
	return false, c == bracket
}

// name takes a field's name and the colon behind it.
func (s *jsonScan) name() (name []byte, ok bool) {
	from := s.at + 1
	if !s.text() {
		return nil, false
	}
	name = s.data[from : s.at-1]
	if s.space(); s.peek() != ':' {
		return nil, false
	}
	s.at++
	s.space()
	return name, true
}

// skip takes a value.
func (s *jsonScan) skip(depth int) bool {
	switch c := s.peek(); c {
	case '"':
		return s.text()
	case '{', '[':
		return s.many(depth+1, c)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *jsonScan) word(w string) bool {
	if !bytes.HasPrefix(s.data[s.at:], []byte(w)) {
		return false
	}
	s.at += len(w)
	return true
}

// many takes an object or an array.
func (s *jsonScan) many(depth int, open byte) bool {
	bracket := open + 2
	if depth > maxJSONDepth {
		return false
	}
	if s.at++; s.closes(bracket) {
		return true
	}
	for {
		if open == '{' {
			if _, ok := s.name(); !ok {
				return false
			}
		}
		if !s.skip(depth) {
			return false
		}
		if more, ok := s.next(bracket); !more {
			return ok
		}
	}
}

// text takes a text in quotes.
func (s *jsonScan) text() bool {
	if s.peek() != '"' {
		return false
	}
	data := s.data
	for i := s.at + 1; i < len(data); {
		if i+8 <= len(data) {
			special := specials(binary.LittleEndian.Uint64(data[i:]))
			if special == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(special) >> 3
		}
		switch c := data[i]; {
		case c == '"':
			s.at = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			n := jsonEscape(data[i:])
			if n == 0 {
				return false
			}
			i += n
		default:
			i++
		}
	}
	return false
}

// specials has the top bit set of the first of 8 bytes that is a quote, a backslash or a
// control character; bits above it mean nothing.
func specials(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (w-ones*' ')&^w) & highs
}

// jsonEscape returns the length of the escape that text begins with, of both where one
// character takes two; 0: it is none. Half a surrogate pair is no character.
func jsonEscape(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		unit, ok := jsonUnit(text)
		switch {
		case !ok:
			return 0
		case !utf16.IsSurrogate(unit):
			return 6
		}
		low, _ := jsonUnit(text[6:])
		if utf16.DecodeRune(unit, low) != utf8.RuneError {
			return 12
		}
	}
	return 0
}

// jsonUnit reads \u and four hexadecimal digits.
func jsonUnit(text []byte) (unit rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		d := hexDigit(c)
		if d < 0 {
			return 0, false
		}
		unit = unit<<4 | rune(d)
	}
	return unit, true
}

func (s *jsonScan) number() bool {
	if s.peek() == '-' {
		s.at++
	}
	first := s.peek()
	if n := s.digits(); n == 0 || n > 1 && first == '0' {
		return false
	}
	if s.peek() == '.' {
		if s.at++; s.digits() == 0 {
			return false
		}
	}
	if s.peek()|0x20 != 'e' {
		return true
	}
	s.at++
	if c := s.peek(); c == '+' || c == '-' {
		s.at++
	}
	return s.digits() > 0
}

func (s *jsonScan) digits() int {
	from := s.at
	for s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at - from
}

// appendJSONText appends what stands between the quotes of a well-formed text.
func appendJSONText(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:i]...)
		text = text[i:]
		unit, ok := jsonUnit(text)
		if !ok {
			dst, text = append(dst, jsonUnescaped(text[1])), text[2:]
			continue
		}
		text = text[6:]
		if utf16.IsSurrogate(unit) {
			low, _ := jsonUnit(text)
			unit, text = utf16.DecodeRune(unit, low), text[6:]
		}
		dst = utf8.AppendRune(dst, unit)
	}
}

func jsonUnescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// appendJSONNumber appends a well-formed number as PostgreSQL keeps it: without an
// exponent, and zero without a sign. ok is false where it has too many digits for that.
func appendJSONNumber(dst, token []byte) ([]byte, bool) {
	n, _ := splitNumeral(token)
	point, places := len(n.whole)+n.exponent, max(len(n.fraction)-n.exponent, 0)
	if point > maxDigits || places > maxPlaces {
		return dst, false
	}
	if n.negative && len(bytes.Trim(n.whole, "0"))+len(bytes.Trim(n.fraction, "0")) > 0 {
		dst = append(dst, '-')
	}
	leading := true
	for i := range point {
		if c := n.digit(i); c != '0' || !leading {
			dst, leading = append(dst, c), false
		}
	}
	if leading {
		dst = append(dst, '0')
	}
	if places > 0 {
		dst = append(dst, '.')
		for i := range places {
			dst = append(dst, n.digit(point+i))
		}
	}
	return dst, true
}

// digit returns a digit, counted from the first that is written; all others are 0.
func (n *numeral) digit(i int) byte {
	switch {
	case i < 0 || i >= len(n.whole)+len(n.fraction):
		return '0'
	case i < len(n.whole):
		return n.whole[i]
	}
	return n.fraction[i-len(n.whole)]
}

// The limits of PostgreSQL's numeric before and behind the point.
const (
	maxDigits = 131072
	maxPlaces = 16383
)
