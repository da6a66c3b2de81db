package planner

import (
	"strconv"
	"strings"

	"weir/planner/sql"
)

// name gives every output a name of its own: its alias; else the column's name; else
// the function's; else _c and its position. Names that were not written give way.
func (b *binding) name(q *query, items []item) {
	taken := map[string]int{} // folded name → output
	for i, it := range items {
		if it.alias != nil {
			b.claim(q, taken, i, it.alias.Name, it.alias)
		}
	}
	for i, it := range items {
		ref, ok := it.node.(*sql.ColumnRef)
		if it.alias != nil || !ok {
			continue
		}
		name := q.source.Columns[q.source.column(ref.Name.Name)].Name
		if old, clash := taken[folded(name)]; clash && items[old].alias == nil {
			b.yield(q, taken, i, name)
			b.warn("column " + strconv.Itoa(i+1) + " of the result is named " + q.outputs[i].name + ": " + name + " stands there twice")
			continue
		}
		b.claim(q, taken, i, name, ref)
	}
	for i, it := range items {
		if q.outputs[i].name != "" {
			continue
		}
		name := "_c" + strconv.Itoa(i+1)
		if c, ok := it.node.(*sql.Call); ok {
			name = strings.ToLower(c.Name.Name)
		}
		b.yield(q, taken, i, name)
	}
}

// claim gives output i a name that was written; no other may have it.
func (b *binding) claim(q *query, taken map[string]int, i int, name string, at sql.Node) {
	if old, clash := taken[folded(name)]; clash {
		b.found.add(at, CodeName, "name one of them otherwise with AS", "two columns of the result are named %s%s",
			q.outputs[old].name, sameButForCase(q.outputs[old].name, name))
		return
	}
	taken[folded(name)] = i
	q.outputs[i].name = name
}

// yield gives output i the name, or that with a number where it is taken.
func (b *binding) yield(q *query, taken map[string]int, i int, name string) {
	free := name
	for n := 1; ; n++ {
		if _, clash := taken[folded(free)]; !clash {
			break
		}
		free = name + "_" + strconv.Itoa(n)
	}
	taken[folded(free)] = i
	q.outputs[i].name = free
}
