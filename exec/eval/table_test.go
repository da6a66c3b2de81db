package eval

import (
	"testing"

	"weir/planner/expr"
)

// Every signature of the table of functions compiles.
func TestEveryFunctionOfTheTable(t *testing.T) {
	t.Parallel()
	for _, f := range expr.Functions() {
		if f.Special && f.Name == "" {
			continue // it is bound to other operations
		}
		for _, s := range f.Signatures {
			e := &expr.Expr{Op: expr.OpCall, Func: f.Name, Type: s.Result, Text: f.SQL}
			for i, p := range s.Params {
				typ := anyTypeOf(p.Kind)
				if p.Constant {
					e.Args = append(e.Args, constantParam(f.Name, typ))
					continue
				}
				e.Args = append(e.Args, &expr.Expr{Op: expr.OpColumn, Type: typ, Column: i})
			}
			switch s.Rule {
			case expr.Same:
				for _, a := range e.Args {
					if a.Op == expr.OpColumn {
						e.Type = a.Type
						break
					}
				}
			case expr.Rounded, expr.Whole:
				e.Type = expr.DecimalType(0)
			case expr.Extracted:
				e.Type = expr.Type{Kind: expr.BigInt}
			}
			if _, err := Compile(e, Env{}); err != nil {
				t.Errorf("%s%v: %v", f.Name, s.Params, err)
			}
		}
	}
}

// anyTypeOf gives a type of a kind; any type is BIGINT.
func anyTypeOf(k expr.Kind) expr.Type {
	switch k {
	case expr.Null:
		k = expr.BigInt
	case expr.Decimal:
		return expr.Type{Kind: k, Precision: 10, Scale: 2}
	case expr.Timestamp, expr.TimestampLTZ:
		return expr.Type{Kind: k, Precision: 6}
	}
	return expr.Type{Kind: k}
}

// constantParam gives a constant that a function takes: a unit, a number of digits.
func constantParam(name string, typ expr.Type) *expr.Expr {
	l := &expr.Literal{}
	if typ.Kind == expr.String {
		l.String = "DAY"
	}
	return &expr.Expr{Op: expr.OpLiteral, Type: typ, Literal: l}
}
