package server_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/server"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// Cases of other systems' faults where they reach HTTP; each test carries its case's id.

// M07: a body that nests deeply is refused, and the server lives on.
func TestM07Depth(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, depth := range []int{100, 9_000, 10_000, 10_001, 1_000_000} {
		for _, nest := range [][2]string{{"[", "]"}, {`{"x":`, "}"}} {
			if len(nest[0])*depth > 4<<20 {
				continue // 413 says the request script
			}
			body := `{"name":"deep","sql":"SELECT 1 AS one","x":` + strings.Repeat(nest[0], depth) + "1" + strings.Repeat(nest[1], depth) + "}"
			r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/jobs", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			began := time.Now()
			if res := a.serve(t, r); res.StatusCode != http.StatusBadRequest {
				t.Errorf("depth %d of %s: %s", depth, nest[0], res.Status)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("depth %d of %s took %v", depth, nest[0], took)
			}
		}
	}
	call[server.Problem](t, a, "GET", "/v1/jobs/deep", nil, 404)
	call[server.Health](t, a, "GET", "/healthz", nil, 200)
}

// S06, S07, S14: a wrong query is the caller's mistake, with its place, and no job is made.
func TestRefusedQueries(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const table = "CREATE TABLE s (x BIGINT, y BIGINT, \"Group\" STRING) WITH ('connector' = 'datagen'); "
	for id, test := range map[string]struct{ sql, message string }{
		"S06 no such position":       {"SELECT x, COUNT(*) FROM s GROUP BY 5", "GROUP BY position 5 is not in the select list, which has 2 columns"},
		"S06 an aggregate":           {"SELECT x, COUNT(*) FROM s GROUP BY 2", "aggregates are not allowed in GROUP BY"},
		"S07 a column":               {"SELECT x, COUNT(*) FROM s GROUP BY y", "column x is neither in GROUP BY nor in an aggregate"},
		"S07 a star":                 {"SELECT * FROM s GROUP BY y", "column x is neither in GROUP BY nor in an aggregate"},
		"S07 an aggregate":           {"SELECT COUNT(*) FROM s GROUP BY COUNT(*)", "aggregates are not allowed in GROUP BY"},
		"S14 a reserved word":        {`SELECT group FROM s GROUP BY "Group"`, "expected an expression or a name, found group"},
		"S14 another case of quoted": {`SELECT "a""b" FROM s`, `table s has no column a"b`},
	} {
		p := call[server.Problem](t, a, "POST", "/v1/jobs", map[string]any{"name": "wrong", "sql": table + test.sql}, 422)
		if len(p.Errors) == 0 || !strings.Contains(p.Errors[0].Message, test.message) || p.Errors[0].Line != 1 || p.Errors[0].Column <= len(table) {
			t.Errorf("%s: %+v", id, p)
		}
	}
	if list := call[server.JobList](t, a, "GET", "/v1/jobs", nil, 200); len(list.Jobs) != 0 {
		t.Errorf("jobs were made: %+v", list.Jobs)
	}
}

