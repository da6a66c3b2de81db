package exec

import (
	"slices"
	"testing"

	"weir"
	"weir/checkpoint"
)

// What is said again, since an answer was lost, is there once; and a trigger has come also
// when the loop has taken it and is held up by the one before it.
func TestMailboxSaidAgain(t *testing.T) {
	t.Parallel()
	m := newMailbox()
	for range 3 {
		for id := range weir.CheckpointID(2) {
			m.trigger(checkpoint.Trigger{Checkpoint: id + 1})
			m.commit(id + 1)
		}
	}
	l, ok := m.take()
	if !ok || len(l.triggers) != 2 || !slices.Equal(l.commits, []weir.CheckpointID{1, 2}) {
		t.Errorf("%+v", l)
	}
	if !m.triggered(1) || !m.triggered(2) || m.triggered(3) {
		t.Error("a trigger that was taken has not come")
	}
	m.trigger(checkpoint.Trigger{Checkpoint: 2})
	m.commit(2) // it may have been taken before this was said
	if l, _ = m.take(); len(l.triggers) != 0 || len(l.commits) != 1 {
		t.Errorf("%+v", l)
	}
	for id := range weir.CheckpointID(500) {
		m.trigger(checkpoint.Trigger{Checkpoint: id})
	}
	if n := len(m.mu.came); n != triggersKept {
		t.Errorf("%d triggers are remembered", n)
	}
}
