package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"weir"
	"weir/checkpoint"
	"weir/checkpoint/blob"
	"weir/metastore"
	"weir/openapi"
	"weir/server"
	"weir/server/job"
)

// A fake is a job service that runs nothing: lifecycle and lists are the real ones on
// a metastore; what workers would answer is set by the test.
type fake struct {
	*job.Service
	trigger func(ctx context.Context, name string, savepoint bool, wait time.Duration) (job.Triggered, error)
	cancel  func(id weir.CheckpointID) (checkpoint.Record, error)
	far     func(id weir.CheckpointID) (job.Progress, error)
	results func(q job.ResultQuery) (*job.ResultPage, error)
	changes func(ctx context.Context, cursor string) (*job.ChangePage, error)
	looked  func() // whenever a job was read
	rejects func(limit int, cursor string) (*job.RejectPage, error)
	workers []job.Worker
	rates   job.Rates

	channels func() (job.Channels, error)
	observe  func(ctx context.Context) (job.Observation, error)
}

// A faultyHistory is a metastore whose checkpoints can be unreadable.
type faultyHistory struct {
	*metastore.Store
	err error
}

func (h *faultyHistory) Checkpoints(ctx context.Context, job weir.JobID, f checkpoint.Filter) ([]checkpoint.Record, error) {
	if h.err != nil {
		return nil, h.err
	}
	return h.Store.Checkpoints(ctx, job, f)
}

func (f *fake) Channels(ctx context.Context, idOrName string) (job.Channels, error) {
	if f.channels == nil {
		return f.Service.Channels(ctx, idOrName)
	}
	return f.channels()
}

func (f *fake) Observe(ctx context.Context) (job.Observation, error) {
	if f.observe == nil {
		return f.Service.Observe(ctx)
	}
	return f.observe(ctx)
}

func (f *fake) TriggerCheckpoint(ctx context.Context, idOrName string, wait time.Duration) (job.Triggered, error) {
	if f.trigger == nil {
		return f.Service.TriggerCheckpoint(ctx, idOrName, wait)
	}
	return f.trigger(ctx, "", false, wait)
}

func (f *fake) TriggerSavepoint(ctx context.Context, idOrName, name string, wait time.Duration) (job.Triggered, error) {
	if f.trigger == nil {
		return f.Service.TriggerSavepoint(ctx, idOrName, name, wait)
	}
	return f.trigger(ctx, name, true, wait)
}

func (f *fake) CancelCheckpoint(ctx context.Context, idOrName string, id weir.CheckpointID) (checkpoint.Record, error) {
	if f.cancel == nil {
		return f.Service.CancelCheckpoint(ctx, idOrName, id)
	}
	return f.cancel(id)
}

func (f *fake) CheckpointProgress(ctx context.Context, j weir.JobID, id weir.CheckpointID) (job.Progress, error) {
	if f.far == nil {
		return f.Service.CheckpointProgress(ctx, j, id)
	}
	return f.far(id)
}

func (f *fake) Results(ctx context.Context, idOrName string, q job.ResultQuery) (*job.ResultPage, error) {
	if f.results == nil {
		return f.Service.Results(ctx, idOrName, q)
	}
	return f.results(q)
}

func (f *fake) Get(ctx context.Context, idOrName string) (weir.Job, error) {
	if f.looked != nil {
		defer f.looked()
	}
	return f.Service.Get(ctx, idOrName)
}

func (f *fake) Changes(ctx context.Context, idOrName, cursor string) (*job.ChangePage, error) {
	if f.changes == nil {
		return f.Service.Changes(ctx, idOrName, cursor)
	}
	return f.changes(ctx, cursor)
}

func (f *fake) Rejects(ctx context.Context, idOrName string, limit int, cursor string) (*job.RejectPage, error) {
	if f.rejects == nil {
		return f.Service.Rejects(ctx, idOrName, limit, cursor)
	}
	return f.rejects(limit, cursor)
}

