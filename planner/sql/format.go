package sql

import (
	"strconv"
	"strings"
)

// Format prints a script in one canonical form: keywords in upper case, names quoted
// where they need it, parentheses where they matter, each statement ended by ";\n".
func Format(s *Script) string {
	var p printer
	for _, st := range s.Statements {
		p.statement(st)
		p.add(";\n")
	}
	return p.b.String()
}

// FormatExpr prints one expression as Format does.
func FormatExpr(e Expr) string {
	var p printer
	p.expr(e, 0)
	return p.b.String()
}

// QuoteName prints a name, in quotes where it needs them.
func QuoteName(name string) string {
	if plainName(name) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// QuoteString prints a string literal.
func QuoteString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

type printer struct{ b strings.Builder }

func (p *printer) add(parts ...string) {
	for _, s := range parts {
		p.b.WriteString(s)
	}
}

func (p *printer) statement(s Statement) {
	switch s := s.(type) {
	case *CreateTable:
		p.createTable(s)
	case *Set:
		p.add("SET ", QuoteString(s.Key.Value), " = ", QuoteString(s.Value.Value))
	case *Insert:
		p.add("INSERT INTO ", QuoteName(s.Table.Name))
		if len(s.Columns) > 0 {
			p.add(" (", joinNames(s.Columns), ")")
		}
		p.add("\n")
		p.query(s.Query)
	case *Query:
		p.query(s)
	}
}

func joinNames(names []Ident) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = QuoteName(n.Name)
	}
	return strings.Join(quoted, ", ")
}

func (p *printer) createTable(c *CreateTable) {
	p.add("CREATE TABLE ", QuoteName(c.Name.Name), " (")
	sep := "\n  "
	for _, col := range c.Columns {
		p.add(sep, QuoteName(col.Name.Name))
		sep = ",\n  "
		if col.As != nil {
			p.add(" AS ")
			p.expr(col.As, 0)
			continue
		}
		p.add(" ", col.Type.String())
		if col.NotNull {
			p.add(" NOT NULL")
		}
	}
	if w := c.Watermark; w != nil {
		p.add(sep, "WATERMARK FOR ", QuoteName(w.Column.Name), " AS ")
		p.expr(w.As, 0)
		sep = ",\n  "
	}
	if k := c.PrimaryKey; k != nil {
		p.add(sep, "PRIMARY KEY (", joinNames(k.Columns), ") NOT ENFORCED")
	}
	p.add("\n)")
	if len(c.Options) > 0 {
		sep = " WITH (\n  "
		for _, o := range c.Options {
			p.add(sep, QuoteString(o.Key.Value), " = ", QuoteString(o.Value.Value))
			sep = ",\n  "
		}
		p.add("\n)")
	}
}

// String prints the type as it may be written in CREATE TABLE.
func (t *TypeName) String() string {
	name, suffix := t.Name, ""
	switch name {
	case "TIMESTAMPTZ", "TIMETZ":
		name, suffix = strings.TrimSuffix(name, "TZ"), " WITH TIME ZONE"
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

func (p *printer) query(q *Query) {
	s := q.Body.(*Select)
	p.add("SELECT ")
	for i, it := range s.Items {
		if i > 0 {
			p.add(", ")
		}
		p.expr(it.Expr, 0)
		if it.Alias != nil {
			p.add(" AS ", QuoteName(it.Alias.Name))
		}
	}
	from := s.From.(*TableRef)
	p.add("\nFROM ", QuoteName(from.Name.Name))
	if from.Alias != nil {
		p.add(" AS ", QuoteName(from.Alias.Name))
	}
	if s.Where != nil {
		p.add("\nWHERE ")
		p.expr(s.Where, 0)
	}
	for i, e := range s.GroupBy {
		if i == 0 {
			p.add("\nGROUP BY ")
		} else {
			p.add(", ")
		}
		p.expr(e, 0)
	}
}

// expr prints e, in parentheses if it binds weaker than power.
func (p *printer) expr(e Expr, power int) {
	if own := powerOf(e); own < power {
		p.add("(")
		defer p.add(")")
	}
	switch e := e.(type) {
	case *ColumnRef:
		if e.Table != nil {
			p.add(QuoteName(e.Table.Name), ".")
		}
		p.add(QuoteName(e.Name.Name))
	case *Star:
		if e.Table != nil {
			p.add(QuoteName(e.Table.Name), ".")
		}
		p.add("*")
	case *NumberLit:
		p.add(e.Text)
	case *StringLit:
		p.add(QuoteString(e.Value))
	case *BoolLit:
		p.add(strings.ToUpper(strconv.FormatBool(e.Value)))
	case *NullLit:
		p.add("NULL")
	case *IntervalLit:
		p.add("INTERVAL ", QuoteString(e.Value), " ", e.Unit)
	default:
		p.compound(e)
	}
}

func (p *printer) compound(e Expr) {
	switch e := e.(type) {
	case *Unary:
		p.unary(e)
	case *Binary:
		own := powerOf(e)
		left := own
		if own == powerCompare {
			left++
		}
		p.expr(e.X, left)
		p.add(" ", e.Op, " ")
		p.expr(e.Y, own+1)
	case *IsNull:
		p.expr(e.X, powerIs)
		p.add(" IS ", notPrefix(e.Not), "NULL")
	case *In:
		p.expr(e.X, powerIn)
		p.add(" ", notPrefix(e.Not), "IN (")
		p.list(e.List)
		p.add(")")
	case *Call:
		p.call(e)
	}
}

func (p *printer) unary(e *Unary) {
	if e.Op == "NOT" {
		p.add("NOT ")
		p.expr(e.X, powerNot)
		return
	}
	p.add(e.Op)
	if inner, ok := e.X.(*Unary); ok && inner.Op != "NOT" { // --x would be a comment
		p.add("(")
		p.expr(e.X, 0)
		p.add(")")
		return
	}
	p.expr(e.X, powerSign)
}

func (p *printer) call(c *Call) {
	p.add(QuoteName(c.Name.Name), "(")
	switch {
	case c.Star:
		p.add("*")
	case c.Distinct:
		p.add("DISTINCT ")
	}
	p.list(c.Args)
	p.add(")")
}

func (p *printer) list(list []Expr) {
	for i, e := range list {
		if i > 0 {
			p.add(", ")
		}
		p.expr(e, 0)
	}
}

func notPrefix(not bool) string {
	if not {
		return "NOT "
	}
	return ""
}

func powerOf(e Expr) int {
	switch e := e.(type) {
	case *Unary:
		if e.Op == "NOT" {
			return powerNot
		}
		return powerSign
	case *Binary:
		switch e.Op {
		case "OR":
			return powerOr
		case "AND":
			return powerAnd
		case "+", "-":
			return powerSum
		case "*", "/", "%":
			return powerProduct
		}
		return powerCompare
	case *IsNull:
		return powerIs
	case *In:
		return powerIn
	}
	return powerSign + 1
}
