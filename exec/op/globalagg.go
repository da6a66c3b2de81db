package op

import (
	"fmt"
	"slices"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/plan"
)

// A globalAgg is the second phase of an aggregate, or the only one (Raw): it owns the
// groups of its key groups, in keyed state, and emits their changes (O3). Over changing
// rows (Changing) a group's first word is the number of its rows.
type globalAgg struct {
	spec   *plan.AggregateSpec
	name   string
	accs   []accumulator
	rows   []accumulator // those that rows feed and that have no parts
	bytes  []bytesAcc    // those that rows feed and that have parts
	values []*values     // what feeds the others
	layout groupLayout
	keys   []int // key columns of its input
	table  *state.Table
	pool   *batch.Pool
	always always
	kept   *result       // whose rows the groups are; nil: nobody's
	exact  []accumulator // sums that may not fit their types, where nobody asks for the groups

	hashes  []uint64 // scratch: per row of a batch
	slots   []int
	fresh   []bool
	seen    slotSet
	touched []touch  // the groups that this batch touched, in order
	old     []uint64 // words of touched groups as they were
	oldText []byte   // texts of touched groups as they were
	now     []uint64 // and as they are behind it
	emit    []emission
	sel     []int32
	blob    []byte // scratch
	part    sketch // scratch
}

// A groupLayout says what a group's state is made of.
type groupLayout struct {
	words int
	texts int // parts that are texts, the first ones
	parts int
	// plain: the values of a group change if and only if its words do.
	plain bool
}

// A touch is a group that a batch touched first at row.
type touch struct {
	slot  int
	row   int32
	fresh bool
	text  int // where oldText ends after this group's
}

func openGlobalAgg(s exec.Setup) (*globalAgg, error) {
	spec := s.Operator.Aggregate
	if spec.Changing && !spec.Raw {
		return nil, fmt.Errorf("%w: %s: rows that are taken back have no partial aggregates", weir.ErrInvalid, s.Operator.Name)
	}
	first := 0
	if spec.Changing {
		first = 1
	}
	accs, words, err := accumulators(spec, first)
	if err != nil {
		return nil, err
	}
	a := &globalAgg{
		spec: spec, name: s.Operator.Name, accs: accs, keys: spec.Keys,
		pool: batch.NewPool(exec.Layout(s.Operator.Schema), batch.Target),
	}
	a.layout = layoutOf(accs, words)
	a.layout.plain = a.layout.plain && !spec.Changing
	if !spec.Raw {
		a.keys = make([]int, len(spec.Keys))
		for i := range a.keys {
			a.keys[i] = i
		}
	}
	a.table = s.State.Table("groups", state.Layout{Key: state.KeyOf(kindsOf(s, a.keys)), Words: words, Blob: a.layout.parts > 0})
	if err := a.feed(s); err != nil {
		return nil, err
	}
	a.always, err = newAlways(s, len(a.keys))
	return a, err
}

// kindsOf gives the layouts of columns of the input.
func kindsOf(s exec.Setup, columns []int) (kinds []batch.Physical) {
	all := exec.Layout(s.Input)
	for _, c := range columns {
		kinds = append(kinds, all[c])
	}
	return kinds
}

func layoutOf(accs []accumulator, words int) groupLayout {
	l := groupLayout{words: words, plain: true}
	for i := range accs {
		l.plain = l.plain && accs[i].plainly()
		if accs[i].part >= 0 {
			l.parts++
		}
		if accs[i].kind == leastStrings {
			l.texts++
		}
	}
	return l
}

// feed divides the accumulators by what feeds them: rows, or tables of values.
func (a *globalAgg) feed(s exec.Setup) error {
	for i, g := range a.spec.Aggregates {
		acc := &a.accs[i]
		least := acc.kind >= leastInts && acc.kind <= leastStrings
		distinct := g.Distinct && (acc.kind == countValues || acc.kind >= sumInts && acc.kind <= sumDoubles)
		if distinct && !a.spec.Raw {
			return fmt.Errorf("%w: %s: %s needs the rows themselves", weir.ErrInvalid, a.name, g.Text)
		}
		switch {
		case distinct || least && a.spec.Changing:
			acc.values = a.valuesOf(s, acc.arg)
			a.values[acc.values].feeds(*acc, least)
		case acc.part >= 0:
			a.bytes = append(a.bytes, bytesAcc{accumulator: *acc})
		default:
			a.rows = append(a.rows, *acc)
		}
	}
	for _, v := range a.values {
		if err := v.index(s, a.table); err != nil {
			return err
		}
	}
	return nil
}

// valuesOf finds the table of values of a column, or adds it.
func (a *globalAgg) valuesOf(s exec.Setup, arg int) int {
	for i, v := range a.values {
		if v.arg == arg {
			return i
		}
	}
	a.values = append(a.values, newValues(s, len(a.values), a.keys, arg, a.spec.Changing))
	return len(a.values) - 1
}

