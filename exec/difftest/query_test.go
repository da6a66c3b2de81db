package difftest

import (
	"fmt"
	"strconv"
	"strings"
)

// A query is a SELECT in both spellings with the columns of its answer.
type query struct {
	w, p    string
	outputs []term
}

// over makes a generator of expressions over a table's columns.
func (g *gen) over(t *table, qualifier string) {
	g.columns, g.tame = nil, map[string]bool{}
	for _, c := range t.columns {
		col := term{k: c.kind}
		col.both(qualifier + c.name)
		g.columns = append(g.columns, col.scaled(c.kind))
		g.tame[c.name] = c.tame
	}
}

// named gives the select list with the names o0, o1, …
func named(items []term) (w, p string) {
	var ws, ps []string
	for i, t := range items {
		ws = append(ws, fmt.Sprintf("%s AS o%d", t.w, i))
		ps = append(ps, fmt.Sprintf("%s AS o%d", t.p, i))
	}
	return strings.Join(ws, ", "), strings.Join(ps, ", ")
}

// outputs gives the columns o0, o1, … as an outer query reads them.
func outputs(items []term) []term {
	out := make([]term, len(items))
	for i, t := range items {
		out[i] = term{k: t.k, scale: t.scale, loose: t.loose}
		out[i].both(fmt.Sprintf("o%d", i))
	}
	return out
}

// query makes a query over the table.
func (g *gen) query(t *table, depth int) query {
	g.over(t, "")
	switch n := g.IntN(20); {
	case n < 4:
		return g.rows(t.name, t.name)
	case n < 6:
		return g.distinct(t.name, t.name)
	case n < 12:
		return g.grouped(t.name, t.name)
	case n == 12:
		return g.sets(t.name, t.name)
	case n == 13:
		return g.values()
	case n < 16 && depth > 0:
		return g.union(t, depth)
	case n == 16 && depth > 0:
		return g.with(t, depth)
	case depth > 0:
		return g.nested(t, depth)
	}
	return g.grouped(t.name, t.name)
}

// nested reads a query's answer, which changes where that one groups.
func (g *gen) nested(t *table, depth int) query {
	g.risky = false // what nothing above reads may fail in one system and not in the other
	inner := g.query(t, depth-1)
	g.columns = outputs(inner.outputs)
	from := [2]string{"(" + inner.w + ") AS x", "(" + inner.p + ") AS x"}
	if g.chance(3) {
		return g.rows(from[0], from[1])
	}
	return g.grouped(from[0], from[1])
}

func (g *gen) with(t *table, depth int) query {
	g.risky = false // what nothing above reads may fail in one system and not in the other
	inner := g.query(t, depth-1)
	g.columns = outputs(inner.outputs)
	q := g.grouped("x", "x")
	q.w, q.p = "WITH x AS ("+inner.w+") "+q.w, "WITH x AS ("+inner.p+") "+q.p
	return q
}

func (g *gen) where() (w, p string) {
	if g.chance(2) {
		return "", ""
	}
	risky := g.risky
	g.risky = false
	c := g.expr(boolean, 2)
	g.risky = risky
	return " WHERE " + c.w, " WHERE " + c.p
}

func (g *gen) items(n int) []term {
	list := make([]term, n)
	for i := range list {
		k := kind(g.IntN(int(kinds)))
		if g.risky { // of these, operations fail
			k = pick(g.Rand, []kind{integer, integer, bigint, date, timestamp})
		}
		list[i] = g.expr(k, 3)
	}
	return list
}

func (g *gen) rows(fromW, fromP string) query {
	items := g.items(1 + g.IntN(4))
	w, p := g.where()
	lw, lp := named(items)
	return query{"SELECT " + lw + " FROM " + fromW + w, "SELECT " + lp + " FROM " + fromP + p, items}
}

func (g *gen) distinct(fromW, fromP string) query {
	q := g.rows(fromW, fromP)
	q.w, q.p = strings.Replace(q.w, "SELECT", "SELECT DISTINCT", 1), strings.Replace(q.p, "SELECT", "SELECT DISTINCT", 1)
	return q
}

