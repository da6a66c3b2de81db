package op

import (
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/plan"
)

// A groupRows makes the rows of a result out of the groups of an aggregate: the key, then
// the value of each accumulator.
type groupRows struct {
	agg    *globalAgg
	values []batch.Vector // scratch: one row's
	words  []uint64       // scratch
	text   []byte         // scratch
}

func newGroupRows(a *globalAgg, schema []plan.Column) *groupRows {
	g := &groupRows{agg: a}
	for _, k := range exec.Layout(schema)[len(a.keys):] {
		g.values = append(g.values, batch.Vector{Physical: k})
	}
	return g
}

// row encodes the row of a group.
func (g *groupRows) row(e state.Entry) ([]byte, error) {
	for i := range g.values {
		g.values[i].Reset()
	}
	g.words = append(g.words[:0], e.Words...)
	if err := g.agg.appendValues(g.values, g.words, e.Blob); err != nil {
		return nil, err
	}
	g.text = append(g.text[:0], e.Key...)
	for i := range g.values {
		g.text = batch.EncodeValue(g.text, &g.values[i], 0)
	}
	return g.text, nil
}
