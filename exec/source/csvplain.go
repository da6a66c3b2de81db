package source

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"weir/exec/batch"
)

const (
	// plainLine is the length of the longest line that plainRows takes: a bit for each byte, the
	// line feed and what is behind it.
	plainLine = 62
	// plainBlock is how many lines are taken at once: all about them stays in the nearest cache.
	plainBlock = 256
	// maxMisses is how often plainRows may be of no use in a batch until it is no longer tried.
	maxMisses = 16
)

// A plain reads records without quotes, one short line each: first it finds the fields of many
// lines, eight bytes at a time, then it reads column by column.
type plain struct {
	wanted []wanted
	starts [plainBlock]int32  // where the lines begin
	marks  [plainBlock]uint64 // bit i: a field begins at byte i of the line, or would behind the last one
}

// A wanted is a column that the query reads.
type wanted struct {
	*csvField
	skip int // how many fields behind the wanted one before it
}

// want lists the columns that the query reads in the order of the table.
func (d *csvDecoder) want() {
	next := 0
	for i := range d.fields {
		if d.fields[i].what != skip {
			d.plain.wanted = append(d.plain.wanted, wanted{&d.fields[i], i - next})
			next = i
		}
	}
}

// plainRows reads records until it comes to one that row has to see to, which knows all kinds
// of lines, and what is wrong with one.
func (d *csvDecoder) plainRows(r *rows, data []byte, p, end int, base int64) int {
	for p < end && !r.full() {
		most := min(plainBlock, r.limit-r.n, (maxBatchBytes-r.bytes-1)/plainLine+1)
		n, next := d.findLines(data, p, end, most)
		good := n
		for i := range d.plain.wanted {
			good = d.plainColumn(r, &d.plain.wanted[i], data, good)
		}
		for k, start := range d.plain.starts[:good] {
			r.offsets[r.n+k] = base + int64(start)
		}
		r.endAll(good)
		if good < n {
			return int(d.plain.starts[good])
		}
		if p = next; n < most {
			break
		}
	}
	return p
}

// findLines marks the fields of at most so many lines from data[p:] on, as long as they have as
// many as the table has columns. It returns how many, and the position behind them.
func (d *csvDecoder) findLines(data []byte, p, end, most int) (n, next int) {
	delimiters := uint64(d.delimiter) * ones
	end = min(end, len(data)-pad-plainLine)
	for n < most && p < end {
		marks, length := uint64(1), 0
		for ; ; length += 8 {
			w := load(data, p+length)
			// The product gathers the high bits of the bytes in its highest byte.
			fields := equal(w, delimiters) * 0x0002040810204081 >> 56
			marks |= fields << (length & 63) << 1
			if found := match(w, '\n'*ones); found != 0 {
				length += bits.TrailingZeros64(found) >> 3
				break
			}
			if length == 56 {
				return n, p
			}
		}
		marks &= 2<<(length&63) - 1
		if length > plainLine || bits.OnesCount64(marks) != len(d.fields) {
			return n, p
		}
		if length > 0 && data[p+length-1] == '\r' {
			marks |= 1 << (length & 63) // the last field ends in front of it
		}
		d.plain.marks[n&(plainBlock-1)] = marks | 2<<(length&63)
		d.plain.starts[n&(plainBlock-1)] = int32(p)
		p += length + 1
		n++
	}
	return n, p
}

// endAll completes n rows.
func (r *rows) endAll(n int) {
	r.n += n
	r.bytes = 0
	for i := range r.columns {
		c := &r.columns[i]
		for k := len(c.nulls); k > 0 && int(c.nulls[k-1]) >= r.n; k-- { // of a row that is not complete
			c.nulls = c.nulls[:k-1]
		}
		if c.physical == batch.Strings {
			r.bytes += int(c.offsets[r.n])
		}
	}
	r.rowAt = r.bytes
}

