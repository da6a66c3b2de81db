package sql

// ranks of the clauses of a query: they stand in this order.
const (
	rankItems = iota
	rankFrom
	rankWhere
	rankGroup
	rankHaving
)

// clauses reads what follows the select list, each clause on its own: a wrong one does
// not hide the next. Without s, behind VALUES or parentheses, there is none to read.
func (p *parser) clauses(s *Select) {
	rank, last := rankItems, "SELECT"
	if s == nil {
		rank = rankHaving + 1
	}
	for p.err == nil {
		from, t := p.at, p.tok()
		own := clauseRank(t)
		switch {
		case t.kind == kindEOF, t.isSymbol(";"), t.isSymbol(")"):
			return
		case own == 0 || s == nil:
			if p.refuseClause(t); p.err == nil {
				p.endOfQuery(s)
			}
			if p.err == nil {
				return
			}
		case own == rank:
			p.fail(CodeSyntax, t.start, t.end, "a query has one "+last+", this is the second", "")
		case own < rank:
			p.fail(CodeSyntax, t.start, t.end, "expected "+p.terminator()+", found "+t.upper, clauseName(own)+" stands before "+last)
		default:
			rank, last = own, clauseName(own)
			p.advance()
			p.clause(s, own)
		}
		p.sync(from, from+1, beginsClause)
	}
}

func (p *parser) clause(s *Select, rank int) {
	switch rank {
	case rankFrom:
		s.From = p.from()
	case rankWhere:
		s.Where = p.expression()
	case rankGroup:
		p.expectWord("BY")
		s.GroupBy = p.groupBy()
	case rankHaving:
		s.Having = p.expression()
	}
}

func clauseRank(t token) int {
	if t.kind != kindWord {
		return 0
	}
	switch t.upper {
	case "FROM":
		return rankFrom
	case "WHERE":
		return rankWhere
	case "GROUP":
		return rankGroup
	case "HAVING":
		return rankHaving
	}
	return 0
}

func clauseName(rank int) string {
	return [...]string{"SELECT", "FROM", "WHERE", "GROUP BY", "HAVING"}[rank]
}

// endOfQuery sees that the query may end here.
func (p *parser) endOfQuery(s *Select) {
	t := p.tok()
	switch next := p.peek(1); {
	case t.isWord("WITH") && (next.isWord("ROLLUP") || next.isWord("CUBE")):
		p.unsupported("WITH "+next.upper+" is", "write GROUP BY "+next.upper+" (…)")
	case t.isWord("UNION"), t.isWord("EXCEPT"), t.isWord("INTERSECT"), t.isWord("MINUS"):
	case t.isWord("WITH") && next.isName(): // WITH CHECK OPTION
	default:
		hint := ""
		if s != nil {
			hint = p.misspelt("WHERE", "GROUP", "HAVING", "UNION", "ORDER", "LIMIT")
		}
		if t.isWord("NOT") && (next.isWord("NULL") || next.isWord("IS")) {
			hint = "write x IS NOT NULL"
		}
		p.expectedHint(p.terminator(), hint)
	}
}

// terminator says what ends the query being read.
func (p *parser) terminator() string {
	if p.nested > 1 {
		return "')'"
	}
	return "the end of the statement"
}

const readInOrder = "the result is kept and read in order: GET /v1/jobs/{job}/results?order_by=n desc&limit=10, or weir job results JOB --order-by 'n desc' --limit 10"

