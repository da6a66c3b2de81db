package sql

// maxNested bounds the queries within queries.
const maxNested = 50

// atQuery reports whether a query begins here.
func (p *parser) atQuery() bool {
	n := 0
	for p.peek(n).isSymbol("(") {
		n++
	}
	t := p.peek(n)
	return t.isWord("SELECT") || t.isWord("WITH") || t.isWord("VALUES") && p.peek(n+1).isSymbol("(")
}

// query reads [WITH …] body. Parentheses that change nothing leave no node.
func (p *parser) query() *Query {
	start := p.here()
	q := &Query{}
	if p.nested++; p.nested > maxNested {
		p.unsupported("a query within more than 50 others is", "name the inner ones: WITH a AS (…), b AS (… FROM a)")
	}
	defer func() { p.nested-- }()
	if p.word("WITH") {
		q.With = p.with()
	}
	q.Body = p.union()
	q.Span = p.span(start)
	if inner, ok := q.Body.(*Query); ok && (len(q.With) == 0 || len(inner.With) == 0) {
		q.With, q.Body = append(q.With, inner.With...), inner.Body
	}
	return q
}

func (p *parser) with() []*CTE {
	if p.isWord("RECURSIVE") && p.peek(1).isName() {
		p.unsupported("WITH RECURSIVE is", "a query over a stream cannot read itself")
	}
	var list []*CTE
	for p.err == nil {
		c := &CTE{Name: p.name("the name of a common table expression")}
		if p.isSymbol("(") && !p.atQuery() {
			c.Columns = p.columnNames()
		}
		p.expectWord("AS")
		if p.isWord("MATERIALIZED") || p.areWords("NOT", "MATERIALIZED") {
			p.unsupported("MATERIALIZED is", "leave it out")
		}
		c.Query = p.subquery()
		c.Span = p.span(c.Name.Start)
		list = append(list, c)
		if !p.symbol(",") {
			break
		}
	}
	if p.isWord("INSERT") {
		p.unsupported("WITH before INSERT is", "write it behind: INSERT INTO … WITH … SELECT")
	}
	return list
}

// subquery reads (query).
func (p *parser) subquery() *Query {
	from := p.at
	p.expectSymbol("(")
	q := p.query()
	if p.err == nil && !p.isSymbol(")") {
		p.expectedHint("')'", p.misspelt("WHERE", "GROUP", "HAVING", "UNION"))
	}
	p.sync(from+1, from+1, func(token) bool { return false })
	p.expectSymbol(")")
	return q
}

const insteadOfSetOperation = "a query has UNION ALL; put marked rows of both together and count the marks: … UNION ALL … GROUP BY …"

// union reads queries with UNION ALL between them.
func (p *parser) union() Body {
	start := p.here()
	inputs := p.flat(nil, p.term())
	for p.err == nil {
		t := p.tok()
		switch {
		case p.words("UNION", "ALL"):
		case t.isWord("UNION"):
			p.unsupported("UNION (which removes duplicates) is", "write UNION ALL, and around it SELECT DISTINCT * FROM (…)")
			p.note()
			p.advance()
			p.word("DISTINCT")
		case t.isWord("INTERSECT"), t.isWord("EXCEPT"), t.isWord("MINUS"):
			p.unsupported(t.upper+" is", insteadOfSetOperation)
			p.note()
			p.advance()
			if !p.word("ALL") {
				p.word("DISTINCT")
			}
		default:
			if len(inputs) == 1 {
				return inputs[0]
			}
			return &Union{Span: p.span(start), Inputs: inputs}
		}
		inputs = p.flat(inputs, p.term())
	}
	return &Union{Span: p.span(start), Inputs: inputs}
}

// flat appends one input of a union: of a union in parentheses, its inputs.
func (p *parser) flat(list []Body, b Body) []Body {
	if q, ok := b.(*Query); ok && len(q.With) == 0 {
		b = q.Body
	}
	if u, ok := b.(*Union); ok {
		return append(list, u.Inputs...)
	}
	return append(list, b)
}

// term reads one input of a union.
func (p *parser) term() Body {
	var b Body
	switch t := p.tok(); {
	case t.isWord("SELECT"):
		return p.selectQuery()
	case t.isWord("VALUES"):
		b = p.values()
	case t.isSymbol("("):
		b = p.subquery()
	case t.isWord("TABLE"):
		p.unsupported("TABLE name as a query is", "write SELECT * FROM name")
	case t.isWord("FROM"):
		p.expectedHint("SELECT", "write SELECT * before FROM")
	default:
		p.expectedOneOf("SELECT", "VALUES", "WITH")
	}
	p.clauses(nil)
	return b
}

