package checkpoint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"weir"
)

func TestCollectionScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/gc", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			lines := strings.Split(d.Input, "\n")
			switch d.Cmd {
			case "discards":
				return fmt.Sprintf("%v\n", Discards(readRetained(t, lines), num(t, arg(d, "keep"))))
			case "garbage":
				row := Record{Job: testJob, ID: weir.CheckpointID(num(t, arg(d, "cp"))), Attempt: testAttempt, Status: StatusCompleted}
				if d.HasArg("status") {
					row.Status = Status(arg(d, "status"))
				}
				return showKeys(Garbage(row, readKeys(lines, "named"), readKeys(lines, "listed"), arg(d, "manifest") == "own", readHolds(t, lines)))
			case "leftovers":
				return showKeys(Leftovers(readKeys(lines, "key"), testAttempt, weir.CheckpointID(num(t, arg(d, "last"))), readHolds(t, lines)))
			case "purge":
				return showKeys(Purges(readKeys(lines, "key"), weir.CheckpointID(num(t, arg(d, "last"))), readHolds(t, lines)))
			case "behind":
				attempt, err := weir.ParseAttemptID(arg(d, "attempt"))
				if err != nil {
					t.Fatal(err)
				}
				s := FoundIn(testJob, readKeys(lines, "key"))
				return fmt.Sprintf("manifests %v, unknown %v: %q\n", s.Manifests, s.Unknown(weir.CheckpointID(num(t, arg(d, "last")))),
					s.Behind(weir.CheckpointID(num(t, arg(d, "last"))), attempt))
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

func readRetained(t *testing.T, lines []string) (list []Retained) {
	for _, line := range lines {
		words := strings.Fields(line)
		list = append(list, Retained{
			ID: weir.CheckpointID(num(t, words[0])), Type: Type(words[1]), Base: slices.Contains(words, "base"),
			Pinned: slices.Contains(words, "pinned"), Reused: slices.Contains(words, "reused"), CommitsOpen: slices.Contains(words, "open"),
		})
	}
	return list
}

// readHolds reads "keep 4: KEY…" and "unread 5 savepoint".
func readHolds(t *testing.T, lines []string) *Holds {
	h := &Holds{}
	for _, line := range lines {
		head, objects, _ := strings.Cut(line, ":")
		words := strings.Fields(head)
		switch words[0] {
		case "keep":
			var keys []string
			for _, object := range strings.Fields(objects) {
				keys = append(keys, JobPrefix(testJob)+object)
			}
			h.Keep(ManifestKey(testJob, weir.CheckpointID(num(t, words[1]))), keys)
		case "unread":
			h.KeepUnread(Retained{ID: weir.CheckpointID(num(t, words[1])), Type: Type(words[2])})
		}
	}
	return h
}

func readKeys(lines []string, verb string) (keys []string) {
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, verb+" "); ok {
			for _, key := range strings.Fields(rest) {
				keys = append(keys, JobPrefix(testJob)+key)
			}
		}
	}
	return keys
}

func showKeys(keys []string) string {
	if len(keys) == 0 {
		return "nothing\n"
	}
	return strings.ReplaceAll(strings.Join(keys, "\n"), JobPrefix(testJob), "") + "\n"
}

// TestGarbageKeepsNamed: whatever is given up, no object that a kept manifest names goes
// (I9), and none that only given-up ones name stays.
func TestGarbageKeepsNamed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		holds, named, all := &Holds{}, map[string]bool{}, map[string]bool{}
		given := map[weir.CheckpointID][]string{}
		for i := range rapid.IntRange(0, 6).Draw(t, "manifests") {
			id := weir.CheckpointID(i + 1)
			keep := rapid.Bool().Draw(t, "keep")
			var keys []string
			for _, o := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 5).Draw(t, "objects") {
				key := StateKey(testJob, testAttempt, "agg", 0, 1, o)
				keys = append(keys, key)
				named[key] = named[key] || keep
				all[key] = all[key] || !keep
			}
			if keep {
				holds.Keep(ManifestKey(testJob, id), keys)
			} else {
				given[id] = keys
			}
		}
		gone := map[string]bool{}
		for id, keys := range given {
			for _, key := range Garbage(Record{Job: testJob, ID: id, Attempt: testAttempt}, keys, nil, true, holds) {
				gone[key] = true
			}
		}
		for key, givenUp := range all {
			if want := givenUp && !named[key]; gone[key] != want {
				t.Fatalf("%s is garbage: %v, want %v", key, !want, want)
			}
		}
	})
}

func TestKeepAtEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		retention Retention
		status    weir.Status
		want      int
	}{
		{RetainOnCancellation, weir.StatusCanceled, 3},
		{DeleteOnCancellation, weir.StatusCanceled, 0},
		{RetainNone, weir.StatusCanceled, 0},
		{RetainOnCancellation, weir.StatusFailed, 3},
		{DeleteOnCancellation, weir.StatusFailed, 3},
		{RetainNone, weir.StatusFailed, 0},
		{RetainNone, weir.StatusStopped, 3},
		{RetainNone, weir.StatusFinished, 3},
	} {
		if got := (Options{Retention: c.retention}).KeepAtEnd(c.status); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.retention, c.status, got, c.want)
		}
	}
}
