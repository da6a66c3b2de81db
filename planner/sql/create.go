package sql

import (
	"strconv"
	"strings"
)

// create reads what follows CREATE.
func (p *parser) create(start int) Statement {
	t := p.tok()
	switch {
	case p.word("TABLE"):
		return p.createTable(start)
	case t.kind != kindWord:
		p.expected("TABLE")
	case t.upper == "VIEW":
		p.unsupported("CREATE VIEW is", "write the view's query where you use it")
	case t.upper == "TEMPORARY" || t.upper == "TEMP":
		p.unsupported("CREATE "+t.upper+" is", "CREATE TABLE in a script already lives no longer than its job")
	case t.upper == "OR":
		p.unsupported("CREATE OR REPLACE is", "")
	case t.upper == "FUNCTION" || t.upper == "CATALOG" || t.upper == "DATABASE" || t.upper == "SCHEMA" || t.upper == "SOURCE" ||
		t.upper == "SINK" || t.upper == "STREAM" || t.upper == "MATERIALIZED" || t.upper == "INDEX" || t.upper == "TYPE" || t.upper == "MODEL":
		p.unsupported("CREATE "+t.upper+" is", "")
	default:
		p.expectedHint("TABLE", didYouMean(t.text, "TABLE"))
	}
	return nil
}

func (p *parser) createTable(start int) *CreateTable {
	if p.isWord("IF") {
		p.unsupported("IF NOT EXISTS is", "leave it out: a table of a script comes before the catalog's of that name")
	}
	c := &CreateTable{Name: p.name("the table's name")}
	p.refuseQualified("a table")
	if p.isWord("AS") {
		p.unsupported("CREATE TABLE … AS SELECT is", "write CREATE TABLE and INSERT INTO … SELECT")
	}
	p.expectSymbol("(")
	for {
		p.tableElement(c)
		if !p.symbol(",") {
			break
		}
	}
	if t := p.tok(); t.kind == kindWord && p.err == nil {
		hint := didYouMean(t.text, "PRIMARY")
		if t.upper == "NOT" {
			hint = "did you mean NOT NULL?"
		}
		p.expectedHint("',' or ')'", hint)
	}
	p.expectSymbol(")")
	p.tableClauses()
	if p.word("WITH") {
		c.Options = p.options()
	}
	switch {
	case p.isWord("AS"):
		p.unsupported("CREATE TABLE … AS SELECT is", "write CREATE TABLE and INSERT INTO … SELECT")
	case p.isWord("LIKE"):
		p.unsupported("CREATE TABLE … LIKE is", "write the columns out")
	}
	c.Span = p.span(start)
	return c
}

// tableClauses refuses what may stand between the columns and WITH.
func (p *parser) tableClauses() {
	switch {
	case p.isWord("PARTITIONED"):
		p.unsupported("PARTITIONED BY is", "")
	case p.isWord("DISTRIBUTED"):
		p.unsupported("DISTRIBUTED BY is", "")
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
	key := &PrimaryKey{Columns: p.names("a column's name")}
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
	for p.err == nil {
		start := p.here()
		switch {
		case p.words("NOT", "NULL"):
			col.NotNull = true
			continue
		case p.word("NULL"):
			continue
		case p.words("PRIMARY", "KEY"):
			p.words("NOT", "ENFORCED")
			p.setPrimaryKey(c, &PrimaryKey{Span: p.span(start), Columns: []Ident{col.Name}})
			continue
		case p.isWord("DEFAULT"), p.isWord("METADATA"), p.isWord("GENERATED"), p.isWord("UNIQUE"), p.isWord("CHECK"),
			p.isWord("REFERENCES"), p.isWord("COLLATE"):
			p.unsupported(p.tok().upper+" of a column is", "")
		case p.isWord("COMMENT"):
			p.unsupported("COMMENT is", "use a comment: -- …")
		}
		break
	}
	col.Span = p.span(col.Name.Start)
	return col
}

// typeName reads a type. It joins the spellings of several words into one name; what
// the names mean is the binder's matter.
func (p *parser) typeName() *TypeName {
	t := p.tok()
	if t.kind != kindWord || reserved(t.upper) {
		p.expectedHint("a type (BOOLEAN, INT, BIGINT, DOUBLE, STRING or TIMESTAMP_LTZ)", "")
		return &TypeName{}
	}
	p.advance()
	ty := &TypeName{Name: t.upper}
	if ty.Name == "DOUBLE" {
		p.word("PRECISION")
	}
	if p.isSymbol("<") || p.isWord("ARRAY") || p.isSymbol("[") {
		p.fail(CodeUnsupported, t.start, t.end, "the type "+t.upper+"<…> is not supported", "")
	}
	if p.symbol("(") {
		for {
			ty.Args = append(ty.Args, p.typeArgument())
			if !p.symbol(",") {
				break
			}
		}
		p.expectSymbol(")")
	}
	if ty.Name == "TIMESTAMP" || ty.Name == "TIME" {
		ty.Name += p.zone()
	}
	ty.Span = p.span(t.start)
	return ty
}

func (p *parser) typeArgument() int {
	t := p.tok()
	n, err := strconv.Atoi(t.text)
	if t.kind != kindNumber || err != nil || strings.ContainsAny(t.text, ".eE") {
		p.expectedHint("a whole number", "")
		return 0
	}
	p.advance()
	return n
}

// zone reads WITH or WITHOUT [LOCAL] TIME ZONE as a suffix of the type's name.
func (p *parser) zone() string {
	switch {
	case p.words("WITH", "LOCAL", "TIME", "ZONE"):
		return "_LTZ"
	case p.words("WITH", "TIME", "ZONE"):
		return "TZ"
	case p.words("WITHOUT", "TIME", "ZONE"):
	}
	return ""
}

func (p *parser) options() []*Option {
	var list []*Option
	p.expectSymbol("(")
	for {
		o := &Option{Key: p.str("an option's name as a string, as in 'connector' = 'filesystem'")}
		p.expectSymbol("=")
		o.Value = p.str("a value as a string")
		o.Span = p.span(o.Key.Start)
		list = append(list, o)
		if !p.symbol(",") {
			break
		}
	}
	p.expectSymbol(")")
	return list
}

// refuseQualified refuses a dot behind a name.
func (p *parser) refuseQualified(what string) {
	if p.isSymbol(".") {
		p.unsupported("a qualified name of "+what+" is", "there is one catalog: write the last part alone, or quote the whole name")
	}
}
