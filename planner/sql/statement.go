package sql

import "strings"

// firstWords are what a statement that Weir runs begins with.
var firstWords = [...]string{"SELECT", "INSERT", "CREATE", "WITH", "VALUES", "SET", "DROP", "SHOW", "DESCRIBE", "EXPLAIN", "EXECUTE"}

const aStatement = "a statement (SELECT, INSERT, CREATE TABLE, CREATE VIEW, SET …)"

func (p *parser) statement() Statement {
	s := p.oneStatement()
	if p.err == nil && len(p.errs) == 0 && p.tok().kind != kindEOF && !p.isSymbol(";") {
		p.expected("the end of the statement")
	}
	return s
}

func (p *parser) oneStatement() Statement {
	start := p.here()
	switch {
	case p.atQuery():
		return p.query()
	case p.word("INSERT"):
		return p.insert(start)
	case p.word("SET"):
		return p.set(start)
	case p.word("CREATE"):
		return p.create(start)
	case p.word("DROP"):
		return p.drop(start)
	case p.word("SHOW"):
		return p.show(start)
	case p.word("DESCRIBE"), p.word("DESC"):
		return p.describe(start)
	case p.word("EXPLAIN"):
		return p.explain(start)
	case p.isWord("EXECUTE"), p.areWords("BEGIN", "STATEMENT"):
		return p.statementSet(start)
	}
	p.refuseStatement()
	return nil
}

func (p *parser) set(start int) *Set {
	if t := p.tok(); t.kind == kindWord {
		p.expectedHint(anOption, "write it in single quotes: "+p.quotedSet())
	}
	s := &Set{Key: p.str(anOption)}
	p.expectSymbol("=")
	s.Value = p.str("a value as a string")
	s.Span = p.span(start)
	return s
}

const anOption = "an option's name as a string, as in SET 'checkpoint.interval' = '1 s'"

// quotedSet gives the rest of a SET without quotes (SET a.b = 3s) as it is to be written.
func (p *parser) quotedSet() string {
	end := p.at
	for t := p.tokens[end]; t.kind != kindEOF && !t.isSymbol(";"); t = p.tokens[end] {
		end++
	}
	rest := p.src[p.here():p.tokens[end-1].end]
	key, value, found := strings.Cut(rest, "=")
	if !found {
		key, value, _ = strings.Cut(rest, " ")
		value = strings.TrimPrefix(strings.TrimPrefix(value, "TO "), "to ")
	}
	if value = strings.Trim(value, " '\""); value == "" {
		value = "value"
	}
	return "SET '" + strings.Trim(key, " '\"") + "' = '" + value + "'"
}

func (p *parser) drop(start int) *Drop {
	d := &Drop{}
	t := p.tok()
	switch {
	case p.word("TABLE"):
	case p.word("VIEW"):
		d.View = true
	case t.kind == kindWord && (t.upper == "TEMPORARY" || t.upper == "MATERIALIZED" || t.upper == "FUNCTION" || t.upper == "CATALOG" ||
		t.upper == "DATABASE" || t.upper == "SCHEMA" || t.upper == "MODEL" || t.upper == "INDEX" || t.upper == "TYPE"):
		p.unsupported("DROP "+t.upper+" is", "DROP TABLE and DROP VIEW are all there is")
	default:
		p.expectedOneOf("TABLE", "VIEW")
	}
	d.IfExists = p.condition("IF", "EXISTS")
	d.Name = p.name("the name to drop")
	p.refuseQualified("a table")
	d.Span = p.span(start)
	switch t := p.tok(); {
	case p.isSymbol(","):
		p.unsupported("DROP of several names is", "write one DROP for each")
	case t.isWord("CASCADE"), t.isWord("RESTRICT"):
		p.unsupported(t.upper+" is", "leave it out")
	}
	return d
}

// condition passes the words of IF [NOT] EXISTS if they are next. A thing may be called
// "if", so that only a name behind it tells that the others are misspelt.
func (p *parser) condition(words ...string) bool {
	if p.words(words...) {
		return true
	}
	if next := p.peek(1); p.isWord("IF") && (next.isName() || next.isWord("NOT") || next.isWord("EXISTS")) {
		p.advance()
		for _, w := range words[1:] {
			p.expectWord(w)
		}
	}
	return false
}

func (p *parser) show(start int) *Show {
	s := &Show{What: p.tok().upper}
	switch {
	case p.word("TABLES"), p.word("VIEWS"), p.word("FUNCTIONS"):
		if t := p.tok(); t.kind == kindWord {
			p.unsupported("SHOW "+s.What+" "+t.upper+" is", "SHOW "+s.What+" lists all")
		}
	case p.words("CREATE", "TABLE"), p.words("CREATE", "VIEW"):
		s.What = "CREATE " + p.tokens[p.at-1].upper
		name := p.name("a name")
		s.Name = &name
		p.refuseQualified("a table")
	case p.isWord("CREATE"):
		p.advance()
		p.expectedOneOf("TABLE", "VIEW")
	case p.isWord("COLUMNS"):
		p.unsupported("SHOW COLUMNS is", "write DESCRIBE name")
	case p.isWord("JOBS"):
		p.unsupported("SHOW JOBS is", "GET /v1/jobs and weir job list show them")
	case p.isWord("CATALOGS"), p.isWord("DATABASES"), p.isWord("CURRENT"), p.isWord("SCHEMAS"):
		p.unsupported("SHOW "+s.What+" is", "there is one catalog: SHOW TABLES lists it")
	case p.isWord("PARTITIONS"), p.isWord("MODULES"), p.isWord("JARS"), p.isWord("PROCEDURES"), p.isWord("MODELS"), p.isWord("FULL"), p.isWord("USER"):
		p.unsupported("SHOW "+s.What+" is", "")
	default:
		p.expectedOneOf("TABLES", "VIEWS", "FUNCTIONS", "CREATE TABLE", "CREATE VIEW")
	}
	s.Span = p.span(start)
	return s
}

