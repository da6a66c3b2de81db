package planner

import (
	"slices"
	"strconv"
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// maxSets bounds the grouping sets of a query: each row is counted once for each.
const maxSets = 64

// groupBy binds the elements of GROUP BY; the sets of several elements multiply, as in
// PostgreSQL: a, ROLLUP (b, c) is GROUPING SETS ((a, b, c), (a, b), (a)).
func (b *binder) groupBy(list []sql.Expr, items []item, out *scope) {
	rows := *out.groups.rows
	rows.clause = "GROUP BY"
	g := &grouper{b: b, items: items, rows: &rows, groups: out.groups}
	sets := [][]int{{}}
	for _, e := range list {
		sets = g.times(e, sets, g.element(e))
	}
	if len(sets) > 1 {
		out.groups.sets = sets
	}
}

// A grouper binds one GROUP BY.
type grouper struct {
	b      *binder
	items  []item
	rows   *scope
	groups *grouping
	full   bool // there are too many sets, and that has been said
}

// element gives the sets of one element; the sets name keys by their index.
func (g *grouper) element(e sql.Expr) [][]int {
	switch e := e.(type) {
	case *sql.GroupingSets:
		return g.sets(e)
	case *sql.Row:
		return [][]int{g.row(e)}
	}
	return [][]int{g.row(&sql.Row{List: []sql.Expr{e}})}
}

// row gives the keys of (a, b, …), each once.
func (g *grouper) row(r *sql.Row) []int {
	set := []int{}
	for _, e := range r.List {
		if i := g.key(e); i >= 0 && !slices.Contains(set, i) {
			set = append(set, i)
		}
	}
	return set
}

func (g *grouper) sets(e *sql.GroupingSets) [][]int {
	var parts [][][]int
	for _, x := range e.List {
		if inner, ok := x.(*sql.GroupingSets); ok && e.Kind != "GROUPING SETS" {
			g.b.found.add(inner, CodeQuery, "put both into GROUPING SETS (…)", "%s cannot stand within %s", inner.Kind, e.Kind)
			g.groups.wrong = true
			continue
		}
		parts = append(parts, g.element(x))
	}
	var sets [][]int
	switch e.Kind {
	case "ROLLUP":
		for n := len(parts); n >= 0; n-- {
			sets = append(sets, join(parts[:n]))
		}
	case "CUBE":
		if len(parts) > 6 { // 2^6 is maxSets
			g.tooMany(e)
			return [][]int{{}}
		}
		for mask := 1<<len(parts) - 1; mask >= 0; mask-- {
			var chosen [][][]int
			for i, p := range parts {
				if mask&(1<<(len(parts)-1-i)) != 0 {
					chosen = append(chosen, p)
				}
			}
			sets = append(sets, join(chosen))
		}
	default:
		sets = slices.Concat(parts...)
	}
	if len(sets) > maxSets {
		g.tooMany(e)
		return [][]int{{}}
	}
	return sets
}

// join makes one set of several elements of one set each, as those of ROLLUP and CUBE are.
func join(parts [][][]int) []int {
	set := []int{}
	for _, p := range parts {
		set = merge(set, p[0])
	}
	return set
}

func merge(a, b []int) []int {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// times gives every set of a with every one of b.
func (g *grouper) times(at sql.Node, a, b [][]int) [][]int {
	if len(a)*len(b) > maxSets {
		g.tooMany(at)
		return a
	}
	var sets [][]int
	for _, x := range a {
		for _, y := range b {
			sets = append(sets, merge(x, y))
		}
	}
	return sets
}

func (g *grouper) tooMany(at sql.Node) {
	if g.full = true; !g.groups.wrong {
		g.b.found.add(at, CodeQuery, "list the ones you need with GROUPING SETS, or submit several jobs", "GROUP BY makes more than %d grouping sets", maxSets)
	}
	g.groups.wrong = true
}

// key binds one expression of GROUP BY and gives its index among the keys, or -1.
func (g *grouper) key(e sql.Expr) int {
	node := g.node(e)
	if node == nil {
		g.groups.wrong = true
		return -1
	}
	if i := g.groups.key(g.rows, node); i >= 0 {
		return i
	}
	if hasAggregate(node) {
		g.b.found.add(e, CodeQuery, "group by a column, and choose among the groups with HAVING", "aggregates are not allowed in GROUP BY")
		g.groups.wrong = true
		return -1
	}
	bound := g.rows.expr(node)
	if bound == nil {
		g.groups.wrong = true
		return -1
	}
	g.groups.nodes = append(g.groups.nodes, node)
	g.groups.keys = append(g.groups.keys, typed(bound))
	return len(g.groups.keys) - 1
}

// node gives the expression that an element of GROUP BY means: a name of the select list
// where no input column has it, and a position.
func (g *grouper) node(e sql.Expr) sql.Expr {
	switch n := e.(type) {
	case *sql.NumberLit, *sql.Unary:
		text, isNumber := signedNumber(n)
		if !isNumber {
			return e
		}
		at, err := strconv.Atoi(text)
		if err != nil {
			break
		}
		if at < 1 || at > len(g.items) {
			if !g.rows.wild {
				g.b.found.add(e, CodeQuery, "", "GROUP BY position %d is not in the select list, which has %s", at, columns(len(g.items)))
			}
			return nil
		}
		return g.items[at-1].node
	case *sql.ColumnRef:
		if n.Table != nil || g.rows.lookup(n.Name.Name) >= 0 {
			return e
		}
		return g.alias(n)
	case *sql.StringLit, *sql.BoolLit, *sql.NullLit:
	default:
		return e
	}
	g.b.found.add(e, CodeQuery, "GROUP BY takes columns, expressions, names of the select list and positions", "a constant cannot be grouped by")
	return nil
}

// columns words a number of columns.
func columns(n int) string {
	if n == 1 {
		return "1 column"
	}
	return strconv.Itoa(n) + " columns"
}

func signedNumber(e sql.Expr) (string, bool) {
	switch e := e.(type) {
	case *sql.NumberLit:
		return e.Text, true
	case *sql.Unary:
		if n, ok := e.X.(*sql.NumberLit); ok && e.Op == "-" {
			return "-" + n.Text, true
		}
	}
	return "", false
}

// alias finds a name of the select list; two of them that mean different expressions
// are ambiguous.
func (g *grouper) alias(ref *sql.ColumnRef) sql.Expr {
	var names []string
	for _, it := range g.items {
		if it.alias == nil {
			continue
		}
		if sameName(it.alias.Name, ref.Name.Name) {
			return it.node
		}
		names = append(names, it.alias.Name)
	}
	if g.rows.wild {
		return nil
	}
	own := g.rows.names()
	list := ""
	if len(own) > 0 {
		list = "the columns are " + strings.Join(own, ", ")
	}
	what := g.rows.from + " has no column "
	if g.rows.from == "" {
		what = "the query has no FROM and so no column "
	}
	g.b.found.add(ref, CodeName, hints(suggestion(ref.Name.Name, append(names, own...)), list), "%s%s, and the select list no such name", what, ref.Name.Name)
	return nil
}

// relation makes the aggregate of a grouping.
func (g *grouping) relation(input relation) relation {
	a := &aggregate{input: input, keys: g.keys, sets: g.sets, aggs: g.aggs}
	in := input.columns()
	never := func(e *expr.Expr) bool { return notNull(e, func(i int) bool { return in[i].notNull }) }
	names := make([]string, len(in))
	for i, c := range in {
		names[i] = c.name
	}
	grouped := len(g.keys) > 0
	for i, k := range g.keys {
		inAll := !slices.ContainsFunc(g.sets, func(set []int) bool { return !slices.Contains(set, i) })
		a.cols = append(a.cols, column{k.SQL(names), k.Type, inAll && never(k)})
	}
	if g.sets != nil {
		a.cols = append(a.cols, column{"$set", expr.Type{Kind: expr.Int}, true})
		grouped = !slices.ContainsFunc(g.sets, func(set []int) bool { return len(set) == 0 })
	}
	for _, c := range g.aggs {
		counts := c.fn == expr.CountStar || c.fn == expr.Count || c.fn == expr.ApproxCountDistinct
		a.cols = append(a.cols, column{c.text, c.typ, counts || grouped && never(c.arg)})
	}
	return a
}

// grouping binds GROUPING(a, b, …): a number whose bits, the last for the last argument,
// are 1 where the row's grouping set leaves the argument out.
func (s *scope) grouping(e *sql.Call) *expr.Expr {
	integer := expr.Type{Kind: expr.Int}
	switch {
	case s.groups == nil:
		s.found.add(e, CodeQuery, "", "GROUPING stands in the select list or HAVING of a query with GROUP BY")
		return nil
	case len(e.Args) == 0 || len(e.Args) > 31:
		s.found.add(e, CodeType, "", "GROUPING takes 1 to 31 of the expressions of GROUP BY")
		return nil
	case s.groups.wrong:
		return nil
	}
	masks := make([]int64, max(len(s.groups.sets), 1))
	for _, arg := range e.Args {
		k := s.groups.key(s, arg)
		if k < 0 {
			s.found.add(arg, CodeQuery, "write it as in GROUP BY", "GROUPING takes expressions of GROUP BY, and %s is none", label(arg))
			return nil
		}
		for i := range masks {
			masks[i] <<= 1
			if len(s.groups.sets) > 0 && !slices.Contains(s.groups.sets[i], k) {
				masks[i]++
			}
		}
	}
	last := masks[len(masks)-1]
	var args []*expr.Expr
	for i, m := range masks {
		if m != last {
			set := &expr.Expr{Op: expr.OpColumn, Type: integer, Column: len(s.groups.keys)}
			is := &expr.Expr{Op: expr.OpEq, Type: expr.Type{Kind: expr.Boolean}, Args: []*expr.Expr{set, intLiteral(int64(i), integer)}}
			args = append(args, is, intLiteral(m, integer))
		}
	}
	if args == nil {
		return intLiteral(last, integer)
	}
	return &expr.Expr{Op: expr.OpCase, Type: integer, Args: append(args, intLiteral(last, integer)), Text: label(e)}
}