// plainColumn reads a column of n lines; it returns how many of them are good.
func (d *csvDecoder) plainColumn(r *rows, w *wanted, data []byte, n int) int {
	switch w.what {
	case readInt:
		return d.plainInts(r, w, data, n)
	case readText:
		return d.plainTexts(r, w, data, n)
	case readClock:
		return d.plainTimes(r, w, data, n)
	}
	for k := range n {
		from, to := d.plain.field(k, w.skip)
		if !d.plainField(r, w, data, from, to, k) {
			return k
		}
	}
	return n
}

// field finds the next wanted field of a line.
func (l *plain) field(k, skip int) (from, to int) {
	marks := l.marks[k&(plainBlock-1)]
	for range skip {
		marks &= marks - 1
	}
	start := int(l.starts[k&(plainBlock-1)])
	from = start + bits.TrailingZeros64(marks)
	to = start + bits.TrailingZeros64(marks&(marks-1)) - 1
	l.marks[k&(plainBlock-1)] = marks
	return from, to
}

// plainField reads the field data[from:to] of the k-th line as row would.
func (d *csvDecoder) plainField(r *rows, w *wanted, data []byte, from, to, k int) bool {
	n := r.n
	defer func() { r.n = n }()
	r.n += k
	c := &r.columns[w.column]
	if w.what == readInt || w.what == readDecimal {
		if end, ok := r.scanNumber(c, data, from); ok && end == to {
			return true
		}
	}
	return d.unquoted(r, w.csvField, data, from, to) == nil
}

func (d *csvDecoder) plainInts(r *rows, w *wanted, data []byte, n int) int {
	c := &r.columns[w.column]
	ints := c.ints[r.n:][:n]
	for k := range ints {
		from, to := d.plain.field(k, w.skip)
		length := uint(to - from)
		if length-1 < 8 {
			t := (load(data, from) ^ zeros) << ((64 - 8*length) & 63)
			if above9(t) == 0 {
				ints[k] = int64(fold(t))
				continue
			}
		} else if length-9 < 8 {
			high, low := load(data, from)^zeros, (load(data, from+8)^zeros)<<((128-8*length)&63)
			v := int64(fold(high)*pow10[length-8] + fold(low))
			if above9(high)|above9(low) == 0 && v <= c.high {
				ints[k] = v
				continue
			}
		}
		if !d.plainField(r, w, data, from, to, k) {
			return k
		}
	}
	return n
}

func (d *csvDecoder) plainTimes(r *rows, w *wanted, data []byte, n int) int {
	c := &r.columns[w.column]
	times := c.ints[r.n:][:n]
	for k := range times {
		from, to := d.plain.field(k, w.skip)
		text := data[from:to]
		if len(text) != len(d.null) || !bytes.Equal(text, d.null) {
			if v, why := readTime(c.typ, text); why == "" {
				times[k] = v
				continue
			}
		}
		if !d.plainField(r, w, data, from, to, k) {
			return k
		}
	}
	return n
}

// above9 is zero if all bytes of t are 0 to 9.
func above9(t uint64) uint64 { return (t + 0x7676767676767676 | t) & highs }

func (d *csvDecoder) plainTexts(r *rows, w *wanted, data []byte, n int) int {
	c := &r.columns[w.column]
	if used, more := int(c.offsets[r.n]), n*(plainLine+2); used+more > len(c.bytes) {
		c.grow(used, more)
	}
	out, offsets := c.bytes, c.offsets[r.n:][:n+1]
	for k := range n {
		from, to := d.plain.field(k, w.skip)
		at, length := int(offsets[k]), to-from
		if length == len(d.null) && bytes.Equal(data[from:to], d.null) {
			if !d.plainField(r, w, data, from, to, k) {
				return k
			}
			continue
		}
		word := load(data, from)
		binary.LittleEndian.PutUint64(out[at:], word)
		if length > 8 {
			if copy(out[at:], data[from:to]); !utf8.Valid(data[from:to]) {
				return k
			}
		} else if word<<((64-8*uint(length))&63)&highs != 0 && !utf8.Valid(data[from:to]) {
			return k
		}
		offsets[k+1] = int32(at + length)
	}
	return n
}
