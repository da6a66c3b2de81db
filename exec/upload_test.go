package exec_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/exec"
	"weir/exec/exectest"
	"weir/exec/op"
	"weir/exec/state"
)

// A slow is object storage in which what is written for chosen checkpoints waits.
type slow struct {
	*blob.Faulty
	inner blob.Store
	waits map[weir.CheckpointID]chan struct{}
}

func slowFor(ids ...weir.CheckpointID) *slow {
	s := &slow{inner: blob.NewMemory(), waits: map[weir.CheckpointID]chan struct{}{}}
	for _, id := range ids {
		s.waits[id] = make(chan struct{})
	}
	s.Faulty = blob.NewFaulty(s.inner, func(c blob.Call) blob.Fault {
		for _, id := range ids {
			if c.Verb == "Put" && strings.Contains(c.Key, fmt.Sprintf("-0/%d-", id)) {
				return blob.Fault{Wait: s.waits[id]}
			}
		}
		return blob.Fault{}
	})
	return s
}

// stored lists the keys of a checkpoint's objects.
func stored(t *testing.T, s blob.Store, id weir.CheckpointID) (keys []string) {
	t.Helper()
	err := s.List(context.Background(), "", func(key string, _ int64) bool {
		if strings.Contains(key, fmt.Sprintf("-0/%d-", id)) {
			keys = append(keys, key)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// whole checks that a snapshot holds the rows up to its sources' positions, each once.
func whole(t *testing.T, c exectest.Config, s *exectest.Snapshot) (rows int) {
	t.Helper()
	var handles []checkpoint.Handle
	for _, task := range s.Tasks {
		for _, o := range task.Operators {
			for _, item := range o.List {
				var p struct{ Split, Next int }
				if err := json.Unmarshal(item, &p); err != nil {
					t.Fatal(err)
				}
				rows += (p.Next - p.Split) / 6
			}
			if o.Operator == "result" {
				handles = append(handles, o.Keyed...)
			}
		}
	}
	store := state.New(state.Options{MaxParallelism: c.Graph.MaxParallelism})
	if _, err := store.Restore(context.Background(), c.Blobs, handles); err != nil {
		t.Fatal(err)
	}
	chain := c.Graph.Chains[1].Operators
	result, err := op.OpenStored(chain[1], nil, chain[0].Schema, store)
	if err != nil {
		t.Fatal(err)
	}
	page, err := result.Read(exec.Query{})
	if err != nil {
		t.Fatal(err)
	}
	once := 0
	for _, r := range page.Rows {
		if strings.HasSuffix(string(r.JSON), `"c":1}`) {
			once++
		}
	}
	if len(page.Rows) != rows || once != rows {
		t.Errorf("checkpoint %d holds %d groups, %d of them counted once, at position %d", s.ID, len(page.Rows), once, rows)
	}
	return rows
}

// stepped starts a job of one subtask per chain whose every second lets 15 batches in.
func stepped(t *testing.T, blobs blob.Store) (*exectest.Job, exectest.Config, func()) {
	t.Helper()
	c := config(1 << 20)
	c.Parallelism, c.Blobs = 1, blobs
	stepper := &exectest.Stepper{}
	c.Openers.Source = stepper.Open(c.Openers.Source)
	return exectest.Start(t, c), c, func() {
		stepper.Allow(15)
		<-time.After(time.Second)
		synctest.Wait()
	}
}

// A slow upload holds up no other, and of several open checkpoints each has its own values.
func TestSlowUpload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blobs := slowFor(1)
		j, c, second := stepped(t, blobs)
		second()
		if _, err := j.Begin(); err != nil {
			t.Fatal(err)
		}
		before := 0
		for range 3 {
			second()
			s, err := j.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if rows := whole(t, c, s); rows <= before {
				t.Errorf("checkpoint %d: %d rows, not more than %d", s.ID, rows, before)
			} else {
				before = rows
			}
		}
		close(blobs.waits[1])
		s, err := j.Await(1)
		if err != nil {
			t.Fatal(err)
		}
		if rows := whole(t, c, s); rows == 0 || rows >= before {
			t.Errorf("the slow one holds %d rows, the last one %d", rows, before)
		}
		j.Kill()
	})
}

// What was given up is dropped: before it is begun, or behind the object in hand, whose
// checkpoint leaves nothing.
func TestGivenUpUpload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blobs := slowFor(1, 2)
		j, c, second := stepped(t, blobs)
		for range 4 {
			second()
			if _, err := j.Begin(); err != nil {
				t.Fatal(err)
			}
		}
		second()
		doing := j.Progress(3)[1]
		if doing.Stage != checkpoint.StageUploading || !strings.HasPrefix(doing.Doing, "waiting for the uploads of checkpoints 1 (storing object 1, ") {
			t.Errorf("the third: %+v", doing)
		}
		j.Wanted(4, 2, 4) // 1 and 3 have ended
		if got := len(j.Acks(4)); got != 1 {
			t.Fatalf("%d acks of the fourth while two are in hand", got)
		}
		close(blobs.waits[1])
		s, err := j.Await(4)
		if err != nil {
			t.Fatal(err)
		}
		whole(t, c, s)
		synctest.Wait()
		for _, id := range []weir.CheckpointID{1, 3} {
			if got := j.Acks(id); len(got) != 1 || got[0].Task.Chain != 0 { // the source has no state
				t.Errorf("checkpoint %d: %+v", id, got)
			}
			if keys := stored(t, blobs.inner, id); keys != nil {
				t.Errorf("checkpoint %d left %v", id, keys)
			}
		}
		j.Wanted(3, 1, 2, 3) // said late: it changes nothing
		close(blobs.waits[2])
		if s, err = j.Await(2); err != nil {
			t.Fatal(err)
		}
		whole(t, c, s)
		j.Wanted(9, 8)
		if _, err := j.Begin(); err != nil { // 5, which has ended: its barrier goes on
			t.Fatal(err)
		}
		second()
		if got := j.Acks(5); len(got) != 0 || j.Progress(5)[1].Stage != checkpoint.StageDone {
			t.Errorf("checkpoint 5: %+v", got)
		}
		j.Kill()
	})
}