func (p *parser) describe(start int) *Describe {
	if t := p.tok(); (t.isWord("EXTENDED") || t.isWord("TABLE") || t.isWord("FUNCTION") || t.isWord("JOB")) && p.peek(1).isName() {
		p.unsupported("DESCRIBE "+t.upper+" is", "write DESCRIBE "+p.peek(1).text)
	}
	d := &Describe{Name: p.name("the name of a table or view")}
	p.refuseQualified("a table")
	d.Span = p.span(start)
	return d
}

func (p *parser) explain(start int) *Explain {
	e := &Explain{}
	t := p.tok()
	switch {
	case p.words("PLAN", "FOR"):
	case t.kind == kindWord && (t.upper == "ANALYZE" || t.upper == "VERBOSE" || t.upper == "ESTIMATED_COST" || t.upper == "CHANGELOG_MODE" ||
		t.upper == "JSON_EXECUTION_PLAN" || t.upper == "PLAN_ADVICE"):
		p.unsupported("EXPLAIN "+t.upper+" is", "plain EXPLAIN shows all of the plan; a running job shows its counts")
	case p.isSymbol("(") && !p.atQuery():
		p.unsupported("EXPLAIN (…) with options is", "plain EXPLAIN shows all of the plan")
	}
	first := p.here()
	switch {
	case p.atQuery():
		e.Statement = p.query()
	case p.word("INSERT"):
		e.Statement = p.insert(first)
	case p.isWord("EXECUTE"), p.isWord("STATEMENT"), p.areWords("BEGIN", "STATEMENT"):
		e.Statement = p.statementSet(first)
	default:
		p.expectedOneOf("SELECT", "INSERT", "EXECUTE STATEMENT SET")
	}
	e.Span = p.span(start)
	return e
}

// statementSet reads EXECUTE STATEMENT SET BEGIN insert; … END, or BEGIN STATEMENT SET;
// insert; … END.
func (p *parser) statementSet(start int) *StatementSet {
	s := &StatementSet{}
	if p.words("BEGIN", "STATEMENT") {
		p.expectWord("SET")
		p.expectSymbol(";")
	} else {
		if p.word("EXECUTE") && p.isWord("INSERT") {
			p.unsupported("EXECUTE INSERT is", "write INSERT INTO alone")
		}
		p.expectWord("STATEMENT")
		p.expectWord("SET")
		p.expectWord("BEGIN")
	}
	for p.err == nil && !p.isWord("END") {
		p.setElement(s)
	}
	if p.err == nil && len(s.Inserts) == 0 && len(p.errs) == 0 {
		p.expected("INSERT")
	}
	p.expectWord("END")
	s.Span = p.span(start)
	return s
}

// setElement reads one INSERT of a statement set; a wrong one does not hide the next.
func (p *parser) setElement(s *StatementSet) {
	start := p.here()
	switch {
	case p.word("INSERT"):
		s.Inserts = append(s.Inserts, p.insert(start))
	case p.tok().kind == kindEOF:
		p.expected("INSERT or END")
		return
	case p.isWord("SET"), p.isWord("CREATE"):
		p.unsupported(p.tok().upper+" in a statement set is", "write it before EXECUTE STATEMENT SET")
	case p.atQuery():
		p.unsupported("a query in a statement set is", "write INSERT INTO … before it, or submit it as a job of its own")
	default:
		p.expectedOneOf("INSERT", "END")
	}
	if p.err == nil && !p.isSymbol(";") {
		p.expectedHint("';'", p.misspelt("WHERE", "GROUP", "HAVING"))
	}
	if p.err == nil {
		p.advance()
		return
	}
	p.note()
	for !p.symbol(";") {
		if p.tok().kind == kindEOF {
			p.err = p.errs[len(p.errs)-1]
			return
		}
		p.advance()
	}
}

// refuseStatement names the statement that Weir does not run, or what is no statement.
func (p *parser) refuseStatement() {
	t := p.tok()
	if t.kind != kindWord {
		p.expected(aStatement)
		return
	}
	switch t.upper {
	case "BEGIN", "COMMIT", "ROLLBACK", "START", "END":
		p.unsupported(t.upper+" is", "a script needs no transaction")
	case "UPDATE", "DELETE", "MERGE", "UPSERT", "REPLACE", "TRUNCATE":
		p.unsupported(t.upper+" is", "a table is a stream: its rows are only added, by INSERT INTO")
	case "ALTER":
		p.unsupported("ALTER is", "DROP it and CREATE it again: running jobs keep the definition that they were planned with")
	case "USE":
		p.unsupported("USE is", "there is one catalog")
	case "RESET":
		p.unsupported("RESET is", "a SET holds for its own script only")
	case "TABLE":
		p.unsupported("TABLE name as a query is", "write SELECT * FROM name")
	case "VALUES":
		p.advance()
		p.expectedHint("'('", "each row stands in parentheses: VALUES (1), (2)")
	case "FROM":
		p.expectedHint("SELECT", "write SELECT * before FROM")
	case "ANALYZE", "GRANT", "REVOKE", "LOAD", "UNLOAD", "ADD", "REMOVE", "STOP", "CALL", "COPY", "PREPARE", "DEALLOCATE", "DECLARE", "COMMENT", "VACUUM":
		hint := ""
		if t.upper == "COPY" || t.upper == "LOAD" {
			hint = "a table with the connector 'filesystem' reads and writes files"
		}
		p.unsupported(t.upper+" is", hint)
	default:
		p.expectedHint(aStatement, didYouMean(t.text, firstWords[:]...))
	}
}
