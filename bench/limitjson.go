package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"unicode/utf8"
)

// jsonLines counts lines that it validates as Weir does: each is one well-formed object,
// its keys in any order and its values of any kind, and nothing else; the value that is
// counted is of its type, in range, and valid UTF-8. What is written as programs write it
// is passed over eight bytes at a time; everything else goes to encoding/json.
type jsonLines struct {
	*tally
	user bool
	name string      // of the key that is looked for
	keys [16]jsonKey // those of the last line that were not foreseen
}

// A jsonKey is a key as it was in a line, with its quotes and colon, which is likely to be at
// the same place of the next one.
type jsonKey struct {
	low, high         uint64 // its bytes
	lowMask, highMask uint64
	length            int // 0: none
	wanted            bool
}

func newJSONLines(query string, t *tally) *jsonLines {
	if query == "user" {
		return &jsonLines{tally: t, user: true, name: "user_id"}
	}
	return &jsonLines{tally: t, name: "behavior"}
}

func (l *jsonLines) block(b []byte, end int) error {
	return inLanes(b, end, l.line)
}

// line counts the line at b[p:], and returns where the next one begins.
func (l *jsonLines) line(b []byte, p, end int) (next int, err error) {
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

// fast reads the line at b[p:]: its number, or its text in a word and how long that is. next is
// where the next line begins, or 0 if this one has anything that slow has to look at.
func (l *jsonLines) fast(b []byte, p int) (next int, v uint64, length int) {
	if b[p] != '{' {
		return 0, 0, 0
	}
	found := false
	for i := 0; ; i++ {
		p++ // behind the brace or the comma
		k := &l.keys[i&15]
		if word8(b, p)&k.lowMask != k.low || word8(b, p+8)&k.highMask != k.high || k.length == 0 {
			if !l.learn(b, p, k) {
				return 0, 0, 0
			}
		}
		p += k.length
		w := word8(b, p)
		n := digitsOf(w)
		switch {
		case n > 0:
			if n == 8 {
				n += moreDigits(b, p+8)
			}
			if byte(w) == '0' && n > 1 {
				return 0, 0, 0
			}
			if k.wanted {
				if !l.user || n > 18 {
					return 0, 0, 0
				}
				v, found = number(b, p, w, n), true
			}
		case byte(w) != '"':
			return 0, 0, 0
		case !k.wanted:
			if n = textLength(b, p+1) + 2; n < 2 {
				return 0, 0, 0
			}
		default:
			if v, length = shortText(b, p+1); length < 0 || l.user {
				return 0, 0, 0
			}
			n, found = length+2, true
		}
		p += n
		if b[p] == ',' {
			continue
		}
		if b[p] != '}' || b[p+1] != '\n' || !found {
			return 0, 0, 0
		}
		return p + 2, v, length
	}
}

// learn reads the key at b[p:], of at most 13 bytes without an escape.
func (l *jsonLines) learn(b []byte, p int, k *jsonKey) bool {
	if b[p] != '"' {
		return false
	}
	n := textLength(b, p+1)
	end := p + n + 2
	if n < 0 || n > 13 || b[end] != ':' {
		return false
	}
	size := uint(end + 1 - p)
	*k = jsonKey{length: int(size), wanted: string(b[p+1:end-1]) == l.name, lowMask: ^uint64(0)}
	if size < 8 {
		k.lowMask = 1<<(8*size) - 1
	} else {
		k.highMask = 1<<(8*(size-8)) - 1 // of 16: all, as a shift by 64 gives 0
	}
	k.low, k.high = word8(b, p)&k.lowMask, word8(b, p+8)&k.highMask
	return true
}

// special marks the quotes, backslashes and control characters of w, the lowest one rightly.
func special(w uint64) uint64 {
	return equalBytes(w, '"'*byteOnes) | equalBytes(w, '\\'*byteOnes) | (w-0x20*byteOnes)&^w&byteHighs
}

// shortText reads the text at b[p:], of at most 7 bytes of plain ASCII before its quote;
// n is below 0 for any other.
func shortText(b []byte, p int) (w uint64, n int) {
	w = word8(b, p)
	m := special(w) | w&byteHighs
	if n = bits.TrailingZeros64(m) >> 3; n > 7 || b[p+n] != '"' {
		return 0, -1
	}
	return w, n
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
