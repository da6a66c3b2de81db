package planner

import (
	"slices"
	"strings"

	"weir/planner/sql"
)

// operands lists the expressions that e is made of; those that are missing are left out.
func operands(e sql.Expr) []sql.Expr {
	var list []sql.Expr
	switch e := e.(type) {
	case *sql.Unary:
		list = []sql.Expr{e.X}
	case *sql.Binary:
		list = []sql.Expr{e.X, e.Y}
	case *sql.IsNull:
		list = []sql.Expr{e.X}
	case *sql.IsTruth:
		list = []sql.Expr{e.X}
	case *sql.IsDistinct:
		list = []sql.Expr{e.X, e.Y}
	case *sql.In:
		list = append([]sql.Expr{e.X}, e.List...)
	case *sql.Between:
		list = []sql.Expr{e.X, e.Low, e.High}
	case *sql.Like:
		list = []sql.Expr{e.X, e.Pattern, e.Escape}
	case *sql.Cast:
		list = []sql.Expr{e.X}
	case *sql.Case:
		list = []sql.Expr{e.Operand}
		for _, w := range e.Whens {
			list = append(list, w.If, w.Then)
		}
		list = append(list, e.Else)
	case *sql.Call:
		list = append(slices.Clone(e.Args), e.Filter)
	case *sql.Row:
		list = slices.Clone(e.List)
	case *sql.GroupingSets:
		list = slices.Clone(e.List)
	}
	return slices.DeleteFunc(list, func(x sql.Expr) bool { return x == nil })
}

// sameExpr reports whether two expressions over one table have the same structure:
// names are compared as names are, the table's name before a column does not count.
func sameExpr(a, b sql.Expr) bool {
	if !sameHead(a, b) {
		return false
	}
	return slices.EqualFunc(operands(a), operands(b), sameExpr)
}

// sameHead compares two nodes without their operands.
func sameHead(a, b sql.Expr) bool {
	switch a := a.(type) {
	case *sql.ColumnRef:
		b, ok := b.(*sql.ColumnRef)
		return ok && sameName(a.Name.Name, b.Name.Name)
	case *sql.NumberLit, *sql.StringLit, *sql.BoolLit, *sql.NullLit, *sql.IntervalLit, *sql.TypedLit, *sql.BytesLit, *sql.Word:
		return sameLiteral(a, b)
	case *sql.Unary:
		b, ok := b.(*sql.Unary)
		return ok && a.Op == b.Op
	case *sql.Binary:
		b, ok := b.(*sql.Binary)
		return ok && a.Op == b.Op
	case *sql.IsNull:
		b, ok := b.(*sql.IsNull)
		return ok && a.Not == b.Not
	case *sql.IsTruth:
		b, ok := b.(*sql.IsTruth)
		return ok && a.Not == b.Not && a.Value == b.Value
	case *sql.IsDistinct:
		b, ok := b.(*sql.IsDistinct)
		return ok && a.Not == b.Not
	case *sql.In:
		b, ok := b.(*sql.In)
		return ok && a.Not == b.Not
	case *sql.Between:
		b, ok := b.(*sql.Between)
		return ok && a.Not == b.Not
	case *sql.Like:
		b, ok := b.(*sql.Like)
		return ok && a.Not == b.Not && a.Fold == b.Fold
	case *sql.Cast:
		b, ok := b.(*sql.Cast)
		return ok && a.Try == b.Try && sameType(a.Type, b.Type)
	case *sql.Case:
		b, ok := b.(*sql.Case)
		return ok && (a.Operand == nil) == (b.Operand == nil) && len(a.Whens) == len(b.Whens)
	case *sql.Call:
		b, ok := b.(*sql.Call)
		return ok && sameName(a.Name.Name, b.Name.Name) && a.Star == b.Star && a.Distinct == b.Distinct && len(a.Args) == len(b.Args)
	}
	return false
}

func sameLiteral(a, b sql.Expr) bool {
	switch a := a.(type) {
	case *sql.NumberLit:
		b, ok := b.(*sql.NumberLit)
		return ok && a.Text == b.Text
	case *sql.StringLit:
		b, ok := b.(*sql.StringLit)
		return ok && a.Value == b.Value
	case *sql.BoolLit:
		b, ok := b.(*sql.BoolLit)
		return ok && a.Value == b.Value
	case *sql.NullLit:
		_, ok := b.(*sql.NullLit)
		return ok
	case *sql.IntervalLit:
		b, ok := b.(*sql.IntervalLit)
		return ok && a.Value == b.Value && a.Unit == b.Unit && a.To == b.To
	case *sql.TypedLit:
		b, ok := b.(*sql.TypedLit)
		return ok && a.Value == b.Value && sameType(a.Type, b.Type)
	case *sql.BytesLit:
		b, ok := b.(*sql.BytesLit)
		return ok && strings.EqualFold(a.Value, b.Value)
	case *sql.Word:
		b, ok := b.(*sql.Word)
		return ok && a.Name == b.Name
	}
	return false
}

func sameType(a, b *sql.TypeName) bool { return a.Name == b.Name && slices.Equal(a.Args, b.Args) }
