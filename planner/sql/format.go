package sql

import "strings"

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

type printer struct {
	b      strings.Builder
	indent int // levels, of two blanks each
}

func (p *printer) add(parts ...string) {
	for _, s := range parts {
		p.b.WriteString(s)
	}
}

// line begins a line.
func (p *printer) line(parts ...string) {
	p.add("\n", strings.Repeat("  ", p.indent))
	p.add(parts...)
}

func (p *printer) statement(s Statement) {
	switch s := s.(type) {
	case *CreateTable:
		p.createTable(s)
	case *CreateView:
		p.add("CREATE VIEW ", ifWord(s.IfNotExists, "IF NOT EXISTS "), QuoteName(s.Name.Name))
		p.columnList(s.Columns)
		p.add(" AS")
		p.line()
		p.query(s.Query)
	case *Drop:
		what := "TABLE "
		if s.View {
			what = "VIEW "
		}
		p.add("DROP ", what, ifWord(s.IfExists, "IF EXISTS "), QuoteName(s.Name.Name))
	case *Show:
		p.add("SHOW ", s.What)
		if s.Name != nil {
			p.add(" ", QuoteName(s.Name.Name))
		}
	case *Describe:
		p.add("DESCRIBE ", QuoteName(s.Name.Name))
	case *Set:
		p.add("SET ", QuoteString(s.Key.Value), " = ", QuoteString(s.Value.Value))
	case *Insert:
		p.insert(s)
	case *StatementSet:
		p.add("EXECUTE ")
		p.statementSet(s)
	case *Explain:
		p.add("EXPLAIN ")
		if set, ok := s.Statement.(*StatementSet); ok {
			p.statementSet(set)
			return
		}
		p.statement(s.Statement)
	case *Query:
		p.query(s)
	}
}

func (p *printer) insert(s *Insert) {
	p.add("INSERT INTO ", QuoteName(s.Table.Name))
	p.columnList(s.Columns)
	p.line()
	p.query(s.Query)
}

func (p *printer) statementSet(s *StatementSet) {
	p.add("STATEMENT SET BEGIN")
	p.indent++
	for _, ins := range s.Inserts {
		p.line()
		p.insert(ins)
		p.add(";")
	}
	p.indent--
	p.line("END")
}

// columnList prints " (names)", or nothing.
func (p *printer) columnList(names []Ident) {
	if len(names) > 0 {
		p.add(" (", joinNames(names), ")")
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
	p.add("CREATE TABLE ", ifWord(c.IfNotExists, "IF NOT EXISTS "), QuoteName(c.Name.Name), " (")
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

// ifWord gives text where it is wanted.
func ifWord(wanted bool, text string) string {
	if wanted {
		return text
	}
	return ""
}