// values reads VALUES (…), (…), ….
func (p *parser) values() *Values {
	start := p.here()
	v := &Values{}
	p.expectWord("VALUES")
	for p.err == nil {
		first := p.tok()
		var row []Expr
		p.parenthesised(func() {
			if p.isWord("DEFAULT") && (p.peek(1).isSymbol(",") || p.peek(1).isSymbol(")")) {
				p.unsupported("DEFAULT is", "leave the column out of INSERT INTO t (…): it becomes NULL")
			}
			row = append(row, p.expression())
		})
		if p.err == nil && len(v.Rows) > 0 && len(row) != len(v.Rows[0]) && len(p.errs) == 0 {
			p.fail(CodeSyntax, first.start, p.behind(), "the rows of VALUES have different lengths", "")
			p.note()
		}
		v.Rows = append(v.Rows, row)
		if !p.symbol(",") {
			break
		}
	}
	v.Span = p.span(start)
	return v
}

func (p *parser) selectQuery() *Select {
	s := &Select{}
	start := p.here()
	p.expectWord("SELECT")
	if p.word("DISTINCT") {
		s.Distinct = true
		if p.isWord("ON") {
			p.unsupported("DISTINCT ON is", "SELECT DISTINCT keeps whole rows apart; of a key's rows, MIN and MAX with GROUP BY choose")
		}
	} else {
		p.word("ALL")
	}
	if t := p.tok(); t.isWord("TOP") && p.peek(1).kind == kindNumber {
		p.unsupported("TOP is", readInOrder)
	}
	p.items(s)
	p.clauses(s)
	s.Span = p.span(start)
	return s
}

// items reads the select list; a wrong item does not hide the next.
func (p *parser) items(s *Select) {
	for p.err == nil {
		from := p.at
		s.Items = append(s.Items, p.item())
		if p.err == nil && !p.isSymbol(",") && !p.isWord("INTO") && !p.endsClause() {
			p.expectedHint("',' or FROM", p.misspelt("FROM"))
		}
		p.sync(from, from, func(t token) bool { return isComma(t) || beginsClause(t) })
		if !p.symbol(",") {
			return
		}
		if p.isWord("FROM") {
			p.expectedHint("an expression", "remove the comma before FROM")
			p.note()
			return
		}
	}
}

// endsClause reports whether what has been read may be all: a clause begins, or the
// query ends.
func (p *parser) endsClause() bool {
	t := p.tok()
	return t.kind == kindEOF || t.isSymbol(";") || t.isSymbol(")") || beginsClause(t) || t.kind == kindWord && opensClause(t.upper)
}

func (p *parser) item() *Item {
	start := p.here()
	it := &Item{}
	if star := p.star(); star != nil {
		it.Expr = star
		it.Span = star.Span
		return it
	}
	it.Expr = p.expression()
	if p.word("AS") {
		a := p.name("a name")
		it.Alias = &a
	} else {
		it.Alias = p.alias()
	}
	it.Span = p.span(start)
	return it
}

// star reads * or table.*, or nothing.
func (p *parser) star() *Star {
	start := p.here()
	if p.symbol("*") {
		p.refuseStarOptions()
		return &Star{Span: p.span(start)}
	}
	if p.tok().isName() && p.peek(1).isSymbol(".") && p.peek(2).isSymbol("*") {
		table := p.name("a name")
		p.advance()
		p.advance()
		p.refuseStarOptions()
		return &Star{Span: p.span(start), Table: &table}
	}
	return nil
}

func (p *parser) refuseStarOptions() {
	if t := p.tok(); (t.isWord("EXCEPT") || t.isWord("EXCLUDE") || t.isWord("REPLACE")) && p.peek(1).isSymbol("(") {
		p.unsupported("* "+t.upper+" (…) is", "write the columns out")
	}
}

// alias reads a name without AS, or nothing.
func (p *parser) alias() *Ident {
	t := p.tok()
	if t.kind == kindQuoted || t.isName() && !opensClause(t.upper) && !p.peek(1).isWord("BY") {
		a := p.name("a name")
		return &a
	}
	return nil
}

// opensClause lists the words that are no reserved ones but that nobody means as an
// alias without AS: they begin a clause that has to be refused by name. So does, before
// BY, any word (CLUSTER BY).
func opensClause(upper string) bool {
	switch upper {
	case "WINDOW", "QUALIFY", "TABLESAMPLE", "MINUS", "EMIT", "MATCH_RECOGNIZE", "OVER", "FILTER", "WITHIN", "COLLATE", "PIVOT", "UNPIVOT", "ASOF", "RETURNING":
		return true
	}
	return false
}
