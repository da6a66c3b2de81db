package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
	"weir/server/job"
	"weir/server/job/jobtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*Server).startGoRoutine.func1"))
}

// counts has four keys, each a quarter of the rows. It takes four seconds, so that tests act
// while it runs, on a slow machine too.
const counts = `
CREATE TABLE numbers (k INT, v BIGINT) WITH (
  'connector' = 'datagen', 'number-of-rows' = '100000', 'rows-per-second' = '25000',
  'fields.k.kind' = 'sequence', 'fields.k.start' = '0', 'fields.k.end' = '99999',
  'fields.v.kind' = 'sequence', 'fields.v.start' = '0', 'fields.v.end' = '99999');
SET 'checkpoint.interval' = '100ms';
SELECT k % 4 AS key, COUNT(*) AS n, SUM(v) AS total FROM numbers GROUP BY k % 4`

// submit begins a job that runs until the test awaits its end.
func submit(t *testing.T, c *jobtest.Cluster, s *job.Service, name, sql string) weir.Job {
	t.Helper()
	spec := c.Spec(name, sql, 4)
	spec.Checkpoint = json.RawMessage(`{"interval":"100ms"}`)
	c.Held.Store(true)
	j, err := s.Submit(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func rows(t *testing.T, s *job.Service, name, at string) []string {
	t.Helper()
	page, err := s.Results(context.Background(), name, job.ResultQuery{OrderBy: "key", At: at})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range page.Rows {
		out = append(out, string(r))
	}
	return out
}

func TestCountFinishes(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 2)
	c.Worker("w2", 2)
	c.Heard(s, 2)
	submit(t, c, s, "counts", counts)
	c.Await(s, "counts", weir.StatusRunning)
	finished(t, c, s, "counts")
	r, err := s.Rates(context.Background(), "counts")
	if err != nil || r.RowsIn != 100000 || r.RowsOut < 4 || len(r.Chains) != 2 || r.Chains[0].Tasks != 4 {
		t.Errorf("rates of the finished job: %+v, %v", r, err)
	}
}

// want is the answer of counts.
var want = []string{
	`{"key":0,"n":25000,"total":1249950000}`, `{"key":1,"n":25000,"total":1249975000}`,
	`{"key":2,"n":25000,"total":1250000000}`, `{"key":3,"n":25000,"total":1250025000}`,
}

// finished awaits the end of a job and looks at its result.
func finished(t *testing.T, c *jobtest.Cluster, s *job.Service, name string) weir.Job {
	t.Helper()
	j := c.Await(s, name, weir.StatusFinished, weir.StatusFailed)
	if j.Status != weir.StatusFinished {
		t.Fatalf("%s: %+v", j.Status, j.Failure)
	}
	if diff := cmp.Diff(want, rows(t, s, name, "")); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	return j
}

// completed waits until a checkpoint of the job is complete.
func completed(t *testing.T, c *jobtest.Cluster, name string) {
	t.Helper()
	c.Until("a checkpoint of "+name, func(ctx context.Context) bool {
		j, err := c.Store.Job(ctx, name)
		return err == nil && !j.Base.IsZero()
	})
}

// started is a cluster of two workers with a job that has a checkpoint.
func started(t *testing.T) (*jobtest.Cluster, *job.Service) {
	t.Helper()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	c.Worker("w2", 4)
	c.Heard(s, 2)
	submit(t, c, s, "counts", counts)
	completed(t, c, "counts")
	return c, s
}

func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	c, s := started(t)
	c.Kill("w2")
	j := finished(t, c, s, "counts")
	if j.Attempt.Number < 2 || j.RestoredFrom.IsZero() {
		t.Errorf("attempt %v restored from %v: want another attempt, from a checkpoint", j.Attempt, j.RestoredFrom)
	}
}

func TestServerKilled(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s1 := c.Server("s1")
	c.Worker("w1", 4)
	submit(t, c, s1, "counts", counts)
	completed(t, c, "counts")
	s2 := c.Server("s2")
	c.Kill("s1")
	j := finished(t, c, s2, "counts")
	if j.Term < 2 || j.Attempt.Number < 2 {
		t.Errorf("term %d, attempt %v: want another holder and another attempt", j.Term, j.Attempt)
	}
}

