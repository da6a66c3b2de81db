package source

import (
	"bytes"
	"fmt"
	"math/bits"
	"strings"

	"weir/planner/expr"
	"weir/planner/plan"
)

// unclosed is the reason of a fault.
const unclosed = "not a CSV record: a quote is not closed"

// A csvDecoder reads RFC 4180 records into the columns that the query reads.
type csvDecoder struct {
	delimiter byte
	null      []byte // the unquoted text that is NULL
	names     []string
	fields    []csvField // one per column of the table
	noQuotes  bool       // the data to decode has no quotes
	plain     plain      // reads it then
	scratch   []byte     // a field without its doubled quotes
}

// A csvField says what to do with a column of the table.
type csvField struct {
	what   action
	column int
	run    int // how many columns from this one on are not read, but for the last of all
}

// A csvOptions is what a table's options say about its CSV text.
type csvOptions struct {
	delimiter byte
	header    bool
	null      string
}

func newCSVDecoder(spec *plan.SourceSpec, o csvOptions) *csvDecoder {
	d := &csvDecoder{delimiter: o.delimiter, null: []byte(o.null), fields: make([]csvField, len(spec.Table.Columns))}
	for _, c := range spec.Table.Columns {
		d.names = append(d.names, c.Name)
	}
	// The fast path would take such a delimiter for a part of a number, and such a NULL for one.
	plain := !numeric(o.delimiter) && (o.null == "" || !numeric(o.null[0]))
	for i, index := range spec.Read {
		f := csvField{what: readOther, column: i}
		switch spec.Table.Columns[index].Type.Kind {
		case expr.Int, expr.BigInt:
			if plain {
				f.what = readInt
			}
		case expr.Decimal:
			if plain && o.delimiter != '.' {
				f.what = readDecimal
			}
		case expr.String:
			f.what = readText
		case expr.Date, expr.Timestamp, expr.TimestampLTZ:
			f.what = readClock
		}
		d.fields[index] = f
	}
	for i := len(d.fields) - 2; i >= 0; i-- {
		if d.fields[i].what == skip {
			d.fields[i].run = d.fields[i+1].run + 1
		}
	}
	d.want()
	return d
}

// numeric reports whether a whole number can begin with c.
func numeric(c byte) bool { return c == '-' || c-'0' < 10 }

func (d *csvDecoder) decode(r *rows, data []byte, p, end int, base int64) (int, bool, *fault) {
	for misses := 0; p < end && !r.full(); {
		if d.noQuotes && misses < maxMisses {
			before := r.n
			if p = d.plainRows(r, data, p, end, base); p >= end || r.full() {
				break
			}
			if r.n-before < 2 {
				misses++
			}
		}
		if len(d.fields) > 1 && (data[p] == '\n' || data[p] == '\r' && data[p+1] == '\n') { // an empty line
			p += 1 + int(data[p]&1) // a carriage return is odd
			continue
		}
		next, more, f := d.row(r, data, p)
		if f != nil || more {
			r.abandon()
			return p, more, f
		}
		if f := r.end(base + int64(p)); f != nil {
			r.abandon()
			return p, false, f
		}
		p = next
	}
	return p, false, nil
}

// row reads the record at data[p:] into row n. It leaves n alone when the record is
// not complete (more).
func (d *csvDecoder) row(r *rows, data []byte, p int) (next int, more bool, f *fault) {
	begin := p
	for i := 0; i < len(d.fields); i++ {
		if i > 0 {
			if data[p] != d.delimiter {
				more, f := d.arity(data, begin)
				return p, more, f
			}
			p++
		}
		field := &d.fields[i]
		if field.run > 0 {
			if q := skipFields(data, p, field.run, d.delimiter); q > 0 {
				i += field.run
				field, p = &d.fields[i], q
			}
		}
		switch {
		case data[p] == '"':
			if p, more, f = d.quoted(r, field, data, p, i); more || f != nil {
				return p, more, f
			}
			continue
		case field.what == readInt || field.what == readDecimal:
			q, ok := r.scanNumber(&r.columns[field.column], data, p)
			if ok && (data[q] == d.delimiter || data[q] == '\n' || data[q] == '\r' && data[q+1] == '\n') {
				p = q
				continue
			}
		}
		q := fieldEnd(data, p, d.delimiter)
		if data[q] == '"' {
			return p, false, d.stray(i, data[p:], "has a quote inside a field that does not begin with one; put the field in quotes and double those within")
		}
		to := q
		if data[q] == '\n' && q > p && data[q-1] == '\r' {
			to, q = q-1, q-1
		}
		if field.what != skip {
			if f := d.unquoted(r, field, data, p, to); f != nil {
				return p, false, f
			}
		}
		p = q
	}
	if data[p] == '\r' && data[p+1] == '\n' {
		p++
	}
	if data[p] != '\n' {
		more, f := d.arity(data, begin)
		return p, more, f
	}
	return p + 1, false, nil
}

