package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
	"weir/planner/expr"
	"weir/planner/plan"
	"weir/server"
	"weir/server/job"
)

// TestDocumentIsComplete compares the document's operations with the route table.
func TestDocumentIsComplete(t *testing.T) {
	t.Parallel()
	doc, _ := document(t)
	var documented []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			documented = append(documented, method+" "+path)
		}
	}
	slices.Sort(documented)
	var served []string
	for _, r := range server.Routes() {
		path := r.Path
		for _, part := range strings.Split(path, "/") {
			if name, ok := strings.CutPrefix(part, ":"); ok {
				path = strings.Replace(path, part, "{"+name+"}", 1)
			}
		}
		if r.Method != http.MethodHead && (strings.HasPrefix(path, "/v1/") || path == "/healthz" || path == "/readyz") {
			served = append(served, r.Method+" "+path)
		}
	}
	slices.Sort(served)
	if diff := cmp.Diff(served, documented); diff != "" {
		t.Fatalf("-served +documented (go run ./openapi/gen):\n%s", diff)
	}
}

func TestTriggers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id := a.newJob(t, "a").ID
	var waited time.Duration
	a.fake.trigger = func(_ context.Context, name string, savepoint bool, wait time.Duration) (job.Triggered, error) {
		waited = wait
		r := checkpoint.Record{Job: weir.JobID(id), ID: 4, Type: checkpoint.TypeCheckpoint, Status: checkpoint.StatusPending, TriggeredAt: when}
		if savepoint {
			r.Type, r.Savepoint = checkpoint.TypeSavepoint, name
		}
		if wait > 0 {
			r.Status, r.CompletedAt = checkpoint.StatusFailed, when.Add(time.Second)
			r.Failure = &weir.Failure{Reason: checkpoint.ReasonTimeout, Message: "late"}
		}
		return job.Triggered{Record: r, Turn: checkpoint.TurnQueued}, nil
	}
	for path, want := range map[string]struct {
		status   int
		location string
		body     any
	}{
		"/checkpoints":          {202, "/v1/jobs/" + id + "/checkpoints/4", nil},
		"/checkpoints?wait=30s": {200, "/v1/jobs/" + id + "/checkpoints/4", nil},
		"/savepoints":           {202, "/v1/savepoints/sp", `{"name":"sp"}`},
		"/savepoints?wait=1m":   {200, "/v1/savepoints/sp", `{"name":"sp"}`},
	} {
		var body io.Reader
		if text, ok := want.body.(string); ok {
			body = strings.NewReader(text)
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/jobs/a"+path, body)
		if body != nil {
			r.Header.Set("Content-Type", "application/json")
		}
		res := a.serve(t, r)
		if res.StatusCode != want.status || res.Header.Get("Location") != want.location {
			t.Errorf("%s: %s, %s", path, res.Status, res.Header.Get("Location"))
		}
	}
	call[server.Checkpoint](t, a, "POST", "/v1/jobs/a/checkpoints?wait=90s", nil, 200)
	if waited != 90*time.Second {
		t.Errorf("waited %v", waited)
	}
	call[server.Problem](t, a, "POST", "/v1/jobs/a/savepoints", map[string]string{"name": "a b"}, 400)
}

