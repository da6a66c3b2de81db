package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir"
	"weir/checkpoint"
	"weir/exec/batch"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// TestC22Retention: a job that writes files takes many checkpoints under load, retention keeps
// two; stopped, it goes on from each of what is kept: every object is there, and no row is
// missing. From the stop's savepoint none is there twice either; from an older one, which
// is refused without allow_duplicate_output, only what it had shown after that.
func TestC22Retention(t *testing.T) {
	t.Parallel()
	many := weir.CheckpointID(4)
	rows := 40_000
	if os.Getenv("WEIR_LONG") != "" {
		many, rows = 100, 400_000
	}
	for back := range 3 {
		t.Run(fmt.Sprintf("%d back", back), func(t *testing.T) {
			t.Parallel()
			retained(t, many, rows, back)
		})
	}
}

// retained does so for the snapshot that is so many before the newest.
func retained(t *testing.T, many weir.CheckpointID, n, back int) {
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 4)
	ctx := context.Background()
	out := filepath.Join(c.Dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	sql := strings.NewReplacer("'number-of-rows' = '40000'", fmt.Sprintf("'number-of-rows' = '%d'", n), "'40000'", "'8000'", "'39999'", fmt.Sprintf("'%d'", n-1)).Replace(copyRows(out))
	spec := c.Spec("copy", sql, 2)
	spec.Checkpoint = json.RawMessage(`{"interval":"10ms","num_retained":2}`)
	c.Batches.Store(int64(n / 4 / batch.Target)) // of each of two sources: some rows are left
	if _, err := s.Submit(ctx, spec); err != nil {
		t.Fatal(err)
	}
	c.Until("many checkpoints", func(ctx context.Context) bool {
		j, err := c.Store.Job(ctx, "copy")
		return err == nil && j.Base.Checkpoint >= many
	})
	if _, err := s.Stop(ctx, "copy", job.StopRequest{Name: "last"}); err != nil {
		t.Fatal(err)
	}
	j := c.Await(s, "copy", weir.StatusStopped)
	c.Until("what is kept is whole, and nothing else lies there", func(ctx context.Context) bool {
		found, err := checkpoint.Find(ctx, c.Blobs, j.ID)
		return err == nil && len(found.Manifests) == 3
	})
	kept, err := c.Store.Retained(ctx, j.ID)
	if err != nil || len(kept) != 3 {
		t.Fatalf("%d snapshots are kept, %v", len(kept), err)
	}
	for _, r := range kept {
		m, err := checkpoint.LoadManifest(ctx, c.Blobs, r.Manifest)
		if err == nil {
			err = m.CheckObjects(ctx, c.Blobs)
		}
		if err != nil {
			t.Errorf("checkpoint %d: %v", r.ID, err)
		}
	}
	before := lines(t, out)
	if len(before) == 0 || len(before) == n {
		t.Fatalf("%d rows before the restore", len(before))
	}
	c.Batches.Store(0)
	from := job.StartRequest{From: fmt.Sprintf("checkpoint:%d", kept[back].ID)}
	if back > 0 {
		if _, err := s.Start(ctx, "copy", from); !errors.Is(err, weir.ErrConflict) || !strings.Contains(err.Error(), "allow_duplicate_output") {
			t.Errorf("from checkpoint %d: %v", kept[back].ID, err)
		}
		from.AllowDuplicateOutput = true
	}
	if _, err := s.Start(ctx, "copy", from); err != nil {
		t.Fatal(err)
	}
	if j := c.Await(s, "copy", weir.StatusFinished, weir.StatusFailed); j.Status != weir.StatusFinished {
		t.Fatalf("%s: %+v", j.Status, j.Failure)
	}
	got := lines(t, out)
	if len(got) != n {
		t.Errorf("%d rows, want %d", len(got), n)
	}
	for line, times := range got {
		if times > 1 && (back == 0 || times > 2 || before[line] == 0) {
			t.Errorf("%d times %s", times, line)
		}
	}
}
