package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/planner"
	"weir/planner/expr"
	"weir/planner/plan"
)

// A SQLRequest is a script for the catalog.
type SQLRequest struct {
	// CREATE, DROP, SHOW, DESCRIBE and EXPLAIN, with semicolons between.
	SQL string `json:"sql" validate:"required" example:"CREATE VIEW buys AS SELECT * FROM user_behavior WHERE behavior = 'buy'; SHOW VIEWS"`
} // @name SQLRequest

// A SQLAnswer has a result for each statement of the script, in order.
type SQLAnswer struct {
	Results []SQLResult `json:"results"`
} // @name SQLAnswer

// A SQLResult is what one statement gave: rows, or a message.
type SQLResult struct {
	Statement string            `json:"statement" example:"SHOW TABLES"`
	Line      int               `json:"line" example:"1"` // of its first word in the script
	Columns   []ResultColumn    `json:"columns"`
	Rows      []json.RawMessage `json:"rows" swaggertype:"array,object"` // objects of the columns
	Message   string            `json:"message,omitempty" example:"table numbers created"`
} // @name SQLResult

// runSQL carries out a script for the catalog.
//
//	@Summary		Run a script on the catalog
//	@Description	CREATE, DROP, SHOW, DESCRIBE and EXPLAIN. Each statement sees what those before it did; all of the script is carried out, or nothing.
//	@Tags			sql
//	@Accept			json
//	@Produce		json
//	@Param			script	body		SQLRequest	true	"the script"
//	@Success		200		{object}	SQLAnswer
//	@Router			/v1/sql [post]
func (s *Server) runSQL(c echo.Context) error {
	var req SQLRequest
	if err := s.decode(c, query(c), &req); err != nil {
		return err
	}
	script, err := planner.Statements(req.SQL)
	if err != nil {
		return err
	}
	var answer SQLAnswer
	err = s.changeCatalog(c.Request().Context(), func(o *overlay) error {
		answer.Results = make([]SQLResult, len(script))
		run := statementRun{overlay: o, script: script, opts: planner.Options{CheckPath: s.opts.CheckPath}, tables: map[string]*planner.Table{}}
		var wrong scriptFaults
		for i, st := range script {
			if wrong.reaches(st) {
				continue
			}
			if answer.Results[i], err = run.statement(i); err != nil && !wrong.add(st, err) {
				return err
			}
		}
		if err := wrong.err(); err != nil {
			return err
		}
		lost, err := o.losses()
		if err != nil || len(lost) == 0 {
			return err
		}
		return refuseLosses(o, script, lost)
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}

// scriptFaults collects what is wrong with the statements of a script.
type scriptFaults struct {
	status int // of the first
	all    planner.Error
	names  []string // in lower case: of tables and views that are not as the script means them
}

// reaches reports whether a statement speaks of a name that an earlier fault is about:
// what is wrong with it may follow from that.
func (f *scriptFaults) reaches(st planner.CatalogStatement) bool {
	if len(f.names) == 0 {
		return false
	}
	text := strings.ToLower(st.SQL)
	words := strings.FieldsFunc(text, isNoLetter)
	return slices.ContainsFunc(f.names, func(name string) bool {
		return slices.Contains(words, name) || strings.ContainsFunc(name, isNoLetter) && strings.Contains(text, name)
	})
}

func isNoLetter(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }

// add keeps a fault of a statement; false: the error is none of the script's.
func (f *scriptFaults) add(st planner.CatalogStatement, err error) bool {
	p := problemOf(err, http.MethodPost)
	if len(p.Errors) == 0 {
		return false
	}
	f.status = cmp.Or(f.status, p.Status)
	for _, e := range p.Errors {
		f.all.Problems = append(f.all.Problems, planner.Problem{Line: e.Line, Column: e.Column, Message: e.Message, Hint: e.Hint, Snippet: e.Snippet, Code: planner.Code(e.Code)})
	}
	if st.Name != "" {
		f.names = append(f.names, strings.ToLower(st.Name))
	}
	return true
}

func (f *scriptFaults) err() error {
	if len(f.all.Problems) == 0 {
		return nil
	}
	return refuseScript(f.status, &f.all)
}

// A statementRun carries a script out on an overlay of the catalog.
type statementRun struct {
	*overlay
	script []planner.CatalogStatement
	opts   planner.Options
	tables map[string]*planner.Table // bound, by definition: that of a table says all
}

// statement carries out statement i.
func (r *statementRun) statement(i int) (SQLResult, error) {
	st := r.script[i]
	out := SQLResult{Statement: string(st.Kind), Line: st.Line, Columns: []ResultColumn{}, Rows: []json.RawMessage{}}
	var err error
	switch st.Kind {
	case planner.KindCreateTable, planner.KindCreateView:
		out.Message, err = r.create(i)
	case planner.KindDropTable, planner.KindDropView:
		out.Message, err = r.dropNamed(i)
	case planner.KindShowTables, planner.KindShowViews:
		err = r.showNames(st, &out)
	case planner.KindShowFunctions:
		showFunctions(&out)
	case planner.KindShowCreateTable, planner.KindShowCreateView:
		err = r.showCreate(st, &out)
	case planner.KindDescribe:
		err = r.describe(st, &out)
	case planner.KindExplain:
		var planned *planner.Result
		if planned, err = st.Plan(r, r.opts); err == nil {
			out.text("plan")
			out.row(planned.Text())
		}
	default:
		panic("server: statement of an unknown kind: " + string(st.Kind))
	}
	return out, err
}

// create adds a table or view.
func (r *statementRun) create(i int) (string, error) {
	st := r.script[i]
	t, err := st.Define(r, r.opts)
	if err != nil {
		return "", err
	}
	old, there := r.find(st.Name)
	switch {
	case there && st.IfNotExists:
		return fmt.Sprintf("%s %s exists already", kindOf(old), old.Name), nil
	case there:
		hint := fmt.Sprintf("DROP %s %s first, or ", strings.ToUpper(kindOf(old)), planner.QuoteName(old.Name))
		if kindOf(old) == wanted(st.Kind) {
			hint += fmt.Sprintf("write %s IF NOT EXISTS", st.Kind)
		} else {
			hint += "choose another name"
		}
		return "", refuseScript(http.StatusConflict, st.Refuse(planner.CodeName, hint, fmt.Sprintf("%s %s exists already%s", kindOf(old), old.Name, r.madeBy(old.Name))))
	}
	if err := checkTableName(t.Name); err != nil {
		return "", st.Refuse(planner.CodeName, "choose another name", fmt.Sprintf("a %s named %q could not be reached by a path", wanted(st.Kind), t.Name))
	}
	made, err := entry(t, time.Now())
	if err != nil {
		return "", err
	}
	r.put(made, i)
	return fmt.Sprintf("%s %s created", kindOf(made), made.Name), nil
}

// madeBy says which statement of the script made what is named, if one did.
func (r *statementRun) madeBy(name string) string {
	for i := len(r.done) - 1; i >= 0; i-- {
		if c := r.done[i]; c.put.Name == name {
			return fmt.Sprintf(": line %d of the script creates it", r.script[c.cause].Line)
		}
	}
	return ""
}

// dropNamed takes a table or view out.
func (r *statementRun) dropNamed(i int) (string, error) {
	st := r.script[i]
	t, ok := r.find(st.Name)
	if !ok && st.IfExists {
		return fmt.Sprintf("there is no %s %s", wanted(st.Kind), st.Name), nil
	}
	if !ok {
		return "", r.missing(st, fmt.Sprintf("write DROP %s IF EXISTS if it need not be there", strings.ToUpper(wanted(st.Kind))))
	}
	if kindOf(t) != wanted(st.Kind) {
		return "", otherKind(st, t.Name, "DROP")
	}
	r.drop(t.Name, i)
	return fmt.Sprintf("%s %s dropped", kindOf(t), t.Name), nil
}

// wanted is the kind of entry that a statement is about.
func wanted(kind planner.CatalogKind) string {
	switch kind {
	case planner.KindCreateView, planner.KindDropView, planner.KindShowCreateView:
		return "view"
	}
	return "table"
}

// otherKind refuses a statement about a table that is a view, or the other way round.
func otherKind(st planner.CatalogStatement, name, verb string) error {
	is := map[string]string{"table": "view", "view": "table"}[wanted(st.Kind)]
	hint := fmt.Sprintf("write %s %s %s", verb, strings.ToUpper(is), planner.QuoteName(name))
	return refuseScript(http.StatusConflict, st.Refuse(planner.CodeName, hint, fmt.Sprintf("%s is a %s", name, is)))
}

// missing refuses a name that the catalog does not have.
func (r *statementRun) missing(st planner.CatalogStatement, otherwise string) error {
	names, err := r.TableNames()
	if err != nil {
		return err
	}
	what := wanted(st.Kind)
	if st.Kind == planner.KindDescribe {
		what = "table or view"
	}
	hint := planner.Suggest(st.Name, names)
	if hint == "" {
		hint = otherwise
	}
	return refuseScript(http.StatusNotFound, st.Refuse(planner.CodeName, hint, fmt.Sprintf("there is no %s %s", what, st.Name)))
}

// showNames lists the tables with their connectors, or the views with their columns.
func (r *statementRun) showNames(st planner.CatalogStatement, out *SQLResult) error {
	views := st.Kind == planner.KindShowViews
	if views {
		out.text("view", "columns")
	} else {
		out.text("table", "connector", "format")
	}
	for _, t := range r.now {
		if isView(t) != views {
			continue
		}
		v, err := r.view(t)
		if err != nil {
			return err
		}
		if !views {
			out.row(t.Name, t.Connector, orNull(r.format(t)))
			continue
		}
		columns := make([]string, len(v.Columns))
		for i, c := range v.Columns {
			columns[i] = c.Name + " " + c.Type
		}
		out.row(t.Name, strings.Join(columns, ", "))
	}
	return nil
}

// format gives the format that a table names; of one that cannot be used, none.
func (r *statementRun) format(t weir.Table) string {
	bound, ok := r.tables[t.SQL]
	if !ok {
		bound, _ = r.definition(t) // what is wrong with it is said where it is used
		r.tables[t.SQL] = bound
	}
	if bound == nil {
		return ""
	}
	return bound.Format
}

// showCreate shows a definition.
func (r *statementRun) showCreate(st planner.CatalogStatement, out *SQLResult) error {
	t, ok := r.find(st.Name)
	if !ok {
		return r.missing(st, "SHOW "+strings.ToUpper(wanted(st.Kind))+"S lists them")
	}
	if kindOf(t) != wanted(st.Kind) {
		return otherKind(st, t.Name, "SHOW CREATE")
	}
	out.text("sql")
	out.row(t.SQL)
	return nil
}

// describe shows columns.
func (r *statementRun) describe(st planner.CatalogStatement, out *SQLResult) error {
	t, ok := r.find(st.Name)
	if !ok {
		return r.missing(st, "SHOW TABLES and SHOW VIEWS list them")
	}
	if reason, err := r.fault(t); err != nil || reason != "" {
		if err == nil {
			err = refuseScript(http.StatusConflict, st.Refuse(planner.CodeQuery, "drop it and create it again", fmt.Sprintf("the %s %s of the catalog cannot be used: %s", kindOf(t), t.Name, reason)))
		}
		return err
	}
	bound, err := r.definition(t)
	if err != nil {
		return err
	}
	out.text("column", "type", "nullable", "computed")
	out.Columns[2].Type = expr.Type{Kind: expr.Boolean}.String()
	for _, c := range tableColumns(bound) {
		out.row(c.Name, c.Type, !c.NotNull, orNull(c.Computed))
	}
	return nil
}

// showFunctions lists the functions and aggregates of the language.
func showFunctions(out *SQLResult) {
	out.text("function", "call", "result", "text")
	for _, f := range expr.Functions() {
		var results []string
		for _, s := range f.Signatures {
			if gives := s.Gives(); !slices.Contains(results, gives) {
				results = append(results, gives)
			}
		}
		out.row(f.SQL, f.Usage(), orNull(strings.Join(results, " or ")), f.Doc)
	}
	for _, a := range expr.AggregateFunctions() {
		call := a.Syntax
		if call == "" {
			call = a.SQL + "(x)"
		}
		out.row(a.SQL, call, a.Result, a.Doc)
	}
}

// text gives a result columns of type STRING.
func (r *SQLResult) text(names ...string) {
	for _, name := range names {
		r.Columns = append(r.Columns, viewColumns([]plan.Column{{Name: name, Type: expr.Type{Kind: expr.String}}})...)
	}
}

// row adds a row; the values are strings, booleans or nil.
func (r *SQLResult) row(values ...any) {
	out := []byte{'{'}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		name, nameErr := json.Marshal(r.Columns[i].Name)
		value, valueErr := json.Marshal(v)
		if nameErr != nil || valueErr != nil {
			panic(fmt.Sprintf("server: a value of a result cannot be encoded: %v", v))
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	r.Rows = append(r.Rows, append(out, '}'))
}

// orNull makes an empty text NULL.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
