package planner

import (
	"slices"

	"weir/planner/expr"
)

// eachColumn calls f for every column that e, which may be nil, names.
func eachColumn(e *expr.Expr, f func(i int)) {
	if e == nil {
		return
	}
	if e.Op == expr.OpColumn {
		f(e.Column)
	}
	for _, a := range e.Args {
		eachColumn(a, f)
	}
}

// eachComputed calls f for every column whose value e needs for each row, whatever the
// values of others are: not those behind a condition.
func eachComputed(e *expr.Expr, f func(i int)) {
	args := e.Args
	switch e.Op {
	case expr.OpColumn:
		f(e.Column)
	case expr.OpAnd, expr.OpOr, expr.OpCase, expr.OpCoalesce, expr.OpIn:
		args = args[:1]
	}
	for _, a := range args {
		eachComputed(a, f)
	}
}

// mapColumns gives e, which may be nil, with every column i replaced by to(i).
func mapColumns(e *expr.Expr, to func(i int) int) *expr.Expr {
	if e == nil {
		return nil
	}
	return rebuild(e, func(c *expr.Expr) *expr.Expr {
		i := to(c.Column)
		if i == c.Column {
			return c
		}
		moved := *c
		moved.Column = i
		return &moved
	})
}

// substitute writes list[i] for every column i of e.
func substitute(e *expr.Expr, list []*expr.Expr) *expr.Expr {
	return rebuild(e, func(c *expr.Expr) *expr.Expr { return list[c.Column] })
}

// rebuild gives e with every column replaced; it copies what changes.
func rebuild(e *expr.Expr, column func(c *expr.Expr) *expr.Expr) *expr.Expr {
	if e.Op == expr.OpColumn {
		return column(e)
	}
	return withArgs(e, mapped(e.Args, func(a *expr.Expr) *expr.Expr { return rebuild(a, column) }))
}

// mapped gives what f makes of each expression: the list itself where that is the same.
func mapped(list []*expr.Expr, f func(e *expr.Expr) *expr.Expr) []*expr.Expr {
	made := list
	for i, e := range list {
		to := f(e)
		if to != e && &made[0] == &list[0] {
			made = slices.Clone(list)
		}
		made[i] = to
	}
	return made
}

// withArgs gives e over other operands: e itself, or a copy.
func withArgs(e *expr.Expr, args []*expr.Expr) *expr.Expr {
	if len(args) == 0 || &args[0] == &e.Args[0] {
		return e
	}
	c := *e
	c.Args = args
	return &c
}

// sizeOf counts the nodes of e, up to a limit.
func sizeOf(e *expr.Expr, limit int) int {
	n := 1
	for _, a := range e.Args {
		if n >= limit {
			break
		}
		n += sizeOf(a, limit-n)
	}
	return n
}

// equal reports whether two expressions over the same columns are the same.
func equal(a, b *expr.Expr) bool {
	if a.Op != b.Op || a.Type != b.Type || a.Column != b.Column || a.Func != b.Func || a.Zone != b.Zone ||
		(a.Literal == nil) != (b.Literal == nil) || len(a.Args) != len(b.Args) {
		return false
	}
	return (a.Literal == nil || *a.Literal == *b.Literal) && slices.EqualFunc(a.Args, b.Args, equal)
}

// columnsOf gives the expressions that read all columns of a relation.
func columnsOf(cols []column) []*expr.Expr {
	exprs := make([]*expr.Expr, len(cols))
	for i, c := range cols {
		exprs[i] = columnExpr(i, c.typ)
	}
	return exprs
}

func columnExpr(i int, t expr.Type) *expr.Expr {
	return &expr.Expr{Op: expr.OpColumn, Type: t, Column: i}
}

func columnNamesOf(cols []column) []string {
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.name
	}
	return names
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