func (g *gen) values() query {
	g.columns, g.risky = nil, false
	var rows [2][]string
	var first []term
	for i := range 1 + g.IntN(4) {
		var ws, ps []string
		for j := range 2 {
			if i == 0 {
				k := kind(g.IntN(columnKinds))
				first = append(first, k.literal(pick(g.Rand, k.tame())))
			}
			v := first[j]
			if i > 0 {
				v = g.leaf(v.k)
			}
			ws, ps = append(ws, v.w), append(ps, v.p)
		}
		rows[0] = append(rows[0], "("+strings.Join(ws, ", ")+")")
		rows[1] = append(rows[1], "("+strings.Join(ps, ", ")+")")
	}
	form := "SELECT x.a AS o0, x.c AS o1 FROM (VALUES %s) AS x (a, c)"
	return query{fmt.Sprintf(form, strings.Join(rows[0], ", ")), fmt.Sprintf(form, strings.Join(rows[1], ", ")), first}
}

func (g *gen) union(t *table, depth int) query {
	outer := depth > 1 && g.chance(2)
	g.risky = g.risky && !outer
	var kindsOf []kind
	for range 1 + g.IntN(3) {
		kindsOf = append(kindsOf, kind(g.IntN(columnKinds)))
	}
	var parts [2][]string
	var items []term
	for range 2 + g.IntN(2) {
		g.over(t, "")
		items = nil
		for _, k := range kindsOf {
			if k == decimal {
				items = append(items, g.leaf(k))
			} else {
				items = append(items, g.expr(k, 2))
			}
		}
		lw, lp := named(items)
		w, p := g.where()
		if g.chance(3) {
			w, p = w+" GROUP BY "+ordinals(len(items)), p+" GROUP BY "+ordinals(len(items))
		}
		parts[0] = append(parts[0], "SELECT "+lw+" FROM "+t.name+w)
		parts[1] = append(parts[1], "SELECT "+lp+" FROM "+t.name+p)
	}
	for i := range items {
		items[i].loose = true // of any part
	}
	q := query{strings.Join(parts[0], " UNION ALL "), strings.Join(parts[1], " UNION ALL "), items}
	if outer {
		g.columns = outputs(items)
		return g.grouped("("+q.w+") AS u", "("+q.p+") AS u")
	}
	return q
}

func ordinals(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(list, ", ")
}

// aggregate makes one aggregate call.
func (g *gen) aggregate() term {
	t := g.aggregateCall()
	if !g.chance(4) {
		return t
	}
	f := g.expr(boolean, 1)
	t.w, t.p = strings.Replace(t.w, "⟨⟩", " FILTER (WHERE "+f.w+")", 1), strings.Replace(t.p, "⟨⟩", " FILTER (WHERE "+f.p+")", 1)
	return t
}

func (g *gen) aggregateCall() term {
	ordered := []kind{integer, bigint, double, decimal, text, date, timestamp, timestamptz}
	distinct := pick(g.Rand, []string{"", "", "DISTINCT "})
	switch g.IntN(10) {
	case 0, 1:
		return same(bigint, "COUNT(*)⟨⟩")
	case 2:
		return same(bigint, "COUNT("+distinct+"{})⟨⟩", g.expr(g.comparable(), 1))
	case 3, 4:
		a := g.expr(pick(g.Rand, ordered), 1)
		t := same(a.k, pick(g.Rand, []string{"MIN", "MAX"})+"({})⟨⟩", a)
		t.scale = a.scale
		return t
	case 5:
		return same(bigint, "SUM("+distinct+"{})⟨⟩", g.leafOnly(integer))
	case 6:
		if g.chance(2) {
			t := same(decimal, "SUM("+distinct+"{})⟨⟩", g.leafOnly(bigint))
			return t
		}
		a := g.leafOnly(decimal)
		t := same(decimal, "SUM("+distinct+"{})⟨⟩", a)
		t.scale = a.scale
		return t
	case 7:
		a := g.leafOnly(double)
		if a.loose { // large values that cancel each other: compensated here, not there
			a = double.literal("1.5")
		}
		t := same(double, pick(g.Rand, []string{"SUM", "AVG"})+"("+distinct+"{})⟨⟩", a)
		t.loose = true
		return t
	case 8:
		k := pick(g.Rand, []kind{integer, bigint})
		t := form(double, "AVG("+distinct+"{})⟨⟩", "(AVG("+distinct+"{})⟨⟩)::float8", g.leafOnly(k))
		t.loose = true
		return t
	}
	return same(boolean, pick(g.Rand, []string{"BOOL_AND", "BOOL_OR"})+"({})⟨⟩", g.expr(boolean, 1))
}

