package main

import (
	"bytes"
	"encoding/binary"
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
// valid UTF-8. The ends of fields are found first, those of many lines at once, so that what is
// done with one does not wait for another; lines with a quote, or with anything else that is
// rare, go to encoding/csv. A line feed within quotes is an error here.
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

// csvWindow is how many bytes of a block are looked through for the ends of fields before
// these are looked at.
const csvWindow = 4 << 10

func (l *csvLines) block(b []byte, end int) error {
	var ends [csvWindow + csvStride]uint32
	for p := 0; p < end; {
		n := fieldEnds(b, p, min(p+csvWindow, end), &ends)
		began := p
		for i := 0; i+csvFields <= n; {
			e := (*[csvFields]uint32)(ends[i:])
			if l.fast(b, p, e) {
				p = int(e[csvFields-1]) + 1
				i += csvFields
				continue
			}
			next, err := l.other(b, p, end)
			if err != nil {
				return err
			}
			for p = next; i < n && int(ends[i]) < p; {
				i++
			}
		}
		if p == began { // too few ends, or too long a line
			next, err := l.other(b, p, end)
			if err != nil {
				return err
			}
			p = next
		}
	}
	return nil
}

// csvStride is how many ends are written at once, wanted or not: more than there mostly are in 64 bytes, so
// that the processor has no branch to foresee.
const csvStride = 12

// fieldEnds lists where bytes below '-' are in b[from:to], rounded up to 64 bytes: commas, quotes and
// line ends are, digits and letters are not.
func fieldEnds(b []byte, from, to int, ends *[csvWindow + csvStride]uint32) (n int) {
	for ; from < to; from += 64 {
		m := endsIn((*[64]byte)(b[from:]))
		if left := to - from; left < 64 {
			m &= 1<<uint(left) - 1
		}
		at, next := uint32(from), n+bits.OnesCount64(m)
		for {
			out := (*[csvStride]uint32)(ends[n:])
			for i := range out {
				out[i] = at + uint32(bits.TrailingZeros64(m))
				m &= m - 1
			}
			if n += csvStride; n >= next {
				break
			}
		}
		n = next
	}
	return n
}

// endsIn has a bit for each byte that is below '-'.
func endsIn(b *[64]byte) (m uint64) {
	const gather = 0x0102040810204080 // the lowest bits of all bytes into the highest byte
	for i := 0; i < 64; i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		w = ^(w&^byteHighs + (0x80-'-')*byteOnes | w) & byteHighs
		m |= w >> 7 * gather >> 56 << uint(i)
	}
	return m
}

// fast counts the line at b[p:], whose fields may end at e, unless it has anything that slow has to look at.
func (l *csvLines) fast(b []byte, p int, e *[csvFields]uint32) bool {
	if (b[e[0]]^',')|(b[e[1]]^',')|(b[e[2]]^',')|(b[e[3]]^',')|(b[e[4]]^'\n') != 0 {
		return false
	}
	if l.user {
		w, n := word8(b, p), int(e[0])-p
		have := digitsOf(w)
		if have == 8 {
			have += moreDigits(b, p+8)
		}
		if have != n || n == 0 || n > 18 {
			return false
		}
		l.number(number(b, p, w, n))
		return true
	}
	from := int(e[csvBehavior-1]) + 1
	w, n := word8(b, from), int(e[csvBehavior])-from
	if n == 0 || n > 7 || w&byteHighs<<(64-8*uint(n)) != 0 {
		return false
	}
	l.word(w, n)
	return true
}

// other counts the line at b[p:], whatever it is, and returns where the next one begins.
func (l *csvLines) other(b []byte, p, end int) (next int, err error) {
	n := bytes.IndexByte(b[p:end], '\n')
	if err := l.slow(b[p : p+n]); err != nil {
		return 0, fmt.Errorf("%w in %.200q", err, b[p:p+n])
	}
	return p + n + 1, nil
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
