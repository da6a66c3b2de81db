package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	csvFields   = 5
	csvBehavior = 3 // its field; the user is the first
)

// csvLines counts lines that it validates as Weir does: each has the right number of
// fields and well-formed quotes, and the field that is counted is of its type, in range, and
// valid UTF-8. Fields without a quote are passed over eight bytes at a time; lines with one,
// or with anything else that is rare, go to encoding/csv. A line feed within quotes is an error here.
type csvLines struct {
	*tally
	user  bool
	field int // that is counted
}

func newCSVLines(query string, t *tally) *csvLines {
	if query == "user" {
		return &csvLines{tally: t, user: true}
	}
	return &csvLines{tally: t, field: csvBehavior}
}

func (l *csvLines) block(b []byte, end int) error {
	return inLanes(b, end, l.line)
}

// line counts the line at b[p:], and returns where the next one begins.
func (l *csvLines) line(b []byte, p, end int) (next int, err error) {
	next, v, n := l.fast(b, p)
	if next == 0 {
		n = bytes.IndexByte(b[p:end], '\n')
		if err := l.slow(b[p : p+n]); err != nil {
			return 0, fmt.Errorf("%w in %.200q", err, b[p:p+n])
		}
		return p + n + 1, nil
	}
	if l.user {
		l.number(v)
	} else {
		l.word(v, n)
	}
	return next, nil
}

// fast reads the line at b[p:] as jsonLines.fast does.
func (l *csvLines) fast(b []byte, p int) (next int, v uint64, length int) {
	for i := range csvFields {
		w := word8(b, p)
		n := digitsOf(w) // most are numbers, and a digit is no delimiter
		if n == 8 {
			n += moreDigits(b, p+8)
		}
		wanted := i == l.field
		if wanted && l.user {
			if n == 0 || n > 18 {
				return 0, 0, 0
			}
			v = number(b, p, w, n)
		}
		if c := b[p+n]; c != ',' && c != '\n' {
			if n = fieldLength(b, p); n < 0 || wanted && l.user {
				return 0, 0, 0
			}
		}
		if wanted && !l.user {
			if v, length = w, n; n == 0 || n > 7 || w&byteHighs<<(64-8*uint(n)) != 0 {
				return 0, 0, 0
			}
		}
		p += n
		if (b[p] == '\n') != (i == csvFields-1) {
			return 0, 0, 0
		}
		p++
	}
	return p, v, length
}

// fieldLength is that of the field at b[p:] in front of a comma or line feed; below 0 if anything else ends it.
func fieldLength(b []byte, p int) int {
	began := p
	m := delimiter(word8(b, p))
	for m == 0 {
		p += 8
		m = delimiter(word8(b, p))
	}
	if p += bits.TrailingZeros64(m) >> 3; b[p] != ',' && b[p] != '\n' {
		return -1
	}
	return p - began
}

// delimiter marks commas, quotes and line ends of w, the lowest one rightly.
func delimiter(w uint64) uint64 {
	return equalBytes(w, ','*byteOnes) | equalBytes(w, '"'*byteOnes) | equalBytes(w, '\n'*byteOnes) | equalBytes(w, '\r'*byteOnes)
}

// slow counts any line.
func (l *csvLines) slow(line []byte) error {
	if line = bytes.TrimSuffix(line, []byte("\r")); len(line) == 0 {
		return nil
	}
	r := csv.NewReader(bytes.NewReader(line))
	r.FieldsPerRecord = csvFields
	fields, err := r.Read()
	if err != nil {
		return err
	}
	i := l.field
	_, at := r.FieldPos(i)
	quoted := at <= len(line) && line[at-1] == '"'
	switch {
	case fields[i] == "" && !quoted:
		l.null()
	case !l.user:
		if !utf8.ValidString(fields[i]) {
			return errUTF8
		}
		l.text([]byte(fields[i]))
	default:
		v, ok := wholeNumber(fields[i])
		if !ok {
			return errType
		}
		l.number(uint64(v))
	}
	return nil
}

// wholeNumber reads a number of any form that is whole and fits 64 bits: 12, +7, 12.0, 1e3.
func wholeNumber(text string) (v int64, ok bool) {
	sign := ""
	if text != "" && (text[0] == '-' || text[0] == '+') {
		sign, text = text[:1], text[1:]
	}
	exponent := 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[at+1:]); err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, false
		}
		exponent = min(max(exponent, -1<<30), 1<<30)
		text = text[:at]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	exponent -= len(fraction)
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return 0, true
	}
	for exponent < 0 && strings.HasSuffix(digits, "0") {
		digits, exponent = digits[:len(digits)-1], exponent+1
	}
	if exponent < 0 || len(digits)+exponent > 19 {
		return 0, false
	}
	v, err := strconv.ParseInt(sign+digits+strings.Repeat("0", exponent), 10, 64)
	return v, err == nil
}
