package sql

import (
	"fmt"
	"strings"
)

// Parse reads a script. The script holds the statements that are right; the errors,
// in the order of the text, are one for each that is wrong.
func Parse(src string) (*Script, []*Error) {
	p := &parser{src: src, tokens: lex(src)}
	script := &Script{}
	var errs []*Error
	for {
		for p.symbol(";") {
		}
		if p.tok().kind == kindEOF {
			return script, errs
		}
		first := p.tok()
		if s := p.statement(); p.err == nil {
			script.Statements = append(script.Statements, s)
			continue
		} else if t, ok := s.(*CreateTable); ok && t.Name.Name != "" {
			script.Broken = append(script.Broken, t.Name)
		}
		errs = append(errs, p.err)
		p.resume(first.upper == "EXECUTE")
	}
}

// A parser walks over the tokens. Once it has failed, tok() matches nothing, so that
// every method returns soon; what it returns then is of no use to anyone.
type parser struct {
	src       string
	tokens    []token
	at        int
	err       *Error
	operators int // in the expression being read
}

func (p *parser) tok() token {
	if p.err != nil {
		return token{kind: kindFailed}
	}
	return p.tokens[p.at]
}

// peek returns the n-th token after the current one.
func (p *parser) peek(n int) token {
	if p.err != nil {
		return token{kind: kindFailed}
	}
	return p.tokens[min(p.at+n, len(p.tokens)-1)]
}

func (p *parser) advance() {
	if p.err == nil && p.at < len(p.tokens)-1 {
		p.at++
	}
}

// resume forgets the error and goes on behind the next semicolon, or behind the one
// after END for a block of statements.
func (p *parser) resume(block bool) {
	p.err = nil
	for p.tok().kind != kindEOF {
		if p.isWord("END") {
			block = false
		}
		if p.symbol(";") && !block {
			return
		}
		p.advance()
	}
}

// behind is the end of the last token read.
func (p *parser) behind() int {
	if p.at == 0 {
		return 0
	}
	return p.tokens[p.at-1].end
}

// span gives the span from start to the last token read.
func (p *parser) span(start int) Span { return Span{Start: start, Stop: max(start, p.behind())} }

func (p *parser) here() int { return p.tokens[p.at].start }

func (p *parser) isWord(upper string) bool {
	t := p.tok()
	return t.kind == kindWord && t.upper == upper
}

func (p *parser) isSymbol(s string) bool {
	t := p.tok()
	return t.kind == kindSymbol && t.text == s
}

// word passes one keyword if it is next.
func (p *parser) word(upper string) bool {
	if !p.isWord(upper) {
		return false
	}
	p.advance()
	return true
}

// words passes several keywords if all of them are next.
func (p *parser) words(upper ...string) bool {
	for i, w := range upper {
		if t := p.peek(i); t.kind != kindWord || t.upper != w {
			return false
		}
	}
	for range upper {
		p.advance()
	}
	return true
}