func TestStopAndStartElsewhere(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	ctx := context.Background()
	submit(t, c, s, "counts", counts)
	completed(t, c, "counts")
	if _, err := s.Stop(ctx, "counts", job.StopRequest{Name: "halfway"}); err != nil {
		t.Fatal(err)
	}
	if j, err := s.Stop(ctx, "counts", job.StopRequest{}); err != nil || j.StopSavepoint != "halfway" && j.Status != weir.StatusStopped {
		t.Errorf("stop again: %v, %v", j.StopSavepoint, err)
	}
	j := c.Await(s, "counts", weir.StatusStopped)
	sp, err := c.Store.Savepoint(ctx, "halfway")
	if err != nil || sp.Checkpoint != j.Base.Checkpoint {
		t.Fatalf("savepoint %+v, base %v, %v", sp, j.Base, err)
	}
	if got := rows(t, s, "counts", ""); len(got) != 4 {
		t.Errorf("result of the stopped job: %v", got)
	}
	if _, err := s.Start(ctx, "counts", job.StartRequest{From: "savepoint:halfway", Parallelism: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(ctx, "counts", job.StartRequest{}); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("start twice: %v", err)
	}
	finished(t, c, s, "counts")
	if err := s.Delete(ctx, "counts", false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, "counts"); !errors.Is(err, weir.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
	spec := c.Spec("again", counts, 1)
	spec.RestoreFrom = "savepoint:halfway"
	if _, err := s.Submit(ctx, spec); err != nil {
		t.Fatalf("a savepoint outlives its job: %v", err)
	}
	if err := s.DeleteSavepoint(ctx, "halfway"); err == nil {
		var done weir.Job
		if done, err = s.Get(ctx, "again"); err != nil || done.Base.Job != done.ID {
			t.Errorf("a savepoint that a job would start from was deleted: %v, %v", done.Base, err)
		}
	}
	finished(t, c, s, "again")
	if err := s.DeleteSavepoint(ctx, "halfway"); err != nil && !errors.Is(err, weir.ErrNotFound) {
		t.Error(err)
	}
	c.Until("the savepoint's objects are gone", func(ctx context.Context) bool {
		_, err := c.Blobs.Stat(ctx, sp.Manifest)
		return errors.Is(err, weir.ErrNotFound)
	})
}

func TestRestoreWhileRunning(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	ctx := context.Background()
	submit(t, c, s, "counts", counts)
	c.Await(s, "counts", weir.StatusRunning)
	r, err := s.TriggerSavepoint(ctx, "counts", "early", jobtest.Timeout)
	if err != nil || r.Status != checkpoint.StatusCompleted {
		t.Fatalf("savepoint: %+v, %v", r, err)
	}
	if _, err := s.TriggerCheckpoint(ctx, "counts", jobtest.Timeout); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Restore(ctx, "counts", job.StartRequest{From: "savepoint:nowhere"}); !errors.Is(err, weir.ErrNotFound) {
		t.Errorf("restore from nowhere: %v", err)
	}
	j, err := s.Restore(ctx, "counts", job.StartRequest{From: "savepoint:early", Parallelism: 2})
	if err != nil || j.Base.Checkpoint != r.ID {
		t.Fatalf("restore: %+v, %v", j, err)
	}
	j = finished(t, c, s, "counts")
	if j.RestoredFrom.Checkpoint != r.ID {
		t.Errorf("restored from %v, want %d", j.RestoredFrom, r.ID)
	}
}

// A restore that was begun is ended, whoever goes: the caller, or the server that was
// asked and that holds the lease.
func TestRestoreOutlives(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"its caller", "its server"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			c := jobtest.New(t)
			s := c.Server("s1")
			c.Worker("w1", 4)
			submit(t, c, s, "counts", counts)
			c.Await(s, "counts", weir.StatusRunning)
			r, err := s.TriggerSavepoint(t.Context(), "counts", "early", jobtest.Timeout)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go s.Restore(ctx, "counts", job.StartRequest{From: "savepoint:early", Parallelism: 3})
			c.Until("the wish is there", func(ctx context.Context) bool {
				j, err := c.Store.Job(ctx, "counts")
				return err == nil && (j.Then != nil || j.Parallelism == 3)
			})
			if who == "its server" {
				c.Kill("s1")
				s = c.Server("s2")
			}
			cancel()
			j := finished(t, c, s, "counts")
			if j.RestoredFrom.Checkpoint != r.ID && j.Attempt.Number < 3 || j.Attempt.Number < 2 || j.Parallelism != 3 {
				t.Errorf("attempt %v restored from %v at parallelism %d", j.Attempt, j.RestoredFrom, j.Parallelism)
			}
		})
	}
}

