package exec

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/killpoint"
	"weir/exec/batch"
)

// MaxFrame and MinFrame bound the payload of a frame (BuildConfig.FrameLimit): with its
// header one stays below 256 KiB; a network that takes less than MinFrame is of no use.
const (
	MaxFrame = 256<<10 - 1<<10
	MinFrame = 4 << 10
)

// Bounds of what is gathered for one frame.
const (
	fullPayload = 128 << 10 // a target's buffer of this weight is sent
	wholeBatch  = batch.Target / 4
	columnMost  = 64 // a value takes no more, its text and its column's header aside and included
)

// An output is one outgoing edge of a task: the hash exchange. Rows go to the target
// whose key groups hold their key; without keys, and over a forward edge, to the first.
// Each target has a buffer, sent when full, before every barrier and when the task flushes.
type output struct {
	edge    int
	keys    []int
	owner   []uint16 // key group → target
	targets []target
	pool    *batch.Pool
	now     func() time.Time
	stats   *counters
	counts  bool // its rows are what the chain puts out: one of several edges, and no Rejects edge
	limit   int  // bytes that a frame carries
	forward bool // rows keep their origin; elsewhere they lose it, wherever tasks run

	hashes []uint64  // scratch: per row
	rows   [][]int32 // scratch: per target
	every  []int32   // 0, 1, 2, …
	wire   []byte    // scratch: a batch on the wire
}

type target struct {
	to    weir.TaskID
	out   weir.Outbound
	local bool
	buf   *batch.Batch // nil: empty
}

// add routes a batch. own says that the batch may be passed on or released; without
// it another output needs it still.
func (o *output) add(ctx context.Context, b *batch.Batch, own bool) error {
	if len(o.targets) > 1 && len(o.keys) > 0 {
		o.partition(b)
		for i := range o.targets {
			if err := o.put(ctx, &o.targets[i], b, o.rows[i]); err != nil {
				return err
			}
		}
	} else if t := &o.targets[0]; own && t.buf == nil && b.Rows() >= wholeBatch {
		if !o.forward {
			b.Origin = nil
		}
		return o.send(ctx, t, b)
	} else if err := o.put(ctx, t, b, o.selected(b)); err != nil {
		return err
	}
	if own {
		b.Release()
	}
	return nil
}

// partition lists each target's rows in o.rows, in one pass over the hashes.
func (o *output) partition(b *batch.Batch) {
	n := b.Rows()
	o.hashes = slices.Grow(o.hashes[:0], n)[:n]
	batch.HashRows(b, o.keys, o.hashes)
	for i := range o.rows {
		o.rows[i] = o.rows[i][:0]
	}
	groups := len(o.owner)
	if b.Sel == nil {
		for r, h := range o.hashes {
			t := o.owner[weir.KeyGroupOf(h, groups)]
			o.rows[t] = append(o.rows[t], int32(r))
		}
		return
	}
	for i, r := range b.Sel {
		t := o.owner[weir.KeyGroupOf(o.hashes[i], groups)]
		o.rows[t] = append(o.rows[t], r)
	}
}

