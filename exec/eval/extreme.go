package eval

import (
	"bytes"
	"fmt"
	"slices"

	"weir/exec/batch"
	"weir/planner/expr"
)

// An extreme node is GREATEST or LEAST: the greatest or least of the arguments that are
// not NULL, in PostgreSQL's order; of equal ones the first.
type extreme struct {
	args    []node
	text    string
	sign    int // of the comparison with the best so far at which an argument replaces it
	vectors []*batch.Vector
	best    []int32 // per row the argument that it takes; -1: all are NULL
	out     batch.Vector
}

func compileExtreme(e *expr.Expr, args []node, _ Env) (node, error) {
	n := &extreme{sign: -1, text: describe(e)}
	if e.Func == "greatest" {
		n.sign = 1
	}
	for i, a := range e.Args {
		switch {
		case a.Type.Kind == expr.Null:
			continue
		case a.Type.Kind != e.Type.Kind || a.Type.Scale != e.Type.Scale:
			return nil, fmt.Errorf("%s of %v giving %v", e.Func, a.Type, e.Type)
		}
		n.args = append(n.args, args[i])
	}
	if len(n.args) == 0 {
		return &constant{physical: Physical(e.Type), null: true}, nil
	}
	n.vectors = make([]*batch.Vector, len(n.args))
	n.out.Physical = Physical(e.Type)
	return n, nil
}

func (n *extreme) eval(b *batch.Batch, rows []int32) (*batch.Vector, error) {
	for i, a := range n.args {
		var err error
		if n.vectors[i], err = a.eval(b, rows); err != nil {
			return nil, err
		}
	}
	n.out.Resize(b.Len)
	n.pick(b.Len, rows)
	if row, v := takeBest(&n.out, n.vectors, n.best, rows); v != "" {
		return nil, &RowError{Row: row, Reason: string(v), Text: n.text}
	}
	for i := range count(b.Len, rows) {
		if row := at(rows, i); n.best[row] < 0 {
			setNull(&n.out, b.Len, row)
		}
	}
	return &n.out, nil
}

// pick finds for each row the argument that it takes.
func (n *extreme) pick(size int, rows []int32) {
	n.best = slices.Grow(n.best[:0], size)[:size]
	for i := range n.best {
		n.best[i] = -1
	}
	for arg, v := range n.vectors {
		for i := range count(size, rows) {
			row := at(rows, i)
			if v.Null(row) {
				continue
			}
			if best := n.best[row]; best < 0 || orderAt(v, n.vectors[best], row) == n.sign {
				n.best[row] = int32(arg)
			}
		}
	}
}

// orderAt compares two vectors of one layout at a row, as PostgreSQL does: -1, 0 or 1.
func orderAt(a, b *batch.Vector, row int) int {
	switch a.Physical {
	case batch.Bools:
		return truth(a.Bools[row]) - truth(b.Bools[row])
	case batch.Ints:
		return compareInts(a.Ints[row], b.Ints[row])
	case batch.Floats:
		return compareInts(int64(batch.FloatOrder(a.Floats[row])), int64(batch.FloatOrder(b.Floats[row])))
	case batch.Decimals:
		return a.Decimals[row].Cmp(b.Decimals[row])
	}
	return bytes.Compare(a.Str(row), b.Str(row))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func compareInts(a, b int64) int { return truth(a > b) - truth(a < b) }

// takeBest copies into out, of rows, the value of the vector that best names.
func takeBest(out *batch.Vector, vectors []*batch.Vector, best, rows []int32) (int, verdict) {
	if out.Physical == batch.Strings {
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			if best[row] < 0 {
				return dst, ""
			}
			return append(dst, vectors[best[row]].Str(row)...), ""
		})
	}
	for i := range count(len(best), rows) {
		row := at(rows, i)
		if best[row] < 0 {
			continue
		}
		switch v := vectors[best[row]]; out.Physical {
		case batch.Bools:
			out.Bools[row] = v.Bools[row]
		case batch.Ints:
			out.Ints[row] = v.Ints[row]
		case batch.Floats:
			out.Floats[row] = v.Floats[row]
		case batch.Decimals:
			out.Decimals[row] = v.Decimals[row]
		}
	}
	return 0, ""
}
