package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/checkpoint"
)

var (
	seed    = flag.Uint64("seed", 0, "run this seed only and print its trace")
	first   = flag.Uint64("first", 1, "the first seed")
	seeds   = flag.Uint64("seeds", 60, "how many seeds to run")
	minutes = flag.Int("minutes", 0, "stop after so many minutes; 0: when the seeds are through")
)

// TestSeeds runs one simulated world after the other.
func TestSeeds(t *testing.T) {
	t.Parallel()
	if *seed != 0 {
		r := Run(*seed)
		t.Logf("%s\n%v", strings.Join(r.Trace, "\n"), r.Err)
		if r.Err != nil {
			t.Fatalf("script:\n%s", Shrink(*seed))
		}
		return
	}
	var ran, steps atomic.Int64
	var tallies sync.Mutex
	tally := Tally{}
	began := time.Now()
	t.Cleanup(func() {
		why := "all seeds are through"
		if *minutes > 0 && time.Since(began) > time.Duration(*minutes)*time.Minute {
			why = "the time is over"
		}
		t.Logf("%d seeds from %d, %d steps, %v: %s\n%v", ran.Load(), *first, steps.Load(), time.Since(began).Round(time.Millisecond), why, tally)
		if ran.Load() >= 2000 && !t.Failed() {
			checkReached(t, tally)
		}
	})
	const groups = 8
	for g := range uint64(groups) {
		t.Run(fmt.Sprintf("group %d", g), func(t *testing.T) {
			t.Parallel()
			for s := g; s < *seeds; s += groups {
				if *minutes > 0 && time.Since(began) > time.Duration(*minutes)*time.Minute {
					return
				}
				r := Run(*first + s)
				ran.Add(1)
				steps.Add(int64(r.Steps))
				tallies.Lock()
				tally.Add(r.Tally)
				tallies.Unlock()
				if r.Err != nil {
					t.Fatalf("%v\n%s\n\nas a script for testdata/regress:\n%s", r.Err, strings.Join(r.Trace, "\n"), Shrink(*first+s))
				}
			}
		})
	}
}

// checkReached: whatever may go wrong did, and whatever may come of it came: a fault that
// is never reached proves nothing.
func checkReached(t *testing.T, tally Tally) {
	t.Helper()
	want := []string{
		"call: before", "call: after", "call: slow", "call: no answer", "call: of a zombie", "call: the server dies", "call: the worker dies",
		"message: ack drop", "message: ack repeat", "message: committed drop", "message: committed repeat",
		"message: ended drop", "message: ended repeat", "message: stop drop", "message: stop repeat",
		"request: started", "request: queued", "request: joined", "request: refused", "request: canceled",
		"checkpoint: completed", "checkpoint: completed, the final one", "checkpoint: aborted canceled", "checkpoint: aborted superseded",
		"savepoint: completed", "savepoint: aborted canceled", "savepoint: failed declined",
		"attempt: at another parallelism", "attempt: by a new server", "attempt: from nothing", "attempt: from a snapshot", "attempt: gives up",
		"job: becomes STOPPED", "job: becomes CANCELED", "job: becomes FINISHED", "job: becomes FAILED, metastore_behind",
		"decision: read back", "decision: under at_least_once", "decision: some tasks had finished (I12)", "incident: adopt",
	}
	for _, what := range []string{
		"all merged", "some deltas merged", "a merge fails", "a merge comes too late", "a snapshot is given up", "of another job is copied", "a cut between two barriers",
		"snapshot of a savepoint", "snapshot over nothing", "snapshot of one run", "snapshot of several runs", "snapshot with an inline tail", "snapshot of what has not changed",
	} {
		want = append(want, "state: "+what)
	}
	for _, k := range kinds {
		want = append(want, "incident: "+k.name)
	}
	for _, d := range checkpoint.ReasonDocs() {
		if d.Counts {
			want = append(want, "checkpoint: failed "+d.Reason)
		}
	}
	for _, what := range want {
		if tally[what] == 0 {
			t.Errorf("never reached: %s", what)
		}
	}
}

// TestScripts runs what failing seeds left behind.
func TestScripts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/regress/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if r := Replay(string(script)); r.Err != nil {
				t.Errorf("%v\n%s", r.Err, strings.Join(r.Trace, "\n"))
			}
		})
	}
}

// TestSameSeedSameTrace: a failing seed can be looked at again, by its seed and by its
// script.
func TestSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	for s := uint64(1); s <= 6; s++ {
		one, two := Run(s), Run(s)
		if a, b := strings.Join(one.Trace, "\n"), strings.Join(two.Trace, "\n"); a != b {
			t.Errorf("the runs of seed %d differ:\n%s\n\n%s", s, a, b)
		}
		again := Replay(one.Script)
		if a, b := strings.Join(one.Trace, "\n"), strings.Join(again.Trace, "\n"); a != b {
			t.Errorf("seed %d and its script differ:\n%s\n\n%s", s, a, b)
		}
	}
}
