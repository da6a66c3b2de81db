// Package planner turns a SQL script into the operator graph of a job. It knows no
// database, no file and no clock: tables come from the script or from a Catalog.
//
//	text ──parse──▶ program ──bind──▶ statement ──rewrite──▶ statement ──lower──▶ plan.Graph
//	             tables, views, settings ─┘  a tree of relations (tree.go)  Explain ◀──┘
//
// parse tells the statements apart: any number of CREATE TABLE, CREATE VIEW and SET, then
// one SELECT, INSERT or EXECUTE STATEMENT SET, or EXPLAIN of one; Statements does so with
// the scripts that are for the catalog. bind gives names, types and options their meaning:
// table.go, typename.go, view.go, catalog.go, option.go, datagen.go and setting.go those of
// definitions; query.go, select.go, from.go, group.go, naming.go and insert.go those of
// queries; scope.go, expression.go, arithmetic.go, conditional.go, cast.go, function.go,
// text.go and aggregate.go those of expressions, with coerce.go (which types meet), read.go
// and interval.go (literals), check.go (constant arguments) and refuse.go (what others
// have). rewrite folds constants, moves filters down, merges projections, reads only the
// columns that are needed, filters before the exchange and aggregates in two phases; each
// of these can be switched off and changes no answer (rewrite_filter.go, rewrite_merge.go,
// rewrite_columns.go; property.go knows what changes, ends or fails). lower lays the
// operators out in chains (lower_aggregate.go, lower_target.go), with the ids of
// identity.go. state.go, warn.go and explain_tree.go say what has become of a script.
//
// What FROM reads is bound where it is named: a view as often as it is read, a query of
// WITH once; a table is read once however often it is named.
//
// Invariants
//
//  1. What is not supported is refused by name and place; nothing is accepted and ignored.
//  2. A refusal points into the user's text: line, column, the line with carets, and a
//     hint where there is a way around. One call reports as many problems as it can
//     find, one for each place; what follows from another mistake is not reported.
//  3. Names compare without case and keep it; no two columns of a schema have one name.
//  4. Every bound expression has a type; both sides of an operation agree in it, by
//     explicit conversions (planner/expr).
//  5. Folding never takes a row error away and never makes one. Rewriting computes what may
//     fail for the same rows, whatever is switched off: for those that the query needs it
//     for, as PostgreSQL does; a filter comes before what a subquery computes, and what
//     nobody reads is not computed.
//  6. Operator ids are made from the tree as bound, before rewriting: kind, source table,
//     normalised keys. The same script gives the same graph, byte for byte.
//  7. A graph that changes rows never ends in a sink that only appends, unless its input
//     is bounded; then each group is written once, at the end.
//
// There are no goroutines and no state outside a call.
//
// Failures: an *Error holds the user's mistakes and wraps weir.ErrInvalid; errors of
// the Catalog are passed on.
//
// Testing: scripts under testdata/: bind (types and names), rewrite (before and after),
// lower (graphs), explain (all that is said of a plan), refuse (text and place of every
// refusal). Properties over random expressions: what is printed is bound alike, folding
// changes no value and no failure, and all that is bound has kernels. Over random trees and
// rows, a model computes that rewrites change no answer and no failure, and that every
// choice of them makes a valid graph. BenchmarkPlanScript plans fifty lines.
package planner
