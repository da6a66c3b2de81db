package sql

import (
	"strconv"
	"strings"
)

// expr prints e, in parentheses if it binds weaker than power.
func (p *printer) expr(e Expr, power int) {
	if powerOf(e) < power {
		p.add("(")
		p.expr(e, 0)
		p.add(")")
		return
	}
	switch e := e.(type) {
	case *ColumnRef:
		p.qualifier(e.Table)
		p.add(QuoteName(e.Name.Name))
	case *Star:
		p.qualifier(e.Table)
		p.add("*")
	case *NumberLit:
		p.add(e.Text)
	case *StringLit:
		p.add(QuoteString(e.Value))
	case *BytesLit:
		p.add("X", QuoteString(e.Value))
	case *BoolLit:
		p.add(strings.ToUpper(strconv.FormatBool(e.Value)))
	case *NullLit:
		p.add("NULL")
	case *IntervalLit:
		p.add("INTERVAL ", QuoteString(e.Value))
		if e.Unit != "" {
			p.add(" ", e.Unit)
		}
		if e.To != "" {
			p.add(" TO ", e.To)
		}
	case *TypedLit:
		p.add(e.Type.String(), " ", QuoteString(e.Value))
	case *Word:
		p.add(e.Name)
	default:
		p.operation(e)
	}
}

func (p *printer) qualifier(table *Ident) {
	if table != nil {
		p.add(QuoteName(table.Name), ".")
	}
}

// operation prints operators between and before operands.
func (p *printer) operation(e Expr) {
	switch e := e.(type) {
	case *Unary:
		p.unary(e)
	case *Binary:
		own := powerOf(e)
		left := own
		if own == powerCompare {
			left++
		}
		p.expr(e.X, left)
		p.add(" ", e.Op, " ")
		p.expr(e.Y, own+1)
	case *IsNull:
		p.expr(e.X, powerIs+1)
		p.add(" IS ", ifWord(e.Not, "NOT "), "NULL")
	case *IsTruth:
		p.expr(e.X, powerIs+1)
		p.add(" IS ", ifWord(e.Not, "NOT "), e.Value)
	case *IsDistinct:
		p.expr(e.X, powerIs+1)
		p.add(" IS ", ifWord(e.Not, "NOT "), "DISTINCT FROM ")
		p.expr(e.Y, powerIs+1)
	case *In:
		p.expr(e.X, powerIn+1)
		p.add(" ", ifWord(e.Not, "NOT "), "IN (")
		p.list(e.List)
		p.add(")")
	case *Between:
		p.expr(e.X, powerIn+1)
		p.add(" ", ifWord(e.Not, "NOT "), "BETWEEN ")
		p.expr(e.Low, powerIn+1)
		p.add(" AND ")
		p.expr(e.High, powerIn+1)
	case *Like:
		p.like(e)
	default:
		p.enclosed(e)
	}
}

func (p *printer) unary(e *Unary) {
	if e.Op == "NOT" {
		p.add("NOT ")
		p.expr(e.X, powerNot)
		return
	}
	p.add(e.Op)
	if inner, ok := e.X.(*Unary); ok && inner.Op != "NOT" { // --x would be a comment
		p.add("(")
		p.expr(e.X, 0)
		p.add(")")
		return
	}
	p.expr(e.X, powerSign)
}

func (p *printer) like(e *Like) {
	op := "LIKE "
	if e.Fold {
		op = "ILIKE "
	}
	p.expr(e.X, powerIn+1)
	p.add(" ", ifWord(e.Not, "NOT "), op)
	p.expr(e.Pattern, powerIn+1)
	if e.Escape != nil {
		p.add(" ESCAPE ")
		p.expr(e.Escape, powerIn+1)
	}
}

// enclosed prints what has words or parentheses around it.
func (p *printer) enclosed(e Expr) {
	switch e := e.(type) {
	case *Case:
		p.caseExpr(e)
	case *Cast:
		p.add(ifWord(e.Try, "TRY_"), "CAST(")
		p.expr(e.X, 0)
		p.add(" AS ", e.Type.String(), ")")
	case *Call:
		p.call(e)
	case *GroupingSets:
		p.add(e.Kind, " (")
		p.list(e.List)
		p.add(")")
	case *Row:
		p.add("(")
		p.list(e.List)
		p.add(")")
	}
}

func (p *printer) caseExpr(c *Case) {
	p.add("CASE")
	if c.Operand != nil {
		p.add(" ")
		p.expr(c.Operand, 0)
	}
	for _, w := range c.Whens {
		p.add(" WHEN ")
		p.expr(w.If, 0)
		p.add(" THEN ")
		p.expr(w.Then, 0)
	}
	if c.Else != nil {
		p.add(" ELSE ")
		p.expr(c.Else, 0)
	}
	p.add(" END")
}

func (p *printer) call(c *Call) {
	if upper := asciiUpper(c.Name.Name); valueWord(upper) {
		p.add(upper)
	} else {
		name := QuoteName(c.Name.Name)
		if joinWord(upper) {
			name = upper
		}
		p.add(name, "(")
		p.operands(c)
		p.add(")")
	}
	if c.Filter != nil {
		p.add(" FILTER (WHERE ")
		p.expr(c.Filter, 0)
		p.add(")")
	}
}

// operands prints what stands in a call's parentheses.
func (p *printer) operands(c *Call) {
	first, second := word(c, 0), word(c, 1)
	switch name := asciiUpper(c.Name.Name); {
	case first != nil && name == "EXTRACT":
		p.add(first.Name, " FROM ")
		p.expr(c.Args[1], 0)
	case first != nil && name == "TRIM":
		p.add(first.Name, " ")
		p.expr(c.Args[1], 0)
		p.add(" FROM ")
		p.expr(c.Args[2], 0)
	case second != nil: // FLOOR, CEIL; an interval's own TO must not take the word
		power := powerPrimary
		if _, ok := c.Args[0].(*IntervalLit); ok {
			power++
		}
		p.expr(c.Args[0], power)
		p.add(" TO ", second.Name)
	case name == "POSITION" && len(c.Args) == 2:
		p.expr(c.Args[0], powerIn+1)
		p.add(" IN ")
		p.expr(c.Args[1], 0)
	case c.Star:
		p.add("*")
	default:
		p.add(ifWord(c.Distinct, "DISTINCT "))
		p.list(c.Args)
	}
}

// word gives argument i of a call if it is a bare word.
func word(c *Call, i int) *Word {
	if i >= len(c.Args) {
		return nil
	}
	w, _ := c.Args[i].(*Word)
	return w
}

func (p *printer) list(list []Expr) {
	for i, e := range list {
		if i > 0 {
			p.add(", ")
		}
		p.expr(e, 0)
	}
}

func powerOf(e Expr) int {
	switch e := e.(type) {
	case *Unary:
		if e.Op == "NOT" {
			return powerNot
		}
		return powerSign
	case *Binary:
		switch e.Op {
		case "OR":
			return powerOr
		case "AND":
			return powerAnd
		case "||":
			return powerOther
		case "+", "-":
			return powerSum
		case "*", "/", "%":
			return powerProduct
		}
		return powerCompare
	case *IsNull, *IsTruth, *IsDistinct:
		return powerIs
	case *In, *Between, *Like:
		return powerIn
	}
	return powerPrimary
}
