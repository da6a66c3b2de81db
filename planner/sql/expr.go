package sql

// Binding powers, from weak to strong. They are PostgreSQL's: IS binds weaker than a
// comparison, BETWEEN, IN and LIKE stronger, a sign stronger than any operator of two
// operands, and :: strongest of all.
const (
	powerOr      = 1
	powerAnd     = 2
	powerNot     = 3
	powerIs      = 4
	powerCompare = 5 // does not associate: a < b < c is an error
	powerIn      = 6 // BETWEEN, IN, LIKE
	powerOther   = 7 // ||
	powerSum     = 8
	powerProduct = 9
	powerSign    = 10
	powerCast    = 11 // ::
	powerPrimary = 12
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
	return p.climb(start, p.prefix(), power)
}

// climb reads the operators behind x, which began at start, that bind at least as
// strongly as power.
func (p *parser) climb(start int, x Expr, power int) Expr {
	for p.err == nil {
		t := p.tok()
		p.refuseInfix(t)
		own := infixPower(t, p.peek(1))
		if own == 0 || own < power {
			return x
		}
		p.count()
		switch own {
		case powerIs:
			x = p.is(start, x)
		case powerIn:
			x = p.among(start, x)
		case powerCast:
			p.advance()
			x = &Cast{X: x, Type: p.typeName(), Span: p.span(start)}
		default:
			x = p.binary(start, x, t, own)
		}
	}
	return x
}

// infixPower gives the power of the operator that begins with t, or 0.
func infixPower(t, next token) int {
	switch t.kind {
	case kindWord:
		switch t.upper {
		case "OR":
			return powerOr
		case "AND":
			return powerAnd
		case "IS", "ISNULL", "NOTNULL":
			return powerIs
		case "IN", "BETWEEN", "LIKE", "ILIKE":
			return powerIn
		case "NOT":
			if next.kind == kindWord && infixPower(next, token{}) == powerIn {
				return powerIn
			}
		}
	case kindSymbol:
		switch t.text {
		case "=", "<>", "!=", "<", "<=", ">", ">=":
			return powerCompare
		case "||":
			return powerOther
		case "+", "-":
			return powerSum
		case "*", "/", "%":
			return powerProduct
		case "::":
			return powerCast
		}
	}
	return 0
}

func (p *parser) binary(start int, x Expr, op token, own int) Expr {
	p.advance()
	if t := p.tok(); own == powerCompare && (t.isWord("ANY") || t.isWord("SOME") || t.isWord("ALL")) && p.peek(1).isSymbol("(") {
		p.unsupported(t.upper+" is", "write the values out: x IN (1, 2)")
	}
	y := p.binding(own + 1)
	b := &Binary{Op: op.text, OpPos: op.start, X: x, Y: y}
	switch {
	case op.kind == kindWord:
		b.Op = op.upper
	case op.text == "!=":
		b.Op = "<>"
	}
	if next := p.tok(); own == powerCompare && infixPower(next, token{}) == powerCompare {
		p.fail(CodeSyntax, next.start, next.end, "comparisons do not chain", "write a < b AND b < c, or use parentheses")
	}
	b.Span = p.span(start)
	return b
}

// is reads IS [NOT] NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM.
func (p *parser) is(start int, x Expr) Expr {
	if t := p.tok(); t.isWord("ISNULL") || t.isWord("NOTNULL") {
		p.unsupported(t.upper+" is", "write IS NULL or IS NOT NULL")
	}
	p.advance()
	not := p.word("NOT")
	t := p.tok()
	switch {
	case p.word("NULL"):
		return &IsNull{X: x, Not: not, Span: p.span(start)}
	case p.word("TRUE"), p.word("FALSE"), p.word("UNKNOWN"):
		return &IsTruth{X: x, Value: t.upper, Not: not, Span: p.span(start)}
	case p.word("DISTINCT"):
		p.expectWord("FROM")
		y := p.binding(powerIs + 1)
		if next := p.tok(); next.isWord("IS") {
			p.fail(CodeSyntax, next.start, next.end, "IS DISTINCT FROM does not chain", "use parentheses")
		}
		return &IsDistinct{X: x, Y: y, Not: not, Span: p.span(start)}
	case t.isWord("JSON"), t.isWord("OF"), t.isWord("NORMALIZED"), t.isWord("DOCUMENT"):
		p.unsupported("IS "+t.upper+" is", "")
	default:
		p.expectedOneOf("NULL", "TRUE", "FALSE", "UNKNOWN", "DISTINCT FROM")
	}
	return x
}

