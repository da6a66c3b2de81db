package sql

import (
	"fmt"
	"strings"
)

// Parse reads a script. The script holds the statements that are right; the errors are
// in the order of the text, and a wrong statement may have several.
func Parse(src string) (*Script, []*Error) {
	p := &parser{src: src, tokens: lex(src)}
	script := &Script{}
	var errs []*Error
	for {
		for p.symbol(";") {
		}
		first := p.tok()
		if first.kind == kindEOF {
			return script, errs
		}
		s := p.statement()
		failed := p.err != nil
		p.note()
		if len(p.errs) == 0 {
			script.Statements = append(script.Statements, s)
			continue
		}
		script.Broken = append(script.Broken, brokenNames(s)...)
		errs = append(errs, p.errs...)
		p.errs = nil
		p.resume(failed && (first.upper == "EXECUTE" || first.upper == "EXPLAIN" || first.upper == "BEGIN"))
	}
}

// brokenNames gives the name that a wrong statement would have defined.
func brokenNames(s Statement) []Ident {
	var name Ident
	switch s := s.(type) {
	case *CreateTable:
		name = s.Name
	case *CreateView:
		name = s.Name
	}
	if name.Name == "" {
		return nil
	}
	return []Ident{name}
}

// A parser walks over the tokens. Once it has failed, tok() matches nothing, so that
// every method returns soon; what it returns then is of no use to anyone. Where the
// grammar has a place to go on from, sync notes the error and goes there.
type parser struct {
	src       string
	tokens    []token
	at        int
	err       *Error   // the failure that has not been noted yet
	errs      []*Error // noted ones of the statement being read
	operators int      // in the expression being read
	nested    int      // queries around the current token
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

func (p *parser) isWord(upper string) bool { return p.err == nil && p.tokens[p.at].isWord(upper) }
func (p *parser) isSymbol(s string) bool   { return p.err == nil && p.tokens[p.at].isSymbol(s) }

// areWords reports whether several keywords are next.
func (p *parser) areWords(upper ...string) bool {
	for i, w := range upper {
		if !p.peek(i).isWord(w) {
			return false
		}
	}
	return true
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
	if !p.areWords(upper...) {
		return false
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
		p.expectedOneOf(upper)
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
	hint := ""
	if t.kind == kindString && what == "a name" {
		hint = "a name is written plain or in double quotes: \"" + strings.ReplaceAll(t.text, "\"", "\"\"") + "\""
	}
	if t.kind == kindWord && reserved(t.upper) && strings.Contains(what, "name") && (!p.goesOn(t) || p.tokens[max(p.at-1, 0)].isWord("AS")) {
		hint = fmt.Sprintf("%s is a reserved word; to use it as a name write \"%s\"", t.upper, t.text)
	}
	p.expectedHint(what, hint)
}

// goesOn reports whether the reserved word t goes on with the query rather than being
// meant as a name.
func (p *parser) goesOn(t token) bool {
	switch t.upper {
	case "FROM", "WHERE", "HAVING", "UNION", "SELECT", "AS", "AND", "OR", "WHEN", "THEN", "ELSE", "END":
		return true
	case "GROUP", "ORDER":
		return p.peek(1).isWord("BY")
	}
	return false
}

// expectedOneOf is expected for keywords: a misspelt one is told.
func (p *parser) expectedOneOf(keywords ...string) {
	what := strings.Join(keywords, " or ")
	if n := len(keywords); n > 2 {
		what = strings.Join(keywords[:n-1], ", ") + " or " + keywords[n-1]
	}
	hint := ""
	if t := p.tok(); t.kind == kindWord && !reserved(t.upper) {
		hint = didYouMean(t.text, keywords...)
	}
	p.expectedHint(what, hint)
}

// expectedHint is expected with a hint of the caller's.
func (p *parser) expectedHint(what, hint string) {
	t := p.tok()
	if t.kind == kindBad {
		code := CodeSyntax
		if strings.HasSuffix(t.text, "not supported") {
			code = CodeUnsupported
		}
		p.fail(code, t.start, t.end, t.text, t.hint)
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
	if !t.isName() {
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

// columnNames reads (name, name …).
func (p *parser) columnNames() []Ident {
	var list []Ident
	p.parenthesised(func() { list = append(list, p.name("a column's name")) })
	return list
}

// misspelt gives a hint where the word before the current token, taken for an alias, or
// the current one is nearly one of the keywords.
func (p *parser) misspelt(keywords ...string) string {
	if p.isWord("END") {
		return "in a statement set a semicolon ends each INSERT, the last one too"
	}
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
