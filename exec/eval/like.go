package eval

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"weir/exec/batch"
	"weir/planner/expr"
)

// patternFunction lists the functions that go by a pattern.
func patternFunction(name string) compileFunc {
	switch name {
	case "like":
		return compileLike(false)
	case "ilike":
		return compileLike(true)
	case "regexp_extract":
		return withDefault(3, wholeMatch, compileExtract)
	case "regexp_replace":
		return compileReplace
	case "json_value":
		return compileJSONValue
	}
	return nil
}

// A likePattern matches strings with a pattern of LIKE. It is cut at its percent signs:
// the first piece has to begin the string, the last one to end it, and those between
// follow each other in it, each as early as it can.
type likePattern struct {
	fold            bool // characters are compared in lower case
	problem         verdict
	text            []byte // the pieces one behind the other, anyChar for an underscore
	pieces          []likePiece
	pattern, escape []byte // that were set last
	lower           []byte // the string in lower case
}

// anyChar stands for any character in a piece; no UTF-8 has it.
const anyChar = 0xff

type likePiece struct {
	from, to int  // in text
	any      bool // it holds anyChar
}

func compileLike(fold bool) compileFunc {
	return func(e *expr.Expr, args []node, _ Env) (node, error) {
		if err := checkKinds(e, allStrings(3)...); err != nil {
			return nil, err
		}
		p := &likePattern{fold: fold}
		pattern, ok := constantText(args[1])
		escape, both := constantText(args[2])
		if !ok || !both {
			return newCall(e, args, p.matchAny), nil
		}
		p.set(pattern, escape)
		return newCall(e, args[:1], p.matchAll), nil
	}
}

// constantText returns the string of a constant that is not NULL.
func constantText(n node) (text []byte, ok bool) {
	c, ok := n.(*constant)
	if !ok || c.null {
		return nil, false
	}
	return c.value.Str(0), true
}

// matchAll is the kernel of a constant pattern.
func (p *likePattern) matchAll(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return fill(out, out.Bools, rows, func(row int) (bool, verdict) {
		return p.match(args[0].Str(row)), p.problem
	})
}

// matchAny is the kernel of patterns from data.
func (p *likePattern) matchAny(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
	return fill(out, out.Bools, rows, func(row int) (bool, verdict) {
		p.set(args[1].Str(row), args[2].Str(row))
		return p.match(args[0].Str(row)), p.problem
	})
}

// set makes ready for a pattern, unless it is the present one.
func (p *likePattern) set(pattern, escape []byte) {
	if p.pieces != nil && bytes.Equal(pattern, p.pattern) && bytes.Equal(escape, p.escape) {
		return
	}
	p.pattern, p.escape = append(p.pattern[:0], pattern...), append(p.escape[:0], escape...)
	p.pieces, p.text, p.problem = p.pieces[:0], p.text[:0], ""
	ok := utf8.RuneCount(escape) <= 1
	var piece likePiece
	for len(pattern) > 0 && ok {
		_, size := utf8.DecodeRune(pattern)
		char := pattern[:size]
		pattern = pattern[size:]
		switch {
		case bytes.Equal(char, escape):
			_, size = utf8.DecodeRune(pattern)
			p.literal(pattern[:size])
			pattern, ok = pattern[size:], size > 0
		case char[0] == '%':
			piece.to = len(p.text)
			p.pieces = append(p.pieces, piece)
			piece = likePiece{from: len(p.text)}
		case char[0] == '_':
			p.text, piece.any = append(p.text, anyChar), true
		default:
			p.literal(char)
		}
	}
	piece.to = len(p.text)
	p.pieces = append(p.pieces, piece)
	if !ok {
		p.problem = verdict(expr.CheckLike(string(p.pattern), string(escape)).Error())
	}
}

func (p *likePattern) literal(char []byte) {
	if p.fold {
		p.text = appendCase(p.text, char, unicode.ToLower, 'A', 'Z')
		return
	}
	p.text = append(p.text, char...)
}

func (p *likePattern) match(s []byte) bool {
	if p.problem != "" {
		return false
	}
	if p.fold {
		p.lower = appendCase(p.lower[:0], s, unicode.ToLower, 'A', 'Z')
		s = p.lower
	}
	last := len(p.pieces) - 1
	n := p.begins(p.pieces[0], s)
	if n < 0 || last == 0 {
		return n == len(s)
	}
	s = s[n:]
	n = p.ends(p.pieces[last], s)
	if n < 0 {
		return false
	}
	s = s[:n]
	for _, piece := range p.pieces[1:last] {
		if n = p.find(piece, s); n < 0 {
			return false
		}
		s = s[n:]
	}
	return true
}

// begins returns the length of what a piece takes of the beginning of s; -1: nothing.
func (p *likePattern) begins(piece likePiece, s []byte) int {
	text := p.text[piece.from:piece.to]
	if !piece.any {
		if !bytes.HasPrefix(s, text) {
			return -1
		}
		return len(text)
	}
	n := 0
	for _, c := range text {
		switch {
		case n >= len(s):
			return -1
		case c == anyChar:
			_, size := utf8.DecodeRune(s[n:])
			n += size
		case c != s[n]:
			return -1
		default:
			n++
		}
	}
	return n
}

// ends returns where the end of s begins that a piece takes; -1: nowhere.
func (p *likePattern) ends(piece likePiece, s []byte) int {
	text := p.text[piece.from:piece.to]
	if !piece.any {
		if !bytes.HasSuffix(s, text) {
			return -1
		}
		return len(s) - len(text)
	}
	n := len(s)
	for i := len(text) - 1; i >= 0; i-- {
		switch {
		case n == 0:
			return -1
		case text[i] == anyChar:
			_, size := utf8.DecodeLastRune(s[:n])
			n -= size
		case text[i] != s[n-1]:
			return -1
		default:
			n--
		}
	}
	return n
}

// find returns where the first part of s ends that a piece takes; -1: there is none.
func (p *likePattern) find(piece likePiece, s []byte) int {
	if !piece.any {
		i := bytes.Index(s, p.text[piece.from:piece.to])
		if i < 0 {
			return -1
		}
		return i + piece.to - piece.from
	}
	for from := 0; from <= len(s); {
		if n := p.begins(piece, s[from:]); n >= 0 {
			return from + n
		}
		_, size := utf8.DecodeRune(s[from:])
		from += max(size, 1)
	}
	return -1
}
