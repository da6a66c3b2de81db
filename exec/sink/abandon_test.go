package sink

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir"
)

// Output that was given up does not come back: the sealed files go, what was published of
// it stays, and what follows is published, at another parallelism too. Whoever ends before
// its first checkpoint begins with the same again.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	table := numbers("csv", dir)
	var given, kept []json.RawMessage
	for i := range 2 {
		s := open(t, setupOf(table, dir, 1, i, 2))
		for barrier := range int64(3) {
			process(t, s, ints(10*int64(i)+barrier))
			snapshot(t, s, weir.CheckpointID(barrier+1))
		}
		items := snapshot(t, s, 3)
		given, kept = append(given, items[:2]...), append(kept, items[2:]...)
		if i == 1 { // it had published one of its two, and not let go of the sealed file
			if err := s.folder.publish(&s.segments[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := s.folder.mark(s.segments[:1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	restore := func(attempt int64, subtask int) *filesystem {
		setup := setupOf(table, dir, attempt, subtask, 3)
		setup.Restored, setup.List, setup.GivenUp = true, kept, given
		return open(t, setup)
	}
	var all []*filesystem
	for attempt := range int64(2) { // the first one ends before it does anything
		all = nil
		for subtask := range 3 {
			all = append(all, restore(attempt+2, subtask))
		}
		sealed := slices.DeleteFunc(names(t, dir), func(n string) bool { return !strings.Contains(n, "-1-00000001") })
		if len(sealed) != 2 {
			t.Errorf("attempt %d: sealed files of what was given up: %v", attempt+2, sealed)
		}
	}
	process(t, all[2], ints(100))
	for _, s := range all {
		snapshot(t, s, 4)
		commit(t, s, 4)
	}
	if got := published(t, dir); !slices.Equal(got, []int64{2, 10, 12, 100}) {
		t.Errorf("published: %v", got)
	}
	if left := names(t, dir); !slices.Contains(left, ".weir-"+string(job)+"-sink_out-1-done-3") {
		t.Errorf("no marker of the last segment: %v", left)
	}
}

// A job that starts from another one's snapshot leaves that one's given-up output out, in
// whichever folder, and its files alone.
func TestGivenUpByAnother(t *testing.T) {
	t.Parallel()
	dir, other := tempDir(t), tempDir(t)
	first := open(t, setupOf(numbers("csv", dir), dir, 1, 0, 1))
	process(t, first, ints(1))
	given := snapshot(t, first, 5)
	for _, folder := range []string{dir, other} {
		setup := setupOf(numbers("csv", folder), folder, 1, 0, 1)
		setup.Job = "job_00000000000000000000000000000002"
		setup.Restored, setup.List, setup.GivenUp = true, nil, given
		s := open(t, setup)
		process(t, s, ints(2))
		snapshot(t, s, 6)
		commit(t, s, 6)
		if got := published(t, folder); !slices.Equal(got, []int64{2}) {
			t.Errorf("published: %v", got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, first.segments[0].Temp)); err != nil {
		t.Error(err)
	}
}
