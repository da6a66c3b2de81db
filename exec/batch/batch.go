package batch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A RowKind says what a row of a changelog does to the result.
type RowKind uint8

// The kinds of changelog rows; their names are +I, -U, +U and -D.
const (
	Insert       RowKind = iota // +I
	UpdateBefore                // -U: the old row of an update
	UpdateAfter                 // +U: the new row of an update
	Delete                      // -D
)

// String gives "+I", "-U", "+U" or "-D".
func (k RowKind) String() string { return [...]string{"+I", "-U", "+U", "-D"}[k] }

// Target is the number of rows that a full batch holds: column vectors of this
// length stay within the second-level cache.
const Target = 1024

// A Batch is a set of rows in columns. One goroutine owns it at a time; handing it
// on hands over the ownership, and the last owner recycles it with Release.
type Batch struct {
	// Columns hold Len rows each.
	Columns []Vector
	// Len is the number of rows in the columns, selected or not; a batch may have
	// rows and no columns (COUNT(*) reads none).
	Len int
	// Sel lists the selected rows in ascending order; nil selects all Len rows.
	Sel []int32
	// Kinds holds each row's kind; nil: all are Insert.
	Kinds []RowKind
	// Origin says where the rows come from, for row errors; nil when they were computed
	// from many.
	Origin *Origin

	pool       *Pool     // where Release puts it; nil: nowhere
	spareKinds []RowKind // storage for Kinds while it is nil
	selMemory  [2][]int32
	selTurn    int // the half of selMemory that Sel may lie in
}

// An Origin locates the rows of a batch in their source.
type Origin struct {
	Table   string
	Path    string  // file, or "" where the source has none
	Offsets []int64 // per row: byte offset of its record in Path, or its number in the source
}

// New returns an empty batch with one column per kind and room for capacity rows.
func New(kinds []Physical, capacity int) *Batch {
	b := &Batch{Columns: make([]Vector, len(kinds))}
	for i, k := range kinds {
		b.Columns[i].Physical = k
		b.Columns[i].Grow(capacity)
	}
	return b
}

// Rows returns the number of selected rows.
func (b *Batch) Rows() int {
	if b.Sel != nil {
		return len(b.Sel)
	}
	return b.Len
}

// Row returns the index into the columns of the i-th selected row.
func (b *Batch) Row(i int) int {
	if b.Sel != nil {
		return int(b.Sel[i])
	}
	return i
}

// Kind returns the kind of the row at index row of the columns.
func (b *Batch) Kind(row int) RowKind {
	if b.Kinds == nil {
		return Insert
	}
	return b.Kinds[row]
}

// Reset empties the batch and keeps its columns' storage.
func (b *Batch) Reset() {
	for i := range b.Columns {
		b.Columns[i].Reset()
	}
	b.Len, b.Sel, b.Origin = 0, nil, nil
	b.dropKinds()
}

// Release gives the batch back to the pool that it came from, if any. The caller
// must not touch it, nor any slice of it, afterwards.
func (b *Batch) Release() {
	if b.pool != nil {
		b.pool.Put(b)
	}
}

// EndRow completes one row of the given kind, after one value was appended to every column.
func (b *Batch) EndRow(kind RowKind) {
	if kind != Insert && b.Kinds == nil {
		b.makeKinds(b.Len)
	}
	if b.Kinds != nil {
		b.Kinds = append(b.Kinds, kind)
	}
	b.Len++
}

// AppendRow copies one row of src, at index row of its columns, to the end of b.
// Both have the same layouts; the origin of the row is not kept.
func (b *Batch) AppendRow(src *Batch, row int) {
	for i := range b.Columns {
		b.Columns[i].AppendFrom(&src.Columns[i], row)
	}
	b.EndRow(src.Kind(row))
}

// AppendRows copies rows of src, by their indexes into its columns, to the end of b.
func (b *Batch) AppendRows(src *Batch, rows []int32) {
	for i := range b.Columns {
		Gather(&b.Columns[i], &src.Columns[i], rows)
	}
	if src.Kinds == nil && b.Kinds == nil {
		b.Len += len(rows)
		return
	}
	for _, r := range rows {
		b.EndRow(src.Kind(int(r)))
	}
}

