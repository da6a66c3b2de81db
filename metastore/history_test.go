package metastore_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir"
	"weir/checkpoint"
	"weir/metastore"
	"weir/metastore/metastoretest"
	"weir/metastore/postgrestest"
)

// TestLongHistory compares what the database says of a long history with what a naive
// computation does; with WEIR_LONG=1 it is a million rows, and it says how long each took.
func TestLongHistory(t *testing.T) {
	t.Parallel()
	rows := 4_000
	if os.Getenv("WEIR_LONG") != "" {
		rows = 1_000_000
	}
	for name, url := range map[string]string{"sqlite": sqliteURL(t), "postgres": postgrestest.Database(t)} {
		t.Run(name, func(t *testing.T) {
			s := open(t, url)
			j, err := s.CreateJob(t.Context(), weir.Job{ID: weir.NewJobID(), Name: "long", Desired: weir.DesiredRunning, Status: weir.StatusCreated}, "")
			if err == nil {
				err = s.FillHistory(t.Context(), j.ID, rows, `[{"version":1}]`)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []struct {
				name string
				checkpoint.Filter
				from, to int64
			}{
				{"all of it", checkpoint.Filter{}, 1, int64(rows)},
				{"two attempts", checkpoint.Filter{Attempt: 3}, 2000, 2999},
				{"a tenth of the time", checkpoint.Filter{Since: longAgo(rows / 2), Until: longAgo(rows/2 + rows/10)}, int64(rows / 2), int64(rows/2+rows/10) - 1},
			} {
				began := time.Now()
				got, err := s.CheckpointSummary(t.Context(), j.ID, f.Filter)
				t.Logf("%d rows, summary of %s: %v", rows, f.name, time.Since(began).Round(time.Millisecond))
				if diff := cmp.Diff(naiveSummary(f.from, f.to), got, cmpopts.EquateApprox(1e-9, 0)); err != nil || diff != "" {
					t.Errorf("%s: %v, -want +got:\n%s", f.name, err, diff)
				}
			}
			pages(t, s, j.ID, rows)
			began := time.Now()
			done := checkpoint.Thinned{More: true}
			for batches := 0; done.More && batches < 10; batches++ {
				if done, err = s.ThinHistory(t.Context(), checkpoint.Thinning{Detail: time.Second, Rows: time.Second}); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d rows, ten batches of thinning: %v", rows, time.Since(began).Round(time.Millisecond))
		})
	}
}

// longAgo is when row n was triggered.
func longAgo(n int) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(n) * 10 * time.Second)
}

func naiveSummary(from, to int64) checkpoint.Summary {
	var sum checkpoint.Summary
	var took, state, fresh []float64
	for n := from; n <= to; n++ {
		r, us := metastore.Filled(n)
		sum.Total++
		if r.Status == checkpoint.StatusFailed {
			sum.Failed++
			continue
		}
		sum.Completed++
		took, state, fresh = append(took, float64(us)/1000), append(state, float64(r.StateBytes)), append(fresh, float64(r.NewBytes))
	}
	sum.Duration, sum.StateBytes, sum.NewBytes = metastoretest.Distribution(took), metastoretest.Distribution(state), metastoretest.Distribution(fresh)
	return sum
}

// pages reads pages of a long history that few rows of it belong to.
func pages(t *testing.T, s *metastore.Store, job weir.JobID, rows int) {
	t.Helper()
	for name, f := range map[string]checkpoint.Filter{
		"the newest":     {},
		"failed":         {Status: []checkpoint.Status{checkpoint.StatusFailed}},
		"timeout":        {Reason: []string{checkpoint.ReasonTimeout}},
		"an old attempt": {Attempt: 2},
		"long ones":      {MinDuration: 99_900 * time.Microsecond},
		"old":            {Until: longAgo(60)},
		"savepoints":     {Type: checkpoint.TypeSavepoint},
		"canceled":       {Reason: []string{checkpoint.ReasonCanceled}},
	} {
		f.Limit = 50
		began := time.Now()
		list, err := s.Checkpoints(t.Context(), job, f)
		t.Logf("%d rows, a page of %s: %v", rows, name, time.Since(began).Round(100*time.Microsecond))
		want := 50
		switch name {
		case "savepoints", "canceled":
			want = 0
		case "long ones":
			want = min(50, len(list))
		}
		if err != nil || len(list) != want {
			t.Errorf("%s: %d rows, want %d, %v", name, len(list), want, err)
		}
	}
}

// TestMigrateHistory: rows of an older version can be asked for as new ones can.
func TestMigrateHistory(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"sqlite": sqliteURL(t), "postgres": postgrestest.Database(t)} {
		t.Run(name, func(t *testing.T) {
			id := weir.NewJobID()
			row := `INSERT INTO checkpoints (job, id, attempt, attempt_tag, type, status, periodic, triggered_at, completed_at, state_bytes, new_bytes, manifest, savepoint,
				commits_open, final, discarded, failure) VALUES ('` + string(id) + `', %d, 1, 'a', 'checkpoint', '%s', TRUE, '2026-03-01T11:59:58.500000Z', %s, 1, 1, '', '', FALSE, FALSE, FALSE, %s)`
			err := metastore.MigrateTo(t.Context(), url, 2,
				`INSERT INTO jobs (id, name, sql, parallelism, max_parallelism, on_row_error, shard, desired, status, attempt, attempt_tag, term, base_job, base_checkpoint,
				restored_from_job, restored_from_checkpoint, stop_savepoint, last_checkpoint, last_event, writes, created_at)
				VALUES ('`+string(id)+`', 'old', '', 1, 1, '', 0, 'running', 'RUNNING', 1, 'a', 1, '', 0, '', 0, '', 3, 0, '', '2026-03-01T11:00:00.000000Z')`,
				fmt.Sprintf(row, 1, "completed", "'2026-03-01T12:00:00.750000Z'", "NULL"),
				fmt.Sprintf(row, 2, "failed", "'2026-03-01T12:00:00.250000Z'", `'{"reason":"timeout","message":"late"}'`),
				fmt.Sprintf(row, 3, "pending", "NULL", "NULL"))
			if err != nil {
				t.Fatal(err)
			}
			s := open(t, url)
			for want, f := range map[weir.CheckpointID]checkpoint.Filter{
				1: {MinDuration: 2250 * time.Millisecond},
				2: {Reason: []string{checkpoint.ReasonTimeout}, MinDuration: 1750 * time.Millisecond},
				3: {Status: []checkpoint.Status{checkpoint.StatusPending}},
			} {
				if list, err := s.Checkpoints(t.Context(), id, f); err != nil || len(list) != 1 || list[0].ID != want {
					t.Errorf("%d: %+v, %v", want, list, err)
				}
			}
			if err := metastore.MigrateDown(t.Context(), url, 2); err != nil {
				t.Error(err)
			}
		})
	}
}
