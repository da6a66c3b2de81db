// Package checkpoint is the checkpoint protocol: how the tasks of a job, running on
// many machines, agree on consistent snapshots, and how a job starts from one.
//
//	            Runner (run.go): one goroutine, three lanes of I/O
//	requests ─▶ ┌──────────────────────────────┐ ─▶ Store    rows, the decision
//	acks, ends ▶│ Coordinator.Step(now, event) │ ─▶ blob     manifests, deletions
//	confirms ─▶ └──────────────────────────────┘ ─▶ Tasks    triggers, notifies
//
//	source ──barrier──▶ Aligner ──snapshot──▶ ack        (in every task; package exec)
//
// The life of a checkpoint, and the event that ends each phase:
//
//	beginning ──row inserted──▶ collecting ──last ack──▶ writing ──manifest there──▶ deciding
//	                               │ timeout, decline, cancel   │ three failures        │ row says completed:
//	                               ▼                            ▼                       ▼ the decision moment
//	                            aborting ◀──────────────────────┴── row says pending    completed
//	                               │ row says so                    three times         │
//	                               ▼                                                    ▼
//	                            objects deleted                   sinks commit ▶ commits closed ▶ collection
//
// A decision or an abort whose outcome is unknown is read back from its row, never
// guessed; an abort that finds the row completed is none.
//
// # Invariants
//
// They have the names of ARCHITECTURE, section 6, and are cited in code as I5.
//
//   - I1 ids grow over all attempts of a job, savepoints included. The store gives them out;
//     an id that is not above the last one ends the attempt as metastore_behind.
//   - I2, I11 are kept by package exec.
//   - I3 a held channel is not read. I4 old barriers are ignored. I5 a newer barrier
//     abandons an older alignment. I6 a closed channel counts as aligned (Aligner).
//   - I7 an ack counts once per (attempt, task, checkpoint): acks are a set with the answers
//     accepted, duplicate, unknown, stale and, for a checkpoint given up, late.
//   - I8 complete means that the row says so; the manifest was written before.
//   - I9 nothing that a kept manifest names is deleted (gc.go).
//   - I10 sinks are notified after the decision, and of the next checkpoint only after every
//     earlier one's commits are closed.
//   - I12 every task acknowledges, those that have ended too.
//
// # What begins when
//
// One at a time. What users ask for goes first, in order, and does not wait for the
// minimum pause; then the last checkpoint of a job whose sources have all reported the
// end, also with interval 0; then periodic ones. A checkpoint asked for while another
// is under way is not that one, since its barriers may have passed what its user wants
// in it: all that wait share the next one. A savepoint waits for its turn in the same
// way and is never shared. The pause counts from the end of the last completed
// checkpoint, savepoints aside. Periodic checkpoints also wait while eight decided ones
// have commits open.
//
// tolerable_failures counts consecutive failed checkpoints. What was canceled or ended
// with its attempt does not count, nor does a savepoint: a stop with savepoint that
// fails leaves the job running. The last checkpoint, failed and tolerated, is taken
// again after a second.
//
// A trigger is repeated every second until it was delivered or a newer one was, even
// after its checkpoint was given up: where only some sources have sent the barrier,
// channels are held for it.
//
// # Restore
//
// Restore deals a manifest out to the tasks of a graph at any parallelism; what it
// cannot deal out it refuses by name. An attempt that starts from a base with open
// commits has its restored sinks commit everything up to the base, and closes them.
//
// # Clean-up
//
// One path: a Collector, driven by the metastore's rows. What is given up is marked
// first, under the job's row lock (failed, aborted, discarded; a deleted job); its objects
// go after, its manifest last; then its row says that they are gone. Each step may be
// interrupted and repeated, and an object that is gone already is deleted. What a kept
// manifest names stays, whoever wrote it; a kept snapshot whose manifest cannot be read
// holds what may be its own, and no more. A late ack releases its own objects at once;
// what comes later still is found when the attempt is over and its folder is looked
// through. Before the first deletion the job's keys are listed: where storage knows more
// than the metastore, nothing goes. A clean-up that fails is tried again; it never holds
// up a checkpoint.
//
// # Goroutines
//
// Runner.Run has one that owns the machine and one per lane: metastore and manifests,
// tasks, deletions. They end with Run. A Collector's round deletes several objects at a
// time and waits for them.
//
// # Failures
//
// Run returns nil when its context ends, weir.ErrStale when a newer owner exists, and
// an *AttemptFailure when more checkpoints failed than are tolerated or storage knows
// more than the metastore. The pending checkpoint is given up in the first and last case,
// but nothing is touched where the metastore is behind.
//
// # Testing
//
// Scripts in testdata drive the aligner, the coordinator, restore, collection and the
// formats; rapid compares the aligner with a naive one and checks restore and
// collection; run_test.go runs the Runner in a synctest bubble with the store of
// checkpointtest and a faulty object store; package sim runs everything under faults.
// model/ holds a model of barrier, decision and commit in Promela: make model checks it
// exhaustively, and that spin finds what is planted in it.
package checkpoint
