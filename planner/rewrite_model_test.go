package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/planner/expr"
	"weir/planner/plan"
)

// TestRewritesKeepAnswers: over random trees and rows, a statement with any choice of
// rewrites gives what it gives without all of them, errors too; where the tree as bound
// gives an answer it is the same one; and every choice lowers to a valid graph of the
// same states.
func TestRewritesKeepAnswers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := &treeMaker{t: t}
		bound := &statement{targets: []target{{rel: g.relation(4)}}, settings: Settings{}}
		if rapid.IntRange(0, 3).Draw(t, "targets") == 0 {
			bound.targets[0].sink = sinkOf(bound.targets[0].rel.columns())
			rel := g.relation(2)
			bound.targets = append(bound.targets, target{rel: rel, sink: sinkOf(rel.columns())})
		}
		identify(bound)
		data := modelRows(t)
		all := Rewrites{NoFold: true, NoMerge: true, NoPushDown: true, NoReadColumns: true, NoFilterBelow: true, NoSplit: true}
		eager, plain := answers(bound, data), answers(must(rewrite(bound, all)), data)
		if eager != failed && plain != eager {
			t.Fatalf("bound:\n%s\nas bound:\n%s\nwithout rewrites:\n%s", explainTree(bound), eager, plain)
		}
		for range 4 {
			some := Rewrites{
				NoFold: rapid.Bool().Draw(t, "fold"), NoMerge: rapid.Bool().Draw(t, "merge"), NoPushDown: rapid.Bool().Draw(t, "push"),
				NoReadColumns: rapid.Bool().Draw(t, "read"), NoFilterBelow: rapid.Bool().Draw(t, "below"), NoSplit: rapid.Bool().Draw(t, "split"),
			}
			rewritten := must(rewrite(bound, some))
			if got := answers(rewritten, data); got != plain {
				t.Fatalf("%+v\nbound:\n%srewritten:\n%s\ngives:\n%s\nand not:\n%s", some, explainTree(bound), explainTree(rewritten), got, plain)
			}
			graph, _ := lower(rewritten, 16)
			if err := graph.Validate(); err != nil {
				t.Fatalf("%v\n%s\n%s", err, explainTree(rewritten), Explain(graph))
			}
		}
	})
}

func must(s *statement, _ []string) *statement { return s }

func sinkOf(cols []column) *table {
	return &table{Table: plan.Table{Name: "out", Connector: "filesystem", Columns: planColumns(cols)}}
}

// A treeMaker draws trees over the tables t and u.
type treeMaker struct {
	t    *rapid.T
	made []relation // some are used again
}

func (g *treeMaker) draw(n int, what string) int { return rapid.IntRange(0, n-1).Draw(g.t, what) }

func (g *treeMaker) relation(depth int) relation {
	if len(g.made) > 0 && g.draw(6, "again") == 0 {
		return g.made[g.draw(len(g.made), "which")]
	}
	var r relation
	kind := g.draw(6, "kind")
	switch {
	case depth == 0 || kind == 0:
		r = g.leaf()
	case kind == 1:
		in := g.relation(depth - 1)
		r = &filter{input: in, predicate: g.boolean(in.columns(), 3)}
	case kind == 2 || kind == 3:
		r = g.project(g.relation(depth - 1))
	case kind == 4:
		r = g.aggregate(g.relation(depth - 1))
	default:
		r = g.union(depth)
	}
	g.made = append(g.made, r)
	return r
}

func (g *treeMaker) leaf() relation {
	if g.draw(8, "values") == 0 {
		return &values{cols: []column{{"column1", integer(), false}}, rows: [][]*expr.Expr{{g.integer(nil, 2)}, {intLiteral(1, integer())}}}
	}
	name := []string{"t", "u"}[g.draw(2, "table")]
	cols := []plan.Column{{Name: "a", Type: integer()}, {Name: "b", Type: integer()}, {Name: "c", Type: integer()}}
	t := &table{Table: plan.Table{Name: name, Connector: "filesystem", Columns: cols}, bounded: true}
	return newScan(t, []int{0, 1, 2})
}

func (g *treeMaker) project(in relation) relation {
	p := &project{input: in}
	for i := range 1 + g.draw(3, "columns") {
		p.exprs = append(p.exprs, g.integer(in.columns(), 2))
		p.cols = append(p.cols, column{fmt.Sprint("p", i), integer(), false})
	}
	return p
}

