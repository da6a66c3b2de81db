package planner

import (
	"strings"

	"weir/planner/sql"
)

// A program is a script whose statements have been told apart: the output of the
// first phase.
type program struct {
	src    string
	tables []*sql.CreateTable
	broken []sql.Ident // tables whose CREATE TABLE cannot be read
	sets   []*sql.Set
	job    sql.Statement // *sql.Query or *sql.Insert
}

// parse reads a script and sees that it is one job: any number of CREATE TABLE and
// SET, then one SELECT or INSERT.
func parse(src string, found *problems) *program {
	script, errs := sql.Parse(src)
	for _, e := range errs {
		found.add(sql.Span{Start: e.Pos, Stop: e.End}, Code(e.Code), e.Hint, "%s", e.Message)
	}
	prog := &program{src: src, broken: script.Broken}
	for _, s := range script.Statements {
		prog.place(s, found)
	}
	if prog.job == nil && len(found.list) == 0 {
		end := len(strings.TrimRight(src, " \t\r\n;"))
		message := "the script has no SELECT and no INSERT: it is no job"
		if len(script.Statements) == 0 {
			message = "the script holds no statement"
		}
		found.add(sql.Span{Start: end, Stop: end}, CodeQuery, "end it with SELECT … or INSERT INTO … SELECT …", "%s", message)
	}
	return prog
}

// place puts a statement where it belongs.
func (prog *program) place(s sql.Statement, found *problems) {
	const order = "a script's settings and tables come before its query; move it up"
	switch s := s.(type) {
	case *sql.Query, *sql.Insert:
		if prog.job != nil {
			found.add(head(s), CodeQuery, "submit a job for each SELECT and INSERT", "a script is one job, and this is its second query")
			return
		}
		prog.job = s
	case *sql.CreateTable:
		if prog.job != nil {
			found.add(s.Name, CodeQuery, order, "CREATE TABLE %s stands behind the query", s.Name.Name)
		}
		prog.tables = append(prog.tables, s)
	case *sql.Set:
		if prog.job != nil {
			found.add(s.Key, CodeQuery, order, "SET '%s' stands behind the query", s.Key.Value)
		}
		prog.sets = append(prog.sets, s)
	default:
		found.add(head(s), CodeUnsupported, "", "%s is not supported", statementName(s))
	}
}

// head is the span of a statement's first word: what to point at when all of it is meant.
func head(s sql.Node) sql.Span {
	return sql.Span{Start: s.Pos(), Stop: s.Pos() + len("SELECT")}
}

func statementName(s sql.Statement) string {
	switch s := s.(type) {
	case *sql.CreateView:
		return "CREATE VIEW"
	case *sql.Drop:
		return "DROP"
	case *sql.Show:
		return "SHOW " + s.What
	case *sql.Describe:
		return "DESCRIBE"
	case *sql.Explain:
		return "EXPLAIN"
	case *sql.StatementSet:
		return "EXECUTE STATEMENT SET"
	}
	return "this statement"
}
