package source

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/planner/plan"
)

const (
	// stripes is the number of splits of a generated table, and stripeRows how many
	// rows in a row belong to one: row i is of split i/1024 mod 128. Both are frozen:
	// positions in snapshots depend on them.
	stripes    = 128
	stripeRows = 1024
)

// A stripe is a split of a generated table. Its JSON is the unit of state.
type stripe struct {
	Split int   `json:"split"`
	Next  int64 `json:"next"` // the number of its next row
}

// advance passes over n rows, which do not go beyond the end of a run of stripeRows.
func (s *stripe) advance(n int64) {
	if s.Next += n; s.Next%stripeRows == 0 {
		s.Next += (stripes - 1) * stripeRows
	}
}

// left counts the stripe's rows below total that are still to come.
func (s *stripe) left(total int64) int64 {
	if s.Next >= total {
		return 0
	}
	const round = stripes * stripeRows
	run := s.Next - s.Next%stripeRows // where the current run begins
	last := (total - run) / round     // further whole turns
	rows := last*stripeRows + min((total-run)%round, stripeRows)
	return rows - s.Next%stripeRows
}

// A datagen makes rows out of their numbers. A subtask goes through its stripes in the
// order of row numbers, so that at parallelism 1 the rows come in order.
type datagen struct {
	table   string
	total   int64 // number of rows; MaxInt64 when unbounded
	fields  []field
	rows    *rows
	stripes []stripe
	pace    pacer
	now     func() time.Time
	draws   []uint64
}

func openDatagen(setup exec.Setup) (*datagen, error) {
	d, err := newDatagen(setup.Operator.Source)
	if err != nil {
		return nil, err
	}
	all, err := allStripes(setup)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", d.table, err)
	}
	d.stripes = share(all, setup.Subtask, setup.Parallelism)
	own, sum := d.weight(d.stripes), d.weight(all)
	d.pace = pacer{rate: setup.Operator.Source.RowsPerSecond * own / max(sum, 1)}
	return d, nil
}

func newDatagen(spec *plan.SourceSpec) (*datagen, error) {
	o := options{table: spec.Table.Name, values: spec.Table.Options}
	d := &datagen{table: spec.Table.Name, now: time.Now, draws: make([]uint64, batch.Target)}
	d.total = o.int64("number-of-rows", math.MaxInt64)
	seed := uint64(o.int64("seed", 0))
	var err error
	if d.rows, err = newRows(spec); err != nil {
		return nil, err
	}
	for i := range d.rows.columns {
		d.fields = append(d.fields, newField(&o, &d.rows.columns[i], seed))
	}
	return d, o.err
}

// allStripes returns the stripes of all subtasks, in order.
func allStripes(setup exec.Setup) ([]stripe, error) {
	all := make([]stripe, stripes)
	for k := range all {
		all[k] = stripe{Split: k, Next: int64(k) * stripeRows}
	}
	if !setup.Restored {
		return all, nil
	}
	found := 0
	for _, item := range setup.List {
		var s stripe
		if err := json.Unmarshal(item, &s); err != nil {
			return nil, fmt.Errorf("restore a split: %w", err)
		}
		if s.Split < 0 || s.Split >= stripes || s.Next/stripeRows%stripes != int64(s.Split) {
			return nil, fmt.Errorf("%w: the snapshot has a split %d at row %d, which is none of this table", weir.ErrInvalid, s.Split, s.Next)
		}
		all[s.Split] = s
		found++
	}
	if found != stripes {
		return nil, fmt.Errorf("%w: the snapshot has %d splits of this table instead of %d", weir.ErrInvalid, found, stripes)
	}
	return all, nil
}

// weight says how much of the table's rate stripes get: as much as they have left.
func (d *datagen) weight(of []stripe) float64 {
	if d.total == math.MaxInt64 {
		return float64(len(of))
	}
	var n int64
	for i := range of {
		n += of[i].left(d.total)
	}
	return float64(n)
}

// Next makes the rows of one run, or a part of them.
func (d *datagen) Next(ctx context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	var s *stripe
	for i := range d.stripes {
		if s == nil || d.stripes[i].Next < s.Next {
			s = &d.stripes[i]
		}
	}
	if s == nil || s.Next >= d.total {
		return nil, exec.Done, time.Time{}, nil
	}
	n, until := d.pace.grant(d.now(), batch.Target)
	if n == 0 {
		return nil, exec.Wait, until, nil
	}
	b := d.make(s.Next, int(min(int64(n), stripeRows-s.Next%stripeRows, d.total-s.Next)))
	s.advance(int64(b.Len))
	d.pace.spend(b.Len)
	return b, exec.More, time.Time{}, ctx.Err()
}

// make generates n rows from row number first on.
func (d *datagen) make(first int64, n int) *batch.Batch {
	d.rows.begin(n)
	for i := range d.fields {
		d.fields[i].draw(d.draws[:n], uint64(first))
		d.fields[i].fill(&d.rows.columns[i], d.draws[:n])
	}
	for i := range n {
		d.rows.offsets[i] = first + int64(i)
	}
	d.rows.n = n
	return d.rows.finish("")
}

// Snapshot gives the position of every stripe.
func (d *datagen) Snapshot(weir.CheckpointID) ([]json.RawMessage, error) {
	items := make([]json.RawMessage, len(d.stripes))
	for i, s := range d.stripes {
		items[i] = fmt.Appendf(nil, `{"split":%d,"next":%d}`, s.Split, s.Next)
	}
	return items, nil
}

// Close has nothing to release.
func (d *datagen) Close() error { return nil }
