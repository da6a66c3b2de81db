// Package deploy holds the messages between servers and workers. They are JSON with
// a version, so that they can be read off the wire; golden files pin their form.
//
//	server ──Deploy, Trigger, Commit, Close, Stop, CommitOnly──▶ worker    commands
//	       ──Progress──▶ worker                                            how far a checkpoint is
//	       ──Checkpoint, CancelCheckpoint──▶ server                        to the lease's holder
//	       ──Results, Changes──▶ worker ──Read──▶ workers                 reads
//	       ──Channels──▶ worker                                            how its channels fare
//	       ◀──Report: Ack, TaskStatus, Ended, Committed──                 reports
//	       ◀──Heartbeat──                                                 once a second
//
// Every command is answered with a Reply, which carries the sentinel of a refusal
// over the wire.
//
// Invariants
//
//  1. A message names its job and attempt; a worker answers what an attempt older
//     than the newest it knows asks for with weir.ErrStale, and does nothing else.
//  2. Doing a command again changes nothing: its identity is (job, attempt, kind,
//     checkpoint).
//  3. A report is sent until a server has taken it in. A Heartbeat may be lost: the
//     next one says everything again.
//  4. A reader refuses a version it does not know, and ignores fields it does not know.
package deploy
