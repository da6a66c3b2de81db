package exec

import (
	"fmt"
	"slices"
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
	next   int         // the channel to look at first
	open   int         // inputs that have not closed
	going  int         // inputs that have not ended
	begun  []alignment // those that still miss barriers, ascending
}

// An alignment is the barriers of one checkpoint on their way into a task. A source,
// which is triggered, has no firstAt and no last.
type alignment struct {
	id      weir.CheckpointID
	origin  origin
	firstAt time.Time    // when its first barrier came
	last    *weir.TaskID // whose barrier, or close, came last
}

type input struct {
	id     weir.ChannelID
	ch     weir.Inbound
	pool   *batch.Pool // for decoded batches
	ended  bool
	closed bool
}

func newGate(inputs []input, mode checkpoint.Mode) *gate {
	return &gate{inputs: inputs, align: checkpoint.NewAligner(len(inputs), mode), open: len(inputs), going: len(inputs)}
}

// poll returns the next frame of a channel that is open and not held, and the
// channel's index; false when there is none. A broken channel is an error.
func (g *gate) poll() (weir.Frame, int, bool, error) {
	for range g.inputs {
		i := g.next
		if g.next++; g.next == len(g.inputs) {
			g.next = 0
		}
		if g.inputs[i].closed || g.align.Held(i) {
			continue
		}
		if f, ok, err := g.inputs[i].ch.Poll(); ok || err != nil {
			return f, i, ok, err
		}
	}
	return weir.Frame{}, 0, false, nil
}

// barrier takes in the barrier of id on channel ch; true: snapshot now.
func (g *gate) barrier(ch int, id weir.CheckpointID, o origin, now time.Time) (alignment, bool) {
	if !slices.ContainsFunc(g.begun, func(a alignment) bool { return a.id == id }) {
		g.begun = append(g.begun, alignment{id: id, origin: o, firstAt: now})
	}
	var aligned []weir.CheckpointID
	if g.align.Barrier(ch, id) {
		aligned = []weir.CheckpointID{id}
	}
	if done := g.settle(ch, aligned); len(done) > 0 {
		return done[0], true
	}
	return alignment{}, false
}

// settle takes out what has aligned, by a frame of channel ch, and what the aligner
// has given up.
func (g *gate) settle(ch int, aligned []weir.CheckpointID) (done []alignment) {
	from := g.inputs[ch].id.From
	for _, id := range aligned {
		for _, a := range g.begun {
			if a.id == id {
				a.last = &from
				done = append(done, a)
			}
		}
	}
	open := g.align.Open()
	g.begun = slices.DeleteFunc(g.begun, func(a alignment) bool { return !slices.Contains(open, a.id) })
	return done
}

// end takes in the `end` of channel ch; true: no input has more records.
func (g *gate) end(ch int) bool {
	if in := &g.inputs[ch]; !in.ended {
		in.ended = true
		g.going--
	}
	return g.going == 0
}

// close takes in the `close` of channel ch and returns the alignments that it
// completed (I6), oldest first: a snapshot for each. A close without an end means that
// the sender gave up: its records are not all here.
func (g *gate) close(ch int) ([]alignment, error) {
	in := &g.inputs[ch]
	if !in.ended {
		return nil, fmt.Errorf("channel %v closed before its end", in.id)
	}
	in.closed = true
	g.open--
	return g.settle(ch, g.align.Close(ch)), nil
}

// awaited says whose barriers are missing: of every checkpoint that aligns, and of any
// other that comes.
func (g *gate) awaited() (aligning []awaited, next []weir.TaskID) {
	for _, a := range g.begun {
		aligning = append(aligning, awaited{a.id, a.firstAt, g.senders(g.align.Missing(a.id))})
	}
	for i := range g.inputs {
		if !g.inputs[i].closed {
			next = append(next, g.inputs[i].id.From)
		}
	}
	return aligning, next
}

func (g *gate) senders(channels []int) []weir.TaskID {
	list := make([]weir.TaskID, len(channels))
	for i, ch := range channels {
		list[i] = g.inputs[ch].id.From
	}
	slices.SortFunc(list, weir.TaskID.Compare)
	return list
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
