package job_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir"
	"weir/exec/deploy"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// copyRows copies rows into files.
func copyRows(dir string) string {
	return `
CREATE TABLE numbers (k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '40000', 'rows-per-second' = '40000',
  'fields.k.kind' = 'sequence', 'fields.k.start' = '0', 'fields.k.end' = '39999');
CREATE TABLE copies (k INT) WITH ('connector' = 'filesystem', 'path' = '` + dir + `', 'format' = 'json');
INSERT INTO copies SELECT k FROM numbers`
}

// copiedOnce checks that each row of copyRows is in a folder, once.
func copiedOnce(t *testing.T, dir string) {
	t.Helper()
	got := lines(t, dir)
	for line, n := range got {
		if n != 1 {
			t.Errorf("%d times %s", n, line)
		}
	}
	if len(got) != 40000 {
		t.Errorf("%d rows, want 40000", len(got))
	}
}

// lines counts how often each line is in the files of a folder.
func lines(t *testing.T, dir string) map[string]int {
	t.Helper()
	found := map[string]int{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			found[line]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSinkExactlyOnce(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	c.Worker("w2", 4)
	c.Heard(s, 2)
	out := filepath.Join(c.Dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	submit(t, c, s, "copy", copyRows(out))
	completed(t, c, "copy")
	c.Kill("w1")
	if j := c.Await(s, "copy", weir.StatusFinished, weir.StatusFailed); j.Status != weir.StatusFinished || j.Attempt.Number < 2 {
		t.Fatalf("%s, attempt %v: %+v", j.Status, j.Attempt, j.Failure)
	}
	copiedOnce(t, out)
	ctx := context.Background()
	if _, err := s.Start(ctx, "copy", job.StartRequest{From: "nothing"}); !errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), "allow_duplicate_output") {
		t.Errorf("start from nothing: %v", err)
	}
	if _, err := s.Results(ctx, "copy", job.ResultQuery{}); !errors.Is(err, weir.ErrConflict) {
		t.Errorf("results: %v", err)
	}
}

// unheard is a cluster with a server, a worker and a folder for output, whose sinks do not
// hear of a decision before c.Lose is taken back.
func unheard(t *testing.T) (c *jobtest.Cluster, s *job.Service, out string) {
	t.Helper()
	c = jobtest.New(t)
	lost := func(kind string) bool { return kind == deploy.KindCommit || kind == deploy.KindCommitOnly }
	c.Lose.Store(&lost)
	s = c.Server("s1")
	c.Worker("w1", 4)
	out = filepath.Join(c.Dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	return c, s, out
}

// A cancel makes decided output visible first, also where the attempt's own sinks
// never heard of the decision.
func TestCancelCompletesCommits(t *testing.T) {
	t.Parallel()
	c, s, out := unheard(t)
	ctx := context.Background()
	j := submit(t, c, s, "copy", copyRows(out))
	completed(t, c, "copy")
	if _, err := s.Cancel(ctx, "copy", false); err != nil {
		t.Fatal(err)
	}
	c.Await(s, "copy", weir.StatusStopping)
	c.Until("an event about open commits", func(ctx context.Context) bool {
		events, err := c.Store.Events(ctx, j.ID, 0, 1000)
		return err == nil && slices.ContainsFunc(events, func(e weir.Event) bool {
			return e.Kind == "commit" && strings.Contains(e.Message, "abandon_output")
		})
	})
	if got := lines(t, out); len(got) > 0 {
		t.Fatalf("%d rows are visible already", len(got))
	}
	c.Lose.Store(nil)
	j = c.Await(s, "copy", weir.StatusCanceled)
	got := lines(t, out)
	if len(got) == 0 {
		t.Error("no row became visible")
	}
	r, err := c.Store.CheckpointByID(ctx, j.ID, j.Base.Checkpoint)
	if err != nil || r.CommitsOpen {
		t.Errorf("checkpoint %+v, %v: want its commits closed", r, err)
	}
	if _, err := s.Start(ctx, "copy", job.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	c.Await(s, "copy", weir.StatusFinished)
	if got := lines(t, out); len(got) != 40000 {
		t.Errorf("%d rows, want 40000", len(got))
	}
}

// TestEndsCompleteCommits: however a job ends, output that was decided, and of which its sinks
// never heard, is visible before it has ended, once: stopped, failed, or taken over by
// another server.
func TestEndsCompleteCommits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		from, to string // of the query
		end      func(t *testing.T, c *jobtest.Cluster, s *job.Service) *job.Service
		status   weir.Status
	}{
		"stop": {"", "", func(t *testing.T, _ *jobtest.Cluster, s *job.Service) *job.Service {
			if _, err := s.Stop(t.Context(), "copy", job.StopRequest{}); err != nil {
				t.Error(err)
			}
			return s
		}, weir.StatusStopped},
		"failure": {"SELECT k FROM", "SELECT k / (CASE WHEN k = 30000 THEN 0 ELSE 1 END) AS k FROM", func(_ *testing.T, _ *jobtest.Cluster, s *job.Service) *job.Service { return s }, weir.StatusFailed},
		"takeover": {"", "", func(_ *testing.T, c *jobtest.Cluster, _ *job.Service) *job.Service {
			c.Kill("s1")
			return c.Server("s2")
		}, weir.StatusFinished},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, out := unheard(t)
			slow := strings.Replace(copyRows(out), "'rows-per-second' = '40000'", "'rows-per-second' = '10000'", 1)
			submit(t, c, s, "copy", strings.Replace(slow, test.from, test.to, 1))
			completed(t, c, "copy")
			s = test.end(t, c, s)
			if test.status != weir.StatusFinished {
				c.Await(s, "copy", weir.StatusStopping)
			}
			if got := lines(t, out); len(got) > 0 {
				t.Fatalf("%d rows are visible already", len(got))
			}
			c.Lose.Store(nil)
			j := c.Await(s, "copy", weir.StatusStopped, weir.StatusFailed, weir.StatusFinished)
			if j.Status != test.status {
				t.Fatalf("%s: %+v", j.Status, j.Failure)
			}
			got := lines(t, out)
			if n := len(got); n == 0 || j.Status == weir.StatusFinished && n != 40000 {
				t.Errorf("%d rows are visible", n)
			}
			for line, n := range got {
				if n != 1 {
					t.Errorf("%d times %s", n, line)
				}
			}
			r, err := c.Store.CheckpointByID(context.Background(), j.ID, j.Base.Checkpoint)
			if err != nil || r.CommitsOpen {
				t.Errorf("checkpoint %+v, %v: want its commits closed", r, err)
			}
		})
	}
}

// R17: a sink whose target has no room fails its attempt, with the reason, again and again;
// once there is room the job goes on by itself, and each row is there once.
func TestSinkHasNoRoom(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	c.Heard(s, 1)
	out := filepath.Join(c.Dir, "out")
	c.Batches.Store(3) // the rest comes once there is no room
	j := submit(t, c, s, "copy", copyRows(out))
	completed(t, c, "copy")
	c.Full.Store(true)
	c.Batches.Store(0)
	c.Until("three attempts have failed for it", func(ctx context.Context) bool {
		events, err := c.Store.Events(ctx, j.ID, 0, 1000)
		n := 0
		for _, e := range events {
			if strings.HasPrefix(e.Message, "RESTARTING") && strings.Contains(e.Message, "no space left on device") {
				n++
			}
		}
		return err == nil && n >= 3
	})
	c.Full.Store(false)
	c.Await(s, "copy", weir.StatusFinished)
	copiedOnce(t, out)
}
