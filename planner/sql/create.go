package sql

// create reads what follows CREATE.
func (p *parser) create(start int) Statement {
	t := p.tok()
	switch {
	case p.word("TABLE"):
		return p.createTable(start)
	case p.word("VIEW"):
		return p.createView(start)
	case t.kind != kindWord:
		p.expected("TABLE or VIEW")
		return nil
	}
	p.refuseKind(t)
	p.note()
	for p.isWord("TEMPORARY") || p.isWord("TEMP") || p.isWord("OR") || p.isWord("REPLACE") || p.isWord("MATERIALIZED") {
		p.advance() // what is defined is read, so that its name is known
	}
	switch {
	case p.word("TABLE"):
		return p.createTable(start)
	case p.word("VIEW"):
		return p.createView(start)
	}
	return nil
}

// refuseKind refuses, by name, what CREATE makes elsewhere, or in another way.
func (p *parser) refuseKind(t token) {
	switch t.upper {
	case "TEMPORARY", "TEMP":
		p.unsupported("CREATE "+t.upper+" is", "a table or view of a script already lives no longer than its job")
	case "OR":
		p.unsupported("CREATE OR REPLACE is", "leave it out: a script's own definition comes before the catalog's; in the catalog, DROP the old one first")
	case "MATERIALIZED":
		p.unsupported("CREATE MATERIALIZED VIEW is", "a job's SELECT is one: its result is kept and served")
	case "SOURCE", "SINK", "STREAM":
		p.unsupported("CREATE "+t.upper+" is", "write CREATE TABLE: a table is read or written as the query says")
	case "FUNCTION", "CATALOG", "DATABASE", "SCHEMA", "INDEX", "TYPE", "MODEL", "EXTERNAL", "UNLOGGED", "UNIQUE", "SEQUENCE":
		p.unsupported("CREATE "+t.upper+" is", "")
	default:
		p.expectedOneOf("TABLE", "VIEW")
	}
}

func (p *parser) createView(start int) *CreateView {
	v := &CreateView{IfNotExists: p.condition("IF", "NOT", "EXISTS"), Name: p.name("the view's name")}
	p.refuseQualified("a view")
	if p.isSymbol("(") {
		v.Columns = p.columnNames()
	}
	if p.isWord("COMMENT") {
		p.unsupported("COMMENT is", "use a comment: -- …")
	}
	p.expectWord("AS")
	v.Query = p.query()
	if p.isWord("WITH") {
		p.unsupported("WITH CHECK OPTION is", "")
	}
	v.Span = p.span(start)
	return v
}

const insteadOfTableAs = "write CREATE TABLE with its columns and INSERT INTO … SELECT, or CREATE VIEW … AS SELECT"

func (p *parser) createTable(start int) *CreateTable {
	c := &CreateTable{IfNotExists: p.condition("IF", "NOT", "EXISTS"), Name: p.name("the table's name")}
	p.refuseQualified("a table")
	if p.isWord("AS") || p.isWord("WITH") && p.hasAhead("AS") {
		p.unsupported("CREATE TABLE … AS SELECT is", insteadOfTableAs)
	}
	if p.isWord("WITH") {
		p.expectedHint("'('", "a table has its columns before WITH: CREATE TABLE name (column type, …) WITH (…)")
	}
	if p.isWord("LIKE") {
		p.unsupported("CREATE TABLE … LIKE is", "write the columns out")
	}
	p.parenthesised(func() { p.tableElement(c) })
	p.tableClauses()
	if p.word("WITH") {
		c.Options = p.options()
	}
	switch t := p.tok(); {
	case t.isWord("AS"):
		p.unsupported("CREATE TABLE … AS SELECT is", insteadOfTableAs)
	case t.isWord("LIKE"):
		p.unsupported("CREATE TABLE … LIKE is", "write the columns out")
	case t.kind == kindWord && c.Options != nil:
		p.expectedHint("the end of the statement", "a semicolon ends each statement of a script")
	case t.kind == kindWord:
		p.expectedHint("WITH or the end of the statement", didYouMean(t.text, "WITH"))
	}
	c.Span = p.span(start)
	return c
}

// hasAhead reports whether the word stands in what is left of the statement.
func (p *parser) hasAhead(upper string) bool {
	for _, t := range p.tokens[p.at:] {
		if t.isSymbol(";") || t.isWord(upper) {
			return t.isWord(upper)
		}
	}
	return false
}

// tableClauses refuses what may stand between the columns and WITH.
func (p *parser) tableClauses() {
	switch {
	case p.isWord("PARTITIONED"):
		p.unsupported("PARTITIONED BY is", "leave it out: a reader divides its files, a writer its rows by itself")
	case p.isWord("DISTRIBUTED"):
		p.unsupported("DISTRIBUTED BY is", "leave it out: rows are divided by the keys of GROUP BY")
	case p.isWord("COMMENT"):
		p.unsupported("COMMENT is", "use a comment: -- …")
	}
}

