package sql

const insteadOfOver = "GROUP BY gives a row for each key; the first n rows are read in order: /v1/jobs/{job}/results?order_by=n desc&limit=10"

// call reads name(…). Functions that have a syntax of their own are read here; whether
// there is a function of a name is the binder's matter.
func (p *parser) call() Expr {
	t := p.tok()
	p.count()
	var x Expr
	switch t.upper {
	case "CAST", "TRY_CAST":
		x = p.cast(t.upper == "TRY_CAST")
	case "EXTRACT":
		x = p.extract()
	case "FLOOR", "CEIL", "CEILING":
		x = p.floor()
	case "TRIM":
		x = p.trim()
	case "POSITION":
		x = p.position()
	case "SUBSTRING":
		x = p.substring()
	default:
		p.refuseCall(t)
		x = p.plainCall()
	}
	p.callSuffix(x)
	return x
}

func (p *parser) refuseCall(t token) {
	switch t.upper {
	case "CONVERT":
		p.unsupported("CONVERT is", "write CAST(x AS type)")
	case "SAFE_CAST":
		p.unsupported("SAFE_CAST is", "write TRY_CAST(x AS type)")
	case "OVERLAY":
		p.unsupported("OVERLAY is", "write SUBSTRING(…) || y || SUBSTRING(…)")
	case "ROW", "MULTISET":
		p.unsupported(t.upper+" is", "write the values in columns of their own")
	case "ANY", "SOME":
		p.unsupported(t.upper+" is", "write the values out: x IN (1, 2)")
	case "JSON_QUERY", "JSON_EXISTS", "JSON_OBJECT", "JSON_ARRAY", "JSON_TABLE", "JSON_OBJECTAGG", "JSON_ARRAYAGG":
		p.unsupported(t.upper+" is", "JSON_VALUE reads one value out of JSON")
	case "MATCH_RECOGNIZE":
		p.unsupported(t.upper+" is", "")
	}
}

// open begins a call: the name, its parenthesis.
func (p *parser) open() *Call {
	c := &Call{}
	if t := p.tok(); t.kind == kindWord && joinWord(t.upper) {
		p.advance()
		c.Name = Ident{Span: Span{t.start, t.end}, Name: t.text}
	} else {
		c.Name = p.name("a function's name")
	}
	p.expectSymbol("(")
	return c
}

// close ends a call that began with its name. An aggregate's FILTER comes behind.
func (p *parser) close(c *Call) *Call {
	p.expectSymbol(")")
	c.Span = p.span(c.Name.Start)
	return c
}

func (p *parser) plainCall() Expr {
	c := p.open()
	switch {
	case p.symbol("*"):
		c.Star = true
	case !p.isSymbol(")"):
		p.arguments(c)
	}
	return p.close(c)
}

func (p *parser) arguments(c *Call) {
	c.Distinct = p.word("DISTINCT")
	if !c.Distinct {
		p.word("ALL")
	}
	for p.err == nil {
		if t := p.tok(); t.kind == kindWord && p.peek(1).isSymbol("=>") {
			p.unsupported("a named argument is", "give the arguments in their order")
		} else if t.isWord("TABLE") {
			p.unsupported("a TABLE argument is", "")
		} else if p.atSelect() {
			p.unsupported("a subquery in an expression is", "a query has subqueries in FROM")
		}
		c.Args = append(c.Args, p.binding(0))
		if !p.symbol(",") {
			break
		}
	}
	switch t := p.tok(); {
	case t.isWord("ORDER"):
		p.unsupported("ORDER BY in a call is", "an aggregate here does not depend on the order of its rows")
	case t.isWord("RETURNING"):
		p.unsupported("RETURNING in a call is", "write TRY_CAST(JSON_VALUE(x, '$.path') AS type)")
	case (t.isWord("NULL") || t.isWord("ERROR") || t.isWord("DEFAULT")) && p.peek(1).kind == kindWord:
		p.unsupported(t.upper+" ON … in a call is", "what is not there or no single value is NULL; COALESCE gives another")
	case (t.isWord("IGNORE") || t.isWord("RESPECT")) && p.peek(1).isWord("NULLS"):
		p.unsupported(t.upper+" NULLS is", "FILTER (WHERE x IS NOT NULL) passes NULLs over")
	case !t.isSymbol(")"):
		p.expected("',' or ')'")
	}
}

func (p *parser) cast(try bool) Expr {
	start := p.here()
	p.open()
	c := &Cast{X: p.binding(0), Try: try}
	p.expectWord("AS")
	c.Type = p.typeName()
	if p.isWord("FORMAT") {
		p.unsupported("FORMAT in a CAST is", "DATE_FORMAT writes a time, TO_TIMESTAMP reads one")
	}
	p.expectSymbol(")")
	c.Span = p.span(start)
	return c
}

// wordOf reads a bare word.
func (p *parser) wordOf(what string) *Word {
	t := p.tok()
	if t.kind != kindWord || reserved(t.upper) {
		p.expectedHint(what, "")
		return &Word{}
	}
	p.advance()
	return &Word{Span: Span{t.start, t.end}, Name: t.upper}
}

