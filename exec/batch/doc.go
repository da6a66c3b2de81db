// Package batch holds rows in memory as typed column vectors: their builders, their
// 128-bit decimals, the hash and the encoding of keys, and the wire codec. It is a
// leaf: it knows layouts (Physical), never SQL types.
//
//	         Columns[0]  Columns[1]   Sel   Kinds
//	row 0       7          "buy"       ·     +I      Len  = 4: rows in the columns
//	row 1       NULL       "cart"      1     -U      Rows = 2: rows that are selected
//	row 2       9          ""          ·     +I
//	row 3       7          "buy"       3     +U
//
// Invariants
//
//	B1  One goroutine owns a batch. Handing it on (a channel, a call that says so)
//	    hands over everything in it; the last owner calls Release once.
//	B2  All columns hold Len rows; Sel ascends strictly and stays below Len; Kinds,
//	    when set, has Len entries.
//	B3  The value of a NULL row is zero, so that kernels need not look at Valid
//	    before they compute. Bits of Valid at and after Len mean nothing.
//	B4  Two rows have equal keys in SQL's sense for GROUP BY (NULL equals NULL, NaN
//	    equals NaN, -0 equals 0, strings by bytes) if and only if EncodeKey gives the
//	    same bytes; and then HashRows gives the same hash.
//	B5  The hash, the key encoding and the wire form are frozen: key groups, state
//	    and channels between workers of different builds rest on them. Golden tests
//	    hold their bytes; a change is a new version.
//	B6  Decode never panics and never allocates more than a small multiple of the
//	    bytes it was given, whatever they are.
//
// # Goroutines
//
// None. A Pool may be used by several goroutines; a Batch and a Vector by one.
//
// # Failures
//
// Only Decode, DecodeKey and ParseDecimal return errors; arithmetic on Int128
// reports overflow as a second result, and never wraps silently.
//
// # Testing
//
// Properties (rapid) compare builders, gathering and the codec with plain Go slices,
// and Int128 with math/big; golden files pin the formats; Decode is fuzzed.
package batch
