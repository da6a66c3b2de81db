// Package worker is a worker process: it takes deployments from a server, runs their
// tasks, and reports what becomes of them. It holds no truth: everything it knows can
// be lost, and a server that says otherwise is right.
//
//	          Deploy, Trigger, Commit, Close, Stop       ┌── attempt ──────────────┐
//	server ─────────────────────────────────▶ command.go │ build ▸ task, task, …   │
//	       ──Progress (answered at once)────▶            │                         │
//	       ◀───── Report (until a server took it) ─────────── reports in order     │
//	       ◀───── Heartbeat (1 s, and at once on change)   └─────────────────────────┘
//	worker ◀───── Read (parts of a result) ───── read.go ──▶ tasks, snapshots
//
// # Invariants
//
//	W1 Of each job one attempt runs: a Deploy ends every older one, and an older one
//	   than the newest known is refused with weir.ErrStale.
//	W2 A command may come twice: the second time it changes nothing.
//	W3 What a task reports leaves in the order in which it was said, and is repeated
//	   until a server has taken it in. An answer of weir.ErrStale ends the attempt.
//	W4 A task's failure ends all tasks of its attempt on this worker.
//	W5 Whoever hears no server runs on; reports wait. Cut off from NATS for 5 s, its
//	   sources pause; for 60 s, its attempts end. One whose sources paused, for that or
//	   since the process slept, asks the servers which attempts are over, and ends those,
//	   before they go on.
//	W6 The channels of an attempt that was closed stay until the server stops it: a
//	   peer may still wait for the last frames.
//	W7 A snapshot that is read stays open for 10 s after its last page, four at most and
//	   256 MiB together (or a single larger one), so that paging loads it once; so many are
//	   loaded at a time, too. Its state has a share of the memory like that of a task, and
//	   spills; one reads it at a time.
//	W8 A Trigger tells all tasks of the attempt which checkpoints are pending, those that
//	   are no sources and a worker without any too. Progress waits for no task.
//	W9 Of the state that its tasks store, a worker keeps copies in a folder (Config.Keep):
//	   of each job those that its tasks' snapshots consist of, and those of the pending
//	   checkpoints that the last Trigger named, and of newer ones; together KeepBytes at most,
//	   of which the oldest give way. Files tell what they are, so the next life of the worker
//	   finds them; of what an earlier attempt stored stays what tasks of the present one name.
//	   The tasks of a later attempt restore from them. Storage counts: every chunk of a copy
//	   is checked before a task gets it, and from the first that is not as it was written
//	   on, or where there is no copy, the object comes from storage. Memory holds 8 bytes per
//	   64 KiB of them, and 64 KiB for each object that is being stored or restored.
//	W10 State may take what nothing else of the worker needs (memory.go): once a second what is live
//	   beside it is measured; more of that counts at once, less of it slowly. Where state has more
//	   than it may, all tasks are told to give some back, those too that wait for rows. The heap is
//	   collected after it has grown by what a collection looks through, and a part of the
//	   rest.
//	W11 Heartbeats say of which subtasks there are copies, of jobs that do not run here: so a
//	   server that knows nothing of an earlier attempt places them where their state is.
//
// # Goroutines
//
// Run owns the heartbeat (which also closes idle snapshots), the watch over its own
// connection and sleep (watch.go is pure), the sharing of memory, the commands (each in a
// goroutine of the control's) and one goroutine per attempt, which owns one per task and
// one that sends reports. One removes copies of state that were given up: nobody else
// waits for that. Reads of several parts run side by side for as long as their
// command.
//
// # Failures
//
// A deployment that cannot be built is reported as its first task's failure. A missing
// object or wrong options will not mend by themselves, so that no restart is asked
// for; anything else may. When Run's context ends, the worker says that it leaves, and
// its attempts end without a report.
//
// A copy of state that cannot be written, or read, costs a line in the log. It is written
// beside the upload and no faster than its disk: one that hangs holds that snapshot up.
// The folder belongs to one process, by a lock that the system drops with it; another one that is
// on it by mistake, or comes while the former life still hangs, keeps nothing until it is free and
// says so once. A life that begins reads the footers of the files, not what they hold, of ten thousand
// at most; halves, and what does not fit into KeepBytes, are removed. A job of which no
// attempt ran here for ten minutes has none left. Where an attempt ends since the disk is full, all
// copies give way to what tasks spill, for ten minutes.
//
// # Testing
//
// testdata/watch are scripts over the watch, testdata/sharing over the sharing of memory. Copies of state are tested against a model with
// files that are damaged and disks that are full. worker_test.go drives a worker by commands over a control in memory, with operators
// that fail on demand; the integration test of server/job runs several with a server.
package worker
