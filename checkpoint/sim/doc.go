// Package sim simulates jobs and their checkpoints, one step at a time, from a seed: the
// real coordinator, aligner, restore and collection, and ordinary code around them, in
// virtual time.
//
//	users ─wish─▶ metastore ◀─decisions─ server (coordinator, collector)
//	                                       │ ▲
//	                               triggers│ │acks            object store
//	                                       ▼ │                     ▲
//	splits ─▶ source 0…p ══hash══▶ counter 0…p ▸ sink ─▶ output    │ snapshots, manifests
//	          └──────────────── workers ───────────┴───────────────┘
//
// A world has one to three workers, servers that take over from each other by a lease,
// and one to three jobs, each of which counts the same rows. Its sources count by key
// before they send, as local aggregation does.
//
// The counts are the real keyed state: a counter has a state.Store, whose entries come and go
// (a key that was seen 3*t+s times is t in one table, and an entry of another one where s is not
// 0). At a barrier it is cut; the cut is made a run a while later, when the counter has gone
// on. A state.Chain decides what is stored, two snapshots at a time, and what is merged
// beside that, soon and often: small runs are large here, or objects, or lie in the manifest,
// as the seed has it. In one world of eight nothing stays in memory that may be spilled: there
// is a Pebble database in a memory file system. Its goroutines are its own, but what it answers
// depends on what was asked of it alone, and the loop waits for each answer: so the tape
// stays what decides. There the counters also cut between two barriers. A restore reads from
// goroutines of its own, too: a server fetches the objects first, which is where it fails.
//
// # What goes wrong
//
// A call to the metastore, the object store, a worker or the target of a sink fails before
// or after its work, takes longer than a checkpoint may, or is the last thing that its
// process does. Messages are late, lost or repeated. Incidents happen by themselves:
// servers and workers are killed or fall asleep, and wake up as zombies; the metastore or
// the object store is away for a while, or one kind of call is; the metastore goes back to
// a backup. Users take checkpoints and savepoints, cancel and delete them, stop and cancel
// jobs, start them at another parallelism or from an older snapshot, and fork one from
// another's snapshot.
// After 25 s of virtual time nothing more goes wrong, and every job must finish.
//
// # What is checked
//
//   - I1 every id is new, as long as the metastore remembers. I3: the aligner panics where a
//     held channel is read.
//   - I2, I5, I11, I12: whatever is decided is consistent: the counts in it are those of
//     the rows before its positions, also where some tasks have finished.
//   - I7, I8: it has a manifest of the attempt that decided, with each task and every object;
//     nothing is overwritten; decisions ascend.
//   - S5: a snapshot names objects that were stored for it, or that belong to a completed
//     checkpoint of its job, a savepoint its own ones only; and what it names of a subtask is
//     that subtask's counts, no more and no less, whatever was merged, trimmed or spilled.
//   - I9: after each deletion all that is kept is whole, and what a pending checkpoint has to
//     merge is there. At the end, after collection,
//     storage holds what is kept and nothing else, but for a metastore that went back: what
//     it has forgotten is nobody's to delete.
//   - I10: a segment becomes visible after its decision only, with the rows that were
//     decided, and each decision makes due exactly the rows since the one before; commits
//     are closed only when all is visible, and in order.
//   - Where the metastore is behind storage, nothing is decided or deleted.
//   - At the end the output of each job is that of a reference: (key, 1) … (key, N), once
//     each; under at-least-once, at least once.
//
// # Scripts
//
// A run is decided by its seed, for workload and timing, and by its tape: which calls
// failed and what happened when. A failing seed prints its trace and the smallest tape
// that still fails, which is kept in testdata/regress and run by every test from then on,
// together with the fault that it found: make planted plants it again, and the script has
// to fail. Where the code has moved what a script means, TestHunt, in a program with the fault
// (-hunt -script FILE), looks for another seed under which it does.
//
// Two invariants are for the scripts of the aligner: an old barrier that is heeded (I4) only
// makes checkpoints expire here, and channels close after the last checkpoint (I6).
//
// A run counts what really happened in it (Tally), and 2,000 seeds have to reach every
// kind of fault, incident and ending.
//
// # Goroutines
//
// Code that waits runs as a coroutine (iter.Pull) that hands control back to the one loop
// over the heap of events; nothing runs at the same time.
package sim
