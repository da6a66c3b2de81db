package sql

type kind uint8

const (
	kindEOF    kind = iota
	kindWord        // an unquoted name or keyword
	kindQuoted      // a quoted name
	kindNumber
	kindString
	kindBytes // X'…'; text is the digits
	kindSymbol
	kindBad    // not a token; text is the reason
	kindFailed // what the parser sees once it has failed: matches nothing
)

// A token is one lexical element; start and end are byte offsets.
type token struct {
	kind       kind
	start, end int
	text       string // decoded: quotes removed, doubled quotes undone; for kindBad the reason
	upper      string // of a kindWord
	hint       string // of a kindBad
}

func (t token) isWord(upper string) bool { return t.kind == kindWord && t.upper == upper }
func (t token) isName() bool {
	return t.kind == kindQuoted || t.kind == kindWord && !reserved(t.upper)
}
func (t token) isSymbol(s string) bool { return t.kind == kindSymbol && t.text == s }

// asciiUpper folds ASCII letters only: no letter of another alphabet makes a keyword.
func asciiUpper(s string) string {
	var upper []byte // nil while there is nothing to fold
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			continue
		}
		if upper == nil {
			upper = []byte(s)
		}
		upper[i] -= 'a' - 'A'
	}
	if upper == nil {
		return s
	}
	return string(upper)
}

// describe names the token in a message.
func (t token) describe() string {
	switch t.kind {
	case kindEOF:
		return "the end of the text"
	case kindString:
		return "the string '" + shorten(t.text) + "'"
	case kindBytes:
		return "X'" + shorten(t.text) + "'"
	case kindQuoted:
		return `"` + shorten(t.text) + `"`
	case kindSymbol:
		if t.text == ";" {
			return "the end of the statement"
		}
		return "'" + t.text + "'"
	}
	return shorten(t.text)
}

func shorten(s string) string {
	const limit = 40
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}

// reserved reports whether an unquoted word cannot be a name. It is the list of words
// that begin or continue a clause or an expression, no more.
func reserved(upper string) bool {
	switch upper {
	case "ALL", "AND", "AS", "BETWEEN", "CASE", "CREATE", "CROSS", "DISTINCT", "ELSE", "END", "EXCEPT",
		"EXISTS", "FALSE", "FETCH", "FOR", "FROM", "FULL", "GROUP", "HAVING", "ILIKE", "IN", "INNER",
		"INSERT", "INTERSECT", "INTO", "IS", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT", "NATURAL",
		"NOT", "NULL", "OFFSET", "ON", "OR", "ORDER", "PRIMARY", "RIGHT", "SELECT", "TABLE", "THEN",
		"TRUE", "UNION", "USING", "WHEN", "WHERE", "WITH":
		return true
	}
	return false
}

// valueWord lists the functions that are called without parentheses; a column of such
// a name has to be quoted.
func valueWord(upper string) bool {
	switch upper {
	case "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_USER":
		return true
	}
	return false
}

// plainName reports whether name may be written without quotes.
func plainName(name string) bool {
	for i, r := range name {
		if !nameStart(r) && (i == 0 || !nameRest(r)) {
			return false
		}
	}
	upper := asciiUpper(name)
	return name != "" && !reserved(upper) && !valueWord(upper) && !operandWord(upper)
}

// joinWord lists the reserved words that are functions' names in front of a parenthesis.
func joinWord(upper string) bool { return upper == "LEFT" || upper == "RIGHT" }

// operandWord lists the words that mean something where an operand may begin: in TRIM
// and BETWEEN.
func operandWord(upper string) bool {
	switch upper {
	case "BOTH", "LEADING", "TRAILING", "SYMMETRIC", "ASYMMETRIC":
		return true
	}
	return false
}