// The server that holds the lease has died, and its lease has not expired: a trigger at
// another server says that nobody can take it yet.
func TestTriggerWithoutHolder(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s1 := c.Server("s1")
	c.Worker("w1", 4)
	submit(t, c, s1, "counts", counts)
	c.Await(s1, "counts", weir.StatusRunning)
	s2 := c.Server("s2")
	c.Until("the holder is known", func(ctx context.Context) bool {
		_, err := s2.TriggerCheckpoint(ctx, "counts", jobtest.Timeout)
		return err == nil
	})
	away := func(string) bool { return true }
	c.LoseLease.Store(&away) // however late the machine is, nobody takes it meanwhile
	c.Kill("s1")
	if _, err := s2.TriggerSavepoint(t.Context(), "counts", "late", jobtest.Timeout); !errors.Is(err, job.ErrUnavailable) {
		t.Errorf("triggered at the dead: %v", err)
	}
	c.LoseLease.Store(nil)
	finished(t, c, s2, "counts")
}

func TestWaitsForSlots(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 3)
	ctx := context.Background()
	j := submit(t, c, s, "counts", counts)
	c.Until("an event about slots", func(ctx context.Context) bool {
		events, err := c.Store.Events(ctx, j.ID, 0, 100)
		return err == nil && slices.ContainsFunc(events, func(e weir.Event) bool { return strings.Contains(e.Message, "needs 4, 1 missing") })
	})
	if _, err := s.TriggerCheckpoint(ctx, "counts", 0); !errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), "SCHEDULING") {
		t.Errorf("trigger: %v", err)
	}
	c.Worker("w2", 1)
	c.Await(s, "counts", weir.StatusRunning)
	if _, err := s.Cancel(ctx, "counts", false); err != nil {
		t.Fatal(err)
	}
	c.Await(s, "counts", weir.StatusCanceled)
	if _, err := s.Cancel(ctx, "counts", false); err != nil {
		t.Errorf("cancel again: %v", err)
	}
	if _, err := s.Stop(ctx, "counts", job.StopRequest{}); !errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), "CANCELED") {
		t.Errorf("stop: %v", err)
	}
}

func TestMissingSnapshot(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	ctx := context.Background()
	submit(t, c, s, "counts", counts)
	completed(t, c, "counts")
	if _, err := s.Cancel(ctx, "counts", false); err != nil {
		t.Fatal(err)
	}
	j := c.Await(s, "counts", weir.StatusCanceled)
	key := checkpoint.ManifestKey(j.ID, j.Base.Checkpoint)
	if err := c.Blobs.Delete(ctx, key); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(ctx, "counts", job.StartRequest{}); !errors.Is(err, weir.ErrConflict) || errors.Is(err, weir.ErrNotFound) || !strings.Contains(err.Error(), key) {
		t.Errorf("start: %v", err)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 2)
	c.Worker("w2", 2)
	c.Heard(s, 2)
	submit(t, c, s, "counts", counts)
	c.Held.Store(false)
	table := map[string]bool{}
	cursor, resets := "", 0
	c.Until("the changes of a finished job", func(ctx context.Context) bool {
		page, err := s.Changes(ctx, "counts", cursor)
		if errors.Is(err, job.ErrUnavailable) || errors.Is(err, weir.ErrConflict) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		if page.Reset {
			clear(table)
			resets++
		}
		for _, ch := range page.Changes {
			if add := ch.Op[0] == '+'; add == table[string(ch.Row)] {
				t.Fatalf("%s %s with the row there: %v", ch.Op, ch.Row, !add)
			} else if add {
				table[string(ch.Row)] = true
			} else {
				delete(table, string(ch.Row))
			}
		}
		cursor = page.Cursor
		return page.Status == weir.StatusFinished && !page.More
	})
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(table))); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if resets > 4 {
		t.Errorf("%d resets", resets)
	}
}

