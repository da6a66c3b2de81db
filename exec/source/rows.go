package source

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"weir"
	"weir/exec/batch"
	"weir/exec/eval"
	"weir/planner/expr"
	"weir/planner/plan"
)

const (
	// maxBatchBytes ends a batch early when its texts have grown this long, so that an
	// encoded batch stays a small frame.
	maxBatchBytes = 160 << 10
	// maxRowBytes is the longest row that travels: the sum of its texts that are read.
	maxRowBytes = 512 << 10
)

// A column is one column that the query reads, and its values in the batch being
// filled. Its slices are those of the batch's vector, at full length.
type column struct {
	name      string
	typ       expr.Type
	physical  batch.Physical
	notNull   bool
	low, high int64 // range of INT and BIGINT; of the unscaled values of a DECIMAL, as far as it is within 64 bits

	bools    []bool
	ints     []int64
	floats   []float64
	decimals []batch.Int128
	offsets  []int32
	bytes    []byte  // storage; the text of row i ends at offsets[i+1]
	nulls    []int32 // rows that are NULL, ascending
	seen     int64   // the last record, counted from 1, that had this column (JSON)
}

// rows is a batch being filled. A decoder writes row n of every column, then calls
// end; nothing is allocated per row.
type rows struct {
	columns []column
	n       int    // rows completed
	limit   int    // no more than this many
	bytes   int    // length of all texts
	rowAt   int    // bytes when the row began
	record  int64  // records begun, of all batches (JSON)
	scratch []byte // a text without its escapes

	pool    *batch.Pool
	table   string
	batch   *batch.Batch
	offsets []int64 // where each row's record begins
}

// newRows returns the rows of a source's output: the columns that spec reads.
func newRows(spec *plan.SourceSpec) (*rows, error) {
	r := &rows{columns: make([]column, len(spec.Read)), table: spec.Table.Name}
	kinds := make([]batch.Physical, len(spec.Read))
	for i, index := range spec.Read {
		if index < 0 || index >= len(spec.Table.Columns) {
			return nil, fmt.Errorf("%w: table %s has no column number %d", weir.ErrInvalid, spec.Table.Name, index)
		}
		def := spec.Table.Columns[index]
		if def.Type.Kind == expr.Null {
			return nil, fmt.Errorf("%w: table %s, column %s: a source cannot read %v", weir.ErrInvalid, spec.Table.Name, def.Name, def.Type)
		}
		kinds[i] = eval.Physical(def.Type)
		c := &r.columns[i]
		c.name, c.typ, c.physical, c.notNull = def.Name, def.Type, kinds[i], def.NotNull
		c.low, c.high = math.MinInt64, math.MaxInt64
		switch def.Type.Kind {
		case expr.Int:
			c.low, c.high = math.MinInt32, math.MaxInt32
		case expr.Decimal:
			c.high, _ = batch.Pow10(min(def.Type.Precision, 18)).Int64()
			c.high--
			c.low = -c.high
		}
	}
	r.pool = batch.NewPool(kinds, batch.Target)
	return r, nil
}

// begin starts a batch of at most limit rows.
func (r *rows) begin(limit int) {
	r.n, r.limit, r.bytes, r.rowAt = 0, min(limit, batch.Target), 0, 0
	if r.batch != nil {
		return // begun before, and still empty
	}
	r.batch = r.pool.Get()
	r.offsets = make([]int64, batch.Target)
	for i := range r.columns {
		c, v := &r.columns[i], &r.batch.Columns[i]
		v.Resize(batch.Target)
		c.bools, c.ints, c.floats, c.decimals, c.offsets = v.Bools, v.Ints, v.Floats, v.Decimals, v.Offsets
		c.bytes = v.Bytes[:cap(v.Bytes)]
		c.nulls = c.nulls[:0]
	}
}

// full reports whether the batch takes no more rows.
func (r *rows) full() bool { return r.n >= r.limit || r.bytes >= maxBatchBytes }

// end completes a row whose record begins at offset.
func (r *rows) end(offset int64) *fault {
	if r.bytes-r.rowAt > maxRowBytes {
		return &fault{reason: fmt.Sprintf("the row has %d bytes of text, more than the %d that may travel between workers", r.bytes-r.rowAt, maxRowBytes)}
	}
	r.offsets[r.n] = offset
	r.n++
	r.rowAt = r.bytes
	return nil
}

// finish hands the batch over, with its origin in path; nil when it has no rows.
func (r *rows) finish(path string) *batch.Batch {
	if r.n == 0 {
		return nil
	}
	b, n := r.batch, r.n
	for i := range r.columns {
		r.columns[i].finish(&b.Columns[i], n)
	}
	b.Len = n
	b.Origin = &batch.Origin{Table: r.table, Path: path, Offsets: r.offsets[:n]}
	r.batch, r.offsets = nil, nil
	return b
}

