package eval

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"weir/exec/batch"
	"weir/planner/expr"
)

// A column passes on a column of the batch.
type column struct {
	index    int
	physical batch.Physical
}

func (c *column) eval(b *batch.Batch, _ []int32) (*batch.Vector, error) {
	if c.index >= len(b.Columns) || b.Columns[c.index].Physical != c.physical {
		panic(fmt.Sprintf("eval: column %d of layout %d is not in the batch", c.index, c.physical))
	}
	return &b.Columns[c.index], nil
}

// A constant is one value, or NULL, for all rows.
type constant struct {
	physical batch.Physical
	null     bool
	value    batch.Vector // one row, unless null
	rows     batch.Vector // the value repeated; it only grows
}

func (c *constant) eval(b *batch.Batch, _ []int32) (*batch.Vector, error) {
	if c.rows.Len() >= b.Len && c.rows.Physical != 0 {
		return &c.rows, nil
	}
	n := max(b.Len, batch.Target)
	c.rows = batch.Vector{Physical: c.physical}
	c.rows.Grow(n)
	for range n {
		if c.null {
			c.rows.AppendNull()
		} else {
			c.rows.AppendFrom(&c.value, 0)
		}
	}
	return &c.rows, nil
}

// appendLiteral appends the value of a literal that is not NULL.
func appendLiteral(v *batch.Vector, e *expr.Expr) error {
	l := e.Literal
	switch e.Type.Kind {
	case expr.Boolean:
		v.AppendBool(l.Bool)
	case expr.Int, expr.BigInt, expr.TimestampLTZ, expr.Date, expr.Timestamp, expr.Interval, expr.MonthInterval:
		v.AppendInt(l.Int)
	case expr.Double:
		f, err := strconv.ParseFloat(l.Double, 64)
		if err != nil {
			return fmt.Errorf("literal %q: %w", l.Double, err)
		}
		v.AppendFloat(f)
	case expr.Decimal:
		d, err := batch.ParseDecimal(l.Decimal, e.Type.Scale)
		if err != nil {
			return fmt.Errorf("literal: %w", err)
		}
		v.AppendDecimal(d)
	case expr.String:
		v.AppendString(l.String)
	case expr.Bytes:
		x, err := hex.DecodeString(l.String)
		if err != nil {
			return fmt.Errorf("literal: %w", err)
		}
		v.AppendBytes(x)
	default:
		return fmt.Errorf("literal of type %v", e.Type)
	}
	return nil
}