func (p *parser) symbol(s string) bool {
	if !p.isSymbol(s) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expectWord(upper string) {
	if !p.word(upper) {
		p.expected(upper)
	}
}

func (p *parser) expectSymbol(s string) {
	if !p.symbol(s) {
		p.expected("'" + s + "'")
	}
}

// fail records the first error; later ones are consequences.
func (p *parser) fail(code Code, pos, end int, message, hint string) {
	if p.err == nil {
		p.err = &Error{Pos: pos, End: max(end, pos), Code: code, Message: message, Hint: hint}
	}
}

// expected fails at the current token, which is not what the grammar wants.
func (p *parser) expected(what string) {
	t := p.tok()
	if t.kind == kindBad {
		code := CodeSyntax
		if strings.HasSuffix(t.text, "not supported") {
			code = CodeUnsupported
		}
		p.fail(code, t.start, t.end, t.text, t.hint)
		return
	}
	hint := ""
	if t.kind == kindWord && reserved(t.upper) && strings.Contains(what, "name") {
		hint = fmt.Sprintf("%s is a reserved word; to use it as a name write \"%s\"", t.upper, t.text)
	}
	p.expectedHint(what, hint)
}

// expectedHint is expected with a hint of the caller's.
func (p *parser) expectedHint(what, hint string) {
	t := p.tok()
	if t.kind == kindBad {
		p.expected(what)
		return
	}
	p.fail(CodeSyntax, t.start, t.end, "expected "+what+", found "+t.describe(), hint)
}

// unsupported refuses, by name, what begins at the current token.
func (p *parser) unsupported(what, hint string) {
	t := p.tok()
	p.fail(CodeUnsupported, t.start, t.end, what+" not supported", hint)
}

// name reads a quoted name or a word that is not reserved.
func (p *parser) name(what string) Ident {
	t := p.tok()
	if t.kind != kindQuoted && (t.kind != kindWord || reserved(t.upper)) {
		p.expected(what)
		return Ident{}
	}
	p.advance()
	return Ident{Span: Span{t.start, t.end}, Name: t.text}
}

func (p *parser) str(what string) *StringLit {
	t := p.tok()
	if t.kind != kindString {
		hint := ""
		if t.kind == kindWord || t.kind == kindQuoted || t.kind == kindNumber {
			hint = fmt.Sprintf("write it in single quotes: '%s'", t.text)
		}
		p.expectedHint(what, hint)
		return &StringLit{}
	}
	p.advance()
	return &StringLit{Span: Span{t.start, t.end}, Value: t.text}
}

// names reads (name, name …).
func (p *parser) names(what string) []Ident {
	var list []Ident
	p.expectSymbol("(")
	for {
		list = append(list, p.name(what))
		if !p.symbol(",") {
			break
		}
	}
	p.expectSymbol(")")
	return list
}

func (p *parser) statement() Statement {
	start := p.here()
	var s Statement
	switch {
	case p.isWord("SELECT"):
		s = p.query()
	case p.word("INSERT"):
		s = p.insert(start)
	case p.word("SET"):
		s = p.set(start)
	case p.word("CREATE"):
		s = p.create(start)
	default:
		p.refuseStatement()
		return nil
	}
	if p.err == nil && p.tok().kind != kindEOF && !p.isSymbol(";") {
		p.expectedHint("the end of the statement", p.misspelt("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT"))
	}
	return s
}

func (p *parser) set(start int) *Set {
	s := &Set{Key: p.str("an option's name as a string, as in SET 'checkpoint.interval' = '1 s'")}
	p.expectSymbol("=")
	s.Value = p.str("a value as a string")
	s.Span = p.span(start)
	return s
}

// refuseStatement names the statement that Weir does not run, or what is no statement.
func (p *parser) refuseStatement() {
	t := p.tok()
	if t.kind == kindSymbol && t.text == "(" {
		p.unsupported("a query in parentheses is", "leave the parentheses out")
		return
	}
	if t.kind != kindWord {
		p.expected("a statement (SELECT, INSERT, CREATE TABLE or SET)")
		return
	}
	switch t.upper {
	case "WITH":
		p.unsupported("WITH (a common table expression) is", "write the query in one SELECT")
	case "EXPLAIN":
		p.unsupported("EXPLAIN is", "POST /v1/plan explains a script")
	case "EXECUTE":
		p.unsupported("EXECUTE STATEMENT SET is", "submit one job for each INSERT")
	case "BEGIN", "COMMIT", "ROLLBACK", "START", "END":
		p.unsupported(t.upper+" is", "a script needs no transaction")
	case "UPDATE", "DELETE", "MERGE", "TRUNCATE", "VALUES", "ALTER", "DESCRIBE", "DESC", "SHOW", "USE", "RESET", "ANALYZE",
		"GRANT", "REVOKE", "LOAD", "ADD", "REMOVE", "STOP", "CALL", "COPY", "REPLACE", "UPSERT", "TABLE":
		p.unsupported(t.upper+" is", "")
	case "DROP":
		p.unsupported("DROP is", "DELETE /v1/tables/{name} drops a table of the catalog")
	default:
		p.expectedHint("a statement (SELECT, INSERT, CREATE TABLE or SET)",
			didYouMean(t.text, "SELECT", "INSERT", "CREATE", "SET"))
	}
}

// misspelt gives a hint where the word before the current token, taken for an alias, or
// the current one is nearly one of the keywords.
func (p *parser) misspelt(keywords ...string) string {
	for _, t := range []token{p.tokens[max(p.at-1, 0)], p.tok()} {
		if t.kind == kindWord && !reserved(t.upper) {
			if hint := didYouMean(t.text, keywords...); hint != "" {
				return hint
			}
		}
	}
	return ""
}

func didYouMean(word string, candidates ...string) string {
	if s := Suggest(word, candidates); s != "" {
		return "did you mean " + s + "?"
	}
	return ""
}
