package planner

import (
	"strconv"
	"strings"

	"weir/planner/sql"
)

// name gives every output a name of its own: its alias; else the column's name; else
// the function's; else _c and its position. Names that were not written give way.
func (b *binder) name(q *bound) {
	n, items, rows := &naming{b: b, q: q, taken: map[string]int{}, tried: map[string]int{}}, q.items, q.rows
	q.items = nil // done
	for i, it := range items {
		if it.alias != nil {
			n.claim(i, it.alias.Name, it.alias)
		}
	}
	for i, it := range items {
		ref, ok := it.node.(*sql.ColumnRef)
		if it.alias != nil || !ok {
			continue
		}
		name := ref.Name.Name
		if at := rows.lookup(name); at >= 0 {
			name = rows.fields[at].name
		}
		if old, clash := n.taken[folded(name)]; clash && items[old].alias == nil {
			n.yield(i, name)
			b.warn("column " + strconv.Itoa(i+1) + " of the result is named " + q.outputs[i].name + ": " + name + " stands there twice")
			continue
		}
		n.claim(i, name, ref)
	}
	for i, it := range items {
		if q.outputs[i].name != "" {
			continue
		}
		name := "_c" + strconv.Itoa(i+1)
		if c, ok := it.node.(*sql.Call); ok {
			name = strings.ToLower(c.Name.Name)
		}
		n.yield(i, name)
	}
}

// A naming is the names of a query's outputs while they are given.
type naming struct {
	b     *binder
	q     *bound
	taken map[string]int // folded name → output
	tried map[string]int // folded name → the last number behind it
}

// claim gives output i a name that was written; no other may have it.
func (n *naming) claim(i int, name string, at sql.Node) {
	if old, clash := n.taken[folded(name)]; clash {
		n.b.found.add(at, CodeName, "name one of them otherwise with AS", "two columns of the result are named %s%s",
			n.q.outputs[old].name, sameButForCase(n.q.outputs[old].name, name))
		return
	}
	n.taken[folded(name)] = i
	n.q.outputs[i].name = name
}

// yield gives output i the name, or that with a number where it is taken.
func (n *naming) yield(i int, name string) {
	free := name
	for {
		if _, clash := n.taken[folded(free)]; !clash {
			break
		}
		n.tried[folded(name)]++
		free = name + "_" + strconv.Itoa(n.tried[folded(name)])
	}
	n.taken[folded(free)] = i
	n.q.outputs[i].name = free
}
