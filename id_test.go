package weir_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weir"
)

func TestJobIDForm(t *testing.T) {
	t.Parallel()
	if id := weir.NewJobID(); !id.Valid() {
		t.Errorf("%q is not valid", id)
	}
	for _, s := range []string{"", "job_", "behaviors", "job_zz", "job_" + "0123456789abcdef0123456789abcdeg"} {
		if weir.JobID(s).Valid() {
			t.Errorf("%q is valid", s)
		}
	}
}

func TestAttemptIDText(t *testing.T) {
	t.Parallel()
	a := weir.NewAttemptID(7)
	got, err := weir.ParseAttemptID(a.String())
	if err != nil || got != a {
		t.Errorf("ParseAttemptID(%q) = %v, %v", a, got, err)
	}
	for _, s := range []string{"", "7", "x-1", "-1-a"} {
		if _, err := weir.ParseAttemptID(s); err == nil {
			t.Errorf("ParseAttemptID(%q) succeeded", s)
		}
	}
}

// Key groups are part of every snapshot: these values never change.
func TestKeyGroupGolden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hash uint64
		max  int
		want int
	}{
		{0, 1024, 0}, {1 << 54, 1024, 1}, {1<<54 - 1, 1024, 0}, {1 << 63, 1024, 512}, {1<<64 - 1, 1024, 1023}, {1<<64 - 1, 1, 0}, {0x9e3779b97f4a7c15, 1000, 618},
	} {
		if got := weir.KeyGroupOf(c.hash, c.max); got != c.want {
			t.Errorf("KeyGroupOf(%#x, %d) = %d, want %d", c.hash, c.max, got, c.want)
		}
	}
}

func TestKeyGroupsPartition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.IntRange(1, 5000).Draw(t, "maxParallelism")
		parallelism := rapid.IntRange(1, groups).Draw(t, "parallelism")
		next := 0
		for s := range parallelism {
			r := weir.KeyGroupsOf(s, parallelism, groups)
			if r.Start != next || r.Empty() {
				t.Fatalf("subtask %d owns %v after %d", s, r, next)
			}
			for g := r.Start; g < r.End; g++ {
				if got := weir.SubtaskOf(g, parallelism, groups); got != s {
					t.Fatalf("SubtaskOf(%d) = %d, its owner is %d", g, got, s)
				}
			}
			next = r.End
		}
		if next != groups {
			t.Fatalf("groups end at %d of %d", next, groups)
		}
	})
}

func TestStatusTransitions(t *testing.T) {
	t.Parallel()
	for _, from := range weir.Statuses() {
		reachable := fmt.Sprint()
		for _, to := range weir.Statuses() {
			if from.CanBecome(to) {
				reachable += string(to)
			}
		}
		if reachable == "" {
			t.Errorf("%s is a dead end", from)
		}
		if from.Terminal() && from.CanBecome(weir.StatusRunning) {
			t.Errorf("%s becomes RUNNING without being scheduled", from)
		}
		if from.CanBecome(from) {
			t.Errorf("%s becomes itself", from)
		}
	}
}