// tableElement reads a column, a watermark or a key.
func (p *parser) tableElement(c *CreateTable) {
	start := p.here()
	switch t := p.tok(); {
	case p.words("WATERMARK", "FOR"):
		if c.Watermark != nil {
			p.fail(CodeSyntax, start, p.behind(), "a table has one WATERMARK, this is the second", "")
		}
		c.Watermark = p.watermark(start)
	case t.kind == kindWord && t.upper == "PRIMARY":
		p.primaryKey(c, start)
	case t.kind == kindWord && t.upper == "CONSTRAINT" && p.peek(2).upper == "PRIMARY":
		p.advance()
		p.name("the constraint's name")
		p.primaryKey(c, start)
	case p.atConstraint():
		p.unsupported(t.upper+" is", "")
	case t.kind == kindWord && t.upper == "LIKE":
		p.unsupported("LIKE in CREATE TABLE is", "write the columns out")
	default:
		c.Columns = append(c.Columns, p.column(c))
	}
}

// atConstraint reports whether a constraint begins here that is no primary key.
func (p *parser) atConstraint() bool {
	t, next := p.tok(), p.peek(1)
	switch {
	case t.kind != kindWord:
		return false
	case t.upper == "UNIQUE" || t.upper == "CHECK":
		return next.kind == kindSymbol && next.text == "("
	case t.upper == "FOREIGN":
		return next.upper == "KEY"
	}
	third := p.peek(2).upper
	return t.upper == "CONSTRAINT" && (third == "UNIQUE" || third == "CHECK" || third == "FOREIGN")
}

func (p *parser) watermark(start int) *Watermark {
	w := &Watermark{Column: p.name("the name of the time column")}
	p.expectWord("AS")
	w.As = p.expression()
	w.Span = p.span(start)
	return w
}

func (p *parser) primaryKey(c *CreateTable, start int) {
	p.expectWord("PRIMARY")
	p.expectWord("KEY")
	key := &PrimaryKey{Columns: p.columnNames()}
	p.words("NOT", "ENFORCED")
	key.Span = p.span(start)
	p.setPrimaryKey(c, key)
}

func (p *parser) setPrimaryKey(c *CreateTable, key *PrimaryKey) {
	if c.PrimaryKey != nil {
		p.fail(CodeSyntax, key.Start, key.Stop, "a table has one PRIMARY KEY, this is the second", "")
	}
	c.PrimaryKey = key
}

func (p *parser) column(c *CreateTable) *Column {
	col := &Column{Name: p.name("a column's name")}
	if p.word("AS") {
		col.As = p.expression()
		col.Span = p.span(col.Name.Start)
		return col
	}
	col.Type = p.typeName()
	for p.columnConstraint(c, col) {
	}
	if t := p.tok(); t.kind == kindWord {
		hint := didYouMean(t.text, "PRIMARY", "COMMENT")
		if t.upper == "NOT" {
			hint = "did you mean NOT NULL?"
		}
		p.expectedHint("',' or ')'", hint)
	}
	col.Span = p.span(col.Name.Start)
	return col
}

// columnConstraint reads one constraint behind a column's type, or reports that there
// is none.
func (p *parser) columnConstraint(c *CreateTable, col *Column) bool {
	start, t := p.here(), p.tok()
	switch {
	case p.words("NOT", "NULL"):
		col.NotNull = true
		return true
	case p.word("NULL"):
		return true
	case p.words("PRIMARY", "KEY"):
		p.words("NOT", "ENFORCED")
		p.setPrimaryKey(c, &PrimaryKey{Span: p.span(start), Columns: []Ident{col.Name}})
		return true
	case t.kind != kindWord:
		return false
	}
	switch t.upper {
	case "DEFAULT":
		p.unsupported("DEFAULT of a column is", "write COALESCE(column, value) where it is read")
	case "METADATA":
		p.unsupported("METADATA of a column is", "leave the column out: no connector has any yet")
	case "GENERATED":
		p.unsupported("GENERATED of a column is", "write a computed column: name AS expression")
	case "CHECK":
		p.unsupported("CHECK of a column is", "leave it out, and choose the rows with WHERE")
	case "UNIQUE", "REFERENCES":
		p.unsupported(t.upper+" of a column is", "leave it out: it would not be checked")
	case "COLLATE":
		p.unsupported("COLLATE of a column is", "leave it out: strings compare by their bytes")
	case "CONSTRAINT":
		p.unsupported("CONSTRAINT of a column is", "")
	case "COMMENT":
		p.unsupported("COMMENT is", "use a comment: -- …")
	}
	return false
}

func (p *parser) options() []*Option {
	var list []*Option
	p.parenthesised(func() {
		o := &Option{Key: p.str("an option's name as a string, as in 'connector' = 'filesystem'")}
		p.expectSymbol("=")
		o.Value = p.str("a value as a string")
		o.Span = p.span(o.Key.Start)
		list = append(list, o)
	})
	return list
}

// refuseQualified refuses a dot behind a name.
func (p *parser) refuseQualified(what string) {
	if p.isSymbol(".") {
		p.unsupported("a qualified name of "+what+" is", "there is one catalog: write the last part alone, or quote the whole name")
	}
}
