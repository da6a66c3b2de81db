package op

import (
	"bytes"
	"math"
	"slices"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/eval"
	"weir/exec/state"
)

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

// An emission is a row that is put out: of a touched group as it was or as it is now.
type emission struct {
	touch int32
	now   bool
	kind  batch.RowKind
}

// emitChanges emits +I for new groups, -U and +U for those whose values differ and -D
// for those that are gone; column by column.
func (a *globalAgg) emitChanges(b *batch.Batch, out exec.Collector) error {
	a.now = a.now[:0]
	for i := range a.touched {
		slot := a.touched[i].slot
		a.estimate(slot)
		a.now = append(a.now, a.table.ReadWords(slot)...)
	}
	for from := 0; from < len(a.touched); from += batch.Target / 2 {
		a.choose(from, min(from+batch.Target/2, len(a.touched)))
		to := a.pool.Get()
		if err := a.fill(to, b); err != nil {
			return err
		}
		if err := out.Emit(to); err != nil {
			return err
		}
	}
	return nil
}

// choose lists the rows that touched groups put out.
func (a *globalAgg) choose(from, to int) {
	a.emit = a.emit[:0]
	n := a.layout.words
	for i := from; i < to; i++ {
		t, at := &a.touched[i], int32(i)
		switch now := a.now[i*n : (i+1)*n]; {
		case a.vanished(now):
			a.table.Delete(t.slot)
			if !t.fresh {
				a.emit = append(a.emit, emission{at, false, batch.Delete})
			}
		case t.fresh:
			a.emit = append(a.emit, emission{at, true, batch.Insert})
		case !slices.Equal(a.old[i*n:(i+1)*n], now) || a.layout.texts > 0 && !a.sameTexts(i):
			a.emit = append(a.emit, emission{at, false, batch.UpdateBefore}, emission{at, true, batch.UpdateAfter})
		}
	}
}

// oldTexts are the texts of the i-th touched group as they were.
func (a *globalAgg) oldTexts(i int) []byte {
	from := 0
	if i > 0 {
		from = a.touched[i-1].text
	}
	return a.oldText[from:a.touched[i].text]
}

func (a *globalAgg) sameTexts(i int) bool {
	blob := a.table.Blob(a.touched[i].slot)
	return bytes.Equal(a.oldTexts(i), blob[:partsEnd(blob, a.layout.texts)])
}

// fill makes the rows of a.emit, their keys from rows of the input.
func (a *globalAgg) fill(to, b *batch.Batch) error {
	a.sel = a.sel[:0]
	for _, e := range a.emit {
		a.sel = append(a.sel, a.touched[e.touch].row)
	}
	for c, k := range a.keys {
		v := &to.Columns[c]
		batch.Gather(v, &b.Columns[k], a.sel)
		for i, f := range v.Floats {
			v.Floats[i] = canonical(f)
		}
	}
	for i := range a.accs {
		if err := a.fillValues(&a.accs[i], &to.Columns[len(a.keys)+i]); err != nil {
			return err
		}
	}
	for _, e := range a.emit {
		to.EndRow(e.kind)
	}
	if !a.layout.plain {
		a.dropSame(to)
	}
	return nil
}

// fillCounts does fillValues for a count, into a column without NULLs.
func (a *globalAgg) fillCounts(acc *accumulator, v *batch.Vector) {
	stride, word := a.layout.words, acc.word
	counts := slices.Grow(v.Ints, len(a.emit))
	for _, e := range a.emit {
		words := a.old
		if e.now {
			words = a.now
		}
		counts = append(counts, int64(words[int(e.touch)*stride+word]))
	}
	v.Ints = counts
}

// fillValues appends an aggregate's values to its column.
func (a *globalAgg) fillValues(acc *accumulator, v *batch.Vector) error {
	if acc.kind <= countValues {
		a.fillCounts(acc, v)
		return nil
	}
	for _, e := range a.emit {
		words := a.old
		if e.now {
			words = a.now
		}
		w := words[int(e.touch)*a.layout.words+acc.word:]
		var part []byte
		if acc.kind == leastStrings {
			blob := a.oldTexts(int(e.touch))
			if e.now {
				blob = a.table.Blob(a.touched[e.touch].slot)
			}
			part = partOf(blob, acc.part)
		}
		if err := acc.appendFinal(v, w, part); err != nil {
			return err
		}
	}
	return nil
}

// dropSame leaves out the updates whose two rows show the same values.
func (a *globalAgg) dropSame(to *batch.Batch) {
	a.sel = a.sel[:0]
	for i := 0; i < to.Len; i++ {
		if to.Kind(i) == batch.UpdateBefore && a.sameValues(to, i, i+1) {
			i++
			continue
		}
		a.sel = append(a.sel, int32(i))
	}
	if len(a.sel) < to.Len {
		to.Select(append(to.SelMemory(), a.sel...))
	}
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
		if err := a.emitEntry(to, a.table.Entry(slot)); err != nil {
			return err
		}
	}
	if a.spec.Final {
		for e := range a.table.Entries() {
			if err := a.emitEntry(to, e); err != nil {
				return err
			}
			if to.Len >= batch.Target {
				if err := out.Emit(to); err != nil {
					return err
				}
				to = a.pool.Get()
			}
		}
	}
	return out.Emit(to)
}

// emitEntry appends the row of a group, its key from the state.
func (a *globalAgg) emitEntry(to *batch.Batch, e state.Entry) error {
	if _, err := batch.DecodeKey(e.Key, to.Columns[:len(a.keys)]); err != nil {
		return err
	}
	if err := a.appendValues(to.Columns[len(a.keys):], slices.Clone(e.Words), e.Blob); err != nil {
		return err
	}
	to.EndRow(batch.Insert)
	return nil
}

// appendValues appends the values of a group, one to each column. It brings the words up to date.
func (a *globalAgg) appendValues(cols []batch.Vector, w []uint64, blob []byte) error {
	a.estimates(w, blob)
	for i := range a.accs {
		acc := &a.accs[i]
		var part []byte
		if acc.kind == leastStrings {
			part = partOf(blob, acc.part)
		}
		if err := acc.appendFinal(&cols[i], w[acc.word:], part); err != nil {
			return err
		}
	}
	return nil
}