func TestCancelCheckpoint(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.newJob(t, "a")
	for status, want := range map[checkpoint.Status]int{checkpoint.StatusAborted: 200, checkpoint.StatusPending: 202} {
		a.fake.cancel = func(id weir.CheckpointID) (checkpoint.Record, error) {
			return checkpoint.Record{ID: id, Type: checkpoint.TypeCheckpoint, Status: status, TriggeredAt: when}, nil
		}
		if c := call[server.Checkpoint](t, a, "DELETE", "/v1/jobs/a/checkpoints/4", nil, want); c.ID != 4 || c.Status != string(status) {
			t.Errorf("canceled: %+v", c)
		}
	}
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.newJob(t, "a")
	a.run(t, "a")
	p := call[server.Problem](t, a, "POST", "/v1/jobs/a/checkpoints", nil, 503) // nobody holds the lease
	if !strings.Contains(p.Detail, "lease") {
		t.Errorf("detail: %s", p.Detail)
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{fmt.Errorf("x: %w", job.ErrUnavailable), 503},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), 503},
		{fmt.Errorf("x: %w", weir.ErrStale), 503},
		{fmt.Errorf("x: %w", weir.ErrConflict), 409},
		{fmt.Errorf("x: %w", weir.ErrNotFound), 404},
		{fmt.Errorf("x: %w", weir.ErrInvalid), 400}, // of a GET
		{errWant, 500},
	} {
		a.fake.results = func(job.ResultQuery) (*job.ResultPage, error) { return nil, c.err }
		p := call[server.Problem](t, a, "GET", "/v1/jobs/a/results", nil, c.want)
		if p.Status != c.want || p.Title != http.StatusText(c.want) || c.want == 500 && strings.Contains(p.Detail, errWant.Error()) {
			t.Errorf("%v: %+v", c.err, p)
		}
	}
	if err := a.store.Close(); err != nil {
		t.Fatal(err)
	}
	p = call[server.Problem](t, a, "GET", "/readyz", nil, 503)
	if p.Detail != "not ready: metastore cannot be reached" {
		t.Errorf("detail: %s", p.Detail)
	}
	call[server.Health](t, a, "GET", "/healthz", nil, 200)
}

// TestSecretsAreNotAnswered: what a dependency says of itself may hold its URL.
func TestSecretsAreNotAnswered(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	secret := &url.Error{Op: "parse", URL: "postgres://u:S3cr@host/db", Err: errWant}
	a.probe = func(context.Context) error { return secret }
	a.fake.results = func(job.ResultQuery) (*job.ResultPage, error) { return nil, fmt.Errorf("read: %w", secret) }
	a.newJob(t, "a")
	for path, status := range map[string]int{"/readyz": 503, "/v1/cluster": 200, "/v1/jobs/a/results": 503} {
		res := a.serve(t, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, nil))
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != status || bytes.Contains(body, []byte("S3cr")) || bytes.Contains(body, []byte("host")) {
			t.Errorf("%s: %s, %v\n%s", path, res.Status, err, body)
		}
	}
	if log := a.log.String(); strings.Contains(log, "S3cr") || !strings.Contains(log, errWant.Error()) {
		t.Errorf("the log: %s", log)
	}
}

func TestPanicShowsNothing(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.fake.results = func(job.ResultQuery) (*job.ResultPage, error) { panic("secret of line 7") }
	p := call[server.Problem](t, a, "GET", "/v1/jobs/a/results", nil, 500)
	if strings.Contains(p.Detail, "secret") || strings.Contains(p.Detail, "goroutine") {
		t.Fatalf("the answer shows %q", p.Detail)
	}
	if log := a.log.String(); !strings.Contains(log, "secret of line 7") || !strings.Contains(log, "results") {
		t.Fatalf("the log does not show it: %s", log)
	}
}

