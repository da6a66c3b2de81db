package op

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/state"
	"weir/planner/plan"
)

// A view shows the rows of a result: which columns, by which names and types.
type view struct {
	schema []plan.Column // of the encoded rows
	show   []int
	names  [][]byte       // of the shown columns, as JSON with the colon
	row    []batch.Vector // scratch: one decoded row
}

func newView(o plan.Operator, input []plan.Column) (view, error) {
	v := view{schema: input, show: o.Result.Show, row: make([]batch.Vector, len(input))}
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

// Snapshot reads rows of a result operator from a store restored from one of its
// snapshots: those of all subtasks for the whole result. input is the schema of what
// it reads.
func Snapshot(o plan.Operator, input []plan.Column, store *state.Store, q exec.Query) (exec.Page, error) {
	if o.Result == nil {
		return exec.Page{}, fmt.Errorf("%w: %s keeps no result", weir.ErrInvalid, o.Name)
	}
	v, err := newView(o, input)
	if err != nil {
		return exec.Page{}, err
	}
	page, err := v.read(resultTable(store), q)
	page.Full = true
	return page, err
}

// decode reads an encoded row into the scratch row.
func (v *view) decode(row []byte) error {
	for i := range v.row {
		v.row[i].Reset()
	}
	_, err := batch.DecodeKey(row, v.row)
	return err
}

// json gives an encoded row as an object of the shown columns.
func (v *view) json(row []byte) ([]byte, error) {
	if err := v.decode(row); err != nil {
		return nil, err
	}
	dst := make([]byte, 0, 32+len(row)+16*len(v.show))
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

// A candidate is a row that may be on the page.
type candidate struct {
	sort []byte
	slot int
}

// A collector keeps the first limit+1 rows behind after; limit 0: all of them.
type collector struct {
	after []byte
	limit int
	found []candidate
	bound []byte // nothing from here on is wanted; nil: not known yet
	key   []byte // scratch: the sort key of the row to add
}

// add takes in the row at slot, which is there n times, under c.key.
func (c *collector) add(slot int, n uint64) {
	base := len(c.key)
	for i := range n {
		if c.key = c.key[:base]; i > 0 {
			c.key = binary.BigEndian.AppendUint64(c.key, i)
		}
		if c.bound != nil && bytes.Compare(c.key, c.bound) >= 0 {
			return // and so are the further ones, which are greater
		}
		if len(c.after) > 0 && bytes.Compare(c.key, c.after) <= 0 {
			continue
		}
		c.found = append(c.found, candidate{bytes.Clone(c.key), slot})
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

// read scans the table for the page that q asks for.
func (v *view) read(t *state.Table, q exec.Query) (exec.Page, error) {
	var page exec.Page
	order, err := v.order(q.OrderBy)
	if err != nil {
		return page, err
	}
	c := collector{after: q.After, limit: q.Limit}
	t.Range(func(slot int) bool {
		n := t.ReadWords(slot)[0]
		page.Total += int64(n)
		if c.key, err = v.sortKey(c.key[:0], order, t.Key(slot), t.Blob(slot)); err != nil {
			return false
		}
		c.add(slot, n)
		return true
	})
	if err != nil {
		return page, err
	}
	found := c.page()
	page.More = q.Limit > 0 && len(found) > q.Limit
	if page.More {
		found = found[:q.Limit]
	}
	page.Rows = make([]exec.Row, 0, len(found))
	for _, c := range found {
		json, err := v.json(t.Blob(c.slot))
		if err != nil {
			return page, err
		}
		page.Rows = append(page.Rows, exec.Row{Op: batch.Insert.String(), JSON: json, Sort: c.sort})
	}
	return page, nil
}
