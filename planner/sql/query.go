package sql

func (p *parser) insert(start int) *Insert {
	switch {
	case p.isWord("OVERWRITE"):
		p.unsupported("INSERT OVERWRITE is", "write INSERT INTO")
	default:
		p.expectWord("INTO")
	}
	ins := &Insert{Table: p.name("the name of a table")}
	p.refuseQualified("a table")
	if p.isSymbol("(") && p.peek(1).upper != "SELECT" {
		ins.Columns = p.names("a column's name")
	}
	switch {
	case p.isWord("VALUES"):
		p.unsupported("INSERT INTO … VALUES is", "")
	case p.isWord("PARTITION"):
		p.unsupported("PARTITION is", "")
	case p.isWord("WITH"), p.isSymbol("("):
		p.refuseStatement()
	case !p.isWord("SELECT"):
		p.expected("SELECT")
	}
	ins.Query = p.query()
	ins.Span = p.span(start)
	return ins
}

func (p *parser) query() *Query {
	start := p.here()
	q := &Query{Body: p.selectStatement()}
	q.Span = p.span(start)
	return q
}

func (p *parser) selectStatement() *Select {
	s := &Select{}
	start := p.here()
	p.expectWord("SELECT")
	if p.isWord("DISTINCT") {
		p.unsupported("SELECT DISTINCT is", "SELECT a, b … GROUP BY a, b gives each combination once")
	}
	p.word("ALL")
	for {
		s.Items = append(s.Items, p.item())
		if !p.symbol(",") {
			break
		}
		if p.isWord("FROM") {
			p.expectedHint("an expression", "remove the comma before FROM")
		}
	}
	p.fromClause(s)
	if p.word("WHERE") {
		s.Where = p.expression()
	}
	if p.word("GROUP") {
		p.expectWord("BY")
		s.GroupBy = p.groupBy()
	}
	p.refuseClauses()
	s.Span = p.span(start)
	return s
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
	} else if a := p.alias(); a != nil {
		it.Alias = a
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
	t := p.tok()
	if (t.kind == kindQuoted || t.kind == kindWord && !reserved(t.upper)) && p.peek(1).text == "." && p.peek(1).kind == kindSymbol &&
		p.peek(2).text == "*" && p.peek(2).kind == kindSymbol {
		table := p.name("a name")
		p.advance()
		p.advance()
		p.refuseStarOptions()
		return &Star{Span: p.span(start), Table: &table}
	}
	return nil
}

func (p *parser) refuseStarOptions() {
	if t := p.tok(); t.kind == kindWord && (t.upper == "EXCEPT" || t.upper == "EXCLUDE" || t.upper == "REPLACE") && p.peek(1).text == "(" {
		p.unsupported("* "+t.upper+" (…) is", "write the columns out")
	}
}

// alias reads a name without AS, or nothing.
func (p *parser) alias() *Ident {
	t := p.tok()
	if t.kind == kindQuoted || t.kind == kindWord && !reserved(t.upper) && !opensClause(t.upper) {
		a := p.name("a name")
		return &a
	}
	return nil
}

// opensClause lists the words that are no reserved ones but that nobody means as an
// alias without AS: they begin a clause that has to be refused by name.
func opensClause(upper string) bool {
	switch upper {
	case "WINDOW", "QUALIFY", "TABLESAMPLE", "MINUS", "EMIT", "MATCH_RECOGNIZE", "OVER", "FILTER", "WITHIN", "COLLATE", "PIVOT", "UNPIVOT", "ASOF":
		return true
	}
	return false
}

func (p *parser) fromClause(s *Select) {
	if p.isWord("INTO") {
		p.unsupported("SELECT … INTO is", "write INSERT INTO table SELECT …")
	}
	if !p.word("FROM") {
		if t := p.tok(); t.kind == kindEOF || t.kind == kindSymbol && t.text == ";" {
			p.expectedHint("FROM", "a query reads a table")
			return
		}
		p.expectedHint("',' or FROM", p.misspelt("FROM"))
		return
	}
	s.From = p.tableRef()
}

