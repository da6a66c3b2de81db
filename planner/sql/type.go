package sql

import (
	"strconv"
	"strings"
)

// maxLength is the length by which other systems say "of any length".
const maxLength = 2147483647

const insteadOfNested = "keep JSON in a STRING and read it with JSON_VALUE"

// typeName reads a type. Of several spellings it keeps Weir's; what a name means, and
// whether there is such a type, is the binder's matter.
func (p *parser) typeName() *TypeName {
	t := p.tok()
	if t.kind != kindWord || reserved(t.upper) {
		p.expectedHint("a type (BOOLEAN, INT, BIGINT, DOUBLE, DECIMAL, STRING, BYTES, DATE, TIMESTAMP, TIMESTAMP_LTZ or INTERVAL)", "")
		return &TypeName{}
	}
	p.advance()
	ty := &TypeName{Name: p.joined(t.upper)}
	if p.isSymbol("<") || p.isSymbol("<>") {
		p.fail(CodeUnsupported, t.start, p.behindNested(), "the type "+t.upper+"<…> is not supported", insteadOfNested)
	}
	if p.isSymbol("(") && p.peek(1).kind == kindString || t.upper == "ROW" && p.isSymbol("(") {
		p.fail(CodeUnsupported, t.start, p.behindNested(), "the type "+t.upper+"(…) is not supported", insteadOfNested)
	}
	if p.symbol("(") {
		for p.err == nil {
			ty.Args = append(ty.Args, p.typeArgument())
			if !p.symbol(",") {
				break
			}
		}
		p.expectSymbol(")")
	}
	if ty.Name == "TIMESTAMP" || ty.Name == "TIME" {
		ty.Name += p.zone()
	}
	if p.isSymbol("[") || p.isWord("ARRAY") || p.isWord("MULTISET") {
		p.fail(CodeUnsupported, t.start, p.tokens[p.at].end, "an ARRAY or MULTISET of "+t.upper+" is not supported", insteadOfNested)
	}
	ty.Span = p.span(t.start)
	canonical(ty)
	return ty
}

// behindNested gives the end of the brackets <…> or (…) that begin here, or of what
// there is of them.
func (p *parser) behindNested() int {
	depth := 0
	for i := p.at; ; i++ {
		t := p.tokens[i]
		switch {
		case t.kind == kindEOF, t.isSymbol(";"):
			return p.tokens[i-1].end
		case t.isSymbol("<"), t.isSymbol("("):
			depth++
		case t.isSymbol(">"), t.isSymbol(")"):
			depth--
		case t.isSymbol(">>"):
			depth -= 2
		}
		if depth <= 0 {
			return t.end
		}
	}
}

// joined reads the words behind a type's first one and gives its name.
func (p *parser) joined(first string) string {
	switch first {
	case "DOUBLE":
		p.word("PRECISION")
	case "CHARACTER", "CHAR":
		if p.word("VARYING") {
			return "VARCHAR"
		}
	case "BINARY":
		if p.word("VARYING") {
			return "VARBINARY"
		}
	case "INTERVAL":
		from, to := p.intervalFields(false)
		if to != "" {
			return first + " " + from + " TO " + to
		}
		if from != "" {
			return first + " " + from
		}
	}
	return first
}

// canonical gives the type Weir's spelling. A type with a length keeps the name by which
// the length was asked for: the binder refuses it there.
func canonical(ty *TypeName) {
	spelling, ok := spellings(ty.Name)
	switch {
	case !ok:
	case spelling == "STRING" || spelling == "BYTES":
		if len(ty.Args) == 1 && ty.Args[0] == maxLength && ty.Name != "BINARY" {
			ty.Args = nil
		}
		if len(ty.Args) == 0 {
			ty.Name = spelling
		}
	default:
		ty.Name = spelling
	}
}

