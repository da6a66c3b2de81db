package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/exec/deploy"
	"weir/server"
	"weir/server/job"
	"weir/server/job/jobtest"
)

func TestHistoryFilters(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.newJob(t, "a")
	f := a.run(t, "a")
	a.checkpoint(t, f, "", nil)
	a.checkpoint(t, f, "", &weir.Failure{Reason: checkpoint.ReasonTimeout, Message: "late"})
	a.checkpoint(t, f, "sp", nil)
	for query, want := range map[string][]int64{
		"": {3, 2, 1}, "status=failed": {2}, "status=failed,completed&type=checkpoint": {2, 1}, "type=savepoint": {3}, "attempt=1": {3, 2, 1}, "attempt=2": {},
		"reason=timeout": {2}, "reason=timeout,canceled": {2}, "reason=canceled": {}, "min_duration=250ms": {3, 2, 1}, "min_duration=251ms": {},
		"since=2026-03-01T12:00:00Z": {3, 2, 1}, "since=2026-03-01T13:00:00.001%2B01:00": {}, "until=2026-03-01T12:00:00.5Z": {3, 2, 1}, "until=2026-03-01T12:00:00Z": {},
		"cursor=3&limit=1": {2}, "status=completed&cursor=3": {1},
	} {
		list := call[server.CheckpointList](t, a, "GET", "/v1/jobs/a/checkpoints?"+query, nil, 200)
		got := []int64{}
		for _, c := range list.Checkpoints {
			got = append(got, c.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
		if !strings.Contains(query, "cursor") {
			sum := call[server.CheckpointSummary](t, a, "GET", "/v1/jobs/a/checkpoints/summary?"+query, nil, 200)
			if sum.Counts.Total != int64(len(want)) {
				t.Errorf("summary of %s: %+v", query, sum.Counts)
			}
		}
	}
	for query, want := range map[string]string{
		"status=done":          "status is “done”: give one of pending, completed, failed, aborted",
		"status=":              "status is “”: give one of",
		"type=both":            `type is "both": give one of checkpoint, savepoint`,
		"attempt=0":            `attempt is "0": give a whole number from 1`,
		"reason=slow,timeout":  "reason is “slow”: give one of timeout, declined,",
		"since=yesterday":      `since is "yesterday": give a time such as 2026-03-01T12:00:00Z`,
		"until=2026-03-01":     `until is "2026-03-01": give a time`,
		"min_duration=-1s":     `min_duration is "-1s": give a duration such as 30s`,
		"min_duration=5":       `min_duration is "5": give a duration`,
		"type=savepoint&type=": "type is given 2 times",
		"before=4":             "before is an unknown query parameter",
		"since=2026-03-01T12:00:00Z&until=2026-03-01T12:00:00Z": "until is 2026-03-01T12:00:00Z, not after since, 2026-03-01T12:00:00Z",
	} {
		for _, path := range []string{"", "/summary"} {
			p := call[server.Problem](t, a, "GET", "/v1/jobs/a/checkpoints"+path+"?"+query, nil, 400)
			name, _, _ := strings.Cut(want, " ")
			if !strings.Contains(p.Detail, want) || len(p.Errors) != 1 || p.Errors[0].Field != name {
				t.Errorf("%s%s: %+v", path, query, p)
			}
		}
	}
	p := call[server.Problem](t, a, "GET", "/v1/jobs/a/checkpoints/summary?limit=4", nil, 400)
	if !strings.Contains(p.Detail, "limit is an unknown query parameter") {
		t.Errorf("%+v", p)
	}
}

// TestReasons: the document has the list of reasons that the code has.
func TestReasons(t *testing.T) {
	t.Parallel()
	doc, _ := document(t)
	var all []any
	for _, reason := range checkpoint.Reasons() {
		all = append(all, reason)
	}
	if diff := cmp.Diff(all, doc.Components.Schemas["CheckpointFailure"].Value.Properties["reason"].Value.Enum); diff != "" {
		t.Errorf("go run ./openapi/gen: -code +document\n%s", diff)
	}
}

func TestCheckpointDetail(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.newJob(t, "a")
	f := a.run(t, "a")
	id, err := a.store.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint, TriggeredAt: when})
	if err != nil {
		t.Fatal(err)
	}
	source, sink := weir.TaskID{Chain: 0, Subtask: 1}, weir.TaskID{Chain: 1, Subtask: 0}
	ack := func(task weir.TaskID, after time.Duration, timing checkpoint.Timing) checkpoint.Ack {
		return checkpoint.Ack{Version: 1, Job: f.Job, Attempt: f.Attempt, Task: task, Checkpoint: id, Worker: "w1", Timing: timing, AckedAt: when.Add(after)}
	}
	r := checkpoint.Record{ID: id, CompletedAt: when.Add(time.Second), Manifest: "m", CommitsOpen: true, Path: "the sink was last", Acks: []checkpoint.Ack{
		ack(sink, 900*time.Millisecond, checkpoint.Timing{AlignmentMS: 800, LastInput: &source}),
		ack(source, 20*time.Millisecond, checkpoint.Timing{UploadMS: 10}),
		ack(weir.TaskID{Chain: 0}, 30*time.Millisecond, checkpoint.Timing{UploadMS: 20}),
	}}
	if err = a.store.CompleteCheckpoint(t.Context(), f, r, true); err == nil {
		err = a.store.CloseCommits(t.Context(), f, id, []checkpoint.CommitTime{{Task: sink, MS: 33}})
	}
	if err != nil {
		t.Fatal(err)
	}
	d := call[server.CheckpointDetail](t, a, "GET", "/v1/jobs/a/checkpoints/1", nil, 200)
	if d.CriticalPath != "the sink was last" || d.CommittedAt == nil || d.CommitMS <= 0 || len(d.Operators) != 2 || d.Last == nil || *d.Last != *d.Operators[1].Last {
		t.Fatalf("%+v", d)
	}
	in, out := d.Operators[0], d.Operators[1]
	if d.Last.Operator != out.ID || d.Last.Subtask != 0 || in.Last == nil || in.Last.Operator != in.ID || in.Last.Subtask != 0 {
		t.Errorf("last of all %+v, of the sources %+v", d.Last, in.Last)
	}
	s := out.Subtasks[0]
	if s.CommitMS != 33 || s.LastInput == nil || s.LastInput.Operator != in.ID || s.LastInput.Subtask != 1 || s.AckedAt == nil || !s.AckedAt.Equal(when.Add(900*time.Millisecond)) {
		t.Errorf("%+v", s)
	}

	id, err = a.store.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint, TriggeredAt: when})
	if err == nil {
		declined := ack(sink, time.Second, checkpoint.Timing{})
		declined.Failure = &weir.Failure{Reason: checkpoint.ReasonDeclined, Message: "no room"}
		_, err = a.store.AbortCheckpoint(t.Context(), f, checkpoint.Record{ID: id, Status: checkpoint.StatusFailed, Failure: declined.Failure, Acks: []checkpoint.Ack{declined}})
	}
	if err != nil {
		t.Fatal(err)
	}
	d = call[server.CheckpointDetail](t, a, "GET", "/v1/jobs/a/checkpoints/2", nil, 200)
	zero := 0
	want := &server.CheckpointFailure{Reason: "declined", Operator: out.ID, Subtask: &zero, Worker: "w1", Message: "no room"}
	if diff := cmp.Diff(want, d.Operators[0].Subtasks[0].Failure); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestPendingDetail(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.newJob(t, "a")
	f := a.run(t, "a")
	id, err := a.store.BeginCheckpoint(t.Context(), f, checkpoint.Record{Type: checkpoint.TypeCheckpoint, TriggeredAt: when})
	if err != nil {
		t.Fatal(err)
	}
	a.fake.far = func(weir.CheckpointID) (job.Progress, error) {
		return job.Progress{Unknown: "worker w2 did not answer", Tasks: []checkpoint.Progress{
			{Task: weir.TaskID{Chain: 0}, Worker: "w1", Stage: checkpoint.StageDone},
			{Task: weir.TaskID{Chain: 1, Subtask: 3}, Worker: "w1", Stage: checkpoint.StageAligning, SinceMS: 12, Missing: []weir.TaskID{{Chain: 0, Subtask: 1}}, BackPressured: 0.98},
			{Task: weir.TaskID{Chain: 1, Subtask: 4}, Worker: "w1", Stage: checkpoint.StageUploading, Doing: "storing 3 of 7 objects"},
		}}, nil
	}
	d := call[server.CheckpointDetail](t, a, "GET", "/v1/jobs/a/checkpoints/1", nil, 200)
	if len(d.WaitingFor) != 2 || d.WaitingUnknown != "worker w2 did not answer" {
		t.Fatalf("%+v", d)
	}
	w := d.WaitingFor[0]
	if w.Subtask != 3 || w.Stage != "aligning" || w.Worker != "w1" || w.BackPressured != 0.98 || len(w.Missing) != 1 || w.Missing[0].Subtask != 1 || w.Missing[0].Operator == w.Operator || w.Missing[0].Name == "" {
		t.Errorf("%+v", w)
	}
	if d.WaitingFor[1].Doing != "storing 3 of 7 objects" {
		t.Errorf("%+v", d.WaitingFor[1])
	}
	a.fake.far = func(weir.CheckpointID) (job.Progress, error) {
		return job.Progress{}, fmt.Errorf("%w: the server that holds the lease does not answer: try again", job.ErrUnavailable)
	}
	d = call[server.CheckpointDetail](t, a, "GET", "/v1/jobs/a/checkpoints/1", nil, 200)
	if len(d.WaitingFor) != 0 || d.WaitingUnknown != "the server that holds the lease does not answer: try again" {
		t.Errorf("%+v", d)
	}
	a.fake.far = func(weir.CheckpointID) (job.Progress, error) { // it ends while the tasks are asked
		_, err := a.store.AbortCheckpoint(context.Background(), f, checkpoint.Record{ID: id, Status: checkpoint.StatusAborted, Failure: &weir.Failure{Reason: checkpoint.ReasonCanceled, Message: "so asked"}})
		return job.Progress{Unknown: "nothing"}, errors.Join(err, errWant)
	}
	d = call[server.CheckpointDetail](t, a, "GET", "/v1/jobs/a/checkpoints/1", nil, 200)
	if d.Status != "aborted" || d.WaitingUnknown != "" {
		t.Errorf("%+v", d)
	}
}

