// Package checkpoint is the checkpoint protocol: how the tasks of a job, running on
// many machines, agree on consistent snapshots, and how a job starts from one.
//
//	            Runner (run.go): one goroutine, four lanes of I/O
//	requests ─▶ ┌──────────────────────────────┐ ─▶ Store    rows, the decision
//	acks, ends ▶│ Coordinator.Step(now, event) │ ─▶ blob     manifests, what storage holds
//	confirms ─▶ └──────────────────────────────┘ ─▶ Tasks    triggers, notifies, how far they are
//
//	source ──barrier──▶ Aligner ──snapshot──▶ ack        (in every task; package exec)
//
// The life of a checkpoint:
//
//	phase        what happens                      ends with                        goes on as
//	beginning    its row is inserted; one at a     the row is there                 collecting
//	             time, and no decision in doubt    it is not, or nobody knows       nothing; what may be there is aborted
//	collecting   triggered, in order; acks come    the last ack                     writing
//	                                               the deadline                     asking, or aborting: not triggered
//	                                               a task declines, its user        aborting
//	                                               cancels, a newer one completed
//	asking       the tasks say how far they are    the last ack after all           writing
//	                                               their answers, or 3 s            aborting
//	writing      the manifest, if absent           it is there, equal               ready
//	                                               three failures                   aborting
//	ready        waits for a decision in doubt     none is                          deciding
//	deciding     the row, and the base with it;    the row says completed           completed
//	             one at a time; unknown outcomes   the row says pending, 3 times    aborting
//	             are read back, never guessed      another hand gave it up          given up
//	aborting     the row                           it says so                       given up
//	                                               it says completed                completed
//	completed    older checkpoints are superseded; sinks commit, commits are closed, in barrier order
//	given up     its objects are the Collector's; late acks release theirs; failures are counted
//
// Several lives go on at a time:
//
//	id   type         base
//	 7   checkpoint   5     collecting          superseded when 9 completes
//	 8   savepoint    5     collecting          goes on, and completes without moving the base
//	 9   checkpoint   5     deciding ─▶ completed: base = 9
//	10   checkpoint   9     begins then: not while 9 is in doubt
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
// And of concurrency:
//
//   - one row is being inserted at a time, and none while a decision is in doubt: so the base
//     that a trigger names is the one that the row was begun under;
//   - a row that may be there, since the answer to its begin was lost, is aborted after a second,
//     and nothing begins before the answer to that. An id that this finds to be given out
//     counts as the last one; one that stays in doubt is not used;
//   - one decision is in doubt at a time: sent and not answered, or answered with a failure
//     and not yet aborted. So decisions of checkpoints are made in ascending order, and the
//     base moves forward only, whatever becomes of the writes;
//   - a newer checkpoint does not wait for an older one that is not ready;
//   - triggers are sent in ascending order, one at a time: a source never begins a newer
//     checkpoint before an older one that still waits for acks. A channel that is held for a
//     barrier is held until every source has sent it or a newer one: an undelivered trigger
//     is repeated each second, also after its checkpoint was given up, until it or a newer one is
//     delivered;
//   - the end (Finish) waits for all that is pending, for rows of begins in doubt and for
//     commits; every wait is bounded by a timeout or by the metastore's return.
//
// # What begins when
//
// Nothing before storage has been listed (it is asked each second) and knows no more than
// the metastore; a suspicion is confirmed by reading a row under the fence, since it may be
// us who are old. Then, what users ask for goes first, in order, and does not wait for the
// minimum pause; then the last checkpoint of a job whose sources have all reported the
// end, also with interval 0; then periodic ones.
//
// Checkpoints: up to max_concurrent, none beside the last one of a bounded job, nor beside
// the savepoint that stops the job. Savepoints: one at a time, beside all others. A
// checkpoint asked for while no more may begin is none of those under way, since their
// barriers may have passed what its user wants in it: it is queued, and all that wait share the
// next one (joined). A minimum pause counts from the end of the last completed checkpoint,
// savepoints aside, and periodic checkpoints then do not overlap any other. They also wait
// while eight decided ones have commits open, and while a trigger cannot be delivered.
//
// tolerable_failures counts consecutive failed checkpoints: those newer than the last one
// that completed, be it a savepoint; the attempt's failure names the
// first of them. What was canceled, superseded or ended with its attempt does not count, nor
// does a savepoint: a stop with savepoint that fails leaves the job running. The last
// checkpoint, failed and tolerated, is taken again after a second. ReasonDocs is the closed
// list of reasons.
//
// The mode changes nothing here: under at_least_once the Aligner holds no channel, so that a
// snapshot may contain records behind the barrier, and after a failure some are counted
// again. Sinks commit after the decision all the same.
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
// A Check compares the same two sides without deleting (check.go). What a metastore that
// has gone back in time does not know can be adopted: Candidates, Found.Adopt.
//
// # Goroutines
//
// Runner.Run has one that owns the machine and one per lane: metastore, manifests, tasks,
// storage; and for questions to tasks as many as checkpoints may expire at a time. They
// end with Run. A Collector's round deletes
// several objects at a time and waits for them.
//
// # Failures
//
// Run returns nil when its context ends, weir.ErrStale when a newer owner exists, and
// an *AttemptFailure when more checkpoints failed than are tolerated or storage knows
// more than the metastore. All that is pending is given up in the first and last case,
// but nothing is touched where the metastore is behind.
//
// # Testing
//
// Scripts in testdata drive the aligner (alone, and with rows in its channels), the
// coordinator (reasons has every failure), restore, collection and the
// formats; rapid compares the aligner with a naive one and checks restore and
// collection; run_test.go runs the Runner in a synctest bubble with the store of
// checkpointtest and a faulty object store; package sim runs everything under faults.
// model/ holds a model of barrier, decision and commit in Promela: make model checks it
// exhaustively, and that spin finds what is planted in it.
package checkpoint
