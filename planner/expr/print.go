package expr

import (
	"strconv"
	"strings"
	"time"
)

// SQL prints the expression as SQL over the given names of the input's columns, with
// the parentheses it needs. Conversions are not shown. Two expressions that print
// alike over the same columns compute the same.
func (e *Expr) SQL(columns []string) string {
	var b strings.Builder
	e.print(&b, columns, 0)
	return b.String()
}

// Binding powers as in SQL's grammar, from weak to strong.
const (
	powerOr = iota + 1
	powerAnd
	powerNot
	powerIs
	powerCompare
	powerIn
	powerSum
	powerProduct
	powerSign
	powerAtom
)

func (e *Expr) power() int {
	switch e.Op {
	case OpOr:
		return powerOr
	case OpAnd:
		return powerAnd
	case OpNot:
		return powerNot
	case OpIsNull, OpIsNotNull:
		return powerIs
	case OpEq, OpNe, OpLt, OpLe, OpGt, OpGe:
		return powerCompare
	case OpIn:
		return powerIn
	case OpAdd, OpSub:
		return powerSum
	case OpMul, OpDiv, OpMod:
		return powerProduct
	case OpNeg:
		return powerSign
	case OpConvert:
		return e.Args[0].power()
	case OpLiteral:
		if strings.HasPrefix(literalSQL(e), "-") {
			return powerSign
		}
	}
	return powerAtom
}

func (e *Expr) print(b *strings.Builder, columns []string, power int) {
	own := e.power()
	if own < power {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	switch e.Op {
	case OpColumn:
		b.WriteString(quoteName(columns[e.Column]))
	case OpLiteral:
		b.WriteString(literalSQL(e))
	case OpConvert:
		e.Args[0].print(b, columns, 0)
	case OpNot:
		b.WriteString("NOT ")
		e.Args[0].print(b, columns, powerNot)
	case OpNeg:
		b.WriteByte('-')
		e.Args[0].print(b, columns, powerAtom)
	case OpIsNull, OpIsNotNull:
		e.Args[0].print(b, columns, powerIs)
		b.WriteString(" " + strings.ToUpper(string(e.Op)))
	case OpIn:
		e.Args[0].print(b, columns, powerIn+1)
		b.WriteString(" IN (")
		for i, a := range e.Args[1:] {
			if i > 0 {
				b.WriteString(", ")
			}
			a.print(b, columns, 0)
		}
		b.WriteByte(')')
	default:
		left := own
		if own == powerCompare {
			left++
		}
		e.Args[0].print(b, columns, left)
		b.WriteString(" " + strings.ToUpper(string(e.Op)) + " ")
		e.Args[1].print(b, columns, own+1)
	}
}

func literalSQL(e *Expr) string {
	l := e.Literal
	if l == nil {
		return "NULL"
	}
	switch e.Type.Kind {
	case Boolean:
		if l.Bool {
			return "TRUE"
		}
		return "FALSE"
	case Int, BigInt:
		return strconv.FormatInt(l.Int, 10)
	case TimestampLTZ:
		return "'" + time.UnixMicro(l.Int).UTC().Format(time.RFC3339Nano) + "'"
	case Double:
		return l.Double
	case Decimal:
		return l.Decimal
	}
	return "'" + strings.ReplaceAll(l.String, "'", "''") + "'"
}

// quoteName puts a name in double quotes unless it is made of ASCII letters, digits
// and underscores.
func quoteName(name string) string {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
	}
	return name
}
