package sql

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lex cuts src into tokens; the last one is kindEOF. What is no token becomes a
// kindBad with the reason, and lexing goes on behind it.
func lex(src string) []token {
	l := lexer{src: src, tokens: make([]token, 0, len(src)/4+8)}
	for {
		t := l.next()
		l.tokens = append(l.tokens, t)
		if t.kind == kindEOF {
			return l.tokens
		}
	}
}

type lexer struct {
	src    string
	pos    int
	tokens []token
}

func (l *lexer) next() token {
	if bad, ok := l.skipSpace(); !ok {
		return bad
	}
	start := l.pos
	if start == len(l.src) {
		return token{kind: kindEOF, start: start, end: start}
	}
	r, size := utf8.DecodeRuneInString(l.src[start:])
	switch {
	case r == utf8.RuneError && size == 1:
		l.pos++
		return l.bad(start, "the text is not valid UTF-8 here", "")
	case nameStart(r):
		return l.word()
	case isDigit(r), r == '.' && l.digitAt(start+1):
		return l.number()
	case r == '\'':
		return l.quoted('\'', kindString, "string")
	case r == '"', r == '`':
		return l.quoted(byte(r), kindQuoted, "quoted name")
	}
	return l.symbol(r, size)
}

// skipSpace passes white space and comments. It returns false with a kindBad token
// where a comment has no end or is an optimiser hint.
func (l *lexer) skipSpace() (token, bool) {
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case unicode.IsSpace(r), r == '\uFEFF' && l.pos == 0:
			l.pos += size
		case strings.HasPrefix(rest, "--"):
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				l.pos += n + 1
			} else {
				l.pos = len(l.src)
			}
		case strings.HasPrefix(rest, "/*+"):
			start := l.pos
			l.pos += 3
			return l.bad(start, "hints /*+ … */ are not supported", "put the option into the table's WITH (…)"), false
		case strings.HasPrefix(rest, "/*"):
			if bad, ok := l.blockComment(); !ok {
				return bad, false
			}
		default:
			return token{}, true
		}
	}
	return token{}, true
}

// blockComment passes a comment, and comments within it.
func (l *lexer) blockComment() (token, bool) {
	start, depth := l.pos, 0
	for l.pos < len(l.src) {
		switch {
		case strings.HasPrefix(l.src[l.pos:], "/*"):
			depth++
			l.pos += 2
		case strings.HasPrefix(l.src[l.pos:], "*/"):
			depth--
			l.pos += 2
			if depth == 0 {
				return token{}, true
			}
		default:
			l.pos++
		}
	}
	return l.bad(start, "the comment has no end", "close it with */ (comments nest)"), false
}

func (l *lexer) word() token {
	start := l.pos
	for l.pos < len(l.src) {
		if plainLetter(l.src[l.pos]) {
			l.pos++
			continue
		}
		r, size := utf8.DecodeRuneInString(l.src[l.pos:])
		if !nameStart(r) && !nameRest(r) {
			break
		}
		l.pos += size
	}
	text := l.src[start:l.pos]
	if l.at('\'') && len(text) == 1 || strings.HasPrefix(l.src[l.pos:], "&'") && (text == "U" || text == "u") {
		switch text[0] {
		case 'x', 'X', 'b', 'B', 'e', 'E', 'n', 'N', 'u', 'U':
			return l.prefixed(start)
		}
	}
	return token{kind: kindWord, start: start, end: l.pos, text: text, upper: asciiUpper(text)}
}

// number reads digits with an optional fraction and exponent.
func (l *lexer) number() token {
	start := l.pos
	l.digits()
	if l.at('.') {
		l.pos++
		l.digits()
	}
	if l.at('e') || l.at('E') {
		l.exponent()
	}
	if r, size := utf8.DecodeRuneInString(l.src[l.pos:]); nameStart(r) && size > 0 {
		t := l.word()
		return l.bad(start, fmt.Sprintf("%s is not a number", shorten(l.src[start:t.end])), `quote a name that begins with a digit: "…"`)
	}
	return token{kind: kindNumber, start: start, end: l.pos, text: l.src[start:l.pos]}
}

func (l *lexer) exponent() {
	n := l.pos + 1
	if n < len(l.src) && (l.src[n] == '+' || l.src[n] == '-') {
		n++
	}
	if l.digitAt(n) {
		l.pos = n
		l.digits()
	}
}

func (l *lexer) digits() {
	for l.digitAt(l.pos) {
		l.pos++
	}
}

func (l *lexer) at(b byte) bool       { return l.pos < len(l.src) && l.src[l.pos] == b }
func (l *lexer) digitAt(pos int) bool { return pos < len(l.src) && isDigit(rune(l.src[pos])) }

