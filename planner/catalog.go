package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir"
	"weir/planner/sql"
)

// A Catalog knows the tables that a script may use without defining them.
type Catalog interface {
	// TableNames lists the tables.
	TableNames() ([]string, error)
	// TableSQL returns the CREATE TABLE of one of them; weir.ErrNotFound if there is none.
	TableSQL(name string) (string, error)
}

// tables finds the tables of a script and of the catalog.
type tables struct {
	script  []*table
	broken  []sql.Ident // the script's too, but what they are cannot be read
	catalog Catalog     // nil: none
	names   []string
	used    []*table
	failed  error // of the catalog itself
	check   func(path string) error
}

// bindTables checks the script's tables and lists the catalog's.
func bindTables(prog *program, catalog Catalog, check func(string) error, found *problems) (*tables, error) {
	ts := &tables{catalog: catalog, check: check, broken: prog.broken}
	for _, def := range prog.tables {
		if i := ts.index(def.Name.Name); i >= 0 {
			found.add(def.Name, CodeName, "", "the script has two tables named %s%s", ts.script[i].Name, sameButForCase(ts.script[i].Name, def.Name.Name))
			continue
		}
		t := bindTable(def, found)
		ts.checkPath(t, t.optionNode("path"), found)
		ts.script = append(ts.script, t)
	}
	if catalog == nil {
		return ts, nil
	}
	names, err := catalog.TableNames()
	if err != nil {
		return ts, fmt.Errorf("list the catalog's tables: %w", err)
	}
	ts.names = names
	return ts, nil
}

func (ts *tables) index(name string) int {
	return slices.IndexFunc(ts.script, func(t *table) bool { return sameName(t.Name, name) })
}

// checkPath asks the caller whether a file connector may use its path.
func (ts *tables) checkPath(t *table, at sql.Node, found *problems) {
	path, ok := t.Options["path"]
	if !ok || ts.check == nil {
		return
	}
	if err := ts.check(path); err != nil {
		found.add(at, CodeOption, "", "table %s: %v", t.Name, err)
	}
}

// lookup finds a table by name, the script's first, and notes that it is used.
func (ts *tables) lookup(name sql.Ident, found *problems) *table {
	t := ts.find(name, found)
	if t != nil && !slices.Contains(ts.used, t) {
		ts.used = append(ts.used, t)
	}
	return t
}

func (ts *tables) find(name sql.Ident, found *problems) *table {
	if slices.ContainsFunc(ts.broken, func(t sql.Ident) bool { return sameName(t.Name, name.Name) }) {
		return nil // reported with its definition
	}
	if i := ts.index(name.Name); i >= 0 {
		return ts.script[i]
	}
	if i := slices.IndexFunc(ts.used, func(t *table) bool { return sameName(t.Name, name.Name) }); i >= 0 {
		return ts.used[i]
	}
	i := slices.IndexFunc(ts.names, func(n string) bool { return sameName(n, name.Name) })
	if i < 0 {
		ts.unknown(name, found)
		return nil
	}
	text, err := ts.catalog.TableSQL(ts.names[i])
	switch {
	case errors.Is(err, weir.ErrNotFound): // dropped a moment ago
		ts.unknown(name, found)
		return nil
	case err != nil:
		ts.failed = fmt.Errorf("read table %s from the catalog: %w", ts.names[i], err)
		return nil
	}
	return ts.fromCatalog(name, text, found)
}

func (ts *tables) unknown(name sql.Ident, found *problems) {
	names := slices.Clone(ts.names)
	for _, t := range ts.script {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	hint := "define it with CREATE TABLE"
	if len(names) > 0 {
		hint = "the tables are " + strings.Join(names[:min(len(names), 20)], ", ")
	}
	found.add(name, CodeName, hints(suggestion(name.Name, names), hint), "unknown table %s", name.Name)
}

// fromCatalog binds the catalog's definition. What is wrong with it is said at the
// place in the script where the table is named.
func (ts *tables) fromCatalog(name sql.Ident, text string, found *problems) *table {
	inner := &problems{src: text}
	t := tableOf(text, inner)
	if len(inner.list) > 0 {
		p := inner.list[0]
		found.add(name, p.Code, p.Hint, "table %s of the catalog cannot be used: %s", name.Name, p.Message)
		return nil
	}
	t.fromCatalog = true
	ts.checkPath(t, name, found)
	return t
}

// tableOf reads a text that is one CREATE TABLE.
func tableOf(text string, found *problems) *table {
	script, errs := sql.Parse(text)
	for _, e := range errs {
		found.add(sql.Span{Start: e.Pos, Stop: e.End}, Code(e.Code), e.Hint, "%s", e.Message)
	}
	if len(errs) > 0 {
		return nil
	}
	for i, s := range script.Statements {
		def, ok := s.(*sql.CreateTable)
		if !ok || i > 0 {
			found.add(head(s), CodeQuery, "", "a table's definition is one CREATE TABLE and nothing else")
			return nil
		}
		if len(script.Statements) == 1 {
			return bindTable(def, found)
		}
	}
	if len(script.Statements) == 0 {
		found.add(sql.Span{}, CodeQuery, "write CREATE TABLE name (…) WITH (…)", "the text holds no CREATE TABLE")
	}
	return nil
}