func (f *fake) Workers(context.Context) ([]job.Worker, error) { return f.workers, nil }

func (f *fake) Rates(ctx context.Context, idOrName string) (job.Rates, error) {
	if f.rates.Chains == nil {
		return f.Service.Rates(ctx, idOrName)
	}
	return f.rates, nil
}

// An api is a server under test and the document that its answers must fit.
type api struct {
	store   *metastore.Store
	history *faultyHistory
	blobs   blob.Store
	fake    *fake
	log     *syncBuffer
	probe   func(ctx context.Context) error // nil: the metastore's
	http.Handler
}

// A syncBuffer is a log that may be written by many.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newStore(t testing.TB) *metastore.Store {
	t.Helper()
	url := "sqlite:" + filepath.Join(t.TempDir(), "weir.db")
	if _, err := metastore.Migrate(t.Context(), url, metastore.Options{ConnectTimeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	store, err := metastore.Open(t.Context(), url, metastore.Options{ConnectTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func newAPI(t testing.TB) *api {
	t.Helper()
	store, blobs, log := newStore(t), blob.NewMemory(), &syncBuffer{}
	f := &fake{Service: job.New(job.Deps{Store: store, Checkpoints: store, Blobs: blobs, Logger: slog.New(slog.DiscardHandler)}, job.Options{})}
	a := &api{store: store, history: &faultyHistory{Store: store}, blobs: blobs, fake: f, log: log}
	a.Handler = server.New(server.Deps{Service: f, History: a.history, Tables: store, Logger: slog.New(slog.NewTextHandler(log, nil))}, server.Options{
		Version: "test",
		Hosts:   []string{"weir.example"},
		CheckPath: func(path string) error {
			if strings.HasPrefix(path, "/data/") {
				return nil
			}
			return fmt.Errorf("path %s is outside of the folders of --files", path)
		},
		Probes: []server.Probe{{Name: "metastore", Check: func(ctx context.Context) error {
			if a.probe != nil {
				return a.probe(ctx)
			}
			return store.Ping(ctx)
		}}},
		Poll: 5 * time.Millisecond,
		Files: fstest.MapFS{
			"index.html":                   {Data: []byte("<!doctype html>dashboard")},
			"assets/main-abc.js":           {Data: []byte("run()")},
			"swagger/swagger-ui-bundle.js": {Data: []byte("swagger()")},
		},
	})
	return a
}

// document is the OpenAPI document, read once; objects have no fields but those it names.
func document(t testing.TB) (*openapi3.T, routers.Router) {
	t.Helper()
	d := readDocument()
	if d.err != nil {
		t.Fatal(d.err)
	}
	return d.doc, d.router
}

type readResult struct {
	doc    *openapi3.T
	router routers.Router
	err    error
}

var readDocument = sync.OnceValue(func() readResult {
	doc, err := openapi3.NewLoader().LoadFromData(openapi.Document())
	if err != nil {
		return readResult{err: err}
	}
	closed := false
	for _, schema := range doc.Components.Schemas {
		if len(schema.Value.Properties) > 0 {
			schema.Value.AdditionalProperties = openapi3.AdditionalProperties{Has: &closed}
		}
	}
	doc.Servers = nil // any host
	router, err := legacy.NewRouter(doc)
	return readResult{doc, router, err}
})

// documented are the paths that the document is about.
var documented = regexp.MustCompile(`^/(v1/|healthz|readyz)`)

// serve serves a request and checks the answer, and, where it is a success, the request
// against the document.
func (a *api) serve(t testing.TB, r *http.Request) *http.Response {
	t.Helper()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body) // memory
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	res := w.Result()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	res.Body = io.NopCloser(bytes.NewReader(answer))
	if r.Method == http.MethodHead { // the body, which net/http leaves out, is that of GET
		r = r.Clone(t.Context())
		r.Method, res.Body = http.MethodGet, http.NoBody
	}
	if res.Header.Get("Content-Type") == "text/event-stream" {
		return res // the document has no more to say of it
	}
	_, router := document(t)
	route, params, err := router.FindRoute(r)
	if err != nil {
		escaped := r.URL.RawPath != "" // this router reads decoded paths
		if res.StatusCode < 300 && documented.MatchString(r.URL.Path) && !escaped && r.Method != http.MethodOptions {
			t.Fatalf("%s %s is not in the document: %v", r.Method, r.URL, err)
		}
		return res
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{IncludeResponseStatus: true}}
	if res.StatusCode < 300 {
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			t.Fatalf("request %s %s: %v", r.Method, r.URL, err)
		}
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: res.StatusCode, Header: res.Header, Body: io.NopCloser(bytes.NewReader(answer)), Options: in.Options,
	})
	if err != nil {
		t.Fatalf("response to %s %s: %v\n%s", r.Method, r.URL, err, answer)
	}
	return res
}

// call makes a request with a JSON body and decodes the answer.
func call[T any](t testing.TB, a *api, method, path string, body any, want int) (out T) {
	t.Helper()
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		reader = bytes.NewReader(b)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, reader)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res := a.serve(t, r)
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != want {
		t.Fatalf("%s %s: %s, want %d\n%s", method, path, res.Status, want, answer)
	}
	if len(answer) > 0 {
		if err := json.Unmarshal(answer, &out); err != nil {
			t.Fatalf("%s %s: %v\n%s", method, path, err, answer)
		}
	}
	return out
}