// spellings gives Weir's name of a type that has several.
func spellings(name string) (string, bool) {
	switch name {
	case "BOOL":
		return "BOOLEAN", true
	case "INTEGER", "INT4":
		return "INT", true
	case "INT8":
		return "BIGINT", true
	case "FLOAT8":
		return "DOUBLE", true
	case "NUMERIC", "DEC":
		return "DECIMAL", true
	case "VARCHAR", "TEXT", "STRING":
		return "STRING", true
	case "BYTEA", "VARBINARY", "BINARY", "BYTES":
		return "BYTES", true
	case "TIMESTAMPTZ":
		return "TIMESTAMP_LTZ", true
	}
	return "", false
}

func (p *parser) typeArgument() int {
	t := p.tok()
	n, err := strconv.Atoi(t.text)
	if t.kind != kindNumber || err != nil || strings.ContainsAny(t.text, ".eE") {
		p.expectedHint("a whole number", "")
		return 0
	}
	p.advance()
	return n
}

// zone reads WITH or WITHOUT [LOCAL] TIME ZONE as a suffix of the type's name.
func (p *parser) zone() string {
	switch {
	case p.words("WITH", "LOCAL", "TIME", "ZONE"):
		return "_LTZ"
	case p.words("WITH", "TIME", "ZONE"):
		return "TZ"
	case p.words("WITHOUT", "TIME", "ZONE"):
	}
	return ""
}

// intervalFields reads the fields of an interval: YEAR TO MONTH, DAY [TO SECOND], ….
// Their names come back in upper case and singular; empty is what is not there.
func (p *parser) intervalFields(needed bool) (from, to string) {
	if p.atField() == "" && !needed {
		return "", ""
	}
	from = p.field("a unit (" + strings.Join(intervalUnits[:], ", ") + ")")
	p.refusePrecision()
	if !p.isWord("TO") || !needed && p.fieldAt(1) == "" {
		return from, ""
	}
	at := p.tok()
	p.advance()
	to = p.field("a unit behind TO")
	p.refusePrecision()
	if p.err == nil && !fieldsFit(from, to) {
		p.fail(CodeSyntax, at.start, p.behind(), "an interval cannot go from "+from+" to "+to, "it goes from YEAR TO MONTH, or from DAY, HOUR or MINUTE down to SECOND")
	}
	return from, to
}

func (p *parser) refusePrecision() {
	if p.isSymbol("(") {
		p.unsupported("an INTERVAL with a precision is", "leave it out: an interval is in microseconds")
	}
}

// intervalUnits are the units of intervals.
var intervalUnits = [...]string{"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"}

// field reads a unit; what it may be is what is expected where there is none.
func (p *parser) field(what string) string {
	unit := p.atField()
	if unit == "" {
		hint := ""
		if t := p.tok(); t.kind == kindWord {
			hint = didYouMean(t.text, intervalUnits[:]...)
		}
		p.expectedHint(what, hint)
		return ""
	}
	p.advance()
	return unit
}

func (p *parser) atField() string { return p.fieldAt(0) }

// fieldAt gives the unit that the n-th next token names, in the singular, or "".
func (p *parser) fieldAt(n int) string {
	t := p.peek(n)
	if t.kind != kindWord {
		return ""
	}
	for _, u := range intervalUnits {
		if t.upper == u || strings.TrimSuffix(t.upper, "S") == u {
			return u
		}
	}
	return ""
}

func fieldsFit(from, to string) bool {
	switch from {
	case "YEAR":
		return to == "MONTH"
	case "DAY":
		return to == "HOUR" || to == "MINUTE" || to == "SECOND"
	case "HOUR":
		return to == "MINUTE" || to == "SECOND"
	case "MINUTE":
		return to == "SECOND"
	}
	return false
}

// String prints the type as it may be written.
func (t *TypeName) String() string {
	name, suffix := t.Name, ""
	switch name {
	case "TIMETZ":
		name, suffix = "TIME", " WITH TIME ZONE"
	case "TIME_LTZ":
		name, suffix = "TIME", " WITH LOCAL TIME ZONE"
	}
	if len(t.Args) > 0 {
		args := make([]string, len(t.Args))
		for i, a := range t.Args {
			args[i] = strconv.Itoa(a)
		}
		name += "(" + strings.Join(args, ", ") + ")"
	}
	return name + suffix
}
