package state

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
)

// P07: a compaction that ends while snapshots are being stored is not lost with them: they
// name what they were begun with, later ones what it made. So a slow storage, in which every
// compaction meets a snapshot, does not have the chain grow, nor whole states pile up.
func TestCompactionBesideSnapshots(t *testing.T) {
	t.Parallel()
	c := NewChain(0, nil, Limits{})
	piece := func(name string, size int64, delta bool) checkpoint.Handle {
		return checkpoint.Handle{Object: name, Size: size, Delta: delta}
	}
	c.base = []checkpoint.Handle{piece("whole", 100_000, false), piece("delta", 100_000, true)}
	for id := weir.CheckpointID(1); id <= 100; id++ {
		c.Add(id, nil, false)
		c.Rebase(id - 1)
		begun := c.Snapshot(false).Kept // its upload begins
		handles, whole := c.Compaction()
		if len(handles) > 0 {
			if !whole || !c.Compacted(handles, []checkpoint.Handle{piece(fmt.Sprint("full-", id), 100_000, false)}) {
				t.Fatalf("%d: %v, whole %v", id, handles, whole)
			}
		}
		c.Stored(id, append(begun, piece(fmt.Sprint("delta-", id), 30_000, true)))
	}
	c.Rebase(100)
	if len(c.base) > 6 || len(c.merged) > 1 || len(c.stored) > 0 {
		t.Errorf("base %v, %d compactions and %d snapshots are remembered", c.base, len(c.merged), len(c.stored))
	}
}

// A compaction of handles that the base holds no more is of no use: it says so, so that its
// objects are deleted.
func TestCompactionTooLate(t *testing.T) {
	t.Parallel()
	c := NewChain(0, nil, Limits{})
	c.base = []checkpoint.Handle{{Object: "whole", Size: 100_000}, {Object: "delta", Size: 100_000, Delta: true}}
	handles, _ := c.Compaction()
	c.Add(1, nil, false)
	c.Stored(1, []checkpoint.Handle{{Object: "other", Size: 7}})
	c.Rebase(1)
	if c.Compacted(handles, []checkpoint.Handle{{Object: "full", Size: 5}}) {
		t.Error("what the base does not hold was put there")
	}
	if diff := cmp.Diff([]checkpoint.Handle{{Object: "other", Size: 7}}, c.base); diff != "" {
		t.Error(diff)
	}
}

// The inline delta at a chain's end, which each snapshot writes anew, keeps no compaction
// from its use.
func TestCompactionLeavesTail(t *testing.T) {
	t.Parallel()
	c := NewChain(0, nil, Limits{})
	tail := func(n byte) checkpoint.Handle {
		return checkpoint.Handle{Size: 100, Delta: true, Inline: []byte{n}}
	}
	c.base = []checkpoint.Handle{{Object: "whole", Size: 100_000}, {Object: "delta", Size: 100_000, Delta: true}, tail(1)}
	handles, whole := c.Compaction()
	c.Add(1, nil, false)
	c.Stored(1, append(c.Snapshot(false).Kept[:2:2], tail(2)))
	c.Rebase(1)
	if !whole || !c.Compacted(handles, []checkpoint.Handle{{Object: "full", Size: 100_000}}) {
		t.Fatalf("%v, whole %v", handles, whole)
	}
	if diff := cmp.Diff([]checkpoint.Handle{{Object: "full", Size: 100_000}, tail(2)}, c.base); diff != "" {
		t.Error(diff)
	}
}

// P08: a compaction that fails is tried again soon, and after longer and longer pauses: storage
// may be down for one checkpoint, or for good.
func TestCompactionTriedAgain(t *testing.T) {
	t.Parallel()
	c := NewChain(0, nil, Limits{})
	c.base = []checkpoint.Handle{{Object: "whole", Size: 100_000}, {Object: "delta", Size: 100_000, Delta: true}}
	var tried []weir.CheckpointID
	for id := weir.CheckpointID(1); id <= 40; id++ {
		c.Add(id, nil, false)
		if handles, _ := c.Compaction(); len(handles) > 0 {
			tried = append(tried, id)
			c.Postpone()
		}
	}
	if diff := cmp.Diff([]weir.CheckpointID{1, 2, 5, 12, 22, 32}, tried); diff != "" {
		t.Error(diff)
	}
}
