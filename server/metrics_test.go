package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"weir"
	"weir/server"
	"weir/server/job"
	"weir/server/job/jobtest"
)

// scrape reads /metrics.
func (a *api) scrape(t testing.TB) string {
	t.Helper()
	res := a.serve(t, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/metrics", nil))
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		t.Fatalf("%s, %s: %v\n%s", res.Status, res.Header.Get("Content-Type"), err, body)
	}
	return string(body)
}

// own are the lines of a scrape that are Weir's own figures.
func own(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "weir_") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// lint fails the test for what promlint does not like.
func lint(t testing.TB, text string) {
	t.Helper()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestMetrics: what is observed is told, one series each, and nothing that is not known.
func TestMetrics(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	running, ended := a.newJob(t, "runs"), a.newJob(t, "ended")
	fence := a.run(t, "runs")
	a.checkpoint(t, fence, "", nil)
	at := func(chain, subtask int) weir.TaskID { return weir.TaskID{Chain: chain, Subtask: subtask} }
	var fail error
	a.fake.observe = func(ctx context.Context) (job.Observation, error) {
		j, err := a.store.Job(ctx, "runs")
		if err != nil {
			return job.Observation{}, err
		}
		rates := job.Rates{RowsIn: 12, RowsOut: 5, RowsRejected: 2, State: job.StateFigures{Bytes: 13, Spilled: 14, UploadBytes: 15, DeltaSeconds: 1.5}, Chains: []job.ChainRates{{
			Tasks: 1, BlockedSeconds: 2.5, IdleSeconds: 3.5,
			Operators: []job.OperatorRates{{Flow: job.Flow{RowsIn: 21, RowsOut: 22, BytesIn: 23, BytesOut: 24}, BusySeconds: 25}},
		}}}
		over := weir.Job{ID: weir.JobID(ended.ID), Name: "ended", Status: weir.StatusFailed, Attempt: weir.AttemptID{Number: 3}}
		again := over
		again.Status = weir.StatusRunning
		return job.Observation{
			Jobs: []job.Figures{{Job: j, Rates: rates}, {Job: over}, {Job: again}},
			Workers: []job.WorkerFigures{
				{Worker: job.Worker{ID: "w1", Slots: 4, FreeSlots: 3, Memory: job.Memory{Budget: 100, Heap: 90, State: 50, StateLimit: 60, Spilled: 500, Uploads: 7, Network: 8, Cache: 9}}, Up: true},
				{Worker: job.Worker{ID: "w2", Slots: 2, Memory: job.Memory{Heap: 1}}},
				{Worker: job.Worker{ID: "w3"}, Up: true},
			},
			Channels: []job.Channel{
				{Job: j.ID, ID: weir.ChannelID{From: at(0, 1), To: at(1, 0)}, QueuedBytes: 1, UnackedBytes: 2, CreditBytes: 3, BytesPerSecond: 4.5, Resent: 6},
				{Job: j.ID, ID: weir.ChannelID{Edge: 1, From: at(1, job.AllSubtasks), To: at(2, 0)}, CreditBytes: 7},
				{Job: "job_unknown", CreditBytes: 8},
			},
		}, fail
	}
	text := a.scrape(t)
	lint(t, text)
	of := `job="` + running.ID + `",name="runs"`
	over := `job="` + ended.ID + `",name="ended"`
	first, second := `{edge="0",from="0/1",`+of+`,to="1/0"}`, `{edge="1",from="1/*",`+of+`,to="2/0"}`
	operator := `{chain="0",` + of + `,operator="source_82478060"}`
	want := []string{
		"weir_channel_bytes_per_second" + first + " 4.5", "weir_channel_bytes_per_second" + second + " 0",
		"weir_channel_credit_bytes" + first + " 3", "weir_channel_credit_bytes" + second + " 7",
		"weir_channel_queued_bytes" + first + " 1", "weir_channel_queued_bytes" + second + " 0",
		"weir_channel_resent_frames_total" + first + " 6", "weir_channel_resent_frames_total" + second + " 0",
		"weir_channel_unacked_bytes" + first + " 2", "weir_channel_unacked_bytes" + second + " 0",
		"weir_job_attempt{" + of + "} 1", "weir_job_attempt{" + over + "} 3",
		"weir_job_last_checkpoint_duration_seconds{" + of + "} 0.25",
		"weir_job_last_checkpoint_id{" + of + "} 1",
		"weir_job_last_checkpoint_size_bytes{" + of + "} 2048",
		"weir_job_last_checkpoint_timestamp_seconds{" + of + "} 1.77236640025e+09",
		"weir_job_rows_in_total{" + of + "} 12", "weir_job_rows_out_total{" + of + "} 5", "weir_job_rows_rejected_total{" + of + "} 2",
		"weir_job_state_bytes{" + of + "} 13", "weir_job_state_spilled_entries{" + of + "} 14", "weir_job_upload_bytes{" + of + "} 15", "weir_job_delta_seconds_total{" + of + "} 1.5",
		"weir_job_status{" + of + `,status="RUNNING"} 1`, "weir_job_status{" + over + `,status="FAILED"} 1`,
		"weir_chain_back_pressured_seconds_total{chain=\"0\"," + of + "} 2.5", "weir_chain_idle_seconds_total{chain=\"0\"," + of + "} 3.5",
		"weir_operator_rows_in_total" + operator + " 21", "weir_operator_rows_out_total" + operator + " 22",
		"weir_operator_bytes_in_total" + operator + " 23", "weir_operator_bytes_out_total" + operator + " 24", "weir_operator_busy_seconds_total" + operator + " 25",
		"weir_metastore_up 1",
		`weir_worker_slots{worker="w1"} 4`, `weir_worker_slots{worker="w2"} 2`, `weir_worker_slots{worker="w3"} 0`,
		`weir_worker_slots_free{worker="w1"} 3`, `weir_worker_slots_free{worker="w2"} 0`, `weir_worker_slots_free{worker="w3"} 0`,
		`weir_worker_up{worker="w1"} 1`, `weir_worker_up{worker="w2"} 0`, `weir_worker_up{worker="w3"} 1`,
		`weir_worker_memory_budget_bytes{worker="w1"} 100`, `weir_worker_state_limit_bytes{worker="w1"} 60`,
		`weir_worker_heap_bytes{worker="w1"} 90`, `weir_worker_spilled_bytes{worker="w1"} 500`,
		`weir_worker_memory_bytes{use="state",worker="w1"} 50`, `weir_worker_memory_bytes{use="uploads",worker="w1"} 7`,
		`weir_worker_memory_bytes{use="network",worker="w1"} 8`, `weir_worker_memory_bytes{use="cache",worker="w1"} 9`,
		`weir_worker_heap_bytes{worker="w3"} 0`, `weir_worker_spilled_bytes{worker="w3"} 0`,
		`weir_worker_memory_bytes{use="state",worker="w3"} 0`, `weir_worker_memory_bytes{use="uploads",worker="w3"} 0`,
		`weir_worker_memory_bytes{use="network",worker="w3"} 0`, `weir_worker_memory_bytes{use="cache",worker="w3"} 0`,
	}
	got := own(text)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, name := range []string{"go_goroutines", "process_open_fds"} {
		if !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("no %s", name)
		}
	}
	a.history.err = errWant // the jobs are read, their checkpoints are not
	if text := a.scrape(t); !strings.Contains(text, "\nweir_metastore_up 0\n") || strings.Contains(text, "weir_job_last_checkpoint") {
		t.Errorf("without checkpoints:\n%s", text)
	}
	a.history.err = nil
	fail = errWant
	if text := a.scrape(t); !strings.Contains(text, "\nweir_metastore_up 0\n") || !strings.Contains(text, `weir_worker_up{worker="w1"} 1`) {
		t.Errorf("without the metastore:\n%s", text)
	}
	call[server.Problem](t, a, "GET", "/metrics?x=1", nil, 400)
}