// leafOnly is a column or a constant: sums of these do not overflow.
func (g *gen) leafOnly(k kind) term { return g.leaf(k) }

func plain(t term) term {
	t.w, t.p = strings.ReplaceAll(t.w, "⟨⟩", ""), strings.ReplaceAll(t.p, "⟨⟩", "")
	return t
}

// grouped makes GROUP BY by column, expression, alias or position, or none.
func (g *gen) grouped(fromW, fromP string) query {
	var keys, items []term
	for range g.IntN(4) {
		k := kind(g.IntN(columnKinds))
		if c, ok := g.column(k); ok && !g.chance(3) {
			keys = append(keys, c)
		} else {
			keys = append(keys, g.parenthesised(g.expr(k, 2)))
		}
	}
	for i, k := range keys {
		if bareConstant(k) {
			keys[i] = form(text, "('k' || '')", "('k'::text || '')") // a bare constant is a position or refused
		}
	}
	items = append(items, keys...)
	for range 1 + g.IntN(3) {
		items = append(items, plain(g.aggregate()))
	}
	lw, lp := named(items)
	w, p := g.where()
	q := query{"SELECT " + lw + " FROM " + fromW + w, "SELECT " + lp + " FROM " + fromP + p, items}
	if len(keys) > 0 {
		gw, gp := g.groupBy(keys)
		q.w, q.p = q.w+" GROUP BY "+gw, q.p+" GROUP BY "+gp
	}
	if g.chance(4) {
		q.w, q.p = q.w+" HAVING COUNT(*) > 1", q.p+" HAVING COUNT(*) > 1"
	}
	return q
}

// bareConstant reports whether a key is one constant, in parentheses or not.
func bareConstant(k term) bool {
	text := strings.Trim(k.w, "()")
	if text == "TRUE" || text == "FALSE" || strings.HasPrefix(text, "'") {
		return true
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

func (g *gen) parenthesised(t term) term {
	t.w, t.p = "("+t.w+")", "("+t.p+")"
	return t
}

func (g *gen) groupBy(keys []term) (w, p string) {
	var ws, ps []string
	for i, k := range keys {
		switch g.IntN(3) {
		case 0:
			ws, ps = append(ws, fmt.Sprint(i+1)), append(ps, fmt.Sprint(i+1))
		case 1:
			if g.named(i) {
				ws, ps = append(ws, fmt.Sprintf("o%d", i)), append(ps, fmt.Sprintf("o%d", i))
				continue
			}
			fallthrough
		default:
			ws, ps = append(ws, k.w), append(ps, k.p)
		}
	}
	return strings.Join(ws, ", "), strings.Join(ps, ", ")
}

// named reports whether o<i> can only mean the output: an input column of that name wins.
func (g *gen) named(i int) bool {
	for _, c := range g.columns {
		if c.w == fmt.Sprintf("o%d", i) {
			return false
		}
	}
	return true
}

// sets makes GROUPING SETS, ROLLUP or CUBE over columns.
func (g *gen) sets(fromW, fromP string) query {
	var keys []term
	for len(keys) < 2 {
		if c, ok := g.column(kind(g.IntN(columnKinds))); ok && (len(keys) == 0 || keys[0].w != c.w) {
			keys = append(keys, c)
		}
	}
	by := fmt.Sprintf(pick(g.Rand, []string{
		"ROLLUP (%[1]s, %[2]s)", "CUBE (%[1]s, %[2]s)", "GROUPING SETS ((%[1]s), (%[2]s), ())", "%[1]s, ROLLUP (%[2]s)", "GROUPING SETS (%[1]s, (%[1]s, %[2]s))",
	}), keys[0].w, keys[1].w)
	items := append([]term{}, keys...)
	items = append(items, same(integer, fmt.Sprintf("GROUPING(%s, %s)", keys[0].w, keys[1].w)))
	for range 1 + g.IntN(2) {
		items = append(items, plain(g.aggregate()))
	}
	lw, lp := named(items)
	w, p := g.where()
	return query{"SELECT " + lw + " FROM " + fromW + w + " GROUP BY " + by, "SELECT " + lp + " FROM " + fromP + p + " GROUP BY " + by, items}
}
