package sql

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Code says what kind of mistake an Error is.
type Code string

// The codes of errors in the text itself.
const (
	CodeSyntax      Code = "syntax"      // the text is not SQL
	CodeUnsupported Code = "unsupported" // the text is SQL, but Weir does not do that
)

// An Error is one mistake in a script: what is wrong, in bytes [Pos, End) of the text,
// and what to do about it, where that is known.
type Error struct {
	Pos, End int
	Code     Code
	Message  string
	Hint     string // may be empty
}

// Error gives the message and the hint, without the place: that takes the text.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return fmt.Sprintf("%s (%s)", e.Message, e.Hint)
}

// Locate gives the line and the column of a byte offset, both from 1; a column is a
// character, not a byte.
func Locate(src string, offset int) (line, column int) {
	before := src[:min(max(offset, 0), len(src))]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}
