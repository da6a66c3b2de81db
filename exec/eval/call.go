package eval

import (
	"fmt"
	"math"
	"slices"

	"weir/exec/batch"
	"weir/planner/expr"
)

// A compileFunc makes the node of a call of one function of the table.
type compileFunc func(e *expr.Expr, args []node, env Env) (node, error)

// functionNamed is the list of functions, in plain sight: by families, each of which
// lists its own.
func functionNamed(name string) compileFunc {
	for _, family := range [...]func(name string) compileFunc{textFunction, searchFunction, patternFunction, numberFunction, timeFunction} {
		if f := family(name); f != nil {
			return f
		}
	}
	return nil
}

func compileCall(e *expr.Expr, args []node, env Env) (node, error) {
	f := functionNamed(e.Func)
	if f == nil {
		return nil, fmt.Errorf("unknown function %q", e.Func)
	}
	return f(e, args, env)
}

// A verdict is what came of a row: "" a value, absent NULL, anything else the reason
// of a row error.
type verdict string

const absent verdict = "NULL"

// A kernel computes the given rows of out, which is resized and holds their NULLs, from
// the arguments: rows ascend, are selected and not NULL in any argument (of a call that is
// strict); nil means all of them. It stops at the first row whose verdict is a failure.
// The loops fill and write make one out of a function of a row.
type kernel func(out *batch.Vector, args []*batch.Vector, rows []int32) (row int, v verdict)

// A call node is a function that is NULL where one of its first arguments, or as a rule
// any, is.
type call struct {
	args    []node
	strict  int // the arguments that make it NULL
	kernel  kernel
	text    string
	vectors []*batch.Vector
	live    []int32
	out     batch.Vector
}

// newCall returns the node of a strict function.
func newCall(e *expr.Expr, args []node, k kernel) *call {
	n := &call{args: args, strict: len(args), kernel: k, text: describe(e), vectors: make([]*batch.Vector, len(args))}
	n.out.Physical = Physical(e.Type)
	return n
}

// strictly is the entry of a strict function with one kernel for arguments of these kinds.
func strictly(k kernel, kinds ...expr.Kind) compileFunc {
	return func(e *expr.Expr, args []node, _ Env) (node, error) {
		if err := checkKinds(e, kinds...); err != nil {
			return nil, err
		}
		return newCall(e, args, k), nil
	}
}

// anyOf is the entry of a function with several signatures.
func anyOf(signatures ...compileFunc) compileFunc {
	return func(e *expr.Expr, args []node, env Env) (n node, err error) {
		for _, f := range signatures {
			if n, err = f(e, args, env); err == nil {
				break
			}
		}
		return n, err
	}
}

// withDefault is the entry of a function whose n-th and last argument may be left out.
func withDefault(n int, value *expr.Expr, f compileFunc) compileFunc {
	return func(e *expr.Expr, args []node, env Env) (node, error) {
		if len(args) == n-1 {
			c, err := compileLiteral(value)
			if err != nil {
				return nil, err
			}
			whole := *e
			whole.Args = append(slices.Clone(e.Args), value)
			e, args = &whole, append(slices.Clone(args), c)
		}
		return f(e, args, env)
	}
}

// checkKinds refuses a call whose arguments are not of these kinds.
func checkKinds(e *expr.Expr, kinds ...expr.Kind) error {
	got := make([]expr.Kind, len(e.Args))
	types := make([]expr.Type, len(e.Args))
	for i, a := range e.Args {
		got[i], types[i] = a.Type.Kind, a.Type
	}
	if !slices.Equal(got, kinds) {
		return fmt.Errorf("%s of %v", e.Func, types)
	}
	return nil
}

func (n *call) eval(b *batch.Batch, rows []int32) (*batch.Vector, error) {
	for i, a := range n.args {
		v, err := a.eval(b, rows)
		if err != nil {
			return nil, err
		}
		n.vectors[i] = v
	}
	n.out.Resize(b.Len)
	meetAll(&n.out, n.vectors[:n.strict], b.Len)
	if n.out.Valid != nil {
		n.live = notNull(&n.out, b.Len, rows, n.live[:0])
		rows = n.live
	}
	if row, v := n.kernel(&n.out, n.vectors, rows); v != "" {
		return nil, &RowError{Row: row, Reason: string(v), Text: n.text}
	}
	return &n.out, nil
}

// meetAll makes NULL the rows of out that are NULL in any of the vectors.
func meetAll(out *batch.Vector, vectors []*batch.Vector, n int) {
	out.ClearValid()
	words := (n + 63) / 64
	for _, v := range vectors {
		switch {
		case v.Valid == nil:
		case out.Valid == nil:
			copy(out.MakeValid(n), v.Valid[:words])
		default:
			for i, w := range v.Valid[:words] {
				out.Valid[i] &= w
			}
		}
	}
}

// notNull appends to into those of the rows that are not NULL in v; the result is never nil.
func notNull(v *batch.Vector, size int, rows, into []int32) []int32 {
	from, n := len(into), count(size, rows)
	into = slices.Grow(into, n+1)[:from+n]
	for i := range n {
		into[from+i] = int32(at(rows, i))
	}
	return dropNulls(v, into, from)
}

// setNull makes a row of a vector of n rows NULL.
func setNull(v *batch.Vector, n, row int) {
	if v.Valid == nil {
		valid := v.MakeValid(n)
		for i := range valid {
			valid[i] = ^uint64(0)
		}
	}
	v.Valid[row>>6] &^= 1 << (row & 63)
}

// fill computes the rows of a vector of fixed width: to is the slice of out that holds
// its values.
func fill[T any](out *batch.Vector, to []T, rows []int32, f func(row int) (T, verdict)) (int, verdict) {
	for i := range count(len(to), rows) {
		row := at(rows, i)
		x, v := f(row)
		switch v {
		case "":
			to[row] = x
		case absent:
			setNull(out, len(to), row)
		default:
			return row, v
		}
	}
	return 0, ""
}

// maxString is the longest string that a function makes.
const maxString = 256 << 10

// write computes the rows of a vector of strings: f appends its string to dst. Rows that
// are not computed, or NULL, are empty.
func write(out *batch.Vector, rows []int32, f func(dst []byte, row int) ([]byte, verdict)) (int, verdict) {
	offsets, dst := out.Offsets, out.Bytes[:0]
	size, next := len(offsets)-1, 0 // rows before next are ended
	for i := range count(size, rows) {
		row, from := at(rows, i), len(dst)
		for ; next < row; next++ {
			offsets[next+1] = int32(from)
		}
		var v verdict
		if dst, v = f(dst, row); v == "" {
			v = checkLength(from, len(dst))
		}
		if v == absent {
			setNull(out, size, row)
			dst = dst[:from]
		} else if v != "" {
			out.Bytes = dst
			return row, v
		}
		offsets[row+1] = int32(len(dst))
		next = row + 1
	}
	for ; next < size; next++ {
		offsets[next+1] = int32(len(dst))
	}
	out.Bytes = dst
	return 0, ""
}

const tooLong verdict = "a string longer than 256 KiB"

func checkLength(from, to int) verdict {
	switch {
	case to-from > maxString:
		return tooLong
	case to > math.MaxInt32:
		return "the strings of a batch are longer than 2 GiB"
	}
	return ""
}
