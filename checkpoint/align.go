package checkpoint

import (
	"fmt"
	"slices"

	"weir"
)

// maxOpenAlignments bounds what an at-least-once aligner tracks; the oldest gives way.
const maxOpenAlignments = 64

// An Aligner decides which input channels of one subtask may be read while the
// barriers of a checkpoint arrive. It buffers nothing: a held channel is simply not
// read, so the transport's back-pressure keeps its records upstream.
//
// Under exactly-once one checkpoint aligns at a time. Under at-least-once no channel is
// held, every open checkpoint is tracked, and a record behind a barrier may be in its
// snapshot.
type Aligner struct {
	mode    Mode
	open    []int             // channels that have not closed (I6)
	waiting []alignment       // that still miss a barrier, ascending; exactly-once: one at most
	last    weir.CheckpointID // newest that aligned
}

// An alignment is a checkpoint and the open channels whose barrier for it has arrived.
type alignment struct {
	id      weir.CheckpointID
	arrived []int
}

// NewAligner returns an aligner of channels 0 to channels-1, all of them open.
func NewAligner(channels int, mode Mode) *Aligner {
	a := &Aligner{mode: mode, open: make([]int, channels)}
	for ch := range a.open {
		a.open[ch] = ch
	}
	return a
}

// Barrier records that the barrier of checkpoint id arrived on ch. It returns true
// when no barrier of id is missing: the subtask snapshots id before it reads on, and
// what was held for it may be read again. A barrier that is not newer than the last
// that aligned is ignored (I4), and so is one older than Current under exactly-once,
// where a newer one abandons Current and holds afresh (I5).
func (a *Aligner) Barrier(ch int, id weir.CheckpointID) (aligned bool) {
	if a.Held(ch) {
		panic(fmt.Sprintf("checkpoint: read held channel %d (I3)", ch))
	}
	if !slices.Contains(a.open, ch) {
		panic(fmt.Sprintf("checkpoint: barrier %d on closed channel %d", id, ch))
	}
	if id <= a.last || a.mode != AtLeastOnce && id < a.Current() {
		return false
	}
	w := a.alignment(id)
	if !slices.Contains(w.arrived, ch) {
		w.arrived = append(w.arrived, ch)
	}
	return slices.Contains(a.release(), id)
}

// alignment returns that of id, begun now if need be.
func (a *Aligner) alignment(id weir.CheckpointID) *alignment {
	for i := range a.waiting {
		if a.waiting[i].id == id {
			return &a.waiting[i]
		}
	}
	if n := len(a.waiting); n == maxOpenAlignments || n > 0 && a.mode != AtLeastOnce {
		a.waiting = slices.Delete(a.waiting, 0, 1)
	}
	i := len(a.waiting)
	for i > 0 && a.waiting[i-1].id > id {
		i--
	}
	a.waiting = slices.Insert(a.waiting, i, alignment{id: id})
	return &a.waiting[i]
}

// Close records that nothing follows on ch: it counts as aligned from now on (I6),
// whether its barrier had arrived or not. It returns the checkpoints that missed only
// ch's barrier, oldest first: the subtask snapshots each.
func (a *Aligner) Close(ch int) (aligned []weir.CheckpointID) {
	is := func(c int) bool { return c == ch }
	a.open = slices.DeleteFunc(a.open, is)
	for i := range a.waiting {
		a.waiting[i].arrived = slices.DeleteFunc(a.waiting[i].arrived, is)
	}
	return a.release()
}

// release takes out what misses no barrier any more; what is older than it never will
// be whole.
func (a *Aligner) release() (aligned []weir.CheckpointID) {
	drop := 0
	for i, w := range a.waiting {
		if len(w.arrived) == len(a.open) {
			aligned, a.last, drop = append(aligned, w.id), w.id, i+1
		}
	}
	a.waiting = slices.Delete(a.waiting, 0, drop)
	return aligned
}

// Held reports whether ch must not be read (I3).
func (a *Aligner) Held(ch int) bool {
	return a.mode != AtLeastOnce && len(a.waiting) > 0 && slices.Contains(a.waiting[0].arrived, ch)
}

// Missing lists the open channels whose barrier of id has not arrived, in order: none
// once it has aligned.
func (a *Aligner) Missing(id weir.CheckpointID) []int {
	if id <= a.last {
		return nil
	}
	missing := slices.Clone(a.open)
	for _, w := range a.waiting {
		if w.id == id {
			missing = slices.DeleteFunc(missing, func(ch int) bool { return slices.Contains(w.arrived, ch) })
		}
	}
	return missing
}

// Open lists the checkpoints of which some barriers have arrived and some not, ascending.
func (a *Aligner) Open() []weir.CheckpointID {
	open := make([]weir.CheckpointID, len(a.waiting))
	for i, w := range a.waiting {
		open[i] = w.id
	}
	return open
}

// Current is the newest checkpoint whose barrier arrived; 0: none yet.
func (a *Aligner) Current() weir.CheckpointID {
	if n := len(a.waiting); n > 0 {
		return a.waiting[n-1].id
	}
	return a.last
}
