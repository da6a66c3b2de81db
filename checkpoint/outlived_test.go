package checkpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
)

// P08: a full state that only a snapshot named which did not complete goes once a kept snapshot
// names a later one of its subtask; what lies there for another reason stays.
func TestOutlived(t *testing.T) {
	t.Parallel()
	full := func(subtask, n int) string { return FullKey(testJob, testAttempt, "agg", subtask, n) }
	keys := []string{full(0, 1), full(0, 2), full(0, 3), full(0, 4), full(0, 10), full(1, 1), StateKey(testJob, testAttempt, "agg", 0, 7, 0)}
	h := &Holds{}
	h.Keep(ManifestKey(testJob, 9), []string{full(0, 2), full(0, 4)})
	if diff := cmp.Diff([]string{full(0, 1), full(0, 3)}, Outlived(keys, h)); diff != "" {
		t.Error(diff)
	}
	h.KeepUnread(Retained{ID: weir.CheckpointID(8), Type: TypeCheckpoint})
	if left := Outlived(keys, h); len(left) > 0 {
		t.Errorf("%v, though the manifest of a kept checkpoint cannot be read", left)
	}
}
