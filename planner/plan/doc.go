// Package plan holds the operator graph: the planner makes it, the metastore keeps
// it as JSON, the server places it and workers run it.
//
//	chain 0  source ▸ filter ▸ project ▸ local_aggregate
//	                │ edge 0: hash by key columns
//	chain 1  global_aggregate ▸ project ▸ result
//
// Invariants
//
//  1. Chains are in topological order: every edge goes from a lower to a higher index.
//  2. The graph names no parallelism: a start chooses it. A Single chain has one subtask.
//  3. Every operator's Schema is the schema of the batches it emits.
//  4. Operator ids are unique within the graph.
//  5. A chain begins with a source or has edges that lead to it, all of columns of the
//     same types. A chain whose rows go several ways has several edges.
//
// There are no goroutines. Graph.Validate refuses a graph that breaks an invariant: one
// that was stored by another version, or made by hand; the planner makes none.
//
// Testing: the refusals of Validate here; graphs of scripts and their JSON in package planner.
package plan
