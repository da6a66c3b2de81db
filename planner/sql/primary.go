package sql

import "strings"

// prefix reads an operand with the operators before it.
func (p *parser) prefix() Expr {
	t := p.tok()
	switch {
	case p.word("NOT"):
		p.count()
		x := p.binding(powerNot)
		return &Unary{Span: p.span(t.start), Op: "NOT", X: x}
	case p.symbol("-"), p.symbol("+"):
		p.count()
		x := p.binding(powerSign)
		return &Unary{Span: p.span(t.start), Op: t.text, X: x}
	}
	return p.primary(t)
}

func (p *parser) primary(t token) Expr {
	span := Span{t.start, t.end}
	switch t.kind {
	case kindNumber:
		p.advance()
		return &NumberLit{Span: span, Text: t.text}
	case kindString:
		p.advance()
		return &StringLit{Span: span, Value: t.text}
	case kindBytes:
		p.advance()
		return &BytesLit{Span: span, Value: t.text}
	case kindQuoted:
		return p.reference()
	case kindWord:
		return p.wordPrimary(t, span)
	case kindSymbol:
		if t.text == "(" {
			return p.parenthesis()
		}
		if t.text == "*" {
			p.fail(CodeSyntax, t.start, t.end, "* stands alone in a select list, as table.* or in COUNT(*)", "")
		}
		switch t.text {
		case "~", "@":
			p.unsupported("the operator "+t.text+" is", "")
		case "|/":
			p.unsupported("the operator |/ is", "write SQRT(x)")
		case "||/":
			p.unsupported("the operator ||/ is", "write SIGN(x) * POWER(ABS(x), CAST(1 AS DOUBLE) / 3)")
		}
	}
	p.expected("an expression")
	return &NullLit{}
}

func (p *parser) wordPrimary(t token, span Span) Expr {
	switch t.upper {
	case "TRUE", "FALSE":
		p.advance()
		return &BoolLit{Span: span, Value: t.upper == "TRUE"}
	case "NULL":
		p.advance()
		return &NullLit{Span: span}
	case "CASE":
		return p.caseExpr(t.start)
	case "EXISTS":
		p.unsupported("EXISTS is", "a query reads one table; UNION ALL brings several together, and GROUP BY counts their rows of one key")
	}
	next := p.peek(1)
	switch {
	case valueWord(t.upper):
		return p.valueCall(t)
	case joinWord(t.upper) && next.isSymbol("("):
		return p.call()
	case reserved(t.upper) && p.goesOn(t):
		p.expected("an expression")
		return &NullLit{}
	case reserved(t.upper):
		p.expected("an expression or a name")
		return &NullLit{}
	case t.upper == "INTERVAL" && (next.kind == kindString || next.kind == kindNumber):
		return p.interval(t.start)
	case p.atTypedLiteral(t, next):
		return p.typedLiteral(t.start)
	case (t.upper == "ARRAY" || t.upper == "MAP") && next.isSymbol("["), t.upper == "ARRAY" && next.isSymbol("("):
		p.unsupported(t.upper+"[…] is", insteadOfNested)
	case next.isSymbol("("):
		return p.call()
	}
	return p.reference()
}

// valueCall reads CURRENT_TIMESTAMP and the like: calls without parentheses.
func (p *parser) valueCall(t token) Expr {
	switch t.upper {
	case "CURRENT_TIME", "LOCALTIME":
		p.unsupported(t.upper+" is", "there is no type TIME; CURRENT_TIMESTAMP and LOCALTIMESTAMP are the time with its day")
	case "CURRENT_USER", "SESSION_USER":
		p.unsupported(t.upper+" is", "")
	}
	p.advance()
	if p.isSymbol("(") {
		p.unsupported(t.upper+" with parentheses is", "write "+t.upper+" alone; CAST(… AS TIMESTAMP_LTZ(3)) rounds it")
	}
	at := Span{t.start, t.end}
	return &Call{Span: at, Name: Ident{Span: at, Name: t.upper}}
}

