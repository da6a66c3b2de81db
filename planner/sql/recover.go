package sql

// Going on after an error. A place to go on from counts only where it lies in the same
// parentheses as what failed: what stands between unbalanced ones means nothing.

// maxErrors bounds what is reported of one statement.
const maxErrors = 20

// note keeps the failure and lets the parser go on where it is. What begins within an
// error that is known follows from it.
func (p *parser) note() {
	if p.err == nil {
		return
	}
	if n := len(p.errs); n == 0 || n < maxErrors && p.err != p.errs[n-1] && p.err.Pos >= p.errs[n-1].End {
		p.errs = append(p.errs, p.err)
	}
	p.err = nil
}

// sync goes on after a failure in what began at token from: at the first token behind
// it, not before token least, that stop accepts, or at the parenthesis that closes
// around it. Where there is none, the parser stays failed.
func (p *parser) sync(from, least int, stop func(t token) bool) {
	if p.err == nil {
		return
	}
	least = max(least, p.at)
	if p.err.Code == CodeUnsupported && p.err.Pos == p.tokens[p.at].start {
		least = max(least, p.at+1) // what was refused is no place to go on from
	}
	for least < len(p.tokens)-1 && p.tokens[least].start < p.err.End && p.err.Code == CodeUnsupported {
		least++ // nor is anything within it
	}
	depth := 0
	for i := from; i < len(p.tokens); i++ {
		t := p.tokens[i]
		switch {
		case t.kind == kindEOF, t.isSymbol(";"):
			return
		case t.isSymbol("("), t.isSymbol("["):
			depth++
			continue
		case t.isSymbol("]"):
			depth = max(depth-1, 0)
			continue
		case t.isSymbol(")"):
			if depth--; depth >= 0 {
				continue
			}
			if i < least {
				return
			}
		case depth == 0 && i > p.at && t.isWord("SELECT"):
			return // another query: what follows belongs to it
		case depth > 0 || i < least || !stop(t) || p.isPartOfOther(i):
			continue
		}
		p.note()
		p.at = i
		return
	}
}

// isPartOfOther reports whether the word at token i, which begins a clause elsewhere, is
// part of something else here.
func (p *parser) isPartOfOther(i int) bool {
	switch t := p.tokens[i]; {
	case t.isWord("FROM"):
		return i > 0 && p.tokens[i-1].isWord("DISTINCT")
	case t.isWord("GROUP"), t.isWord("ORDER"):
		return !p.tokens[i+1].isWord("BY")
	}
	return false
}

func isComma(t token) bool { return t.isSymbol(",") }

// beginsClause reports whether a clause of a query begins here, or the next query of a
// UNION: the words are reserved.
func beginsClause(t token) bool {
	if t.kind != kindWord {
		return false
	}
	switch t.upper {
	case "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT", "INTERSECT":
		return true
	}
	return false
}

// parenthesised reads (element, element …); a wrong element does not hide the next.
func (p *parser) parenthesised(element func()) {
	p.expectSymbol("(")
	for p.err == nil {
		from := p.at
		element()
		if p.err == nil && !p.isSymbol(",") && !p.isSymbol(")") {
			p.expected("',' or ')'")
		}
		p.sync(from, from, isComma)
		if !p.symbol(",") {
			break
		}
	}
	p.expectSymbol(")")
}

// resume forgets the failure and goes on behind the next semicolon, or behind the one
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