// quoted reads text between two quotes, in which a doubled quote stands for one.
func (l *lexer) quoted(quote byte, k kind, what string) token {
	start, doubled := l.pos, false
	for i := start + 1; i < len(l.src); i++ {
		if l.src[i] != quote {
			continue
		}
		if i+1 < len(l.src) && l.src[i+1] == quote {
			doubled = true
			i++
			continue
		}
		l.pos = i + 1
		text := l.src[start+1 : i]
		if q := string(quote); doubled {
			text = strings.ReplaceAll(text, q+q, q)
		}
		return l.checked(token{kind: k, start: start, end: l.pos, text: text}, what)
	}
	l.pos = len(l.src)
	return l.bad(start, "the "+what+" has no end", "close it with "+string(quote))
}

// prefixed reads the string behind a letter that gives it a meaning of its own.
func (l *lexer) prefixed(start int) token {
	letter := asciiUpper(l.src[start : start+1])
	if l.at('&') {
		letter = "U&"
		l.pos++
	} else if letter == "U" {
		return token{kind: kindWord, start: start, end: l.pos, text: l.src[start:l.pos], upper: letter}
	}
	t := l.quoted('\'', kindBytes, "string")
	switch {
	case t.kind == kindBad:
		return t
	case letter == "E" || letter == "U&":
		return l.bad(start, "the string "+letter+"'…' with escapes is not supported", "a plain string takes every character as it is; '' stands for a quote")
	case letter == "N":
		return l.bad(start, "the string N'…' is not supported", "write a plain string: every one holds Unicode")
	case letter == "B":
		return l.bad(start, "the string of bits B'…' is not supported", "write the bytes in hexadecimal: X'…'")
	case len(t.text)%2 != 0 || strings.Trim(t.text, "0123456789abcdefABCDEF") != "":
		return l.bad(start, "X'"+shorten(t.text)+"' is not a string of bytes", "write two hexadecimal digits for each byte: X'00FF'")
	}
	t.start = start
	return t
}

func (l *lexer) checked(t token, what string) token {
	switch {
	case !utf8.ValidString(t.text):
		return l.bad(t.start, "the "+what+" is not valid UTF-8", "")
	case t.kind == kindQuoted && t.text == "":
		return l.bad(t.start, "a name cannot be empty", "")
	case t.kind == kindQuoted && strings.ContainsRune(t.text, 0):
		return l.bad(t.start, "a name cannot hold a zero byte", "")
	}
	return t
}

func (l *lexer) symbol(r rune, size int) token {
	start := l.pos
	if s := longSymbol(l.src[start:]); s != "" {
		l.pos += len(s)
		return token{kind: kindSymbol, start: start, end: l.pos, text: s}
	}
	l.pos += size
	if strings.ContainsRune("()[],;.+-*/%<>=^&|~#@", r) {
		return token{kind: kindSymbol, start: start, end: l.pos, text: l.src[start:l.pos]}
	}
	hint := ""
	if r == '‘' || r == '’' || r == '“' || r == '”' {
		hint = `use the plain quotes ' and "`
	}
	if next, _ := utf8.DecodeRuneInString(l.src[l.pos:]); r == '?' || (r == '$' || r == ':') && nameLetter(next) {
		hint = "a script has no parameters: write the value"
	}
	return l.bad(start, fmt.Sprintf("the character %q has no meaning here", r), hint)
}

// longSymbol gives the symbol of several characters that rest begins with, if any.
func longSymbol(rest string) string {
	const second = "=>~*|:<@/&" // what stands second in them
	if len(rest) < 2 || strings.IndexByte(second, rest[1]) < 0 {
		return ""
	}
	for _, s := range [...]string{
		"<=>", "!~~", "!~*", "->>", "#>>", "||/", // from long to short: the first one that fits is taken
		"<>", "!=", "<=", ">=", "==", "||", "::", "=>", "->", "!~", "~*", "~~", "#>", "<<", ">>", "@>", "<@", "|/", "&&",
	} {
		if strings.HasPrefix(rest, s) {
			return s
		}
	}
	return ""
}

func (l *lexer) bad(start int, reason, hint string) token {
	return token{kind: kindBad, start: start, end: l.pos, text: reason, hint: hint}
}

func plainLetter(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '_'
}

func nameLetter(r rune) bool { return nameStart(r) || isDigit(r) }

func isDigit(r rune) bool   { return '0' <= r && r <= '9' }
func nameStart(r rune) bool { return r == '_' || r != utf8.RuneError && unicode.IsLetter(r) }
func nameRest(r rune) bool {
	return isDigit(r) || r == '$' || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Nd, r)
}
