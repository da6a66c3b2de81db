package planner

import (
	"fmt"
	"slices"
	"strings"

	"weir"
	"weir/planner/expr"
	"weir/planner/plan"
)

// A StateUse says what an operator keeps between rows, and so in every checkpoint.
type StateUse struct {
	Operator weir.OperatorID
	Name     string // the operator's
	Entries  string // what there is an entry for: "each s", "each different row", "the whole input"
	// Bytes is about what an entry takes in memory; strings count as 16 bytes.
	Bytes int
	// Most is the greatest number of entries that there can be; 0: any.
	Most int
	// Endless: the entries grow with an input that does not end.
	Endless bool
}

// String words the use: "global_aggregate(s): about 56 bytes for each s; grows with …".
func (u StateUse) String() string {
	text := fmt.Sprintf("%s: about %d bytes for %s", u.Name, u.Bytes, u.Entries)
	switch {
	case u.Most == 1:
		return text
	case u.Most > 1:
		return fmt.Sprintf("%s, at most %d", text, u.Most)
	case u.Endless:
		return text + ", without bound: the input does not end"
	}
	return text + ", as many as the input has"
}

// State lists the keyed state of a graph, in the order of its operators.
func State(g *plan.Graph) []StateUse {
	list := []StateUse{}
	endless := make([]bool, len(g.Chains))
	for i, c := range g.Chains {
		input := g.Input(i)
		for _, op := range c.Operators {
			endless[i] = endless[i] || op.Kind == plan.Source && !op.Source.Bounded
			sets := setsBefore(g, i)
			switch op.Kind {
			case plan.GlobalAggregate:
				list = append(list, aggregateState(op, input, sets, endless[i])...)
			case plan.Result:
				if op.Result.Groups {
					continue // it keeps nothing
				}
				list = append(list, resultState(op, input, sets, endless[i]))
			}
			input = op.Schema
		}
		for _, e := range g.Edges {
			if e.From == i && !e.Rejects {
				endless[e.To] = endless[e.To] || endless[i]
			}
		}
	}
	return list
}

// setsBefore is the largest number of grouping sets of a chain and those that lead to it.
func setsBefore(g *plan.Graph, chain int) int {
	most := 1
	for i := range chain + 1 {
		for _, op := range g.Chains[i].Operators {
			if op.Kind == plan.Expand {
				most = max(most, len(op.Expand.Sets))
			}
		}
	}
	return most
}

func aggregateState(op plan.Operator, input []plan.Column, sets int, endless bool) []StateUse {
	a := op.Aggregate
	keys := picked(input, a.Keys)
	most := different(keys, sets)
	words, blob := 0, -1
	if a.Changing {
		words++
	}
	list := []StateUse{{Operator: op.ID, Name: op.Name, Entries: eachOf(keys), Most: most, Endless: endless && most == 0}}
	values := map[int]int{} // of an argument, its index in list
	for _, g := range a.Aggregates {
		words += accumulatorWords(g)
		least := g.Func == expr.Min || g.Func == expr.Max
		texts := g.Func == expr.ApproxCountDistinct || least && keyBytes(g.ArgType) == textKey
		if texts {
			blob = max(blob, 0) + textBytes + 1
		}
		if !g.Distinct && !(a.Changing && least) {
			continue
		}
		at, known := values[g.Arg]
		if !known {
			at = len(list)
			values[g.Arg] = at
			list = append(list, valuesState(op, input[g.Arg], keys, sets, endless))
		}
		if least {
			list[at].Bytes += orderBytes
		}
	}
	list[0].Bytes = entryBytes(typesOf(keys), words, blob)
	return list
}

// valuesState is the table of an argument's different values in each group.
func valuesState(op plan.Operator, arg plan.Column, keys []plan.Column, sets int, endless bool) StateUse {
	all := append(slices.Clone(keys), arg)
	most := different(all, sets)
	return StateUse{
		Operator: op.ID, Name: op.Name, Entries: eachOf(all), Bytes: entryBytes(typesOf(all), boolOrder(op.Aggregate.Changing), -1),
		Most: most, Endless: endless && most == 0,
	}
}

