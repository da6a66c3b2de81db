package eval

import (
	"fmt"
	"slices"

	"weir/exec/batch"
	"weir/planner/expr"
)

// A conditional node is CASE: each value is computed for the rows that take it, and each
// condition for those that none before it took (E2).
type conditional struct {
	conditions  []filter
	values      []node // one per condition, and that of ELSE
	wanted      []filter
	taken, rest []int32
	keep        []bool
	merged      assembly
}

func compileCase(e *expr.Expr, args []node) (node, error) {
	if len(args) < 3 || len(args)%2 == 0 {
		return nil, fmt.Errorf("%q has %d operands", e.Op, len(args))
	}
	n := &conditional{}
	for i := 0; i < len(args)-1; i += 2 {
		if k := e.Args[i].Type.Kind; k != expr.Boolean && k != expr.Null {
			return nil, fmt.Errorf("%q by a %v", e.Op, e.Args[i].Type)
		}
		n.conditions = append(n.conditions, filterOf(args[i]))
	}
	for i := 1; i < len(args); i += 2 {
		value, err := branchOf(e, e.Args[i], args[i])
		if err != nil {
			return nil, err
		}
		n.values = append(n.values, value)
	}
	value, err := branchOf(e, e.Args[len(args)-1], args[len(args)-1])
	if err != nil {
		return nil, err
	}
	n.values = append(n.values, value)
	n.merged.out.Physical = Physical(e.Type)
	return n, nil
}

// branchOf checks that a value of CASE or COALESCE has the type of the whole.
func branchOf(e, value *expr.Expr, n node) (node, error) {
	switch {
	case value.Type.Kind == expr.Null:
		return &constant{physical: Physical(e.Type), null: true}, nil
	case value.Type.Kind != e.Type.Kind || value.Type.Scale != e.Type.Scale:
		return nil, fmt.Errorf("%q of %v giving %v", e.Op, value.Type, e.Type)
	}
	return n, nil
}

func (n *conditional) eval(b *batch.Batch, rows []int32) (*batch.Vector, error) {
	n.merged.begin(b.Len)
	rest := rows
	for i, value := range n.values {
		taken, err := n.take(i, b, rest)
		if err != nil {
			return nil, err
		}
		if count(b.Len, taken) > 0 {
			v, err := value.eval(b, taken)
			if err != nil {
				return nil, err
			}
			n.merged.add(v, b.Len, taken)
		}
		if i < len(n.conditions) {
			if n.rest = subtract(n.rest[:0], b.Len, rest, taken); len(n.rest) == 0 {
				break
			}
			rest = n.rest
		}
	}
	return n.merged.end(b.Len), nil
}

// choose asks for the truth of values too, and not for their NULLs.
func (n *conditional) choose(b *batch.Batch, rows, out []int32) ([]int32, error) {
	if n.wanted == nil {
		for _, value := range n.values {
			n.wanted = append(n.wanted, filterOf(value))
		}
	}
	n.keep = slices.Grow(n.keep[:0], b.Len)[:b.Len]
	clear(n.keep)
	rest := rows
	for i, wanted := range n.wanted {
		taken, err := n.take(i, b, rest)
		if err != nil {
			return out, err
		}
		if count(b.Len, taken) > 0 {
			from := len(out)
			if out, err = wanted.choose(b, taken, out); err != nil {
				return out, err
			}
			for _, row := range out[from:] {
				n.keep[row] = true
			}
			out = out[:from]
		}
		if i < len(n.conditions) {
			if n.rest = subtract(n.rest[:0], b.Len, rest, taken); len(n.rest) == 0 {
				break
			}
			rest = n.rest
		}
	}
	for i := range count(b.Len, rows) {
		if row := at(rows, i); n.keep[row] {
			out = append(out, int32(row))
		}
	}
	return out, nil
}

