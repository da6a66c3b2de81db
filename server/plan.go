package server

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/planner"
	"weir/planner/plan"
	"weir/server/job"
)

// A PlanRequest asks whether a script can be a job, and how it would run.
type PlanRequest struct {
	SQL string `json:"sql" validate:"required" example:"SELECT behavior, COUNT(*) AS n FROM user_behavior GROUP BY behavior"`
} // @name PlanRequest

// A Plan is a script that can be a job.
type Plan struct {
	Text      string            `json:"text"` // all of it for people
	Columns   []ResultColumn    `json:"columns"`
	Bounded   bool              `json:"bounded"`
	Tables    []string          `json:"tables"`
	Settings  map[string]string `json:"settings"` // what the script SETs
	Warnings  []string          `json:"warnings"`
	Logical   string            `json:"logical"`   // the logical plan as the script says it, a node to a line
	Rewritten []string          `json:"rewritten"` // what was changed in it
	Chains    []PlanChain       `json:"chains"`
	Edges     []PlanEdge        `json:"edges"`
	State     []PlanState       `json:"state"` // what operators keep, in every checkpoint too
} // @name Plan

// A PlanState is state that an operator keeps.
type PlanState struct {
	Operator string `json:"operator"`
	Entries  string `json:"entries" example:"each behavior"` // what there is an entry for
	Bytes    int    `json:"bytes_per_entry"`                 // about, in memory; strings count as 16 bytes
	Most     int    `json:"most,omitempty"`                  // the greatest number of entries; absent: as many as the input has
	Endless  bool   `json:"endless"`                         // the entries grow with an input that does not end
} // @name PlanState

// A ResultColumn is a column and its SQL type.
type ResultColumn struct {
	Name string `json:"name"`
	Type string `json:"type" example:"BIGINT"`
} // @name ResultColumn

// A PlanChain is a run of operators fused into one task per subtask.
type PlanChain struct {
	Operators []PlanOperator `json:"operators"`
	Single    bool           `json:"single"` // one subtask, whatever the parallelism
} // @name PlanChain

// A PlanOperator is a node of the graph.
type PlanOperator struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind"`
} // @name PlanOperator

// A PlanEdge joins two chains, by index: rows go by the hash of keys, all to one subtask,
// forward to the subtask of the same number, or are those that were rejected.
type PlanEdge struct {
	From int      `json:"from"`
	To   int      `json:"to"`
	Kind string   `json:"kind" enums:"hash,single,forward,rejects"`
	Keys []string `json:"keys"`
} // @name PlanEdge

// A JobPlan is a job's graph with the figures of its running attempt.
type JobPlan struct {
	Text       string      `json:"text"`
	Chains     []JobChain  `json:"chains"`
	Edges      []PlanEdge  `json:"edges"`
	Bottleneck *Bottleneck `json:"bottleneck,omitempty"`
} // @name JobPlan

// A JobChain is a chain of a job's graph and how it fares; rows and rates are absent where
// nobody tells.
type JobChain struct {
	Operators   []JobOperator `json:"operators"`
	Parallelism int           `json:"parallelism"` // its subtasks
	Flow
	// Shares of the last 5 seconds, 0 to 1, on average over its subtasks: at work, waiting for a full channel, waiting for input or time. They add up to 1, or are all 0 where nobody tells.
	Busy           float64    `json:"busy"`
	BackPressured  float64    `json:"back_pressured"`
	Idle           float64    `json:"idle"`
	Busiest        *BusySub   `json:"busiest,omitempty"`
	StateBytes     int64      `json:"state_bytes"`               // in memory
	SpilledEntries int64      `json:"spilled_entries,omitempty"` // of the state, on disk only
	DeltaSeconds   float64    `json:"delta_seconds,omitempty"`   // of a core, that went into writing what changed of the state
	Watermark      *time.Time `json:"watermark,omitempty"`
} // @name JobChain

func viewColumns(columns []plan.Column) []ResultColumn {
	out := make([]ResultColumn, len(columns))
	for i, c := range columns {
		out[i] = ResultColumn{Name: c.Name, Type: c.Type.String()}
	}
	return out
}

func viewOperators(chain plan.Chain) []PlanOperator {
	out := make([]PlanOperator, len(chain.Operators))
	for i, op := range chain.Operators {
		out[i] = PlanOperator{ID: string(op.ID), Name: op.Name, Kind: string(op.Kind)}
	}
	return out
}