// put appends rows of b to the target's buffer, sending it whenever it is full.
func (o *output) put(ctx context.Context, t *target, b *batch.Batch, rows []int32) error {
	for len(rows) > 0 {
		if t.buf == nil {
			t.buf = o.pool.Get()
		}
		n := min(len(rows), max(batch.Target-t.buf.Len, 1))
		switch {
		case !o.forward:
			t.buf.AppendRows(b, rows[:n])
		case !t.buf.AppendLocated(b, rows[:n]):
			if err := o.flush(ctx, t); err != nil {
				return err
			}
			continue
		}
		rows = rows[n:]
		if t.buf.Len >= batch.Target || batch.Size(t.buf) >= min(fullPayload, o.limit) {
			if err := o.flush(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *output) flush(ctx context.Context, t *target) error {
	if t.buf == nil {
		return nil
	}
	b := t.buf
	t.buf = nil
	return o.send(ctx, t, b)
}

// flushAll sends what all targets have buffered.
func (o *output) flushAll(ctx context.Context) error {
	for i := range o.targets {
		if err := o.flush(ctx, &o.targets[i]); err != nil {
			return err
		}
	}
	return nil
}

// broadcast sends a control frame to every target, behind what is buffered (I2).
func (o *output) broadcast(ctx context.Context, f weir.Frame) error {
	if err := o.flushAll(ctx); err != nil {
		return err
	}
	for i := range o.targets {
		if i > 0 && f.Kind == weir.FrameBarrier {
			killpoint.Here("between-barriers")
		}
		if err := o.deliver(ctx, &o.targets[i], f); err != nil {
			return err
		}
	}
	return nil
}

// send hands a batch to one target, in one frame or, encoded, in several.
func (o *output) send(ctx context.Context, t *target, b *batch.Batch) error {
	size := batch.Size(b)
	if o.counts {
		o.stats.rowsOut.Add(int64(b.Rows()))
	}
	if t.local {
		o.stats.bytesOut.Add(int64(size))
		return o.deliver(ctx, t, weir.Frame{Kind: weir.FrameRecords, Batch: b, Size: size})
	}
	if err := o.encode(ctx, t, b, size); err != nil {
		return err
	}
	b.Release()
	return nil
}

// encode sends b in frames that stay below the limit, halving it while it is too large.
func (o *output) encode(ctx context.Context, t *target, b *batch.Batch, size int) error {
	if size <= o.limit || b.Rows() < 2 {
		o.wire = batch.Append(o.wire[:0], b)
		o.stats.bytesOut.Add(int64(len(o.wire)))
		return o.deliver(ctx, t, weir.Frame{Kind: weir.FrameRecords, Bytes: o.wire, Size: len(o.wire)})
	}
	all := b.Sel
	rows := o.selected(b)
	half := len(rows) / 2
	for _, part := range [][]int32{rows[:half], rows[half:]} {
		b.Sel = part
		if err := o.encode(ctx, t, b, batch.Size(b)); err != nil {
			return err
		}
	}
	b.Sel = all
	return nil
}

// deliver sends one frame and counts the time that the channel made us wait.
func (o *output) deliver(ctx context.Context, t *target, f weir.Frame) error {
	before := o.now()
	o.stats.backTo.Store(&t.to)
	o.stats.backSince.Store(&before)
	err := t.out.Send(ctx, f)
	o.stats.backSince.Store(nil)
	o.stats.backNS.Add(int64(o.now().Sub(before)))
	if err != nil {
		return fmt.Errorf("send %v over edge %d: %w", f.Kind, o.edge, err)
	}
	return nil
}

// selected lists the selected rows of b.
func (o *output) selected(b *batch.Batch) []int32 {
	if b.Sel != nil {
		return b.Sel
	}
	for len(o.every) < b.Len {
		o.every = append(o.every, int32(len(o.every)))
	}
	return o.every[:b.Len]
}

// outputs are all outgoing edges of a task; the end of its chain.
type outputs struct {
	ctx   context.Context // of Run, for Emit
	edges []*output       // of what the chain emits
	side  *output         // of what it rejects; nil: it has none
	// rejects takes rows that no frame can carry; nil: one fails the job.
	rejects Rejecter
}

// Emit routes the batch over every edge but that of rejects: the last one owns it, those
// before it copy the rows (E4), so that no two receivers ever share memory.
func (o *outputs) Emit(b *batch.Batch) error {
	if len(o.edges) > 0 {
		if err := o.checkRows(b); err != nil {
			return err
		}
	}
	if len(o.edges) == 0 || b.Rows() == 0 {
		b.Release()
		return nil
	}
	for i, e := range o.edges {
		if err := e.add(o.ctx, b, i == len(o.edges)-1); err != nil {
			return err
		}
	}
	return nil
}

// checkRows finds the rows that no frame can carry, whether they travel or not: the
// answer must not depend on where tasks run. A row of a source is rejected, or fails the job;
// a computed one always fails it: it stands for many rows, and they are not at fault.
func (o *outputs) checkRows(b *batch.Batch) error {
	text := 0
	for i := range b.Columns {
		text += len(b.Columns[i].Bytes)
	}
	first := o.edges[0]
	if text <= first.limit/2 && columnMost*len(b.Columns) <= first.limit/2 {
		return nil
	}
	all := b.Sel
	fit := b.SelMemory()
	for _, r := range first.selected(b) {
		b.Sel = []int32{r}
		size := batch.Size(b)
		b.Sel = all
		switch kind := b.Kind(int(r)); {
		case size <= first.limit:
			fit = append(fit, r)
		case o.rejects == nil, b.Origin == nil:
			return rowTooLarge(b, int(r), size, first)
		case kind == batch.Insert || kind == batch.UpdateAfter:
			if err := o.rejects.Reject(rowTooLarge(b, int(r), size, first)); err != nil {
				return err
			}
		}
	}
	if len(fit) < b.Rows() {
		b.Select(fit)
	}
	return nil
}

func rowTooLarge(b *batch.Batch, row, size int, o *output) *RowError {
	e := &RowError{Offset: -1, Reason: fmt.Sprintf("the row takes %d bytes, more than the %d that a frame carries: leave large columns out, or shorten them", size, o.limit)}
	if b.Origin != nil {
		e.Table, e.Path, e.Offset = b.Origin.Table, b.Origin.Path, b.Origin.Offsets[row]
	}
	return e
}

// all lists every edge, that of rejects included: flushes and control frames go over all.
func (o *outputs) all() []*output {
	if o.side == nil {
		return o.edges
	}
	return append(o.edges[:len(o.edges):len(o.edges)], o.side)
}

// flush sends what all targets have buffered; those first whose reader waits, so that
// none of them waits for another one's credit.
func (o *outputs) flush() error {
	if err := o.flushIdle(); err != nil {
		return err
	}
	for _, e := range o.all() {
		if err := e.flushAll(o.ctx); err != nil {
			return err
		}
	}
	return nil
}

// flushIdle sends the buffers whose reader has taken all that was sent.
func (o *outputs) flushIdle() error {
	for _, e := range o.all() {
		for i := range e.targets {
			t := &e.targets[i]
			if t.buf == nil || !t.out.Idle() {
				continue
			}
			if err := e.flush(o.ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// idle reports whether every reader has taken all that was sent.
func (o *outputs) idle() bool {
	for _, e := range o.all() {
		for i := range e.targets {
			if !e.targets[i].out.Idle() {
				return false
			}
		}
	}
	return true
}

func (o *outputs) broadcast(f weir.Frame) error {
	for _, e := range o.all() {
		if err := e.broadcast(o.ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (o *outputs) close() error {
	var first error
	for _, e := range o.all() {
		for _, t := range e.targets {
			if err := t.out.Close(); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

// An origin is what the coordinator says of a checkpoint.
type origin struct {
	at    time.Time         // when it was triggered; zero: unknown
	base  weir.CheckpointID // whose objects its snapshots may name; 0: none
	whole bool              // they are to name none but their own
}

func originOf(t checkpoint.Trigger) origin { return origin{t.At, t.Base, t.Whole} }

// barrierFrame carries, beside the id, its origin: when (8 bytes, microseconds since 1970; 0:
// unknown), base (8) and whole (1).
func barrierFrame(id weir.CheckpointID, o origin) weir.Frame {
	at := uint64(0)
	if !o.at.IsZero() {
		at = uint64(o.at.UnixMicro())
	}
	f := weir.Frame{Kind: weir.FrameBarrier, Value: int64(id)}
	f.Bytes = binary.BigEndian.AppendUint64(f.Bytes, at)
	f.Bytes = binary.BigEndian.AppendUint64(f.Bytes, uint64(o.base))
	if o.whole {
		f.Bytes = append(f.Bytes, 1)
	} else {
		f.Bytes = append(f.Bytes, 0)
	}
	return f
}

// originIn reads the origin in a barrier.
func originIn(f weir.Frame) (o origin, err error) {
	if len(f.Bytes) == 0 {
		return o, nil // nothing is known
	}
	if len(f.Bytes) != 8+8+1 {
		return o, fmt.Errorf("a barrier of %d bytes", len(f.Bytes))
	}
	if at := int64(binary.BigEndian.Uint64(f.Bytes)); at != 0 {
		o.at = time.UnixMicro(at)
	}
	o.base, o.whole = weir.CheckpointID(binary.BigEndian.Uint64(f.Bytes[8:])), f.Bytes[16] != 0
	return o, nil
}