// parenthesis reads (expression); the tree keeps no node for it.
func (p *parser) parenthesis() Expr {
	p.advance()
	p.count()
	if p.atSelect() {
		p.unsupported("a subquery in an expression is", "a query has subqueries in FROM")
	}
	x := p.binding(0)
	if p.isSymbol(",") {
		p.unsupported("a row value (a, b) is", "compare one by one: a = 1 AND b = 2")
	}
	p.expectSymbol(")")
	return x
}

func (p *parser) reference() Expr {
	start := p.here()
	ref := &ColumnRef{Name: p.name("a column's name")}
	if p.symbol(".") {
		if p.isSymbol("*") {
			t := p.tok()
			p.fail(CodeSyntax, t.start, t.end, "table.* stands alone in a select list", "")
		}
		table := ref.Name
		ref.Table, ref.Name = &table, p.name("a column's name")
		if p.isSymbol(".") {
			p.unsupported("a name of three parts is", "write column or table.column")
		}
	}
	ref.Span = p.span(start)
	return ref
}

// caseExpr reads CASE [operand] WHEN … THEN … [ELSE …] END.
func (p *parser) caseExpr(start int) Expr {
	p.advance()
	p.count()
	c := &Case{}
	if !p.isWord("WHEN") {
		c.Operand = p.binding(0)
	}
	for first := true; p.err == nil && (first || p.isWord("WHEN")); first = false {
		at := p.here()
		p.expectWord("WHEN")
		w := &When{If: p.binding(0)}
		p.expectWord("THEN")
		w.Then = p.binding(0)
		w.Span = p.span(at)
		c.Whens = append(c.Whens, w)
	}
	if p.word("ELSE") {
		c.Else = p.binding(0)
	}
	if !p.word("END") {
		if c.Else == nil {
			p.expectedOneOf("WHEN", "ELSE", "END")
		}
		p.expectedOneOf("END")
	}
	c.Span = p.span(start)
	return c
}

// interval reads INTERVAL 'value' UNIT [TO UNIT].
func (p *parser) interval(start int) Expr {
	p.advance()
	n := &IntervalLit{}
	if t := p.tok(); t.kind == kindNumber {
		p.expectedHint("the number of an INTERVAL as a string", "write it in single quotes: INTERVAL '"+t.text+"' "+p.unitAt(1))
	}
	n.Value = p.str("a value").Value
	if t := p.tok(); p.atField() == "" {
		if strings.ContainsAny(n.Value, ":abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") { // units of its own
			n.Span = p.span(start)
			return n
		}
		hint := didYouMean(t.text, intervalUnits[:]...)
		if hint == "" {
			hint = "the unit stands behind the string: INTERVAL '5' SECOND"
		}
		p.expectedHint("a unit (SECOND, MINUTE, HOUR, DAY, MONTH, YEAR)", hint)
		return n
	}
	n.Unit, n.To = p.intervalFields(true)
	n.Span = p.span(start)
	return n
}

// unitAt names the unit n tokens on, or one as an example.
func (p *parser) unitAt(n int) string {
	if u := p.fieldAt(n); u != "" {
		return u
	}
	return "SECOND"
}

// atTypedLiteral reports whether DATE '…', TIMESTAMP … '…' or one of their kind begins
// here; the words are names otherwise.
func (p *parser) atTypedLiteral(t, next token) bool {
	switch t.upper {
	case "DATE":
		return next.kind == kindString
	case "TIME":
		if next.kind == kindString {
			p.unsupported("the literal TIME '…' is", "there is no type TIME")
		}
		return false
	case "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMPTZ":
	default:
		return false
	}
	n := 1
	if p.peek(1).isSymbol("(") && p.peek(2).kind == kindNumber && p.peek(3).isSymbol(")") {
		n = 4
	}
	after := p.peek(n)
	return after.kind == kindString || (after.isWord("WITH") || after.isWord("WITHOUT")) && (p.peek(n+1).isWord("TIME") || p.peek(n+1).isWord("LOCAL"))
}

func (p *parser) typedLiteral(start int) Expr {
	l := &TypedLit{Type: p.typeName()}
	l.Value = p.str("the value as a string").Value
	l.Span = p.span(start)
	return l
}