// newJob creates a job on a generated table.
func (a *api) newJob(t testing.TB, name string) server.Job {
	t.Helper()
	return call[server.Job](t, a, "POST", "/v1/jobs", map[string]any{"name": name, "sql": generated}, http.StatusCreated)
}

const generated = "CREATE TABLE g (k STRING, v BIGINT) WITH ('connector' = 'datagen'); SELECT k, COUNT(*) AS n FROM g GROUP BY k"

// run takes a job to RUNNING as its machine would.
func (a *api) run(t testing.TB, name string) weir.Fence {
	t.Helper()
	j, err := a.store.Job(t.Context(), name)
	if err == nil {
		j, err = a.store.BeginAttempt(t.Context(), j.ID, j.Attempt, 1)
	}
	f := weir.Fence{Job: j.ID, Attempt: j.Attempt, Term: j.Term}
	if err == nil {
		err = a.store.SetStatus(t.Context(), f, weir.StatusRunning, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// checkpoint takes a checkpoint, or a savepoint where it has a name.
func (a *api) checkpoint(t testing.TB, f weir.Fence, savepoint string, failure *weir.Failure) checkpoint.Record {
	t.Helper()
	r := checkpoint.Record{Job: f.Job, Attempt: f.Attempt, Type: checkpoint.TypeCheckpoint, Periodic: savepoint == "", Savepoint: savepoint, TriggeredAt: when}
	if savepoint != "" {
		r.Type = checkpoint.TypeSavepoint
	}
	var err error
	if r.ID, err = a.store.BeginCheckpoint(t.Context(), f, r); err != nil {
		t.Fatal(err)
	}
	r.StateBytes, r.NewBytes, r.CompletedAt, r.Failure = 2048, 1024, when.Add(250*time.Millisecond), failure
	r.Acks = []checkpoint.Ack{{Version: 1, Job: f.Job, Attempt: f.Attempt, Task: weir.TaskID{Chain: 1, Subtask: 1}, Checkpoint: r.ID, Worker: "w1", Timing: checkpoint.Timing{AlignmentMS: 2.5, NewBytes: 512, TotalBytes: 1024}}}
	if r.Status = checkpoint.StatusCompleted; failure != nil {
		r.Status = checkpoint.StatusFailed
		_, err = a.store.AbortCheckpoint(t.Context(), f, r)
	} else {
		err = a.store.CompleteCheckpoint(t.Context(), f, r, savepoint == "")
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var when = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// eventually calls f until it says true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for !f() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("it did not happen: " + what)
		}
	}
}

var errWant = errors.New("wanted by the test")
