package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec/batch"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// A turning is a job whose keys change in turn, all of them over and over: at parallelism 1, and
// checkpoints on request, each after as many rows as the test wants.
type turning struct {
	t    *testing.T
	c    *jobtest.Cluster
	s    *job.Service
	keys int64
	rows int64 // in all
	fed  int64 // batches so far
}

// turn starts one and feeds each key once. rows is how many it has to the end.
func turn(t *testing.T, c *jobtest.Cluster, keys, rows int64, options string) *turning {
	t.Helper()
	u := &turning{t: t, c: c, s: c.Server("s1"), keys: keys, rows: rows}
	c.Batches.Store(1)
	c.Worker("w1", 4)
	c.Heard(u.s, 1)
	spec := c.Spec("turning", fmt.Sprintf(`CREATE TABLE g (i BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'fields.i.kind' = 'sequence', 'fields.i.start' = '0');
		SELECT i %% %d AS key, COUNT(*) AS n, SUM(i) AS total FROM g GROUP BY i %% %[2]d`, rows, keys), 1)
	spec.Checkpoint = json.RawMessage(options)
	if _, err := u.s.Submit(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	c.Await(u.s, "turning", weir.StatusRunning)
	u.fed = 1
	u.feed((keys + batch.Target - 1) / batch.Target)
	return u
}

// feed has so many more batches read and counted.
func (u *turning) feed(batches int64) {
	u.t.Helper()
	u.fed += batches
	u.c.Batches.Store(u.fed)
	u.c.Until("the rows are read", func(context.Context) bool { return u.c.Given.Load() >= u.fed })
}

// more has one more batch read, before the next barrier or after it.
func (u *turning) more(batches int64) {
	u.fed += batches
	u.c.Batches.Store(u.fed)
}

// sum is what is to be seen in the end of all rows.
func (u *turning) sum() []string {
	return []string{fmt.Sprintf("%d keys, %d rows, %d", u.keys, u.rows, u.rows*(u.rows-1)/2)}
}

// counted adds up what the result holds, page by page.
func (u *turning) counted() []string {
	u.t.Helper()
	var keys, n, total int64
	for cursor := ""; ; {
		page, err := u.s.Results(context.Background(), "turning", job.ResultQuery{Limit: 10_000, Cursor: cursor})
		if err != nil {
			u.t.Fatal(err)
		}
		for _, raw := range page.Rows {
			var row struct{ Key, N, Total int64 }
			if err := json.Unmarshal(raw, &row); err != nil {
				u.t.Fatal(err)
			}
			if most := (u.rows + u.keys - 1) / u.keys; row.N > most || row.N < most-1 {
				u.t.Fatalf("key %d was counted as %d", row.Key, row.N)
			}
			keys, n, total = keys+1, n+row.N, total+row.Total
		}
		if cursor = page.Next; cursor == "" {
			return []string{fmt.Sprintf("%d keys, %d rows, %d", keys, n, total)}
		}
	}
}

// goOn starts the stopped job from a checkpoint, and reads it to its end.
func (u *turning) goOn(from weir.CheckpointID) {
	u.t.Helper()
	u.c.Batches.Store(0)
	if _, err := u.s.Start(context.Background(), "turning", job.StartRequest{From: fmt.Sprintf("checkpoint:%d", from)}); err != nil {
		u.t.Fatal(err)
	}
	if j := u.c.Await(u.s, "turning", weir.StatusFinished, weir.StatusFailed); j.Status != weir.StatusFinished || j.RestoredFrom.Checkpoint != from {
		u.t.Fatalf("%s from %v: %+v", j.Status, j.RestoredFrom, j.Failure)
	}
	if diff := cmp.Diff(u.sum(), u.counted()); diff != "" {
		u.t.Errorf("result (-want +got):\n%s", diff)
	}
}

// P07: checkpoint after checkpoint of a state of which a little changes each time: the last
// ones take as long as the first, store about what has changed, storage holds what the kept
// ones name and nothing else, and the last one restores what was counted.
func TestP07ManyCheckpoints(t *testing.T) {
	t.Parallel()
	type size struct{ keys, checkpoints int64 }
	sizes := []size{{40_000, 70}}
	if long() {
		sizes = []size{{100_000, 300}, {1_000_000, 300}}
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n.keys, " keys"), func(t *testing.T) {
			t.Parallel()
			c := jobtest.New(t)
			u := turn(t, c, n.keys, n.keys+(n.checkpoints+20)*batch.Target, `{"interval":"0s"}`)
			began := time.Now()
			var took []time.Duration
			var stored, state int64
			var last weir.CheckpointID
			for i := range n.checkpoints {
				u.more(1)
				r, err := u.s.TriggerCheckpoint(context.Background(), "turning", jobtest.Timeout)
				if err != nil || r.Status != checkpoint.StatusCompleted {
					t.Fatalf("%+v, %v", r, err)
				}
				took, last, state = append(took, r.CompletedAt.Sub(r.TriggeredAt)), r.ID, r.StateBytes
				if i > 0 { // the first one stores all
					stored += r.NewBytes
				}
			}
			end(t, c, u.s, "turning")
			there := onlyKept(t, c, "turning", 3)
			var bytes int64
			for _, size := range there {
				bytes += size
			}
			firsts, lasts := took[10:min(60, len(took)/2)], took[len(took)-min(50, len(took)/2):]
			first, late := quick(firsts), quick(lasts)
			mean := stored / (n.checkpoints - 1)
			t.Logf("%d checkpoints in %v; the quickest tenth %v of the first, %v of the last, p95 %v and %v; %d bytes stored by each, state %d; %d objects, %d bytes at the end",
				n.checkpoints, time.Since(began).Round(time.Second), first, late, p95(firsts), p95(lasts), mean, state, len(there), bytes)
			if late > 2*first+50*time.Millisecond { // the slow ones tell how busy the machine was when
				t.Errorf("checkpoints take longer: %v at first, %v at last", firsts, lasts)
			}
			// A byte that changes is stored three times at most, compactions included.
			if changed := state * batch.Target / n.keys; mean > 4*changed {
				t.Errorf("each stores %d bytes, about %d change", mean, changed)
			}
			if len(there) > 3*60 || bytes > 4*state {
				t.Errorf("%d objects of %d bytes for a state of %d", len(there), bytes, state)
			}
			u.goOn(last)
		})
	}
}