func (p *parser) tableRef() *TableRef {
	start := p.here()
	t := p.tok()
	next := p.peek(1)
	switch {
	case p.isSymbol("("):
		p.unsupported("a subquery in FROM is", "write the query in one SELECT")
	case p.isWord("LATERAL"), p.isWord("UNNEST") && next.text == "(":
		p.unsupported(t.upper+" is", "")
	case p.isWord("TABLE") && next.text == "(":
		if f := p.peek(2); f.kind == kindWord {
			p.unsupported("the table function "+f.upper+" is", "")
		}
		p.unsupported("TABLE(…) is", "")
	}
	ref := &TableRef{Name: p.name("the name of a table")}
	if p.isSymbol("(") {
		p.fail(CodeUnsupported, t.start, t.end, "the table function "+t.text+" is not supported", "")
	}
	p.refuseQualified("a table")
	p.refuseFrom()
	if p.word("AS") {
		a := p.name("a name")
		ref.Alias = &a
	} else {
		ref.Alias = p.alias()
	}
	if ref.Alias != nil && p.isSymbol("(") {
		p.unsupported("a list of column aliases is", "name the columns in the select list")
	}
	p.refuseFrom()
	ref.Span = p.span(start)
	return ref
}

// refuseFrom refuses what may follow a table in FROM.
func (p *parser) refuseFrom() {
	t := p.tok()
	if p.isSymbol(",") {
		p.unsupported("a second table in FROM (a join) is", "")
		return
	}
	if t.kind != kindWord {
		return
	}
	switch t.upper {
	case "JOIN", "INNER", "CROSS", "NATURAL", "LEFT", "RIGHT", "FULL", "ASOF":
		p.unsupported("JOIN is", "")
	case "FOR":
		p.unsupported("FOR SYSTEM_TIME AS OF is", "")
	case "TABLESAMPLE", "MATCH_RECOGNIZE", "PIVOT", "UNPIVOT":
		p.unsupported(t.upper+" is", "")
	}
}

func (p *parser) groupBy() []Expr {
	var list []Expr
	for {
		t := p.tok()
		if t.kind == kindWord && p.err == nil {
			next := p.peek(1)
			switch {
			case t.upper == "GROUPING" && next.upper == "SETS":
				p.unsupported("GROUPING SETS is", "submit one job for each grouping")
			case (t.upper == "ROLLUP" || t.upper == "CUBE") && next.text == "(":
				p.unsupported(t.upper+" is", "submit one job for each grouping")
			case t.upper == "ALL" || t.upper == "DISTINCT":
				p.unsupported("GROUP BY "+t.upper+" is", "write the columns out")
			}
		}
		if p.isSymbol("(") && p.peek(1).text == ")" && p.peek(1).kind == kindSymbol {
			p.unsupported("the empty grouping () is", "leave GROUP BY out")
		}
		list = append(list, p.expression())
		if !p.symbol(",") {
			return list
		}
	}
}

// refuseClauses refuses what may follow GROUP BY.
func (p *parser) refuseClauses() {
	t := p.tok()
	if t.kind != kindWord {
		return
	}
	switch t.upper {
	case "HAVING":
		p.unsupported("HAVING is", "")
	case "ORDER":
		p.unsupported("ORDER BY is", "a stream has no last row; order the result when you read it: /results?order_by=…")
	case "LIMIT", "OFFSET", "FETCH":
		p.unsupported(t.upper+" is", "limit the result when you read it: /results?limit=…")
	case "UNION", "EXCEPT", "INTERSECT", "MINUS":
		p.unsupported(t.upper+" is", "")
	case "WINDOW", "QUALIFY", "EMIT", "FOR":
		p.unsupported(t.upper+" is", "")
	}
}
