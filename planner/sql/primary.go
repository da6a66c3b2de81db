package sql

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
		p.unsupported("CASE is", "")
	case "EXISTS":
		p.unsupported("EXISTS is", "")
	}
	if valueWord(t.upper) {
		p.unsupported(t.upper+" is", "")
	}
	next := p.peek(1)
	switch {
	case reserved(t.upper):
		p.expected("an expression or a name")
		return &NullLit{}
	case t.upper == "INTERVAL" && next.kind == kindString:
		return p.interval(t.start)
	case next.kind == kindString && (t.upper == "DATE" || t.upper == "TIME" || t.upper == "TIMESTAMP" || t.upper == "TIMESTAMP_LTZ"):
		p.unsupported("the literal "+t.upper+" '…' is", "a TIMESTAMP_LTZ column compares with a plain string: ts >= '2017-11-25T00:00:00Z'")
	case t.upper == "ARRAY" && next.text == "[":
		p.unsupported("ARRAY[…] is", "")
	case next.kind == kindSymbol && next.text == "(":
		return p.call()
	}
	return p.reference()
}

// parenthesis reads (expression); the tree keeps no node for it.
func (p *parser) parenthesis() Expr {
	p.advance()
	p.count()
	if p.isWord("SELECT") || p.isWord("WITH") {
		p.unsupported("a subquery is", "")
	}
	x := p.binding(0)
	if p.isSymbol(",") {
		p.unsupported("a row value (a, b) is", "")
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

func (p *parser) interval(start int) Expr {
	p.advance()
	n := &IntervalLit{Value: p.str("a value").Value}
	t := p.tok()
	if t.kind != kindWord {
		p.expected("a unit (SECOND, MINUTE, HOUR, DAY)")
		return n
	}
	p.advance()
	n.Unit = t.upper
	if p.isSymbol("(") || p.isWord("TO") {
		p.unsupported("an INTERVAL of two units or with a precision is", "write it in its smaller unit")
	}
	n.Span = p.span(start)
	return n
}

// call reads name(…). Functions that have a syntax of their own are refused here, all
// others by the binder, which knows their names.
func (p *parser) call() Expr {
	t := p.tok()
	switch t.upper {
	case "CAST", "TRY_CAST", "CONVERT":
		p.unsupported(t.upper+" is", "declare the column with the type you need")
	case "EXTRACT", "SUBSTRING", "TRIM", "POSITION", "OVERLAY", "FLOOR", "CEIL", "CEILING", "ROW", "ANY", "SOME",
		"JSON_VALUE", "JSON_QUERY", "JSON_EXISTS", "JSON_OBJECT", "LISTAGG":
		p.unsupported(t.upper+" is", "")
	}
	c := &Call{Name: p.name("a function's name")}
	p.count()
	p.expectSymbol("(")
	switch {
	case p.symbol("*"):
		c.Star = true
	case !p.isSymbol(")"):
		p.arguments(c)
	}
	p.expectSymbol(")")
	c.Span = p.span(t.start)
	p.refuseCallSuffix()
	return c
}

func (p *parser) arguments(c *Call) {
	c.Distinct = p.word("DISTINCT")
	if !c.Distinct {
		p.word("ALL")
	}
	for p.err == nil {
		if t := p.tok(); t.kind == kindWord && p.peek(1).text == "=>" {
			p.unsupported("a named argument is", "")
		} else if p.isWord("TABLE") {
			p.unsupported("a TABLE argument is", "")
		}
		c.Args = append(c.Args, p.binding(0))
		if !p.symbol(",") {
			break
		}
	}
	if p.isWord("ORDER") {
		p.unsupported("ORDER BY in a call is", "")
	}
}

func (p *parser) refuseCallSuffix() {
	t := p.tok()
	if t.kind != kindWord {
		return
	}
	next := p.peek(1)
	switch {
	case t.upper == "FILTER" && next.text == "(":
		p.unsupported("FILTER (WHERE …) is", "put the condition into WHERE and submit one job for each")
	case t.upper == "OVER" && (next.text == "(" || next.kind == kindWord || next.kind == kindQuoted):
		p.unsupported("OVER (a window over rows) is", "")
	case t.upper == "WITHIN" && next.upper == "GROUP":
		p.unsupported("WITHIN GROUP is", "")
	case (t.upper == "IGNORE" || t.upper == "RESPECT") && next.upper == "NULLS":
		p.unsupported(t.upper+" NULLS is", "")
	}
}
