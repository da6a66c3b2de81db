package plan

import (
	"weir"
	"weir/planner/expr"
)

// Version is the version of the graph's JSON form.
const Version = 1

// A Graph is a job's operator graph.
type Graph struct {
	Version        int     `json:"version"`
	MaxParallelism int     `json:"max_parallelism"`
	Chains         []Chain `json:"chains"`
	Edges          []Edge  `json:"edges"`
	// Bounded: every source ends.
	Bounded bool `json:"bounded"`
	// OnRowError is "skip" or "keep"; empty: a row error fails the job.
	OnRowError string `json:"on_row_error,omitempty"`
	// LatencyTarget is a duration as Go writes it; empty: DefaultLatency.
	LatencyTarget string `json:"latency_target,omitempty"`
	// Result is the schema that the kept result shows; nil when the job has a sink.
	Result []Column `json:"result,omitempty"`
}

// A Column is one column of a schema.
type Column struct {
	Name    string    `json:"name"`
	Type    expr.Type `json:"type"`
	NotNull bool      `json:"not_null,omitempty"`
}

// A Chain is a run of operators fused into one task per subtask.
type Chain struct {
	Operators []Operator `json:"operators"`
	// Single: one subtask, whatever the parallelism.
	Single bool `json:"single,omitempty"`
}

// Subtasks returns the number of the chain's subtasks at a parallelism.
func (c Chain) Subtasks(parallelism int) int {
	if c.Single {
		return 1
	}
	return parallelism
}

// Input is the schema of what a chain reads; nil for one that begins with a source.
func (g *Graph) Input(chain int) []Column {
	for _, e := range g.Edges {
		if e.To != chain {
			continue
		}
		if e.Rejects {
			return RejectColumns()
		}
		from := g.Chains[e.From].Operators
		return from[len(from)-1].Schema
	}
	return nil
}

// An Edge joins two chains (indexes into Graph.Chains).
type Edge struct {
	From int `json:"from"`
	To   int `json:"to"`
	// Keys are the columns of From's output by whose hash rows are routed; a row's
	// key group chooses the subtask. Empty: everything goes to subtask 0.
	Keys []int `json:"keys"`
	// Forward: subtask i of From sends to subtask i of To alone; both chains have as
	// many subtasks. Keys is empty.
	Forward bool `json:"forward,omitempty"`
	// Rejects: the edge carries the rows that From's operators reject, with the columns
	// of RejectColumns, and not what they emit.
	Rejects bool `json:"rejects,omitempty"`
}

// An OperatorKind names what an operator does.
type OperatorKind string

// The kinds of operators.
const (
	Source          OperatorKind = "source" // of a table, or of rows written in the query
	Filter          OperatorKind = "filter"
	Project         OperatorKind = "project"
	LocalAggregate  OperatorKind = "local_aggregate"
	GlobalAggregate OperatorKind = "global_aggregate"
	Result          OperatorKind = "result"
	Sink            OperatorKind = "sink"
	Expand          OperatorKind = "expand"
	Rejects         OperatorKind = "rejects"
)

// An Operator is one node; the spec that Kind names is set.
type Operator struct {
	ID     weir.OperatorID `json:"id"`
	Name   string          `json:"name"` // for people: "global_aggregate(behavior)"
	Kind   OperatorKind    `json:"kind"`
	Schema []Column        `json:"schema"` // of its output; empty for sinks

	Source    *SourceSpec    `json:"source,omitempty"`
	Filter    *FilterSpec    `json:"filter,omitempty"`
	Project   *ProjectSpec   `json:"project,omitempty"`
	Aggregate *AggregateSpec `json:"aggregate,omitempty"` // local and global
	Result    *ResultSpec    `json:"result,omitempty"`
	Sink      *SinkSpec      `json:"sink,omitempty"`
	Expand    *ExpandSpec    `json:"expand,omitempty"`
	Rejects   *RejectsSpec   `json:"rejects,omitempty"`
}

// A Table is a table's definition as the plan keeps it.
type Table struct {
	Name      string            `json:"name"`
	Connector string            `json:"connector"` // "filesystem", "datagen", "blackhole"
	Format    string            `json:"format,omitempty"`
	Options   map[string]string `json:"options,omitempty"` // checked by the planner
	Columns   []Column          `json:"columns"`
}

