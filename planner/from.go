package planner

import (
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// An input is what FROM reads.
type input struct {
	rel    relation // nil: wrong, and reported
	fields []visible
	what   string // in a sentence: "table t"; empty: there is no FROM
}

// from binds FROM, which may be nil.
func (b *binder) from(f sql.From, w *with) input {
	switch f := f.(type) {
	case *sql.TableRef:
		return b.tableRef(f, w)
	case *sql.Subquery:
		return b.subquery(f, w)
	}
	return input{rel: &values{rows: [][]*expr.Expr{{}}}}
}

func (b *binder) tableRef(ref *sql.TableRef, w *with) input {
	in := input{}
	var name string
	b.read++
	if c := w.find(ref.Name.Name); c != nil {
		name, in.rel = c.def.Name.Name, c.rel
		in.what = name
		b.read += c.reads
	} else if def := b.definition(ref.Name, w); def != nil {
		name, in.rel = def.name(), b.readDefinition(def, ref.Name)
		in.what = def.kind() + " " + name
	}
	if b.read > maxRead {
		if b.tooMany {
			return input{}
		}
		b.tooMany = true // it is so of every table from here on, and told once
		b.found.add(ref.Name, CodeQuery, "", "the job reads more than %d tables and views, counted as often as they are named", maxRead)
		return input{}
	}
	if in.rel == nil {
		return input{}
	}
	if ref.Alias != nil {
		name = ref.Alias.Name
	}
	return b.rename(in, name, ref.Columns)
}

func (b *binder) subquery(sub *sql.Subquery, w *with) input {
	q := b.query(sub.Query, w)
	if q == nil {
		return input{}
	}
	in, name := input{rel: b.finish(q), what: "the subquery"}, ""
	if in.rel == nil {
		return input{}
	}
	if sub.Alias != nil {
		name = sub.Alias.Name
		in.what += " " + name
	}
	return b.rename(in, name, sub.Columns)
}

// rename gives the columns of an input, which is called name here, the names of a list,
// which may be shorter than they are.
func (b *binder) rename(in input, name string, to []sql.Ident) input {
	in.fields = visibleColumns(in.rel.columns(), name)
	if !b.checkNames(to, len(in.fields), in.what) {
		return input{}
	}
	for i, name := range to {
		in.fields[i].name = name.Name
		if slices.ContainsFunc(in.fields[len(to):], func(v visible) bool { return sameName(v.name, name.Name) }) {
			b.found.add(name, CodeName, "name that one too", "%s has another column named %s", in.what, name.Name)
			return input{}
		}
	}
	return in
}

// checkNames sees that a list of new names of columns is not too long and names none twice.
func (b *binder) checkNames(list []sql.Ident, width int, what string) bool {
	if len(list) > width {
		b.found.add(list[width], CodeName, "", "%s has %s, and here are %d names", what, columns(width), len(list))
		return false
	}
	for i, name := range list {
		if slices.ContainsFunc(list[:i], func(old sql.Ident) bool { return sameName(old.Name, name.Name) }) {
			b.found.add(name, CodeName, "", "the name %s stands here twice", name.Name)
			return false
		}
	}
	return true
}

// A with is a name of WITH; outer are those that its query sees. Every use of it reads
// one relation.
type with struct {
	outer *with
	def   *sql.CTE
	rel   relation // nil: wrong
	reads int      // of tables and views, all told
}

// with binds the queries of a WITH clause, used or not.
func (b *binder) with(list []*sql.CTE, outer *with) *with {
	for i, c := range list {
		if slices.ContainsFunc(list[:i], func(old *sql.CTE) bool { return sameName(old.Name.Name, c.Name.Name) }) {
			b.found.add(c.Name, CodeName, "", "WITH has two queries named %s", c.Name.Name)
			continue
		}
		w := &with{outer: outer, def: c}
		before := b.read
		b.defining = append(b.defining, c)
		if q := b.named(c, outer); q != nil {
			w.rel = b.finish(q)
		}
		b.defining = b.defining[:len(b.defining)-1]
		w.reads = b.read - before
		outer = w
	}
	return outer
}

// named binds the query of a CTE and names its columns.
func (b *binder) named(c *sql.CTE, outer *with) *bound {
	q := b.query(c.Query, outer)
	if q == nil || !b.checkNames(c.Columns, len(q.outputs), c.Name.Name) {
		return nil
	}
	return b.renamed(q, c.Columns)
}

// rename gives the first columns of a query other names.
func (b *binder) renamed(q *bound, to []sql.Ident) *bound {
	if len(to) > 0 && q.items != nil {
		b.name(q)
	}
	for i, name := range to {
		q.outputs[i].name = name.Name
		q.whole = false
	}
	return q
}

// find gives the CTE of that name that is seen from here.
func (w *with) find(name string) *with {
	for ; w != nil; w = w.outer {
		if sameName(w.def.Name.Name, name) {
			return w
		}
	}
	return nil
}

// definition finds the table or view that a name means, or says why there is none.
func (b *binder) definition(name sql.Ident, w *with) *definition {
	def, known := b.names.find(name, b.inCatalog(), b.found)
	if def == nil && !known {
		b.unknown(name, w)
	}
	return def
}

// inCatalog reports whether a view of the catalog is being bound: it sees the catalog only.
func (b *binder) inCatalog() bool { return len(b.open) > 0 && b.open[len(b.open)-1].fromCatalog }

// unknown refuses a name that means nothing.
func (b *binder) unknown(name sql.Ident, w *with) {
	names := b.names.known(b.inCatalog())
	for ; w != nil; w = w.outer {
		names = append(names, w.def.Name.Name)
	}
	slices.Sort(names)
	hint := "define it with CREATE TABLE"
	if len(names) > 0 {
		hint = "the tables are " + strings.Join(names[:min(len(names), 20)], ", ")
	}
	if slices.ContainsFunc(b.defining, func(c *sql.CTE) bool { return sameName(c.Name.Name, name.Name) }) {
		b.found.add(name, CodeUnsupported, "a query over a stream cannot read itself", "the query %s of WITH reads itself", name.Name)
		return
	}
	b.found.add(name, CodeName, hints(suggestion(name.Name, names), hint), "unknown table %s", name.Name)
}

// readDefinition gives the rows of a table or view.
func (b *binder) readDefinition(def *definition, at sql.Ident) relation {
	if def.view != nil {
		return b.readView(def.view, at)
	}
	t := def.table
	if t.Connector == "blackhole" {
		b.found.add(at, CodeQuery, "", "table %s cannot be read: its connector 'blackhole' only takes rows", t.Name)
		return nil
	}
	s := b.scans[t]
	if s == nil {
		s = newScan(t, allColumns(t))
		b.scans[t] = s
	}
	if len(t.all) == len(t.Columns) {
		return s
	}
	p := &project{input: s}
	for _, c := range t.all {
		p.exprs = append(p.exprs, c.e)
		p.cols = append(p.cols, c.column)
	}
	return p
}