// C05: a trigger where the job is not RUNNING says so, and leaves no row.
func TestC05Triggers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	paths := map[weir.Status][]weir.Status{
		weir.StatusCreated:    nil,
		weir.StatusScheduling: {},
		weir.StatusRestarting: {weir.StatusRunning, weir.StatusRestarting},
		weir.StatusStopping:   {weir.StatusRunning, weir.StatusStopping},
		weir.StatusStopped:    {weir.StatusRunning, weir.StatusStopping, weir.StatusStopped},
		weir.StatusCanceled:   {weir.StatusRunning, weir.StatusCanceled},
		weir.StatusFinished:   {weir.StatusRunning, weir.StatusFinished},
		weir.StatusFailed:     {weir.StatusRunning, weir.StatusFailed},
	}
	for _, status := range weir.Statuses() {
		path, ok := paths[status]
		if status == weir.StatusRunning {
			continue
		}
		if !ok {
			t.Fatalf("no way to %s", status)
		}
		name := strings.ToLower(string(status))
		a.newJob(t, name)
		a.walk(t, name, path)
		for what, body := range map[string]any{"checkpoints": nil, "checkpoints?wait=20ms": nil, "savepoints": map[string]string{"name": "of-" + name}, "savepoints?wait=20ms": nil} {
			p := call[server.Problem](t, a, "POST", "/v1/jobs/"+name+"/"+what, body, 409)
			if !strings.Contains(p.Detail, string(status)) {
				t.Errorf("%s of a job that is %s: %s", what, status, p.Detail)
			}
		}
		if list := call[server.CheckpointList](t, a, "GET", "/v1/jobs/"+name+"/checkpoints", nil, 200); len(list.Checkpoints) != 0 {
			t.Errorf("%s: %+v", status, list.Checkpoints)
		}
	}
	if list := call[server.SavepointList](t, a, "GET", "/v1/savepoints", nil, 200); len(list.Savepoints) != 0 {
		t.Errorf("%+v", list.Savepoints)
	}
	for _, unknown := range []string{"nobody", string(weir.NewJobID()), "job_xyz", url.PathEscape("A B"), url.PathEscape("a/b"), "-1"} {
		for _, what := range []string{"checkpoints", "savepoints"} {
			call[server.Problem](t, a, "POST", "/v1/jobs/"+unknown+"/"+what, nil, 404)
		}
	}
	call[server.Problem](t, a, "POST", "/v1/jobs/%00/checkpoints", nil, 400)
	for _, malformed := range []string{"0", "-1", "x", "1.5", "99999999999999999999"} {
		for _, method := range []string{"GET", "DELETE"} {
			call[server.Problem](t, a, method, "/v1/jobs/created/checkpoints/"+malformed, nil, 400)
		}
	}
	call[server.Problem](t, a, "GET", "/v1/jobs/created/checkpoints/7", nil, 404)
	call[server.Problem](t, a, "DELETE", "/v1/jobs/created/checkpoints/7", nil, 404)
	call[server.Problem](t, a, "POST", "/v1/jobs/created/savepoints", map[string]string{"name": "A B"}, 400)
}

