package source

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"weir/planner/expr"
)

// maxDepth is how deep a value that is skipped may nest.
const maxDepth = 512

// broken says what a record that is no JSON object should have had at its position.
func broken(expected string) *fault { return &fault{reason: "expected " + expected} }

// at completes a fault of the record's form with its place in the record, which begins
// at data[begin:], and with what stands there. Faults of columns stay as they are.
func (f *fault) at(begin, p int, data []byte) *fault {
	if f.column != "" {
		return f
	}
	rest := data[p:]
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest = bytes.TrimSuffix(rest[:i], []byte{'\r'})
	}
	found := "the end of the line"
	if len(rest) > 0 {
		found = quote(rest)
	}
	return &fault{reason: "not a JSON object: " + f.reason + " at byte " + strconv.Itoa(p-begin+1) + ", found " + found}
}

// space skips JSON's white space but for the line feed, which ends the record.
func space(data []byte, p int) int {
	for data[p] == ' ' || data[p] == '\t' || data[p] == '\r' {
		p++
	}
	return p
}

// value reads a value of any form into row n of a column.
func (d *jsonDecoder) value(r *rows, c *column, data []byte, p int) (int, *fault) {
	end, f := skipValue(data, p, 0)
	if f != nil {
		return end, f
	}
	token := data[p:end]
	switch first := token[0]; {
	case first == 'n':
		return end, r.setNull(c, "the field is null")
	case first == '"':
		return end, r.setJSONText(c, data, p, end)
	case first == 't' || first == 'f':
		if c.typ.Kind != expr.Boolean {
			return end, c.notA(quoteJSON(token), "it is a truth value")
		}
		c.bools[r.n] = first == 't'
		return end, nil
	case first == '{' || first == '[':
		return end, c.notA(quoteJSON(token), "it is an object or an array")
	case c.typ.Numeric():
		return end, r.setNumber(c, token, quoteJSON)
	}
	why := "it is a number"
	if isTime(c.typ) && c.typ.Kind != expr.Interval && c.typ.Kind != expr.MonthInterval {
		why += "; declare the column BIGINT, or write a text such as " + exampleOf(c.typ)
	}
	return end, c.notA(quoteJSON(token), why)
}

// setJSONText makes the JSON text data[p:end], quotes included, row n of a column.
func (r *rows) setJSONText(c *column, data []byte, p, end int) *fault {
	token, text := data[p:end], data[p+1:end-1]
	switch c.typ.Kind {
	case expr.String:
		if bytes.IndexByte(text, '\\') < 0 {
			return r.setChecked(c, data, p+1, end-1)
		}
		at := int(c.offsets[r.n])
		if at+len(text) > len(c.bytes) {
			c.grow(at, len(text)) // unescaped it is shorter
		}
		whole, ok := unescape(c.bytes[at:at], text)
		if !ok {
			return &fault{column: c.name, reason: quoteJSON(token) + " has an escape of half a UTF-16 pair"}
		}
		if !utf8.Valid(whole) {
			return &fault{column: c.name, reason: quoteJSON(token) + " is not valid UTF-8"}
		}
		c.offsets[r.n+1] = int32(at + len(whole))
		r.bytes += len(whole)
		return nil
	case expr.Double:
		switch string(text) {
		case "NaN":
			c.floats[r.n] = math.NaN()
			return nil
		case "Infinity":
			c.floats[r.n] = math.Inf(1)
			return nil
		case "-Infinity":
			c.floats[r.n] = math.Inf(-1)
			return nil
		}
		return c.notA(quoteJSON(token), `it is a text other than "NaN", "Infinity" and "-Infinity"`)
	}
	if c.typ.Kind != expr.Bytes && !isTime(c.typ) {
		return c.notA(quoteJSON(token), "it is a text")
	}
	if bytes.IndexByte(text, '\\') >= 0 {
		var ok bool
		if r.scratch, ok = unescape(r.scratch[:0], text); !ok {
			return &fault{column: c.name, reason: quoteJSON(token) + " has an escape of half a UTF-16 pair"}
		}
		text = r.scratch
	}
	if c.typ.Kind == expr.Bytes {
		return r.setBase64(c, text, quote)
	}
	return r.setTime(c, text, quote)
}

// exampleOf gives a text that is a value of a type.
func exampleOf(t expr.Type) string {
	switch t.Kind {
	case expr.Date:
		return `"2017-11-25"`
	case expr.Timestamp:
		return `"2017-11-25T01:00:00"`
	}
	return `"2017-11-25T01:00:00Z"`
}

