package job

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/exec/deploy"
	"weir/planner/expr"
	"weir/planner/plan"
)

func TestParseFrom(t *testing.T) {
	t.Parallel()
	id := "job_0123456789abcdef0123456789abcdef"
	good := map[string]From{
		"": {Latest: true}, "latest": {Latest: true}, "nothing": {Nothing: true},
		"checkpoint:7": {Checkpoint: 7}, "checkpoint:counts/7": {Job: "counts", Checkpoint: 7},
		"checkpoint:" + id + "/12": {Job: id, Checkpoint: 12}, "savepoint:a-1_b": {Savepoint: "a-1_b"},
	}
	for s, want := range good {
		got, err := ParseFrom(s)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
		if s != "" && got.String() != s {
			t.Errorf("%q prints as %q", s, got)
		}
	}
	for _, s := range []string{
		"Latest", "checkpoint:", "checkpoint:0", "checkpoint:-1", "checkpoint:x", "checkpoint:a/b/7", "checkpoint:/7",
		"checkpoint:../7", "savepoint:", "savepoint:..", "savepoint:A", "savepoint:a/b", "7", "nothing:", strings.Repeat("x", 100),
	} {
		if _, err := ParseFrom(s); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestParseRestart(t *testing.T) {
	t.Parallel()
	good := map[string]RestartOptions{
		"": DefaultRestart(), "null": DefaultRestart(), `{}`: DefaultRestart(),
		`{"strategy":"exponential_delay","initial_backoff":"1s","max_backoff":"5s","multiplier":3,"reset_after":"1m","attempts":4}`: {
			Strategy: RestartExponential, InitialBackoff: time.Second, MaxBackoff: 5 * time.Second, Multiplier: 3, ResetAfter: time.Minute, Attempts: 4,
		},
		`{"strategy":"fixed_delay","attempts":2}`:     {Strategy: RestartFixed, Delay: time.Second, Attempts: 2},
		`{"strategy":"failure_rate","interval":"5m"}`: {Strategy: RestartFailureRate, Delay: time.Second, Failures: 3, Interval: 5 * time.Minute},
		`{"strategy":"none"}`:                         {Strategy: RestartNone},
	}
	for s, want := range good {
		got, err := ParseRestart(json.RawMessage(s))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", s, err, diff)
			continue
		}
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseRestart(text); err != nil || again != got {
			t.Errorf("%s prints as %s, which reads as %+v, %v", s, text, again, err)
		}
	}
	for s, want := range map[string]string{
		`{"strategy":"sometimes"}`: `"sometimes" is none of`,
		`{"backoff":"1s"}`:         `unknown field "backoff"`,
		`{"attempts":"3"}`:         `restart.attempts is a JSON string: give a whole number`,
		`5`:                        `restart is a JSON number: give an object`,
		`{"initial_backoff":"1"}`:  `initial_backoff "1" is no duration`,
		`{"initial_backoff":"1m","max_backoff":"1s"}`:            "max_backoff 1s is below initial_backoff 1m0s",
		`{"multiplier":0.5}`:                                     "multiplier must lie between",
		`{"strategy":"none","attempts":3,"delay":"1s"}`:          "delay does not belong to strategy none; attempts does not belong to strategy none",
		`{"strategy":"fixed_delay","attempts":-1,"delay":"-1s"}`: "attempts must not be negative",
	} {
		if _, err := ParseRestart(json.RawMessage(s)); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", s, err, want)
		}
	}
}

func TestNewJob(t *testing.T) {
	t.Parallel()
	graph := plan.Graph{Version: plan.Version, MaxParallelism: 8}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j, err := newJob(Spec{Graph: graph}, now)
	if err != nil {
		t.Fatal(err)
	}
	if !j.ID.Valid() || !validName(j.Name) || j.Parallelism != 2 || j.OnRowError != "fail" || j.Status != weir.StatusCreated || !strings.Contains(string(j.Checkpoint), `"interval":"10s"`) {
		t.Errorf("defaults: %+v", j)
	}
	for want, spec := range map[string]Spec{
		"names match":            {Name: "A b"},
		"do not begin with job_": {Name: "job_1"},
		"parallelism 9":          {Parallelism: 9},
		"on_row_error":           {OnRowError: "skip"},
		"interval":               {Checkpoint: json.RawMessage(`{"interval":"often"}`)},
		"strategy":               {Restart: json.RawMessage(`{"strategy":"often"}`)},
	} {
		spec.Graph = graph
		if _, err := newJob(spec, now); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", spec, err, want)
		}
	}
}

func TestQueryOfResults(t *testing.T) {
	t.Parallel()
	tab := table{graph: plan.Graph{Result: []plan.Column{{Name: "k", Type: expr.Type{Kind: expr.String}}, {Name: "n"}}}}
	q, err := tab.query(ResultQuery{OrderBy: " n desc , k", Limit: 20000})
	if err != nil || q.Limit != maxLimit || len(q.OrderBy) != 2 || !q.OrderBy[0].Desc || q.OrderBy[1].Column != "k" {
		t.Errorf("%+v, %v", q, err)
	}
	tab.graph.Result = append(tab.graph.Result, plan.Column{Name: `-a, "b"`})
	for text, want := range map[string][]deploy.Order{
		`-n,k`:                       {{Column: "n", Desc: true}, {Column: "k"}},
		`"n" asc, -"-a, ""b"""`:      {{Column: "n"}, {Column: `-a, "b"`, Desc: true}},
		"\"-a, \"\"b\"\"\" DESC\t,k": {{Column: `-a, "b"`, Desc: true}, {Column: "k"}},
	} {
		q, err := tab.query(ResultQuery{OrderBy: text})
		if diff := cmp.Diff(want, q.OrderBy); diff != "" || err != nil {
			t.Errorf("%s: %v, -want +got:\n%s", text, err, diff)
		}
	}
	next := cursor{Order: "k", After: []byte("x")}.String()
	if q, err = tab.query(ResultQuery{OrderBy: "k", Cursor: next}); err != nil || string(q.After) != "x" || q.Limit != defaultLimit {
		t.Errorf("%+v, %v", q, err)
	}
	for want, q := range map[string]ResultQuery{
		"limit -1":               {Limit: -1},
		`no column "m"`:          {OrderBy: "m"},
		"asc, desc or nothing":   {OrderBy: "k up"},
		"commas between":         {OrderBy: "k n m"},
		"none that was given":    {Cursor: "garbage!"},
		`"e30" is none`:          {Cursor: "e30"},
		"belongs to order_by":    {Cursor: next, OrderBy: "n"},
		"write columns with com": {OrderBy: "k,"},
		"not closed":             {OrderBy: `"k`},
		"followed by nothing":    {OrderBy: "-k desc"},
		"in double quotes":       {OrderBy: "two words desc"},
	} {
		if _, err := tab.query(q); !errors.Is(err, weir.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", q, err, want)
		}
	}
}
