package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/server"
	"weir/server/job/jobtest"
)

// TestCluster takes a job through its life by HTTP, with real workers.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	service := c.Server("server")
	c.Worker("w1", 4)
	c.Worker("w2", 4)
	c.Heard(service, 2)
	a := &api{store: c.Store, log: &syncBuffer{}}
	a.Handler = server.New(server.Deps{Service: service, History: c.Store, Tables: c.Store, Logger: slog.New(slog.NewTextHandler(a.log, nil))}, server.Options{})
	if workers := call[server.WorkerList](t, a, "GET", "/v1/workers", nil, 200); len(workers.Workers) != 2 || workers.Workers[0].FreeSlots != 4 {
		t.Fatalf("workers: %+v", workers)
	}

	// A job that does not end: rows of a generator, one second apart.
	call[server.Table](t, a, "POST", "/v1/tables", map[string]string{"sql": `CREATE TABLE numbers (n BIGINT) WITH
		('connector' = 'datagen', 'rows-per-second' = '1000', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0')`}, 201)
	call[server.Job](t, a, "POST", "/v1/jobs", map[string]any{
		"name": "count", "sql": "SELECT COUNT(*) AS c FROM numbers", "checkpoint": map[string]any{"interval": "100ms"},
	}, 201)
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	status := func(want string) server.Job {
		var j server.Job
		eventually(t, "the job is "+want, func() bool {
			j = call[server.Job](t, a, "GET", "/v1/jobs/count", nil, 200)
			return j.Status == want
		})
		return j
	}
	status("RUNNING")
	next := follow(t, srv.URL, "/v1/jobs/count/results", "")
	if e := next(); e.Name != "reset" {
		t.Fatalf("first of the stream: %+v", e)
	}
	for e := next(); !strings.Contains(e.Data, `"+U"`); e = next() {
		if e.Name == "" {
			t.Fatal("the stream ended")
		}
	}
	eventually(t, "figures arrive", func() bool {
		rows := call[server.Job](t, a, "GET", "/v1/jobs/count", nil, 200).RowsIn
		return rows != nil && *rows > 0
	})

	sp := call[server.Checkpoint](t, a, "POST", "/v1/jobs/count/savepoints?wait=30s", map[string]string{"name": "sp"}, 200)
	if sp.Status != "completed" || sp.Savepoint != "sp" {
		t.Fatalf("savepoint: %+v", sp)
	}
	detail := call[server.CheckpointDetail](t, a, "GET", fmt.Sprintf("/v1/jobs/count/checkpoints/%d", sp.ID), nil, 200)
	if len(detail.Operators) == 0 || detail.Operators[0].Subtasks[0].Worker == "" {
		t.Fatalf("detail: %+v", detail)
	}
	cp := call[server.Checkpoint](t, a, "POST", "/v1/jobs/count/checkpoints?wait=30s", nil, 200)
	if cp.Status != "completed" {
		t.Fatalf("checkpoint: %+v", cp)
	}
	call[server.Job](t, a, "POST", "/v1/jobs/count/stop", map[string]string{"name": "end"}, 202)
	if j := status("STOPPED"); j.EndedAt == nil || j.Failure != nil {
		t.Fatalf("stopped: %+v", j)
	}
	total := func(at string) int64 {
		t.Helper()
		got := call[server.Results](t, a, "GET", "/v1/jobs/count/results?at="+at, nil, 200)
		var row struct{ C int64 }
		if err := json.Unmarshal(got.Rows[0], &row); err != nil {
			t.Fatal(err)
		}
		return row.C
	}
	end := total("latest")
	if was := total("savepoint:sp"); was <= 0 || end <= was || total("savepoint:end") != end {
		t.Fatalf("%d rows at the savepoint, %d at the end", was, end)
	}

	// The job keeps the definition that it was planned with.
	dropped := call[server.SQLAnswer](t, a, "POST", "/v1/sql", map[string]string{"sql": "DROP TABLE numbers; CREATE TABLE numbers (other STRING) WITH ('connector' = 'datagen')"}, 200)
	if got := dropped.Results[0].Message; got != "table numbers dropped" {
		t.Fatal(got)
	}

	// Back to the savepoint, at another parallelism; then nothing needs it any more.
	call[server.Problem](t, a, "DELETE", "/v1/savepoints/end", nil, 409)
	call[server.Job](t, a, "POST", "/v1/jobs/count/restore", map[string]any{"from": "savepoint:sp", "parallelism": 3}, 202)
	if j := status("RUNNING"); j.RestoredFrom != "savepoint:sp" || j.Parallelism != 3 {
		t.Fatalf("restored: %+v", j)
	}
	call[server.Checkpoint](t, a, "POST", "/v1/jobs/count/checkpoints?wait=30s", nil, 200)
	for _, name := range []string{"sp", "end"} {
		manifest := call[server.Savepoint](t, a, "GET", "/v1/savepoints/"+name, nil, 200).Manifest
		call[struct{}](t, a, "DELETE", "/v1/savepoints/"+name, nil, 204)
		eventually(t, "the objects of savepoint "+name+" go", func() bool {
			_, err := c.Blobs.Stat(t.Context(), manifest)
			return errors.Is(err, weir.ErrNotFound)
		})
	}
	call[server.Job](t, a, "POST", "/v1/jobs/count/cancel", nil, 202)
	status("CANCELED")
	call[struct{}](t, a, "DELETE", "/v1/jobs/count", nil, 204)
	call[server.Problem](t, a, "GET", "/v1/jobs/count", nil, 404)
}

// TestBoundedStream follows a bounded job's changes to their end.
func TestBoundedStream(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	c.Held.Store(false)
	service := c.Server("server")
	c.Worker("w1", 2)
	c.Heard(service, 1)
	path := filepath.Join(c.Dir, "in.csv")
	if err := os.WriteFile(path, []byte("a\nb\na\na\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &api{store: c.Store, log: &syncBuffer{}}
	a.Handler = server.New(server.Deps{Service: service, History: c.Store, Tables: c.Store, Logger: slog.New(slog.DiscardHandler)}, server.Options{})
	call[server.Job](t, a, "POST", "/v1/jobs", map[string]any{"name": "letters", "sql": fmt.Sprintf(
		`CREATE TABLE letters (l STRING) WITH ('connector' = 'filesystem', 'path' = '%s', 'format' = 'csv'); SELECT l, COUNT(*) AS n FROM letters GROUP BY l`, path)}, 201)
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	next := follow(t, srv.URL, "/v1/jobs/letters/results", "")
	rows := map[string]bool{}
	for e := next(); e.Name != "end"; e = next() {
		switch e.Name {
		case "reset":
			clear(rows)
		case "change":
			var ch struct {
				Op  string
				Row json.RawMessage
			}
			if err := json.Unmarshal([]byte(e.Data), &ch); err != nil {
				t.Fatal(err)
			}
			if rows[string(ch.Row)] = ch.Op[0] == '+'; !rows[string(ch.Row)] {
				delete(rows, string(ch.Row))
			}
		case "":
			t.Fatalf("the stream ended early: %s", a.log.String())
		}
	}
	if diff := cmp.Diff(map[string]bool{`{"l":"a","n":3}`: true, `{"l":"b","n":1}`: true}, rows); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if res, err := http.DefaultClient.Do(mustRequest(ctx, t, srv.URL+"/docs")); err != nil || res.Body.Close() != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("docs: %v, %v", res, err)
	}
}

func mustRequest(ctx context.Context, t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
