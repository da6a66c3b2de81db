package exec

import (
	"sync/atomic"

	"weir/exec/batch"
	"weir/exec/state"
)

// A node is an operator in its place in a task's chain. It is the Collector of the
// one before it: a record's walk through a chain is a row of plain calls.
type node struct {
	setup Setup
	op    Operator
	next  Collector // the node behind it, or the task's outputs
	index int
	at    *int // the task's: index of the node at work, for panics
	slot  int  // its place in the chain, the source included
	task  *Task
	chain *state.Chain // of its state's runs; nil: it keeps none. Guarded by the uploader's mu

	rowsIn, bytesIn atomic.Int64

	fulls   int             // objects of compactions so far
	folding *state.Snapshot // whose runs are being merged; nil: none. Likewise
}

// Emit hands the batch to the node's operator. An empty batch goes no further.
func (n *node) Emit(b *batch.Batch) error {
	rows := b.Rows()
	if rows == 0 {
		b.Release()
		return nil
	}
	n.rowsIn.Add(int64(rows))
	if n.slot > 0 { // what comes in frames was counted
		n.bytesIn.Add(batchWeight(b))
	}
	before, sender := *n.at, n.task.meter.turn(n.slot)
	*n.at = n.index
	err := n.op.Process(b, n.next)
	*n.at = before
	if err == nil && n.setup.State != nil && n.setup.State.Over() {
		err = n.task.relaxWithin(n.task.outputs.ctx, n)
	}
	n.task.meter.turn(sender)
	return inOperator(n, err)
}

// head is where the rows of the task's input enter its chain.
func (t *Task) head() Collector {
	if len(t.nodes) == 0 {
		return t.outputs
	}
	return t.nodes[0]
}

// flush makes every operator, first to last, emit what it has buffered, and sends
// what the outputs hold.
func (t *Task) flush() error {
	defer t.meter.resume(t.meter.whole())
	for _, n := range t.nodes {
		t.at = n.index
		t.meter.turn(n.slot)
		if err := inOperator(n, n.op.Flush(n.next)); err != nil {
			return err
		}
	}
	t.at = -1
	return t.outputs.flush()
}

// endNodes gives every operator, first to last, the end of its input.
func (t *Task) endNodes() error {
	defer t.meter.resume(t.meter.whole())
	for _, n := range t.nodes {
		t.at = n.index
		t.meter.turn(n.slot)
		if err := inOperator(n, n.op.End(n.next)); err != nil {
			return err
		}
		if err := inOperator(n, n.op.Flush(n.next)); err != nil {
			return err
		}
	}
	t.at = -1
	return nil
}

// reader returns the chain's result operator; nil: none.
func (t *Task) reader() Reader {
	for _, n := range t.nodes {
		if r, ok := n.op.(Reader); ok {
			return r
		}
	}
	return nil
}
