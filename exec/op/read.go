package op

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/plan"
)

// A view shows the rows of a result: which columns, by which names and types.
type view struct {
	schema   []plan.Column // of the encoded rows
	show     []int
	names    [][]byte                         // of the shown columns, as JSON with the colon
	row      []batch.Vector                   // scratch: one decoded row
	ordering int                              // how many of the columns an order may name
	object   func(v *view, dst []byte) []byte // appends the decoded row; nil: an object of the shown columns
	groups   *groupRows                       // the entries are groups; nil: an entry's blob is its row, and its word says how often it is there
}

// rowOf gives the encoded row of an entry, valid until the next call, and how often it is there.
func (v *view) rowOf(e state.Entry) (row []byte, copies uint64, err error) {
	if v.groups == nil {
		return e.Blob, e.Words[0], nil
	}
	row, err = v.groups.row(e)
	return row, 1, err
}

func newView(o plan.Operator, input []plan.Column) (view, error) {
	v := view{schema: input, show: o.Result.Show, row: make([]batch.Vector, len(input)), ordering: len(input)}
	for i, k := range exec.Layout(input) {
		v.row[i].Physical = k
	}
	for i, c := range v.show {
		if c < 0 || c >= len(input) {
			return v, fmt.Errorf("%w: %s shows column %d of %d", weir.ErrInvalid, o.Name, c, len(input))
		}
		name := input[c].Name
		if i < len(o.Schema) {
			name = o.Schema[i].Name
		}
		v.names = append(v.names, append(exec.AppendJSONString(nil, []byte(name)), ':'))
	}
	return v, nil
}

// decode reads an encoded row into the scratch row.
func (v *view) decode(row []byte) error {
	for i := range v.row {
		v.row[i].Reset()
	}
	_, err := batch.DecodeKey(row, v.row)
	return err
}

// appendJSON appends an encoded row as an object of the shown columns.
func (v *view) appendJSON(dst, row []byte) ([]byte, error) {
	if err := v.decode(row); err != nil {
		return nil, err
	}
	if v.object != nil {
		return v.object(v, dst), nil
	}
	dst = append(dst, '{')
	for i, c := range v.show {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, v.names[i]...)
		dst = exec.AppendJSON(dst, v.schema[c].Type, &v.row[c], 0)
	}
	return append(dst, '}'), nil
}

// read gives the page of the table that q asks for, but for its total.
func (v *view) read(t *state.Table, q exec.Query) (exec.Page, error) {
	order, err := v.order(q.OrderBy)
	if err != nil {
		return exec.Page{}, err
	}
	if len(order) == 0 {
		return v.walk(t, q)
	}
	return v.ordered(t, q, order)
}

// A pager makes a page of the rows that it is given in their order.
type pager struct {
	view *view
	q    exec.Query
	page exec.Page
	size int
	text []byte // what the newest rows are cut from
	json []byte // of the last row
}

// textSize is about the memory that rows share.
const textSize = 64 << 10

// add appends the row unless the page is full; fresh: it is not a copy of the last.
func (p *pager) add(encoded, sort []byte, fresh bool) (ok bool, err error) {
	if p.page.More = p.q.Limit > 0 && len(p.page.Rows) >= p.q.Limit; p.page.More {
		return false, nil
	}
	if fresh {
		if len(p.text) > textSize/2 {
			p.text = make([]byte, 0, textSize)
		}
		from := len(p.text)
		if p.text, err = p.view.appendJSON(p.text, encoded); err != nil {
			return false, err
		}
		p.json = p.text[from:len(p.text):len(p.text)]
	}
	row := exec.Row{Op: batch.Insert.String(), JSON: p.json, Sort: sort}
	p.size += row.Size()
	if p.page.More = p.q.Bytes > 0 && p.size > p.q.Bytes && len(p.page.Rows) > 0; p.page.More {
		return false, nil
	}
	p.page.Rows = append(p.page.Rows, row)
	return true, nil
}

// A place of a row in a read without an order is its rank, then its key, so that the
// page needs only the part of the table behind the place where the one before ended.
const rankSize = 4

// CompareKeys compares the Sorts of two rows of a read without an order by the rows'
// keys alone: a result that is shown whole looks better so.
func CompareKeys(a, b []byte) int { return bytes.Compare(a[rankSize:], b[rankSize:]) }