// Storage that hangs over what was given up does not keep the place of the next ones.
func TestGivenUpHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blobs := slowFor(1, 2)
		j, c, second := stepped(t, blobs)
		for range 3 {
			second()
			if _, err := j.Begin(); err != nil {
				t.Fatal(err)
			}
		}
		second()
		j.Wanted(3, 3)
		began := time.Now()
		s, err := j.Await(3)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("the third was stored after %v", took)
		}
		whole(t, c, s)
		j.Kill()
	})
}

// One snapshot too many is declined with what holds it up, and the others go on.
func TestTooManyUploads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ids []weir.CheckpointID
		for id := range weir.CheckpointID(25) {
			ids = append(ids, id+1)
		}
		blobs := slowFor(ids...)
		j, c, second := stepped(t, blobs)
		for range ids {
			second()
			if _, err := j.Begin(); err != nil {
				t.Fatal(err)
			}
		}
		_, err := j.Await(25)
		const want = "task 1/0: checkpoint 25: 24 snapshots of the task are still being stored, the oldest, of checkpoint 1, for 24s (storing object 1, "
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
		for _, id := range ids[:24] {
			close(blobs.waits[id])
			s, err := j.Await(id)
			if err != nil {
				t.Fatal(err)
			}
			if id == 1 || id == 24 { // reading one takes its time
				whole(t, c, s)
			}
		}
		j.Kill()
	})
}

// At-least-once: exact where nothing dies, and behind every kill nothing is missing.
func TestAtLeastOnce(t *testing.T) {
	t.Parallel()
	for range rounds() {
		c := config(4000)
		c.Mode, c.Capacity = checkpoint.AtLeastOnce, 1
		if groups, rows := finish(t, exectest.Start(t, c)); groups != 4000 || rows != 4000 {
			t.Errorf("straight: %d groups, %d of them counted once", groups, rows)
		}
		stepper := &exectest.Stepper{}
		c.Openers.Source = stepper.Open(c.Openers.Source)
		for i, n := range []int{2, 3, 1} {
			c.Parallelism, c.Attempt = n, int64(i+1)
			j := exectest.Start(t, c)
			var last weir.CheckpointID
			for range 3 { // several open at a time
				stepper.Allow(3)
				id, err := j.Begin()
				if err != nil {
					t.Fatal(err)
				}
				last = id
			}
			s, err := j.Await(last)
			if err != nil {
				t.Fatal(err)
			}
			c.From = s
			stepper.Allow(2)
			j.Kill()
		}
		stepper.Allow(1 << 30)
		if groups, _ := finish(t, exectest.Start(t, c)); groups != 4000 {
			t.Errorf("after kills: %d groups", groups)
		}
	}
}

// A late is object storage that stores what it is given, and answers when nobody waits
// for it any more.
type late struct{ blob.Store }

func (l late) Put(ctx context.Context, key string, r io.Reader) error {
	if err := l.Store.Put(context.WithoutCancel(ctx), key, r); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// A task that ends with its attempt leaves no object of a snapshot that it has not
// acknowledged: it may have slept for so long that whoever clears up has passed by.
func TestEndedUpload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		blobs := late{blob.NewMemory()}
		j, _, second := stepped(t, blobs)
		second()
		if _, err := j.Begin(); err != nil {
			t.Fatal(err)
		}
		second()
		if keys := stored(t, blobs.Store, 1); len(keys) == 0 {
			t.Fatal("nothing is stored")
		}
		j.Kill()
		if keys := stored(t, blobs.Store, 1); keys != nil {
			t.Errorf("it left %v", keys)
		}
	})
}
