package server

import (
	"encoding/json"

	"weir"
	"weir/planner/plan"
	"weir/server/job"
)

// A Flow is what goes through: totals since the attempt began, and per second of the last 5
// seconds. All are absent where nobody tells. A source's bytes in are those it has read of files,
// or what its rows weigh in columns; others' are what the columns weigh that they receive. Bytes out are what is sent, or
// written to files. What one operator gives to the next within a task is not sent: its bytes are an estimate.
type Flow struct {
	RowsIn            *int64   `json:"rows_in,omitempty"`
	RowsOut           *int64   `json:"rows_out,omitempty"`
	BytesIn           *int64   `json:"bytes_in,omitempty"`
	BytesOut          *int64   `json:"bytes_out,omitempty"`
	RowsInPerSecond   *float64 `json:"rows_in_per_second,omitempty"`
	RowsOutPerSecond  *float64 `json:"rows_out_per_second,omitempty"`
	BytesInPerSecond  *float64 `json:"bytes_in_per_second,omitempty"`
	BytesOutPerSecond *float64 `json:"bytes_out_per_second,omitempty"`
} // @name Flow

// A JobOperator is an operator of a job's graph and how it fares.
type JobOperator struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Kind        string `json:"kind"`
	Chain       int    `json:"chain"`       // its place in the chains of the job's plan
	Parallelism int    `json:"parallelism"` // its subtasks
	Flow
	// Busy is its own share of the time of the last 5 seconds, 0 to 1, on average over its subtasks. The other shares are its chain's:
	// the busy ones of a chain's operators, back_pressured and idle add up to 1.
	Busy          float64  `json:"busy"`
	BackPressured float64  `json:"back_pressured"`
	Idle          float64  `json:"idle"`
	Busiest       *BusySub `json:"busiest,omitempty"` // of its subtasks, and its own share there
} // @name JobOperator

// A BusySub is how busy a subtask is.
type BusySub struct {
	Subtask int     `json:"subtask"`
	Busy    float64 `json:"busy"` // share of time, 0 to 1
} // @name BusySubtask

// A Bottleneck is the operator that holds the job up: of the chains that are busy most of the time while those before
// them are back-pressured, or are sources, the one furthest downstream, and in it what works most.
type Bottleneck struct {
	Operator string  `json:"operator"` // its id
	Name     string  `json:"name"`
	Chain    int     `json:"chain"`
	Subtask  int     `json:"subtask"` // the busiest
	Busy     float64 `json:"busy"`    // the operator's share of that one's time, 0 to 1
} // @name Bottleneck

func viewFlow(f job.Flow) Flow {
	return Flow{
		RowsIn: &f.RowsIn, RowsOut: &f.RowsOut, BytesIn: &f.BytesIn, BytesOut: &f.BytesOut,
		RowsInPerSecond: &f.RowsInPerSecond, RowsOutPerSecond: &f.RowsOutPerSecond, BytesInPerSecond: &f.BytesInPerSecond, BytesOutPerSecond: &f.BytesOutPerSecond,
	}
}

func viewShare(s job.Share) *BusySub { return &BusySub{s.Subtask, s.Busy} }

func viewBottleneck(g plan.Graph, b *job.Bottleneck) *Bottleneck {
	if b == nil || b.Chain >= len(g.Chains) || b.Operator >= len(g.Chains[b.Chain].Operators) {
		return nil
	}
	op := g.Chains[b.Chain].Operators[b.Operator]
	return &Bottleneck{Operator: string(op.ID), Name: op.Name, Chain: b.Chain, Subtask: b.Subtask, Busy: b.Busy}
}

// bottleneckOf is viewBottleneck for who has not decoded the plan.
func bottleneckOf(j weir.Job, b *job.Bottleneck) *Bottleneck {
	var g plan.Graph
	if b == nil || json.Unmarshal(j.Plan, &g) != nil {
		return nil
	}
	return viewBottleneck(g, b)
}
