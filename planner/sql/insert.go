package sql

func (p *parser) insert(start int) *Insert {
	if p.isWord("OVERWRITE") {
		p.unsupported("INSERT OVERWRITE is", "write INSERT INTO")
	}
	p.expectWord("INTO")
	if p.isWord("TABLE") {
		p.unsupported("TABLE before the name is", "leave it out: INSERT INTO name")
	}
	ins := &Insert{Table: p.name("the name of a table")}
	p.refuseQualified("a table")
	if p.isWord("AS") {
		p.unsupported("an alias of the table of INSERT is", "leave it out")
	}
	if p.isSymbol("(") && !p.atQuery() {
		ins.Columns = p.columnNames()
	}
	switch t := p.tok(); {
	case t.isWord("PARTITION"):
		p.unsupported("PARTITION is", "give the value in the query: SELECT …, 'a' AS p")
	case t.isWord("DEFAULT"):
		p.unsupported("DEFAULT VALUES is", "write VALUES (NULL, …)")
	case t.isWord("OVERRIDING"):
		p.unsupported("OVERRIDING is", "")
	case !p.atQuery():
		p.expectedOneOf("SELECT", "VALUES", "WITH")
	}
	ins.Query = p.query()
	ins.Span = p.span(start)
	return ins
}