// walk takes a job through statuses; nil: it stays as it was created.
func (a *api) walk(t testing.TB, name string, path []weir.Status) {
	t.Helper()
	if path == nil {
		return
	}
	j, err := a.store.Job(t.Context(), name)
	if err == nil {
		j, err = a.store.BeginAttempt(t.Context(), j.ID, j.Attempt, 1)
	}
	for _, status := range path {
		if err == nil {
			err = a.store.SetStatus(t.Context(), weir.Fence{Job: j.ID, Attempt: j.Attempt, Term: j.Term}, status, nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// C29: what became of a savepoint is known after a restart, and one that the restart
// interrupted reaches an end.
func TestC29Savepoints(t *testing.T) {
	t.Parallel()
	c := jobtest.New(t)
	service := c.Server("s1")
	c.Worker("w1", 4)
	c.Heard(service, 1)
	on := func(service *job.Service) *api {
		a := &api{store: c.Store, log: &syncBuffer{}}
		a.Handler = server.New(server.Deps{Service: service, History: c.Store, Tables: c.Store, Logger: slog.New(slog.DiscardHandler)}, server.Options{})
		return a
	}
	a := on(service)
	const sql = "CREATE TABLE g (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100'); SELECT k, COUNT(*) AS n FROM g GROUP BY k"
	call[server.Job](t, a, "POST", "/v1/jobs", map[string]any{"name": "a", "sql": sql, "parallelism": 2, "checkpoint": map[string]string{"interval": "0s"}}, 201)
	c.Await(service, "a", weir.StatusRunning)
	done := call[server.TriggeredCheckpoint](t, a, "POST", "/v1/jobs/a/savepoints?wait=30s", map[string]string{"name": "whole"}, 200)
	lost := func(kind string) bool { return kind == deploy.KindTrigger }
	c.Lose.Store(&lost)
	cut := call[server.TriggeredCheckpoint](t, a, "POST", "/v1/jobs/a/savepoints", map[string]string{"name": "cut"}, http.StatusAccepted)
	if done.Status != "completed" || cut.Status != "pending" {
		t.Fatalf("%+v, %+v", done, cut)
	}
	c.Kill("s1")
	c.Lose.Store(nil)
	service = c.Server("s2")
	a = on(service)
	if p := call[server.Savepoint](t, a, "GET", "/v1/savepoints/whole", nil, 200); p.Status != "completed" || p.Manifest != done.Manifest || p.Checkpoint != done.ID {
		t.Errorf("%+v", p)
	}
	var p server.Savepoint
	eventually(t, "the savepoint that was cut off has ended", func() bool {
		p = call[server.Savepoint](t, a, "GET", "/v1/savepoints/cut", nil, 200)
		return p.Status != "pending"
	})
	if p.Status != "aborted" || p.Failure == nil || p.Failure.Reason != checkpoint.ReasonAttemptEnded || p.CompletedAt == nil {
		t.Errorf("%+v", p)
	}
	d := call[server.CheckpointDetail](t, a, "GET", fmt.Sprintf("/v1/jobs/a/checkpoints/%d", cut.ID), nil, 200)
	list := call[server.SavepointList](t, a, "GET", "/v1/savepoints", nil, 200)
	if d.Status != "aborted" || len(list.Savepoints) != 2 {
		t.Errorf("%+v, %+v", d, list)
	}
	call[server.Job](t, a, "POST", "/v1/jobs/a/cancel", nil, 202)
	c.Await(service, "a", weir.StatusCanceled)
}
