package eval

import (
	"fmt"
	"math/bits"
	"slices"

	"weir/exec/batch"
	"weir/planner/expr"
)

// A Program is a compiled expression. It holds scratch memory: one goroutine at a
// time uses it.
type Program struct {
	root node
	pred filter // selects the rows for which root is true; nil unless it is BOOLEAN
	typ  expr.Type
}

// A node computes one vector for a batch.
type node interface {
	// eval computes the given rows; nil means all rows of the batch. The vector has at
	// least b.Len rows and is valid until the next call. All nodes but columns and
	// constants own the vector they return.
	eval(b *batch.Batch, rows []int32) (*batch.Vector, error)
}

// A filter finds the rows for which a BOOLEAN is true.
type filter interface {
	// choose appends to out, in order, those of the given rows (nil: all) for which the
	// condition is true. out shares no memory with rows.
	choose(b *batch.Batch, rows, out []int32) ([]int32, error)
}

// A RowError says why a row has no value.
type RowError struct {
	Row    int    // index into the batch's columns
	Reason string // "BIGINT overflow", "division by zero"
	Text   string // the SQL that failed
}

// Error gives the reason and the SQL; callers add where the row came from.
func (e *RowError) Error() string { return fmt.Sprintf("%s in %s", e.Reason, e.Text) }

// Type returns the type of the expression.
func (p *Program) Type() expr.Type { return p.typ }

// Column returns the index of the input column that the program merely passes on;
// ok is false for any other program.
func (p *Program) Column() (index int, ok bool) {
	c, ok := p.root.(*column)
	if !ok {
		return 0, false
	}
	return c.index, true
}

// Eval computes the expression for the selected rows of b. Afterwards out has b.Len
// rows, aligned with the columns of b: rows that are not selected hold anything. out
// must not be a column of b.
func (p *Program) Eval(b *batch.Batch, out *batch.Vector) error {
	v, err := p.root.eval(b, b.Sel)
	if err != nil {
		return err
	}
	switch p.root.(type) {
	case *column:
		out.CopyFrom(v)
		return nil // its NULLs are zero already
	case *constant:
		out.CopyFrom(v)
		truncate(out, b.Len)
		return nil
	}
	*out, *v = *v, *out // the node takes the old vector's storage
	v.Physical = out.Physical
	truncate(out, b.Len)
	zeroNulls(out, b.Len)
	return nil
}

// Select returns the selected rows of b for which the predicate is true, in the
// memory of sel, which must not be that of b.Sel.
func (p *Program) Select(b *batch.Batch, sel []int32) ([]int32, error) {
	if p.pred == nil {
		return nil, fmt.Errorf("select by an expression of type %v", p.typ)
	}
	sel = slices.Grow(sel[:0], b.Rows())
	sel, err := p.pred.choose(b, b.Sel, sel)
	if sel == nil {
		sel = []int32{} // nil would select everything
	}
	return sel, err
}

// Physical returns the layout of vectors of a type. A bare NULL is laid out as a BOOLEAN.
func Physical(t expr.Type) batch.Physical {
	switch t.Kind {
	case expr.Int, expr.BigInt, expr.TimestampLTZ, expr.Date, expr.Timestamp, expr.Interval, expr.MonthInterval:
		return batch.Ints
	case expr.Double:
		return batch.Floats
	case expr.Decimal:
		return batch.Decimals
	case expr.String, expr.Bytes:
		return batch.Strings
	}
	return batch.Bools
}

// truncate drops the rows from n on.
func truncate(v *batch.Vector, n int) {
	if v.Len() <= n {
		return
	}
	switch v.Physical {
	case batch.Bools:
		v.Bools = v.Bools[:n]
	case batch.Ints:
		v.Ints = v.Ints[:n]
	case batch.Floats:
		v.Floats = v.Floats[:n]
	case batch.Decimals:
		v.Decimals = v.Decimals[:n]
	case batch.Strings:
		v.Offsets = v.Offsets[:n+1]
		v.Bytes = v.Bytes[:v.Offsets[n]]
	}
}

// zeroNulls sets the values of NULL rows to zero (E3). Strings of NULL rows are empty
// as they are (E6).
func zeroNulls(v *batch.Vector, n int) {
	if v.Valid == nil {
		return
	}
	for w := range (n + 63) / 64 {
		for null := ^v.Valid[w]; null != 0; null &= null - 1 {
			i := w<<6 | bits.TrailingZeros64(null)
			if i >= n {
				break
			}
			switch v.Physical {
			case batch.Bools:
				v.Bools[i] = false
			case batch.Ints:
				v.Ints[i] = 0
			case batch.Floats:
				v.Floats[i] = 0
			case batch.Decimals:
				v.Decimals[i] = batch.Int128{}
			}
		}
	}
}

// count returns the number of rows that rows stands for in a batch of n.
func count(n int, rows []int32) int {
	if rows == nil {
		return n
	}
	return len(rows)
}

// at returns the i-th of the rows.
func at(rows []int32, i int) int {
	if rows == nil {
		return i
	}
	return int(rows[i])
}