func (g *treeMaker) aggregate(in relation) relation {
	a := &aggregate{input: in}
	for i := range g.draw(3, "keys") {
		a.keys = append(a.keys, g.integer(in.columns(), 1))
		a.cols = append(a.cols, column{fmt.Sprint("k", i), integer(), false})
	}
	if g.draw(3, "sets") == 0 {
		for range 1 + g.draw(3, "number of sets") {
			set := []int{}
			for i := range a.keys {
				if g.draw(2, "in set") == 0 {
					set = append(set, i)
				}
			}
			a.sets = append(a.sets, set)
		}
		a.cols = append(a.cols, column{"set", integer(), true})
	}
	for i := range g.draw(3, "aggregates") {
		c := call{fn: []expr.AggFunc{expr.CountStar, expr.Count, expr.Min, expr.Sum}[g.draw(4, "function")], typ: integer(), text: fmt.Sprint("agg", i)}
		if c.fn != expr.CountStar {
			c.arg = g.integer(in.columns(), 2)
			c.distinct = g.draw(4, "distinct") == 0
		}
		a.aggs = append(a.aggs, c)
		a.cols = append(a.cols, column{c.text, integer(), false})
	}
	return a
}

func (g *treeMaker) union(depth int) relation {
	u := &union{cols: []column{{"x", integer(), false}, {"y", integer(), false}}}
	for range 2 {
		in := g.relation(depth - 1)
		u.from = append(u.from, &project{input: in, cols: u.cols, exprs: []*expr.Expr{g.integer(in.columns(), 2), g.integer(in.columns(), 1)}})
	}
	return u
}

func integer() expr.Type { return expr.Type{Kind: expr.Int} }

func (g *treeMaker) integer(cols []column, depth int) *expr.Expr {
	if depth == 0 || g.draw(3, "simple") == 0 {
		if len(cols) > 0 && g.draw(4, "literal") > 0 {
			return columnExpr(g.draw(len(cols), "column"), integer())
		}
		return intLiteral(int64(g.draw(3, "number")), integer())
	}
	node := func(op expr.Op, args ...*expr.Expr) *expr.Expr {
		return &expr.Expr{Op: op, Type: integer(), Args: args}
	}
	sub := func() *expr.Expr { return g.integer(cols, depth-1) }
	switch g.draw(4, "operation") {
	case 0:
		return node(expr.OpDiv, sub(), sub())
	case 1:
		return node(expr.OpCoalesce, sub(), sub())
	case 2:
		return node(expr.OpCase, g.boolean(cols, depth-1), sub(), sub())
	}
	return node(expr.OpMod, sub(), sub())
}

func (g *treeMaker) boolean(cols []column, depth int) *expr.Expr {
	node := func(op expr.Op, args ...*expr.Expr) *expr.Expr {
		return &expr.Expr{Op: op, Type: expr.Type{Kind: expr.Boolean}, Args: args}
	}
	if depth > 1 && g.draw(2, "logic") == 0 {
		return node([]expr.Op{expr.OpAnd, expr.OpAnd, expr.OpOr}[g.draw(3, "and, or")], g.boolean(cols, depth-1), g.boolean(cols, depth-1))
	}
	if g.draw(4, "is null") == 0 {
		return node(expr.OpIsNull, g.integer(cols, depth))
	}
	return node([]expr.Op{expr.OpEq, expr.OpLt, expr.OpNe}[g.draw(3, "comparison")], g.integer(cols, depth), g.integer(cols, depth))
}

// A cell is a number, a truth (0, 1) or NULL (nil).
type cell *int64

func number64(n int64) cell { return &n }

func truth(b bool) cell { return number64(int64(boolOrder(b))) }

func modelRows(t *rapid.T) map[string][][]cell {
	data := map[string][][]cell{}
	for _, name := range []string{"t", "u"} {
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			row := make([]cell, 3)
			for i := range row {
				if n := rapid.IntRange(-1, 3).Draw(t, "cell"); n >= 0 {
					row[i] = number64(int64(n))
				}
			}
			data[name] = append(data[name], row)
		}
	}
	return data
}

const failed = "a row error"

// answers gives the rows of all targets, sorted, or that there was a row error.
func answers(s *statement, data map[string][][]cell) string {
	var b strings.Builder
	for _, t := range s.targets {
		rows, err := modelRelation(t.rel, data)
		if err != nil {
			return failed
		}
		lines := make([]string, len(rows))
		for i, row := range rows {
			lines[i] = rowText(row)
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, "\n") + "\n--\n")
	}
	return b.String()
}

func rowText(row []cell) string {
	list := make([]string, len(row))
	for i, c := range row {
		if list[i] = "NULL"; c != nil {
			list[i] = fmt.Sprint(*c)
		}
	}
	return strings.Join(list, " ")
}

