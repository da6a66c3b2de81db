package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"weir"
	"weir/planner/plan"
)

// Operator ids name state, so they come from what the user wrote and survive both our
// rewrites and the user's edits as far as the state's meaning does: the kind of the
// operator, the identity of the source's table, and the normalised keys. Filters,
// outputs and aggregates are not part of it; each aggregate's state goes by its own
// normalised expression.

// identities holds what the ids of a query's operators are made from.
type identities struct {
	source string // the table, by name and connector
	keys   string // normalised keys with their types, or the whole row
	sink   string
}

func identify(q *query) identities {
	ids := identities{source: strings.ToLower(q.source.Name) + " " + q.source.Connector}
	columns := q.source.columnNames()
	var keys []string
	for _, k := range q.keys {
		keys = append(keys, k.SQL(columns)+" "+k.Type.String())
	}
	if !q.grouped {
		for _, o := range q.outputs {
			keys = append(keys, o.e.SQL(columns)+" "+o.e.Type.String())
		}
	}
	ids.keys = strings.Join(keys, ", ")
	if q.sink != nil {
		ids.sink = strings.ToLower(q.sink.Name) + " " + q.sink.Connector
	}
	return ids
}

// A namer hands out the ids of one graph.
type namer struct {
	ids  identities
	seen map[weir.OperatorID]int
}

// id gives "kind_hash", or "kind_hash_2" for the second operator of one identity.
func (n *namer) id(kind plan.OperatorKind) weir.OperatorID {
	identity := []string{string(kind), n.ids.source}
	switch kind {
	case plan.LocalAggregate, plan.GlobalAggregate, plan.Result:
		identity = append(identity, n.ids.keys)
	case plan.Sink:
		identity = append(identity, n.ids.sink)
	}
	sum := sha256.Sum256([]byte(strings.Join(identity, "\x00")))
	id := weir.OperatorID(string(kind) + "_" + hex.EncodeToString(sum[:4]))
	n.seen[id]++
	if count := n.seen[id]; count > 1 {
		id += weir.OperatorID("_" + strconv.Itoa(count))
	}
	return id
}
