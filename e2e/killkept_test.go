//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/checkpoint"
	"weir/checkpoint/blob"
)

// count submits a job that counts numbered rows by key, from a snapshot or from nothing,
// and returns the status of the answer. The texts make its state too large for acks.
func (d *doomed) count(a api, name, from string, perSecond int) int {
	a.t.Helper()
	sql := fmt.Sprintf(`CREATE TABLE g (i BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'rows-per-second' = '%d',
			'fields.i.kind' = 'sequence', 'fields.i.start' = '0');
		SET 'checkpoint.interval' = '50 ms';
		SET 'checkpoint.num_retained' = '2';
		SET 'restart.max_backoff' = '200 ms';
		SELECT i %% %d AS k, COUNT(*) AS n, MIN(RPAD(CAST(i %% %d AS STRING), 32, 'x')) AS t FROM g GROUP BY i %% %d`, d.rows, perSecond, d.keys, d.keys, d.keys)
	return a.do("POST", "/v1/jobs", map[string]any{"name": name, "sql": sql, "parallelism": 2, "restore_from": from}, nil)
}

// counted waits for the end of a job and compares its result.
func (d *doomed) counted(a api, name string) {
	a.t.Helper()
	a.awaitJob(name, 40*time.Second, name+" is FINISHED", func(j job) bool { return j.Status == "FINISHED" })
	var page struct{ Rows []killRow }
	a.must(http.StatusOK, "GET", "/v1/jobs/"+name+"/results?order_by=k&limit=1000", nil, &page)
	wrong := len(page.Rows) != d.keys
	for i, row := range page.Rows {
		wrong = wrong || row.K != int64(i) || row.N != int64(d.rows/d.keys)
	}
	if wrong {
		a.t.Errorf("%s: %d keys, want %d with %d rows each: %v…", name, len(page.Rows), d.keys, d.rows/d.keys, page.Rows[:min(10, len(page.Rows))])
	}
}

// kept lists what is completed and not given up.
func (d *doomed) kept(a api, name string) map[int64]string {
	a.t.Helper()
	var h killHistory
	a.must(http.StatusOK, "GET", "/v1/jobs/"+name+"/checkpoints?limit=500", nil, &h)
	list := map[int64]string{}
	for _, cp := range h.Checkpoints {
		if cp.Status == "completed" && !cp.Discarded {
			list[cp.ID] = cp.Manifest
		}
	}
	return list
}

