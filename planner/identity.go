package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir"
	"weir/planner/expr"
	"weir/planner/plan"
)

// Operator ids name state, so they come from what the user wrote and survive both our
// rewrites and the user's edits as far as the state's meaning does: the kind of the
// operator, the identities of the tables below it, and the normalised keys, written over
// those tables' columns however many subqueries lie between. Filters, outputs and
// aggregates are not part of it; each aggregate's state goes by its own normalised
// expression. Operators of one identity are told apart by their number. What has changed
// under a kept id shows in plan.Graph.Meanings, by which a restore is refused.

// identify gives the aggregates and targets of a bound statement their identities.
func identify(s *statement) {
	in := &identifier{known: map[relation]*normal{}}
	for i := range s.targets {
		t := &s.targets[i]
		n := in.of(t.rel)
		if t.sink != nil {
			t.identity = originOf(t.rel) + "\x00" + strings.ToLower(t.sink.Name) + " " + t.sink.Connector
			continue
		}
		t.identity = n.from + "\x00" + n.texts(columnsOf(t.rel.columns()))
		if a := lastAggregate(t.rel); a != nil {
			t.identity = a.identity
		}
	}
}

// lastAggregate finds the aggregate whose rows a relation's are, filtered and projected.
func lastAggregate(r relation) *aggregate {
	switch r := r.(type) {
	case *aggregate:
		return r
	case *filter:
		return lastAggregate(r.input)
	case *project:
		return lastAggregate(r.input)
	}
	return nil
}

// An identifier normalises relations.
type identifier struct{ known map[relation]*normal }

// A normal is a relation without its filters and projections: its columns as expressions
// over the columns of what lies below them.
type normal struct {
	from  string // the identity of what lies below
	names []string
	exprs []*expr.Expr
}

// texts writes expressions over a relation's columns over those below it.
func (n *normal) texts(list []*expr.Expr) string {
	texts := make([]string, len(list))
	for i, e := range list {
		e = substitute(e, n.exprs)
		texts[i] = e.SQL(n.names) + " " + e.Type.String()
	}
	return strings.Join(texts, ", ")
}

func (in *identifier) of(r relation) *normal {
	if n := in.known[r]; n != nil {
		return n
	}
	var n *normal
	switch r := r.(type) {
	case *scan:
		n = &normal{from: tableIdentity(r.table), names: columnNamesOf(r.cols)}
	case *values:
		n = &normal{from: "values", names: columnNamesOf(r.cols)}
	case *filter:
		n = in.of(r.input)
	case *project:
		n = in.project(r)
	case *aggregate:
		n = in.aggregate(r)
	case *union:
		n = in.union(r)
	}
	if n.exprs == nil { // they lie below others as they are
		n.exprs = columnsOf(r.columns())
	}
	in.known[r] = n
	return n
}

// project writes the columns over what lies below; one that grew long there, over many
// subqueries, is named by its hash.
func (in *identifier) project(p *project) *normal {
	const longest = 1000
	below := in.of(p.input)
	n := &normal{from: below.from, names: below.names, exprs: make([]*expr.Expr, len(p.exprs))}
	for i, e := range p.exprs {
		n.exprs[i] = substitute(e, below.exprs)
		if sizeOf(n.exprs[i], longest) < longest {
			continue
		}
		texts := make([]string, len(below.exprs))
		for k, b := range below.exprs {
			texts[k] = hashOf(b.SQL(below.names))
		}
		n.exprs[i] = &expr.Expr{Op: expr.OpColumn, Type: e.Type, Column: len(n.names)}
		n.names = append(n.names[:len(n.names):len(n.names)], hashOf(e.SQL(texts)))
	}
	return n
}

func (in *identifier) aggregate(a *aggregate) *normal {
	below := in.of(a.input)
	a.identity = below.from + "\x00" + below.texts(a.keys)
	if a.sets != nil {
		a.identity += fmt.Sprint(" sets ", a.sets)
	}
	n := &normal{from: a.identity}
	for _, k := range a.keys {
		n.names = append(n.names, substitute(k, below.exprs).SQL(below.names))
	}
	if a.sets != nil {
		n.names = append(n.names, "grouping set")
	}
	for _, c := range a.aggs {
		n.names = append(n.names, c.text)
	}
	return n
}

func (in *identifier) union(u *union) *normal {
	from := make([]string, len(u.from))
	n := &normal{names: make([]string, len(u.cols))}
	for i, r := range u.from {
		below := in.of(r)
		from[i] = below.from
		for c, e := range below.exprs {
			if text := e.SQL(below.names); i == 0 {
				n.names[c] = text
			} else if text != n.names[c] {
				n.names[c] += " | " + text
			}
		}
	}
	n.from = "(" + strings.Join(from, " + ") + ")"
	return n
}

func tableIdentity(t *table) string { return strings.ToLower(t.Name) + " " + t.Connector }

// originOf names the sources below a relation, each once.
func originOf(rel relation) string {
	var list []string
	for _, r := range inputsFirst(rel) {
		own := ""
		switch r := r.(type) {
		case *scan:
			own = tableIdentity(r.table)
		case *values:
			own = "values"
		}
		if own != "" && !slices.Contains(list, own) {
			list = append(list, own)
		}
	}
	return strings.Join(list, " + ")
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// A namer hands out the ids of one graph.
type namer map[weir.OperatorID]int

// id gives "kind_hash", or "kind_hash_2" for the second operator of one identity.
func (n namer) id(kind plan.OperatorKind, identity string) weir.OperatorID {
	id := weir.OperatorID(string(kind) + "_" + hashOf(string(kind)+"\x00"+identity))
	n[id]++
	if count := n[id]; count > 1 {
		id += weir.OperatorID("_" + strconv.Itoa(count))
	}
	return id
}
