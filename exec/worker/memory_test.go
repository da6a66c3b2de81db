package worker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"weir/exec/state"
)

// TestSharing runs scripts over what is shared out: "new" begins with a limit of the heap, and
// each line of "look" has figures in MiB: collections, live, scanned and overhead of the runtime,
// room for objects, and what state takes.
func TestSharing(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	var s sharing
	datadriven.RunTest(t, "testdata/sharing", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "new":
			var heap int64
			d.ScanArgs(t, "heap", &heap)
			s = sharing{heap: heap * mib}
			return ""
		case "look":
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				var h heapFigures
				var used int64
				if _, err := fmt.Sscanf(line, "gc=%d live=%d scan=%d overhead=%d room=%d state=%d", &h.cycles, &h.live, &h.scan, &h.overhead, &h.room, &used); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				h.live, h.scan, h.overhead, h.room = h.live*mib, h.scan*mib, h.overhead*mib, h.room*mib
				limit, percent := s.look(h, used*mib)
				fmt.Fprintf(&out, "state %d MiB, beside it %d MiB", limit/mib, s.beside/mib)
				if percent > 0 {
					fmt.Fprintf(&out, "; gc at %d %%", percent)
				}
				if s.free(h) {
					h.cycles += 2
					s.gave(h)
					out.WriteString("; freed")
				}
				out.WriteString("\n")
			}
			return out.String()
		}
		t.Fatalf("unknown command %s", d.Cmd)
		return ""
	})
}

// TestSharingBounds: whatever is measured, state has something, never more than half, and what else
// is live, and an eighth, lie beside it unless only the least is left.
func TestSharingBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := sharing{heap: rapid.Int64Range(40<<20, 1<<40).Draw(t, "heap")}
		amount := rapid.Int64Range(0, 2*s.heap)
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			h := heapFigures{cycles: s.cycles + rapid.Uint64Range(0, 2).Draw(t, "gc"), live: amount.Draw(t, "live"), scan: amount.Draw(t, "scan"), overhead: amount.Draw(t, "overhead")}
			used := amount.Draw(t, "state")
			limit, percent := s.look(h, used)
			if limit < s.heap/stateLeast || limit > s.heap/stateMost {
				t.Fatalf("limit %d of %d", limit, s.heap)
			}
			if limit > s.heap/stateLeast && limit+h.overhead+s.beside+s.heap/spareHeap > s.heap {
				t.Fatalf("limit %d, overhead %d, beside %d of %d", limit, h.overhead, s.beside, s.heap)
			}
			if percent != 0 && (percent < gcFewest || percent > gcMost) {
				t.Fatalf("%d percent", percent)
			}
		}
	})
}

// TestSharingWithoutLimit: nothing is limited, but a large state does not double.
func TestSharingWithoutLimit(t *testing.T) {
	t.Parallel()
	var s sharing
	limit, percent := s.look(heapFigures{cycles: 1, live: 4 << 30, scan: 10 << 20}, 4<<30)
	if limit != 0 || percent != 13 {
		t.Errorf("limit %d, %d percent", limit, percent)
	}
}

// TestSharingRelax: where state has more than it may, tasks that are idle are told too.
func TestSharingRelax(t *testing.T) {
	t.Parallel()
	told := 0
	budget := state.NewBudget(1 << 40)
	m := newMemory(Memory{State: budget}, func() { told++ })
	store := state.New(state.Options{MaxParallelism: 8, Budget: budget})
	table := store.Table("t", state.Layout{Words: 1})
	for i := range 1000 {
		table.Upsert(uint64(i)<<32, fmt.Appendf(nil, "%d", i))
	}
	if err := store.Relax(); err != nil {
		t.Fatal(err)
	}
	m.look()
	if told > 0 {
		t.Error("told although there is room")
	}
	budget.SetLimit(1000)
	m.look()
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