// walk reads the page from where the one before ended.
func (v *view) walk(t *state.Table, q exec.Query) (exec.Page, error) {
	var from uint32
	if n := len(q.After); n >= rankSize {
		from = binary.BigEndian.Uint32(q.After)
	} else if n > 0 {
		return exec.Page{}, fmt.Errorf("%w: cursor: it is no place in this result: begin without one", weir.ErrInvalid)
	}
	p := pager{view: v, q: q, page: exec.Page{Rows: []exec.Row{}}}
	var place []byte
	for e := range t.Ranked(from) {
		place = append(binary.BigEndian.AppendUint32(place[:0], state.Rank(e.Hash)), e.Key...)
		first := firstCopy(place, q.After)
		if first > 0 && v.groups != nil {
			continue
		}
		row, copies, err := v.rowOf(e)
		if err != nil {
			return p.page, err
		}
		for i := first; i < copies; i++ {
			if ok, err := p.add(row, copyOf(place, i), i == first); err != nil || !ok {
				return p.page, err
			}
		}
	}
	return p.page, nil
}

// copyOf gives the Sort of the i-th copy of the row at a place.
func copyOf(place []byte, i uint64) []byte {
	if i == 0 {
		return bytes.Clone(place)
	}
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, len(place)+8), place...), i)
}

// firstCopy is the first copy of the row at a place whose Sort is behind after. No
// place is the beginning of another one, for keys are not.
func firstCopy(place, after []byte) uint64 {
	switch rest, same := bytes.CutPrefix(after, place); {
	case !same && bytes.Compare(place, after) > 0:
		return 0
	case !same:
		return math.MaxUint64
	case len(rest) == 0:
		return 1
	case len(rest) != 8 || binary.BigEndian.Uint64(rest) == math.MaxUint64:
		return math.MaxUint64 // no cursor that was given out
	default:
		return binary.BigEndian.Uint64(rest) + 1
	}
}

// A candidate is a row that may be on the page.
type candidate struct {
	sort []byte
	row  int // of the table, in the order of its entries: copies share it
	blob []byte
}

// A collector keeps the first limit+1 rows behind after; limit 0: all of them.
type collector struct {
	after []byte
	limit int
	found []candidate
	bound []byte // nothing from here on is wanted; nil: not known yet
	place []byte // scratch: of the row to add
	rows  int    // so far
	// scratch: the rows that are added do not last.
	scratch bool
}

// add takes in a row, which is there n times, at c.place.
func (c *collector) add(blob []byte, n uint64) {
	c.rows++
	for i := firstCopy(c.place, c.after); i < n; i++ {
		if c.bound != nil && bytes.Compare(c.place, c.bound) >= 0 {
			return // and so are the further ones, which are greater
		}
		if c.scratch {
			blob = bytes.Clone(blob)
		}
		c.found = append(c.found, candidate{copyOf(c.place, i), c.rows, blob})
		if c.limit > 0 && len(c.found) >= 2*c.limit+1024 {
			c.found = c.page()
			c.bound = c.found[len(c.found)-1].sort
		}
	}
}

// page puts what was found in order and drops what is beyond the limit.
func (c *collector) page() []candidate {
	slices.SortFunc(c.found, func(a, b candidate) int { return bytes.Compare(a.sort, b.sort) })
	if c.limit > 0 {
		return c.found[:min(len(c.found), c.limit+1)]
	}
	return c.found
}

// ordered scans the whole table for the page.
func (v *view) ordered(t *state.Table, q exec.Query, order []ordered) (exec.Page, error) {
	c := collector{after: q.After, limit: q.Limit, scratch: v.groups != nil}
	for e := range t.Entries() {
		row, copies, err := v.rowOf(e)
		if err != nil {
			return exec.Page{}, err
		}
		if c.place, err = v.sortKey(c.place[:0], order, e.Key, row); err != nil {
			return exec.Page{}, err
		}
		c.add(row, copies)
	}
	p := pager{view: v, q: q, page: exec.Page{Rows: []exec.Row{}}}
	last := -1
	for _, c := range c.page() {
		if ok, err := p.add(c.blob, c.sort, c.row != last); err != nil || !ok {
			return p.page, err
		}
		last = c.row
	}
	return p.page, nil
}