// Process takes the batch into the groups and emits what changed.
func (a *globalAgg) Process(b *batch.Batch, out exec.Collector) error {
	defer b.Release()
	if err := a.find(b); err != nil {
		return err
	}
	if err := a.addRows(b); err != nil {
		return err
	}
	if len(a.bytes) > 0 {
		if err := a.addBytes(b); err != nil {
			return err
		}
	}
	for _, v := range a.values {
		if err := a.addValues(v, b); err != nil {
			return err
		}
	}
	if a.emits() {
		return a.emitChanges(b, out)
	}
	if a.kept != nil {
		if err := a.fit(); err != nil {
			return err
		}
	}
	if a.spec.Changing {
		a.dropEmpty()
	}
	if a.kept != nil {
		if len(a.bytes) > 0 {
			for _, slot := range a.slots {
				a.estimate(slot)
			}
		}
		a.kept.skip(b.Rows())
	}
	return nil
}

// fit sees that the sums of the batch's groups fit their types, as is seen where they are emitted.
func (a *globalAgg) fit() error {
	for i := range a.exact {
		acc := &a.exact[i]
		for _, slot := range a.slots {
			if err := acc.fits(a.table.ReadWords(slot)[acc.word:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// emits reports whether somebody is to be told what changes just now.
func (a *globalAgg) emits() bool {
	return !a.spec.Final && (a.kept == nil || a.kept.log.wanted())
}

// addRows takes the rows into the words that they feed.
func (a *globalAgg) addRows(b *batch.Batch) error {
	if a.spec.Changing {
		return a.changeRows(b)
	}
	if len(a.rows) == 1 && a.rows[0].kind <= countValues && !a.spec.Raw {
		return a.addCounts(&a.rows[0], b)
	}
	for i, slot := range a.slots {
		w, row := a.table.Words(slot), b.Row(i)
		for j := range a.rows {
			acc := &a.rows[j]
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
	return nil
}

// addCounts does it where a count is all there is to feed.
func (a *globalAgg) addCounts(acc *accumulator, b *batch.Batch) error {
	n, word := b.Columns[acc.arg].Ints, acc.word
	for i, slot := range a.slots {
		if err := acc.addCount(a.table.Words(slot)[word:], n[b.Row(i)]); err != nil {
			return err
		}
	}
	return nil
}

// changeRows does it for rows that may be taken back, and counts them.
func (a *globalAgg) changeRows(b *batch.Batch) error {
	for i, slot := range a.slots {
		w, row := a.table.Words(slot), b.Row(i)
		adds := added(b.Kind(row))
		switch {
		case adds:
			w[0]++
		case w[0] == 0:
			return fmt.Errorf("%s: a %v of a row that the group does not hold", a.name, b.Kind(row))
		default:
			w[0]--
		}
		for j := range a.rows {
			acc := &a.rows[j]
			var err error
			if adds {
				err = acc.add(w[acc.word:], b, row)
			} else {
				err = acc.take(w[acc.word:], b, row)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// added reports whether a row of that kind is there from now on.
func added(k batch.RowKind) bool { return k == batch.Insert || k == batch.UpdateAfter }

// find gives each selected row its group's slot, and notes the groups touched.
func (a *globalAgg) find(b *batch.Batch) error {
	n := b.Rows()
	if b.Kinds != nil && !a.spec.Changing {
		for i := range n {
			if k := b.Kind(b.Row(i)); k != batch.Insert {
				return fmt.Errorf("%s: a %v row: it was planned for insertions only", a.name, k)
			}
		}
	}
	a.hashes = slices.Grow(a.hashes[:0], n)[:n]
	a.slots = slices.Grow(a.slots[:0], n)[:n]
	a.fresh = slices.Grow(a.fresh[:0], n)[:n]
	batch.HashRows(b, a.keys, a.hashes)
	a.table.UpsertRows(b, a.keys, a.hashes, a.slots, a.fresh)
	if !a.emits() && !a.spec.Changing {
		return nil
	}
	a.touched, a.old, a.oldText = a.touched[:0], a.old[:0], a.oldText[:0]
	a.seen.begin(n)
	for i, slot := range a.slots {
		a.touch(slot, int32(b.Row(i)), a.fresh[i])
	}
	return nil
}

func (a *globalAgg) touch(slot int, row int32, fresh bool) {
	if !a.seen.add(slot) {
		return
	}
	a.old = append(a.old, a.table.ReadWords(slot)...)
	if a.layout.texts > 0 {
		blob := a.table.Blob(slot)
		a.oldText = append(a.oldText, blob[:partsEnd(blob, a.layout.texts)]...)
	}
	a.touched = append(a.touched, touch{slot, row, fresh, len(a.oldText)})
}

// Flush has nothing to emit: changes leave with their batch.
func (a *globalAgg) Flush(exec.Collector) error { return nil }

// Close has nothing to release.
func (a *globalAgg) Close() error { return nil }