// among reads [NOT] IN, BETWEEN, LIKE or ILIKE.
func (p *parser) among(start int, x Expr) Expr {
	not := p.word("NOT")
	op := p.tok()
	p.advance()
	switch op.upper {
	case "IN":
		return p.in(start, x, not)
	case "BETWEEN":
		x = p.between(start, x, not)
	default:
		l := &Like{X: x, Not: not, Fold: op.upper == "ILIKE"}
		if t := p.tok(); (t.isWord("ANY") || t.isWord("ALL") || t.isWord("SOME")) && p.peek(1).isSymbol("(") {
			p.unsupported(op.upper+" "+t.upper+" is", "write x LIKE 'a%' OR x LIKE 'b%'")
		}
		l.Pattern = p.binding(powerIn + 1)
		if p.word("ESCAPE") {
			l.Escape = p.binding(powerIn + 1)
		}
		l.Span = p.span(start)
		x = l
	}
	if next := p.tok(); infixPower(next, p.peek(1)) == powerIn {
		p.fail(CodeSyntax, next.start, next.end, op.upper+" does not chain", "use parentheses, or AND")
	}
	return x
}

func (p *parser) between(start int, x Expr, not bool) Expr {
	if p.isWord("SYMMETRIC") && !p.peek(1).isWord("AND") {
		p.unsupported("BETWEEN SYMMETRIC is", "write x BETWEEN LEAST(a, b) AND GREATEST(a, b)")
	}
	if p.isWord("ASYMMETRIC") && !p.peek(1).isWord("AND") {
		p.advance()
	}
	b := &Between{X: x, Not: not, Low: p.binding(powerCompare)}
	p.expectWord("AND")
	b.High = p.binding(powerIn + 1)
	b.Span = p.span(start)
	return b
}

func (p *parser) in(start int, x Expr, not bool) Expr {
	n := &In{X: x, Not: not}
	p.expectSymbol("(")
	if p.atSelect() {
		p.unsupported("a subquery in IN is", "write the values out: x IN (1, 2)")
	}
	for p.err == nil {
		n.List = append(n.List, p.binding(0))
		if !p.symbol(",") {
			break
		}
	}
	if !p.isSymbol(")") {
		p.expected("',' or ')'")
	}
	p.advance()
	n.Span = p.span(start)
	return n
}

// atSelect reports whether a query begins here, in an expression.
func (p *parser) atSelect() bool {
	return p.isWord("SELECT") || p.isWord("WITH") || p.isWord("VALUES") && p.peek(1).isSymbol("(")
}

// refuseInfix refuses, by name, the operators that Weir does not have.
func (p *parser) refuseInfix(t token) {
	if t.kind == kindSymbol {
		p.refuseSymbol(t)
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
	case "RLIKE", "REGEXP":
		if word == t.upper && next.kind != kindString {
			return
		}
		p.unsupported(word+" is", "write x LIKE 'a%', or REGEXP_EXTRACT(x, '…') IS NOT NULL")
	case "SIMILAR":
		if next.upper == "TO" || t.upper == "NOT" {
			p.unsupported("SIMILAR TO is", "write x LIKE 'a%', or REGEXP_EXTRACT(x, '…') IS NOT NULL")
		}
	case "AT":
		if next.upper == "TIME" {
			p.unsupported("AT TIME ZONE is", "SET 'timezone' = 'Europe/Berlin' gives a script its zone; CAST(ts AS TIMESTAMP) is then the clock there")
		}
	case "COLLATE":
		p.unsupported("COLLATE is", "strings compare by their bytes")
	case "OVERLAPS":
		if next.isSymbol("(") {
			p.unsupported("OVERLAPS is", "write a.start < b.end AND b.start < a.end")
		}
	}
}

func (p *parser) refuseSymbol(t token) {
	hint := ""
	switch t.text {
	case "==":
		p.fail(CodeSyntax, t.start, t.end, "== is not an operator", "write =")
		return
	case "^":
		hint = "write POWER(x, y)"
	case "->", "->>", "#>", "#>>":
		hint = "write JSON_VALUE(x, '$.path')"
	case "~", "!~", "~*", "!~*", "~~", "!~~":
		hint = "write x LIKE 'a%', or REGEXP_EXTRACT(x, '…') IS NOT NULL"
	case "<=>":
		hint = "write x IS NOT DISTINCT FROM y"
	case "&&":
		hint = "write AND"
	case "[":
		hint = "there are no arrays: keep JSON in a STRING and read it with JSON_VALUE"
	case "&", "|", "#", "<<", ">>", "@>", "<@":
	default:
		return
	}
	p.unsupported("the operator "+t.text+" is", hint)
}
