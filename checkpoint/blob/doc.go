// Package blob is an object store in five verbs: put (or put if absent), get (a
// range), stat, list, delete. It hides where objects lie.
//
//	checkpoint, exec/state ──▶ Store ◀── Folder   one machine: files below a root
//	                                 ◀── S3       many machines: a bucket of any store with that protocol
//	                                 ◀── Memory   tests, one process
//	                                 ◀── Faulty   tests: another store that fails chosen calls
//
// Invariants
//
//  1. An object is seen whole or not at all, by every reader, also after kill -9 or
//     a power cut in the middle of a write.
//  2. A put that returned nil is durable.
//  3. Of several PutIfAbsent of one key exactly one returns nil, also across processes.
//  4. A cancelled or failed put leaves nothing of its own that List shows.
//  5. An error after which the outcome is unknown may follow a write that was done:
//     callers read back (objects are immutable, so equal bytes mean done).
//
// A folder writes into a hidden directory below its root, syncs the file, then
// renames it to its key (or links it, where it must be absent) and syncs the
// directories. Files that a killed process left in the hidden directory are removed
// by the next OpenFolder once they are a day old. Empty directories go with their
// last object. In a folder no key may be another key's parent ("a" beside "a/b").
//
// Goroutines: none. Every method is safe for concurrent use.
//
// Testing: blobtest holds one conformance suite, run on every implementation.
package blob
