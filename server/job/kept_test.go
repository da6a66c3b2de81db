package job_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// manyCounts has 20,000 keys: packed, the state of a third of them still does not travel in the
// acks. It runs until the test awaits its end.
const manyCounts = `
CREATE TABLE numbers (k INT, v BIGINT) WITH (
  'connector' = 'datagen', 'number-of-rows' = '60000', 'rows-per-second' = '30000',
  'fields.k.kind' = 'sequence', 'fields.k.start' = '0', 'fields.k.end' = '59999',
  'fields.v.kind' = 'sequence', 'fields.v.start' = '0', 'fields.v.end' = '59999');
SELECT COUNT(*) AS key, SUM(n) AS n, SUM(total) AS total FROM
  (SELECT k % 20000 AS key, COUNT(*) AS n, SUM(v) AS total FROM numbers GROUP BY k % 20000)`

// TestKeptState: of three workers, or two, one is killed. The others restore what they had
// stored themselves from their copies, and only what the dead one had stored from storage;
// what is wrong with a copy comes from storage, too.
func TestKeptState(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		workers []string
		harm    func(path string) error // done to each copy before the kill
	}{
		{"three", []string{"w1", "w2", "w3"}, nil},
		{"damaged", []string{"w1", "w2"}, func(path string) error {
			data, err := os.ReadFile(path)
			if err == nil {
				data[len(data)/2] ^= 1
				err = os.WriteFile(path, data, 0o600)
			}
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := jobtest.New(t)
			c.KeepBytes = 64 << 20
			s := c.Server("s1")
			stores, shared := map[string]*blob.Faulty{}, c.Blobs
			for _, w := range tc.workers {
				stores[w] = blob.NewFaulty(shared, func(blob.Call) blob.Fault { return blob.Fault{} })
				c.Blobs = stores[w]
				c.Worker(w, 4)
			}
			c.Heard(s, len(tc.workers))
			runKept(t, c, s, len(tc.workers))
			dead := tc.workers[0]
			if tc.harm != nil {
				for _, path := range copies(t, c.Kept("w2")) {
					if err := tc.harm(path); err != nil {
						t.Fatal(err)
					}
				}
			}
			c.Kill(dead)
			j := c.Await(s, "many", weir.StatusFinished, weir.StatusFailed)
			if diff := cmp.Diff([]string{`{"key":20000,"n":60000,"total":1799970000}`}, rows(t, s, "many", "")); diff != "" || j.Attempt.Number != 2 || j.RestoredFrom.IsZero() {
				t.Errorf("%s in attempt %v from %v, %+v; result (-want +got):\n%s", j.Status, j.Attempt, j.RestoredFrom, j.Failure, diff)
			}
			var put, got []string
			for _, w := range tc.workers[1:] {
				put, got = append(put, stateCalls(stores[w], "Put")...), append(got, stateCalls(stores[w], "Get")...)
			}
			own := slices.ContainsFunc(got, func(key string) bool { return slices.Contains(put, key) })
			if own != (tc.harm != nil) || len(got) == 0 {
				t.Errorf("those that live put\n%v\nand got\n%v", put, got)
			}
		})
	}
}

// TestKeptOverRestart: workers that are started again with their folders, one of them or, with
// the server, all, get the subtasks that they had, and restore from their copies alone.
func TestKeptOverRestart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		slots int
		dead  []string
	}{
		{"one", 1, []string{"w2"}},                   // there is no room for its subtask elsewhere
		{"all", 4, []string{"s1", "w1", "w2", "w3"}}, // each might have any of them
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := jobtest.New(t)
			c.KeepBytes = 64 << 20
			s := c.Server("s1")
			stores, shared := map[string]*blob.Faulty{}, c.Blobs
			start := func(w string) {
				if stores[w] == nil {
					stores[w] = blob.NewFaulty(shared, func(blob.Call) blob.Fault { return blob.Fault{} })
				}
				c.Blobs = stores[w]
				c.Worker(w, tc.slots)
			}
			workers := []string{"w1", "w2"}
			if tc.name == "all" {
				workers = append(workers, "w3")
				start("w3") // alone: it is not the one that would be chosen first
			}
			start("w2")
			c.Heard(s, len(workers)-1)
			if tc.name == "one" {
				start("w1")
				c.Heard(s, 2)
			}
			runKept(t, c, s, 2)
			if tc.name == "all" {
				start("w1")
				c.Heard(s, 3)
			}
			for _, name := range tc.dead {
				c.Kill(name)
			}
			for _, name := range tc.dead {
				if c.Blobs = shared; name == "s1" {
					withhold := func(string) bool { return true } // until all are heard
					c.LoseLease.Store(&withhold)
					s = c.Server(name)
				} else {
					start(name)
				}
			}
			c.Heard(s, len(workers))
			c.LoseLease.Store(nil)
			j := c.Await(s, "many", weir.StatusFinished, weir.StatusFailed)
			if diff := cmp.Diff([]string{`{"key":20000,"n":60000,"total":1799970000}`}, rows(t, s, "many", "")); diff != "" || j.Attempt.Number != 2 || j.RestoredFrom.IsZero() {
				t.Errorf("%s in attempt %v from %v, %+v; result (-want +got):\n%s", j.Status, j.Attempt, j.RestoredFrom, j.Failure, diff)
			}
			for _, w := range workers {
				if got := stateCalls(stores[w], "Get"); len(got) > 0 {
					t.Errorf("%s read %v from storage", w, got)
				}
			}
		})
	}
}

// runKept runs the job until it has three checkpoints; there is no other after that.
func runKept(t *testing.T, c *jobtest.Cluster, s *job.Service, parallelism int) {
	t.Helper()
	spec := c.Spec("many", manyCounts, parallelism)
	spec.Checkpoint = json.RawMessage(`{"interval":"1h"}`)
	if _, err := s.Submit(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	c.Await(s, "many", weir.StatusRunning)
	c.Until("rows are counted", func(ctx context.Context) bool {
		r, err := s.Rates(ctx, "many")
		return err == nil && r.RowsIn > 40_000 // every key is there: no state fits into an ack
	})
	for range 3 {
		r, err := s.TriggerCheckpoint(context.Background(), "many", jobtest.Timeout)
		if err != nil || r.Status != checkpoint.StatusCompleted {
			t.Fatalf("checkpoint: %+v, %v", r, err)
		}
	}
	c.Until("there are copies", func(context.Context) bool { return len(copies(t, c.Kept("w2"))) > 0 })
}

// copies are the files below a folder.
func copies(t *testing.T, dir string) (paths []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "[0-9]*"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// stateCalls are the objects of state that a worker put or got.
func stateCalls(store *blob.Faulty, verb string) (keys []string) {
	for _, call := range store.Calls() {
		if _, _, ok := checkpoint.StateOf(call.Key); ok && call.Verb == verb {
			keys = append(keys, call.Key)
		}
	}
	return keys
}
