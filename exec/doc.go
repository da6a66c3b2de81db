// Package exec runs the tasks of one worker: it reads frames and polls sources, calls
// operators, partitions their output, takes snapshots. It declares what operators,
// sources and sinks are (operator.go) and what it needs of channels and of its worker
// (element.go); op, source and sink hold the former, transport and worker the latter.
//
//	         ┌──────────────────────────── Task ────────────────────────────┐
//	channels │ gate ─▶ node ─▶ node ─▶ … ─▶ outputs ─┬─▶ target 0  (local)  │ channels
//	════════▶│ source ┘  Process, Emit: plain calls   └─▶ target 1  (bytes) │════════▶
//	         │   ▲                                                          │
//	         │ mailbox: trigger, commit, read, close   uploader ─▶ storage, ack
//	         └──────────────────────────────────────────────────────────────┘
//
// # The loop
//
// A task is one goroutine in one loop. A source task looks into its mailbox, asks the
// source for a batch and pushes it through the chain; a task with inputs takes one frame
// of the next readable channel instead. When there is nothing to do it lets go what
// the chain holds back, as far as its readers have nothing to do either, and waits on one
// channel, which inputs and mailbox share. Rows wait no longer than the graph's latency
// target (flush.go).
//
// # A barrier
//
// A source gets a trigger, other tasks the last barrier that their aligner waits for.
// Then, on the loop: flush the chain and the outputs, take list state, forward the
// barrier, cut the keyed state. The uploader writes the cuts and acknowledges.
//
// Under exactly-once one checkpoint aligns at a time; its uploads may overlap with those
// of others. Under at-least-once nothing is held: each checkpoint aligns by itself, a
// task may process rows behind a barrier before the snapshot, and one that has seen the
// end of its inputs may be restored behind rows that come again: their final rows are out.
//
//	trigger, last barrier ─▶ cut ─▶ waiting (24 at most) ─▶ in hand (2) ─▶ ack
//	                          │                 │                 │
//	                          │ list state      │ checkpoint ended (Wanted): dropped
//	                          ▼ cannot be taken ▼                 ▼ Put fails
//	                       decline           nothing           decline
//
// Two uploads are in hand at a time, so that a slow one, of a savepoint say, holds up no
// other. A trigger names the checkpoints that are pending, to all tasks of the attempt:
// what has ended is not uploaded any more, and one in hand goes no further than its object
// (10 s at most). Its barriers go on all the same, but nothing is cut. Whatever was stored
// for a snapshot that is not acknowledged is deleted at once, as an abort would, which may
// have passed by. Each open cut may keep one copy of the chunks written to since (package
// state), so memory is bounded by the open uploads.
//
// Times in an ack: start delay (trigger to first barrier; a source: until its loop takes
// the trigger up), alignment, cut (all of the above that is on the loop, waits for full
// channels included), upload (from the end of the cut). Bytes are those of handles and of
// list state. Progress answers for a pending checkpoint without the loop, which may be
// held up: stage, missing barriers, shares of the last 5 to 10 s, what is in the way.
//
// # What a task tells of itself
//
// Stats has totals since Run: rows, bytes, time waited for input and for room; the rest of its
// time it was at work. The meter (meter.go) divides that among the chain's operators. It reads
// the clock where a batch passes from one to the next, for one round of the loop in eight while
// rounds are short: under 1 % of the time. Servers make rates and shares of the last
// seconds of two such totals, by the task's own clock.
//
// # State that does not fit
//
// Between two batches the loop has each store spill what is beyond its share of the worker's
// memory (relax.go). Where all that could go has changed since the last barrier, the state is
// cut beside all checkpoints: the run belongs to the next snapshot, whichever that is. Until
// it is written the task takes in no rows, and answers triggers, commits and reads; Progress
// says so. An operator that gets more than that within one call of the one before it, the final
// rows of an aggregate, waits there. A disk that fails ends the task with the reason `spill`.
//
// # Ending
//
// A source that is done, or a task all of whose inputs sent `end`, calls End on its
// operators once, sends `end` and stays, acknowledging barriers and committing, until
// its inputs send `close` or it is told to close. Its snapshots say Ended; restored
// from one, it sends `end` at once and calls End on nothing.
//
// # Invariants
//
//	E1 Operators, source and outputs of a task are touched by its loop only.
//	E2 A held channel is not read (I3), and no frame is kept aside.
//	E3 Between the flush of a snapshot and its cut nothing is processed: rows before
//	   the barrier are in the snapshot or behind it in a channel, rows after it in neither (I2, I11).
//	E4 A batch has one owner. Emit and Send pass it on; the last owner releases it.
//	E5 A row's target depends on its key alone: the owner of its key group. So an
//	   operator behind the exchange sees, and keeps, keys of its own key groups only;
//	   a result's keys are therefore the grouping's, in its order. A forward edge moves
//	   no row to another subtask: behind it lies nothing that keeps state by other keys.
//	E6 An ack leaves only after its objects are durable, and what its sinks have written (I7).
//	   The loop waits for neither: the uploader stores the ones and flushes the others (Sealer).
//	E7 Failed is reported once, and not for a task whose context ended.
//	E8 A row that no frame could carry is refused on local channels too: an answer
//	   never depends on where tasks run.
//	E9 A rejected row is a row: it travels before the barrier that its source's position
//	   is behind, and is counted once, whatever fails and wherever tasks run.
//
// # Goroutines
//
// Run owns three: the loop and two of the uploader. Build, and all methods of a Task,
// start none.
//
// # Failures
//
// An error or panic in the loop ends the task with a TaskError; its reason is `channel`
// where a channel broke (weir.ErrBroken). A fault of the input
// (RowError, ValueError) is not worth a restart; all else is. Where on_row_error is skip
// or keep, a RowError ends nothing: its row goes over the chain's Rejects edge to the
// rejects operator (reject.go). A ValueError is no single row's fault and still fails the
// job, and so does what is wrong with a whole file, such as its header. A snapshot that cannot
// be stored is declined with operator, subtask, worker and cause, and the task goes on; so
// is one whose source cannot tell its position. Where an operator fails to give its list
// state, or a snapshot panics, the task declines, so that the checkpoint says why, and
// ends: what the operator keeps is not to be trusted. A commit that fails ends the task: the
// segments are in the snapshot and are committed after the restart. Commits run on the
// loop, because a sink is one goroutine's; rows behind one wait for it.
//
// # Testing
//
// exectest attacks single operators (every cut, full outputs, other parallelisms) and
// runs whole queries three ways; testdata/queries holds them. Gate, output and task
// have tests of their own over channels in memory, and barriers, uploads and progress are
// tested in a bubble of synctest.
package exec
