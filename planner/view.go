package planner

import (
	"strings"

	"weir/planner/plan"
	"weir/planner/sql"
)

// A view is a CREATE VIEW. Its query is bound where the view is read.
type view struct {
	name        string
	def         *sql.CreateView
	src         string // the text that def is part of
	fromCatalog bool
	first       *bound // of the script's: for its first use
	wrong       bool
	columns     []plan.Column // known once it has been read
}

// checkViews binds the script's views, used or not.
func (b *binder) checkViews() {
	for _, def := range b.names.script {
		if v := def.view; v != nil && v.first == nil && !v.wrong {
			v.first = b.bindView(v, v.def.Name)
			v.wrong = v.first == nil
		}
	}
}

// bindView binds a view's query and names its columns.
func (b *binder) bindView(v *view, at sql.Ident) *bound {
	for i, outer := range b.open {
		if outer == v {
			var path []string
			for _, w := range append(b.open[i:], v) {
				path = append(path, w.name)
			}
			b.found.add(at, CodeQuery, "", "the view %s reads itself (%s)", v.name, strings.Join(path, " → "))
			return nil
		}
	}
	b.open = append(b.open, v)
	defer func() { b.open = b.open[:len(b.open)-1] }()
	q := b.query(v.def.Query, nil)
	if q == nil || !b.checkNames(v.def.Columns, len(q.outputs), "the query of view "+v.name) {
		return nil
	}
	return b.renamed(q, v.def.Columns)
}

// readView gives the rows of a view. What is wrong with one of the catalog is said at
// the place where it is named.
func (b *binder) readView(v *view, at sql.Ident) relation {
	if v.wrong {
		return nil
	}
	q := v.first
	v.first = nil
	if q != nil {
		return b.finishView(v, q)
	}
	if !v.fromCatalog {
		return b.finishView(v, b.bindView(v, at))
	}
	outer := b.found
	b.found = &problems{src: v.src}
	rel := b.finishView(v, b.bindView(v, at))
	inner := b.found.list
	b.found = outer
	if len(inner) > 0 {
		p := inner[0]
		b.found.add(at, p.Code, p.Hint, "view %s of the catalog cannot be used: %s", v.name, p.Message)
		return nil
	}
	return rel
}

func (b *binder) finishView(v *view, q *bound) relation {
	if q == nil {
		v.wrong = true
		return nil
	}
	rel := b.finish(q)
	if rel == nil {
		v.wrong = true
		return nil
	}
	if v.columns == nil {
		v.columns = planColumns(rel.columns())
		b.names.views = append(b.names.views, v)
	}
	return rel
}
