// Package difftest compares Weir with PostgreSQL: random tables, random rows and random
// queries of the dialect go to both, and their answers must be the same.
//
//	seed ─▶ schema, rows ─┬─▶ JSON files ─▶ planner.Plan ─▶ tasks (1; 2 with checkpoints, then 3) ─▶ rows ─┐
//	        queries       └─▶ CREATE TABLE, INSERT ─▶ PostgreSQL ──────────────────────────────────▶ rows ─┴─▶ equal?
//
// A query is made in both spellings at once (STRING and text, AVG(x) and AVG(x)::float8),
// which differ only where docs/sql.md lists a difference. Compared are the sorted rows, the
// types of the columns, and, where a query fails, the class of its error: refused before
// it runs, or failed by a value.
//
// Rows hold what goes wrong elsewhere: NULLs, extremes of every type, 2^53+1, -0, NaN,
// infinities, years 1 and 9999, empty strings, blanks, Unicode in two forms.
//
// Each case has a number below a seed and can be run alone:
//
//	make difftest N=20000 SEED=7
//	WEIR_DIFFTEST_CASE=1234 go test ./exec/difftest
//
// There is no code outside the tests, which start a PostgreSQL (postgrestest) of their own.
package difftest
