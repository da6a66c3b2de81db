package op

import (
	"fmt"
	"slices"

	"weir"
	"weir/exec"
	"weir/exec/batch"
)

// Bounds of the choice between grouping and passing rows through: a table that fills
// up before each group has seen minRepeat rows does not pay; the next passRows rows
// go through as they are, and then it is tried again.
const (
	minRepeat = 2
	passRows  = 256 * batch.Target
)

// A localAgg is the first phase of an aggregate: it groups what passes in a bounded
// table and emits keys and partial columns. It has no state (O2).
type localAgg struct {
	accs  []accumulator
	plain []accumulator // those without parts
	bytes localBytes    // those with
	words int
	keys  []int
	table *localTable
	mem   []uint64 // accumulators of the table's groups
	pool  *batch.Pool

	seen int // rows since the table was empty
	pass int // rows still to pass through

	groups []uint32 // scratch
	rows   []int32  // scratch
	one    []uint64 // scratch: one group's words
}

func openLocalAgg(s exec.Setup) (*localAgg, error) {
	spec := s.Operator.Aggregate
	if spec.Changing {
		return nil, fmt.Errorf("%w: a local aggregate of rows that are taken back", weir.ErrInvalid)
	}
	for _, g := range spec.Aggregates {
		if g.Distinct {
			return nil, fmt.Errorf("%w: %s: a local aggregate knows only some of the values", weir.ErrInvalid, g.Text)
		}
	}
	accs, words, err := accumulators(spec, 0)
	if err != nil {
		return nil, err
	}
	kinds := exec.Layout(s.Operator.Schema)
	a := &localAgg{
		accs: accs, words: words, keys: spec.Keys, table: newLocalTable(spec.Keys, kinds[:len(spec.Keys)]),
		pool: batch.NewPool(kinds, batch.Target), one: make([]uint64, words),
	}
	for _, acc := range accs {
		if acc.part < 0 {
			a.plain = append(a.plain, acc)
		} else {
			a.bytes.accs = append(a.bytes.accs, localBytesAcc{accumulator: acc})
		}
	}
	return a, nil
}

// Process groups the batch, emitting the table whenever it is full.
func (a *localAgg) Process(b *batch.Batch, out exec.Collector) error {
	defer b.Release()
	a.bytes.begin(b)
	if a.pass > 0 {
		if err := a.Flush(out); err != nil { // the groups that the last batch began: their texts lie where those of rows go
			return err
		}
		a.pass -= b.Rows()
		return a.passThrough(b, out)
	}
	for from := 0; from < b.Rows(); {
		a.groups = a.table.groups(b, from, a.groups[:0])
		if err := a.accumulate(b, from); err != nil {
			return err
		}
		from += len(a.groups)
		a.seen += len(a.groups)
		if from < b.Rows() { // full
			if a.seen < minRepeat*a.table.n {
				a.pass = passRows
			}
			if err := a.Flush(out); err != nil {
				return err
			}
		}
	}
	if a.bytes.heavy() {
		return a.Flush(out)
	}
	return nil
}

func (a *localAgg) accumulate(b *batch.Batch, from int) error {
	if need := a.table.n * a.words; len(a.mem) < need {
		old := len(a.mem)
		a.mem = slices.Grow(a.mem, need-old)[:need]
		clear(a.mem[old:])
	}
	if a.words == 0 {
		return nil
	}
	for i := range a.plain {
		if err := a.plain[i].addAll(a.mem, a.words, a.groups, b, from); err != nil {
			return err
		}
	}
	a.bytes.addAll(a.mem, a.words, a.groups, b, from)
	return nil
}

// Flush emits the groups of the table, and empties it.
func (a *localAgg) Flush(out exec.Collector) error {
	n := a.table.n
	for from := 0; from < n; from += batch.Target {
		b := a.pool.Get()
		a.rows = a.rows[:0]
		for g := from; g < min(from+batch.Target, n); g++ {
			a.rows = append(a.rows, int32(g))
		}
		for c := range a.table.cols {
			batch.Gather(&b.Columns[c], &a.table.cols[c], a.rows)
		}
		for _, g := range a.rows {
			a.appendPartials(b, a.mem[int(g)*a.words:])
		}
		b.Len = len(a.rows)
		if err := out.Emit(b); err != nil {
			return err
		}
	}
	if n > 0 {
		a.table.reset()
		a.bytes.reset()
		a.mem, a.seen = a.mem[:0], 0
	}
	return nil
}

// passThrough emits every row as a group of its own.
func (a *localAgg) passThrough(b *batch.Batch, out exec.Collector) error {
	p := a.pool.Get()
	a.rows = a.rows[:0]
	for i := range b.Rows() {
		a.rows = append(a.rows, int32(b.Row(i)))
	}
	for c, k := range a.keys {
		batch.Gather(&p.Columns[c], &b.Columns[k], a.rows)
	}
	if len(a.bytes.accs) == 0 {
		return a.passColumns(b, p, out)
	}
	for i, row := range a.rows {
		clear(a.one)
		for j := range a.plain {
			if err := a.plain[j].add(a.one[a.plain[j].word:], b, int(row)); err != nil {
				return err
			}
		}
		a.bytes.addRow(a.one, b, int(row), i)
		a.appendPartials(p, a.one)
		a.bytes.reset()
	}
	p.Len = len(a.rows)
	return out.Emit(p)
}

// passColumns emits the partial columns of a.rows as groups of their own, behind their keys.
func (a *localAgg) passColumns(b, p *batch.Batch, out exec.Collector) (err error) {
	cols := p.Columns[len(a.keys):]
	for i := range a.accs {
		if cols, err = a.accs[i].appendRows(cols, b, a.rows, a.one); err != nil {
			return err
		}
	}
	p.Len = len(a.rows)
	return out.Emit(p)
}

func (a *localAgg) appendPartials(b *batch.Batch, words []uint64) {
	cols := b.Columns[len(a.keys):]
	for i := range a.accs {
		acc := &a.accs[i]
		if acc.part < 0 {
			cols = acc.appendPartial(cols, words[acc.word:])
			continue
		}
		a.bytes.appendPartial(&cols[0], acc, words[acc.word:])
		cols = cols[1:]
	}
}

// End emits what is left.
func (a *localAgg) End(out exec.Collector) error { return a.Flush(out) }

// Close has nothing to release.
func (a *localAgg) Close() error { return nil }
