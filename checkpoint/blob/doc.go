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
//  3. Of several PutIfAbsent of one key exactly one returns nil, also across processes
//     (in S3: where the store has conditional puts).
//  4. A cancelled or failed put leaves nothing of its own that List shows.
//  5. An error after which the outcome is unknown may follow a write that was done:
//     callers read back (objects are immutable, so equal bytes mean done).
//  6. A body that ends early is an error that names the key, never a short object.
//  7. Errors name verb, key and place, and what to do. No error, log or URL holds a
//     secret.
//
// # Folder
//
// A folder writes into a hidden directory below its root, syncs the file, then
// renames it to its key (or links it, where it must be absent) and syncs all the
// directories above it, whoever made them. Files that a killed process left in the
// hidden directory are removed by the next OpenFolder once they are a day old. Empty
// directories go with their last object. In a folder no key may be another key's
// parent ("a" beside "a/b").
//
// # S3
//
// Each request has a deadline of its own and is tried eight times when it may go
// better the next time: no answer, 5xx, SlowDown. Pauses double, half of each is
// chance. An expired token is read anew once. A body that breaks, or brings nothing for
// ten seconds, is gone on with by a request for the rest, of the same version.
//
// An object of up to 8 MiB is one request; a larger one is an upload in parts of that
// size, each with its sum, which shows when it is completed. An upload that fails or is
// cancelled is aborted. What a killed process leaves is listed by Unfinished, with the
// uploads whose begin was answered to nobody. Memory: eight parts for all puts of a
// process, and up to 1 MiB for each other one.
//
// Every put writes a random id of its own into the object's metadata. Where a condition
// fails, or an upload is gone that was to be completed, the id of what is there tells
// whether an earlier try of this put was done though its answer was lost. Bytes would
// not: two writers may put the same.
//
// # Without conditional puts
//
// Probe puts the same key twice. A store that takes the second is refused, unless its URL
// says conditional_put=false: then PutIfAbsent looks first, and two writers at the same
// instant may both succeed. What this costs:
//
//   - Manifests keep being safe as long as the metastore is. A manifest's key has the
//     checkpoint's id in it; the metastore gives each id to one attempt, under its fence; so
//     there is one writer. Whether the checkpoint is complete is said by its row alone, and
//     nothing reads a manifest of which no row tells. Only where the metastore has gone back
//     in time can an id be given twice. A process of the forgotten history is then found out by
//     the survey before the first checkpoint, or by the look before the put; what goes
//     unnoticed is that both look before either puts. State objects cannot clash in any
//     case: their keys have the attempt's random tag.
//   - Subtasks of a source that agree on a list (exec: agreed-files) do not leave it to the
//     first writer: subtask 0 writes it, and the others wait until it is there (Conditional).
//     They do so wherever the URL says conditional_put=false, also where the store could do
//     without: all processes have to do the same.
//
// # Goroutines
//
// None of its own. Every method is safe for concurrent use.
//
// # Testing
//
// blobtest holds one conformance suite, run on every implementation; package s3test runs a
// real S3 server and a proxy that loses answers, cuts bodies and says SlowDown.
package blob