// fieldEnd finds the first delimiter, line feed or quote.
func fieldEnd(data []byte, p int, delimiter byte) int {
	pattern := uint64(delimiter) * ones
	for {
		w := load(data, p)
		if special := match(w, pattern) | match(w, '\n'*ones) | match(w, '"'*ones); special != 0 {
			return p + bits.TrailingZeros64(special)>>3
		}
		p += 8
	}
}

// skipFields passes over n fields and the delimiters behind them; 0: it met a quote or
// the end of the line, and the fields have to be looked at one by one.
func skipFields(data []byte, p, n int, delimiter byte) int {
	pattern := uint64(delimiter) * ones
	for {
		w := load(data, p)
		found := equal(w, pattern)
		if stop := equal(w, '\n'*ones) | equal(w, '"'*ones); stop != 0 {
			if found &= stop&-stop - 1; bits.OnesCount64(found) < n {
				return 0
			}
		}
		if have := bits.OnesCount64(found); have < n {
			n -= have
			p += 8
			continue
		}
		for ; n > 1; n-- {
			found &= found - 1
		}
		return p + bits.TrailingZeros64(found)>>3 + 1
	}
}

// unquoted makes the text data[p:to] row n of a column.
func (d *csvDecoder) unquoted(r *rows, field *csvField, data []byte, p, to int) *fault {
	c := &r.columns[field.column]
	if to-p == len(d.null) && bytes.Equal(data[p:to], d.null) {
		return r.setNull(c, "the field is "+nullText(d.null))
	}
	if field.what == readText {
		if n := to - p; n <= 8 && load(data, p)&highs<<(64-8*uint(n)) == 0 {
			r.setText(c, data, p, to)
			return nil
		}
		return r.setChecked(c, data, p, to)
	}
	return r.setField(c, data[p:to])
}

func nullText(null []byte) string {
	if len(null) == 0 {
		return "empty"
	}
	return quote(null)
}

// quoted reads the field whose opening quote is at data[p].
func (d *csvDecoder) quoted(r *rows, field *csvField, data []byte, p, index int) (next int, more bool, f *fault) {
	limit := len(data) - pad
	from, doubled := p+1, false
	to := from
	for {
		i := bytes.IndexByte(data[to:limit], '"')
		if i < 0 {
			return p, true, nil
		}
		if to += i; data[to+1] != '"' || to+1 >= limit {
			break
		}
		doubled = true
		to += 2
	}
	if c := data[to+1]; c != d.delimiter && c != '\n' && (c != '\r' || data[to+2] != '\n') {
		return p, false, d.stray(index, data[p:], "goes on after its closing quote; double the quotes within it")
	}
	if field.what == skip {
		return to + 1, false, nil
	}
	c := &r.columns[field.column]
	if !doubled {
		if c.typ.Kind == expr.String {
			return to + 1, false, r.setChecked(c, data, from, to)
		}
		return to + 1, false, r.setField(c, data[from:to])
	}
	d.scratch = undouble(d.scratch[:0], data[from:to])
	n := len(d.scratch)
	d.scratch = append(d.scratch, make([]byte, pad)...)
	if c.typ.Kind == expr.String {
		return to + 1, false, r.setChecked(c, d.scratch, 0, n)
	}
	return to + 1, false, r.setField(c, d.scratch[:n])
}

// undouble appends a quoted field's text, with "" made ", to dst.
func undouble(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:i+1]...)
		text = text[i+2:]
	}
}

// stray is the fault of a record whose quotes are wrong in a field.
func (d *csvDecoder) stray(index int, rest []byte, why string) *fault {
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	return &fault{reason: fmt.Sprintf("not a CSV record: field %d %s: %s", index+1, why, quote(line)), broken: true}
}

