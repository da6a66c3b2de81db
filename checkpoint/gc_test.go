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
				return showKeys(Garbage(readManifests(t, lines, "discard", ""), readManifests(t, lines, "keep", "")))
			case "leftovers":
				prefix := JobPrefix(testJob)
				return showKeys(Leftovers(readKeys(lines), readRows(t, lines), readManifests(t, lines, "keep", prefix)))
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
			Pinned: slices.Contains(words, "pinned"), CommitsOpen: slices.Contains(words, "open"),
		})
	}
	return list
}

func readManifests(t *testing.T, lines []string, verb, prefix string) (list []*Manifest) {
	for _, line := range lines {
		head, objects, _ := strings.Cut(line, ":")
		rest, ok := strings.CutPrefix(head, verb+" ")
		if !ok {
			continue
		}
		m := &Manifest{Job: testJob, Checkpoint: weir.CheckpointID(num(t, rest)), Tasks: []TaskSnapshot{{Operators: []OperatorSnapshot{{}}}}}
		for _, object := range strings.Fields(objects) {
			op := &m.Tasks[0].Operators[0]
			op.Keyed = append(op.Keyed, Handle{Object: prefix + object})
		}
		list = append(list, m)
	}
	return list
}

func readRows(t *testing.T, lines []string) map[weir.CheckpointID]Record {
	rows := map[weir.CheckpointID]Record{}
	for _, line := range lines {
		if words := strings.Fields(line); words[0] == "row" {
			rows[weir.CheckpointID(num(t, words[1]))] = Record{Attempt: testAttempt, Status: Status(words[2]), Discarded: slices.Contains(words, "discarded")}
		}
	}
	return rows
}

func readKeys(lines []string) (keys []string) {
	for _, line := range lines {
		if key, ok := strings.CutPrefix(line, "key "); ok {
			keys = append(keys, JobPrefix(testJob)+key)
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
		var discarded, kept []*Manifest
		named := map[string]bool{} // by kept ones
		all := map[string]bool{}
		for id := range rapid.IntRange(0, 6).Draw(t, "manifests") {
			m := &Manifest{Job: testJob, Checkpoint: weir.CheckpointID(id + 1), Tasks: []TaskSnapshot{{Operators: []OperatorSnapshot{{}}}}}
			keep := rapid.Bool().Draw(t, "keep")
			for _, o := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 5).Draw(t, "objects") {
				key := fmt.Sprint(o)
				m.Tasks[0].Operators[0].Keyed = append(m.Tasks[0].Operators[0].Keyed, Handle{Object: key})
				named[key] = named[key] || keep
				all[key] = all[key] || !keep
			}
			if keep {
				kept = append(kept, m)
			} else {
				discarded = append(discarded, m)
			}
		}
		garbage := Garbage(discarded, kept)
		for key, given := range all {
			if want := given && !named[key]; slices.Contains(garbage, key) != want {
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