func modelRelation(r relation, data map[string][][]cell) (out [][]cell, err error) {
	var in [][]cell
	for _, from := range r.inputs() {
		rows, err := modelRelation(from, data)
		if err != nil {
			return nil, err
		}
		in = append(in, rows...)
	}
	switch r := r.(type) {
	case *scan:
		for _, row := range data[r.table.Name] {
			out = append(out, picked(row, r.read))
		}
	case *values:
		for _, row := range r.rows {
			made, err := modelExprs(row, nil)
			if err != nil {
				return nil, err
			}
			out = append(out, made)
		}
	case *filter:
		for _, row := range in {
			keep, err := model(r.predicate, row)
			if err != nil {
				return nil, err
			}
			if keep != nil && *keep == 1 {
				out = append(out, row)
			}
		}
	case *project:
		for _, row := range in {
			made, err := modelExprs(r.exprs, row)
			if err != nil {
				return nil, err
			}
			out = append(out, made)
		}
	case *aggregate:
		return modelGroups(r, in)
	case *union:
		out = in
	}
	return out, nil
}

func modelGroups(a *aggregate, in [][]cell) ([][]cell, error) {
	sets := a.sets
	if sets == nil {
		sets = [][]int{upTo(len(a.keys))}
	}
	var keys [][]cell
	args := map[string][][]cell{} // of a group: per row, the arguments
	add := func(key []cell) string {
		if _, ok := args[rowText(key)]; !ok {
			keys, args[rowText(key)] = append(keys, key), nil
		}
		return rowText(key)
	}
	keyOf := func(all []cell, set int) []cell {
		key := make([]cell, a.keyColumns())
		for _, k := range sets[set] {
			if key[k] = nil; all != nil {
				key[k] = all[k]
			}
		}
		if a.sets != nil {
			key[len(a.keys)] = number64(int64(set))
		}
		return key
	}
	for i, set := range sets {
		if len(set) == 0 {
			add(keyOf(nil, i))
		}
	}
	for _, row := range in {
		all, err := modelExprs(a.computed(), row)
		if err != nil {
			return nil, err
		}
		for i := range sets {
			text := add(keyOf(all, i))
			args[text] = append(args[text], all[len(a.keys):])
		}
	}
	var out [][]cell
	for _, key := range keys {
		at := 0
		row := slices.Clone(key)
		for _, c := range a.aggs {
			row = append(row, modelCall(c, args[rowText(key)], at))
			if c.arg != nil {
				at++
			}
		}
		out = append(out, row)
	}
	return out, nil
}

func modelCall(c call, rows [][]cell, arg int) cell {
	if c.arg == nil {
		return number64(int64(len(rows)))
	}
	var list []int64
	for _, row := range rows {
		if x := row[arg]; x != nil && (!c.distinct || !slices.Contains(list, *x)) {
			list = append(list, *x)
		}
	}
	switch {
	case c.fn == expr.Count:
		return number64(int64(len(list)))
	case len(list) == 0:
		return nil
	case c.fn == expr.Min:
		return number64(slices.Min(list))
	}
	sum := int64(0)
	for _, x := range list {
		sum += x
	}
	return number64(sum)
}

func modelExprs(list []*expr.Expr, row []cell) ([]cell, error) {
	out := make([]cell, len(list))
	for i, e := range list {
		c, err := model(e, row)
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}

// model computes an expression for a row.
func model(e *expr.Expr, row []cell) (cell, error) {
	switch e.Op {
	case expr.OpColumn:
		return row[e.Column], nil
	case expr.OpLiteral:
		switch {
		case e.Literal == nil:
			return nil, nil
		case e.Type.Kind == expr.Boolean:
			return truth(e.Literal.Bool), nil
		}
		return number64(e.Literal.Int), nil
	}
	x, err := model(e.Args[0], row)
	if err != nil {
		return nil, err
	}
	switch e.Op {
	case expr.OpCoalesce:
		if x != nil {
			return x, nil
		}
		return model(e.Args[1], row)
	case expr.OpCase:
		if x != nil && *x == 1 {
			return model(e.Args[1], row)
		}
		return model(e.Args[2], row)
	case expr.OpIsNull:
		return truth(x == nil), nil
	case expr.OpAnd, expr.OpOr:
		decides := int64(boolOrder(e.Op == expr.OpOr))
		if x != nil && *x == decides {
			return x, nil
		}
		y, err := model(e.Args[1], row)
		if err != nil || y != nil && *y == decides || x != nil {
			return y, err
		}
		return nil, nil
	}
	y, err := model(e.Args[1], row)
	if err != nil || x == nil || y == nil {
		return nil, err
	}
	return modelBinary(e.Op, *x, *y)
}

func modelBinary(op expr.Op, x, y int64) (cell, error) {
	switch op {
	case expr.OpEq:
		return truth(x == y), nil
	case expr.OpNe:
		return truth(x != y), nil
	case expr.OpLt:
		return truth(x < y), nil
	}
	if y == 0 {
		return nil, errors.New(failed)
	}
	if op == expr.OpDiv {
		return number64(x / y), nil
	}
	return number64(x % y), nil
}
