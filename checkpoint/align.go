package checkpoint

import (
	"fmt"
	"slices"

	"weir"
)

// An Aligner decides which input channels of one subtask may be read while the
// barriers of a checkpoint arrive. It buffers nothing: a held channel is simply not
// read, so the transport's back-pressure keeps its records upstream.
type Aligner struct {
	open     []int // channels that have not closed (I6)
	held     []int // open channels whose barrier for cur has arrived
	cur      weir.CheckpointID
	aligning bool // cur still misses a barrier
}

// NewAligner returns an aligner of channels 0 to channels-1, all of them open.
func NewAligner(channels int) *Aligner {
	a := &Aligner{open: make([]int, channels), held: make([]int, 0, channels)}
	for ch := range a.open {
		a.open[ch] = ch
	}
	return a
}

// Barrier records that the barrier of checkpoint id arrived on ch. It returns true
// when no barrier is missing: the subtask snapshots Current before it reads on, and
// every channel may be read again. A barrier not newer than one already aligned, or
// older than Current, is ignored (I4); a newer one abandons Current and holds afresh
// (I5).
func (a *Aligner) Barrier(ch int, id weir.CheckpointID) (aligned bool) {
	if a.Held(ch) {
		panic(fmt.Sprintf("checkpoint: read held channel %d (I3)", ch))
	}
	if !slices.Contains(a.open, ch) {
		panic(fmt.Sprintf("checkpoint: barrier %d on closed channel %d", id, ch))
	}
	if id < a.cur || id == a.cur && !a.aligning {
		return false
	}
	if id > a.cur {
		a.cur, a.aligning, a.held = id, true, a.held[:0]
	}
	a.held = append(a.held, ch)
	return a.release()
}

// Close records that nothing follows on ch: it counts as aligned from now on (I6),
// whether its barrier had arrived or not. It returns true when ch was the last one
// missing, as Barrier does.
func (a *Aligner) Close(ch int) (aligned bool) {
	is := func(c int) bool { return c == ch }
	a.open = slices.DeleteFunc(a.open, is)
	a.held = slices.DeleteFunc(a.held, is)
	return a.release()
}

// release lets all channels be read once every open one is held.
func (a *Aligner) release() bool {
	if !a.aligning || len(a.held) < len(a.open) {
		return false
	}
	a.aligning, a.held = false, a.held[:0]
	return true
}

// Held reports whether ch must not be read (I3).
func (a *Aligner) Held(ch int) bool { return slices.Contains(a.held, ch) }

// Aligning reports whether Current still misses a barrier.
func (a *Aligner) Aligning() bool { return a.aligning }

// Current is the newest checkpoint whose barrier arrived; 0: none yet.
func (a *Aligner) Current() weir.CheckpointID { return a.cur }
