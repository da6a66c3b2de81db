package state

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir"
	"weir/checkpoint"
)

// smallLimits make a chain merge soon.
func smallLimits() Limits { return Limits{Deltas: 4, Merged: 2, Bytes: 300, Runs: 3} }

// A chain stays short, and what is stored stays in proportion to what changes.
func TestCompactionIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := NewChain(0, nil, Limits{})
		n, changed, stored := 0, int64(0), int64(0)
		whole := rapid.Int64Range(1, 50_000_000).Draw(t, "whole")
		piece := func(size int64, delta bool) checkpoint.Handle {
			n++
			stored += size
			return checkpoint.Handle{Object: fmt.Sprint(n), Size: size, Delta: delta}
		}
		c.base = []checkpoint.Handle{piece(whole, false)}
		stored = 0
		most := rapid.Int64Range(1, 2_000_000).Draw(t, "delta")
		for id := range weir.CheckpointID(rapid.IntRange(1, 2000).Draw(t, "checkpoints")) {
			size := rapid.Int64Range(most/2+1, most).Draw(t, "size")
			changed += size
			c.Stored(id+1, append(slices.Clone(c.base), piece(size, true)))
			c.Rebase(id + 1)
			if handles, all := c.Compaction(); len(handles) > 0 {
				var sum int64
				for _, h := range handles {
					sum += h.Size
				}
				if all {
					sum = max(whole, 1)
				}
				c.Compacted(handles, []checkpoint.Handle{piece(sum, !all)})
			}
			if len(c.base) > c.limits.Deltas+1 {
				t.Fatalf("%d handles", len(c.base))
			}
		}
		if most := 4*changed + 4*c.limits.Bytes; stored > most && stored-whole > most {
			t.Fatalf("%d bytes stored for %d that changed, of %d", stored, changed, whole)
		}
	})
}
