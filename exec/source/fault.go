package source

import (
	"strconv"
	"unicode/utf8"

	"weir/planner/expr"
)

// A fault is what is wrong with one record; the source adds where it lies.
type fault struct {
	column string // empty: the whole record
	reason string
	broken bool // its quotes do not show where the record ends: that is its line
}

// shown is how many bytes of an offending text an error repeats.
const shown = 64

// quote gives text in double quotes, escaped, and shortened where it is long.
func quote(text []byte) string {
	if len(text) <= shown {
		return strconv.Quote(string(text))
	}
	cut := shown
	for cut > shown-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strconv.Quote(string(text[:cut])) + "… (" + strconv.Itoa(len(text)) + " bytes)"
}

// quoteJSON gives a JSON value as it was written; texts bring their own quotes.
func quoteJSON(token []byte) string {
	if len(token) > 1 && token[0] == '"' && len(token) <= shown && utf8.Valid(token) {
		return string(token)
	}
	return quote(token)
}

// notA says that a quoted text is no value of the column's type.
func (c *column) notA(quoted, why string) *fault {
	return &fault{column: c.name, reason: quoted + " is not " + article(c.typ) + ": " + why}
}

func article(t expr.Type) string {
	switch t.Kind {
	case expr.Int, expr.Interval, expr.MonthInterval:
		return "an " + t.String()
	}
	return "a " + t.String()
}

// isNull says that a column which must not be NULL is.
func (c *column) isNull(why string) *fault {
	return &fault{column: c.name, reason: why + ", and the column is NOT NULL"}
}
