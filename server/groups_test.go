package server_test

import (
	"slices"
	"strings"
	"testing"

	"weir"
	"weir/planner"
	"weir/planner/expr"
	"weir/planner/plan"
	"weir/server"
	"weir/server/job"
)

// turned shows the columns of buckets the other way round.
const turned = "SELECT COUNT(*) AS n, k % 4 AS key FROM numbers GROUP BY k % 4"

// keeping plans a query as plans were before results were read out of groups: its result keeps
// its own rows, made by a projection where they are not the groups as they lie.
func keeping(t *testing.T, sql string) plan.Graph {
	t.Helper()
	p, err := planner.Plan(sql, nil, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := p.Graph
	ops := g.Chains[1].Operators
	result := ops[1].Result
	if !result.Groups {
		t.Fatalf("%s: a result that keeps its rows", sql)
	}
	result.Groups = false
	if show := result.Show; !slices.IsSorted(show) {
		made := plan.Operator{ID: "project_4858a1d6", Name: "project", Kind: plan.Project, Schema: g.Result, Project: &plan.ProjectSpec{}}
		for _, i := range show {
			made.Project.Exprs = append(made.Project.Exprs, &expr.Expr{Op: expr.OpColumn, Type: ops[0].Schema[i].Type, Column: i})
		}
		result.Keys, result.Show = []int{slices.Index(show, 0)}, []int{0, 1}
		g.Chains[1].Operators = slices.Insert(ops, 1, made)
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	return *g
}

// submitKeeping submits a job whose plan is as keeping makes it.
func (s *site) submitKeeping(name, sql string) {
	s.t.Helper()
	_, err := s.s.Submit(s.t.Context(), job.Spec{Name: name, SQL: sql, Graph: keeping(s.t, sql), Parallelism: 2, Checkpoint: []byte(`{"interval":"20ms"}`)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.checkpointed(name)
}

func (s *site) checkpointed(name string) {
	s.t.Helper()
	eventually(s.t, "a checkpoint of "+name, func() bool {
		list := call[server.CheckpointList](s.t, s.api, "GET", "/v1/jobs/"+name+"/checkpoints?status=completed", nil, 200)
		return len(list.Checkpoints) > 1
	})
}

func (s *site) stop(name, savepoint string) {
	s.t.Helper()
	call[server.Job](s.t, s.api, "POST", "/v1/jobs/"+name+"/stop", map[string]any{"name": savepoint}, 202)
	s.await(name, "STOPPED")
}

// A job whose result is read out of groups goes on from the snapshot of one whose result kept
// its own rows. The other way round those rows are nowhere: it is refused, and what to do works.
func TestSnapshotOfAnOlderPlan(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{"as they lie": buckets, "turned": turned} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			want := all
			if query == turned {
				want = strings.NewReplacer(`"key":0,"n":2000`, `"n":2000,"key":0`, `"key":1,"n":2000`, `"n":2000,"key":1`,
					`"key":2,"n":2000`, `"n":2000,"key":2`, `"key":3,"n":2000`, `"n":2000,"key":3`).Replace(all)
			}
			s.submitKeeping("older", numbers+query)
			s.stop("older", "of-older")
			s.submit("newer", numbers+query, "of-older")
			s.checkpointed("newer")
			s.stop("newer", "of-newer")
			for _, verb := range []string{"start", "restore"} {
				p := call[server.Problem](t, s.api, "POST", "/v1/jobs/older/"+verb, map[string]any{"from": "savepoint:of-newer"}, 409)
				for _, part := range []string{"(result) has no rows of its own", "submit the snapshot's query as a new job"} {
					if !strings.Contains(p.Detail, part) {
						t.Errorf("%s: %q does not say %q", verb, p.Detail, part)
					}
				}
			}
			if j := call[server.Job](t, s.api, "GET", "/v1/jobs/older", nil, 200); j.Status != string(weir.StatusStopped) {
				t.Errorf("the refused start made the job %s", j.Status)
			}
			s.submit("newest", numbers+query, "of-newer")
			call[server.Job](t, s.api, "POST", "/v1/jobs/newer/start", nil, 202)
			call[server.Job](t, s.api, "POST", "/v1/jobs/older/start", nil, 202)
			for _, name := range []string{"newest", "newer", "older"} {
				s.results(name, want)
			}
		})
	}
}

// A filter of groups makes another result: neither goes on from the other's snapshot.
func TestSnapshotOfFilteredGroups(t *testing.T) {
	t.Parallel()
	const having = buckets + " HAVING COUNT(*) > 0"
	s := newSite(t)
	for name, queries := range map[string][2]string{"all": {buckets, having}, "some": {having, buckets}} {
		s.submit(name, numbers+queries[0], "")
		s.checkpointed(name)
		s.stop(name, name)
		p := call[server.Problem](t, s.api, "POST", "/v1/jobs", spec("other", numbers+queries[1], name), 409)
		if !strings.Contains(p.Detail, "filter(") {
			t.Errorf("%s: %q does not name the filter", name, p.Detail)
		}
	}
}
