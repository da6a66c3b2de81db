package op

import (
	"fmt"
	"math"
	"slices"

	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/plan"
)

// A globalAgg is the second phase of an aggregate, or the only one (Raw): it owns the
// groups of its key groups, in keyed state, and emits their changes (O3).
type globalAgg struct {
	spec    *plan.AggregateSpec
	name    string
	accs    []accumulator
	words   int
	keys    []int // key columns of its input
	table   *state.Table
	pool    *batch.Pool
	subtask int

	hashes  []uint64 // scratch: per row of a batch
	slots   []int
	fresh   []bool
	epoch   uint32
	stamps  []uint32 // per slot: the epoch that last touched it
	touched []touch  // the groups that this batch touched, in order
	old     []uint64 // words of touched groups as they were
}

// A touch is a group that a batch touched first at row.
type touch struct {
	slot  int
	row   int32
	fresh bool
}

func openGlobalAgg(s exec.Setup) (*globalAgg, error) {
	spec := s.Operator.Aggregate
	accs, words, err := accumulators(spec)
	if err != nil {
		return nil, err
	}
	a := &globalAgg{
		spec: spec, name: s.Operator.Name, accs: accs, words: words, keys: spec.Keys,
		pool:    batch.NewPool(exec.Layout(s.Operator.Schema), batch.Target),
		subtask: s.Subtask,
	}
	if !spec.Raw {
		a.keys = make([]int, len(spec.Keys))
		for i := range a.keys {
			a.keys[i] = i
		}
	}
	a.table = s.State.Table("groups", state.Layout{Words: words})
	return a, nil
}

// Process takes the batch into the groups and emits what changed.
func (a *globalAgg) Process(b *batch.Batch, out exec.Collector) error {
	defer b.Release()
	if err := a.find(b); err != nil {
		return err
	}
	for i, slot := range a.slots {
		w, row := a.table.Words(slot), b.Row(i)
		for j := range a.accs {
			acc := &a.accs[j]
			var err error
			if a.spec.Raw {
				err = acc.add(w[acc.word:], b, row)
			} else {
				err = acc.merge(w[acc.word:], b, row)
			}
			if err != nil {
				return err
			}
		}
	}
	if a.spec.Final {
		return nil
	}
	return a.emitChanges(b, out)
}

// find gives each selected row its group's slot, and notes the groups touched.
func (a *globalAgg) find(b *batch.Batch) error {
	n := b.Rows()
	if b.Kinds != nil {
		for i := range n {
			if k := b.Kind(b.Row(i)); k != batch.Insert {
				return fmt.Errorf("%s: a %v row: this version aggregates insertions only", a.name, k)
			}
		}
	}
	a.hashes = slices.Grow(a.hashes[:0], n)[:n]
	a.slots = slices.Grow(a.slots[:0], n)[:n]
	a.fresh = slices.Grow(a.fresh[:0], n)[:n]
	batch.HashRows(b, a.keys, a.hashes)
	a.table.UpsertRows(b, a.keys, a.hashes, a.slots, a.fresh)
	if a.spec.Final {
		return nil
	}
	a.touched, a.old = a.touched[:0], a.old[:0]
	a.epoch++
	for i, slot := range a.slots {
		a.touch(slot, int32(b.Row(i)), a.fresh[i])
	}
	return nil
}

func (a *globalAgg) touch(slot int, row int32, fresh bool) {
	for slot >= len(a.stamps) {
		a.stamps = append(a.stamps, 0)
	}
	if a.stamps[slot] == a.epoch {
		return
	}
	a.stamps[slot] = a.epoch
	a.touched = append(a.touched, touch{slot, row, fresh})
	a.old = append(a.old, a.table.ReadWords(slot)...)
}

// emitChanges emits +I for new groups and -U, +U for those whose words differ.
func (a *globalAgg) emitChanges(b *batch.Batch, out exec.Collector) error {
	to := a.pool.Get()
	for i, t := range a.touched {
		old, now := a.old[i*a.words:(i+1)*a.words], a.table.ReadWords(t.slot)
		kind := batch.Insert
		if !t.fresh {
			if slices.Equal(old, now) {
				continue
			}
			kind = batch.UpdateAfter
			if err := a.emitRow(to, b, t.row, old, batch.UpdateBefore); err != nil {
				return err
			}
		}
		if err := a.emitRow(to, b, t.row, now, kind); err != nil {
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

// emitRow appends a group's row: its key from a row of the input, its values from w.
func (a *globalAgg) emitRow(to, b *batch.Batch, row int32, w []uint64, kind batch.RowKind) error {
	for c, k := range a.keys {
		v := &to.Columns[c]
		v.AppendFrom(&b.Columns[k], int(row))
		if v.Physical == batch.Floats {
			v.Floats[to.Len] = canonical(v.Floats[to.Len])
		}
	}
	return a.endRow(to, w, kind)
}

func (a *globalAgg) endRow(to *batch.Batch, w []uint64, kind batch.RowKind) error {
	for i := range a.accs {
		acc := &a.accs[i]
		if err := acc.appendFinal(&to.Columns[len(a.keys)+i], w[acc.word:]); err != nil {
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

// Flush has nothing to emit: changes leave with their batch.
func (a *globalAgg) Flush(exec.Collector) error { return nil }

// End emits every group, if it keeps them to the end, and the one group that exists
// without GROUP BY even when there was no input.
func (a *globalAgg) End(out exec.Collector) error {
	empty := len(a.keys) == 0 && a.table.Len() == 0 && a.subtask == 0
	if empty {
		a.table.Upsert(0, nil)
	}
	if !a.spec.Final && !empty {
		return nil
	}
	to := a.pool.Get()
	var failed error
	a.table.Range(func(slot int) bool {
		if _, failed = batch.DecodeKey(a.table.Key(slot), to.Columns[:len(a.keys)]); failed != nil {
			return false
		}
		if failed = a.endRow(to, a.table.ReadWords(slot), batch.Insert); failed != nil {
			return false
		}
		if to.Len >= batch.Target {
			failed = out.Emit(to)
			to = a.pool.Get()
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return out.Emit(to)
}

// Close has nothing to release.
func (a *globalAgg) Close() error { return nil }
