package expr

import (
	"slices"
	"strings"
	"testing"
)

// TestFunctions: the table says everything that the documentation needs, and its names
// lead to it.
func TestFunctions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range Functions() {
		switch {
		case f.Name != "" && seen[f.Name]:
			t.Errorf("%s stands twice", f.Name)
		case f.Name == "" && !f.Special:
			t.Errorf("%s has no name", f.SQL)
		case f.Name != strings.ToLower(f.Name) || f.SQL != strings.ToUpper(f.SQL):
			t.Errorf("%s, %s: the case of the names", f.Name, f.SQL)
		case len(f.Signatures) == 0 || !strings.HasSuffix(f.Doc, ".") || f.Group == "":
			t.Errorf("%s: signatures, text or group are missing", f.SQL)
		case len(f.Examples) == 0 && !f.Volatile:
			t.Errorf("%s: no example", f.SQL)
		}
		seen[f.Name] = true
		for _, name := range append(slices.Clone(f.Aliases), f.SQL) {
			if FindFunction(strings.ToLower(name)) == nil {
				t.Errorf("%s is not found", name)
			}
		}
		if f.Name != "" && FunctionOf(f.Name).Name != f.Name {
			t.Errorf("%s is not found", f.Name)
		}
		for _, s := range f.Signatures {
			if s.Rule == Fixed && s.Result.Kind == Null || s.Variadic && len(s.Params) == 0 {
				t.Errorf("%s: a signature without a result, or nothing to repeat", f.SQL)
			}
		}
	}
	for _, a := range AggregateFunctions() {
		if a.Doc == "" || a.Result == "" || len(a.Examples) == 0 {
			t.Errorf("%s: text, result or example is missing", a.SQL)
		}
	}
}

// TestCanFail: only what may raise a row error is said to.
func TestCanFail(t *testing.T) {
	t.Parallel()
	typ := func(k Kind) Type { return Type{Kind: k} }
	col := func(t Type) *Expr { return &Expr{Op: OpColumn, Type: t} }
	to := func(op Op, from, to Type) *Expr { return &Expr{Op: op, Type: to, Args: []*Expr{col(from)}} }
	lit := &Expr{Op: OpLiteral, Type: typ(String), Literal: &Literal{}}
	call := func(name string, args ...*Expr) *Expr { return &Expr{Op: OpCall, Func: name, Args: args} }
	text := col(typ(String))
	for _, c := range []struct {
		e    *Expr
		want bool
	}{
		{to(OpConvert, typ(Int), typ(BigInt)), false},
		{to(OpConvert, typ(BigInt), DecimalType(0)), false},
		{to(OpConvert, typ(BigInt), DecimalType(20)), true},
		{to(OpConvert, DecimalType(2), DecimalType(4)), true},
		{to(OpConvert, Type{Kind: Decimal, Precision: 10, Scale: 2}, DecimalType(4)), false},
		{to(OpCast, typ(BigInt), typ(Int)), true},
		{to(OpTryCast, typ(BigInt), typ(Int)), false},
		{to(OpCast, typ(Double), typ(String)), false},
		{to(OpCast, typ(String), typ(Double)), true},
		{to(OpNeg, typ(Int), typ(Int)), true},
		{to(OpNeg, typ(Double), typ(Double)), false},
		{call("lower", text), false},
		{call("like", text, lit, lit), false},
		{call("like", text, text, lit), true},
		{call("lower", to(OpCast, typ(Bytes), typ(Int))), true},
		{call("repeat", text, col(typ(Int))), true},
	} {
		if got := CanFail(c.e); got != c.want {
			t.Errorf("%s %s %v: %v", c.e.Op, c.e.Func, c.e.Type, got)
		}
	}
	if !Volatile(op(OpAdd, call("current_date"), call("lower", text))) || Volatile(call("lower", text)) {
		t.Error("Volatile")
	}
}