// take returns those of the rows that take value i; it is nil only where all rows of the
// batch do.
func (n *conditional) take(i int, b *batch.Batch, rows []int32) ([]int32, error) {
	if i == len(n.conditions) {
		return rows, nil
	}
	if n.taken == nil {
		n.taken = make([]int32, 0, batch.Target)
	}
	taken, err := n.conditions[i].choose(b, rows, n.taken[:0])
	n.taken = taken
	return taken, err
}

// A firstPresent node is COALESCE: each argument is computed for the rows for which those
// before it are NULL (E2).
type firstPresent struct {
	args   []node
	open   []int32 // NULL so far
	taken  []int32
	merged assembly
}

func compileCoalesce(e *expr.Expr, args []node) (node, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("%q has no operands", e.Op)
	}
	n := &firstPresent{}
	for i, arg := range args {
		value, err := branchOf(e, e.Args[i], arg)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, value)
	}
	n.merged.out.Physical = Physical(e.Type)
	return n, nil
}

func (n *firstPresent) eval(b *batch.Batch, rows []int32) (*batch.Vector, error) {
	n.merged.begin(b.Len)
	open := rows
	for i, arg := range n.args {
		v, err := arg.eval(b, open)
		if err != nil {
			return nil, err
		}
		if v.Valid == nil || i == len(n.args)-1 {
			n.merged.add(v, b.Len, open)
			break
		}
		n.taken = notNull(v, b.Len, open, n.taken[:0])
		n.merged.add(v, b.Len, n.taken)
		if n.open = subtract(n.open[:0], b.Len, open, n.taken); len(n.open) == 0 {
			break
		}
		open = n.open
	}
	return n.merged.end(b.Len), nil
}

// subtract appends to into the rows that are not among those taken, some of the same in
// the same order; into may be rows[:0]. The result is never nil.
func subtract(into []int32, size int, rows, taken []int32) []int32 {
	n, k, to := count(size, rows), 0, len(into)
	into = slices.Grow(into, n+1)[:to+n]
	for i := range n {
		row, next := int32(at(rows, i)), int32(-1)
		if k < len(taken) {
			next = taken[k]
		}
		hit := one(row == next)
		into[to] = row
		to, k = to+1-hit, k+hit
	}
	return into[:to]
}

// An assembly makes one vector of the rows of several. What add was given must stay until
// end: strings are copied there, in the order of the rows.
type assembly struct {
	out     batch.Vector
	vectors []*batch.Vector
	from    []int32 // strings: 1 + the index of the vector that a row comes from
}

func (m *assembly) begin(n int) {
	m.out.Resize(n)
	m.vectors = m.vectors[:0]
	if m.out.Physical == batch.Strings {
		m.from = slices.Grow(m.from[:0], n)[:n]
		clear(m.from)
	}
}

// add takes the given rows (nil: all) from v.
func (m *assembly) add(v *batch.Vector, n int, rows []int32) {
	m.vectors = append(m.vectors, v)
	switch m.out.Physical {
	case batch.Bools:
		scatter(m.out.Bools, v.Bools, rows)
	case batch.Ints:
		scatter(m.out.Ints, v.Ints, rows)
	case batch.Floats:
		scatter(m.out.Floats, v.Floats, rows)
	case batch.Decimals:
		scatter(m.out.Decimals, v.Decimals, rows)
	case batch.Strings:
		for i := range count(n, rows) {
			m.from[at(rows, i)] = int32(len(m.vectors))
		}
	}
	if v.Valid == nil {
		return
	}
	for i := range count(n, rows) {
		if row := at(rows, i); v.Null(row) {
			setNull(&m.out, n, row)
		}
	}
}

func scatter[T any](to, from []T, rows []int32) {
	if rows == nil {
		copy(to, from)
		return
	}
	for _, row := range rows {
		to[row] = from[row]
	}
}

func (m *assembly) end(n int) *batch.Vector {
	if m.out.Physical == batch.Strings {
		dst := m.out.Bytes[:0]
		for row, from := range m.from[:n] {
			if from > 0 {
				dst = append(dst, m.vectors[from-1].Str(row)...)
			}
			m.out.Offsets[row+1] = int32(len(dst))
		}
		m.out.Bytes = dst
	}
	return &m.out
}
