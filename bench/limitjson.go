package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// jsonLines counts lines that it validates as Weir does: each is one well-formed object,
// its keys in any order and its values of any kind, and nothing else; the value that is
// counted is of its type, in range, and valid UTF-8. What is written as programs write it
// is passed over eight bytes at a time, what stands between two values at once; everything
// else goes to encoding/json.
type jsonLines struct {
	*tally
	user  bool
	name  string       // of the key that is looked for
	leads [17]jsonLead // those of the last line that were not foreseen; the last one stays unknown
}

// A jsonLead is what stands in front of a value: the brace or comma, the key, the colon
// and, of a text, its quote. It is likely to be there at the same place of the next line.
type jsonLead struct {
	low, high         uint64 // its bytes
	lowMask, highMask uint64
	length            int
	text, wanted      bool
}

func newJSONLines(query string, t *tally) *jsonLines {
	l := &jsonLines{tally: t, name: "behavior"}
	if query == "user" {
		l.user, l.name = true, "user_id"
	}
	for i := range l.leads {
		l.leads[i].lowMask = 0xff // a zero byte, behind which there is no value
	}
	return l
}

func (l *jsonLines) block(b []byte, end int) error {
	return inLanes(b, end, l.line)
}

// line counts the line at b[p:], and returns where the next one begins.
func (l *jsonLines) line(b []byte, p, end int) (next int, err error) {
	next, v, n := l.fast(b, p)
	switch {
	case next == 0:
		n = bytes.IndexByte(b[p:end], '\n')
		if err := l.slow(b[p : p+n]); err != nil {
			return 0, fmt.Errorf("%w in %.200q", err, b[p:p+n])
		}
		return p + n + 1, nil
	case l.user:
		l.number(v)
	default:
		l.word(v, n)
	}
	return next, nil
}

// fast reads the line at b[p:]: its number, or its text in a word and how long that is. next is
// where the next line begins, or 0 if this one has anything that slow has to look at. A line
// feed ends the block and nothing here goes on behind one, so that all that is loaded is within
// the pad: checks of bounds took a third of the time.
func (l *jsonLines) fast(b []byte, p int) (next int, v uint64, length int) {
	base, found := unsafe.Pointer(unsafe.SliceData(b)), false
	for i := range l.leads {
		k := &l.leads[i]
		if (loaded(base, p)^k.low)&k.lowMask|(loaded(base, p+8)^k.high)&k.highMask != 0 {
			if uint16(loaded(base, p)) == '}'|'\n'<<8 && found {
				return p + 2, v, length
			}
			if !l.learn(b, p, i) {
				return 0, 0, 0
			}
		}
		p += k.length
		w := loaded(base, p)
		var n int
		switch {
		case !k.text:
			if n = digitsOf(w); n == 8 {
				if n += digitsOf(loaded(base, p+8)); n == 16 {
					n += moreDigits(b, p+16)
				}
			}
			if n == 0 || byte(w) == '0' && n > 1 {
				return 0, 0, 0
			}
			if k.wanted {
				if !l.user || n > 18 {
					return 0, 0, 0
				}
				v, found = number(b, p, w, n), true
			}
			p += n
			continue
		case k.wanted:
			quote := equalBytes(w, '"'*byteOnes) // of a text of 7 bytes at most
			if other := special(w) ^ quote | w&byteHighs; quote == 0 || other&(quote^(quote-1)) != 0 || l.user {
				return 0, 0, 0
			}
			n = bits.TrailingZeros64(quote) >> 3
			v, length, found = w, n, true
		default:
			if n = textLength(b, p); n < 0 {
				return 0, 0, 0
			}
		}
		p += n + 1 // and the quote
	}
	return 0, 0, 0
}

// loaded is word8 without a check.
func loaded(base unsafe.Pointer, p int) uint64 { return *(*uint64)(unsafe.Add(base, p)) }

// learn reads the i-th lead of a line, at b[p:], of at most 16 bytes without an escape.
func (l *jsonLines) learn(b []byte, p, i int) bool {
	first := byte(',')
	if i == 0 {
		first = '{'
	}
	if i == len(l.leads)-1 || b[p] != first || b[p+1] != '"' {
		return false
	}
	n := textLength(b, p+2)
	if n < 0 || n > 12 || b[p+n+3] != ':' {
		return false
	}
	k := jsonLead{length: n + 4, wanted: string(b[p+2:p+2+n]) == l.name, lowMask: ^uint64(0)}
	if b[p+n+4] == '"' {
		k.text, k.length = true, n+5
	}
	if k.length > 16 {
		return false
	}
	if k.length < 8 {
		k.lowMask = 1<<(8*uint(k.length)) - 1
	} else {
		k.highMask = 1<<(8*uint(k.length-8)) - 1 // of 16: all, as a shift by 64 gives 0
	}
	k.low, k.high = word8(b, p)&k.lowMask, word8(b, p+8)&k.highMask
	l.leads[i] = k
	return true
}

// special marks the quotes, backslashes and control characters of w, the lowest one rightly.
func special(w uint64) uint64 {
	return equalBytes(w, '"'*byteOnes) | equalBytes(w, '\\'*byteOnes) | (w-0x20*byteOnes)&^w&byteHighs
}

// textLength is that of the text at b[p:] in front of its quote; below 0 where there is an escape,
// or a character that must be one.
func textLength(b []byte, p int) int {
	began := p
	m := special(word8(b, p))
	for m == 0 {
		p += 8
		m = special(word8(b, p))
	}
	if p += bits.TrailingZeros64(m) >> 3; b[p] != '"' {
		return -3
	}
	return p - began
}

var (
	errNoObject = errors.New("no object by itself")
	errType     = errors.New("a value that the column does not take")
	errUTF8     = errors.New("a text that is not UTF-8")
)

// slow counts any line.
func (l *jsonLines) slow(line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if brace, err := d.Token(); err != nil || brace != json.Delim('{') {
		return errors.Join(errNoObject, err)
	}
	count := l.null
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if key != l.name {
			continue
		}
		if count, err = l.value(value); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil { // the brace
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errNoObject
	}
	count()
	return nil
}

// value reads a well-formed value; it is counted later, if no other one of its key comes.
func (l *jsonLines) value(raw []byte) (count func(), err error) {
	if string(raw) == "null" {
		return l.null, nil
	}
	if (raw[0] == '"') == l.user {
		return nil, errType
	}
	if l.user {
		v, ok := wholeNumber(string(raw))
		if !ok {
			return nil, errType
		}
		return func() { l.number(uint64(v)) }, nil
	}
	if raw[0] != '"' {
		return nil, errType
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, err
	}
	// Half a surrogate pair has become U+FFFD, which may also be there as itself.
	replaced := bytes.Count([]byte(text), []byte("\uFFFD"))
	if !utf8.Valid(raw) || replaced != bytes.Count(raw, []byte("\uFFFD"))+bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`)) {
		return nil, errUTF8
	}
	return func() { l.text([]byte(text)) }, nil
}
