// Package sql turns the text of a script into a syntax tree and back. It knows the
// grammar and nothing of tables, columns or types; no other package sees a token.
//
//	text ──lex──▶ tokens ──parse──▶ Script{CreateTable, Set, Insert, Select} ──Format──▶ text
//
// The lexer is written by hand, statements are parsed by recursive descent and
// expressions by binding power (Pratt). The grammar that is accepted is small; the
// grammar that is recognised is larger, so that a clause, an operator or a statement
// that Weir does not run is refused by its name and at its place.
//
// Invariants
//
//  1. Every node knows the half-open range of bytes [Pos, End) of the text it came from.
//  2. Parse never panics, whatever the text; the depth of a tree is bounded (maxOperators).
//  3. Format(Parse(x)) is a fixed point: parsing what Format printed and printing it
//     again gives the same text.
//  4. Words are reserved only where the grammar needs it; a quoted word is never a keyword.
//
// Failures: a statement with an error is left out of the script, its first error is
// reported, and parsing goes on behind the next semicolon, so that one call reports
// one error per wrong statement. An Error says whether the text is wrong (CodeSyntax)
// or asks for something that Weir does not do (CodeUnsupported).
//
// There are no goroutines and no state outside a call.
//
// Testing: scripts under testdata/ for trees and refusals, fuzzing for invariants 2 and 3.
package sql
