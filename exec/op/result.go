package op

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/plan"
)

// A result keeps the job's result table in keyed state: the key of a row (with
// Multiset the whole row) → how often it is there and its columns, and beside it a
// bounded log of the last changes, which is not state. Where its rows are the groups of the
// aggregate in front of it (Groups), the table is that one's, and it keeps the log alone.
type result struct {
	spec    *plan.ResultSpec
	keys    []int // the columns that identify a row
	all     []int // every column
	table   *state.Table
	rows    int64 // in the table, copies too; of groups, the table's Len
	log     changeLog
	view    view
	input   []plan.Column
	skipped atomic.Int64 // rows of groups that changed while nobody asked

	hashes []uint64 // scratch: per row of a batch
	puts   []int32  // of the rows that are put in, which of the selected they are
	sel    []int32
	found  []uint64 // their hashes
	slots  []int
	fresh  []bool
	key    []byte
	row    []byte
}

func openResult(s exec.Setup) (*result, error) {
	v, err := newView(s.Operator, s.Input)
	if err != nil {
		return nil, err
	}
	r := &result{spec: s.Operator.Result, view: v, input: s.Input, log: newChangeLog(uint64(s.Attempt.Number) << 40)}
	for i := range s.Input {
		r.all = append(r.all, i)
	}
	r.keys = r.spec.Keys
	if r.spec.Multiset {
		r.keys = r.all
	}
	if r.spec.Groups {
		return r, nil // Follow gives it its table
	}
	r.table = resultTable(s.State, s.Operator, s.Input)
	r.rows = totalRows(r.table, r.spec)
	return r, nil
}

// Follow takes the groups of the aggregate in front as its rows, where the plan says so.
func (r *result) Follow(before exec.Operator) error {
	if !r.spec.Groups {
		return nil
	}
	a, ok := before.(*globalAgg)
	if !ok {
		return fmt.Errorf("%w: a result of groups behind an operator that keeps none", weir.ErrInvalid)
	}
	a.kept, r.table, r.view.groups = r, a.table, newGroupRows(a, r.input)
	for _, acc := range a.accs {
		if (acc.kind == sumInts || acc.kind == sumDecimals) && !acc.average { // an average fits: see plan.ResultSpec
			a.exact = append(a.exact, acc)
		}
	}
	return nil
}

// skip notes that the groups of n rows have changed, and nobody is to be told how.
func (r *result) skip(n int) {
	r.log.skip(n)
	r.skipped.Add(int64(n))
}

// Skipped counts the rows by which its groups changed without a row put out.
func (r *result) Skipped() int64 { return r.skipped.Load() }

// total is the number of rows, copies too.
func (r *result) total() int64 {
	if r.spec.Groups {
		return int64(r.table.Len())
	}
	return r.rows
}

// resultTable is the table of a result operator: one word, how often the row is there.
func resultTable(s *state.Store, o plan.Operator, input []plan.Column) *state.Table {
	keys := exec.Layout(input)
	if !o.Result.Multiset {
		all := keys
		keys = nil
		for _, k := range o.Result.Keys {
			keys = append(keys, all[k])
		}
	}
	return s.Table("rows", state.Layout{Key: state.KeyOf(keys), Words: 1, Blob: true})
}

// totalRows counts the rows of a result, copies too.
func totalRows(t *state.Table, spec *plan.ResultSpec) int64 {
	if !spec.Multiset {
		return int64(t.Len())
	}
	var n int64
	for e := range t.Entries() {
		n += int64(e.Words[0])
	}
	return n
}

// Process applies the batch's changes in their order: those that put a row in are gathered,
// and looked up together, up to one that takes a row away.
func (r *result) Process(b *batch.Batch, _ exec.Collector) error {
	defer b.Release()
	n := b.Rows()
	r.hashes = slices.Grow(r.hashes[:0], n)[:n]
	batch.HashRows(b, r.keys, r.hashes)
	logs := r.log.wanted()
	if !logs {
		r.log.skip(n)
	}
	r.puts = r.puts[:0]
	for i := range n {
		row := b.Row(i)
		kind := b.Kind(row)
		if logs {
			r.row = batch.EncodeKey(r.row[:0], b, r.all, row)
			r.log.append(kind, r.row)
		}
		switch {
		case r.spec.Groups:
			continue // it is there
		case added(kind):
			r.puts = append(r.puts, int32(i))
			continue
		case kind == batch.UpdateBefore && i+1 < n && r.replaces(b, i):
			continue // the next row overwrites this one
		}
		if err := r.put(b); err != nil {
			return err
		}
		if err := r.take(kind, b, i); err != nil {
			return err
		}
	}
	return r.put(b)
}

// replaces reports whether the row after the i-th, a -U, is the +U of the same key.
func (r *result) replaces(b *batch.Batch, i int) bool {
	row, next := b.Row(i), b.Row(i+1)
	if r.spec.Multiset || r.hashes[i] != r.hashes[i+1] || b.Kind(next) != batch.UpdateAfter {
		return false
	}
	for _, k := range r.keys {
		if !equalKeys(&b.Columns[k], row, &b.Columns[k], next) {
			return false
		}
	}
	return true
}

// put puts the rows in that were gathered.
func (r *result) put(b *batch.Batch) error {
	n := len(r.puts)
	if n == 0 {
		return nil
	}
	all := b.Sel
	r.sel, r.found = r.sel[:0], r.found[:0]
	for _, i := range r.puts {
		r.sel, r.found = append(r.sel, int32(b.Row(int(i)))), append(r.found, r.hashes[i])
	}
	r.slots = slices.Grow(r.slots[:0], n)[:n]
	r.fresh = slices.Grow(r.fresh[:0], n)[:n]
	b.Sel = r.sel
	r.table.UpsertRows(b, r.keys, r.found, r.slots, r.fresh)
	b.Sel = all
	for i, slot := range r.slots {
		w := r.table.Words(slot)
		switch {
		case r.spec.Multiset:
			r.rows++
			if w[0]++; w[0] > 1 {
				continue // it is the row that is there
			}
		case r.fresh[i]:
			r.rows++
			w[0] = 1
		}
		r.row = batch.EncodeKey(r.row[:0], b, r.all, int(r.sel[i]))
		r.table.SetBlob(slot, r.row)
	}
	r.puts = r.puts[:0]
	return nil
}

// take takes a row away.
func (r *result) take(kind batch.RowKind, b *batch.Batch, i int) error {
	r.key = batch.EncodeKey(r.key[:0], b, r.keys, b.Row(i))
	slot, ok := r.table.Find(r.hashes[i], r.key)
	if !ok {
		return fmt.Errorf("a %v of a row that the result does not hold", kind)
	}
	r.rows--
	if w := r.table.Words(slot); w[0] > 1 {
		w[0]--
		return nil
	}
	r.table.Delete(slot)
	return nil
}

// Read answers from the table or the log.
func (r *result) Read(q exec.Query) (exec.Page, error) {
	if r.table == nil {
		return exec.Page{}, errors.New("a result of groups that follows no aggregate")
	}
	if q.Changes {
		if page, ok, err := r.log.since(q, &r.view); ok || err != nil {
			page.Total = r.total()
			return page, err
		}
		q.Limit, q.After = 0, nil
	}
	page, err := r.view.read(r.table, q)
	page.Version, page.Full, page.Total = r.log.last, true, r.total()
	return page, err
}

// Flush has nothing to emit.
func (r *result) Flush(exec.Collector) error { return nil }

// End has nothing to emit.
func (r *result) End(exec.Collector) error { return nil }

// Close has nothing to release.
func (r *result) Close() error { return nil }
