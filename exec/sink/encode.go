package sink

import (
	"encoding/binary"
	"fmt"
	"strings"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/planner/expr"
	"weir/planner/plan"
)

// An encoder turns rows into text.
type encoder interface {
	// head appends what a file begins with.
	head(dst []byte) []byte
	// row appends one row of b, a line.
	row(dst []byte, b *batch.Batch, row int) []byte
}

func newEncoder(table plan.Table) (encoder, error) {
	for _, c := range table.Columns {
		if c.Type.Kind == expr.Null || c.Type.Kind > expr.MonthInterval {
			return nil, fmt.Errorf("%w: column %s: files hold no %v", weir.ErrInvalid, c.Name, c.Type)
		}
	}
	switch table.Format {
	case "json":
		return newJSONEncoder(table.Columns), nil
	case "csv":
		return newCSVEncoder(table)
	}
	return nil, fmt.Errorf("%w: format %q is not csv or json", weir.ErrInvalid, table.Format)
}

// A jsonEncoder writes one object per line.
type jsonEncoder struct {
	columns []plan.Column
	keys    [][]byte // `{"a":`, `,"b":`, …
}

func newJSONEncoder(columns []plan.Column) *jsonEncoder {
	e := &jsonEncoder{columns: columns}
	for i, c := range columns {
		key := exec.AppendJSONString([]byte{"{,"[min(i, 1)]}, []byte(c.Name))
		e.keys = append(e.keys, append(key, ':'))
	}
	return e
}

func (e *jsonEncoder) head(dst []byte) []byte { return dst }

func (e *jsonEncoder) row(dst []byte, b *batch.Batch, row int) []byte {
	for i := range e.columns {
		dst = append(dst, e.keys[i]...)
		dst = exec.AppendJSON(dst, e.columns[i].Type, &b.Columns[i], row)
	}
	return append(dst, "}\n"...)
}

// A csvEncoder writes RFC 4180 records.
type csvEncoder struct {
	columns   []plan.Column
	delimiter byte
	header    bool
	null      string
	special   [256]bool // bytes for which a field is put in quotes: the delimiter, quotes, ends of lines
	every     [2]uint64 // eight delimiters, eight quotes
	whole     []bool    // per column: it holds whole numbers, none of which is put in quotes
}

func newCSVEncoder(table plan.Table) (*csvEncoder, error) {
	e := &csvEncoder{columns: table.Columns, delimiter: ',', null: table.Options["csv.null"]}
	if d, ok := table.Options["csv.delimiter"]; ok {
		if d == `\t` {
			d = "\t"
		}
		if len(d) != 1 || d == "\"" || d == "\n" || d == "\r" {
			return nil, fmt.Errorf("%w: option 'csv.delimiter': %q is not one character other than a quote or a line end", weir.ErrInvalid, d)
		}
		e.delimiter = d[0]
	}
	e.header = table.Options["csv.header"] == "true"
	e.every = [2]uint64{uint64(e.delimiter) * ones, '"' * ones}
	for _, c := range []byte{e.delimiter, '"', '\n', '\r'} {
		e.special[c] = true
	}
	for _, c := range []byte(e.null) {
		if e.special[c] {
			return nil, fmt.Errorf("%w: option 'csv.null': %q would have to be quoted", weir.ErrInvalid, e.null)
		}
	}
	plain := e.null == "" || strings.Trim(e.null, "-0123456789") != ""
	for _, c := range []byte("-0123456789") {
		plain = plain && !e.special[c]
	}
	for _, c := range e.columns {
		e.whole = append(e.whole, plain && (c.Type.Kind == expr.Int || c.Type.Kind == expr.BigInt))
	}
	return e, nil
}

func (e *csvEncoder) head(dst []byte) []byte {
	if !e.header {
		return dst
	}
	for i, c := range e.columns {
		if i > 0 {
			dst = append(dst, e.delimiter)
		}
		dst = e.appendField(dst, []byte(c.Name))
	}
	return append(dst, '\n')
}

func (e *csvEncoder) row(dst []byte, b *batch.Batch, row int) []byte {
	for i := range e.columns {
		if i > 0 {
			dst = append(dst, e.delimiter)
		}
		v, t := &b.Columns[i], e.columns[i].Type
		switch {
		case v.Null(row):
			dst = append(dst, e.null...)
		case e.whole[i]:
			dst = exec.AppendWhole(dst, v.Ints[row])
		case t.Kind == expr.String:
			dst = e.appendField(dst, v.Str(row))
		default:
			at := len(dst)
			if dst = exec.AppendText(dst, t, v, row); e.mustQuote(dst[at:]) { // the delimiter may be '-'
				end := len(dst)
				dst = append(dst, `""`...)
				copy(dst[at+1:], dst[at:end])
				dst[at] = '"'
			}
		}
	}
	return append(dst, '\n')
}

// mustQuote reports whether a field has to be in quotes: for what is in it, because
// it would be taken for NULL, or because a reader would drop it as a byte order mark.
func (e *csvEncoder) mustQuote(text []byte) bool {
	if string(text) == e.null || len(text) >= 3 && text[0] == 0xef && text[1] == 0xbb && text[2] == 0xbf {
		return true
	}
	for ; len(text) >= 8; text = text[8:] {
		if w := binary.LittleEndian.Uint64(text); has(w, e.every[0])|has(w, e.every[1])|has(w, '\n'*ones)|has(w, '\r'*ones) != 0 {
			return true
		}
	}
	for _, c := range text {
		if e.special[c] {
			return true
		}
	}
	return false
}

// has is not zero if and only if w has the byte of which pattern has eight.
func has(w, pattern uint64) uint64 {
	x := w ^ pattern
	return (x - ones) &^ x & (ones << 7)
}

const ones = 0x0101010101010101

func (e *csvEncoder) appendField(dst, text []byte) []byte {
	if !e.mustQuote(text) {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	for _, c := range text {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}