// A SourceSpec reads a table.
type SourceSpec struct {
	Table Table `json:"table"`
	// Read lists the table's columns (indexes) that the query needs; the source's
	// output schema is these, in this order. It may be empty: COUNT(*) needs rows only.
	Read []int `json:"read"`
	// Bounded: the source ends by itself.
	Bounded bool `json:"bounded"`
	// Values are the rows of a table written in the query (VALUES, or a SELECT without
	// FROM): each row's expressions read no columns and have the columns' types. Table
	// then has the connector "values".
	Values [][]*expr.Expr `json:"values,omitempty"`
	// RowsPerSecond paces the whole job's source; 0: as fast as possible.
	RowsPerSecond float64 `json:"rows_per_second,omitempty"`
}

// A FilterSpec keeps the rows for which Predicate is true.
type FilterSpec struct {
	Predicate *expr.Expr `json:"predicate"`
}

// A ProjectSpec computes the output's columns; names and types are in Schema.
type ProjectSpec struct {
	Exprs []*expr.Expr `json:"exprs"`
}

// An AggregateSpec groups rows. A local aggregate's output is the key columns, then
// each aggregate's Partial columns in order; the global one reads that form (keys
// are columns 0..len(Keys)-1 there) and emits the keys, then one column per aggregate.
// For a local aggregate Keys and Aggregates[i].Arg index its input's columns; for a
// global one Aggregates[i].Arg is the first of its partial columns.
// A global aggregate that reads no local one (Raw) indexes plain input columns as a local one does.
type AggregateSpec struct {
	Keys       []int            `json:"keys"`
	Aggregates []expr.Aggregate `json:"aggregates"`
	Raw        bool             `json:"raw,omitempty"`
	// Final: emit each group once, at the end of bounded input; otherwise every change.
	Final bool `json:"final,omitempty"`
	// Changing: the input takes rows back (-U, -D); a group goes with its last row. Raw too.
	Changing bool `json:"changing,omitempty"`
	// Always are keys of groups that exist without a row, at the end of bounded input
	// (the grand total of ROLLUP): literals, one per key. Without Keys there is one
	// such group by nature, and it is not listed.
	Always [][]*expr.Expr `json:"always,omitempty"`
}

// An ExpandSpec emits each row once for every grouping set. Its output is the input's
// columns and one more, INT: the number of the set from 0. In the output for a set those
// of Keys that Sets does not name for it are NULL.
type ExpandSpec struct {
	Keys []int   `json:"keys"` // input columns that are keys of some set
	Sets [][]int `json:"sets"` // per set, the input columns of its keys
}

// A RejectsSpec keeps the rows that on_row_error skips or keeps. Its operator is alone
// in a Single chain that Rejects edges lead to.
type RejectsSpec struct {
	// Keep: all of them; otherwise they are counted and the first few of each table kept.
	Keep bool `json:"keep,omitempty"`
}

// RejectColumns is the schema of rejected rows.
func RejectColumns() []Column {
	text, number := expr.Type{Kind: expr.String}, expr.Type{Kind: expr.BigInt}
	return []Column{
		{Name: "table", Type: text, NotNull: true}, // or the operator, where many rows were at fault
		{Name: "path", Type: text},                 // of the file; NULL where the source has none
		{Name: "line", Type: number},               // from 1; NULL: unknown
		{Name: "offset", Type: number},             // of the record: bytes, or the row's number in its source
		{Name: "column", Type: text},               // NULL: the whole record
		{Name: "reason", Type: text, NotNull: true},
		{Name: "raw", Type: expr.Type{Kind: expr.Bytes}}, // the record as it lay in the source; NULL: it was well-formed
	}
}

// A ResultSpec keeps the job's result table in keyed state.
type ResultSpec struct {
	// Keys are the input columns that identify a row of the result; with Multiset the
	// whole row does, and equal rows are counted.
	Keys     []int `json:"keys"`
	Multiset bool  `json:"multiset,omitempty"`
	// Groups: the rows are the groups of the global aggregate in front of it, whose keys are
	// Keys. The result keeps no copy of them: it is read out of the aggregate's state.
	Groups bool `json:"groups,omitempty"`
	// Show lists the input columns that readers see, in order; the others are hidden keys.
	Show []int `json:"show"`
}

// A SinkSpec writes to a table; its input's columns are the table's, in order.
type SinkSpec struct {
	Table Table `json:"table"`
}
