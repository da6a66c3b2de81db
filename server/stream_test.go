package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"weir"
	"weir/planner/expr"
	"weir/planner/plan"
	"weir/server"
	"weir/server/job"
)

// An event is one that a stream sent.
type event struct{ ID, Name, Data string }

// follow opens a stream and returns a function that reads its next event; "" is its end.
func follow(t *testing.T, url, path, last string) func() event {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html, text/event-stream;q=0.9")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %s %s", path, res.Status, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(res.Body)
	return func() event {
		var e event
		for lines.Scan() {
			switch name, value, _ := strings.Cut(lines.Text(), ": "); {
			case name == "id":
				e.ID = value
			case name == "event":
				e.Name = value
			case name == "data":
				e.Data = value
			case lines.Text() == "" && e != event{}:
				return e
			}
		}
		return e
	}
}

func change(op, row string) job.Change { return job.Change{Op: op, Row: json.RawMessage(row)} }

var columns = []plan.Column{{Name: "n", Type: expr.Type{Kind: expr.BigInt}}}

func TestChanges(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.newJob(t, "a")
	var asked []string
	a.fake.changes = func(_ context.Context, cursor string) (*job.ChangePage, error) {
		asked = append(asked, cursor)
		switch len(asked) {
		case 1: // its tasks end just now
			return nil, fmt.Errorf("%w: no such task", weir.ErrConflict)
		case 2:
			return &job.ChangePage{Columns: columns, Reset: true, Changes: []job.Change{change("+I", `{"n":1}`), change("+I", `{"n":9007199254740993}`)}, AsOf: job.AsOf{Checkpoint: 3, Live: true}, Cursor: "c1", More: true, Status: weir.StatusRunning}, nil
		case 3:
			return &job.ChangePage{Columns: columns, Changes: []job.Change{change("-U", `{"n":1}`), change("+U", `{"n":2}`)}, Cursor: "c2", Status: weir.StatusRunning}, nil
		case 4: // between two attempts
			return nil, fmt.Errorf("%w: 1 of 2 tasks", job.ErrUnavailable)
		case 5: // they have just ended
			return nil, fmt.Errorf("%w: no such task", weir.ErrConflict)
		case 6:
			return &job.ChangePage{Columns: columns, Reset: true, Truncated: true, Cursor: "c4", Status: weir.StatusRestarting}, nil
		}
		return &job.ChangePage{Columns: columns, Cursor: "c5", Status: weir.StatusFinished}, nil
	}
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close) // after the streams
	next := follow(t, srv.URL, "/v1/jobs/a/results?numbers=string", "c0")
	var got []event
	for e := next(); e != (event{}); e = next() {
		got = append(got, e)
	}
	want := []event{
		{"", "reset", `{"as_of":{"checkpoint":3,"live":true},"columns":[{"name":"n","type":"BIGINT"}]}`},
		{"", "change", `{"op":"+I","row":{"n":1}}`},
		{"c1", "change", `{"op":"+I","row":{"n":"9007199254740993"}}`},
		{"", "change", `{"op":"-U","row":{"n":1}}`},
		{"c2", "change", `{"op":"+U","row":{"n":2}}`},
		{"", "reset", `{"as_of":{"checkpoint":0,"live":false},"columns":[{"name":"n","type":"BIGINT"}],"truncated":true}`},
		{"c5", "end", `{"status":"FINISHED"}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c0", "c0", "c1", "c2", "c2", "c2", "c4"}, asked); diff != "" {
		t.Errorf("cursors: -want +got:\n%s", diff)
	}
}

// The rows of a page are sent when they have changed; those of a job that does not run
// are read when something became of it.
func TestFollowRows(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.newJob(t, "a")
	var fence weir.Fence
	page := func(live bool, row string) (*job.ResultPage, error) {
		return &job.ResultPage{Columns: columns, Rows: []json.RawMessage{[]byte(row)}, AsOf: job.AsOf{Checkpoint: 3, Live: live}, Total: 300_000, Next: "next"}, nil
	}
	reads := 0
	a.fake.results = func(q job.ResultQuery) (*job.ResultPage, error) {
		if want := (job.ResultQuery{Limit: 1, OrderBy: "-n"}); q != want {
			t.Errorf("asked %+v", q)
		}
		switch reads++; reads {
		case 1: // nothing can be read yet
			return nil, fmt.Errorf("%w: no worker", job.ErrUnavailable)
		case 2: // it has not begun: this is read until its status is another
			fence = a.run(t, "a")
			return page(false, `{"n":0}`)
		case 3, 4:
			return page(true, `{"n":9007199254740993}`)
		case 5: // its tasks are gone
			return nil, fmt.Errorf("%w: no such task", weir.ErrConflict)
		case 6:
			if err := a.store.SetStatus(t.Context(), fence, weir.StatusCanceled, nil); err != nil {
				t.Error(err)
			}
			return page(true, `{"n":2}`)
		}
		return page(false, `{"n":1}`)
	}
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close) // after the streams
	next := follow(t, srv.URL, "/v1/jobs/a/results?follow=rows&limit=1&order_by=-n&numbers=string", "")
	var got []event
	for e := next(); e != (event{}); e = next() {
		got = append(got, e)
	}
	rows := func(live bool, n string) event {
		return event{"", "rows", fmt.Sprintf(`{"columns":[{"name":"n","type":"BIGINT"}],"rows":[{"n":%s}],"as_of":{"checkpoint":3,"live":%t},"total":300000,"next":"next"}`, n, live)}
	}
	want := []event{rows(false, "0"), rows(true, `"9007199254740993"`), rows(true, "2"), rows(false, "1"), {"", "end", `{"status":"CANCELED"}`}}
	if diff := cmp.Diff(want, got); diff != "" || reads != 7 {
		t.Errorf("events after %d reads: -want +got:\n%s", reads, diff)
	}
}

// A job that has not begun is read once, however long its rows are followed.
func TestFollowRowsAtRest(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	j := a.newJob(t, "a")
	var reads atomic.Int32
	a.fake.results = func(job.ResultQuery) (*job.ResultPage, error) {
		reads.Add(1)
		return &job.ResultPage{Columns: columns}, nil
	}
	var looks atomic.Int32
	looked := make(chan struct{})
	a.fake.looked = func() {
		if looks.Add(1) == 5 {
			close(looked)
		}
	}
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close) // after the streams
	next := follow(t, srv.URL, "/v1/jobs/"+j.ID+"/results?follow=rows", "")
	if e := next(); e.Name != "rows" {
		t.Errorf("first event: %+v", e)
	}
	<-looked
	if n := reads.Load(); n != 1 {
		t.Errorf("read %d times", n)
	}
}

// What a follower costs does not grow with what it follows.
func TestFollowerRests(t *testing.T) {
	t.Parallel()
	rest, poll, second := server.Pace(), 150*time.Millisecond, time.Second
	for i, look := range []struct {
		took time.Duration
		sent int
		want time.Duration
	}{
		{time.Millisecond, 8000, poll},
		{time.Millisecond, 0, poll},
		{time.Millisecond, 0, 2 * poll},
		{time.Millisecond, 0, 4 * poll},
		{time.Millisecond, 0, second},
		{time.Millisecond, 0, second},
		{time.Millisecond, 8000, poll},
		{time.Millisecond, 0, poll},
		{300 * time.Millisecond, 8000, 3 * second},
		{time.Minute, 0, 30 * second},
		{time.Millisecond, 512 << 10, 2 * second},
	} {
		if got := rest(poll, look.took, look.sent); got != look.want {
			t.Errorf("after look %d, of %v with %d bytes, it rests %v, want %v", i, look.took, look.sent, got, look.want)
		}
	}
	if got := server.Pace()(2*second, 0, 0); got != 2*second {
		t.Errorf("where looks are rare it rests %v", got)
	}
}

func TestChangesRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	call[server.Job](t, a, "POST", "/v1/jobs", map[string]any{"name": "writes", "sql": "CREATE TABLE g (k STRING) WITH ('connector' = 'datagen'); CREATE TABLE void (k STRING) WITH ('connector' = 'blackhole'); INSERT INTO void SELECT k FROM g"}, 201)
	for name, want := range map[string]int{"nobody": http.StatusNotFound, "writes": http.StatusConflict} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/jobs/"+name+"/results", nil)
		r.Header.Set("Accept", "text/event-stream")
		if res := a.serve(t, r); res.StatusCode != want || res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("changes of %s: %s", name, res.Status)
		}
	}
}

func TestEventStream(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	j := a.newJob(t, "a")
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close) // after the streams
	next := follow(t, srv.URL, "/v1/jobs/a/events", "")
	if e := next(); e.ID != "1" || e.Name != "status" || !strings.Contains(e.Data, `"message":"CREATED"`) {
		t.Fatalf("first event: %+v", e)
	}
	f := a.run(t, "a")
	if e := next(); e.ID != "2" || e.Name != "attempt" {
		t.Fatalf("second event: %+v", e)
	}
	again := follow(t, srv.URL, "/v1/jobs/a/events", "2")
	if e := again(); e.ID != "3" || !strings.Contains(e.Data, "RUNNING") {
		t.Fatalf("after the second event: %+v", e)
	}
	if err := a.store.SetStatus(t.Context(), f, weir.StatusCanceled, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.store.DeleteJob(t.Context(), weir.JobID(j.ID)); err != nil {
		t.Fatal(err)
	}
	for e := again(); e != (event{}); e = again() { // to its end
	}
}

func TestJobStream(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.newJob(t, "a")
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close) // after the streams
	next := follow(t, srv.URL, "/v1/events", "")
	shown := func() server.Job {
		t.Helper()
		e := next()
		var j server.Job
		if err := json.Unmarshal([]byte(e.Data), &j); e.Name != "job" || err != nil {
			t.Fatalf("event %+v: %v", e, err)
		}
		return j
	}
	if j := shown(); j.Name != "a" || j.Status != "CREATED" {
		t.Fatalf("first: %+v", j)
	}
	f := a.run(t, "a")
	for j := shown(); j.Status != "RUNNING"; j = shown() {
	}
	a.newJob(t, "b")
	if j := shown(); j.Name != "b" {
		t.Fatalf("then: %+v", j)
	}
	if err := a.store.SetStatus(t.Context(), f, weir.StatusCanceled, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.store.DeleteJob(t.Context(), f.Job); err != nil {
		t.Fatal(err)
	}
	for {
		if e := next(); e.Name == "deleted" {
			if e.Data != `{"id":"`+string(f.Job)+`"}` {
				t.Fatalf("deleted: %s", e.Data)
			}
			return
		}
	}
}

// TestRun ends the server while a stream is open and a request is under way.
func TestRun(t *testing.T) {
	a := newAPI(t)
	before := goleak.IgnoreCurrent()
	asked := make(chan struct{})
	a.fake.results = func(job.ResultQuery) (*job.ResultPage, error) {
		close(asked)
		return &job.ResultPage{Columns: columns}, nil
	}
	a.newJob(t, "a")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Handler.(*server.Server).Run(ctx, l) }()
	url := "http://" + l.Addr().String()
	next := follow(t, url, "/v1/jobs/a/events", "")
	if e := next(); e.Name != "status" {
		t.Fatalf("event: %+v", e)
	}
	// The cursor behind a row of 256 KiB, ordered by all of its columns.
	res, err := http.Get(url + "/v1/jobs/a/results?cursor=" + strings.Repeat("x", 1<<20))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("results: %v, %v", res, err)
	}
	res.Body.Close()
	<-asked
	start := time.Now()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if e := next(); e != (event{}) {
		t.Fatalf("after the end: %+v", e)
	}
	if took := time.Since(start); took > 4*time.Second { // after 5 s it waits for nobody
		t.Fatalf("the end took %v", took)
	}
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}
