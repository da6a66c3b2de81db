package op

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"sync/atomic"
	"unicode/utf8"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/plan"
)

// keptOfTable is how many rejected rows of a table on_row_error skip keeps.
const keptOfTable = 100

// A rejects counts the rows at fault of each table and keeps them, all or the first few,
// in keyed state: what a row is and why it was rejected → how often, and the row. Which
// rows are the first depends on where they lie in their table alone, not on the order in
// which subtasks reject them.
type rejects struct {
	stateless
	keep   bool
	counts *state.Table // table → number of rows
	rows   *state.Table
	first  map[string][]place // with skip: the rows kept of a table, in order
	total  atomic.Int64
	view   view

	hashes, tables []uint64 // scratch
	key, row, sort []byte
}

// A place is where a row that is kept lies in the order, and in the state.
type place struct {
	sort, key []byte
	hash      uint64
}

// The columns of plan.RejectColumns: those that say what a row is, and the order.
func rejectKey() []int { return []int{0, 1, 3, 4, 5} }

func rejectOrder() []ordered {
	return []ordered{{column: 0}, {column: 1}, {column: 3}, {column: 4}, {column: 5}}
}

func openRejects(s exec.Setup) (*rejects, error) {
	if s.Parallelism != 1 {
		return nil, fmt.Errorf("%w: %s has %d subtasks, it needs one", weir.ErrInvalid, s.Operator.Name, s.Parallelism)
	}
	v, err := newRejectsView()
	if err != nil {
		return nil, err
	}
	r := &rejects{keep: s.Operator.Rejects.Keep, first: map[string][]place{}, view: v}
	r.counts, r.rows = rejectTables(s.State)
	r.total.Store(totalRejects(r.counts))
	if !r.keep {
		return r, r.restoreFirst()
	}
	return r, nil
}

func rejectTables(s *state.Store) (counts, rows *state.Table) {
	return s.Table("counts", state.Layout{Words: 1}), s.Table("rows", state.Layout{Words: 1, Blob: true})
}

// totalRejects adds the counts of all tables up.
func totalRejects(counts *state.Table) (n int64) {
	for e := range counts.Entries() {
		n += int64(e.Words[0])
	}
	return n
}

// restoreFirst finds the rows that are kept among those restored.
func (r *rejects) restoreFirst() error {
	for e := range r.rows.Entries() {
		sort, err := r.view.sortKey(nil, rejectOrder(), nil, e.Blob)
		if err != nil {
			return err
		}
		table := string(r.view.row[0].Str(0)) // the row just decoded
		r.first[table] = append(r.first[table], place{sort: sort, key: bytes.Clone(e.Key), hash: e.Hash})
	}
	for _, places := range r.first {
		slices.SortFunc(places, func(a, b place) int { return bytes.Compare(a.sort, b.sort) })
	}
	return nil
}

// Process counts and keeps rejected rows.
func (r *rejects) Process(b *batch.Batch, _ exec.Collector) error {
	defer b.Release()
	n := b.Rows()
	r.hashes = slices.Grow(r.hashes[:0], n)[:n]
	r.tables = slices.Grow(r.tables[:0], n)[:n]
	batch.HashRows(b, rejectKey(), r.hashes)
	batch.HashRows(b, []int{0}, r.tables)
	for i := range n {
		row := b.Row(i)
		r.key = batch.EncodeKey(r.key[:0], b, []int{0}, row)
		slot, _ := r.counts.Upsert(r.tables[i], r.key)
		r.counts.Words(slot)[0]++
		r.key = batch.EncodeKey(r.key[:0], b, rejectKey(), row)
		if !r.keep && !r.among(b, row, r.hashes[i]) {
			continue
		}
		slot, _ = r.rows.Upsert(r.hashes[i], r.key)
		if w := r.rows.Words(slot); r.keep || w[0] == 0 {
			w[0]++
		}
		r.row = batch.EncodeKey(r.row[:0], b, r.view.show, row)
		r.rows.SetBlob(slot, r.row)
	}
	r.total.Add(int64(n))
	return nil
}

// among reports whether the row, whose key is r.key, is one of the first of its table,
// and drops the one that it displaces.
func (r *rejects) among(b *batch.Batch, row int, hash uint64) bool {
	r.sort = r.sort[:0]
	for _, o := range rejectOrder() {
		r.sort = appendSortAt(r.sort, &b.Columns[o.column], row)
	}
	table := b.Columns[0].Str(row)
	places := r.first[string(table)]
	at, found := slices.BinarySearchFunc(places, r.sort, func(p place, sort []byte) int { return bytes.Compare(p.sort, sort) })
	if found || at == keptOfTable {
		return found
	}
	if len(places) == keptOfTable {
		last := places[keptOfTable-1]
		if slot, ok := r.rows.Find(last.hash, last.key); ok {
			r.rows.Delete(slot)
		}
		places = places[:keptOfTable-1]
	}
	r.first[string(table)] = slices.Insert(places, at, place{sort: bytes.Clone(r.sort), key: bytes.Clone(r.key), hash: hash})
	return true
}

// Rejected is the number of rows; any goroutine may call it.
func (r *rejects) Rejected() int64 { return r.total.Load() }

// Read answers a page of the rows, ordered by table, path and offset, and the counts.
func (r *rejects) Read(q exec.Query) (exec.Page, error) {
	return readRejects(&r.view, r.counts, r.rows, q)
}

func readRejects(v *view, counts, rows *state.Table, q exec.Query) (exec.Page, error) {
	if q.Changes {
		return exec.Page{}, fmt.Errorf("%w: rejected rows are read as they stand, not as changes", weir.ErrInvalid)
	}
	page, err := v.ordered(rows, q, rejectOrder())
	if err != nil {
		return page, err
	}
	page.Full, page.Total = true, totalRejects(counts)
	name := []batch.Vector{{Physical: batch.Strings}}
	for e := range counts.Entries() {
		name[0].Reset()
		if _, err := batch.DecodeKey(e.Key, name); err != nil {
			return page, err
		}
		page.Counts = append(page.Counts, exec.Count{Table: string(name[0].Str(0)), Rows: int64(e.Words[0])})
	}
	slices.SortFunc(page.Counts, func(a, b exec.Count) int { return bytes.Compare([]byte(a.Table), []byte(b.Table)) })
	return page, err
}

// newRejectsView shows rejected rows.
func newRejectsView() (view, error) {
	columns := plan.RejectColumns()
	show := make([]int, len(columns))
	for i := range show {
		show[i] = i
	}
	v, err := newView(plan.Operator{Result: &plan.ResultSpec{Show: show}}, columns)
	v.object, v.ordering = (*view).appendReject, len(columns)-1 // records may be long
	return v, err
}

// appendReject appends the decoded row as an object without the fields that are NULL; a
// record that is no text is given in base 64.
func (v *view) appendReject(dst []byte) []byte {
	raw := len(v.row) - 1
	dst = append(dst, '{')
	for i := range v.row {
		if v.row[i].Null(0) {
			continue
		}
		if len(dst) > 0 && dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		if i < raw {
			dst = exec.AppendJSON(append(dst, v.names[i]...), v.schema[i].Type, &v.row[i], 0)
		} else if text := v.row[i].Str(0); utf8.Valid(text) {
			dst = exec.AppendJSONString(append(dst, v.names[i]...), text)
		} else {
			dst = base64.StdEncoding.AppendEncode(append(dst, `"raw_base64":"`...), text)
			dst = append(dst, '"')
		}
	}
	return append(dst, '}')
}
