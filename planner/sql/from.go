package sql

const (
	insteadOfJoin = "a query reads one table; UNION ALL brings several together, and GROUP BY their rows of one key: " +
		"SELECT k, MAX(a), MAX(b) FROM (SELECT k, a, NULL AS b FROM t UNION ALL SELECT k, NULL, b FROM s) AS u GROUP BY k"
	insteadOfWindow = "group by the time itself: GROUP BY FLOOR(ts TO MINUTE)"
)

// from reads the one table or subquery of FROM.
func (p *parser) from() From {
	t, next := p.tok(), p.peek(1)
	switch {
	case t.isSymbol("("):
		return p.fromSubquery()
	case t.isWord("LATERAL"), t.isWord("UNNEST") && next.isSymbol("("):
		p.unsupported(t.upper+" is", "a row of the table gives one row here; keep JSON in a STRING and read it with JSON_VALUE")
	case t.isWord("TABLE") && next.isSymbol("("):
		name := ""
		if p.peek(3).isSymbol("(") {
			name = p.peek(2).upper
		}
		p.tableFunction(t, name)
	case t.isWord("VALUES") && next.isSymbol("("):
		p.expectedHint("the name of a table or '('", "put it in parentheses: FROM (VALUES (1, 'a'), (2, 'b')) AS v (x, y)")
	case t.isWord("ONLY") && next.isName() && !opensClause(next.upper):
		p.unsupported("ONLY is", "leave it out: no table inherits from another")
	}
	ref := &TableRef{Name: p.name("the name of a table")}
	if p.isSymbol("(") {
		p.tableFunction(t, asciiUpper(t.text))
	}
	p.refuseQualified("a table")
	ref.Alias, ref.Columns = p.tableAlias()
	ref.Span = p.span(t.start)
	return ref
}

func (p *parser) fromSubquery() From {
	start := p.here()
	s := &Subquery{}
	if next := p.peek(1); next.isName() && !next.isWord("VALUES") && !p.peek(2).isSymbol("(") {
		p.advance()
		p.expectedHint("a query", "write the table's name without parentheses")
	}
	s.Query = p.subquery()
	s.Alias, s.Columns = p.tableAlias()
	s.Span = p.span(start)
	return s
}

// tableAlias reads [AS] name [(columns)] and refuses what may not stand around it.
func (p *parser) tableAlias() (*Ident, []Ident) {
	p.refuseFrom()
	var alias *Ident
	if p.word("AS") {
		a := p.name("a name")
		alias = &a
	} else {
		alias = p.alias()
	}
	var columns []Ident
	if alias != nil && p.isSymbol("(") {
		columns = p.columnNames()
	}
	p.refuseFrom()
	return alias, columns
}

// tableFunction refuses a call of name in FROM, which begins at token t.
func (p *parser) tableFunction(t token, name string) {
	hint := "new names of columns stand behind an alias: FROM t AS x (a, b)"
	switch name {
	case "TUMBLE", "HOP", "CUMULATE", "SESSION":
		hint = insteadOfWindow
	case "GENERATE_SERIES":
		hint = "a table with the connector 'datagen' makes rows; VALUES writes them out"
	case "":
		p.fail(CodeUnsupported, t.start, t.end, "TABLE(…) is not supported", "write the table's name alone")
	}
	p.fail(CodeUnsupported, t.start, t.end, "the table function "+name+" is not supported", hint)
}

// refuseFrom refuses what may follow a table in FROM.
func (p *parser) refuseFrom() {
	t := p.tok()
	if t.isSymbol(",") {
		p.unsupported("a second table in FROM (a join) is", insteadOfJoin)
		return
	}
	if t.kind != kindWord {
		return
	}
	switch t.upper {
	case "JOIN", "INNER", "CROSS", "NATURAL", "LEFT", "RIGHT", "FULL", "ASOF":
		p.unsupported("JOIN is", insteadOfJoin)
	case "FOR":
		if !p.peek(1).isWord("SYSTEM_TIME") {
			return
		}
		p.unsupported("FOR SYSTEM_TIME AS OF is", "a table is read from its beginning as a stream")
	case "TABLESAMPLE":
		p.unsupported("TABLESAMPLE is", "sample by a key: WHERE id % 100 = 0")
	case "MATCH_RECOGNIZE":
		p.unsupported("MATCH_RECOGNIZE is", "")
	case "PIVOT":
		p.unsupported("PIVOT is", "write a column for each value: COUNT(*) FILTER (WHERE x = 'a') AS a")
	case "UNPIVOT":
		p.unsupported("UNPIVOT is", "write a SELECT for each column, with UNION ALL between them")
	}
}