// TestMetricsPage: docs/metrics.md has a row for every metric, and for no other.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range bytes.Lines(page) {
		if bytes.HasPrefix(line, []byte("| `weir_")) {
			got = append(got, strings.TrimSpace(string(line)))
		}
	}
	if want := server.MetricRows(); !slices.Equal(got, want) {
		t.Errorf("docs/metrics.md has\n%s\nand should have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestJobMetrics: the JSON form, its refusals included.
func TestJobMetrics(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.newJob(t, "a")
	if m := call[server.JobMetrics](t, a, "GET", "/v1/jobs/a/metrics", nil, 200); m.Name != "a" || m.Status != "CREATED" || m.Channels == nil || len(m.Channels)+len(m.Unanswered) != 0 {
		t.Errorf("of a job that does not run: %+v", m)
	}
	a.fake.channels = func() (job.Channels, error) {
		return job.Channels{List: []job.Channel{{
			ID: weir.ChannelID{Edge: 2, From: weir.TaskID{Subtask: job.AllSubtasks}, To: weir.TaskID{Chain: 1, Subtask: 3}}, Local: true,
			QueuedBytes: 1, UnackedBytes: 2, CreditBytes: 3, BytesPerSecond: 4.5, Resent: 6,
		}}, Unanswered: []weir.WorkerID{"w2"}}, nil
	}
	m := call[server.JobMetrics](t, a, "GET", "/v1/jobs/a/metrics", nil, 200)
	want := server.JobChannel{Edge: 2, From: "0/*", To: "1/3", Local: true, QueuedBytes: 1, UnackedBytes: 2, CreditBytes: 3, BytesPerSecond: 4.5, ResentFrames: 6}
	if len(m.Channels) != 1 || m.Channels[0] != want || !slices.Equal(m.Unanswered, []string{"w2"}) {
		t.Errorf("%+v", m)
	}
	call[server.Problem](t, a, "GET", "/v1/jobs/nobody/metrics", nil, 404)
	call[server.Problem](t, a, "GET", "/v1/jobs/a/metrics?x=1", nil, 400)
}

// TestMetricsOfARunningJob asks two workers, and then nobody answers.
func TestMetricsOfARunningJob(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	service := c.Server("server")
	c.Worker("w1", 1)
	c.Worker("w2", 1)
	c.Heard(service, 2)
	a := &api{store: c.Store, Handler: server.New(server.Deps{Service: service, History: c.Store, Tables: c.Store, Logger: slog.New(slog.DiscardHandler)}, server.Options{})}
	sql := "CREATE TABLE g (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000', 'fields.k.kind' = 'random', 'fields.k.min' = '1', 'fields.k.max' = '1000000'); " +
		"SELECT k, COUNT(*) AS n FROM g GROUP BY k"
	call[server.Job](t, a, "POST", "/v1/jobs", map[string]any{"name": "counts", "sql": sql, "parallelism": 2}, 201)
	var m server.JobMetrics
	remote := func(c server.JobChannel) bool { return !c.Local && c.CreditBytes > 0 && c.BytesPerSecond > 0 }
	local := func(c server.JobChannel) bool { return c.Local && c.CreditBytes > 0 && c.BytesPerSecond > 0 }
	eventually(t, "rows flow between the workers and within them", func() bool {
		m = call[server.JobMetrics](t, a, "GET", "/v1/jobs/counts/metrics", nil, 200)
		return m.RowsIn != nil && *m.RowsIn > 0 && len(m.Channels) == 4 && len(m.Unanswered) == 0 && slices.ContainsFunc(m.Channels, remote) && slices.ContainsFunc(m.Channels, local)
	})
	if m.Attempt != 1 {
		t.Errorf("%+v", m)
	}
	var text string
	eventually(t, "both workers answer", func() bool { // a busy machine may be late
		text = a.scrape(t)
		return strings.Contains(text, "\nweir_worker_up{worker=\"w1\"} 1\n") && strings.Contains(text, "\nweir_worker_up{worker=\"w2\"} 1\n") && strings.Contains(text, "\nweir_metastore_up 1\n")
	})
	lint(t, text)
	if n := strings.Count(text, "\nweir_channel_credit_bytes{"); n != 4 {
		t.Errorf("%d series of credit, want 4\n%s", n, strings.Join(own(text), "\n"))
	}
	lose := func(kind string) bool { return kind == "channels" }
	c.Lose.Store(&lose)
	if text := a.scrape(t); strings.Count(text, "\nweir_worker_up{") != 2 || strings.Contains(text, "weir_channel_") || !strings.Contains(text, "\nweir_worker_up{worker=\"w1\"} 0\n") {
		t.Errorf("nobody answers:\n%s", strings.Join(own(text), "\n"))
	}
	m = call[server.JobMetrics](t, a, "GET", "/v1/jobs/counts/metrics", nil, 200)
	if m.Status != "RUNNING" || m.RowsIn == nil || *m.RowsIn == 0 || len(m.Channels) != 0 || !slices.Equal(m.Unanswered, []string{"w1", "w2"}) {
		t.Errorf("nobody answers: %+v", m)
	}
}
