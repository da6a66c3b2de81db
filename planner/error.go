package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"weir"
	"weir/planner/sql"
)

// A Code says what kind of mistake a Problem is.
type Code string

// The codes of problems.
const (
	CodeSyntax      Code = "syntax"      // the text is not SQL
	CodeUnsupported Code = "unsupported" // SQL that Weir does not run
	CodeName        Code = "name"        // an unknown, missing or ambiguous name
	CodeType        Code = "type"        // types that do not fit
	CodeOption      Code = "option"      // an option of a table or of SET
	CodeQuery       Code = "query"       // a query that makes no sense or cannot be a job
)

// A Problem is one thing that is wrong with a script, and where.
type Problem struct {
	Line    int    `json:"line"`   // from 1
	Column  int    `json:"column"` // from 1, in characters
	Offset  int    `json:"offset"` // from 0, in bytes
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Snippet is the line, or the part of it around the place, and below it a line of
	// carets under what is meant.
	Snippet string `json:"snippet,omitempty"`
}

// An Error says why a script cannot be planned. It wraps weir.ErrInvalid.
type Error struct {
	Problems []Problem // in the order of the text; never empty
}

// Error gives the first problem with its place, and the number of the others.
func (e *Error) Error() string {
	p := e.Problems[0]
	s := fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message)
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	if n := len(e.Problems) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// Unwrap makes every Error a weir.ErrInvalid.
func (e *Error) Unwrap() error { return weir.ErrInvalid }

// problems collects what is wrong with one text.
type problems struct {
	src  string
	base int // where in src the text begins that nodes have their places in
	list []Problem
}

// maxProblems bounds how many problems of one text are kept: nobody reads more.
const maxProblems = 100

// add records a problem at a node's place. Of several at one place only the first is
// kept: the others follow from it.
func (p *problems) add(at sql.Node, code Code, hint, format string, args ...any) {
	if len(p.list) >= maxProblems {
		return
	}
	from, to := p.base+at.Pos(), p.base+at.End()
	for _, old := range p.list {
		if old.Offset == from {
			return
		}
	}
	line, column := sql.Locate(p.src, from)
	p.list = append(p.list, Problem{
		Line: line, Column: column, Offset: from, Code: code,
		Message: fmt.Sprintf(format, args...), Hint: hint,
		Snippet: snippet(p.src, from, to),
	})
}

// err gives the problems as an *Error, or nil.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int { return cmp.Compare(a.Offset, b.Offset) })
	return &Error{Problems: p.list}
}

// snippet shows the line of src that holds pos, cut to a window around it where it is
// long, and carets under [pos, end).
func snippet(src string, pos, end int) string {
	const window = 60
	pos = min(max(pos, 0), len(src))
	start := strings.LastIndexByte(src[:pos], '\n') + 1
	stop := len(src)
	if n := strings.IndexByte(src[pos:], '\n'); n >= 0 {
		stop = pos + n
	}
	if start == stop {
		return ""
	}
	before, after := src[start:pos], src[pos:stop]
	marked := utf8.RuneCountInString(after[:min(max(end-pos, 0), len(after))])
	if n := utf8.RuneCountInString(before); n > window {
		before = "…" + string([]rune(before)[n-window:])
	}
	if r := []rune(after); len(r) > window {
		after = string(r[:window]) + "…"
	}
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, before)
	carets := strings.Repeat("^", min(max(marked, 1), window))
	return strings.TrimRight(before+after, "\r") + "\n" + pad + carets
}

// Suggest gives "did you mean x?" for the name that word was most likely meant to be, or
// "" where none is near.
func Suggest(word string, names []string) string { return suggestion(word, names) }

// QuoteName writes a name as SQL takes it: in quotes where it needs them.
func QuoteName(name string) string { return sql.QuoteName(name) }

// suggestion gives "did you mean x?" or "".
func suggestion(word string, candidates []string) string {
	if s := sql.Suggest(word, candidates); s != "" {
		return "did you mean " + s + "?"
	}
	return ""
}

// hints joins the hints that are there.
func hints(parts ...string) string {
	there := slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.ReplaceAll(strings.Join(there, "; "), "?; ", "? ")
}