// refuseClause refuses, by name, the clauses that Weir does not have.
func (p *parser) refuseClause(t token) {
	if t.kind != kindWord {
		return
	}
	switch t.upper {
	case "INTO":
		p.unsupported("SELECT … INTO is", "write INSERT INTO table SELECT …")
	case "ORDER":
		p.unsupported("ORDER BY is", readInOrder)
	case "LIMIT", "FETCH":
		p.unsupported(t.upper+" is", readInOrder)
	case "OFFSET":
		p.unsupported("OFFSET is", "the result is kept and read by pages: GET /v1/jobs/{job}/results?order_by=n desc&limit=10 gives the cursor of the next")
	case "WINDOW":
		p.unsupported("WINDOW is", insteadOfOver)
	case "QUALIFY":
		p.unsupported("QUALIFY is", insteadOfOver)
	case "EMIT":
		p.unsupported("EMIT is", "a result shows its changes as they come")
	case "FOR":
		p.unsupported("FOR … of a query is", "leave it out: nobody else changes what a query reads")
	case "CLUSTER", "DISTRIBUTE", "SORT":
		if p.peek(1).isWord("BY") {
			p.unsupported(t.upper+" BY is", readInOrder)
		}
	case "ON":
		if p.peek(1).isWord("CONFLICT") {
			p.unsupported("ON CONFLICT is", "of a key's rows GROUP BY makes one: MIN and MAX choose")
		}
	case "RETURNING":
		p.unsupported("RETURNING is", "leave it out: a job with INSERT has no result")
	}
}

func (p *parser) groupBy() []Expr {
	var list []Expr
	if t := p.tok(); t.isWord("ALL") || t.isWord("DISTINCT") {
		p.unsupported("GROUP BY "+t.upper+" is", "write the columns out")
	}
	for p.err == nil {
		from := p.at
		list = append(list, p.groupElement())
		if p.err == nil && !p.isSymbol(",") && !p.endsClause() {
			return list // the caller tells what it expects
		}
		p.sync(from, from, func(t token) bool { return isComma(t) || beginsClause(t) })
		if !p.symbol(",") {
			break
		}
	}
	return list
}

// groupElement reads an expression, a row or GROUPING SETS, ROLLUP or CUBE.
func (p *parser) groupElement() Expr {
	p.operators = 0
	t := p.tok()
	switch {
	case t.isWord("GROUPING") && p.peek(1).isWord("SETS"):
		p.advance()
		p.advance()
		return p.groupingSets(t.start, "GROUPING SETS", 0)
	case (t.isWord("ROLLUP") || t.isWord("CUBE")) && p.peek(1).isSymbol("("):
		p.advance()
		return p.groupingSets(t.start, t.upper, 0)
	}
	return p.rowOrExpression()
}

// groupingSets reads the list of ROLLUP, CUBE or GROUPING SETS. depth counts those around.
func (p *parser) groupingSets(start int, kind string, depth int) Expr {
	g := &GroupingSets{Kind: kind}
	if depth > maxNested {
		p.unsupported("GROUPING SETS within more than 50 others is", "")
	}
	p.parenthesised(func() {
		t := p.tok()
		switch {
		case kind == "GROUPING SETS" && t.isWord("GROUPING") && p.peek(1).isWord("SETS"):
			p.advance()
			p.advance()
			g.List = append(g.List, p.groupingSets(t.start, kind, depth+1))
		case kind == "GROUPING SETS" && (t.isWord("ROLLUP") || t.isWord("CUBE")) && p.peek(1).isSymbol("("):
			p.advance()
			g.List = append(g.List, p.groupingSets(t.start, t.upper, depth+1))
		default:
			g.List = append(g.List, p.rowOrExpression())
		}
	})
	g.Span = p.span(start)
	return g
}

// rowOrExpression reads (), (a, b) or an expression, which may begin with a parenthesis.
func (p *parser) rowOrExpression() Expr {
	start := p.here()
	p.operators = 0
	if !p.isSymbol("(") || p.peek(1).isWord("SELECT") || p.peek(1).isWord("WITH") {
		return p.expression()
	}
	p.advance()
	if p.symbol(")") {
		return &Row{Span: p.span(start)}
	}
	x := p.binding(0)
	if !p.isSymbol(",") {
		p.expectSymbol(")")
		return p.climb(start, x, 0)
	}
	r := &Row{List: []Expr{x}}
	for p.symbol(",") {
		r.List = append(r.List, p.binding(0))
	}
	p.expectSymbol(")")
	r.Span = p.span(start)
	return r
}
