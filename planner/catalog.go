package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir"
	"weir/planner/sql"
)

// A Catalog knows the tables and views that a script may use without defining them.
type Catalog interface {
	// TableNames lists the tables and views.
	TableNames() ([]string, error)
	// TableSQL returns the CREATE TABLE or CREATE VIEW of one of them; weir.ErrNotFound
	// if there is none.
	TableSQL(name string) (string, error)
}

// A definition is what the name of a table or view means: one of the two is set.
type definition struct {
	table *table
	view  *view
}

func (d *definition) name() string {
	if d.view != nil {
		return d.view.name
	}
	return d.table.Name
}

func (d *definition) kind() string {
	if d.view != nil {
		return "view"
	}
	return "table"
}

// names finds the tables and views of a script and of the catalog.
type names struct {
	script  []*definition
	broken  []sql.Ident // the script's too, but what they are cannot be read
	catalog Catalog     // nil: none
	listed  []string    // the catalog's
	read    []*definition
	views   []*view // that are used
	failed  error   // of the catalog itself
	check   func(path string) error
	zone    string
}

// bindNames checks the script's tables and lists the catalog's.
func bindNames(prog *program, catalog Catalog, opts Options, zone string, found *problems) (*names, error) {
	ns := &names{catalog: catalog, check: opts.CheckPath, broken: prog.broken, zone: zone}
	if catalog != nil {
		listed, err := catalog.TableNames()
		if err != nil {
			return ns, fmt.Errorf("list the catalog's tables: %w", err)
		}
		ns.listed = listed
	}
	for _, s := range prog.definitions {
		ns.define(s, prog.src, found)
	}
	return ns, nil
}

// define adds a table or view of the script, unless IF NOT EXISTS says that one of its
// name will do.
func (ns *names) define(s sql.Statement, src string, found *problems) {
	var name sql.Ident
	var ifNew bool
	switch s := s.(type) {
	case *sql.CreateTable:
		name, ifNew = s.Name, s.IfNotExists
	case *sql.CreateView:
		name, ifNew = s.Name, s.IfNotExists
	}
	old := ns.find1(ns.script, name.Name)
	switch {
	case ifNew && (old != nil || ns.indexListed(name.Name) >= 0):
		return
	case old != nil:
		found.add(name, CodeName, "", "the script has two tables named %s%s", old.name(), sameButForCase(old.name(), name.Name))
		return
	}
	switch s := s.(type) {
	case *sql.CreateTable:
		t := bindTable(s, ns.zone, found)
		ns.checkPath(t, t.optionNode("path"), found)
		ns.script = append(ns.script, &definition{table: t})
	case *sql.CreateView:
		ns.script = append(ns.script, &definition{view: &view{name: name.Name, def: s, src: src}})
	}
}

func (ns *names) find1(list []*definition, name string) *definition {
	i := slices.IndexFunc(list, func(d *definition) bool { return sameName(d.name(), name) })
	if i < 0 {
		return nil
	}
	return list[i]
}

func (ns *names) indexListed(name string) int {
	return slices.IndexFunc(ns.listed, func(n string) bool { return sameName(n, name) })
}

// checkPath asks the caller whether a file connector may use its path.
func (ns *names) checkPath(t *table, at sql.Node, found *problems) {
	path, ok := t.Options["path"]
	if !ok || ns.check == nil {
		return
	}
	if err := ns.check(path); err != nil {
		found.add(at, CodeOption, "", "table %s: %v", t.Name, err)
	}
}

// known lists the names that a query may use.
func (ns *names) known(catalogOnly bool) []string {
	list := slices.Clone(ns.listed)
	for _, d := range ns.script {
		if !catalogOnly {
			list = append(list, d.name())
		}
	}
	return list
}

// find finds a table or view by name, the script's first; catalogOnly: the script's not
// at all. known says that there is one, or may be, and that nothing more is to be said.
func (ns *names) find(name sql.Ident, catalogOnly bool, found *problems) (d *definition, known bool) {
	if !catalogOnly {
		if slices.ContainsFunc(ns.broken, func(t sql.Ident) bool { return sameName(t.Name, name.Name) }) {
			return nil, true // reported with its definition
		}
		if d := ns.find1(ns.script, name.Name); d != nil {
			return d, true
		}
	}
	if d := ns.find1(ns.read, name.Name); d != nil {
		return d, true
	}
	i := ns.indexListed(name.Name)
	if i < 0 {
		return nil, false
	}
	text, err := ns.catalog.TableSQL(ns.listed[i])
	switch {
	case errors.Is(err, weir.ErrNotFound): // dropped a moment ago
		return nil, false
	case err != nil:
		ns.failed = fmt.Errorf("read table %s from the catalog: %w", ns.listed[i], err)
		return nil, true
	}
	return ns.fromCatalog(name, text, found), true
}

// fromCatalog binds the catalog's definition. What is wrong with it is said at the
// place in the script where the table is named.
func (ns *names) fromCatalog(name sql.Ident, text string, found *problems) *definition {
	inner := &problems{src: text}
	d := ns.definitionOf(text, inner)
	if len(inner.list) > 0 {
		kind, p := "table", inner.list[0]
		if len(text) > len("CREATE VIEW") && strings.EqualFold(text[:len("CREATE VIEW")], "CREATE VIEW") {
			kind = "view"
		}
		found.add(name, p.Code, p.Hint, "%s %s of the catalog cannot be used: %s", kind, name.Name, p.Message)
		return nil
	}
	if d.view != nil {
		d.view.fromCatalog = true
	} else {
		d.table.fromCatalog = true
		ns.checkPath(d.table, name, found)
	}
	ns.read = append(ns.read, d)
	return d
}

// definitionOf reads a text that is one CREATE TABLE or CREATE VIEW.
func (ns *names) definitionOf(text string, found *problems) *definition {
	script, errs := sql.Parse(text)
	for _, e := range errs {
		found.add(sql.Span{Start: e.Pos, Stop: e.End}, Code(e.Code), e.Hint, "%s", e.Message)
	}
	if len(errs) > 0 {
		return nil
	}
	if len(script.Statements) == 0 {
		found.add(sql.Span{}, CodeQuery, "write CREATE TABLE name (…) WITH (…)", "the text holds no CREATE TABLE and no CREATE VIEW")
		return nil
	}
	if len(script.Statements) == 1 {
		switch def := script.Statements[0].(type) {
		case *sql.CreateTable:
			return &definition{table: bindTable(def, ns.zone, found)}
		case *sql.CreateView:
			return &definition{view: &view{name: def.Name.Name, def: def, src: text}}
		}
	}
	wrong := script.Statements[min(1, len(script.Statements)-1)]
	found.add(head(wrong), CodeQuery, "", "a definition is one CREATE TABLE or CREATE VIEW and nothing else")
	return nil
}
