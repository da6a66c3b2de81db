// Package job decides what runs where. Each job has one machine (machine.go), pure,
// and one driver that performs what it decides; a Service holds the lease under which
// its drivers decide, and answers for jobs on any server.
//
//	Service ── lease ──▶ look: unsettled jobs ──▶ driver ── BeginAttempt, SetStatus ──▶ metastore
//	   ▲                                        │  ▲  │
//	   │ wish (SetDesired)                events │  │  ├── Deploy, Stop, Close, CommitOnly ──▶ workers
//	 REST                                       ▼  │  │
//	                                           machine └── checkpoint.Runner (one per attempt)
//
//	workers ── Heartbeat ──▶ registry ── deaths ──▶ drivers ◀── reports (running, failed, ack, …)
//
// # The life of a job
//
//	CREATED ─▶ SCHEDULING ─▶ RUNNING ─▶ FINISHED         all input worked off and committed
//	               ▲            │ failure, worker lost
//	               └ RESTARTING ┘─▶ FAILED               no restart helps, or is allowed
//	RUNNING ─▶ STOPPING ─▶ STOPPED                       savepoint, then the end
//	any ─▶ CANCELED
//
// SCHEDULING: an attempt has begun; its base is read, slots are reserved, tasks are
// deployed. Where slots are missing the job waits there and its history names how many.
// RUNNING: every task has said that it runs; the coordinator of checkpoints is started.
//
// What a user wants is a wish in the job's row (desired, the name of a stop's
// savepoint), which any server records. The holder sees it at once if it recorded it
// itself, else within Options.Poll. A stop without a name is a halt: the attempt ends
// as STOPPED without a savepoint. A restore is a halt with a start that follows it, one
// wish (weir.Wish.Then), which the transaction that ends the job carries out: it happens
// even if the caller, or the server that was asked, is gone.
//
// # Invariants
//
//	J1 Every status and attempt is written under (job, attempt, term); who meets
//	   weir.ErrStale stops quietly. The lease only spares work: the fence decides.
//	J2 An attempt starts from the base that BeginAttempt returned, and from nothing else.
//	J3 A status that ends a job is written after no task of it runs, as far as living
//	   workers tell, and after no commit is open (or its output was given up).
//	J4 A job ends as FAILED at once where a restart cannot help: a fault of the input, a
//	   snapshot that is gone. It never starts from nothing because its base is missing.
//	J5 A stop whose savepoint fails is taken back: the job runs on. One that is under way
//	   when its server, or a worker, dies is done again. Where slots have been missing
//	   for 3 s nothing runs that could be saved: the job ends as STOPPED at its base.
//	J6 Placement follows from the workers' ids and free slots alone; of the slots that it
//	   gives, a subtask has one of the worker it was on before. The holder counts
//	   slots; what workers say of them is for display.
//	J7 A word of another attempt than the current one changes nothing.
//
// # Open commits
//
// A decided checkpoint's output may not be visible yet when its attempt ends. A restart
// leaves it to the next attempt, whose sinks find it in their state. An end waits for
// it: one worker opens each sink with the segments in that checkpoint's manifest, has it
// commit, and closes it (CommitOnly); the segments' identities make that harmless if the
// sinks had done it. While it cannot be done the job is STOPPING, its history says why,
// and it is tried every two seconds. Cancel with abandon_output closes the commits as
// they are, for good: an attempt that starts from that checkpoint, or from another snapshot
// with the same segments, does not hand them to its sinks, which drop the sealed files, and
// the history says so. An adopted checkpoint has its commits open again.
//
// # Many jobs
//
// Options.MaxJobs bounds the jobs that have not ended, waiting for slots or not: more are
// refused with ErrFull. The first periodic checkpoint of an attempt is due at a moment that
// goes by the job (first), so that two hundred jobs which one server takes over at once do
// not begin all their checkpoints at once ever after. What is kept in memory goes with the
// job, or is bounded by a number.
//
// # Clean-up, history, storage
//
// The holder's collector (collect.go) works through what rows say was given up: of
// checkpoints, attempts that are over, jobs that were deleted. Whoever gives something
// up wakes it; it looks at all jobs every ten seconds anyway. The history is thinned
// every hour (thin.go). Any server compares storage with the metastore (storage.go); a
// job that ended as metastore_behind goes on from a manifest in storage (adopt.go).
//
// # A new holder
//
// A server that dies keeps the lease until it expires (3 s). One that cannot renew it, the
// metastore being away, decides nothing from its end on, but keeps its drivers: nobody can
// have taken the lease from a metastore that is away. Once it is back the lease's term
// says what happened: the same one, nobody held it between, and the drivers go on; another
// one, and they end. What they write meanwhile is fenced (J1), what they tell workers is of
// an attempt that is over the moment that another server takes the job, and what their
// collector deletes is what rows gave up, which is for good. A job that has no driver here
// is not over for that: its row says so, before a worker hears it. The next holder takes every
// unsettled job over by its row: a job that had an attempt gets a new one, from its
// base, and the attempt it had is ended on the workers (by the new Deploy, and by Stop
// for those that report an attempt that is over). Tasks run on until then. Counters of
// a restart strategy begin anew. Jobs that a server took over wait until every worker could
// be heard, so that they are spread over all of them and are where their state is: for its
// first 1.2 s, and as long after a worker without tasks has joined, since others may start
// with it; 5 s at most, if they come one after another.
// With several servers the others forward triggers to the holder by name.
//
// # Death of a worker
//
// workers.go judges, in this order of speed: whoever started it says that its process
// ended (WorkerExited); it says that it leaves; a heartbeat or an answered ping has
// another incarnation; pings, ten a second where workers are few, find nobody under its
// name for 110 ms, more than a reconnect takes; it is silent for 5 s while others are
// heard, or for 60 s. Nobody is judged while our own connection is down, and what was
// before it came up, or before the set of NATS servers changed, or before we ourselves were
// stopped for a while, does not count.
// A worker that was cut off or asleep itself asks which of its attempts are over
// (Service.returned); the answer of a server that may not decide is weir.ErrConflict. A process that was replaced and wakes up is not heard again, and
// commands are addressed to one life of a worker, so that two never run the same tasks.
//
// # The end of an attempt
//
// The tasks of an attempt that has failed are told to end at once, before the job's row says
// RESTARTING and beside the end of its coordinator: neither a metastore that is slow or away
// nor a decision in hand keeps survivors at work. The next attempt begins once the
// coordinator has ended and every living worker has said that its tasks have, or half a
// second has passed: who hangs in a call is left behind, and changes nothing when it comes
// back, since the attempt is over. A job's last attempt waits 10 s for that.
//
// # Goroutines
//
// Service.Run owns five: heartbeats, reports, commands of other servers, the watch over
// workers (and its pings), the lease. The lease owns hold while it has it, and hold
// three kinds: the collector, who thins the history, and one per job: driver.run. A
// driver owns those of its actions that wait: reading a manifest, deploying, ending, the
// coordinator. A driver never blocks whoever posts an event.
//
// # Failures
//
// The metastore away: a driver repeats what it has to write until it is written or
// stale; tasks and checkpoints' uploads go on; no decision is made, also once the lease has
// lapsed. A driver that meets
// what it does not expect ends with an error, and the next look begins another from the
// row. What was given up and could not be deleted is tried again (collect.go), with
// growing pauses, by whoever holds the lease; the job's history says so once.
//
// # Testing
//
// testdata/job, place, lease and workers are scripts over the pure parts. lead_test.go
// runs servers in virtual time. integration_test.go runs servers and workers of jobtest
// over a real NATS server and SQLite: workers and servers killed, exact answers.
package job
