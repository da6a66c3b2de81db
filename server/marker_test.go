package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"weir"
	"weir/planner/expr"
	"weir/planner/plan"
	"weir/server"
	"weir/server/job"
)

const marker = `<img src=x onerror=alert(1)></script>`

// TestMarkers: markup that strangers put into a job comes back as data, in JSON that no
// browser takes for a page.
func TestMarkers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	script := "-- " + marker + "\nCREATE TABLE g (k STRING, v BIGINT) WITH ('connector' = 'datagen'); SELECT k, COUNT(*) AS `" + marker + "` FROM g GROUP BY k"
	j := call[server.Job](t, a, "POST", "/v1/jobs", map[string]any{"name": "marked", "sql": script}, http.StatusCreated)
	if j.SQL != script {
		t.Errorf("the script came back as %s", j.SQL)
	}
	row, err := json.Marshal(map[string]any{"k": marker, marker: 7})
	if err != nil {
		t.Fatal(err)
	}
	a.fake.results = func(job.ResultQuery) (*job.ResultPage, error) {
		return &job.ResultPage{Columns: []plan.Column{{Name: "k", Type: expr.Type{Kind: expr.String}}, {Name: marker, Type: expr.Type{Kind: expr.BigInt}}}, Rows: []json.RawMessage{row}, Total: 1}, nil
	}
	if err := a.store.SetStatus(t.Context(), a.run(t, "marked"), weir.StatusFailed, &weir.Failure{Reason: "row", Message: "line 7: " + marker}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/v1/jobs", "/v1/jobs/marked", "/v1/jobs/marked/plan", "/v1/jobs/marked/events", "/v1/jobs/marked/attempts", "/v1/jobs/marked/results",
		"/v1/jobs/" + url.PathEscape(marker), "/v1/savepoints/" + url.PathEscape(marker), "/v1/tables/" + url.PathEscape(marker),
		"/v1/jobs?" + url.QueryEscape(marker) + "=1", "/v1/jobs?status=" + url.QueryEscape(marker), "/v1/jobs/marked/checkpoints/" + url.PathEscape(marker), "/" + url.PathEscape(marker),
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, nil)
		r.Header.Set("Accept", "application/json")
		res := a.serve(t, r)
		guarded(t, res)
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if media := res.Header.Get("Content-Type"); media != "application/json" && media != "application/problem+json" || !json.Valid(body) {
			t.Errorf("%s: %s\n%s", path, media, body)
		}
		if strings.Contains(string(body), "<img") {
			t.Errorf("%s is markup where it is taken for a page:\n%s", path, body)
		}
	}
}

// TestHead asks a real server, which leaves the body out: the header is that of GET.
func TestHead(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	srv := httptest.NewServer(a)
	defer srv.Close()
	for _, path := range []string{"/", "/v1/jobs", "/v1/jobs/nobody", "/healthz", "/docs", "/openapi.json", "/v1/plan", "/nothing"} {
		var headers [2]http.Header
		for i, method := range []string{http.MethodGet, http.MethodHead} {
			r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept-Encoding", "identity")
			res, err := srv.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err != nil || res.Body.Close() != nil || method == http.MethodHead && len(body) > 0 {
				t.Fatalf("%s %s: %q, %v", method, path, body, err)
			}
			headers[i] = res.Header
			headers[i].Set("Status", res.Status)
			headers[i].Del("Date")
			headers[i].Del("Content-Length") // of a long answer net/http tells it only where it is asked for
		}
		for name := range headers[0] {
			if got, want := headers[1].Get(name), headers[0].Get(name); got != want {
				t.Errorf("%s: HEAD has %s %q, GET %q", path, name, got, want)
			}
		}
	}
	// A stream has no end but that of its body.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, srv.URL+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(r)
	if err != nil || res.Body.Close() != nil || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("HEAD of a stream: %v, %v", res, err)
	}
}
