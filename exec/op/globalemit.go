package op

import (
	"bytes"
	"math"
	"slices"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/eval"
)

// A group is what the values of a group's row are computed from.
type group struct {
	words []uint64
	blob  []byte
}

// vanished reports whether a group is gone with its last row.
func (a *globalAgg) vanished(words []uint64) bool {
	return a.spec.Changing && len(a.keys) > 0 && words[0] == 0
}

// dropEmpty forgets the groups that this batch has emptied.
func (a *globalAgg) dropEmpty() {
	for _, t := range a.touched {
		if a.vanished(a.table.ReadWords(t.slot)) {
			a.table.Delete(t.slot)
		}
	}
}

// emitChanges emits +I for new groups, -U and +U for those whose values differ and -D
// for those that are gone.
func (a *globalAgg) emitChanges(b *batch.Batch, out exec.Collector) error {
	to := a.pool.Get()
	text := 0
	for i, t := range a.touched {
		a.estimate(t.slot)
		old := group{a.old[i*a.layout.words : (i+1)*a.layout.words], a.oldText[text:t.text]}
		now := group{a.table.ReadWords(t.slot), nil}
		text = t.text
		if a.layout.parts > 0 {
			now.blob = a.table.Blob(t.slot)
		}
		if err := a.emitChange(to, b, t, old, now); err != nil {
			return err
		}
		if to.Len >= batch.Target-1 {
			if err := out.Emit(to); err != nil {
				return err
			}
			to = a.pool.Get()
		}
	}
	return out.Emit(to)
}

// emitChange appends the change of one group.
func (a *globalAgg) emitChange(to, b *batch.Batch, t touch, old, now group) error {
	if a.vanished(now.words) {
		a.table.Delete(t.slot)
		if t.fresh {
			return nil
		}
		return a.emitRow(to, b, t.row, old, batch.Delete)
	}
	if t.fresh {
		return a.emitRow(to, b, t.row, now, batch.Insert)
	}
	if slices.Equal(old.words, now.words) && (a.layout.texts == 0 || bytes.Equal(old.blob, now.blob[:partsEnd(now.blob, a.layout.texts)])) {
		return nil
	}
	if err := a.emitRow(to, b, t.row, old, batch.UpdateBefore); err != nil {
		return err
	}
	if err := a.emitRow(to, b, t.row, now, batch.UpdateAfter); err != nil {
		return err
	}
	if !a.layout.plain && a.sameValues(to, to.Len-2, to.Len-1) {
		to.Truncate(to.Len - 2)
	}
	return nil
}

// sameValues reports whether two rows show the same values.
func (a *globalAgg) sameValues(b *batch.Batch, i, j int) bool {
	for c := range a.accs {
		v := &b.Columns[len(a.keys)+c]
		if !equalKeys(v, i, v, j) || v.Physical == batch.Floats && math.Signbit(v.Floats[i]) != math.Signbit(v.Floats[j]) {
			return false
		}
	}
	return true
}

// emitRow appends a group's row, its key from a row of the input.
func (a *globalAgg) emitRow(to, b *batch.Batch, row int32, g group, kind batch.RowKind) error {
	for c, k := range a.keys {
		v := &to.Columns[c]
		v.AppendFrom(&b.Columns[k], int(row))
		if v.Physical == batch.Floats {
			v.Floats[to.Len] = canonical(v.Floats[to.Len])
		}
	}
	return a.endRow(to, g, kind)
}

func (a *globalAgg) endRow(to *batch.Batch, g group, kind batch.RowKind) error {
	for i := range a.accs {
		acc := &a.accs[i]
		var part []byte
		if acc.kind == leastStrings {
			part = partOf(g.blob, acc.part)
		}
		if err := acc.appendFinal(&to.Columns[len(a.keys)+i], g.words[acc.word:], part); err != nil {
			return err
		}
	}
	to.EndRow(kind)
	return nil
}

// canonical gives the one value by which a group of equal doubles is shown (O5).
func canonical(f float64) float64 {
	if math.IsNaN(f) {
		return math.NaN()
	}
	return f + 0 // -0 becomes 0
}

// An always holds the keys of the groups that exist without a row, one a row; without
// GROUP BY the one of no keys.
type always struct {
	keys      *batch.Batch
	hashes    []uint64
	keyGroups weir.KeyGroupRange
	groups    int // key groups in all
}

func newAlways(s exec.Setup, keys int) (always, error) {
	list := s.Operator.Aggregate.Always
	a := always{keys: batch.New(exec.Layout(s.Operator.Schema[:keys]), len(list)), keyGroups: s.State.KeyGroups(), groups: s.MaxParallelism}
	one := batch.New(nil, 0)
	one.Len = 1
	for _, row := range list {
		for c, e := range row {
			p, err := eval.Compile(e, eval.Env{Now: s.Now})
			if err != nil {
				return a, err
			}
			value := batch.Vector{Physical: a.keys.Columns[c].Physical}
			if err := p.Eval(one, &value); err != nil {
				return a, err
			}
			a.keys.Columns[c].AppendFrom(&value, 0)
		}
		a.keys.EndRow(batch.Insert)
	}
	if keys == 0 {
		a.keys.Len = 1
	}
	a.hashes = make([]uint64, a.keys.Len)
	batch.HashRows(a.keys, a.columns(), a.hashes)
	return a, nil
}

// columns lists the columns of the keys.
func (a *always) columns() []int {
	list := make([]int, len(a.keys.Columns))
	for i := range list {
		list[i] = i
	}
	return list
}

// owned reports whether the i-th group is of this subtask's key groups.
func (a *always) owned(i int) bool {
	return a.keyGroups.Contains(weir.KeyGroupOf(a.hashes[i], a.groups))
}

// End makes the groups that exist without a row, where they are not there, and emits
// them; or, if it keeps the groups to the end, all of them.
func (a *globalAgg) End(out exec.Collector) error {
	to := a.pool.Get()
	for i := range a.always.keys.Len {
		if !a.always.owned(i) {
			continue
		}
		key := batch.EncodeKey(nil, a.always.keys, a.always.columns(), i)
		slot, fresh := a.table.Upsert(a.always.hashes[i], key)
		if !fresh || a.spec.Final {
			continue
		}
		if err := a.emitSlot(to, slot); err != nil {
			return err
		}
	}
	var failed error
	if a.spec.Final {
		a.table.Range(func(slot int) bool {
			a.estimate(slot)
			if failed = a.emitSlot(to, slot); failed == nil && to.Len >= batch.Target {
				failed = out.Emit(to)
				to = a.pool.Get()
			}
			return failed == nil
		})
	}
	if failed != nil {
		return failed
	}
	return out.Emit(to)
}

// emitSlot appends the row of a group, its key from the state.
func (a *globalAgg) emitSlot(to *batch.Batch, slot int) error {
	if _, err := batch.DecodeKey(a.table.Key(slot), to.Columns[:len(a.keys)]); err != nil {
		return err
	}
	g := group{words: a.table.ReadWords(slot)}
	if a.layout.parts > 0 {
		g.blob = a.table.Blob(slot)
	}
	return a.endRow(to, g, batch.Insert)
}
