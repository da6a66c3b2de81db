package op

import (
	"slices"

	"weir/exec"
	"weir/exec/batch"
)

// An expand emits each row once for every grouping set: NULL in the columns of the keys
// that are not in the set, and the set's number behind. A batch becomes one per set, so
// that an update's two rows stay beside each other.
type expand struct {
	stateless
	hidden [][]bool // per set, the input columns that are NULL in it
	pool   *batch.Pool
}

func openExpand(s exec.Setup) *expand {
	spec := s.Operator.Expand
	e := &expand{pool: batch.NewPool(exec.Layout(s.Operator.Schema), batch.Target)}
	for _, set := range spec.Sets {
		hidden := make([]bool, len(s.Input))
		for _, k := range spec.Keys {
			hidden[k] = !slices.Contains(set, k)
		}
		e.hidden = append(e.hidden, hidden)
	}
	return e
}

// Process emits the batch once per set.
func (e *expand) Process(b *batch.Batch, out exec.Collector) error {
	defer b.Release()
	for set, hidden := range e.hidden {
		to := e.pool.Get()
		e.fill(to, b, set, hidden)
		if err := out.Emit(to); err != nil {
			return err
		}
	}
	return nil
}

func (e *expand) fill(to, b *batch.Batch, set int, hidden []bool) {
	n := b.Rows()
	for c, hide := range hidden {
		v := &to.Columns[c]
		switch {
		case hide:
			v.SetNulls(n)
		case b.Sel == nil:
			v.CopyFrom(&b.Columns[c])
		default:
			batch.Gather(v, &b.Columns[c], b.Sel)
		}
	}
	number := &to.Columns[len(hidden)]
	number.Resize(n)
	for i := range number.Ints {
		number.Ints[i] = int64(set)
	}
	if b.Kinds == nil {
		to.Len = n
	} else {
		for i := range n {
			to.EndRow(b.Kind(b.Row(i)))
		}
	}
	to.Origin = b.Origin
	if b.Sel != nil && b.Origin != nil {
		to.Origin = &batch.Origin{Table: b.Origin.Table, Path: b.Origin.Path, Offsets: make([]int64, n)}
		for i, r := range b.Sel {
			to.Origin.Offsets[i] = b.Origin.Offsets[r]
		}
	}
}
