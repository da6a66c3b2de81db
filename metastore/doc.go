// Package metastore keeps what is true about jobs: rows in PostgreSQL, or in SQLite
// where one process is all there is. It satisfies checkpoint.Store and the
// interfaces that server/job declares, and it is the only package that knows SQL
// databases.
//
//	jobs 1──n attempts
//	 │ 1──n checkpoints ─ ─ savepoints   (a savepoint outlives its job)
//	 │ 1──n events
//	 └ 1──n pins                         tables   leases
//
// One SQL text serves both databases: $1 placeholders, CAST, row values, RETURNING
// and ON CONFLICT. What differs is in the migrations (the type of a time, and the
// view weir_clock, which is the database's clock) and in the few lines of
// postgres.go and sqlite.go that open a connection.
//
// Invariants
//
//  1. Every deciding transaction begins with an UPDATE of the job's row WHERE id,
//     attempt and term are those of the fence. That UPDATE is the fence and the lock:
//     no row changed is weir.ErrStale, and two deciders of one job follow each other.
//  2. Locks are taken in one order: jobs' rows (several: by id), then everything else.
//  3. A transaction that has begun is not cut short by its caller; Options.Timeout
//     bounds it. So an unknown outcome of COMMIT comes from a lost connection only.
//  4. An unknown outcome is read back under the row's lock: every deciding UPDATE puts
//     a random token in front of jobs.writes, which keeps the last ones, and reading
//     back is an UPDATE that waits for the transaction in doubt and returns them.
//  5. A checkpoint or savepoint that is the base of a job or pinned, that has open
//     commits, or that belongs to the user, is never marked discarded (I9). A base
//     is given up with its job: deleted, CANCELED under delete_on_cancellation, FAILED
//     under none.
//  6. Checkpoint ids and event numbers are counters in the job's row (I1).
//  7. A row of the history is forgotten only when --history says so, its checkpoint can
//     not be restored, nothing of it has to be committed, and its objects are collected.
//  8. All times that Weir compares are the database's. Times that a caller records
//     (a checkpoint's trigger) are its own.
//
// Goroutines: none of its own; database/sql keeps its pools.
//
// Failures: Open says in one line what cannot be reached, within ConnectTimeout. An
// operation on a database that went away fails within Timeout with the driver's
// error, which is none of the root sentinels; the next one connects afresh. A process
// that sleeps between two statements of a transaction loses it after half of Timeout,
// so that whoever takes its jobs over gets their rows.
//
// Testing: metastoretest is one suite for both databases; unknown_test.go cuts
// connections at COMMIT, or freezes them; model_test.go compares random operations with a
// model.
package metastore
