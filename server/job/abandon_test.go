package job_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
	"weir/server/job"
)

// Giving output up is for good: a job whose folder was replaced by something that takes no
// files is canceled with abandon_output. Once there is a folder again, the old one or a new
// one, it goes on from its last checkpoint with exactly the rows that were not given up.
func TestAbandonedOutput(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(out, away string) error{
		"brought back": func(out, away string) error { return os.Rename(away, out) },
		"made anew":    func(out, _ string) error { return os.Mkdir(out, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s, out := unheard(t)
			ctx := context.Background()
			away := filepath.Join(c.Dir, "away")
			j := submit(t, c, s, "copy", copyRows(out))
			completed(t, c, "copy")
			lost := func(kind string) bool { return kind == deploy.KindCommit } // its sinks hold the old folder
			c.Lose.Store(&lost)
			if err := os.Rename(out, away); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(out, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Cancel(ctx, "copy", false); err != nil {
				t.Fatal(err)
			}
			said := func(what string) (n int) {
				events, err := c.Store.Events(ctx, j.ID, 0, 1000)
				if err != nil {
					t.Error(err)
				}
				for _, e := range events {
					if e.Kind == "commit" && strings.Contains(e.Message, what) {
						n++
					}
				}
				return n
			}
			c.Until("an event about the folder", func(context.Context) bool { return said("a sink needs a folder") > 0 })
			if _, err := s.Cancel(ctx, "copy", true); err != nil {
				t.Fatal(err)
			}
			j = c.Await(s, "copy", weir.StatusCanceled)
			r, err := c.Store.CheckpointByID(ctx, j.ID, j.Base.Checkpoint)
			if err != nil || r.CommitsOpen || !r.OutputGivenUp {
				t.Errorf("checkpoint %+v, %v: want its output given up", r, err)
			}
			m, err := checkpoint.LoadManifest(ctx, c.Blobs, r.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			given, sealed := givenUp(t, m, away)

			c.Lose.Store(nil)
			if err := os.Remove(out); err != nil {
				t.Fatal(err)
			}
			if err := mend(out, away); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Start(ctx, "copy", job.StartRequest{Parallelism: 3}); err != nil {
				t.Fatal(err)
			}
			c.Await(s, "copy", weir.StatusFinished)
			if n := said("is left out"); n != 1 {
				t.Errorf("the history says %d times that output is left out", n)
			}
			got := lines(t, out)
			for line, n := range got {
				if n != 1 || given[line] > 0 {
					t.Errorf("%d times %s, given up %d times", n, line, given[line])
				}
			}
			if len(given) == 0 || len(got)+len(given) != 40000 {
				t.Errorf("%d rows are visible, %d were given up: want 40000 together", len(got), len(given))
			}
			for _, name := range sealed {
				if _, err := os.Stat(filepath.Join(out, name)); err == nil {
					t.Errorf("%s is still there", name)
				}
			}
		})
	}
}

// givenUp reads what a snapshot holds of output that is not visible: how often each line is
// there, and the sealed files.
func givenUp(t *testing.T, m *checkpoint.Manifest, dir string) (given map[string]int, sealed []string) {
	t.Helper()
	given = map[string]int{}
	for _, items := range m.OpenSegments() {
		for _, item := range items {
			var segment struct{ Temp string }
			if err := json.Unmarshal(item, &segment); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(dir, segment.Temp))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				given[line]++
			}
			sealed = append(sealed, segment.Temp)
		}
	}
	return given, sealed
}

// Output is given up while the job's tasks still run, and another checkpoint is decided
// before they end: the commit in their place leaves out what was given up, and so does
// whoever starts from that checkpoint.
func TestCommitOnlyLeavesOutAbandoned(t *testing.T) {
	t.Parallel()
	c, s, out := unheard(t)
	ctx := context.Background()
	c.Batches.Store(3)
	submit(t, c, s, "copy", copyRows(out))
	var j weir.Job
	open := func(ctx context.Context, beyond weir.CheckpointID) bool { // segments of later barriers
		var err error
		if j, err = c.Store.Job(ctx, "copy"); err != nil || j.Base.Checkpoint <= beyond {
			return false
		}
		m, err := checkpoint.LoadManifest(ctx, c.Blobs, checkpoint.ManifestKey(j.ID, j.Base.Checkpoint))
		if err != nil {
			return false
		}
		own, _, err := m.WithoutGivenUp(m.OpenSegments(), beyond)
		return err == nil && len(own) > 0
	}
	c.Until("a checkpoint with open commits", func(ctx context.Context) bool { return open(ctx, 0) })
	given := j.Base.Checkpoint
	if err := c.Store.AbandonCommits(ctx, weir.Fence{Job: j.ID, Attempt: j.Attempt, Term: j.Term}, given); err != nil {
		t.Fatal(err)
	}
	m, err := checkpoint.LoadManifest(ctx, c.Blobs, checkpoint.ManifestKey(j.ID, given))
	if err != nil {
		t.Fatal(err)
	}
	dropped, _ := givenUp(t, m, out)
	c.Batches.Store(6) // more rows, for another checkpoint to commit
	c.Until("another checkpoint with some of its own", func(ctx context.Context) bool { return open(ctx, given) })
	if _, err := s.Cancel(ctx, "copy", false); err != nil {
		t.Fatal(err)
	}
	c.Await(s, "copy", weir.StatusStopping)
	c.Lose.Store(nil)
	c.Await(s, "copy", weir.StatusCanceled)
	check := func(when string) int {
		got := lines(t, out)
		for line, n := range got {
			if n != 1 || dropped[line] > 0 {
				t.Errorf("%s: %d times %s, given up %d times", when, n, line, dropped[line])
			}
		}
		return len(got)
	}
	if check("at its end") == 0 {
		t.Error("nothing is visible")
	}
	c.Batches.Store(0)
	if _, err := s.Start(ctx, "copy", job.StartRequest{}); err != nil {
		t.Fatal(err)
	}
	c.Await(s, "copy", weir.StatusFinished)
	if n := check("after another start"); len(dropped) == 0 || n+len(dropped) != 40000 {
		t.Errorf("%d rows are visible, %d were given up: want 40000 together", n, len(dropped))
	}
}