// skipValue finds the end of the value at data[p:], which must be well-formed.
func skipValue(data []byte, p, depth int) (int, *fault) {
	switch c := data[p]; {
	case c == '"':
		return skipText(data, p)
	case c == '-' || c >= '0' && c <= '9':
		return skipNumber(data, p)
	case c == '{':
		return skipObject(data, p, depth+1)
	case c == '[':
		return skipArray(data, p, depth+1)
	case c == 't' && bytes.HasPrefix(data[p:], []byte("true")):
		return p + 4, nil
	case c == 'f' && bytes.HasPrefix(data[p:], []byte("false")):
		return p + 5, nil
	case c == 'n' && bytes.HasPrefix(data[p:], []byte("null")):
		return p + 4, nil
	}
	return p, broken("a value")
}

func skipNumber(data []byte, p int) (int, *fault) {
	if data[p] == '-' {
		p++
	}
	_, q := scanDigits(data, p)
	if q == p || q > p+1 && data[p] == '0' {
		return p, broken("a number without leading zeros")
	}
	p = q
	if data[p] == '.' {
		if _, q = scanDigits(data, p+1); q == p+1 {
			return q, broken("a digit")
		}
		p = q
	}
	if data[p]|0x20 == 'e' {
		p++
		if data[p] == '-' || data[p] == '+' {
			p++
		}
		if _, q = scanDigits(data, p); q == p {
			return q, broken("a digit")
		}
		p = q
	}
	return p, nil
}

// skipText finds the end of the text whose quote is at data[p].
func skipText(data []byte, p int) (int, *fault) {
	p++
	for {
		w := load(data, p)
		special := match(w, '"'*ones) | match(w, '\\'*ones) | (w-0x20*ones)&^w&highs
		if special == 0 {
			p += 8
			continue
		}
		p += bits.TrailingZeros64(special) >> 3
		switch c := data[p]; {
		case c == '"':
			return p + 1, nil
		case c < 0x20:
			return p, broken("the text's closing quote")
		default: // a backslash
			n := escapeLength(data[p:])
			if n == 0 {
				return p, broken("an escape that JSON knows")
			}
			p += n
		}
	}
}

// escapeLength returns the length of the escape that b begins with; 0: it is none.
func escapeLength(b []byte) int {
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b[2:]); ok {
			return 6
		}
	}
	return 0
}

func skipObject(data []byte, p, depth int) (int, *fault) {
	if depth > maxDepth {
		return p, broken("values that nest no deeper than " + strconv.Itoa(maxDepth))
	}
	p = space(data, p+1)
	if data[p] == '}' {
		return p + 1, nil
	}
	for {
		if data[p] != '"' {
			return p, broken("a field's name in double quotes")
		}
		var f *fault
		if p, f = skipText(data, p); f != nil {
			return p, f
		}
		if p = space(data, p); data[p] != ':' {
			return p, broken("':'")
		}
		if p, f = skipValue(data, space(data, p+1), depth); f != nil {
			return p, f
		}
		switch p = space(data, p); data[p] {
		case '}':
			return p + 1, nil
		case ',':
			p = space(data, p+1)
		default:
			return p, broken("',' or '}'")
		}
	}
}

func skipArray(data []byte, p, depth int) (int, *fault) {
	if depth > maxDepth {
		return p, broken("values that nest no deeper than " + strconv.Itoa(maxDepth))
	}
	p = space(data, p+1)
	if data[p] == ']' {
		return p + 1, nil
	}
	for {
		var f *fault
		if p, f = skipValue(data, p, depth); f != nil {
			return p, f
		}
		switch p = space(data, p); data[p] {
		case ']':
			return p + 1, nil
		case ',':
			p = space(data, p+1)
		default:
			return p, broken("',' or ']'")
		}
	}
}

// unescape appends a text, whose escapes are well-formed, to dst. It fails at half a
// surrogate pair, which is no character.
func unescape(dst, text []byte) ([]byte, bool) {
	for len(text) > 0 {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return append(dst, text...), true
		}
		dst = append(dst, text[:i]...)
		c := text[i+1]
		text = text[i+2:]
		if c != 'u' {
			dst = append(dst, unescaped(c))
			continue
		}
		u, _ := hex4(text)
		text = text[4:]
		if utf16.IsSurrogate(u) {
			low := rune(-1)
			if len(text) >= 6 && text[0] == '\\' && text[1] == 'u' {
				low, _ = hex4(text[2:])
			}
			if u = utf16.DecodeRune(u, low); u == utf8.RuneError {
				return dst, false
			}
			text = text[6:]
		}
		dst = utf8.AppendRune(dst, u)
	}
	return dst, true
}

func unescaped(c byte) byte {
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

func hex4(b []byte) (u rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		u = u<<4 | rune(c)
	}
	return u, true
}
