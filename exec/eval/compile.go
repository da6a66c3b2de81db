package eval

import (
	"fmt"
	"slices"
	"time"

	"weir/exec/batch"
	"weir/planner/expr"
)

// An Env is what a program needs beside its batch.
type Env struct {
	Now func() time.Time // the clock of CURRENT_TIMESTAMP; nil: time.Now
}

// Compile makes a program of an expression tree, which it does not keep.
func Compile(e *expr.Expr, env Env) (*Program, error) {
	root, err := compile(e, env)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", describe(e), err)
	}
	p := &Program{root: root, typ: e.Type}
	if e.Type.Kind == expr.Boolean || e.Type.Kind == expr.Null {
		p.pred = filterOf(root)
	}
	return p, nil
}

// describe names an expression for people.
func describe(e *expr.Expr) string {
	if e.Text != "" {
		return e.Text
	}
	return string(e.Op)
}

func compile(e *expr.Expr, env Env) (node, error) {
	if want := arity(e.Op); want >= 0 && len(e.Args) != want {
		return nil, fmt.Errorf("%q has %d operands, not %d", e.Op, len(e.Args), want)
	}
	switch e.Op {
	case expr.OpColumn:
		return &column{index: e.Column, physical: Physical(e.Type)}, nil
	case expr.OpLiteral:
		return compileLiteral(e)
	case expr.OpIn:
		return compileIn(e, env)
	case expr.OpNot:
		return compileNot(e, env)
	}
	args := make([]node, len(e.Args))
	for i, a := range e.Args {
		var err error
		if args[i], err = compile(a, env); err != nil {
			return nil, err
		}
	}
	n, err := compileOperation(e, args, env)
	if err != nil || len(args) == 0 || slices.ContainsFunc(args, func(a node) bool { _, ok := a.(*constant); return !ok }) {
		return n, err
	}
	return computed(n, Physical(e.Type)), nil
}

// computed returns the value of a node that works on constants, as a constant. Where it
// fails the node stays, and fails for the rows that need it.
func computed(n node, physical batch.Physical) node {
	v, err := n.eval(&batch.Batch{Len: 1}, nil)
	if err != nil {
		return n
	}
	c := &constant{physical: physical, null: v.Null(0)}
	if !c.null {
		c.value = batch.Vector{Physical: physical}
		c.value.AppendFrom(v, 0)
	}
	return c
}

// compileOperation makes the node of an operation on operands that are compiled.
func compileOperation(e *expr.Expr, args []node, env Env) (node, error) {
	switch e.Op {
	case expr.OpConvert:
		return compileConvert(e, args[0])
	case expr.OpAdd, expr.OpSub, expr.OpMul, expr.OpDiv, expr.OpMod:
		return compileArith(e, args[0], args[1])
	case expr.OpNeg:
		return compileNeg(e, args[0])
	case expr.OpEq, expr.OpNe, expr.OpLt, expr.OpLe, expr.OpGt, expr.OpGe:
		return compileCompare(e, args[0], args[1])
	case expr.OpAnd, expr.OpOr:
		return compileConnective(e, args)
	case expr.OpIsNull, expr.OpIsNotNull:
		return &isNull{arg: args[0], negated: e.Op == expr.OpIsNotNull}, nil
	case expr.OpCast, expr.OpTryCast:
		return compileCast(e, args[0])
	case expr.OpDistinct, expr.OpNotDistinct:
		return compileDistinct(e, args[0], args[1])
	case expr.OpCase:
		return compileCase(e, args)
	case expr.OpCoalesce:
		return compileCoalesce(e, args)
	case expr.OpCall:
		return compileCall(e, args, env)
	}
	return nil, fmt.Errorf("unknown operation %q", e.Op)
}

// arity returns the number of operands of an operation; -1: it varies or is unknown.
func arity(op expr.Op) int {
	switch op {
	case expr.OpColumn, expr.OpLiteral:
		return 0
	case expr.OpConvert, expr.OpCast, expr.OpTryCast, expr.OpNeg, expr.OpNot, expr.OpIsNull, expr.OpIsNotNull:
		return 1
	case expr.OpAdd, expr.OpSub, expr.OpMul, expr.OpDiv, expr.OpMod,
		expr.OpEq, expr.OpNe, expr.OpLt, expr.OpLe, expr.OpGt, expr.OpGe,
		expr.OpDistinct, expr.OpNotDistinct:
		return 2
	}
	return -1
}

// compileConnective folds AND and OR, of two or more operands, from the left.
func compileConnective(e *expr.Expr, args []node) (node, error) {
	if len(args) < 2 {
		return nil, fmt.Errorf("%q has %d operands", e.Op, len(args))
	}
	for _, a := range e.Args {
		if a.Type.Kind != expr.Boolean && a.Type.Kind != expr.Null {
			return nil, fmt.Errorf("%q of %v", e.Op, a.Type)
		}
	}
	left := args[0]
	for _, right := range args[1:] {
		left = &connective{left: left, right: right, or: e.Op == expr.OpOr}
	}
	return left, nil
}

// compileNot pushes NOT into comparisons and IN, which have a form of their own for
// it; this keeps NULL as it is.
func compileNot(e *expr.Expr, env Env) (node, error) {
	inner := e.Args[0]
	if inner.Type.Kind != expr.Boolean && inner.Type.Kind != expr.Null {
		return nil, fmt.Errorf("%q of %v", e.Op, inner.Type)
	}
	arg, err := compile(inner, env)
	if err != nil {
		return nil, err
	}
	switch arg := arg.(type) {
	case *compare:
		arg.negated = !arg.negated
		return arg, nil
	case *in:
		arg.negated = !arg.negated
		return arg, nil
	case *isNull:
		arg.negated = !arg.negated
		return arg, nil
	}
	return &not{arg: arg}, nil
}

// compileLiteral makes a constant.
func compileLiteral(e *expr.Expr) (node, error) {
	c := &constant{physical: Physical(e.Type), null: e.Literal == nil || e.Type.Kind == expr.Null}
	if c.null {
		return c, nil
	}
	one := batch.Vector{Physical: c.physical}
	if err := appendLiteral(&one, e); err != nil {
		return nil, err
	}
	c.value = one
	return c, nil
}
