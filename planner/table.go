package planner

import (
	"fmt"
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/plan"
	"weir/planner/sql"
)

// A table is a CREATE TABLE that has been checked. Its Columns are those that the
// connector reads and writes.
type table struct {
	plan.Table
	def           *sql.CreateTable
	all           []tableColumn // as declared: the Columns, and those that are computed from them
	bounded       bool          // as a source, it ends
	rowsPerSecond float64       // as a source; 0: not paced
	fromCatalog   bool
}

// A tableColumn is a column as a query sees it.
type tableColumn struct {
	column
	e        *expr.Expr // over the table's Columns
	computed sql.Expr   // as written; nil: it is stored
}

// bindTable checks a CREATE TABLE: its columns, its types and its options. It returns
// a table even where something is wrong, so that more can be found.
func bindTable(def *sql.CreateTable, zone string, found *problems) *table {
	t := &table{def: def, Table: plan.Table{Name: def.Name.Name, Columns: make([]plan.Column, 0, len(def.Columns))}, all: make([]tableColumn, 0, len(def.Columns))}
	for _, c := range def.Columns {
		t.addColumn(c, found)
	}
	t.compute(zone, found)
	if len(t.Columns) == 0 && len(t.all) > 0 {
		found.add(def.Name, CodeQuery, "declare a column with its type", "table %s has computed columns only", t.Name)
	}
	if w := def.Watermark; w != nil {
		found.add(w, CodeUnsupported, "leave it out: windows are not supported yet", "WATERMARK is not supported")
	}
	if k := def.PrimaryKey; k != nil {
		found.add(k, CodeUnsupported, "leave it out: no connector needs it yet", "PRIMARY KEY is not supported")
	}
	bindOptions(t, found)
	return t
}

func (t *table) addColumn(c *sql.Column, found *problems) {
	if i := slices.IndexFunc(t.all, func(old tableColumn) bool { return sameName(old.name, c.Name.Name) }); i >= 0 {
		found.add(c.Name, CodeName, "", "table %s has two columns named %s%s", t.Name, t.all[i].name, sameButForCase(t.all[i].name, c.Name.Name))
		return
	}
	if c.As != nil {
		t.all = append(t.all, tableColumn{column: column{name: c.Name.Name}, computed: c.As})
		return
	}
	col := plan.Column{Name: c.Name.Name, Type: bindType(c.Type, found), NotNull: c.NotNull}
	e := &expr.Expr{Op: expr.OpColumn, Type: col.Type, Column: len(t.Columns)}
	t.Columns = append(t.Columns, col)
	t.all = append(t.all, tableColumn{column: column{col.Name, col.Type, col.NotNull}, e: e})
}

// compute binds the computed columns over the others.
func (t *table) compute(zone string, found *problems) {
	if len(t.all) == len(t.Columns) {
		return
	}
	stored := newScan(t, allColumns(t)).cols
	s := &scope{found: found, fields: visibleColumns(stored, t.Name), from: "table " + t.Name, clause: "a computed column", zone: zone}
	for i := range t.all {
		c := &t.all[i]
		if c.computed == nil || t.readsComputed(c, found) {
			continue
		}
		if e := s.expr(c.computed); e != nil {
			c.e = typed(e)
			c.typ = c.e.Type
			c.notNull = notNull(e, func(i int) bool { return t.Columns[i].NotNull })
		}
	}
}

// readsComputed refuses a computed column that reads another one.
func (t *table) readsComputed(c *tableColumn, found *problems) bool {
	wrong := false
	eachColumnRef(c.computed, func(ref *sql.ColumnRef) {
		if i := slices.IndexFunc(t.all, func(other tableColumn) bool { return sameName(other.name, ref.Name.Name) }); i >= 0 && t.all[i].computed != nil {
			found.add(ref, CodeQuery, "write its expression: "+sql.FormatExpr(t.all[i].computed), "the computed column %s reads the computed column %s", c.name, t.all[i].name)
			wrong = true
		}
	})
	return wrong
}

func eachColumnRef(e sql.Expr, f func(ref *sql.ColumnRef)) {
	if ref, ok := e.(*sql.ColumnRef); ok {
		f(ref)
	}
	for _, x := range operands(e) {
		eachColumnRef(x, f)
	}
}

func sameButForCase(a, b string) string {
	if a == b {
		return ""
	}
	return fmt.Sprintf(" (%s: names that differ only in case are the same)", b)
}

// column returns the index of the column of that name, compared without case, or -1.
func (t *table) column(name string) int {
	return slices.IndexFunc(t.Columns, func(c plan.Column) bool { return sameName(c.Name, name) })
}

func (t *table) columnNames() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// sameName compares names as SQL does: case is kept but not compared.
func sameName(a, b string) bool { return folded(a) == folded(b) }

// folded is the form in which names are compared.
func folded(name string) string { return strings.ToLower(name) }
