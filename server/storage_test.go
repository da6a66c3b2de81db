package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/checkpoint"
	"weir/planner/plan"
	"weir/server"
)

// A shelf is a job with checkpoints in storage.
type shelf struct {
	*api
	t     *testing.T
	job   weir.Job
	fence weir.Fence
}

// newShelf creates a job and lets its first attempt begin.
func newShelf(t *testing.T, name string) *shelf {
	t.Helper()
	a := newAPI(t)
	id := weir.JobID(a.newJob(t, name).ID)
	j, err := a.store.BeginAttempt(t.Context(), id, weir.AttemptID{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := weir.Fence{Job: id, Attempt: j.Attempt, Term: 1}
	return &shelf{a, t, j, f}
}

func (s *shelf) put(key, text string) {
	s.t.Helper()
	if err := s.blobs.Put(s.t.Context(), key, strings.NewReader(text)); err != nil {
		s.t.Fatal(err)
	}
}

// manifest puts a manifest that fits the job's query, and names nothing but itself.
func (s *shelf) manifest(id weir.CheckpointID, attempt weir.AttemptID) string {
	s.t.Helper()
	var g plan.Graph
	if err := json.Unmarshal(s.job.Plan, &g); err != nil {
		s.t.Fatal(err)
	}
	m := checkpoint.Manifest{
		Version: checkpoint.ManifestVersion, Job: s.job.ID, Checkpoint: id, Attempt: attempt, Type: checkpoint.TypeCheckpoint,
		Parallelism: s.job.Parallelism, MaxParallelism: g.MaxParallelism,
	}
	for chain, c := range g.Chains {
		for _, op := range c.Operators {
			m.Operators = append(m.Operators, checkpoint.ManifestOperator{ID: op.ID, Name: op.Name, Kind: op.Kind, Chain: chain})
		}
	}
	for _, task := range checkpoint.TasksOf(g, s.job.Parallelism) {
		m.Tasks = append(m.Tasks, checkpoint.TaskSnapshot{Task: task.ID})
	}
	data, err := m.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	key := checkpoint.ManifestKey(s.job.ID, id)
	s.put(key, string(data))
	return key
}

// complete records a checkpoint or a savepoint, named, whose manifest lies there.
func (s *shelf) complete(savepoint string) (weir.CheckpointID, string) {
	s.t.Helper()
	r := checkpoint.Record{Type: checkpoint.TypeCheckpoint, Savepoint: savepoint}
	if savepoint != "" {
		r.Type = checkpoint.TypeSavepoint
	}
	id, err := s.store.BeginCheckpoint(s.t.Context(), s.fence, r)
	if err == nil {
		r.ID, r.Manifest = id, s.manifest(id, s.fence.Attempt)
		err = s.store.CompleteCheckpoint(s.t.Context(), s.fence, r, savepoint == "")
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return id, r.Manifest
}

func (s *shelf) end(status weir.Status, f *weir.Failure) {
	s.t.Helper()
	if err := s.store.SetStatus(s.t.Context(), s.fence, status, f); err != nil {
		s.t.Fatal(err)
	}
}

// findings drops what the tests of the check itself look at: sizes and sentences.
func findings(r server.StorageReport) (lines []string) {
	for _, f := range r.Findings {
		line := f.Fault + " " + f.Object
		if f.Savepoint != "" {
			line += " of savepoint " + f.Savepoint
		}
		if f.Repaired != "" {
			line += ": " + f.Repaired
		}
		lines = append(lines, line)
	}
	return lines
}

func TestStorageCheckAndRepair(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "shop")
	_, old := s.complete("")
	_, saved := s.complete("sale")
	_, base := s.complete("")
	s.end(weir.StatusCanceled, nil)
	if err := s.store.Collected(t.Context(), s.job.ID, checkpoint.GivenUp{Attempts: []weir.AttemptID{s.fence.Attempt}}); err != nil {
		t.Fatal(err)
	}
	check := func(want string, sound bool, lines ...string) server.StorageReport {
		t.Helper()
		r := call[server.StorageReport](t, s.api, "GET", "/v1/storage/check"+want, nil, 200)
		if diff := cmp.Diff(lines, findings(r)); diff != "" || r.Sound != sound || r.Jobs != 1 {
			t.Errorf("check%s: sound %v of %d jobs, -want +got\n%s", want, r.Sound, r.Jobs, diff)
		}
		return r
	}
	if r := check("", true); r.Objects != 3 || r.Bytes == 0 || r.Findings == nil {
		t.Errorf("%+v", r)
	}
	orphan := checkpoint.StateKey(s.job.ID, s.fence.Attempt, "global_x", 0, 1, 7)
	s.put(orphan, "x")
	s.put("readme", "x")
	check("", true, "foreign readme", "orphan "+orphan)
	check("?job=shop&deep=true", true, "orphan "+orphan)
	repair := func(body any, sound bool, lines ...string) server.StorageReport {
		t.Helper()
		r := call[server.StorageReport](t, s.api, "POST", "/v1/storage/repair", body, 200)
		if diff := cmp.Diff(lines, findings(r)); diff != "" || r.Sound != sound {
			t.Errorf("repair %v: sound %v, -want +got\n%s", body, r.Sound, diff)
		}
		return r
	}
	repair(map[string]any{"job": "shop"}, true, "orphan "+orphan+": deleted")
	s.put(old, "{")
	if err := s.blobs.Delete(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
	r := check("?job="+string(s.job.ID), false, "missing "+saved+" of savepoint sale", "damaged "+old)
	if f := r.Findings[0]; f.Checkpoint != 2 || f.Job != string(s.job.ID) || !strings.Contains(f.Problem, "delete the savepoint") {
		t.Errorf("%+v", f)
	}

	s.put(orphan, "x") // what a manifest that cannot be read may name is left alone
	lost := repair(nil, false, "foreign readme", "missing "+saved+" of savepoint sale", "damaged "+old+": checkpoint 1 was given up")
	if lost.GivenUp != 1 {
		t.Errorf("%d given up, want 1", lost.GivenUp)
	}
	repair(nil, false, "foreign readme", "missing "+saved+" of savepoint sale")
	if _, err := s.blobs.Stat(t.Context(), base); err != nil {
		t.Error(err)
	}
	s.manifest(2, s.fence.Attempt) // the savepoint's is back
	s.put(old, "{")
	if lost = repair(nil, true, "foreign readme"); lost.GivenUp != 0 {
		t.Errorf("%d given up, want 0", lost.GivenUp)
	}

	call[server.Problem](t, s.api, "GET", "/v1/storage/check?job=nobody", nil, 404)
	call[server.Problem](t, s.api, "GET", "/v1/storage/check?job="+string(weir.NewJobID()), nil, 404)
	call[server.Problem](t, s.api, "GET", "/v1/storage/check?deep=perhaps", nil, 400)
	call[server.Problem](t, s.api, "GET", "/v1/storage/check?repair=true", nil, 400)
	call[server.Problem](t, s.api, "POST", "/v1/storage/repair", map[string]any{"everything": true}, 400)
}

func TestAdoptOverHTTP(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "shop")
	s.complete("")
	call[server.Problem](t, s.api, "POST", "/v1/jobs/shop/adopt", nil, 409) // it runs
	s.end(weir.StatusFailed, &weir.Failure{Reason: checkpoint.ReasonMetastoreBack, Message: "storage knows more"})
	forgotten := weir.AttemptID{Number: 4, Tag: "0badcafe"}
	s.manifest(7, forgotten)
	s.put(checkpoint.ManifestKey(s.job.ID, 8), "{")

	list := call[server.AdoptableList](t, s.api, "GET", "/v1/jobs/shop/adoptable", nil, 200).Checkpoints
	if len(list) != 3 || list[0].Problem == "" {
		t.Fatalf("adoptable: %+v", list)
	}
	list[0].Problem = ""
	want := []server.AdoptableCheckpoint{
		{Checkpoint: 8},
		{Checkpoint: 7, Attempt: "4-0badcafe", Type: "checkpoint", Whole: true},
		{Checkpoint: 1, Attempt: s.fence.Attempt.String(), Type: "checkpoint", Known: true, Whole: true},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("adoptable: -want +got\n%s", diff)
	}
	if p := call[server.Problem](t, s.api, "POST", "/v1/jobs/shop/checkpoints", json.RawMessage(`{"id":7}`), 400); p.Detail != "id is unknown (this request takes none)" {
		t.Errorf("a body that is not taken: %s", p.Detail)
	}
	for body, code := range map[string]int{`{"checkpoint":8}`: 409, `{"checkpoint":6}`: 404, `{"checkpoint":-1}`: 400, `{"id":7}`: 400} {
		call[server.Problem](t, s.api, "POST", "/v1/jobs/shop/adopt", json.RawMessage(body), code)
	}
	call[server.Problem](t, s.api, "POST", "/v1/jobs/nobody/adopt", nil, 404)
	call[server.Problem](t, s.api, "GET", "/v1/jobs/nobody/adoptable", nil, 404)
	got := call[server.Adoption](t, s.api, "POST", "/v1/jobs/shop/adopt", map[string]any{}, 200)
	if got.Checkpoint != want[1] || got.Job.Failure != nil || got.Job.Status != "FAILED" {
		t.Errorf("adopted: %+v", got)
	}
	j, err := s.store.Job(t.Context(), "shop")
	if err != nil || j.Base.Checkpoint != 7 || j.LastCheckpoint != 8 || j.Attempt.Number <= forgotten.Number {
		t.Errorf("%+v, %v", j, err)
	}
	call[server.Problem](t, s.api, "POST", "/v1/jobs/shop/adopt", map[string]any{"checkpoint": 7}, 409) // it is known by now
}
