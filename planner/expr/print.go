package expr

import (
	"strings"
)

// SQL prints the expression as SQL over the given names of the input's columns, with
// the parentheses it needs. Two expressions that print alike over the same columns
// compute the same: conversions are not shown, as they follow from the types that
// meet, but a literal whose type would not follow stands in a CAST, and where a time
// zone counts that is not UTC it follows in a comment.
func (e *Expr) SQL(columns []string) string {
	p := printer{columns: columns}
	p.expr(e, 0)
	return p.String()
}

// Binding powers as in SQL's grammar, from weak to strong.
const (
	powerOr = iota + 1
	powerAnd
	powerNot
	powerIs
	powerCompare
	powerIn
	powerOther // ||
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
	case OpIsNull, OpIsNotNull, OpDistinct, OpNotDistinct:
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
	case OpCall:
		switch e.Func {
		case "like", "ilike":
			return powerIn
		case "concat_op":
			return powerOther
		}
	case OpLiteral:
		if strings.HasPrefix(literalSQL(e), "-") {
			return powerSign
		}
	}
	return powerAtom
}

type printer struct {
	strings.Builder
	columns []string
	bare    bool // the type of a literal that comes next follows from what is around it
}

func (p *printer) add(parts ...string) {
	for _, s := range parts {
		p.WriteString(s)
	}
}

// expr prints e, in parentheses if it binds weaker than power.
func (p *printer) expr(e *Expr, power int) {
	bare := p.bare
	p.bare = false
	own := e.power()
	if own < power {
		p.add("(")
		defer p.add(")")
	}
	switch e.Op {
	case OpColumn:
		p.add(quoteName(p.columns[e.Column]))
	case OpLiteral:
		p.literal(e, bare)
	case OpConvert:
		p.bare = true
		p.expr(e.Args[0], 0)
	case OpNot, OpNeg, OpIsNull, OpIsNotNull:
		p.unary(e)
	case OpIn:
		p.operand(e, 0, powerIn+1)
		p.add(" IN (")
		p.list(e, 1)
		p.add(")")
	case OpCase:
		p.caseOf(e)
	case OpCoalesce:
		p.add("COALESCE(")
		p.list(e, 0)
		p.add(")")
	case OpCast, OpTryCast:
		p.add(strings.ToUpper(string(e.Op)), "(")
		p.operand(e, 0, 0)
		p.add(" AS ", e.Type.String())
		p.zone(e)
		p.add(")")
	case OpCall:
		p.call(e)
	default:
		p.infix(e, own)
	}
}

func (p *printer) unary(e *Expr) {
	switch e.Op {
	case OpNot:
		p.add("NOT ")
		p.operand(e, 0, powerNot)
	case OpNeg:
		p.add("-")
		p.operand(e, 0, powerAtom)
	default:
		p.operand(e, 0, powerIs+1)
		p.add(" ", strings.ToUpper(string(e.Op)))
	}
}

func (p *printer) infix(e *Expr, own int) {
	left := own
	if own == powerCompare || own == powerIs {
		left++
	}
	p.operand(e, 0, left)
	p.add(" ", strings.ToUpper(string(e.Op)), " ")
	p.operand(e, 1, own+1)
	p.zone(e)
}

func (p *printer) operand(e *Expr, i, power int) {
	p.bare = follows(e, i)
	p.expr(e.Args[i], power)
}

func (p *printer) list(e *Expr, from int) {
	for i := from; i < len(e.Args); i++ {
		if i > from {
			p.add(", ")
		}
		p.operand(e, i, 0)
	}
}

func (p *printer) zone(e *Expr) {
	if e.Zone != "" {
		p.add(" /* ", e.Zone, " */")
	}
}

func (p *printer) caseOf(e *Expr) {
	p.add("CASE")
	last := len(e.Args) - 1
	for i := 0; i < last; i += 2 {
		p.add(" WHEN ")
		p.operand(e, i, 0)
		p.add(" THEN ")
		p.operand(e, i+1, 0)
	}
	p.add(" ELSE ")
	p.operand(e, last, 0)
	p.add(" END")
}

// call prints a function in the syntax that it is read in.
func (p *printer) call(e *Expr) {
	switch e.Func {
	case "current_timestamp", "current_date", "local_timestamp":
		p.add(FunctionOf(e.Func).SQL)
		p.zone(e)
	case "like", "ilike":
		p.operand(e, 0, powerIn+1)
		p.add(" ", strings.ToUpper(e.Func), " ")
		p.operand(e, 1, powerIn+1)
		if l := e.Args[2].Literal; l == nil || l.String != `\` {
			p.add(" ESCAPE ")
			p.operand(e, 2, powerIn+1)
		}
	case "concat_op":
		p.operand(e, 0, powerOther)
		p.add(" || ")
		p.operand(e, 1, powerOther+1)
	case "extract":
		p.add("EXTRACT(", e.Args[0].Literal.String, " FROM ")
		p.close(e, 1)
	case "floor_to", "ceil_to":
		p.add(FunctionOf(e.Func).SQL, "(")
		p.operand(e, 1, 0)
		p.add(" TO ", e.Args[0].Literal.String)
		p.zone(e)
		p.add(")")
	case "position":
		p.add("POSITION(")
		p.operand(e, 0, powerIn+1)
		p.add(" IN ")
		p.close(e, 1)
	case "trim":
		p.add("BTRIM(")
		p.close(e, 0)
	default:
		name := strings.ToUpper(e.Func)
		if f := FunctionOf(e.Func); f != nil {
			name = f.SQL
		}
		p.add(name, "(")
		p.close(e, 0)
	}
}

// close prints the arguments from one on, and the end of a call.
func (p *printer) close(e *Expr, from int) {
	p.list(e, from)
	p.zone(e)
	p.add(")")
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
