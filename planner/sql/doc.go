// Package sql turns the text of a script into a syntax tree and back. It knows the
// grammar and nothing of tables, columns or types; no other package sees a token.
//
//	text ──lex──▶ tokens ──parse──▶ Script{CreateTable, Insert, Query, …} ──Format──▶ text
//
// The lexer is written by hand, statements are parsed by recursive descent and
// expressions by binding power (Pratt), the powers being PostgreSQL's. The grammar that
// is recognised is larger than the one that is accepted, so that a clause, an operator
// or a statement that Weir does not run is refused by its name, at its place, and with
// the way around.
//
// The tree has one form for what has several spellings: parentheses that change nothing
// leave no node, x::t is a Cast, UNION ALL is flat, types have Weir's names.
//
// Invariants
//
//  1. Every node knows the half-open range of bytes [Pos, End) of the text it came from;
//     an operand that is not written, as the blank of TRIM(BOTH FROM x), has an empty one.
//  2. Parse never panics, whatever the text; the depth of a tree is bounded (maxOperators
//     for an expression, maxNested for queries within queries and for grouping sets).
//  3. What Format prints of a tree is parsed as that tree; so Format(Parse(x)) is a fixed
//     point.
//  4. Words are reserved only where the grammar needs it; a quoted word is never a keyword.
//
// Failures: a statement with an error is left out of the script. Its first error is
// reported, and so are later ones that do not follow from it: parsing goes on at a comma
// of a list, at the keyword of a clause, behind a closing parenthesis, at the next INSERT
// of a statement set, if that lies in the same parentheses as what failed (recover.go);
// and always behind the next semicolon. An Error says whether the text is wrong
// (CodeSyntax: what was expected, what was found) or asks for something that Weir does
// not do (CodeUnsupported).
//
// There are no goroutines and no state outside a call.
//
// Testing: scripts under testdata/ for trees, texts, refusals and recovery; random trees
// and fuzzing for invariants 2 and 3; BenchmarkParse reads a script of fifty lines.
package sql
