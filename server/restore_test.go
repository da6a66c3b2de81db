package server_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/server"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// A site is an API over a cluster of one server and one worker.
type site struct {
	*api
	t *testing.T
	c *jobtest.Cluster
	s *job.Service
}

func newSite(t *testing.T) *site {
	t.Helper()
	c := jobtest.New(t)
	s := c.Server("s1")
	c.Worker("w1", 8)
	c.Heard(s, 1)
	a := &api{store: c.Store, log: &syncBuffer{}}
	a.Handler = server.New(server.Deps{Service: s, History: c.Store, Tables: c.Store, Logger: slog.New(slog.DiscardHandler)}, server.Options{})
	return &site{api: a, t: t, c: c, s: s}
}

// numbers are 8000 rows; who reads them all ends once the test wants the results.
const numbers = `CREATE TABLE numbers (k BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '8000', 'rows-per-second' = '2000',
  'fields.k.kind' = 'sequence', 'fields.k.start' = '0', 'fields.k.end' = '7999');
`

const buckets = "SELECT k % 4 AS key, COUNT(*) AS n FROM numbers GROUP BY k % 4"

// spec is what a job is submitted with; from: a savepoint that it starts from, or nothing.
func spec(name, sql, from string) map[string]any {
	body := map[string]any{"name": name, "sql": sql, "parallelism": 2, "checkpoint": map[string]string{"interval": "20ms"}}
	if from != "" {
		body["restore_from"] = "savepoint:" + from
	}
	return body
}

func (s *site) submit(name, sql, from string) {
	s.t.Helper()
	call[server.Job](s.t, s.api, "POST", "/v1/jobs", spec(name, sql, from), 201)
}

// await waits until a job is in a status, and fails where it ends in another.
func (s *site) await(name, status string) {
	s.t.Helper()
	var j server.Job
	eventually(s.t, name+" is "+status, func() bool {
		j = call[server.Job](s.t, s.api, "GET", "/v1/jobs/"+name, nil, 200)
		return j.Status == status || slices.Contains([]string{"FINISHED", "FAILED", "CANCELED"}, j.Status)
	})
	if j.Status != status {
		s.t.Fatalf("%s is %s: %+v", name, j.Status, j.Failure)
	}
}

// halfway runs a job until a checkpoint of it has completed; some rows are left.
func (s *site) halfway(name string) {
	s.t.Helper()
	s.submit(name, numbers+buckets, "")
	eventually(s.t, "a checkpoint of "+name, func() bool {
		list := call[server.CheckpointList](s.t, s.api, "GET", "/v1/jobs/"+name+"/checkpoints?status=completed", nil, 200)
		return len(list.Checkpoints) > 1
	})
}

func (s *site) results(name, want string) {
	s.t.Helper()
	s.c.Held.Store(false)
	s.await(name, "FINISHED")
	got := ""
	for _, row := range call[server.Results](s.t, s.api, "GET", "/v1/jobs/"+name+"/results?order_by=key", nil, 200).Rows {
		got += string(row) + "\n"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

const all = `{"key":0,"n":2000}
{"key":1,"n":2000}
{"key":2,"n":2000}
{"key":3,"n":2000}
`

// C12: a stop with drain is refused by name, says why and what to do instead, and leaves the job
// as it was; a stop without it, a start, and what comes after give one exact row for each
// key.
func TestC12Drain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.halfway("counts")
	p := call[server.Problem](t, s.api, "POST", "/v1/jobs/counts/stop", map[string]any{"name": "last", "drain": true}, 422)
	for _, part := range []string{"drain is not supported", "there are no windows yet", "stop without it"} {
		if !strings.Contains(p.Detail, part) {
			t.Errorf("%q does not say %q", p.Detail, part)
		}
	}
	if len(p.Errors) != 1 || p.Errors[0].Field != "drain" {
		t.Errorf("%+v", p.Errors)
	}
	call[server.Problem](t, s.api, "GET", "/v1/savepoints/last", nil, 404)
	if j := call[server.Job](t, s.api, "GET", "/v1/jobs/counts", nil, 200); j.Status != "RUNNING" {
		t.Errorf("the refused stop made the job %s", j.Status)
	}
	call[server.Job](t, s.api, "POST", "/v1/jobs/counts/stop", map[string]any{"name": "last"}, 202)
	s.await("counts", "STOPPED")
	call[server.Job](t, s.api, "POST", "/v1/jobs/counts/start", nil, 202)
	s.results("counts", all)
}

// C15: a savepoint under another query. What changes no meaning restores and goes on counting;
// what changes one is refused with 409, naming the operator, and no job is made; from
// nothing, it counts from 0.
func TestC15ChangedQuery(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.halfway("counts")
	call[server.Job](t, s.api, "POST", "/v1/jobs/counts/stop", map[string]any{"name": "halfway"}, 202)
	s.await("counts", "STOPPED")
	sum := numbers + "SELECT k % 4 AS key, SUM(k) AS n FROM numbers GROUP BY k % 4"
	for name, test := range map[string]struct{ sql, operator string }{
		"where":         {numbers + "SELECT k % 4 AS key, COUNT(*) AS n FROM numbers WHERE k > 10 GROUP BY k % 4", "global_aggregate"},
		"key":           {numbers + "SELECT k % 5 AS key, COUNT(*) AS n FROM numbers GROUP BY k % 5", "global_aggregate"},
		"aggregate":     {sum, "global_aggregate"},
		"one-more":      {numbers + "SELECT k % 4 AS key, COUNT(*) AS n, SUM(k) AS s FROM numbers GROUP BY k % 4", "global_aggregate"},
		"source":        {strings.ReplaceAll(numbers+buckets, "numbers", "others"), "source(numbers)"},
		"not-aggregate": {numbers + "SELECT k % 4 AS key, k AS n FROM numbers", "global_aggregate"},
	} {
		p := call[server.Problem](t, s.api, "POST", "/v1/jobs", spec(name, test.sql, "halfway"), 409)
		if !strings.Contains(p.Detail, "("+test.operator) && !strings.Contains(p.Detail, test.operator+"(") {
			t.Errorf("%s: %s; want it to name %s", name, p.Detail, test.operator)
		}
		call[server.Problem](t, s.api, "GET", "/v1/jobs/"+name, nil, 404)
	}
	s.submit("cosmetic", numbers+"-- counts\nselect  k % 4 /* four */ as key,\n\tcount(*) as n\nfrom numbers group by k % 4", "halfway")
	s.submit("alias", numbers+"SELECT k % 4 AS key, COUNT(*) AS m FROM numbers AS x GROUP BY 1", "halfway")
	s.submit("from-nothing", sum, "")
	s.results("cosmetic", all)
	s.results("alias", strings.ReplaceAll(all, `"n"`, `"m"`))
	s.results("from-nothing", `{"key":0,"n":7996000}
{"key":1,"n":7998000}
{"key":2,"n":8000000}
{"key":3,"n":8002000}
`)
}
