package sql

// Binding powers, from weak to strong. They are PostgreSQL's: IS binds weaker than a
// comparison, IN stronger.
const (
	powerOr      = 1
	powerAnd     = 2
	powerNot     = 3
	powerIs      = 4
	powerCompare = 5 // does not associate: a < b < c is an error
	powerIn      = 6
	powerOther   = 7 // ||, refused
	powerSum     = 8
	powerProduct = 9
	powerSign    = 10
)

// maxOperators bounds the operators, calls and parentheses of one expression, and so
// the depth of its tree.
const maxOperators = 2000

func (p *parser) expression() Expr {
	p.operators = 0
	return p.binding(0)
}

// count counts one more operator; past the limit the expression is refused.
func (p *parser) count() {
	if p.operators++; p.operators > maxOperators {
		t := p.tok()
		p.fail(CodeUnsupported, t.start, t.end, "an expression of more than 2000 operators is not supported", "x = 1 OR x = 2 is shorter as x IN (1, 2)")
	}
}

// binding reads an expression whose operators bind at least as strongly as power.
func (p *parser) binding(power int) Expr {
	start := p.here()
	x := p.prefix()
	for p.err == nil {
		t := p.tok()
		p.refuseInfix(t)
		not := t.upper == "NOT" && t.kind == kindWord && p.peek(1).upper == "IN"
		own := infixPower(t)
		if not {
			own = powerIn
		}
		if own == 0 || own < power {
			return x
		}
		p.count()
		switch own {
		case powerIs:
			x = p.is(start, x)
		case powerIn:
			x = p.in(start, x)
		default:
			x = p.binary(start, x, t, own)
		}
	}
	return x
}

func infixPower(t token) int {
	switch t.kind {
	case kindWord:
		switch t.upper {
		case "OR":
			return powerOr
		case "AND":
			return powerAnd
		case "IS":
			return powerIs
		case "IN":
			return powerIn
		}
	case kindSymbol:
		switch t.text {
		case "=", "<>", "!=", "<", "<=", ">", ">=":
			return powerCompare
		case "+", "-":
			return powerSum
		case "*", "/", "%":
			return powerProduct
		}
	}
	return 0
}

func (p *parser) binary(start int, x Expr, op token, own int) Expr {
	p.advance()
	y := p.binding(own + 1)
	b := &Binary{Op: op.text, OpPos: op.start, X: x, Y: y}
	switch {
	case op.kind == kindWord:
		b.Op = op.upper
	case op.text == "!=":
		b.Op = "<>"
	}
	if next := p.tok(); own == powerCompare && infixPower(next) == powerCompare {
		p.fail(CodeSyntax, next.start, next.end, "comparisons do not chain", "write a < b AND b < c, or use parentheses")
	}
	b.Span = p.span(start)
	return b
}

func (p *parser) is(start int, x Expr) Expr {
	p.advance()
	n := &IsNull{X: x, Not: p.word("NOT")}
	switch t := p.tok(); {
	case p.word("NULL"):
	case t.kind == kindWord && (t.upper == "TRUE" || t.upper == "FALSE" || t.upper == "UNKNOWN"):
		p.unsupported("IS "+t.upper+" is", "compare: x = TRUE AND x IS NOT NULL")
	case t.kind == kindWord && t.upper == "DISTINCT":
		p.unsupported("IS DISTINCT FROM is", "write x <> y OR x IS NULL OR y IS NULL as you mean it")
	case t.kind == kindWord && (t.upper == "JSON" || t.upper == "OF" || t.upper == "NORMALIZED"):
		p.unsupported("IS "+t.upper+" is", "")
	default:
		p.expected("NULL")
	}
	n.Span = p.span(start)
	return n
}

func (p *parser) in(start int, x Expr) Expr {
	n := &In{X: x, Not: p.word("NOT")}
	p.expectWord("IN")
	p.expectSymbol("(")
	if p.isWord("SELECT") || p.isWord("WITH") {
		p.unsupported("a subquery in IN is", "write the values out")
	}
	for p.err == nil {
		n.List = append(n.List, p.binding(0))
		if !p.symbol(",") {
			break
		}
	}
	p.expectSymbol(")")
	n.Span = p.span(start)
	return n
}

// refuseInfix refuses, by name, the operators that Weir does not have.
func (p *parser) refuseInfix(t token) {
	if t.kind == kindSymbol {
		switch t.text {
		case "==":
			p.fail(CodeSyntax, t.start, t.end, "== is not an operator", "write =")
		case "||", "::", "^", "&", "|", "~", "->", "[":
			hint := ""
			if t.text == "::" {
				hint = "CAST is not supported either; declare the column with the type you need"
			}
			p.unsupported("the operator "+t.text+" is", hint)
		}
		return
	}
	if t.kind != kindWord {
		return
	}
	next := p.peek(1)
	word := t.upper
	if word == "NOT" && next.kind == kindWord {
		word = next.upper
	}
	switch word {
	case "BETWEEN":
		p.unsupported("BETWEEN is", "write x >= low AND x <= high")
	case "LIKE", "ILIKE", "RLIKE", "REGEXP":
		if word == t.upper && !reserved(word) && next.kind != kindString {
			return
		}
		p.unsupported(word+" is", "")
	case "SIMILAR":
		if next.upper == "TO" || t.upper == "NOT" {
			p.unsupported("SIMILAR TO is", "")
		}
	case "AT":
		if next.upper == "TIME" {
			p.unsupported("AT TIME ZONE is", "")
		}
	case "COLLATE":
		p.unsupported("COLLATE is", "strings compare by their bytes")
	}
}