// arity is the fault of a record with too few or too many fields, once it is whole.
func (d *csvDecoder) arity(data []byte, p int) (more bool, f *fault) {
	have := 1
	for ; data[p] != '\n'; p++ {
		switch data[p] {
		case d.delimiter:
			have++
		case '"':
			if p = closing(data, p); p < 0 {
				return true, nil
			}
		}
	}
	return false, &fault{reason: fmt.Sprintf("row has %d field%s, table has %d", have, plural(have), len(d.fields))}
}

// behind finds where the record ends as its quotes show it. Where they are wrong, the next
// line is the best guess: a quote too much must not swallow what follows.
func (d *csvDecoder) behind(data []byte, p int, f *fault) int {
	begin := p
	for limit := len(data) - pad; !f.broken && p < limit; {
		if data[p] == '"' {
			for doubled := true; doubled; doubled = data[p] == '"' {
				if p = closing(data, p) + 1; p == 0 {
					return -1
				}
			}
			if data[p] == '\r' && data[p+1] == '\n' {
				p++
			}
		} else {
			p = fieldEnd(data, p, d.delimiter)
		}
		switch data[p] {
		case '\n':
			return p + 1
		case d.delimiter:
			p++
		default:
			return nextLine(data, begin)
		}
	}
	return nextLine(data, begin)
}

// nextLine finds the line behind the one at data[p]; -1: it is not in data.
func nextLine(data []byte, p int) int {
	i := bytes.IndexByte(data[p:len(data)-pad], '\n')
	if i < 0 {
		return -1
	}
	return p + i + 1
}

// closing finds the quote that closes the one at data[p]; -1: none does.
func closing(data []byte, p int) int {
	i := bytes.IndexByte(data[p+1:len(data)-pad], '"')
	if i < 0 {
		return -1
	}
	return p + 1 + i
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// header checks that the record at data[p:] names the table's columns in order.
func (d *csvDecoder) header(data []byte, p int) (next int, more bool, f *fault) {
	begin := p
	for i, name := range d.names {
		var text []byte
		if data[p] == '"' {
			to := p
			for doubled := true; doubled; doubled = data[to+1] == '"' && to+1 < len(data)-pad {
				if to > p {
					to++
				}
				if to = closing(data, to); to < 0 {
					return begin, true, nil
				}
			}
			text = undouble(nil, data[p+1:to])
			p = to + 1
		} else {
			q := fieldEnd(data, p, d.delimiter)
			text = bytes.TrimSuffix(data[p:q], []byte{'\r'})
			p += len(text)
		}
		if !strings.EqualFold(string(text), name) {
			return begin, false, &fault{reason: fmt.Sprintf("the header's field %d is %s, but the table's column is %s; name the columns as the header does, in its order", i+1, quote(text), name)}
		}
		last := i == len(d.names)-1
		if data[p] == '\r' {
			p++
		}
		if last != (data[p] == '\n') || !last && data[p] != d.delimiter {
			more, f := d.arity(data, begin)
			if f != nil {
				f.reason = "header: " + f.reason
			}
			return begin, more, f
		}
		p++
	}
	return p, false, nil
}

// abandon takes back what an incomplete record has put into row n.
func (r *rows) abandon() {
	for i := range r.columns {
		r.unset(&r.columns[i])
	}
	r.bytes = r.rowAt
}

// setField makes a CSV field's text row n of a column that is no STRING.
func (r *rows) setField(c *column, text []byte) *fault {
	switch c.typ.Kind {
	case expr.Boolean:
		switch {
		case bytes.EqualFold(text, []byte("true")), bytes.EqualFold(text, []byte("t")):
			c.bools[r.n] = true
		case bytes.EqualFold(text, []byte("false")), bytes.EqualFold(text, []byte("f")):
			c.bools[r.n] = false
		default:
			return c.notA(quote(text), "it is not true or false")
		}
		return nil
	case expr.Bytes:
		return r.setBase64(c, text, quote)
	case expr.Double:
		if len(text) == 0 || text[len(text)-1] <= '9' { // a number, if anything
			break
		}
		if f, ok := special(string(text)); ok {
			c.floats[r.n] = f
			return nil
		}
	}
	if isTime(c.typ) {
		return r.setTime(c, text, quote)
	}
	return r.setNumber(c, text, quote)
}