// C19: the server dies in the middle of writing a manifest: what is listed as completed is
// whole, and each of it restores. C26: recovery never depends on a savepoint, which its user
// may delete from storage by hand; retention never deletes one.
func TestListedIsRestored(t *testing.T) {
	t.Parallel()
	d := startDoomed(t, setting{"sqlite", "folder"}, nil)
	d.rows = 24_000
	armed := filepath.Join(d.dir, "armed")
	d.begin("server", "within-put:3,armed="+armed) // all it puts are manifests
	d.begin("w1", "")
	d.begin("w2", "")
	a := d.api(t, "server")
	until(t, 20*time.Second, "the server is ready", func() bool { return a.do("GET", "/readyz", nil, nil) == http.StatusOK })
	if err := os.WriteFile(armed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	defer d.explain(a, "shop")
	if code := d.count(a, "shop", "", 2500); code != http.StatusCreated {
		t.Fatalf("submitted: %d", code)
	}
	d.awaitDeath(t, "server")
	d.begin("server", "")
	until(t, 20*time.Second, "the server is ready again", func() bool { return a.do("GET", "/readyz", nil, nil) == http.StatusOK })

	var forks []string
	listed := d.kept(a, "shop")
	if len(listed) == 0 {
		t.Error("two manifests were written, and nothing is listed as completed (C19)")
	}
	for id := range listed {
		name := fmt.Sprintf("from-%d", id)
		switch code := d.count(a, name, fmt.Sprintf("checkpoint:shop/%d", id), 1000000); {
		case code == http.StatusCreated:
			forks = append(forks, name)
		case d.kept(a, "shop")[id] != "": // else retention gave it up meanwhile
			t.Errorf("checkpoint %d is completed, and is not restored: %d (C19)", id, code)
		}
	}
	if len(forks) == 0 {
		t.Errorf("of %d that were listed none was restored (C19)", len(listed))
	}

	j, _ := a.awaitJob("shop", 20*time.Second, "RUNNING", func(j job) bool { return j.Status == "RUNNING" && j.Attempt > 1 })
	until(t, 20*time.Second, "the state is too large for acks", func() bool {
		var h struct {
			Checkpoints []struct {
				StateBytes int64 `json:"state_bytes"`
			} `json:"checkpoints"`
		}
		a.must(http.StatusOK, "GET", "/v1/jobs/shop/checkpoints?limit=1&status=completed", nil, &h)
		return len(h.Checkpoints) > 0 && h.Checkpoints[0].StateBytes > 20<<10
	})
	for _, name := range []string{"mine", "lost"} {
		until(t, 10*time.Second, "savepoint "+name, func() bool { // its coordinator may be about to start
			code := a.do("POST", "/v1/jobs/shop/savepoints?wait=10s", map[string]any{"name": name}, nil)
			return code == http.StatusOK || code == http.StatusCreated
		})
	}
	mine := d.lose(a, "lost")
	d.processes["w1"].kill()
	d.begin("w1", "")
	last := j.Attempt
	a.awaitJob("shop", 20*time.Second, "RUNNING again", func(j job) bool { return j.Attempt > last && (j.Status == "RUNNING" || j.Status == "FINISHED") })
	d.counted(a, "shop")
	var h killHistory
	a.must(http.StatusOK, "GET", "/v1/jobs/shop/checkpoints?limit=500&status=completed&type=checkpoint", nil, &h)
	newer := 0
	for _, cp := range h.Checkpoints {
		if cp.ID > mine {
			newer++
		}
	}
	if newer < 10 {
		t.Errorf("%d checkpoints are newer than savepoint mine, want 10 (C26)", newer)
	}
	if code := d.count(a, "from-lost", "savepoint:lost", 1000000); code != http.StatusConflict {
		t.Errorf("a job starts from a savepoint whose objects are gone: %d", code)
	}
	if code := d.count(a, "from-mine", "savepoint:mine", 1000000); code != http.StatusCreated {
		t.Errorf("savepoint mine is not restored after %d more checkpoints: %d (C26)", newer, code)
	}
	for _, name := range append(forks, "from-mine") {
		d.counted(a, name)
	}
}

// lose deletes a savepoint's objects and its manifest by hand, and returns the number of
// the savepoint before it.
func (d *doomed) lose(a api, name string) int64 {
	a.t.Helper()
	store, err := blob.Open(d.storage)
	if err != nil {
		a.t.Fatal(err)
	}
	var list struct {
		Savepoints []struct {
			Name       string `json:"name"`
			Checkpoint int64  `json:"checkpoint"`
			Manifest   string `json:"manifest"`
		} `json:"savepoints"`
	}
	a.must(http.StatusOK, "GET", "/v1/savepoints", nil, &list)
	ctx, other := context.Background(), int64(0)
	for _, sp := range list.Savepoints {
		if sp.Name != name {
			other = sp.Checkpoint
			continue
		}
		m, err := checkpoint.LoadManifest(ctx, store, sp.Manifest)
		if err != nil || len(m.Objects()) == 0 {
			a.t.Fatalf("savepoint %s has no objects: %v", name, err)
		}
		for _, key := range append(m.Objects(), sp.Manifest) {
			if err := store.Delete(ctx, key); err != nil {
				a.t.Fatal(err)
			}
		}
	}
	if other == 0 {
		a.t.Fatalf("savepoints %+v", list.Savepoints)
	}
	return other
}