// timeUnit reads the unit of EXTRACT and FLOOR, a word or a string; the binder knows
// which there are.
func (p *parser) timeUnit() *Word {
	t := p.tok()
	if t.kind == kindString && plainName(t.text) {
		p.advance()
		return &Word{Span: Span{t.start, t.end}, Name: asciiUpper(t.text)}
	}
	return p.wordOf("a unit (YEAR, MONTH, DAY, HOUR, MINUTE, SECOND …)")
}

// extract reads EXTRACT(unit FROM x).
func (p *parser) extract() Expr {
	c := p.open()
	unit := p.timeUnit()
	p.expectWord("FROM")
	c.Args = []Expr{unit, p.binding(0)}
	return p.close(c)
}

// floor reads FLOOR(x) and FLOOR(x TO unit), and CEIL so.
func (p *parser) floor() Expr {
	c := p.open()
	if p.isSymbol(")") {
		return p.close(c)
	}
	p.arguments1(c)
	if p.word("TO") {
		c.Args = append(c.Args, p.timeUnit())
		return p.close(c)
	}
	p.moreArguments(c)
	return p.close(c)
}

// arguments1 reads the first argument of a call with a syntax of its own.
func (p *parser) arguments1(c *Call) {
	c.Args = append(c.Args, p.binding(0))
}

// moreArguments reads the others where they are written with commas.
func (p *parser) moreArguments(c *Call) {
	for p.symbol(",") {
		c.Args = append(c.Args, p.binding(0))
	}
}

// trim reads TRIM(x), and TRIM([BOTH | LEADING | TRAILING] [characters] FROM x).
func (p *parser) trim() Expr {
	c := p.open()
	at := p.tok()
	side := &Word{Span: Span{at.start, at.start}, Name: "BOTH"}
	told := at.isWord("BOTH") || at.isWord("LEADING") || at.isWord("TRAILING")
	if next := p.peek(1); told && (next.isSymbol(",") || next.isSymbol(")") || next.isSymbol(".")) {
		told = false // a column of that name
	}
	if told {
		p.advance()
		side = &Word{Span: Span{at.start, at.end}, Name: at.upper}
	}
	var characters Expr
	if !p.isWord("FROM") {
		characters = p.binding(0)
	}
	if p.word("FROM") {
		if characters == nil {
			characters = &StringLit{Span: Span{p.behind(), p.behind()}, Value: " "}
		}
		c.Args = []Expr{side, characters, p.binding(0)}
		return p.close(c)
	}
	if told {
		p.expectWord("FROM")
	}
	c.Args = []Expr{characters}
	p.moreArguments(c)
	return p.close(c)
}

// position reads POSITION(part IN x).
func (p *parser) position() Expr {
	c := p.open()
	part := p.binding(powerIn + 1)
	if p.isSymbol(",") {
		p.expectedHint("IN", "write POSITION(part IN x)")
	}
	p.expectWord("IN")
	c.Args = []Expr{part, p.binding(0)}
	return p.close(c)
}

// substring reads SUBSTRING(x FROM a [FOR b]), SUBSTRING(x FOR b) and SUBSTRING(x, a, b).
func (p *parser) substring() Expr {
	c := p.open()
	p.arguments1(c)
	switch {
	case p.word("FROM"):
		c.Args = append(c.Args, p.binding(0))
		if p.word("FOR") {
			c.Args = append(c.Args, p.binding(0))
		}
	case p.word("FOR"):
		one := &NumberLit{Span: Span{p.behind(), p.behind()}, Text: "1"}
		c.Args = append(c.Args, one, p.binding(0))
		if p.isWord("FROM") {
			p.expectedHint("')'", "FROM stands before FOR")
		}
	case p.isWord("SIMILAR"):
		p.unsupported("SUBSTRING … SIMILAR is", "write REGEXP_EXTRACT(x, '…')")
	default:
		p.moreArguments(c)
	}
	return p.close(c)
}

// callSuffix reads FILTER behind a call, and refuses what else may follow.
func (p *parser) callSuffix(x Expr) {
	t, next := p.tok(), p.peek(1)
	if t.kind != kindWord {
		return
	}
	c, isCall := x.(*Call)
	switch {
	case t.upper == "WITHIN" && next.isWord("GROUP"):
		p.unsupported("WITHIN GROUP is", "an aggregate here does not depend on the order of its rows")
	case (t.upper == "IGNORE" || t.upper == "RESPECT") && next.isWord("NULLS"):
		p.unsupported(t.upper+" NULLS is", "FILTER (WHERE x IS NOT NULL) passes NULLs over")
	case t.upper == "FILTER" && next.isSymbol("(") && isCall:
		p.advance()
		p.advance()
		p.expectWord("WHERE")
		c.Filter = p.binding(0)
		p.expectSymbol(")")
		c.Span = p.span(c.Start)
	}
	if t, next := p.tok(), p.peek(1); t.isWord("OVER") && (next.isSymbol("(") || next.isName()) {
		p.unsupported("OVER (a window over rows) is", insteadOfOver)
	}
}