func resultState(op plan.Operator, input []plan.Column, sets int, endless bool) StateUse {
	row := 0
	for _, c := range input {
		row += keyBytes(c.Type)
	}
	if op.Result.Multiset {
		return StateUse{Operator: op.ID, Name: op.Name, Entries: "each different row", Bytes: entryBytes(typesOf(input), 1, row), Endless: endless}
	}
	keys := picked(input, op.Result.Keys)
	most := different(keys, sets)
	return StateUse{Operator: op.ID, Name: op.Name, Entries: eachOf(keys), Bytes: entryBytes(typesOf(keys), 1, row), Most: most, Endless: endless && most == 0}
}

// different is the greatest number of different keys; 0: any.
func different(keys []plan.Column, sets int) int {
	most := 1
	for _, k := range keys {
		n := 0
		switch {
		case k.Type.Kind == expr.Boolean:
			n = 3 - boolOrder(k.NotNull)
		case k.Name == setColumn:
			n = sets
		}
		most *= n
	}
	return most
}

func eachOf(keys []plan.Column) string {
	if len(keys) == 0 {
		return "the whole input"
	}
	return "each " + keyNames(keys)
}

// keyNames lists keys for people.
func keyNames(keys []plan.Column) string {
	names := columnNames(keys)
	for i, n := range names {
		if n == setColumn {
			names[i] = "grouping set"
		}
	}
	return strings.Join(names, ", ")
}

func typesOf(columns []plan.Column) []expr.Type {
	list := make([]expr.Type, len(columns))
	for i, c := range columns {
		list[i] = c.Type
	}
	return list
}

// The sizes of what exec/state keeps, in bytes; a test there compares them with the real
// ones.
const (
	indexBytes  = 14 // of the index, whose segments are between 40 and 80 % full
	hashBytes   = 8  // of a record, unless its key is one number
	numberBytes = 8  // of a record whose key is one number
	inlineBytes = 15 // of a key that lies in its record
	wideBytes   = 23 // likewise, where there are two, none of them a string
	blobBytes   = 8  // of a record that has bytes of its own
	orderBytes  = 24 // of an entry in the ordered index of MIN and MAX
	textBytes   = 16 // what a string is taken to have
	textKey     = textBytes + 2
)

// entryBytes is the size of an entry: its share of the index, a record with its words, and
// the bytes of a key that is too long for the record, and of the entry itself (-1: none).
func entryBytes(keys []expr.Type, words, own int) int {
	size, key, texts, numbers := indexBytes+8*words, 0, 0, 0
	for _, k := range keys {
		n := keyBytes(k)
		key += n
		texts += boolOrder(n == textKey)
		numbers += boolOrder(oneWord(k))
	}
	inline := inlineBytes
	switch {
	case len(keys) == 1 && numbers == 1:
		size, key = size+numberBytes, 0
	case len(keys) == 2 && texts == 0:
		inline = wideBytes
		size += hashBytes + wideBytes + 1
	default:
		size += hashBytes + inlineBytes + 1
	}
	if key <= inline {
		key = 0
	}
	if own >= 0 {
		size, key = size+blobBytes, key+own
	}
	return size + key + key/8 // such bytes lie in memory that grows by quarters
}

// oneWord reports whether values of a type are one 64-bit number to exec/state.
func oneWord(t expr.Type) bool {
	switch t.Kind {
	case expr.Null, expr.Boolean, expr.Double, expr.Decimal, expr.String, expr.Bytes:
		return false
	}
	return true
}

// keyBytes is the size of an encoded value.
func keyBytes(t expr.Type) int {
	switch t.Kind {
	case expr.Null, expr.Boolean:
		return 2
	case expr.Decimal:
		return 17
	case expr.String, expr.Bytes:
		return textKey
	}
	return 9
}

// accumulatorWords is the number of 64-bit words that an aggregate has in a group.
func accumulatorWords(a expr.Aggregate) int {
	switch a.Func {
	case expr.CountStar, expr.Count:
		return 1
	case expr.Sum, expr.Avg:
		if a.ArgType.Kind == expr.Double {
			return 6
		}
		return 3
	case expr.Min, expr.Max:
		if a.ArgType.Kind == expr.Decimal {
			return 3
		}
	}
	return 2
}