func TestBadRowFails(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	file := filepath.Join(c.Dir, "rows.json")
	if err := os.WriteFile(file, []byte("{\"k\":1}\n{\"k\":\"one\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	submit(t, c, s, "bad", `CREATE TABLE r (k INT) WITH ('connector' = 'filesystem', 'path' = '`+file+`', 'format' = 'json'); SELECT k AS key FROM r`)
	j := c.Await(s, "bad", weir.StatusFailed)
	if j.Attempt.Number != 1 || j.Failure == nil || j.Failure.Reason != "row_error" || !strings.Contains(j.Failure.Message, "rows.json:2") {
		t.Errorf("attempt %v, failure %+v", j.Attempt, j.Failure)
	}
	if err := os.WriteFile(file, []byte("{\"k\":1}\n{\"k\":2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(context.Background(), "bad", job.StartRequest{From: "nothing"}); err != nil {
		t.Fatal(err)
	}
	c.Await(s, "bad", weir.StatusFinished)
	if diff := cmp.Diff([]string{`{"key":1}`, `{"key":2}`}, rows(t, s, "bad", "")); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// A checkpoint may be asked for at any server.
func TestTriggerAtOtherServer(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s1 := c.Server("s1")
	c.Worker("w1", 4)
	submit(t, c, s1, "counts", counts)
	c.Await(s1, "counts", weir.StatusRunning)
	s2 := c.Server("s2")
	ctx := context.Background()
	var r job.Triggered
	c.Until("the holder is known", func(ctx context.Context) bool {
		var err error
		r, err = s2.TriggerCheckpoint(ctx, "counts", jobtest.Timeout)
		return !errors.Is(err, job.ErrUnavailable)
	})
	if r.Status != checkpoint.StatusCompleted {
		t.Errorf("checkpoint: %+v", r)
	}
	if _, err := s2.TriggerSavepoint(ctx, "counts", "second", jobtest.Timeout); err != nil {
		t.Error(err)
	}
	if _, err := s2.TriggerSavepoint(ctx, "counts", "second", 0); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("the same name again: %v", err)
	}
	finished(t, c, s2, "counts")
}

// A checkpoint that hangs is given up at any server; the job counts on and takes others.
func TestCancelCheckpoint(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s1 := c.Server("s1")
	c.Worker("w1", 4)
	ctx := context.Background()
	spec := c.Spec("counts", counts, 4)
	spec.Checkpoint = json.RawMessage(`{"interval":"0s"}`) // a periodic one could hang before the one that is to
	if _, err := s1.Submit(ctx, spec); err != nil {
		t.Fatal(err)
	}
	c.Await(s1, "counts", weir.StatusRunning)
	s2 := c.Server("s2")
	c.Until("the holder is known", func(ctx context.Context) bool {
		_, err := s2.TriggerCheckpoint(ctx, "counts", jobtest.Timeout)
		return !errors.Is(err, job.ErrUnavailable)
	})
	lost := func(kind string) bool { return kind == deploy.KindTrigger }
	c.Lose.Store(&lost)
	var pending job.Triggered
	c.Until("one cannot end", func(ctx context.Context) bool {
		var err error
		pending, err = s1.TriggerSavepoint(ctx, "counts", "hangs", 0)
		return err == nil && pending.Status == checkpoint.StatusPending
	})
	for _, s := range []*job.Service{s2, s1} {
		p, err := s.CheckpointProgress(ctx, pending.Job, pending.ID)
		if err != nil || p.Unknown != "" || len(p.Tasks) == 0 || p.Tasks[0].Stage != checkpoint.StageWaiting || p.Tasks[0].Worker != "w1" {
			t.Errorf("how far it is: %+v, %v", p, err)
		}
	}
	for _, s := range []*job.Service{s2, s1} {
		r, err := s.CancelCheckpoint(ctx, "counts", pending.ID)
		switch {
		case s == s2 && (err != nil || r.Status != checkpoint.StatusAborted || r.Failure == nil || r.Failure.Reason != checkpoint.ReasonCanceled):
			t.Errorf("canceled: %+v, %v", r, err)
		case s == s1 && (!errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), "aborted")):
			t.Errorf("a second time: %v", err)
		}
	}
	if _, err := s1.CancelCheckpoint(ctx, "counts", 999); !errors.Is(err, weir.ErrNotFound) {
		t.Errorf("one that is not: %v", err)
	}
	c.Lose.Store(nil)
	if r, err := s2.TriggerSavepoint(ctx, "counts", "hangs", jobtest.Timeout); err != nil || r.Status != checkpoint.StatusCompleted {
		t.Errorf("the next one, by the same name: %+v, %v", r, err)
	}
	finished(t, c, s1, "counts")
}

func TestCancelDeletesCheckpoints(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	ctx := context.Background()
	spec := c.Spec("counts", counts, 2)
	spec.Checkpoint = json.RawMessage(`{"interval":"100ms","retention":"delete_on_cancellation"}`)
	j, err := s.Submit(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	completed(t, c, "counts")
	r, err := s.TriggerSavepoint(ctx, "counts", "kept", jobtest.Timeout)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Cancel(ctx, "counts", false); err != nil {
		t.Fatal(err)
	}
	c.Await(s, "counts", weir.StatusCanceled)
	c.Until("the checkpoints are deleted", func(ctx context.Context) bool {
		var manifests []string
		err := c.Blobs.List(ctx, checkpoint.JobPrefix(j.ID), func(key string, _ int64) bool {
			if strings.HasSuffix(key, "/manifest") {
				manifests = append(manifests, key)
			}
			return true
		})
		return err == nil && slices.Equal(manifests, []string{checkpoint.ManifestKey(j.ID, r.ID)})
	})
	if _, err := s.Start(ctx, "counts", job.StartRequest{From: "savepoint:kept"}); err != nil {
		t.Fatal(err)
	}
	finished(t, c, s, "counts")
}

// Workers die and come back, the server does, then everything does: no row is lost and
// none counts twice.
func TestEverythingKilled(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 2)
	c.Worker("w2", 2)
	submit(t, c, s, "counts", counts)
	progress := func() {
		t.Helper()
		before, err := c.Store.Job(context.Background(), "counts")
		if err != nil {
			t.Fatal(err)
		}
		c.Until("a newer checkpoint", func(ctx context.Context) bool {
			j, err := c.Store.Job(ctx, "counts")
			return err == nil && j.Base.Checkpoint > before.Base.Checkpoint
		})
	}
	progress()
	c.Kill("w2")
	c.Worker("w2", 2) // before anybody may have noticed
	progress()
	c.Kill("s1")
	c.Server("s2")
	progress()
	c.Kill("w1")
	c.Kill("w2")
	c.Kill("s2")
	c.Worker("w1", 2)
	c.Worker("w2", 2)
	s = c.Server("s3")
	j := finished(t, c, s, "counts")
	if j.Attempt.Number < 4 {
		t.Errorf("attempt %v: want at least 4", j.Attempt)
	}
	attempts, err := c.Store.Attempts(context.Background(), j.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range attempts {
		if a.EndedAt.IsZero() {
			t.Errorf("attempt %v has not ended", a.ID)
		}
	}
}
