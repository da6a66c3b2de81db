package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"weir"
)

// OfGroups is the meaning of a result whose rows are the groups of the aggregate in front of
// it: it keeps nothing itself, so what it shows is told by that aggregate's meaning alone.
const OfGroups = "groups"

// Meanings says of each operator with keyed state what the state is computed from: a
// hash over the tables' columns and all that is done to them before. Operators of one id
// and another meaning keep values that are not each other's. Names that a query gives do
// not count, nor do the options of tables.
func (g *Graph) Meanings() map[weir.OperatorID]string {
	m := meanings{known: map[weir.OperatorID]string{}}
	out := make([]derived, len(g.Chains))
	for i, c := range g.Chains {
		out[i] = m.chain(c, inputsOf(g, i, out))
	}
	return m.known
}

// A derived is what a relation is made of.
type derived struct {
	text    string
	columns []string
}

type meanings struct{ known map[weir.OperatorID]string }

// inputsOf puts the inputs of a chain together; they are of lower chains.
func inputsOf(g *Graph, chain int, out []derived) derived {
	var in derived
	first := true
	for _, e := range g.Edges {
		if e.To != chain || e.Rejects || e.From < 0 || e.From >= len(out) {
			continue
		}
		from := out[e.From]
		if first {
			in, first = derived{from.text, append([]string(nil), from.columns...)}, false
			continue
		}
		in.text += " + " + from.text
		for i := range in.columns {
			in.columns[i] = short(in.columns[i] + " | " + column(from.columns, i))
		}
	}
	return in
}

func (m meanings) chain(c Chain, d derived) derived {
	for _, op := range c.Operators {
		d = m.operator(op, d)
		d.text = short(d.text)
		for len(d.columns) < len(op.Schema) { // of a plan that does not say what its source reads
			d.columns = append(d.columns, "*")
		}
	}
	return d
}

// operator derives the output of one operator from its input.
func (m meanings) operator(op Operator, d derived) derived {
	switch {
	case op.Source != nil:
		t := op.Source.Table
		d = derived{text: strings.ToLower(t.Name) + " " + t.Connector}
		for _, i := range op.Source.Read {
			d.columns = append(d.columns, strings.ToLower(t.Columns[i].Name)+" "+t.Columns[i].Type.String())
		}
	case op.Filter != nil:
		d.text += " where " + op.Filter.Predicate.SQL(d.columns)
	case op.Project != nil:
		columns := make([]string, len(op.Project.Exprs))
		for i, e := range op.Project.Exprs {
			columns[i] = short(e.SQL(d.columns) + " " + e.Type.String())
		}
		d.columns = columns
	case op.Expand != nil:
		d.text += fmt.Sprint(" sets ", op.Expand.Sets, named(d.columns, op.Expand.Keys))
		d.columns = append(append([]string(nil), d.columns...), "set")
	case op.Aggregate != nil:
		d = m.aggregate(op, d)
	case op.Result != nil && op.Result.Groups:
		m.known[op.ID] = OfGroups
	case op.Result != nil:
		m.known[op.ID] = hash(fmt.Sprint(d.text, op.Result.Multiset, op.Result.Keys, op.Result.Show, d.columns))
	}
	return d
}

func (m meanings) aggregate(op Operator, d derived) derived {
	a := op.Aggregate
	keys := named(d.columns, a.Keys)
	var texts []string
	for _, f := range a.Aggregates {
		arg := "partial"
		if op.Kind == LocalAggregate || a.Raw || a.Changing {
			arg = column(d.columns, f.Arg)
		}
		texts = append(texts, fmt.Sprint(f.Func, f.Distinct, " ", arg, " ", f.Type.String()))
	}
	own := fmt.Sprint(d.text, " by ", keys, ": ", texts, a.Raw, a.Changing)
	if op.Kind == GlobalAggregate {
		m.known[op.ID] = hash(own)
	}
	out := derived{text: short(own), columns: keys}
	for i := len(keys); i < len(op.Schema); i++ {
		out.columns = append(out.columns, fmt.Sprint("aggregate ", i-len(keys)))
	}
	return out
}

// named gives the texts of columns; of one that is none, too.
func named(columns []string, list []int) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = column(columns, c)
	}
	return names
}

func column(columns []string, i int) string {
	if i < 0 || i >= len(columns) {
		return "*"
	}
	return columns[i]
}

// short keeps texts from growing with every subquery around them.
func short(text string) string {
	const longest = 200
	if len(text) > longest {
		return hash(text)
	}
	return text
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
