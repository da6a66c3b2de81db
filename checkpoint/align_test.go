package checkpoint

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"weir"
)

func TestAlignScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/align", func(t *testing.T, path string) {
		var a *Aligner
		channels := 0
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) (out string) {
			defer func() {
				if p := recover(); p != nil {
					out = fmt.Sprintf("panic: %v\n", p)
				}
			}()
			var ch, cp int
			var snapshots []weir.CheckpointID
			switch d.Cmd {
			case "gate":
				d.ScanArgs(t, "channels", &channels)
				mode := ExactlyOnce
				if d.HasArg("at_least_once") {
					mode = AtLeastOnce
				}
				a = NewAligner(channels, mode)
			case "barrier":
				d.ScanArgs(t, "ch", &ch)
				d.ScanArgs(t, "cp", &cp)
				if a.Barrier(ch, weir.CheckpointID(cp)) {
					snapshots = append(snapshots, weir.CheckpointID(cp))
				}
			case "close":
				d.ScanArgs(t, "ch", &ch)
				snapshots = a.Close(ch)
			default:
				d.Fatalf(t, "unknown command")
			}
			for _, id := range snapshots {
				out += fmt.Sprintf("snapshot cp=%d\n", id)
			}
			return out + fmt.Sprintf("held: %v\n", held(a, channels))
		})
	})
}

func held(a *Aligner, channels int) []int {
	list := []int{}
	for ch := range channels {
		if a.Held(ch) {
			list = append(list, ch)
		}
	}
	return list
}

// TestAlignAgainstNaive compares the aligner with a second version that keeps what
// every channel has sent and works each answer out from that.
func TestAlignAgainstNaive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const newest = 6
		n := rapid.IntRange(1, 4).Draw(t, "channels")
		a := NewAligner(n, ExactlyOnce)
		last := make([]weir.CheckpointID, n) // newest barrier sent by each channel
		closed := make([]bool, n)
		var cur, done weir.CheckpointID
		isHeld := func(ch int) bool { return cur > done && last[ch] == cur && !closed[ch] }
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			ch := rapid.IntRange(0, n-1).Draw(t, "ch")
			if closed[ch] || isHeld(ch) {
				continue
			}
			var got bool
			if rapid.IntRange(0, 9).Draw(t, "close") == 0 {
				closed[ch] = true
				got = len(a.Close(ch)) > 0
			} else {
				if last[ch] == newest {
					continue
				}
				last[ch] += weir.CheckpointID(rapid.Int64Range(1, int64(newest-last[ch])).Draw(t, "skip"))
				cur = max(cur, last[ch])
				got = a.Barrier(ch, last[ch])
			}
			missing := slices.ContainsFunc(seq(n), func(c int) bool { return !closed[c] && last[c] != cur })
			want := cur > done && !missing
			if want {
				done = cur
			}
			if got != want || a.Current() != cur {
				t.Fatalf("aligned %v (current %d), want %v (%d)", got, a.Current(), want, cur)
			}
			for c := range n {
				if a.Held(c) != isHeld(c) {
					t.Fatalf("channel %d held: %v, want %v", c, a.Held(c), isHeld(c))
				}
			}
		}
	})
}

// TestAlignAtLeastOnceAgainstNaive does so for at-least-once: nothing is ever held, and
// an id aligns when every open channel has sent it, unless a newer one has.
func TestAlignAtLeastOnceAgainstNaive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "channels")
		a := NewAligner(n, AtLeastOnce)
		sent, closed := make([][]weir.CheckpointID, n), make([]bool, n)
		var done, newest weir.CheckpointID
		missing := func(id weir.CheckpointID) (list []int) {
			for ch := range n {
				if id > done && !closed[ch] && !slices.Contains(sent[ch], id) {
					list = append(list, ch)
				}
			}
			return list
		}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			ch := rapid.IntRange(0, n-1).Draw(t, "ch")
			if closed[ch] {
				continue
			}
			var got, want []weir.CheckpointID
			if rapid.IntRange(0, 9).Draw(t, "close") == 0 {
				closed[ch] = true
				got = a.Close(ch)
			} else {
				id := weir.CheckpointID(rapid.IntRange(1, 8).Draw(t, "id"))
				if id > done {
					sent[ch], newest = append(sent[ch], id), max(newest, id)
				}
				if a.Barrier(ch, id) {
					got = append(got, id)
				}
			}
			for id := done + 1; id <= newest; id++ {
				if slices.ContainsFunc(sent, func(ids []weir.CheckpointID) bool { return slices.Contains(ids, id) }) && missing(id) == nil {
					want = append(want, id)
				}
			}
			if len(want) > 0 {
				done = want[len(want)-1]
			}
			if !slices.Equal(got, want) || a.Current() != newest || len(held(a, n)) > 0 {
				t.Fatalf("aligned %v, current %d, held %v; want %v, %d and none", got, a.Current(), held(a, n), want, newest)
			}
			for id := range newest {
				if m := a.Missing(id + 1); !slices.Equal(m, missing(id+1)) {
					t.Fatalf("checkpoint %d misses %v, want %v", id+1, m, missing(id+1))
				}
			}
		}
	})
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}
