package source

import (
	"bytes"
	"math/bits"

	"weir/exec/batch"
	"weir/planner/expr"
)

// A decoder turns records into rows. data holds whole records, except that a quoted
// CSV field may run past it; pad bytes behind data are readable.
type decoder interface {
	// decode reads the records that start in data[p:end) until the batch is full. It
	// returns the position behind the last one, and whether the record there is not
	// complete in data (CSV only). base is the offset of data[0] in the file; a fault is
	// of the record at the position returned.
	decode(r *rows, data []byte, p, end int, base int64) (next int, more bool, f *fault)
	// behind finds the record behind the one at data[p], which has a fault; -1: data does
	// not hold the whole of it.
	behind(data []byte, p int, f *fault) int
	// header checks the first record of a file that begins with one.
	header(data []byte, p int) (next int, more bool, f *fault)
}

// A jsonDecoder reads one JSON object per line into the columns that the query reads.
// Records of a stream look alike, so it remembers what stood between one value and
// the next: a step is such a text (`,"item_id":`), and leads to the step that
// followed it last time. Where the remembered text is there again, it costs two
// comparisons of eight bytes; where not, the key is read and looked up.
type jsonDecoder struct {
	columns map[string]int   // by name; only those that are read
	steps   map[string]*step // by text
	start   step             // stands before the first text of a record
	none    *step            // leads nowhere: never matches
	scratch []byte           // an unescaped key
}

// maxSteps bounds the steps that are remembered.
const maxSteps = 1024

// A step is the text in front of a value, from the end of the value before it. Where it
// was remembered without the blanks that stand behind the colon now, they are left over.
type step struct {
	text   []byte
	w0, w1 uint64 // the first 16 bytes of text, masked
	m0, m1 uint64
	size   int  // of text
	long   bool // text has more than 16 bytes
	what   action
	column int
	next   *step // the step that followed it last time
}

// An action says what to do with the value behind a step.
type action uint8

const (
	skip   action = iota // the query does not read it
	finish               // there is none: the text ends the object and its line
	readInt
	readText
	readDecimal
	readClock
	readOther
)

func newJSONDecoder(r *rows) *jsonDecoder {
	d := &jsonDecoder{columns: map[string]int{}, steps: map[string]*step{}}
	// What fits its words, sixteen bytes 0xff, does not begin with its text: it never fits.
	d.none = &step{what: finish, w0: ^uint64(0), m0: ^uint64(0), w1: ^uint64(0), m1: ^uint64(0), long: true, text: []byte{0}, size: 1}
	d.none.next = d.none
	d.start.next = d.none
	for i := range r.columns {
		d.columns[r.columns[i].name] = i
	}
	return d
}

func (d *jsonDecoder) header(_ []byte, p int) (int, bool, *fault) { return p, false, nil }

func (d *jsonDecoder) behind(data []byte, p int, _ *fault) int { return nextLine(data, p) }

func (d *jsonDecoder) decode(r *rows, data []byte, p, end int, base int64) (int, bool, *fault) {
	for p < end && !r.full() {
		next, blank, f := d.row(r, data, p)
		if f == nil && !blank {
			f = r.end(base + int64(p))
		}
		if f != nil {
			r.abandon()
			return p, false, f
		}
		p = next
	}
	return p, false, nil
}

// row reads the record at data[p:] into row n.
func (d *jsonDecoder) row(r *rows, data []byte, p int) (next int, blank bool, f *fault) {
	r.record++
	got := 0
	begin := p
	number := -1 // where the number in front of p begins, if nothing was looked for behind its digits
	s := &d.start
	for {
		e := s.next
		if (load(data, p)^e.w0)&e.m0|(load(data, p+8)^e.w1)&e.m1 == 0 && (!e.long || bytes.HasPrefix(data[p:], e.text)) {
			p += e.size
		} else if number >= 0 && goesOn(data[p]) {
			if p, f = d.whole(r, s, data, number); f != nil {
				return p, false, f.at(begin, p, data)
			}
			number = -1
			continue
		} else if e, p, f = d.step(r, data, p, s); f != nil {
			return p, false, f.at(begin, p, data)
		} else if e == nil {
			return p, true, nil
		}
		s, number = e, -1
		switch e.what {
		case finish:
			if got < len(r.columns) {
				return p, false, d.missing(r)
			}
			return p, false, nil
		case skip:
			w := load(data, p)
			if stop := (w ^ zeros) & halves; stop != 0 {
				n := bits.TrailingZeros64(stop) >> 3
				if n > 0 && decimal(w, n) && (n == 1 || byte(w) != '0') {
					number = p
					p += n
					continue
				}
			} else if n := longInt(data, p, w); n > 0 {
				number = p
				p += n
				continue
			}
			if p, f = skipValue(data, space(data, p), 0); f != nil {
				return p, false, f.at(begin, p, data)
			}
			continue
		}
		c := &r.columns[e.column]
		if c.seen == r.record {
			r.unset(c)
			got--
		}
		c.seen = r.record
		got++
		if e.what == readInt {
			w := load(data, p)
			if stop := (w ^ zeros) & halves; byte(stop) != 0 {
				if v, q, ok := scanInt(data, p, true); ok && v >= c.low && v <= c.high { // a minus
					c.ints[r.n] = v
					p = q
					continue
				}
			} else if stop != 0 {
				n := bits.TrailingZeros64(stop) >> 3
				if v := value(w, n); decimal(w, n) && (n == 1 || byte(w) != '0') && v <= uint64(c.high) {
					c.ints[r.n] = int64(v)
					number = p
					p += n
					continue
				}
			} else if n := longInt(data, p, w); n > 0 {
				if v := value(w, 8)*pow10[n-8] + value(load(data, p+8), n-8); v <= uint64(c.high) {
					c.ints[r.n] = int64(v)
					number = p
					p += n
					continue
				}
			}
		} else if e.what == readDecimal {
			if v, q, ok := scanDecimal(data, p, c.typ.Scale, true); ok && v >= c.low && v <= c.high {
				c.decimals[r.n] = batch.Int128Of(v)
				p = q
				continue
			}
		} else if (e.what == readText || e.what == readClock) && data[p] == '"' {
			q := p + 1
			marks := unplain(load(data, q))
			for marks == 0 {
				q += 8
				marks = unplain(load(data, q))
			}
			if q += bits.TrailingZeros64(marks) >> 3; data[q] == '"' {
				if e.what == readText {
					r.setText(c, data, p+1, q)
				} else if f = r.setTime(c, data[p+1:q], quote); f != nil {
					return q + 1, false, f
				}
				p = q + 1
				continue
			}
		}
		if p, f = d.value(r, c, data, space(data, p)); f != nil {
			return p, false, f.at(begin, p, data)
		}
	}
}

