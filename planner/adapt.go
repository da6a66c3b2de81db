package planner

import (
	"weir/planner/sql"
)

// statement gives the tree of a one-level query.
func (q *query) statement(at sql.Node) *statement {
	var rel relation = &scan{table: q.source, read: allColumns(q.source)}
	if q.where != nil {
		rel = &filter{input: rel, predicate: q.where}
	}
	if q.grouped {
		rel = q.aggregate(rel)
	}
	p := &project{input: rel}
	for _, o := range q.outputs {
		p.exprs = append(p.exprs, o.e)
		p.cols = append(p.cols, column{o.name, o.e.Type, o.notNull})
	}
	return &statement{targets: []target{{rel: p, sink: q.sink, at: at}}}
}

func (q *query) aggregate(input relation) relation {
	a := &aggregate{input: input, keys: q.keys, aggs: q.aggs}
	for i, k := range q.keys {
		a.cols = append(a.cols, column{k.SQL(q.source.columnNames()), k.Type, q.outputColumnNotNull(i)})
	}
	for i, c := range q.aggs {
		a.cols = append(a.cols, column{c.text, c.typ, q.outputColumnNotNull(len(q.keys) + i)})
	}
	return a
}