func viewEdges(g *plan.Graph) []PlanEdge {
	out := make([]PlanEdge, len(g.Edges))
	for i, e := range g.Edges {
		out[i] = PlanEdge{From: e.From, To: e.To, Kind: edgeKind(e), Keys: []string{}}
		from := g.Chains[e.From].Operators
		for _, k := range e.Keys {
			out[i].Keys = append(out[i].Keys, from[len(from)-1].Schema[k].Name)
		}
	}
	return out
}

func edgeKind(e plan.Edge) string {
	switch {
	case e.Forward:
		return "forward"
	case e.Rejects:
		return "rejects"
	case len(e.Keys) == 0:
		return "single"
	}
	return "hash"
}

// plan checks and explains a script.
//
//	@Summary	Check and explain a script without running it
//	@Tags		sql
//	@Accept		json
//	@Produce	json
//	@Param		script	body		PlanRequest	true	"the script"
//	@Success	200		{object}	Plan
//	@Router		/v1/plan [post]
func (s *Server) plan(c echo.Context) error {
	var req PlanRequest
	if err := s.decode(c, query(c), &req); err != nil {
		return err
	}
	planned, err := planner.Plan(req.SQL, catalog{c.Request().Context(), s.deps.Tables}, planner.Options{CheckPath: s.opts.CheckPath})
	if err != nil {
		return err
	}
	v := Plan{
		Text: planned.Text(), Columns: viewColumns(planned.Columns), Bounded: planned.Graph.Bounded,
		Tables: []string{}, Settings: planned.Settings, Warnings: append([]string{}, planned.Warnings...),
		Logical: planned.Logical(), Rewritten: append([]string{}, planned.Rewritten...),
		Chains: []PlanChain{}, Edges: viewEdges(planned.Graph), State: []PlanState{},
	}
	for _, u := range planned.State {
		v.State = append(v.State, PlanState{Operator: string(u.Operator), Entries: u.Entries, Bytes: u.Bytes, Most: u.Most, Endless: u.Endless})
	}
	for _, t := range planned.Tables {
		v.Tables = append(v.Tables, t.Name)
	}
	for _, chain := range planned.Graph.Chains {
		v.Chains = append(v.Chains, PlanChain{Operators: viewOperators(chain), Single: chain.Single})
	}
	return c.JSON(http.StatusOK, v)
}

// getJobPlan shows a job's graph.
//
//	@Summary	Show a job's operator graph with live rates
//	@Tags		jobs
//	@Produce	json
//	@Param		job	path		string	true	"id or name"
//	@Success	200	{object}	JobPlan
//	@Router		/v1/jobs/{job}/plan [get]
func (s *Server) getJobPlan(c echo.Context) error {
	j, err := s.jobOf(c, query(c))
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	rates, err := s.deps.Service.Rates(ctx, string(j.ID))
	if err != nil {
		return err
	}
	v, err := viewJobPlan(j, rates)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, v)
}

func viewJobPlan(j weir.Job, rates job.Rates) (JobPlan, error) {
	var graph plan.Graph
	if err := json.Unmarshal(j.Plan, &graph); err != nil {
		return JobPlan{}, err
	}
	v := JobPlan{Text: planner.Explain(&graph), Chains: make([]JobChain, len(graph.Chains)), Edges: viewEdges(&graph)}
	for i, chain := range graph.Chains {
		v.Chains[i] = JobChain{Operators: make([]JobOperator, len(chain.Operators)), Parallelism: chain.Subtasks(j.Parallelism)}
		for k, op := range chain.Operators {
			v.Chains[i].Operators[k] = JobOperator{ID: string(op.ID), Name: op.Name, Kind: string(op.Kind), Chain: i, Parallelism: v.Chains[i].Parallelism}
		}
	}
	v.Bottleneck = viewBottleneck(graph, rates.Bottleneck)
	for _, r := range rates.Chains {
		if r.Chain >= len(v.Chains) || r.Tasks == 0 {
			continue
		}
		c := &v.Chains[r.Chain]
		c.Flow, c.Watermark = viewFlow(r.Flow), optional(r.Watermark)
		c.Busy, c.BackPressured, c.Idle, c.Busiest = r.Busy, r.Blocked, r.Idle, viewShare(r.Busiest)
		for k := range min(len(c.Operators), len(r.Operators)) {
			o := r.Operators[k]
			c.Operators[k].Flow, c.Operators[k].Busy, c.Operators[k].Busiest = viewFlow(o.Flow), o.Busy, viewShare(o.Busiest)
			c.Operators[k].BackPressured, c.Operators[k].Idle = r.Blocked, r.Idle
		}
		c.StateBytes, c.SpilledEntries, c.DeltaSeconds = r.State.Bytes, r.State.Spilled, r.State.DeltaSeconds
	}
	return v, nil
}