// AppendLocated is AppendRows that keeps the origin of the rows. false: rows of another
// file, or of none, are in b already, and nothing is appended.
func (b *Batch) AppendLocated(src *Batch, rows []int32) bool {
	if b.Len > 0 && !b.Origin.sameFile(src.Origin) {
		return false
	}
	if src.Origin != nil {
		if b.Origin == nil {
			b.Origin = &Origin{Table: src.Origin.Table, Path: src.Origin.Path, Offsets: make([]int64, 0, max(len(rows), Target))}
		}
		for _, r := range rows {
			b.Origin.Offsets = append(b.Origin.Offsets, src.Origin.Offsets[r])
		}
	}
	b.AppendRows(src, rows)
	return true
}

// sameFile reports whether rows come from the same file, or both from none.
func (o *Origin) sameFile(p *Origin) bool {
	if o == nil || p == nil {
		return o == p
	}
	return o.Table == p.Table && o.Path == p.Path
}

// Compact drops the rows that are not selected: afterwards Sel is nil.
func (b *Batch) Compact() {
	if b.Sel == nil {
		return
	}
	for i := range b.Columns {
		b.Columns[i].compact(b.Sel)
	}
	if b.Kinds != nil {
		for i, r := range b.Sel {
			b.Kinds[i] = b.Kinds[r]
		}
		b.Kinds = b.Kinds[:len(b.Sel)]
	}
	if b.Origin != nil {
		kept := *b.Origin // an Origin may be shared
		kept.Offsets = make([]int64, len(b.Sel))
		for i, r := range b.Sel {
			kept.Offsets[i] = b.Origin.Offsets[r]
		}
		b.Origin = &kept
	}
	b.Len, b.Sel = len(b.Sel), nil
}

func (b *Batch) makeKinds(n int) {
	b.Kinds = slices.Grow(b.spareKinds[:0], max(n, 1))[:n]
	b.spareKinds = nil
	clear(b.Kinds)
}

func (b *Batch) dropKinds() {
	if b.Kinds != nil {
		b.spareKinds, b.Kinds = b.Kinds[:0], nil
	}
}

// Equal reports whether the selected rows of both batches are the same: layouts,
// values bit by bit, NULLs and kinds, in order. Origins do not count.
func (b *Batch) Equal(o *Batch) bool {
	if b == nil || o == nil {
		return b == o
	}
	if len(b.Columns) != len(o.Columns) || b.Rows() != o.Rows() {
		return false
	}
	for i := range b.Rows() {
		if b.Kind(b.Row(i)) != o.Kind(o.Row(i)) {
			return false
		}
	}
	for c := range b.Columns {
		if b.Columns[c].Physical != o.Columns[c].Physical {
			return false
		}
		for i := range b.Rows() {
			if !sameValue(&b.Columns[c], b.Row(i), &o.Columns[c], o.Row(i)) {
				return false
			}
		}
	}
	return true
}

// String lists the selected rows, one a line ("+U 7|buy|NULL"), for tests and logs;
// decimals show their unscaled digits.
func (b *Batch) String() string {
	var s strings.Builder
	for i := range b.Rows() {
		row := b.Row(i)
		s.WriteString(b.Kind(row).String())
		for c := range b.Columns {
			s.WriteByte(" |"[min(c, 1)])
			s.WriteString(b.Columns[c].text(row))
		}
		s.WriteByte('\n')
	}
	return s.String()
}

func (v *Vector) text(i int) string {
	if v.Null(i) {
		return "NULL"
	}
	switch v.Physical {
	case Bools:
		return fmt.Sprint(v.Bools[i])
	case Ints:
		return fmt.Sprint(v.Ints[i])
	case Floats:
		return fmt.Sprint(v.Floats[i])
	case Decimals:
		return v.Decimals[i].Decimal(0)
	default:
		return string(v.Str(i))
	}
}

func sameValue(a *Vector, i int, b *Vector, j int) bool {
	if a.Null(i) || b.Null(j) {
		return a.Null(i) == b.Null(j)
	}
	switch a.Physical {
	case Bools:
		return a.Bools[i] == b.Bools[j]
	case Ints:
		return a.Ints[i] == b.Ints[j]
	case Floats:
		return floatBits(a.Floats[i]) == floatBits(b.Floats[j])
	case Decimals:
		return a.Decimals[i] == b.Decimals[j]
	default:
		return bytes.Equal(a.Str(i), b.Str(j))
	}
}
