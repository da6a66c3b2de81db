package exec

import (
	"fmt"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/exec/batch"
)

// A gate is the input gate of a task: its inbound channels, read in turn, one frame
// each. A channel that the aligner holds is not read (I3): its frames wait in the
// transport, whose credit keeps the rest upstream.
type gate struct {
	inputs []input
	align  *checkpoint.Aligner
	next   int // the channel to look at first
	open   int // inputs that have not closed
	going  int // inputs that have not ended

	begun   weir.CheckpointID // the alignment that the times below belong to
	startAt time.Time         // when the coordinator triggered it; zero: unknown
	firstAt time.Time         // its first barrier
}

type input struct {
	id     weir.ChannelID
	ch     Inbound
	pool   *batch.Pool // for decoded batches
	ended  bool
	closed bool
}

func newGate(inputs []input) *gate {
	return &gate{inputs: inputs, align: checkpoint.NewAligner(len(inputs), checkpoint.ExactlyOnce), open: len(inputs), going: len(inputs)}
}

// poll returns the next frame of a channel that is open and not held, and the
// channel's index; false when there is none.
func (g *gate) poll() (weir.Frame, int, bool) {
	for range g.inputs {
		i := g.next
		if g.next++; g.next == len(g.inputs) {
			g.next = 0
		}
		if g.inputs[i].closed || g.align.Held(i) {
			continue
		}
		if f, ok := g.inputs[i].ch.Poll(); ok {
			return f, i, true
		}
	}
	return weir.Frame{}, 0, false
}

// barrier takes in the barrier of id on channel ch; true: snapshot now.
func (g *gate) barrier(ch int, id weir.CheckpointID, startAt, now time.Time) bool {
	if id > g.begun {
		g.begun, g.startAt, g.firstAt = id, startAt, now
	}
	return g.align.Barrier(ch, id)
}

// end takes in the `end` of channel ch; true: no input has more records.
func (g *gate) end(ch int) bool {
	if in := &g.inputs[ch]; !in.ended {
		in.ended = true
		g.going--
	}
	return g.going == 0
}

// close takes in the `close` of channel ch; snapshot: it completed an alignment (I6).
// A close without an end means that the sender gave up: its records are not all here.
func (g *gate) close(ch int) (snapshot bool, err error) {
	in := &g.inputs[ch]
	if !in.ended {
		return false, fmt.Errorf("channel %v closed before its end", in.id)
	}
	in.closed = true
	g.open--
	return len(g.align.Close(ch)) > 0, nil
}

// rows returns the batch that a records frame carries.
func (g *gate) rows(ch int, f weir.Frame) (*batch.Batch, error) {
	in := &g.inputs[ch]
	if in.ended {
		return nil, fmt.Errorf("channel %v carries records after its end", in.id)
	}
	if b, ok := f.Batch.(*batch.Batch); ok {
		return b, nil
	}
	b := in.pool.Get()
	if err := batch.Decode(f.Bytes, b); err != nil {
		return nil, fmt.Errorf("channel %v: %w", in.id, err)
	}
	return b, nil
}