// TestResultsOfCases: what a file holds is what the results say, to the digit and the
// byte. M01: 64-bit integers. M12: what is no JSON number is a text, and hides no other
// row. S13: texts come out as they came in. S03: no input is one row, or none.
func TestResultsOfCases(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	c.Held.Store(false)
	service := c.Server("server")
	c.Worker("w1", 4)
	c.Heard(service, 1)
	a := &api{store: c.Store, log: &syncBuffer{}}
	a.Handler = server.New(server.Deps{Service: service, History: c.Store, Tables: c.Store, Logger: slog.New(slog.DiscardHandler)}, server.Options{})
	for _, test := range []struct {
		id, columns, file, query, params string
		want                             []string
		rejected                         int64
	}{
		{
			"m01", "k BIGINT", `{"k":9007199254740992}
{"k":9007199254740993}
{"k":9223372036854775807}
{"k":-9223372036854775808}
{"k":9223372036854775808}
{"k":12.5}
{"k":1e3}`,
			"SELECT k, COUNT(*) AS n FROM t GROUP BY k", "?order_by=k",
			[]string{`{"k":-9223372036854775808,"n":1}`, `{"k":1000,"n":1}`, `{"k":9007199254740992,"n":1}`, `{"k":9007199254740993,"n":1}`, `{"k":9223372036854775807,"n":1}`},
			2,
		},
		{
			"m01-text", "k BIGINT", `{"k":9007199254740993}`, "SELECT k FROM t", "?numbers=string",
			[]string{`{"k":"9007199254740993"}`},
			0,
		},
		{
			"m12", "k STRING, v DOUBLE", `{"k":"a","v":1e400}
{"k":"a","v":NaN}
{"k":"b","v":"NaN"}
{"k":"c","v":1e-400}
{"k":"d","v":1}
{"k":"e","v":-1}`,
			"SELECT k, SUM(v) AS s, AVG(v / 0) AS q FROM t GROUP BY k", "?order_by=q,k",
			[]string{`{"k":"e","s":-1,"q":"-Infinity"}`, `{"k":"d","s":1,"q":"Infinity"}`, `{"k":"b","s":"NaN","q":"NaN"}`, `{"k":"c","s":0,"q":"NaN"}`},
			2,
		},
		{
			"s13", "k STRING", "{\"k\":\"\u00e9\"}\n{\"k\":\"e\u0301\"}\n{\"k\":\"\u00e9\"}\n{\"k\":\"\u212a\"}\n{\"k\":\"K\"}\n{\"k\":\"\U0001f469\u200d\U0001f680\"}",
			"SELECT k, COUNT(*) AS n FROM t GROUP BY k", "?order_by=k",
			[]string{`{"k":"K","n":1}`, "{\"k\":\"e\u0301\",\"n\":1}", "{\"k\":\"\u00e9\",\"n\":2}", "{\"k\":\"\u212a\",\"n\":1}", "{\"k\":\"\U0001f469\u200d\U0001f680\",\"n\":1}"},
			0,
		},
		{"s03", "v BIGINT", "", "SELECT COUNT(*) AS n, SUM(v) AS t FROM t WHERE v > 100", "", []string{`{"n":0,"t":null}`}, 0},
		{"s03-groups", "v BIGINT", "", "SELECT v, COUNT(*) AS n FROM t GROUP BY v", "", nil, 0},
	} {
		path := filepath.Join(c.Dir, test.id)
		if err := os.WriteFile(path, []byte(test.file), 0o600); err != nil {
			t.Fatal(err)
		}
		sql := fmt.Sprintf("CREATE TABLE t (%s) WITH ('connector' = 'filesystem', 'path' = '%s', 'format' = 'json'); %s", test.columns, path, test.query)
		call[server.Job](t, a, "POST", "/v1/jobs", map[string]any{"name": test.id, "sql": sql, "on_row_error": "skip", "parallelism": 2}, 201)
		var j server.Job
		eventually(t, test.id+" is FINISHED", func() bool {
			j = call[server.Job](t, a, "GET", "/v1/jobs/"+test.id, nil, 200)
			return slices.Contains([]string{"FINISHED", "FAILED"}, j.Status)
		})
		var got []string
		for _, row := range call[server.Results](t, a, "GET", "/v1/jobs/"+test.id+"/results"+test.params, nil, 200).Rows {
			got = append(got, string(row))
		}
		if diff := cmp.Diff(test.want, got); diff != "" || j.Status != "FINISHED" || *j.RowsRejected != test.rejected {
			t.Errorf("%s: %s, %d rows rejected, -want +got:\n%s", test.id, j.Status, *j.RowsRejected, diff)
		}
	}
}

// P09: above the limit of jobs that have not ended, one more is refused, with the way out; the
// request that made one of them is answered as before, and whoever ends makes room.
func TestP09Limit(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.fake.Service = job.New(job.Deps{Store: a.store, Checkpoints: a.store, Blobs: a.blobs, Logger: slog.New(slog.DiscardHandler)}, job.Options{MaxJobs: 3})
	post := func(name, key string) (status int, body string) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/jobs", strings.NewReader(fmt.Sprintf(`{"name": %q, "sql": %q}`, name, generated)))
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		res := a.serve(t, r)
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	for i := range 3 {
		if status, body := post(fmt.Sprint("j", i), fmt.Sprint("key", i)); status != http.StatusCreated {
			t.Fatal(status, body)
		}
	}
	const full = "3 jobs of this cluster have not ended, as many as it takes: stop or cancel one, or start its servers with a larger --max-jobs"
	for _, key := range []string{"", "key3"} {
		if status, body := post("j3", key); status != http.StatusTooManyRequests || !strings.Contains(body, full) {
			t.Errorf("the fourth: %d %s", status, body)
		}
	}
	if status, body := post("j1", "key1"); status != http.StatusCreated || !strings.Contains(body, `"name":"j1"`) {
		t.Errorf("the second again: %d %s", status, body)
	}
	f := a.run(t, "j0")
	if err := a.store.SetStatus(t.Context(), f, weir.StatusFailed, &weir.Failure{Reason: "r", Message: "m"}); err != nil {
		t.Fatal(err)
	}
	if status, body := post("j3", "key3"); status != http.StatusCreated {
		t.Errorf("after one has ended: %d %s", status, body)
	}
	if p := call[server.Problem](t, a, "POST", "/v1/jobs/j0/start", map[string]any{}, http.StatusTooManyRequests); !strings.Contains(p.Detail, full) {
		t.Errorf("start of the one that ended: %+v", p)
	}
}