// TestRejects: M15: a skipped row is shown with its place, its reason and its text, and
// counted in the job.
func TestRejects(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.newJob(t, "a")
	p := call[server.Problem](t, a, "GET", "/v1/jobs/a/rejects", nil, 409)
	if !strings.Contains(p.Detail, "on_row_error is fail") {
		t.Errorf("detail: %s", p.Detail)
	}
	a.fake.rejects = func(limit int, cursor string) (*job.RejectPage, error) {
		counted := limit == 1 && cursor == "" // what a job that does not run is asked for
		if !counted && (limit != 2 || cursor != "c") {
			return nil, fmt.Errorf("%w: limit %d, cursor %q", weir.ErrInvalid, limit, cursor)
		}
		return &job.RejectPage{
			Counts: []deploy.Count{{Table: "s", Rows: 9}},
			Rows: []json.RawMessage{
				json.RawMessage(`{"table":"s","path":"in/2.csv","line":7,"offset":0,"column":"v","reason":"\"<b>\" is not a BIGINT","raw":"<b>"}`),
				json.RawMessage(`{"table":"s","path":"in/2.csv","line":9,"offset":33,"reason":"not valid UTF-8","raw_base64":"/w=="}`),
			},
			AsOf: job.AsOf{Live: true}, Next: "d",
		}, nil
	}
	got := call[server.Rejects](t, a, "GET", "/v1/jobs/a/rejects?limit=2&cursor=c", nil, 200)
	first, at, text := int64(0), int64(33), "<b>"
	want := server.Rejects{
		Counts: []server.RejectCount{{Table: "s", Rows: 9}}, AsOf: server.AsOf{Live: true}, Next: "d",
		Rows: []server.Reject{
			{Table: "s", Path: "in/2.csv", Line: 7, Offset: &first, Column: "v", Reason: `"<b>" is not a BIGINT`, Raw: &text},
			{Table: "s", Path: "in/2.csv", Line: 9, Offset: &at, Reason: "not valid UTF-8", RawBase64: "/w=="},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	call[server.Job](t, a, "POST", "/v1/jobs", map[string]any{"name": "skips", "on_row_error": "skip", "sql": "CREATE TABLE g (k STRING) WITH ('connector' = 'datagen'); SELECT k FROM g"}, 201)
	if j := call[server.JobList](t, a, "GET", "/v1/jobs?name=skips", nil, 200).Jobs[0]; j.RowsRejected != nil {
		t.Errorf("in a list, not running: %+v", j)
	}
	if j := call[server.Job](t, a, "GET", "/v1/jobs/skips", nil, 200); j.RowsRejected == nil || *j.RowsRejected != 9 {
		t.Errorf("not running: %+v", j)
	}
	a.fake.rates = job.Rates{Chains: []job.ChainRates{{Tasks: 1}}, RowsRejected: 9}
	if j := call[server.Job](t, a, "GET", "/v1/jobs/a", nil, 200); j.RowsRejected == nil || *j.RowsRejected != 9 {
		t.Errorf("the job: %+v", j)
	}
	call[server.Problem](t, a, "GET", "/v1/jobs/a/rejects?limit=0", nil, 400)
}

func TestResults(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.newJob(t, "a")
	var asked job.ResultQuery
	a.fake.results = func(q job.ResultQuery) (*job.ResultPage, error) {
		asked = q
		return &job.ResultPage{
			Columns: []plan.Column{{Name: "id", Type: expr.Type{Kind: expr.BigInt}}, {Name: "s", Type: expr.DecimalType(2)}},
			Rows:    []json.RawMessage{[]byte(`{"id":9007199254740993,"s":12345678901234567.89}`), []byte(`{"id":7,"s":null}`)},
			AsOf:    job.AsOf{Checkpoint: 7, Live: true}, Total: 12, Next: "next",
		}, nil
	}
	got := call[server.Results](t, a, "GET", "/v1/jobs/a/results?limit=2&order_by=-s,id&cursor=c&at=checkpoint:7&format=json", nil, 200)
	if diff := cmp.Diff(job.ResultQuery{Limit: 2, OrderBy: "-s,id", Cursor: "c", At: "checkpoint:7"}, asked); diff != "" {
		t.Errorf("asked: -want +got:\n%s", diff)
	}
	want := server.Results{
		Columns: []server.ResultColumn{{Name: "id", Type: "BIGINT"}, {Name: "s", Type: "DECIMAL(38, 2)"}},
		Rows:    []json.RawMessage{[]byte(`{"id":9007199254740993,"s":12345678901234567.89}`), []byte(`{"id":7,"s":null}`)},
		AsOf:    server.AsOf{Checkpoint: 7, Live: true}, Total: 12, Next: "next",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got = call[server.Results](t, a, "GET", "/v1/jobs/a/results?numbers=string", nil, 200)
	if row := string(got.Rows[0]); row != `{"id":"9007199254740993","s":"12345678901234567.89"}` {
		t.Errorf("exact: %s", row)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.newJob(t, "a")
	for _, path := range []string{"/v1/jobs/a", "/v1/jobs/a/plan", "/v1/jobs/a/metrics"} {
		if got := call[json.RawMessage](t, a, "GET", path, nil, 200); bytes.Contains(got, []byte("rows_in")) || bytes.Contains(got, []byte("rows_out")) {
			t.Errorf("%s has rows, and nobody knows them: %s", path, got)
		}
	}
	a.fake.rates = job.Rates{RowsIn: 100, RowsOut: 10, Chains: []job.ChainRates{{Chain: 0, Tasks: 1, Flow: job.Flow{RowsIn: 100, RowsOut: 50, RowsInPerSecond: 9.5}, Busy: 0.5, Blocked: 0.25, State: job.StateFigures{Bytes: 7}, Watermark: when}, {Chain: 1}, {Chain: 9}}}
	a.fake.workers = []job.Worker{{ID: "w1", Incarnation: "i", PID: 42, Host: "h", Slots: 4, FreeSlots: 1, Tasks: 6, Jobs: []weir.JobID{"job_x"}, HeardAt: when}}
	if j := call[server.Job](t, a, "GET", "/v1/jobs/a", nil, 200); *j.RowsIn != 100 || *j.RowsOut != 10 {
		t.Errorf("job: %+v", j)
	}
	p := call[server.JobPlan](t, a, "GET", "/v1/jobs/a/plan", nil, 200)
	if c := p.Chains[0]; len(p.Chains) != 2 || *c.RowsOut != 50 || *c.RowsInPerSecond != 9.5 || p.Chains[1].RowsIn != nil || c.Busy != 0.5 || c.BackPressured != 0.25 || c.StateBytes != 7 || !c.Watermark.Equal(when) {
		t.Errorf("plan: %+v", p)
	}
	workers := call[server.WorkerList](t, a, "GET", "/v1/workers", nil, 200)
	want := server.Worker{ID: "w1", Incarnation: "i", PID: 42, Host: "h", Slots: 4, FreeSlots: 1, Tasks: 6, Jobs: []string{"job_x"}, HeardAt: when}
	if diff := cmp.Diff([]server.Worker{want}, workers.Workers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if c := call[server.Cluster](t, a, "GET", "/v1/cluster", nil, 200); c.Workers != 1 || c.Slots != 4 || c.FreeSlots != 1 {
		t.Errorf("cluster: %+v", c)
	}
}

// TestPages reads a list page by page while it grows: each job is seen once.
func TestPages(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	var want []string
	for i := range 7 {
		name := fmt.Sprint("job-", i)
		a.newJob(t, name)
		want = append(want, name)
	}
	slices.Reverse(want)
	var got []string
	path := "/v1/jobs?limit=3"
	for n := 0; ; n++ {
		page := call[server.JobList](t, a, "GET", path, nil, 200)
		for _, j := range page.Jobs {
			got = append(got, j.Name)
		}
		if page.Next == "" {
			break
		}
		a.newJob(t, fmt.Sprint("late-", n))
		path = "/v1/jobs?limit=3&cursor=" + page.Next
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNamesAreReachable: what may be created can be read and dropped by its name.
func TestNamesAreReachable(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, name := range []string{"a b", "a/b", "a%2Fb", "a?b#c", "ü", "..", "new", "__proto__"} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/tables", strings.NewReader(
			`{"sql":"CREATE TABLE `+"`"+name+"`"+` (n BIGINT) WITH ('connector' = 'datagen')"}`))
		r.Header.Set("Content-Type", "application/json")
		res := a.serve(t, r)
		if res.StatusCode == http.StatusUnprocessableEntity {
			continue // refused at the door
		}
		location := res.Header.Get("Location")
		if v := call[server.Table](t, a, "GET", location, nil, 200); v.Name != name {
			t.Errorf("%q was read as %q", name, v.Name)
		}
		call[struct{}](t, a, "DELETE", location, nil, 204)
	}
}

func TestClientGone(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	ctx, cancel := context.WithCancel(t.Context())
	a.fake.results = func(job.ResultQuery) (*job.ResultPage, error) {
		cancel()
		return nil, errors.New("whatever")
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://localhost/v1/jobs/a/results", nil))
	if w.Body.Len() != 0 || a.log.String() != "" {
		t.Fatalf("answered %q, logged %q", w.Body, a.log.String())
	}
}