func p95(of []time.Duration) time.Duration { return slices.Sorted(slices.Values(of))[len(of)*95/100] }

// quick is what one of ten does not exceed.
func quick(of []time.Duration) time.Duration { return slices.Sorted(slices.Values(of))[len(of)/10] }

// P08: all keys are overwritten between any two checkpoints, of which some fail, storage being
// down, and some are given up while they are stored. Storage holds a whole state, two deltas of
// about its size, a whole state in the making and one that was made in vain at most; at rest what the kept checkpoint names,
// and nothing else.
func TestP08Overwritten(t *testing.T) {
	t.Parallel()
	keys, many := int64(10_000), 12
	if long() {
		keys, many = 500_000, 50
	}
	c := jobtest.New(t)
	c.KeepBytes = 1 << 30
	var down, slow atomic.Bool
	never := make(chan struct{})
	c.Blobs = blob.NewFaulty(c.Blobs, func(call blob.Call) blob.Fault {
		switch {
		case down.Load() && strings.HasPrefix(call.Verb, "Put"):
			return blob.Fault{Before: errors.New("storage is down")}
		case slow.Load() && call.Verb == "PutIfAbsent":
			return blob.Fault{Wait: never}
		}
		return blob.Fault{}
	})
	rounds := (keys + batch.Target - 1) / batch.Target
	u := turn(t, c, keys, (rounds*int64(many+3))*batch.Target, `{"interval":"0s","num_retained":1,"tolerable_failures":100}`)
	ctx := context.Background()
	var most, state int64
	failed, aborted := 0, 0
	for i := range many {
		u.feed(rounds)
		switch {
		case i%5 == 2: // storage is down
			down.Store(true)
			r, err := u.s.TriggerCheckpoint(ctx, "turning", jobtest.Timeout)
			if err != nil || r.Status != checkpoint.StatusFailed {
				t.Fatalf("%+v, %v", r, err)
			}
			down.Store(false)
			failed++
			continue
		case i%10 == 4: // its user has no patience
			slow.Store(true)
			r, err := u.s.TriggerCheckpoint(ctx, "turning", 0)
			if err == nil {
				_, err = u.s.CancelCheckpoint(ctx, "turning", r.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
			slow.Store(false)
			c.Until("it is given up", func(ctx context.Context) bool {
				r, err := c.Store.CheckpointByID(ctx, r.Job, r.ID)
				return err == nil && r.Status == checkpoint.StatusAborted
			})
			aborted++
			continue
		}
		r, err := u.s.TriggerCheckpoint(ctx, "turning", jobtest.Timeout)
		if err != nil || r.Status != checkpoint.StatusCompleted {
			t.Fatalf("%+v, %v", r, err)
		}
		if i == 0 {
			state = r.NewBytes
		}
		sum := int64(0)
		for _, size := range keptBut(t, c, "turning", 1, func(key string) bool { return strings.Contains(key, "/full-") }) {
			sum += size
		}
		most = max(most, sum)
	}
	rest := int64(0)
	r, err := u.s.TriggerCheckpoint(ctx, "turning", jobtest.Timeout)
	if err != nil || r.Status != checkpoint.StatusCompleted {
		t.Fatalf("%+v, %v", r, err)
	}
	end(t, c, u.s, "turning")
	for _, size := range onlyKept(t, c, "turning", 1) {
		rest += size
	}
	t.Logf("%d failed, %d given up; state %d bytes, at most %d stored, at the end %d", failed, aborted, state, most, rest)
	if most > 7*state || rest > 3*state {
		t.Errorf("storage held %d bytes, and %d at the end, of a state of %d", most, rest, state)
	}
	u.goOn(r.ID)
	c.Stop("w1") // the copies stay for the next one of its name
	var copied int64
	for _, path := range copies(t, c.Kept("w1")) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		copied += info.Size()
	}
	if copied > 4*state {
		t.Errorf("%d bytes of copies after the worker's end", copied)
	}
}
