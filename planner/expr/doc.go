// Package expr holds SQL's types, the typed expression tree that the planner binds,
// rewrites and stores and that exec/eval compiles to kernels, and the table of the
// language's functions and aggregates. It is a leaf.
//
//	                      ┌─▶ planner: which call means what, of which type
//	Functions, Aggregates ┼─▶ exec/eval, exec/op: a kernel for each signature
//	                      └─▶ docs, SHOW FUNCTIONS: text and examples, which are run
//
// Invariants
//
//  1. A tree is complete: every node has a type, conversions are nodes of their own, and
//     what a value depends on beside its row (a time zone) is in it. It is kept as JSON.
//  2. Trees are not changed once they are made: they share their parts.
//  3. Expressions that print alike (SQL) over the same columns compute the same, so a text
//     names state.
//  4. CanFail is true wherever a row error is possible.
//  5. A DECIMAL's digits behind the point are part of its type, and those of both sides of
//     + - / % and of comparisons are the same.
//
// There are no goroutines; the tables are made once and never changed.
//
// Failures: ParsePath and CheckLike say what is wrong with a pattern, for constants when
// they are planned and for data when it runs. Nothing else fails.
//
// Testing: here the table's consistency and printing; in package planner that what is
// printed is bound alike; in exec/eval that each signature compiles.
package expr