func (c *column) finish(v *batch.Vector, n int) {
	switch v.Physical {
	case batch.Bools:
		v.Bools = c.bools[:n]
	case batch.Ints:
		v.Ints = c.ints[:n]
	case batch.Floats:
		v.Floats = c.floats[:n]
	case batch.Decimals:
		v.Decimals = c.decimals[:n]
	case batch.Strings:
		v.Offsets, v.Bytes = c.offsets[:n+1], c.bytes[:c.offsets[n]]
	}
	if len(c.nulls) == 0 {
		return
	}
	valid := v.MakeValid(n)
	for i := range valid {
		valid[i] = ^uint64(0)
	}
	for _, row := range c.nulls {
		valid[row>>6] &^= 1 << (row & 63)
	}
}

// setNull makes row n of the column NULL.
func (r *rows) setNull(c *column, why string) *fault {
	if c.notNull {
		return c.isNull(why)
	}
	c.nulls = append(c.nulls, int32(r.n))
	c.setZero(r.n)
	return nil
}

// unset takes back the value that row n had before: a later one of the same name wins.
func (r *rows) unset(c *column) {
	if k := len(c.nulls); k > 0 && int(c.nulls[k-1]) == r.n {
		c.nulls = c.nulls[:k-1]
		return
	}
	if c.physical == batch.Strings {
		r.bytes -= int(c.offsets[r.n+1] - c.offsets[r.n])
	}
}

// setText makes b[from:to] row n of a STRING column. b is readable up to pad behind to.
func (r *rows) setText(c *column, b []byte, from, to int) {
	at, n := int(c.offsets[r.n]), to-from
	if at+n+8 > len(c.bytes) {
		c.grow(at, n+8)
	}
	if n <= 8 {
		binary.LittleEndian.PutUint64(c.bytes[at:], load(b, from))
	} else {
		copy(c.bytes[at:], b[from:to])
	}
	c.offsets[r.n+1] = int32(at + n)
	r.bytes += n
}

func (c *column) grow(used, more int) {
	bigger := make([]byte, max(2*len(c.bytes), used+more, 4096))
	copy(bigger, c.bytes[:used])
	c.bytes = bigger
}

// setChecked is setText for a text that may hold invalid UTF-8.
func (r *rows) setChecked(c *column, b []byte, from, to int) *fault {
	if !utf8.Valid(b[from:to]) {
		return &fault{column: c.name, reason: quote(b[from:to]) + " is not valid UTF-8"}
	}
	r.setText(c, b, from, to)
	return nil
}

// scanNumber makes the plain number at data[p:] row n of a column of whole numbers or decimals;
// ok is false where it is none, or out of range, and whoever calls looks closer.
func (r *rows) scanNumber(c *column, data []byte, p int) (end int, ok bool) {
	var v int64
	if c.physical == batch.Decimals {
		if v, end, ok = scanDecimal(data, p, c.typ.Scale, false); ok && v >= c.low && v <= c.high {
			c.decimals[r.n] = batch.Int128Of(v)
			return end, true
		}
	} else if v, end, ok = scanInt(data, p, false); ok && v >= c.low && v <= c.high {
		c.ints[r.n] = v
		return end, true
	}
	return end, false
}

// setNumber makes a number, given as text, row n of a numeric column; quoted is how
// errors show it.
func (r *rows) setNumber(c *column, text []byte, quoted func([]byte) string) *fault {
	n, ok := parseNumeral(text)
	if !ok {
		return c.notA(quoted(text), "it is not a number")
	}
	switch c.typ.Kind {
	case expr.Double:
		f, ok := parseFloat(text)
		if !ok {
			return c.notA(quoted(text), "it is out of range")
		}
		c.floats[r.n] = f
	case expr.Decimal:
		d, fit := n.decimal(c.typ.Scale)
		switch {
		case fit == batch.Inexact:
			return c.notA(quoted(text), fmt.Sprintf("it has more than %d digits behind the point", c.typ.Scale))
		case fit == batch.TooLarge || !d.Fits(c.typ.Precision):
			return c.notA(quoted(text), fmt.Sprintf("it has more than %d digits before the point", c.typ.Precision-c.typ.Scale))
		}
		c.decimals[r.n] = d
	default:
		d, fit := n.decimal(0)
		if fit == batch.Inexact {
			return c.notA(quoted(text), "it has a fraction")
		}
		v, ok := d.Int64()
		if !ok || fit == batch.TooLarge || v < c.low || v > c.high {
			return c.notA(quoted(text), "it is out of range")
		}
		c.ints[r.n] = v
	}
	return nil
}