// goesOn reports whether a number whose digits c follows is more than those.
func goesOn(c byte) bool { return c == '.' || c|0x20 == 'e' }

// whole reads the number at data[p:] behind s again, of which only the digits were looked at.
func (d *jsonDecoder) whole(r *rows, s *step, data []byte, p int) (int, *fault) {
	if s.what == skip {
		return skipValue(data, p, 0)
	}
	return d.value(r, &r.columns[s.column], data, p)
}

// unplain marks, with the high bit, the lowest byte of w that is a quote, an escape, a control
// character or beyond ASCII.
func unplain(w uint64) uint64 {
	return match(w, '"'*ones) | match(w, '\\'*ones) | ((w-0x20*ones)&^w|w)&highs
}

// missing makes the columns that the record did not have NULL.
func (d *jsonDecoder) missing(r *rows) *fault {
	for i := range r.columns {
		if c := &r.columns[i]; c.seen != r.record {
			if f := r.setNull(c, "the field is missing"); f != nil {
				return f
			}
		}
	}
	return nil
}

// step reads what stands in front of a value without a prediction, and makes it the
// prediction for the next record. It returns no step for a blank line.
func (d *jsonDecoder) step(r *rows, data []byte, p int, s *step) (*step, int, *fault) {
	from := p
	p = space(data, p)
	first := s == &d.start
	switch c := data[p]; {
	case first && c == '\n':
		return nil, p + 1, nil
	case first && c != '{':
		return nil, p, broken("a JSON object")
	case !first && c != ',' && c != '}':
		return nil, p, broken("',' or '}'")
	case first:
		if q := space(data, p+1); data[q] == '}' {
			return d.close(data, from, q, s)
		}
	case c == '}':
		return d.close(data, from, p, s)
	}
	p = space(data, p+1)
	if data[p] != '"' {
		return nil, p, broken("a field's name in double quotes")
	}
	keyAt := p
	p, f := skipText(data, p)
	if f != nil {
		return nil, p, f
	}
	key := data[keyAt:p]
	if p = space(data, p); data[p] != ':' {
		return nil, p, broken("':'")
	}
	p = space(data, p+1)
	return d.known(r, data[from:p], key, s), p, nil
}

// close reads the end of an object at data[p] and of its line.
func (d *jsonDecoder) close(data []byte, from, p int, s *step) (*step, int, *fault) {
	p = space(data, p+1)
	if data[p] != '\n' {
		return nil, p, broken("the end of the line")
	}
	return d.known(nil, data[from:p+1], nil, s), p + 1, nil
}

// known returns the step with a text, new or remembered, and links it behind s.
func (d *jsonDecoder) known(r *rows, text, key []byte, s *step) *step {
	e := d.steps[string(text)]
	if e == nil {
		e = &step{text: bytes.Clone(text), size: len(text), what: finish, next: d.none}
		if key != nil {
			e.what, e.column = d.lookup(r, key)
		}
		e.w0, e.m0 = word(text)
		if len(text) > 8 {
			e.w1, e.m1 = word(text[8:])
		}
		e.long = len(text) > 16
		if len(d.steps) < maxSteps {
			d.steps[string(e.text)] = e
		}
	}
	s.next = e
	return e
}

// word packs the first eight bytes of text, and a mask that covers them.
func word(text []byte) (w, mask uint64) {
	for i := range min(len(text), 8) {
		w |= uint64(text[i]) << (8 * i)
		mask |= 0xff << (8 * i)
	}
	return w, mask
}

// lookup says what to do with the field whose name is key, quotes included.
func (d *jsonDecoder) lookup(r *rows, key []byte) (action, int) {
	name := key[1 : len(key)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		var ok bool
		if d.scratch, ok = unescape(d.scratch[:0], name); !ok {
			return skip, 0
		}
		name = d.scratch
	}
	i, ok := d.columns[string(name)]
	if !ok {
		return skip, 0
	}
	switch r.columns[i].typ.Kind {
	case expr.Int, expr.BigInt:
		return readInt, i
	case expr.String:
		return readText, i
	case expr.Decimal:
		return readDecimal, i
	case expr.Date, expr.Timestamp, expr.TimestampLTZ:
		return readClock, i
	}
	return readOther, i
}
