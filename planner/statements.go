package planner

import "weir/planner/sql"

// A CatalogKind says what a CatalogStatement does.
type CatalogKind string

// The kinds of catalog statements.
const (
	KindCreateTable     CatalogKind = "CREATE TABLE"
	KindCreateView      CatalogKind = "CREATE VIEW"
	KindDropTable       CatalogKind = "DROP TABLE"
	KindDropView        CatalogKind = "DROP VIEW"
	KindShowTables      CatalogKind = "SHOW TABLES"
	KindShowViews       CatalogKind = "SHOW VIEWS"
	KindShowFunctions   CatalogKind = "SHOW FUNCTIONS"
	KindShowCreateTable CatalogKind = "SHOW CREATE TABLE"
	KindShowCreateView  CatalogKind = "SHOW CREATE VIEW"
	KindDescribe        CatalogKind = "DESCRIBE"
	KindExplain         CatalogKind = "EXPLAIN"
)

// A CatalogStatement is one statement of a script for the catalog.
type CatalogStatement struct {
	Kind        CatalogKind
	Name        string // of the table or view; empty where the kind has none
	IfExists    bool   // DROP … IF EXISTS
	IfNotExists bool   // CREATE … IF NOT EXISTS
	// SQL is the statement as written: what Define takes for CREATE, what Plan takes for
	// EXPLAIN.
	SQL    string
	Line   int // of its first character in the script, from 1
	Column int // from 1, in characters
	Offset int // from 0, in bytes

	script string
	name   sql.Span // in the script: of the name, or of the first word
}

// Define checks a CREATE as the function of that name does; places are the script's.
func (c CatalogStatement) Define(catalog Catalog, opts Options) (*Table, error) {
	return define(c.SQL, catalog, opts, &problems{src: c.script, base: c.Offset})
}

// Plan plans an EXPLAIN as the function of that name does; places are the script's.
func (c CatalogStatement) Plan(catalog Catalog, opts Options) (*Result, error) {
	return planScript(c.SQL, catalog, opts, &problems{src: c.script, base: c.Offset})
}

// Refuse makes the *Error that says what is wrong with the statement's name, or with a
// statement that has none.
func (c CatalogStatement) Refuse(code Code, hint, message string) error {
	found := &problems{src: c.script}
	found.add(c.name, code, hint, "%s", message)
	return found.err()
}

// maxStatements bounds a script for the catalog, each of whose statements may answer with
// the whole of it.
const maxStatements = 1000

// Statements tells the statements of a script apart that holds only those that act on
// the catalog: CREATE, DROP, SHOW, DESCRIBE and EXPLAIN. They are to run in order; each
// sees what those before it made. An *Error, which wraps weir.ErrInvalid, says what is
// wrong with the script, or that a statement is none of these; the names are not looked
// up, nor is what CREATE defines checked, which is for Define.
func Statements(text string) ([]CatalogStatement, error) {
	found := &problems{src: text}
	script, errs := sql.Parse(text)
	for _, e := range errs {
		found.add(sql.Span{Start: e.Pos, Stop: e.End}, Code(e.Code), e.Hint, "%s", e.Message)
	}
	if n := len(script.Statements); n > maxStatements {
		found.add(head(script.Statements[maxStatements]), CodeQuery, "send them in several scripts", "a script for the catalog has %d statements at the most, this one has %d", maxStatements, n)
		return nil, found.err()
	}
	var list []CatalogStatement
	for _, s := range script.Statements {
		c, ok := catalogStatement(s)
		if !ok {
			found.add(head(s), CodeQuery, "weir run or POST /v1/jobs runs a job; here stand CREATE, DROP, SHOW, DESCRIBE and EXPLAIN", "%s does not act on the catalog", statementName(s))
			continue
		}
		c.SQL, c.Offset, c.script = text[s.Pos():s.End()], s.Pos(), text
		if c.Name == "" {
			c.name = head(s)
		}
		c.Line, c.Column = sql.Locate(text, s.Pos())
		list = append(list, c)
	}
	if len(list) == 0 && len(found.list) == 0 {
		found.add(sql.Span{}, CodeQuery, "write CREATE, DROP, SHOW, DESCRIBE or EXPLAIN", "the script holds no statement")
	}
	return list, found.err()
}

func catalogStatement(s sql.Statement) (c CatalogStatement, ok bool) {
	switch s := s.(type) {
	case *sql.CreateTable:
		return CatalogStatement{Kind: KindCreateTable, Name: s.Name.Name, name: s.Name.Span, IfNotExists: s.IfNotExists}, true
	case *sql.CreateView:
		return CatalogStatement{Kind: KindCreateView, Name: s.Name.Name, name: s.Name.Span, IfNotExists: s.IfNotExists}, true
	case *sql.Drop:
		c = CatalogStatement{Kind: KindDropTable, Name: s.Name.Name, name: s.Name.Span, IfExists: s.IfExists}
		if s.View {
			c.Kind = KindDropView
		}
		return c, true
	case *sql.Show:
		c = CatalogStatement{Kind: CatalogKind("SHOW " + s.What)}
		if s.Name != nil {
			c.Name, c.name = s.Name.Name, s.Name.Span
		}
		return c, true
	case *sql.Describe:
		return CatalogStatement{Kind: KindDescribe, Name: s.Name.Name, name: s.Name.Span}, true
	case *sql.Explain:
		return CatalogStatement{Kind: KindExplain}, true
	}
	return c, false
}
