package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"weir"
	"weir/exec"
	"weir/exec/batch"
	"weir/exec/eval"
	"weir/planner/expr"
	"weir/planner/plan"
)

// A values source emits the rows that a query writes out. There are few of them, so
// that the first subtask has them all.
type values struct {
	table   string
	rows    [][]*expr.Expr
	read    []int
	next    int // the row to emit next; len(rows) at the end
	one     *batch.Batch
	value   []batch.Vector // scratch: one row, per column read
	pool    *batch.Pool
	pace    pacer
	env     eval.Env
	rejects exec.Rejecter
	now     func() time.Time
	first   bool // the subtask that emits
}

// A valuesPosition is the state of a values source: its one item.
type valuesPosition struct {
	Next int `json:"next"`
}

func openValues(setup exec.Setup) (*values, error) {
	spec := setup.Operator.Source
	v := &values{
		table: spec.Table.Name, rows: spec.Values, read: spec.Read, first: setup.Subtask == 0, one: batch.New(nil, 0),
		pool: batch.NewPool(exec.Layout(setup.Operator.Schema), min(len(spec.Values), batch.Target)),
		pace: pacer{rate: spec.RowsPerSecond}, env: eval.Env{Now: setup.Now}, rejects: setup.Rejects, now: time.Now,
	}
	v.one.Len = 1
	for _, kind := range exec.Layout(setup.Operator.Schema) {
		v.value = append(v.value, batch.Vector{Physical: kind})
	}
	if err := v.check(spec); err != nil {
		return nil, fmt.Errorf("table %s: %w", v.table, err)
	}
	if err := v.restore(setup); err != nil {
		return nil, fmt.Errorf("table %s: %w", v.table, err)
	}
	return v, nil
}

// check sees that the rows are the table's.
func (v *values) check(spec *plan.SourceSpec) error {
	for _, c := range v.read {
		if c < 0 || c >= len(spec.Table.Columns) {
			return fmt.Errorf("%w: it has no column number %d", weir.ErrInvalid, c)
		}
	}
	for i, row := range v.rows {
		if len(row) != len(spec.Table.Columns) {
			return fmt.Errorf("%w: row %d has %d values and the table %d columns", weir.ErrInvalid, i+1, len(row), len(spec.Table.Columns))
		}
	}
	return nil
}

// restore finds the position that the first subtask noted.
func (v *values) restore(setup exec.Setup) error {
	for _, item := range setup.List {
		var p valuesPosition
		if err := json.Unmarshal(item, &p); err != nil {
			return fmt.Errorf("restore a position: %w", err)
		}
		if p.Next < 0 || p.Next > len(v.rows) {
			return fmt.Errorf("%w: the snapshot is at row %d of %d", weir.ErrInvalid, p.Next, len(v.rows))
		}
		v.next = p.Next
	}
	if setup.Restored && len(setup.List) != 1 {
		return fmt.Errorf("%w: the snapshot has %d positions of this table instead of one", weir.ErrInvalid, len(setup.List))
	}
	return nil
}

// Next computes the next rows.
func (v *values) Next(ctx context.Context) (*batch.Batch, exec.Poll, time.Time, error) {
	if !v.first || v.next == len(v.rows) {
		return nil, exec.Done, time.Time{}, nil
	}
	n, until := v.pace.grant(v.now(), min(len(v.rows)-v.next, batch.Target))
	if n == 0 {
		return nil, exec.Wait, until, nil
	}
	b, size, origin := v.pool.Get(), 0, &batch.Origin{Table: v.table}
	for ; n > 0 && size < maxBatchBytes; n-- {
		ok, err := v.compute(v.rows[v.next])
		if err != nil {
			b.Release()
			return nil, exec.More, time.Time{}, err
		}
		if ok {
			for i := range v.value {
				b.Columns[i].AppendFrom(&v.value[i], 0)
				size += len(v.value[i].Bytes)
			}
			b.EndRow(batch.Insert)
			origin.Offsets = append(origin.Offsets, int64(v.next))
		}
		v.next++
	}
	b.Origin = origin
	v.pace.spend(b.Len)
	return b, exec.More, time.Time{}, ctx.Err()
}

// compute computes a row's values into v.value; false: the row is at fault and was
// rejected.
func (v *values) compute(row []*expr.Expr) (ok bool, err error) {
	for i, c := range v.read {
		p, err := eval.Compile(row[c], v.env)
		if err != nil {
			return false, fmt.Errorf("table %s, row %d: %w", v.table, v.next+1, err)
		}
		err = p.Eval(v.one, &v.value[i])
		var fault *eval.RowError
		if errors.As(err, &fault) {
			at := &exec.RowError{Table: v.table, Offset: int64(v.next), Column: fault.Text, Reason: fault.Reason}
			if v.rejects == nil {
				return false, at
			}
			return false, v.rejects.Reject(at)
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// Snapshot gives the position, of the first subtask only.
func (v *values) Snapshot(weir.CheckpointID) ([]json.RawMessage, error) {
	if !v.first {
		return nil, nil
	}
	item, err := json.Marshal(valuesPosition{Next: v.next})
	return []json.RawMessage{item}, err
}

// Close has nothing to release.
func (v *values) Close() error { return nil }
