package planner

import (
	"strings"

	"weir/planner/sql"
)

// A program is a script whose statements have been told apart: the output of the
// first phase.
type program struct {
	src         string
	definitions []sql.Statement // *sql.CreateTable and *sql.CreateView
	broken      []sql.Ident     // tables whose CREATE TABLE cannot be read
	sets        []*sql.Set
	job         sql.Statement // *sql.Query, *sql.Insert or *sql.StatementSet
	explain     bool          // the job is only to be explained
}

// parse reads a script and sees that it is one job: any number of CREATE TABLE, CREATE
// VIEW and SET, then one SELECT, INSERT or EXECUTE STATEMENT SET, or EXPLAIN of one.
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
		message, hint := "the script has no SELECT and no INSERT: it is no job", "end it with SELECT … or INSERT INTO … SELECT …"
		if len(script.Statements) == 0 {
			message = "the script holds no statement"
		} else if len(prog.sets) == 0 {
			hint += "; for the catalog, CREATE alone is run by weir sql or POST /v1/sql"
		}
		found.add(sql.Span{Start: end, Stop: end}, CodeQuery, hint, "%s", message)
	}
	return prog
}

// place puts a statement where it belongs.
func (prog *program) place(s sql.Statement, found *problems) {
	const order = "a script's settings, tables and views come before its query; move it up"
	switch s := s.(type) {
	case *sql.Explain:
		prog.explain = prog.job == nil
		prog.place(s.Statement, found)
	case *sql.Query, *sql.Insert, *sql.StatementSet:
		if prog.job != nil {
			found.add(head(s), CodeQuery, "submit a job for each SELECT; several INSERTs are one job within EXECUTE STATEMENT SET BEGIN … END",
				"a script is one job, and this is its second query")
			return
		}
		prog.job = s
	case *sql.CreateTable:
		if prog.job != nil {
			found.add(s.Name, CodeQuery, order, "CREATE TABLE %s stands behind the query", s.Name.Name)
		}
		prog.definitions = append(prog.definitions, s)
	case *sql.CreateView:
		if prog.job != nil {
			found.add(s.Name, CodeQuery, order, "CREATE VIEW %s stands behind the query", s.Name.Name)
		}
		prog.definitions = append(prog.definitions, s)
	case *sql.Set:
		if prog.job != nil {
			found.add(s.Key, CodeQuery, order, "SET '%s' stands behind the query", s.Key.Value)
		}
		prog.sets = append(prog.sets, s)
	default:
		found.add(head(s), CodeQuery, "weir sql or POST /v1/sql runs it on the catalog", "%s is no part of a job", statementName(s))
	}
}

// head is the span of a statement's first word: what to point at when all of it is meant.
func head(s sql.Node) sql.Span {
	return sql.Span{Start: s.Pos(), Stop: min(s.Pos()+len("SELECT"), s.End())}
}

func statementName(s sql.Statement) string {
	switch s := s.(type) {
	case *sql.CreateTable:
		return "CREATE TABLE"
	case *sql.CreateView:
		return "CREATE VIEW"
	case *sql.Drop:
		if s.View {
			return "DROP VIEW"
		}
		return "DROP TABLE"
	case *sql.Show:
		return "SHOW " + s.What
	case *sql.Describe:
		return "DESCRIBE"
	case *sql.Explain:
		return "EXPLAIN"
	case *sql.Set:
		return "SET"
	case *sql.Insert:
		return "INSERT"
	case *sql.StatementSet:
		return "EXECUTE STATEMENT SET"
	}
	return "SELECT"
}
