// Package eval compiles a typed expression tree (planner/expr) into vector kernels
// over batches.
//
//	expr.Expr ──Compile──▶ Program ──Eval(batch)───▶ one vector, aligned with the batch's columns
//	                              └─Select(batch)──▶ the rows for which it is true
//
// A Program is a tree of nodes. A node works on the whole vector of its operands and
// owns the vector that it returns; an interface is called once per node and batch,
// never per row, and nothing is allocated once the vectors have grown.
//
// Invariants
//
//	E1  Vectors are indexed by the batch's rows, selected or not. Only selected rows
//	    have meaning; the others hold anything.
//	E2  A row that is not selected, or that a connective does not need, never fails.
//	    AND evaluates its right side only where the left one is not false (when
//	    selecting: where it is true), OR only where it is not true, IN goes through
//	    its list the same way. So x <> 0 AND 10 / x > 1 never divides by zero. CASE
//	    evaluates a value for the rows that take it, COALESCE an argument where those
//	    before it are NULL.
//	E3  Inside the tree the value at a NULL row is arbitrary; Eval zeroes it at the end.
//	E4  Overflow of integers and decimals and division by zero are row errors; no
//	    wrapped value leaves a kernel. Doubles follow IEEE 754.
//	E5  Comparison is PostgreSQL's: NaN equals itself and is greater than all else, -0
//	    equals 0, strings compare by bytes, false is less than true.
//	E6  Strings that a kernel makes are empty where they are NULL or not computed.
//
// Functions of the table (OpCall) are listed in call.go; most, and the casts, are one
// kernel, a loop over the rows that are selected and not NULL, which says of a row that
// it has a value, is NULL or fails. What is constant is computed once, by Compile; where
// that fails it is left to the rows. Regular expressions are the one thing that allocates
// per row: two small slices for each match.
//
// Integer kernels compute all rows, selected or not, and gather an overflow flag
// beside; only when it is set do they look for a selected row that overflowed.
//
// # Goroutines
//
// None. A Program holds scratch vectors: it belongs to one task.
//
// # Failures
//
// Compile refuses trees that the binder would not produce. Eval and Select return a
// *RowError, naming one failing row; which one, if there are several, is not promised.
//
// # Testing
//
// A row-at-a-time evaluator in the tests is compared with the kernels on random
// trees over random batches with NULLs and selections. What PostgreSQL answers to
// casts and functions is kept in testdata; LIKE and JSON_VALUE are fuzzed.
package eval
